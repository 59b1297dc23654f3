"""Proof of H(ε) over some distributions of the truth: one listed certificate for each part."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from consistruct.calibration.distributions import Distributions, restore
from consistruct.calibration.proofs.base import REFUSALS, Exact, PlainCertificate
from consistruct.calibration.proofs.checkers.listed import number
from consistruct.calibration.proofs.listed import ListedCertificate
from consistruct.exceptions import CertificateError, ConsistructError

__all__ = ["RestrictedCertificate"]


@dataclass(frozen=True, eq=False)
class RestrictedCertificate(PlainCertificate):
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
    distributions: Distributions
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

    def document(self) -> dict[str, Any]:
        return {
            "loss": self.loss,
            "distributions": self.distributions.document(),
            "eps": self.eps,
            "lower": self.lower,
            "upper": self.upper,
            "parts": [None if part is None else part.document() for part in self.parts],
            "winner": self.winner,
        }

    @classmethod
    def read(cls, document: dict[str, Any]) -> Self:
        return cls(
            loss=document["loss"],
            distributions=restore(document["distributions"]),
            eps=document["eps"],
            lower=document["lower"],
            upper=document["upper"],
            parts=tuple(
                None if part is None else ListedCertificate.read(part) for part in document["parts"]
            ),
            winner=document["winner"],
        )

    @staticmethod
    def verify(document: dict[str, Any]) -> None:
        RestrictedCertificate.read(document).check()

    def check(self) -> None:
        """List the extreme distributions again, then check every part."""
        try:
            self._verify()
        except CertificateError:
            raise
        except (*REFUSALS, ConsistructError) as reason:
            raise CertificateError(f"this certificate proves nothing: {reason!r}") from None

    def _verify(self) -> None:
        L = np.array(self.loss, dtype=np.float64)
        polytopes = self.distributions.polytopes(L.shape[1])
        if len(polytopes) != len(self.parts) or not 0 <= self.winner < len(self.parts):
            raise CertificateError("the parts are not those of the distributions")
        eps, won = number(self.eps), self._won
        predictable = [label for label in range(len(L)) if label not in won.excluded]
        for polytope, part in zip(polytopes, self.parts, strict=True):
            columns = polytope.columns(L)
            if part is None:
                rows = columns[predictable]
                high, low = rows.max(axis=0).tolist(), rows.min(axis=0).tolist()
                gap = max(Fraction(a) - Fraction(b) for a, b in zip(high, low, strict=True))
                if gap >= eps:
                    raise CertificateError(f"no proof is given for the part {polytope.name!r}")
                continue
            same = number(part.eps) == eps and _equal(part.loss, columns.tolist())
            if not same or (part.scores, part.measure) != (won.scores, won.measure):
                raise CertificateError(f"the proof of {polytope.name!r} is about another problem")
            part.check()
            if number(part.lower) * part.scale < number(self.lower):
                raise CertificateError(f"the lower bound {self.lower!r} is not proved")
        if number(self.upper) < number(won.upper) * won.scale:
            raise CertificateError(f"the upper bound {self.upper!r} is not attained")


def _equal(one: list[list[Exact]], other: list[list[float]]) -> bool:
    return [[number(x) for x in row] for row in one] == [[Fraction(x) for x in r] for r in other]
