"""One stochastic fit: a data set, a state, and epochs over the one that change the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from consistruct.learning.design_matrix import DesignMatrix
from consistruct.learning.lbfgs import _single_alpha
from consistruct.learning.output_columns import OutputColumns
from consistruct.learning.score_map import ScoreMap
from consistruct.learning.sgd_kernels import (
    AVERAGED_SCALE,
    N_AVERAGED,
    SCALE,
    SMALLEST_SCALE,
    fold,
    sparse_epoch,
)
from consistruct.learning.sgd_state import SGDState
from consistruct.protocols import FloatArray, IntArray, LabelArray
from consistruct.surrogates import BaseSurrogate, QuadraticSurrogate

if TYPE_CHECKING:
    from consistruct.learning.averaged_sgd import AveragedSGD

__all__ = ["SGDRun"]

# Shuffled passes with a constant step leave a bias of order step²; it halves with every restart.
FIRST_SHRINKING_EPOCH = 4
DENSE_BATCH = 16  # rows that share one matrix product


class SGDRun:
    """One data set, one state: epochs over it in random order."""

    def __init__(
        self,
        solver: AveragedSGD,
        surrogate: BaseSurrogate,
        score_map: ScoreMap,
        inputs: Any,
        labels: LabelArray,
        weight: FloatArray,
        rng: np.random.Generator,
        state: SGDState | None = None,
    ) -> None:
        self.solver = solver
        self.surrogate = surrogate
        self.score_map = score_map
        self.labels = labels
        self.weight = weight / weight.mean()
        self.design = DesignMatrix(score_map, inputs, weight)
        if state is not None:  # the first batch of partial_fit fixed the shift and the step
            self.design.shift = state.shift
        self.risks: list[float] = []
        self.quadratic = isinstance(surrogate, QuadraticSurrogate)
        self._prepare_targets()
        self.batch_size = solver.batch_size
        if solver.batch_size == "auto":  # a compiled step costs the same for one row as for many
            self.batch_size = 1 if self.quadratic and self.design.sparse else DENSE_BATCH
        self.state = self._new_state(rng) if state is None else state
        self.state.n_seen += len(labels)
        self.state.alpha = self._alpha()

    def _prepare_targets(self) -> None:
        if not isinstance(self.surrogate, QuadraticSurrogate):
            return
        target = self.surrogate.target(self.labels)
        self.columns = OutputColumns(
            self.surrogate.loss,
            self.surrogate.score_space,
            fit_intercept=self.score_map.fit_intercept,
        )
        self.target = self.columns.reduce(target)

    def _new_state(self, rng: np.random.Generator) -> SGDState:
        n = len(self.labels)
        width = len(self.columns.kept) if self.quadratic else self.surrogate.score_space.width
        start = np.zeros(width)
        if self.quadratic and self.score_map.fit_intercept:
            # at the mean target the dependent columns stay dependent (OutputColumns)
            start = -np.asarray(self.target.T @ self.weight).ravel() / n
        state = SGDState(self.score_map.features.n_outputs, width, start)
        state.shift = self.design.shift
        curvature = 1.0 if self.quadratic else _curvature(self.surrogate, self.labels, rng)
        bound = self.design.radius_square / self.batch_size
        bound += self.design.largest_eigenvalue(rng)
        state.step = self.solver.step_factor / (2.0 * curvature * bound) if bound > 0 else 0.0
        return state

    def _alpha(self) -> float:
        """The penalty: "auto" falls with the number of examples seen so far."""
        chosen = _single_alpha(self.solver.alpha)
        if chosen is None:
            return self.design.mean_square / max(self.state.n_seen, 1.0)
        # a step beyond 1/α would turn the decay around
        self.state.step = min(self.state.step, 0.5 / chosen) if chosen > 0 else self.state.step
        return chosen

    def epoch(self, rng: np.random.Generator) -> float:
        """One epoch; the mean risk before each update."""
        state = self.state
        if state.epoch & (state.epoch - 1) == 0:  # 0, 1, 2, 4, 8, …
            state.restart_average()
            if state.epoch >= FIRST_SHRINKING_EPOCH:
                state.step *= 0.5**0.5
        fold(state.V, state.U, state.scalars)
        order = rng.permutation(len(self.labels))
        averaging = state.epoch > 0
        if self.quadratic and self.design.sparse:
            total = self._sparse_epoch(order, averaging)
        else:
            total = self._dense_epoch(order, averaging, rng)
        state.epoch += 1
        return total / len(order)

    def _sparse_epoch(self, order: IntArray, averaging: bool) -> float:
        state, csr, target = self.state, self.design.csr, self.target
        return float(
            sparse_epoch(
                csr.indptr,
                csr.indices,
                csr.data.astype(np.float64, copy=False),
                target.indptr,
                target.indices,
                target.data,
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
        if self.quadratic:
            target = self.target

            def least_squares(theta: FloatArray, batch: IntArray) -> tuple[FloatArray, FloatArray]:
                residual = QuadraticSurrogate.residual(theta, target[batch])
                return 0.5 * np.einsum("nw,nw->n", residual, residual), residual

            return least_squares
        if self.solver.label_sampling:
            return lambda theta, batch: self.surrogate.sampled_value_and_gradient(
                theta, self.labels[batch], rng
            )
        return lambda theta, batch: self.surrogate.value_and_gradient(theta, self.labels[batch])

    def weights(self) -> FloatArray:
        """Averaged weights in the coordinates of the score map, (n_weights, width)."""
        weights = self.state.weights()
        if self.quadratic:
            weights = self.columns.expand(weights)
        if not self.score_map.fit_intercept:
            return weights[:-1]
        return self.design.unshift(weights)

    def record(self, risk: float, *, keep_best: bool) -> None:
        """Count epochs without progress; keep the weights of the best one."""
        state = self.state
        self.risks.append(risk)
        if keep_best and (risk < state.best_risk or state.best_weights.size == 0):
            state.best_weights = self.weights()
        if risk < state.best_risk - self.solver.tol * abs(state.best_risk):
            state.epochs_without_progress = 0
        elif np.isfinite(state.best_risk):
            state.epochs_without_progress += 1
        state.best_risk = min(state.best_risk, risk)


def _curvature(surrogate: BaseSurrogate, labels: LabelArray, rng: np.random.Generator) -> float:
    """Largest second derivative of Φ(·, y) at θ = 0 over some examples, by power iteration."""
    sample = labels[rng.choice(len(labels), size=min(64, len(labels)), replace=False)]
    width = surrogate.score_space.width
    if not surrogate.smooth:
        # ‖g‖² ≤ 2cΦ is what a curvature c means where Φ ≥ 0: a step that a fall to zero would pay
        values, slopes = surrogate.value_and_gradient(np.zeros((len(sample), width)), sample)
        ratios = (slopes**2).sum(axis=1) / (2.0 * np.maximum(values, 1e-300))
        return float(ratios[values > 0].max(initial=0.0)) or 1.0
    direction = rng.normal(size=(len(sample), width))
    value = np.ones(len(sample))
    for _ in range(20):
        direction /= np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-300)
        ahead = surrogate.value_and_gradient(1e-4 * direction, sample)[1]
        behind = surrogate.value_and_gradient(-1e-4 * direction, sample)[1]
        direction = (ahead - behind) / 2e-4
        value = np.linalg.norm(direction, axis=1)
    return float(value.max()) or 1.0
