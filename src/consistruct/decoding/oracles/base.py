"""What all optimisation oracles share: the cheapest feasible decision for each row of costs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from consistruct._members import Member
from consistruct._validation import check_rows
from consistruct.exceptions import CapabilityError, LossSpecError, TooManyLabelsError
from consistruct.protocols import FloatArray

__all__ = ["CallCount", "Counts", "Oracle", "are_binary", "check_costs", "counted_calls"]

LISTING_LIMIT = 4096


class CallCount:
    """How many problems the oracles solved inside `counted_calls`."""

    def __init__(self) -> None:
        self.n = 0


_counters: ContextVar[tuple[CallCount, ...]] = ContextVar("counters", default=())


@contextmanager
def counted_calls() -> Iterator[CallCount]:
    """Count the problems (rows of costs) that oracles solve inside the block, in this thread.

    >>> from consistruct.decoding.oracles import GridPath
    >>> with counted_calls() as calls:
    ...     decisions = GridPath(2, 2)([[1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 0.0]])
    >>> calls.n
    2
    """
    count = CallCount()
    token = _counters.set((*_counters.get(), count))
    try:
        yield count
    finally:
        _counters.reset(token)


class Counts:
    """How a uniformly drawn decision looks, counted exactly without listing decisions.

    Attributes
    ----------
    size : int
        Number of feasible decisions.
    mean : (d,) array
        Share of the decisions that use each entry.
    second : (d, d) array
        Share that use both of two entries.
    """

    def __init__(self, size: int, mean: FloatArray, second: FloatArray) -> None:
        self.size, self.mean, self.second = size, mean, second


class Oracle(Member, ABC):
    """argmin over feasible z of ⟨c, z⟩. Required: `name`, `n_costs`, `_solve`, `feasible`.

    Decisions are vectors of `n_costs` numbers, 0 or 1 unless an oracle says otherwise. Among
    decisions of equal cost the answer is always the same, by a rule that is the algorithm's own.
    """

    name: ClassVar[str]
    exact: ClassVar[bool] = True
    fast: ClassVar[bool] = True  # compiled: microseconds per row rather than milliseconds
    non_negative: ClassVar[bool] = False  # whether costs below 0 are refused
    sense: ClassVar[str] = "min"  # what users do with it: values of a knapsack are maximised
    binary: ClassVar[bool] = True  # whether decisions hold 0 and 1 only

    @property
    @abstractmethod
    def n_costs(self) -> int:
        """d, the number of costs and of entries of a decision."""

    @abstractmethod
    def _solve(self, costs: FloatArray) -> FloatArray:
        """The best decisions (n, d) for checked costs (n, d)."""

    @abstractmethod
    def feasible(self, decisions: FloatArray) -> np.ndarray:
        """Which rows of (n, d) are feasible decisions, (n,) bool."""

    def __call__(self, costs: ArrayLike) -> FloatArray:
        """The feasible decision of least cost for each row of costs, (n, d) -> (n, d)."""
        checked = check_costs(costs, self.n_costs)
        if self.non_negative and checked.size and checked.min() < 0.0:
            row, column = (int(place) for place in np.argwhere(checked < 0)[0])
            raise ValueError(
                f"{type(self).__name__} accepts only costs of at least 0, got "
                f"{checked[row, column]:g} at row {row}, column {column}; use a directed graph "
                "without cycles for such costs"
            )
        for counter in _counters.get():
            counter.n += len(checked)
        return self._solve(checked)

    # --- with a default ---

    def counts(self) -> Counts:
        """Number of decisions and moments of a uniform one, where they can be counted."""
        raise CapabilityError(
            self, "counts", "the uniform measure on decisions", "use the identity Gram instead"
        )

    def listed(self, *, limit: int = LISTING_LIMIT) -> FloatArray:
        """Every feasible decision, (k, d), among all 0/1 vectors; slow, for checks."""
        if self.n_costs > 20:
            raise TooManyLabelsError(
                None, limit, f"listing decisions of {self.n_costs} entries", "count them instead"
            )
        bits = np.arange(2**self.n_costs)[:, None] >> np.arange(self.n_costs)[::-1] & 1
        every = bits.astype(np.float64)
        found = every[self.feasible(every)]
        if len(found) > limit:
            raise TooManyLabelsError(
                len(found), limit, "listing decisions", "count them instead, or raise the limit"
            )
        return found

    def diameter_squared(self) -> tuple[float, bool]:
        """max ‖z − z'‖² over feasible pairs, or a bound on it, and whether it is attained."""
        return float(self.n_costs), False

    def largest_regret(self) -> float:
        """A bound on the regret where costs are at most 1 in size: max ‖z − z'‖₁."""
        square = self.diameter_squared()[0]
        return square if self.binary else float(np.sqrt(self.n_costs * square))

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...]) -> Oracle:
        """The oracle from the fields of a spec such as ``path:5x5``."""
        raise LossSpecError(f"{cls.__name__} cannot be written as a spec; build it in Python")


def check_costs(costs: ArrayLike, width: int, name: str = "costs") -> FloatArray:
    """Costs as (n, width) float64, finite."""
    checked = check_rows(costs, width, name)
    if not np.isfinite(checked).all():
        row, column = (int(place) for place in np.argwhere(~np.isfinite(checked))[0])
        raise ValueError(
            f"{name} must be finite, got {checked[row, column]} at row {row}, column {column}; "
            f"forbid an entry by a large cost"
        )
    return np.ascontiguousarray(checked)


def are_binary(decisions: FloatArray) -> np.ndarray:
    """Which rows hold only 0 and 1, (n,)."""
    return np.asarray(((decisions == 0.0) | (decisions == 1.0)).all(axis=1))
