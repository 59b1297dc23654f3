"""Averaged SGD on a table: a data set, a state, and epochs over the one that change the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from consistruct._validation import single_alpha
from consistruct.learning.models.features.feature_maps import ScoreMap
from consistruct.learning.models.solvers.design_matrix import DesignMatrix
from consistruct.learning.models.solvers.objectives import LeastSquares, objective_of
from consistruct.learning.models.solvers.sgd_kernels import (
    AVERAGED_SCALE,
    N_AVERAGED,
    SCALE,
    SMALLEST_SCALE,
    fold,
    sparse_epoch,
)
from consistruct.learning.models.solvers.sgd_loop import Arrays
from consistruct.learning.models.solvers.sgd_state import SGDState
from consistruct.protocols import FloatArray, IntArray

if TYPE_CHECKING:
    from consistruct.learning.models.solvers.averaged_sgd import AveragedSGD

__all__ = ["SGDRun"]

# Shuffled passes with a constant step leave a bias of order step²; it halves with every restart.
FIRST_SHRINKING_EPOCH = 4
DENSE_BATCH = 16  # rows that share one matrix product


class SGDRun:
    """One table, one state: epochs over it in random order (a `StochasticProblem`).

    Parameters
    ----------
    solver : AveragedSGD
    objective : Statistic or BaseSurrogate
    score_map : ScoreMap
    inputs : (n, d) array or CSR
    codes : (n, …) array
    weight : (n,) array
    alpha : "auto" or float
        Penalty; "auto" is E‖φ‖²/(examples seen so far).
    state : SGDState, optional
        To go on from (`partial_fit`), whose shift and step stay.
    """

    def __init__(
        self,
        solver: AveragedSGD,
        objective: Any,
        score_map: ScoreMap,
        inputs: Any,
        codes: Any,
        weight: FloatArray,
        rng: np.random.Generator,
        *,
        alpha: Any = "auto",
        state: SGDState | None = None,
    ) -> None:
        self.solver = solver
        self.objective = objective_of(objective, codes, fit_intercept=score_map.fit_intercept)
        self.score_map = score_map
        self.weight = weight / weight.mean()
        self.design = DesignMatrix(score_map, inputs, weight)
        if state is not None:  # the first batch of partial_fit fixed the shift and the step
            self.design.shift = state.shift
        self.compiled = isinstance(self.objective, LeastSquares) and self.design.sparse
        self.batch_size = solver.batch_size
        if solver.batch_size == "auto":  # a compiled step costs the same for one row as for many
            self.batch_size = 1 if self.compiled else DENSE_BATCH
        self.state = self._new_state(rng) if state is None else state
        self.state.n_seen += len(self.objective)
        given = single_alpha(alpha)
        if given is None:  # falls with the number of examples seen so far
            self.state.alpha = self.design.mean_square / max(self.state.n_seen, 1.0)
        else:
            self.state.alpha = given
            if given > 0:  # a step beyond 1/α would turn the decay around
                self.state.step = min(self.state.step, 0.5 / given)

    def _new_state(self, rng: np.random.Generator) -> SGDState:
        start = np.zeros(self.objective.width)
        if self.score_map.fit_intercept:
            start = self.objective.start(self.weight)
        state = SGDState(self.score_map.features.n_outputs, self.objective.width, start)
        state.shift = self.design.shift
        curvature = self.objective.curvature(rng)
        bound = self.design.radius_square / self.batch_size
        bound += self.design.largest_eigenvalue(rng)
        state.step = self.solver.step_factor / (2.0 * curvature * bound) if bound > 0 else 0.0
        return state

    def epoch(self, rng: np.random.Generator) -> float:
        """One epoch; the mean risk before each update."""
        state = self.state
        if state.epoch & (state.epoch - 1) == 0:  # 0, 1, 2, 4, 8, …
            state.restart_average()
            if state.epoch >= FIRST_SHRINKING_EPOCH:
                state.step *= 0.5**0.5
        fold(state.V, state.U, state.scalars)
        order = rng.permutation(len(self.objective))
        averaging = state.epoch > 0
        if self.compiled:
            total = self._sparse_epoch(order, averaging)
        else:
            total = self._dense_epoch(order, averaging, rng)
        state.epoch += 1
        return total / len(order)

    def _sparse_epoch(self, order: IntArray, averaging: bool) -> float:
        assert isinstance(self.objective, LeastSquares)
        state, csr, values = self.state, self.design.csr, self.objective.values
        return float(
            sparse_epoch(
                csr.indptr,
                csr.indices,
                csr.data.astype(np.float64, copy=False),
                values.indptr,
                values.indices,
                values.data,
                self.weight,
                order,
                state.V,
                state.U,
                state.intercept,
                state.intercept_sum,
                state.scalars,
                state.step,
                state.alpha,
                self.batch_size,
                self.score_map.fit_intercept,
                averaging,
            )
        )

    def _dense_epoch(self, order: IntArray, averaging: bool, rng: np.random.Generator) -> float:
        state = self.state
        gradient = self._gradient(rng)
        total = 0.0
        for start in range(0, len(order), self.batch_size):
            batch = order[start : start + self.batch_size]
            rows = self.design.rows(batch)
            scale = state.scalars[SCALE]
            theta = np.asarray(rows @ state.V) * scale + state.intercept
            values, slope = gradient(theta, batch)
            slope *= self.weight[batch][:, None]
            total += float(self.weight[batch] @ values)
            scale *= 1.0 - state.step * state.alpha
            state.scalars[SCALE] = scale
            if scale < SMALLEST_SCALE:
                fold(state.V, state.U, state.scalars)
                scale = 1.0
            change = np.asarray(rows.T @ slope) * (-state.step / (len(batch) * scale))
            state.V += change
            if self.score_map.fit_intercept:
                state.intercept -= state.step / len(batch) * slope.sum(axis=0)
            if averaging:
                change *= state.scalars[AVERAGED_SCALE]
                state.U += change
                state.scalars[AVERAGED_SCALE] += scale
                state.scalars[N_AVERAGED] += 1.0
                state.intercept_sum += state.intercept
        return total

    def _gradient(
        self, rng: np.random.Generator
    ) -> Callable[[FloatArray, IntArray], tuple[FloatArray, FloatArray]]:
        if self.solver.label_sampling:
            return lambda theta, rows: self.objective.sampled_value_and_gradient(theta, rows, rng)
        return self.objective.value_and_gradient

    def weights(self) -> FloatArray:
        """Averaged weights in the coordinates of the score map, (n_weights, width)."""
        weights = self.objective.expand(self.state.weights())
        if not self.score_map.fit_intercept:
            return weights[:-1]
        return self.design.unshift(weights)

    def averaged(self) -> Arrays:
        return {"weights": self.weights()}

    def arrays(self) -> Arrays:
        return self.state.arrays()

    def numbers(self) -> dict[str, Any]:
        return self.state.numbers()

    def restore(self, arrays: Arrays, numbers: dict[str, Any]) -> None:
        self.state.restore(arrays, numbers)
        self.design.shift = self.state.shift
