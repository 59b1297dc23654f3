"""Certificates of the log loss and of sparsemax."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from consistruct.calibration.proofs.base import Exact, LawCertificate
from consistruct.calibration.proofs.checkers import divergence

__all__ = ["DivergenceCertificate"]


@dataclass(frozen=True, eq=False)
class DivergenceCertificate(LawCertificate):
    """lower ≤ H(ε) ≤ upper for a loss matrix and a surrogate that estimates a distribution.

    Attributes
    ----------
    surrogate, decoding, loss : "log" or "sparsemax"; "argmax" or "bayes"; rows
    pair : (i, j), j is predicted though i is better by ε
    law, estimate : distributions of the truth and of the scores under which that happens
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
    law: list[Exact]
    estimate: list[Exact]
    inner: list[Exact]
    pairs: list[dict[str, Any]]
    excluded: list[dict[str, Any]]

    @staticmethod
    def verify(document: dict[str, Any]) -> None:
        divergence.verify(document)
