"""Certificates of the linear-regret surrogate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from consistruct._exact import exact_text
from consistruct.calibration.proofs.base import DistributionCertificate, Exact
from consistruct.calibration.proofs.checkers import ties
from consistruct.calibration.proofs.checkers.listed import number
from consistruct.calibration.proofs.statement import (
    ALL,
    NO_MEASURE,
    Statement,
    different_matrix,
    different_scores,
    matrix_words,
    scores_words,
)
from consistruct.losses.base import Loss
from consistruct.structures import Structure

__all__ = ["TiesCertificate"]


@dataclass(frozen=True, eq=False)
class TiesCertificate(DistributionCertificate):
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

    @property
    def statement(self) -> Statement:
        return Statement(
            loss=matrix_words(self.loss),
            scores=scores_words(None),
            surrogate=f"linear regret with κ = {exact_text(number(self.kappa))}",
            measure=NO_MEASURE,
            distributions=ALL,
            data={"surrogate": "linear-regret", "kappa": self.kappa, "loss": self.loss},
        )

    def different_loss(self, loss: Loss) -> str | None:
        return different_matrix(self.loss, loss)

    def different_scores(self, loss: Loss, space: Structure) -> str | None:
        return different_scores(None, None, loss, space)

    @staticmethod
    def verify(document: dict[str, Any]) -> None:
        ties.verify(document)
