"""Certificates of the log loss and of sparsemax."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from consistruct.calibration.proofs.base import DistributionCertificate, Exact
from consistruct.calibration.proofs.checkers import divergence
from consistruct.calibration.proofs.statement import (
    ALL,
    NO_MEASURE,
    Statement,
    different_matrix,
    different_scores,
    matrix_words,
)
from consistruct.losses.base import Loss
from consistruct.structures import Structure

__all__ = ["DivergenceCertificate"]


@dataclass(frozen=True, eq=False)
class DivergenceCertificate(DistributionCertificate):
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

    @property
    def statement(self) -> Statement:
        return Statement(
            loss=matrix_words(self.loss),
            scores=(
                "one free score per true label, argmax decoding"
                if self.decoding == "argmax"
                else "one free score per true label, decoding by the least expected loss"
            ),
            surrogate=f"{self.surrogate} loss",
            measure=NO_MEASURE,
            distributions=ALL,
            data={
                "surrogate": self.surrogate,
                "decoding": self.decoding,
                "loss": self.loss,
            },
        )

    def different_loss(self, loss: Loss) -> str | None:
        return different_matrix(self.loss, loss)

    def different_scores(self, loss: Loss, space: Structure) -> str | None:
        return different_scores(None, None, loss, space)

    @staticmethod
    def verify(document: dict[str, Any]) -> None:
        divergence.verify(document)
