"""Any function that optimises, as an oracle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from consistruct._validation import check_count, check_number
from consistruct.decoding.oracles.base import Oracle
from consistruct.exceptions import CapabilityError, ConsistructError
from consistruct.protocols import FloatArray

__all__ = ["Custom"]


@dataclass(frozen=True, eq=False, repr=False)
class Custom(Oracle):
    """A function of your own that returns the best decisions for given costs.

    Parameters
    ----------
    function : callable
        (n, d) costs -> (n, d) decisions; or one row (d,) -> (d,) with ``batch=False``.
    width : int
        d, the number of costs.
    sense : {"min", "max"}
        What the function does with the numbers that it gets.
    exact : bool
        Whether its answers are always best; regrets of a heuristic may be negative.
    check : callable, optional
        (n, d) decisions -> (n,) bool; answers that it does not accept are refused.
    diameter : float, optional
        max ‖z − z'‖ over decisions, which analysis needs.
    batch : bool
        Whether the function takes many rows at once.
    n_jobs : int, optional
        Rows solved at a time, where the function takes one; the answers do not depend on it.

    Examples
    --------
    >>> import numpy as np
    >>> cheapest = Custom(lambda cost: np.eye(len(cost))[np.argmin(cost)], 3, batch=False)
    >>> cheapest([[3.0, 1.0, 2.0]])
    array([[0., 1., 0.]])
    """

    function: Callable[..., Any]
    width: int
    sense: str = "min"  # type: ignore[misc]
    exact: bool = True  # type: ignore[misc]
    check: Callable[..., Any] | None = None
    diameter: float | None = None
    batch: bool = True
    n_jobs: int | None = None
    name: ClassVar[str] = "custom"
    fast: ClassVar[bool] = False
    binary: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(
                f"an oracle must be a function of costs or one of consistruct.oracles, got "
                f"{type(self.function).__name__}"
            )
        if self.check is not None and not callable(self.check):
            raise TypeError(f"check must be a function of decisions, got {self.check!r}")
        if self.sense not in ("min", "max"):
            raise ValueError(f"sense must be 'min' or 'max', got {self.sense!r}")
        self._set(width=check_count(self.width, "n_costs"), exact=bool(self.exact))
        if self.diameter is not None:
            self._set(diameter=check_number(self.diameter, "diameter", low=0.0))

    @property
    def n_costs(self) -> int:
        return self.width

    def _solve(self, costs: FloatArray) -> FloatArray:
        given = -costs if self.sense == "max" else costs
        if self.batch:
            answers = self.function(given.copy())
        else:
            from joblib import Parallel, delayed

            answers = Parallel(n_jobs=self.n_jobs)(delayed(self.function)(row) for row in given)
        try:
            found = np.asarray(answers, dtype=np.float64)
        except (TypeError, ValueError):
            found = np.empty(0)
        if len(costs) == 0:
            return np.zeros(costs.shape)
        if found.shape != costs.shape or not np.isfinite(found).all():
            raise ConsistructError(
                f"the oracle must return finite decisions of shape {costs.shape} for costs of that "
                f"shape, got shape {found.shape}; with batch=False it gets one row at a time"
            )
        good = self.feasible(found)
        if not good.all():
            raise ConsistructError(
                f"the oracle's decision for row {int(np.argmin(good))} is refused by the check; "
                f"correct the oracle, or the check"
            )
        return found

    def feasible(self, decisions: FloatArray) -> np.ndarray:
        if self.check is None:
            return np.asarray(np.isfinite(decisions).all(axis=1))
        good = np.asarray(self.check(decisions), dtype=bool)
        if good.shape != (len(decisions),):
            raise ConsistructError(
                f"check must say yes or no for each of {len(decisions)} decisions, got shape "
                f"{good.shape}"
            )
        return good

    def diameter_squared(self) -> tuple[float, bool]:
        if self.diameter is None:
            raise CapabilityError(
                self,
                "diameter",
                "how hard these decisions are",
                "pass diameter=, the largest distance between two decisions, to Decision",
            )
        return self.diameter**2, True

    def largest_regret(self) -> float:
        if self.diameter is None:  # decisions of entries in [0, 1]
            return float(self.n_costs)
        return float(np.sqrt(self.n_costs) * self.diameter) or 1.0
