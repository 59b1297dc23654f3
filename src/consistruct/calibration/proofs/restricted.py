"""Proof of H(ε) over some distributions of the truth: one listed certificate for each part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from consistruct._plain_data import form
from consistruct.calibration.problem.distributions import Distributions, restore
from consistruct.calibration.proofs.base import Exact, LawCertificate
from consistruct.calibration.proofs.checkers import restricted
from consistruct.calibration.proofs.checkers.listed import number
from consistruct.calibration.proofs.listed import ListedCertificate
from consistruct.exceptions import CertificateError

__all__ = ["RestrictedCertificate"]


@dataclass(frozen=True, eq=False)
class RestrictedCertificate(LawCertificate):
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
            raise CertificateError("the part that attains the upper bound has no proof")
        return found

    @property
    def pair(self) -> tuple[int, int]:
        return self._won.pair

    @property
    def law(self) -> list[float]:
        """(m,) distribution of the truth under which j is wrongly predicted at the least cost."""
        polytope = self.distributions.polytopes(len(self.loss[0]))[self.winner]
        shares = np.array([float(number(x)) for x in self._won.law])
        found: list[float] = (polytope.matrix() @ (shares / shares.sum())).tolist()
        return found

    @staticmethod
    def verify(document: dict[str, Any]) -> None:
        restricted.verify(document, check_part=ListedCertificate.verify)
