"""L-BFGS: any smooth objective on all examples at a time, of tables and of chains."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.optimize
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from consistruct._validation import check_count, check_number, single_alpha
from consistruct.exceptions import CapabilityError
from consistruct.learning.models.features.feature_maps import ScoreMap
from consistruct.learning.models.solvers.base import BaseSolver, SolverResult
from consistruct.learning.models.solvers.design_matrix import DesignMatrix
from consistruct.learning.models.solvers.held_out_penalty import best_share
from consistruct.learning.models.solvers.objectives import Objective, objective_of
from consistruct.protocols import FloatArray, IntArray
from consistruct.surrogates import BaseSurrogate

__all__ = ["LBFGS", "Minimum"]

logger = logging.getLogger(__name__)

SEARCH_ITERATIONS = 200  # enough to rank penalties

ValueAndGradient = Callable[[FloatArray], tuple[float, FloatArray]]


@dataclass(frozen=True, eq=False)
class Minimum:
    """A point that L-BFGS ended at, its value and the iterations that it took."""

    point: FloatArray
    value: float
    n_iter: int


@dataclass(frozen=True, eq=False, repr=False)
class LBFGS(BaseSolver):
    """min_W (1/N) Σ_i w_i Φ(Wᵀφ_i, y_i) + (α/2)‖W‖² for any surrogate Φ (intercept free).

    The penalty is the model's: ``alpha="auto"`` is c·E‖φ‖²/N, with c of 1, 0.1, 0.01 and 0.001 the
    one with the least risk on a quarter of the rows, held out for this choice; 1 for fewer than 256
    rows.

    Parameters
    ----------
    max_iter : int
    tol : float
        Stop when no entry of the gradient exceeds it.
    decrease : float
        Stop when a step lowers the value by less than this share.

    Examples
    --------
    >>> LBFGS(tol=1e-4).max_iter
    1000
    """

    max_iter: int = 1000
    tol: float = 1e-6
    decrease: float = 1e-15

    def __post_init__(self) -> None:
        self._set(
            max_iter=check_count(self.max_iter, "max_iter"),
            tol=check_number(self.tol, "tol", low=0.0),
            decrease=check_number(self.decrease, "decrease", low=0.0),
        )

    def minimize(
        self, value_and_gradient: ValueAndGradient, start: FloatArray, *, warn: bool = True
    ) -> Minimum:
        """A point without slope, from a flat array of weights; warns if `max_iter` came first."""
        found = scipy.optimize.minimize(
            value_and_gradient,
            start,
            jac=True,
            method="L-BFGS-B",
            options={
                "maxiter": self.max_iter,
                "gtol": self.tol,
                "ftol": self.decrease,
                "maxcor": 20,
                "maxfun": 20 * self.max_iter,
            },
        )
        logger.info("L-BFGS: %d iterations, risk %.6g", found.nit, found.fun)
        if warn and found.nit >= self.max_iter:
            warnings.warn(
                f"L-BFGS stopped after max_iter={self.max_iter} iterations; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        return Minimum(found.x, float(found.fun), max(1, int(found.nit)))

    def solve(
        self,
        objective: Any,
        score_map: ScoreMap,
        inputs: Any,
        true: ArrayLike,
        *,
        alpha: Any = "auto",
        sample_weight: FloatArray | None = None,
        rng: np.random.Generator,
    ) -> SolverResult:
        """Weights at a stationary point; warns if `max_iter` came first."""
        given = single_alpha(alpha)
        if isinstance(objective, BaseSurrogate) and not objective.smooth:
            raise CapabilityError(
                objective, "a continuous gradient", "L-BFGS", "use solver='sgd' for kinks"
            )
        whole = objective_of(objective, true, fit_intercept=score_map.fit_intercept)
        weight = np.ones(len(whole)) if sample_weight is None else sample_weight
        if given is None:
            share = self._penalty(score_map, whole, inputs, weight, rng)
            given = share * mean_penalty(score_map, inputs, weight)
        return self._solve_at(given, score_map, whole, inputs, weight, None)

    def _penalty(
        self,
        score_map: ScoreMap,
        objective: Objective,
        inputs: Any,
        weight: FloatArray,
        rng: np.random.Generator,
    ) -> float:
        """The best share of E‖φ‖²/N on held-out rows."""

        def fits(used: IntArray) -> Callable[[float], FloatArray]:
            part = objective.take(used), inputs[used], weight[used]
            whole = mean_penalty(score_map, part[1], part[2])
            learned: FloatArray | None = None  # each fit starts from the one before
            rough = replace(self, max_iter=min(self.max_iter, SEARCH_ITERATIONS))

            def fit(share: float) -> FloatArray:
                nonlocal learned
                design = DesignMatrix(score_map, part[1], part[2])
                flat = rough._minimum(share * whole, score_map, *part, design, learned, warn=False)
                learned = flat.point
                return _expanded(flat.point, score_map, part[0], design)

            return fit

        # By the objective's own risk: it is what makes estimates of probabilities good ones,
        # however they are decoded afterwards.
        def risk(theta: FloatArray, rows: IntArray) -> FloatArray:
            held_out = objective.take(rows)
            kept = held_out.restrict(theta)
            return held_out.value_and_gradient(kept, slice(None))[0]

        return best_share(score_map, inputs, weight, rng, fits, risk)

    def _solve_at(
        self,
        alpha: float,
        score_map: ScoreMap,
        objective: Objective,
        inputs: Any,
        weight: FloatArray,
        start: FloatArray | None,
    ) -> SolverResult:
        design = DesignMatrix(score_map, inputs, weight)
        found = self._minimum(alpha, score_map, objective, inputs, weight, design, start)
        weights = _expanded(found.point, score_map, objective, design)
        return SolverResult(weights, alpha, found.n_iter)

    def _minimum(
        self,
        alpha: float,
        score_map: ScoreMap,
        objective: Objective,
        inputs: Any,
        weight: FloatArray,
        design: DesignMatrix,
        start: FloatArray | None,
        *,
        warn: bool = True,
    ) -> Minimum:
        share = weight / weight.sum()
        shape = (score_map.n_weights, objective.width)
        size = score_map.features.n_outputs

        def value_and_gradient(flat: FloatArray) -> tuple[float, FloatArray]:
            weights = flat.reshape(shape)
            coef, intercept = score_map.split(weights)
            value = 0.5 * alpha * float((coef**2).sum())
            gradient = np.zeros(shape)
            gradient[:size] = alpha * coef
            for part in score_map.chunks(inputs):
                rows = design.rows(part)
                values, slopes = objective.value_and_gradient(rows @ coef + intercept, part)
                slopes *= share[part][:, None]
                value += float(share[part] @ values)
                gradient[:size] += rows.T @ slopes
                if score_map.fit_intercept:
                    gradient[-1] += slopes.sum(axis=0)
            return value, gradient.ravel()

        begin = np.zeros(int(np.prod(shape))) if start is None else start
        return self.minimize(value_and_gradient, begin, warn=warn)


def _expanded(
    flat: FloatArray, score_map: ScoreMap, objective: Objective, design: DesignMatrix
) -> FloatArray:
    """Weights of all columns for the features as they are, (n_weights, full width)."""
    weights = flat.reshape(score_map.n_weights, objective.width)
    if not score_map.fit_intercept:
        return objective.expand(np.vstack([weights, np.zeros(weights.shape[1])]))[:-1]
    return design.unshift(objective.expand(weights))


def mean_penalty(score_map: ScoreMap, inputs: Any, weight: FloatArray) -> float:
    """Mean squared norm of the features over the total weight: vanishes as data grow."""
    return DesignMatrix(score_map, inputs, weight).mean_square / float(weight.sum())
