"""Certificates of the linear-regret surrogate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from consistruct.calibration.proofs.base import Exact, LawCertificate
from consistruct.calibration.proofs.checkers import ties

__all__ = ["TiesCertificate"]


@dataclass(frozen=True, eq=False)
class TiesCertificate(LawCertificate):
    """lower ≤ H(ε) ≤ upper for a loss matrix and one score per label.

    Attributes
    ----------
    kappa, loss : the weight of the square; rows
    pair : (i, j), j is predicted though i is better by ε
    law : the distribution of the truth under which that happens at the least cost
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
    law: list[Exact]
    tied: list[int]
    threshold: Exact
    pairs: list[dict[str, Any]]

    @staticmethod
    def verify(document: dict[str, Any]) -> None:
        ties.verify(document)
