"""L-BFGS: any smooth surrogate on all examples at a time."""

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

from consistruct._validation import check_count, check_number
from consistruct.exceptions import ConsistructError
from consistruct.learning.design_matrix import DesignMatrix
from consistruct.learning.held_out_penalty import best_share
from consistruct.learning.score_map import ScoreMap
from consistruct.learning.solver import BaseSolver, SolverResult, check_alpha, require
from consistruct.protocols import FloatArray, IntArray, LabelArray
from consistruct.surrogates import BaseSurrogate

__all__ = ["LBFGS"]

logger = logging.getLogger(__name__)

SEARCH_ITERATIONS = 200  # enough to rank penalties


@dataclass(frozen=True, eq=False, repr=False)
class LBFGS(BaseSolver):
    """min_W (1/N) Σ_i w_i Φ(Wᵀφ_i, y_i) + (α/2)‖W‖² for any surrogate Φ (intercept free).

    Parameters
    ----------
    alpha : "auto" or float
        "auto" is c·E‖φ‖²/N, with c of 1, 0.1, 0.01 and 0.001 the one with the least surrogate risk
        on a quarter of the rows, held out for this choice; 1 for fewer than 256 rows.
    max_iter : int
    tol : float
        Stop when no entry of the gradient exceeds it.

    Examples
    --------
    >>> LBFGS(alpha=0.01).max_iter
    1000
    """

    alpha: Any = "auto"
    max_iter: int = 1000
    tol: float = 1e-6

    def __post_init__(self) -> None:
        _single_alpha(self.alpha)
        self._set(
            max_iter=check_count(self.max_iter, "max_iter"),
            tol=check_number(self.tol, "tol", low=0.0),
        )

    def solve(
        self,
        surrogate: BaseSurrogate,
        score_map: ScoreMap,
        inputs: Any,
        true: ArrayLike,
        *,
        sample_weight: FloatArray | None = None,
        init: FloatArray | None = None,
        rng: np.random.Generator,
    ) -> SolverResult:
        """Weights at a stationary point; warns if `max_iter` came first."""
        require(self, surrogate, "give a surrogate of this package")
        if not surrogate.smooth:
            raise ConsistructError(
                f"L-BFGS needs a smooth surrogate, and {surrogate.name!r} has kinks; use "
                f"solver='sgd', or surrogate='softmax-margin', a smooth upper bound of the hinge"
            )
        labels = np.asarray(true)
        weight = np.ones(len(labels)) if sample_weight is None else sample_weight
        alpha = _single_alpha(self.alpha)
        if alpha is None:
            part = (inputs, labels, weight)
            alpha = self._penalty(surrogate, score_map, *part, rng) * mean_penalty(score_map, *part)
        return self._minimise(surrogate, score_map, inputs, labels, weight, alpha, init)

    def _penalty(
        self,
        surrogate: BaseSurrogate,
        score_map: ScoreMap,
        inputs: Any,
        labels: LabelArray,
        weight: FloatArray,
        rng: np.random.Generator,
    ) -> float:
        """The best share of E‖φ‖²/N on held-out rows."""

        def fits(used: IntArray) -> Callable[[float], FloatArray]:
            part = (inputs[used], labels[used], weight[used])
            whole = mean_penalty(score_map, *part)
            weights: FloatArray | None = None  # each fit starts from the one before

            def fit(share: float) -> FloatArray:
                nonlocal weights
                rough = replace(self, max_iter=min(self.max_iter, SEARCH_ITERATIONS))
                found = rough._minimise(
                    surrogate, score_map, *part, share * whole, weights, warn=False
                )
                weights = found.weights
                return weights

            return fit

        # By the surrogate's own risk: it is what makes estimates of probabilities good ones,
        # however they are decoded afterwards.
        def risk(theta: FloatArray, true: LabelArray) -> FloatArray:
            return surrogate.value_and_gradient(theta, true)[0]

        return best_share(score_map, inputs, labels, weight, rng, fits, risk)

    def _minimise(
        self,
        surrogate: BaseSurrogate,
        score_map: ScoreMap,
        inputs: Any,
        labels: LabelArray,
        weight: FloatArray,
        alpha: float,
        init: FloatArray | None,
        *,
        warn: bool = True,
    ) -> SolverResult:
        share = weight / weight.sum()
        design = DesignMatrix(score_map, inputs, weight)
        shape = (score_map.n_weights, surrogate.score_space.width)
        size = score_map.features.n_outputs

        def objective(flat: FloatArray) -> tuple[float, FloatArray]:
            weights = flat.reshape(shape)
            coef, intercept = score_map.split(weights)
            value = 0.5 * alpha * float((coef**2).sum())
            gradient = np.zeros(shape)
            gradient[:size] = alpha * coef
            for part in score_map.chunks(inputs):
                rows = design.rows(part)
                values, slopes = surrogate.value_and_gradient(rows @ coef + intercept, labels[part])
                slopes *= share[part][:, None]
                value += float(share[part] @ values)
                gradient[:size] += rows.T @ slopes
                if score_map.fit_intercept:
                    gradient[-1] += slopes.sum(axis=0)
            return value, gradient.ravel()

        start = np.zeros(shape) if init is None else init
        found = scipy.optimize.minimize(
            objective,
            start.ravel(),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": self.max_iter, "gtol": self.tol, "ftol": 1e-15, "maxcor": 20},
        )
        logger.info("L-BFGS: %d iterations, risk %.6g", found.nit, found.fun)
        if warn and found.nit >= self.max_iter:
            warnings.warn(
                f"L-BFGS stopped after max_iter={self.max_iter} iterations; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        weights = design.unshift(found.x.reshape(shape))
        return SolverResult(weights, alpha, max(1, int(found.nit)))


def mean_penalty(score_map: ScoreMap, inputs: Any, labels: LabelArray, weight: FloatArray) -> float:
    """Mean squared norm of the features over the total weight: vanishes as data grow."""
    return DesignMatrix(score_map, inputs, weight).mean_square / float(weight.sum())


def _single_alpha(alpha: Any) -> float | None:
    checked = check_alpha(alpha)
    if isinstance(checked, np.ndarray):
        raise ValueError(
            "alpha must be one number or 'auto' for iterative solvers; only the closed form "
            "chooses among several (use GridSearchCV for the others)"
        )
    return checked
