"""Truths that are not labels at all: one non-negative cost for every prediction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from consistruct._members import Member
from consistruct._validation import check_count, check_loss_matrix
from consistruct.exceptions import TooManyLabelsError
from consistruct.labels.base import ENUMERATION_LIMIT, VECTOR_LIMIT
from consistruct.protocols import FloatArray, LabelArray

__all__ = ["CostVectorSet"]


@dataclass(frozen=True, eq=False, repr=False)
class CostVectorSet(Member):
    """All vectors of n_costs non-negative costs: an infinite set, without index or enumeration."""

    n_costs: int

    def __post_init__(self) -> None:
        self._set(n_costs=check_count(self.n_costs, "n_costs"))

    @property
    def size(self) -> None:
        return None

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.n_costs,)

    @property
    def measure(self) -> str:
        return "uniform on the unit cube"

    def check(self, labels: ArrayLike, name: str = "labels") -> FloatArray:
        """The costs as float64, (n, n_costs): the given array itself where it is one already."""
        array = np.asarray(labels)
        if array.ndim == 2 and array.shape[0] == 0 and array.shape[1] == self.n_costs:
            return array.astype(np.float64)
        array = check_loss_matrix(labels, name, copy=False)
        if array.shape[1] != self.n_costs:
            raise ValueError(
                f"{name} must have shape (n, {self.n_costs}), one cost per prediction, "
                f"got {array.shape}"
            )
        return array

    def index(self, labels: ArrayLike) -> LabelArray:
        raise self._infinite("an index of cost vectors")

    def unindex(self, indices: ArrayLike) -> LabelArray:
        raise self._infinite("an index of cost vectors")

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        if self.n_costs > VECTOR_LIMIT:
            raise TooManyLabelsError(
                self.n_costs,
                VECTOR_LIMIT,
                "a vector with one cost per prediction",
                "use a loss with structure such as Block or Hamming",
            )
        return rng.random((n, self.n_costs))

    def enumerate(self, *, limit: int = ENUMERATION_LIMIT) -> LabelArray:
        raise self._infinite("listing all cost vectors")

    def weights(self, *, limit: int = ENUMERATION_LIMIT) -> FloatArray:
        raise self._infinite("the measure of every cost vector")

    def _infinite(self, what: str) -> TooManyLabelsError:
        return TooManyLabelsError(
            None, ENUMERATION_LIMIT, what, "use the cost vectors of your data instead"
        )
