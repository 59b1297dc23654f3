"""Certificates of the logistic and of the square surrogate."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from consistruct._exact import exact_text
from consistruct.calibration.proofs.base import DistributionCertificate, Exact
from consistruct.calibration.proofs.checkers import bregman
from consistruct.calibration.proofs.checkers.listed import number
from consistruct.calibration.proofs.statement import (
    ALL,
    Statement,
    different_matrix,
    different_scores,
    matrix_words,
    measure_words,
    scores_words,
)
from consistruct.losses.base import Loss
from consistruct.structures import Structure

__all__ = ["BregmanCertificate"]


@dataclass(frozen=True, eq=False)
class BregmanCertificate(DistributionCertificate):
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

    @property
    def statement(self) -> Statement:
        return Statement(
            loss=matrix_words(self.loss),
            scores=scores_words(None),
            surrogate=f"{self.surrogate} for losses up to {exact_text(number(self.largest))}",
            measure=measure_words(None),
            distributions=ALL,
            data={
                "surrogate": self.surrogate,
                "largest": self.largest,
                "loss": self.loss,
            },
        )

    def different_loss(self, loss: Loss) -> str | None:
        return different_matrix(self.loss, loss)

    def different_scores(self, loss: Loss, space: Structure) -> str | None:
        return different_scores(None, None, loss, space)

    @staticmethod
    def verify(document: dict[str, Any]) -> None:
        bregman.verify(document)
