"""Truths that are not labels at all: a vector of costs."""

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
    """All vectors of n_costs costs: an infinite set, without index or enumeration.

    Parameters
    ----------
    n_costs : int
    signed : bool
        Whether costs may be negative (of parts of a decision); of predictions they may not.
    """

    n_costs: int
    signed: bool = False

    def __post_init__(self) -> None:
        self._set(n_costs=check_count(self.n_costs, "n_costs"), signed=bool(self.signed))

    @property
    def size(self) -> None:
        return None

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.n_costs,)

    @property
    def measure(self) -> str:
        return "uniform on [−1, 1] for each cost" if self.signed else "uniform on the unit cube"

    def check(self, labels: ArrayLike, name: str = "labels") -> FloatArray:
        """The costs as float64, (n, n_costs): the given array itself where it is one already."""
        array = np.asarray(labels)
        if array.ndim == 2 and array.shape[0] == 0 and array.shape[1] == self.n_costs:
            return array.astype(np.float64)
        array = (
            _signed(labels, name)
            if self.signed
            else check_loss_matrix(labels, name, copy=False, truths="row")
        )
        if array.shape[1] != self.n_costs:
            raise ValueError(
                f"{name} must have shape (n, {self.n_costs}), one cost per "
                f"{'entry of a decision' if self.signed else 'prediction'}, got {array.shape}"
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
        costs = rng.random((n, self.n_costs))
        return 2.0 * costs - 1.0 if self.signed else costs

    def enumerate(self, *, limit: int = ENUMERATION_LIMIT) -> LabelArray:
        raise self._infinite("listing all cost vectors")

    def weights(self, *, limit: int = ENUMERATION_LIMIT) -> FloatArray:
        raise self._infinite("the measure of every cost vector")

    def _infinite(self, what: str) -> TooManyLabelsError:
        return TooManyLabelsError(
            None, ENUMERATION_LIMIT, what, "use the cost vectors of your data instead"
        )


def _signed(values: ArrayLike, name: str) -> FloatArray:
    """A finite matrix of numbers."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(f"{name} must be a matrix of costs; its rows differ in length") from None
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must contain real numbers, got dtype {array.dtype}")
    if array.ndim != 2:
        raise ValueError(f"{name} must be two-dimensional (rows x costs), got shape {array.shape}")
    array = array.astype(np.float64, copy=False)
    if not np.isfinite(array).all():
        row, column = (int(position) for position in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(
            f"{name} must be finite, got {array[row, column]} at row {row}, column {column}; fill "
            f"or drop the missing costs"
        )
    return array
