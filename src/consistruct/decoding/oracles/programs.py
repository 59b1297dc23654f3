"""Mixed-integer programs given as matrices, solved by HiGHS."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy  # its submodules are imported on use

from consistruct._members import ArrayField, frozen_array
from consistruct.decoding.oracles.base import Oracle
from consistruct.exceptions import ConsistructError
from consistruct.protocols import FloatArray

__all__ = ["MixedInteger"]

TOLERANCE = 1e-6  # of HiGHS: primal feasibility


@dataclass(frozen=True, eq=False, repr=False)
class MixedInteger(Oracle):
    """min ⟨c, z⟩ subject to lower ≤ A z ≤ upper, low ≤ z ≤ high, some or all z integer.

    Solved by branch and bound (HiGHS, through SciPy), to a relative gap of zero, one row of costs
    after the other: milliseconds each.

    Parameters
    ----------
    A : (m, d) array
    lower, upper : (m,) arrays or floats
        Bounds of the constraints; −inf and inf where there is none.
    low, high : (d,) arrays or floats
        Bounds of the variables.
    integer : (d,) array of bool, or bool

    Examples
    --------
    >>> from consistruct.decoding.oracles import MixedInteger
    >>> MixedInteger([[1.0, 1.0, 1.0]], upper=2.0)([[-1.0, -3.0, -2.0]])
    array([[0., 1., 1.]])
    """

    A: ArrayField
    lower: ArrayField = -np.inf
    upper: ArrayField = np.inf
    low: ArrayField = 0.0
    high: ArrayField = 1.0
    integer: ArrayField = True
    name: ClassVar[str] = "program"
    fast: ClassVar[bool] = False
    binary: ClassVar[bool] = False

    def __post_init__(self) -> None:
        matrix = np.asarray(self.A, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[1] < 1 or not np.isfinite(matrix).all():
            raise ValueError(
                f"A must be a finite matrix (constraints x variables), got shape {matrix.shape}"
            )
        m, d = matrix.shape
        self._set(A=frozen_array(matrix))
        for name, size, kind in (
            ("lower", m, np.float64),
            ("upper", m, np.float64),
            ("low", d, np.float64),
            ("high", d, np.float64),
            ("integer", d, np.bool_),
        ):
            try:
                values = np.broadcast_to(np.asarray(getattr(self, name), dtype=kind), (size,))
            except ValueError:
                raise ValueError(
                    f"{name} must be one value or {size}, got shape {np.shape(getattr(self, name))}"
                ) from None
            if kind is np.float64 and np.isnan(values).any():
                raise ValueError(f"{name} must not contain NaN")
            self._set(**{name: frozen_array(values, kind)})
        if (self.lower > self.upper).any() or (self.low > self.high).any():
            raise ValueError("lower bounds must not exceed upper bounds")

    @property
    def n_costs(self) -> int:
        return int(self.A.shape[1])

    @cached_property
    def _parts(self) -> tuple[Any, Any, Any]:
        optimize = scipy.optimize
        return (
            optimize.LinearConstraint(scipy.sparse.csc_array(self.A), self.lower, self.upper),
            optimize.Bounds(self.low, self.high),
            self.integer.astype(np.int64),
        )

    def _solve(self, costs: FloatArray) -> FloatArray:
        constraints, bounds, integrality = self._parts
        found = np.empty(costs.shape)
        for row, cost in enumerate(costs):
            answer = scipy.optimize.milp(
                cost,
                constraints=constraints,
                bounds=bounds,
                integrality=integrality,
                options={"mip_rel_gap": 0.0},
            )
            if answer.x is None or not answer.success:
                raise ConsistructError(
                    f"the program has no best decision for row {row}: "
                    f"{' '.join(str(answer.message).split())}; check that it is feasible and "
                    f"bounded"
                )
            found[row] = np.where(self.integer, np.rint(answer.x), answer.x)
        return found

    def feasible(self, decisions: FloatArray) -> np.ndarray:
        values = decisions @ self.A.T
        slack = TOLERANCE * np.maximum(1.0, np.abs(values))
        inside = (values >= self.lower - slack) & (values <= self.upper + slack)
        within = (decisions >= self.low - TOLERANCE) & (decisions <= self.high + TOLERANCE)
        whole = (decisions == np.rint(decisions)) | ~self.integer
        return np.asarray(inside.all(axis=1) & within.all(axis=1) & whole.all(axis=1))

    def diameter_squared(self) -> tuple[float, bool]:
        return float(((self.high - self.low) ** 2).sum()), False
