"""Proof of H(ε) over some distributions of the true label: one listed certificate for each part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from consistruct._plain_data import form
from consistruct.calibration.problem.distributions import Distributions, restore
from consistruct.calibration.proofs.base import DistributionCertificate, Exact
from consistruct.calibration.proofs.checkers import restricted
from consistruct.calibration.proofs.checkers.listed import number
from consistruct.calibration.proofs.listed import ListedCertificate
from consistruct.calibration.proofs.statement import (
    Statement,
    different_matrix,
    different_scores,
    matrix_words,
    measure_words,
    scores_words,
)
from consistruct.exceptions import CertificateError
from consistruct.losses.base import Loss
from consistruct.structures import Structure

__all__ = ["RestrictedCertificate"]


@dataclass(frozen=True, eq=False)
class RestrictedCertificate(DistributionCertificate):
    """lower ≤ H(ε) ≤ upper over a union of polytopes of distributions; H is the least of theirs.

    Attributes
    ----------
    loss : rows of the loss matrix
    distributions : Distributions
        Their extreme points are listed again by `check`, and with them the loss of every part.
    parts : tuple of ListedCertificate or None
        None where no distribution of the part makes a prediction worse by ε.
    winner : int
        The part that attains the upper bound.
    """

    kind: ClassVar[str] = "restricted"

    loss: list[list[float]]
    distributions: Annotated[Distributions, form(Distributions.document, restore)]
    eps: float
    lower: Exact
    upper: Exact
    parts: tuple[ListedCertificate | None, ...]
    winner: int

    @property
    def _won(self) -> ListedCertificate:
        found = self.parts[self.winner]
        if found is None:
            raise CertificateError("the part that attains the upper bound has no certificate")
        return found

    @property
    def pair(self) -> tuple[int, int]:
        return self._won.pair

    @property
    def distribution(self) -> list[float]:
        """(m,) distribution of the label under which j is wrongly predicted at the least cost."""
        polytope = self.distributions.polytopes(len(self.loss[0]))[self.winner]
        shares = np.array([float(number(x)) for x in self._won.distribution])
        found: list[float] = (polytope.matrix() @ (shares / shares.sum())).tolist()
        return found

    @property
    def statement(self) -> Statement:
        won = self._won
        return Statement(
            loss=matrix_words(self.loss),
            scores=scores_words(won.scores),
            surrogate="quadratic",
            measure=measure_words(won.measure),
            distributions=f"only those where {self.distributions.exact_meaning}",
            data={
                "loss": self.loss,
                "scores": won.scores,
                "measure": won.measure,
                "distributions": self.distributions.document(),
            },
        )

    def different_loss(self, loss: Loss) -> str | None:
        return different_matrix(self.loss, loss)

    def different_scores(self, loss: Loss, space: Structure) -> str | None:
        return different_scores(self._won.scores, self._won.measure, loss, space)

    @staticmethod
    def verify(document: dict[str, Any]) -> None:
        restricted.verify(document, check_part=ListedCertificate.verify)
