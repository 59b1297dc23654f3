"""Proof of H(ε) over some distributions of the true label: one listed certificate for each part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from consistruct._plain_data import form
from consistruct.calibration.problem.distributions import Distributions, restore
from consistruct.calibration.proofs.base import Exact, MatrixCertificate
from consistruct.calibration.proofs.comparing import different_scores
from consistruct.calibration.proofs.listed import ListedCertificate, screen_of
from consistruct.certificates import listed
from consistruct.certificates.exact import number
from consistruct.exceptions import CertificateError
from consistruct.losses.base import Loss
from consistruct.structures import Structure

__all__ = ["RestrictedCertificate"]


@dataclass(frozen=True, eq=False)
class RestrictedCertificate(MatrixCertificate):
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

    def different_scores(self, loss: Loss, space: Structure) -> str | None:
        return different_scores(self._won.scores, self._won.measure, loss, space)

    @property
    def faster(self) -> dict[str, Any]:
        screen = screen_of(len(self.loss))
        return {"check_part": lambda part: listed.verify(part, screen)}
