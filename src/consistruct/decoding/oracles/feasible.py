"""Feasible decisions as a label set that only an oracle reaches: no size, no order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from consistruct._members import Member
from consistruct._validation import check_rows
from consistruct.decoding.base import BaseDecoder
from consistruct.decoding.oracles.base import LISTING_LIMIT, Oracle
from consistruct.exceptions import TooManyLabelsError
from consistruct.protocols import FloatArray, LabelArray

__all__ = ["BestDecision", "Feasible"]


@dataclass(frozen=True, eq=False, repr=False)
class Feasible(Member):
    """The decisions that an oracle chooses from, vectors of `n_costs` numbers."""

    oracle: Oracle

    @property
    def size(self) -> None:
        return None

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.oracle.n_costs,)

    @property
    def measure(self) -> str:
        return "best decisions of random costs"

    def check(self, labels: ArrayLike, name: str = "labels") -> FloatArray:
        array = check_rows(labels, self.oracle.n_costs, name)
        good = self.oracle.feasible(array)
        if not good.all():
            raise ValueError(
                f"{name} must contain feasible decisions of {self.oracle!r}, but row "
                f"{int(np.argmin(good))} is not one"
            )
        return array

    def index(self, labels: ArrayLike) -> LabelArray:
        raise self._unlisted("an index of decisions")

    def unindex(self, indices: ArrayLike) -> LabelArray:
        raise self._unlisted("an index of decisions")

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        costs = rng.random((n, self.oracle.n_costs))
        if not self.oracle.non_negative:
            costs = 2.0 * costs - 1.0
        return self.oracle(costs)

    def enumerate(self, *, limit: int = LISTING_LIMIT) -> LabelArray:
        raise self._unlisted("listing all decisions")

    def weights(self, *, limit: int = LISTING_LIMIT) -> FloatArray:
        raise self._unlisted("the measure of every decision")

    def _unlisted(self, what: str) -> TooManyLabelsError:
        return TooManyLabelsError(
            None, LISTING_LIMIT, what, "decisions can be reached only through their oracle"
        )


@dataclass(frozen=True, eq=False, repr=False)
class BestDecision(BaseDecoder):
    """argmax over decisions of ⟨z, θ⟩: the oracle for the costs −θ.

    Scores are estimates: where an oracle takes costs of at least 0, smaller ones count as 0.
    """

    oracle: Oracle
    tie_rule = "deterministic: that of the oracle"
    forbids = False

    @property
    def exact(self) -> bool:  # type: ignore[override]
        return self.oracle.exact

    def __call__(self, theta: ArrayLike) -> FloatArray:
        costs = -check_rows(theta, self.oracle.n_costs)
        return self.oracle(np.maximum(costs, 0.0) if self.oracle.non_negative else costs)
