"""Certificates of smooth surrogates: log loss, sparsemax, logistic, square, linear regret.

All are about a loss matrix and one score per label; `consistruct.certificates` has one file for
each kind, which states the argument that its numbers prove.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from consistruct.calibration.proofs.base import Exact, MatrixCertificate

__all__ = ["BregmanCertificate", "DivergenceCertificate", "TiesCertificate"]


@dataclass(frozen=True, eq=False)
class DivergenceCertificate(MatrixCertificate):
    """lower ≤ H(ε) ≤ upper for a loss matrix and a surrogate that estimates a distribution.

    Attributes
    ----------
    surrogate, decoding, loss : "log" or "sparsemax"; "argmax" or "bayes"; rows
    pair : (i, j), j is predicted though i is better by ε
    distribution, estimate : distributions of the true label and of the scores under which that
    happens
    inner : a distribution that predicts j with ties counted; Bayes decoding only, else empty
    pairs : {"pair", "nu", …}: multipliers of the pairs that need them
    excluded : {"label", "w"}: labels that no scores predict, and why
    """

    kind = "divergence"

    surrogate: Literal["log", "sparsemax"]
    decoding: Literal["argmax", "bayes"]
    loss: list[list[Exact]]
    eps: Exact
    lower: Exact
    upper: Exact
    pair: tuple[int, int]
    distribution: list[Exact]
    estimate: list[Exact]
    inner: list[Exact]
    pairs: list[dict[str, Any]]
    excluded: list[dict[str, Any]]


@dataclass(frozen=True, eq=False)
class BregmanCertificate(MatrixCertificate):
    """lower ≤ k·H(ε) ≤ upper for a loss matrix and one score per label.

    Attributes
    ----------
    surrogate, loss : "logistic" or "square"; rows
    largest : losses of the logistic surrogate are between 0 and this
    pair : (i, j), j is predicted though i is better by ε
    distribution : the distribution of the true label under which that happens at the least cost
    threshold : the expected loss that the score of j stands for, in units of `largest`
    pairs : {"pair", "labels", "points", "nu"}: a plane below the excess of a pair
    """

    kind = "bregman"

    surrogate: Literal["logistic", "square"]
    largest: Exact
    loss: list[list[Exact]]
    eps: Exact
    lower: Exact
    upper: Exact
    pair: tuple[int, int]
    distribution: list[Exact]
    threshold: Exact
    pairs: list[dict[str, Any]]

    @property
    def scale(self) -> Fraction:
        return Fraction(1, len(self.loss))


@dataclass(frozen=True, eq=False)
class TiesCertificate(MatrixCertificate):
    """lower ≤ H(ε) ≤ upper for a loss matrix and one score per label.

    Attributes
    ----------
    kappa, loss : the weight of the square; rows
    pair : (i, j), j is predicted though i is better by ε
    distribution : the distribution of the true label under which that happens at the least cost
    tied, threshold : the labels whose estimated losses are the least, and that estimate
    pairs : {"pair", "boxes"}: bounds for all sets of tied labels
    """

    kind = "ties"

    kappa: Exact
    loss: list[list[Exact]]
    eps: Exact
    lower: Exact
    upper: Exact
    pair: tuple[int, int]
    distribution: list[Exact]
    tied: list[int]
    threshold: Exact
    pairs: list[dict[str, Any]]
