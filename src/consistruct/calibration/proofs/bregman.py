"""Certificates of the logistic and of the square surrogate."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from consistruct.calibration.proofs.base import Exact, LawCertificate
from consistruct.calibration.proofs.checkers import bregman

__all__ = ["BregmanCertificate"]


@dataclass(frozen=True, eq=False)
class BregmanCertificate(LawCertificate):
    """lower ≤ k·H(ε) ≤ upper for a loss matrix and one score per label.

    Attributes
    ----------
    surrogate, loss : "logistic" or "square"; rows
    largest : losses of the logistic surrogate are between 0 and this
    pair : (i, j), j is predicted though i is better by ε
    law : the distribution of the truth under which that happens at the least cost
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
    law: list[Exact]
    threshold: Exact
    pairs: list[dict[str, Any]]

    @property
    def scale(self) -> Fraction:
        return Fraction(1, len(self.loss))

    @staticmethod
    def verify(document: dict[str, Any]) -> None:
        bregman.verify(document)
