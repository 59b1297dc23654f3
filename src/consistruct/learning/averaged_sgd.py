"""Averaged SGD for learning: mini-batches, a constant step from the data, lazy sparse averages."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import joblib
import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import check_count, check_number
from consistruct.learning.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
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
from consistruct.learning.solver import BaseSolver, SolverResult, require
from consistruct.protocols import FloatArray, IntArray, LabelArray
from consistruct.surrogates import BaseSurrogate, QuadraticSurrogate

__all__ = ["AveragedSGD"]

logger = logging.getLogger(__name__)

# Shuffled passes with a constant step leave a bias of order step²; it halves with every restart.
FIRST_SHRINKING_EPOCH = 4


@dataclass(frozen=True, eq=False, repr=False)
class AveragedSGD(BaseSolver):
    """Mini-batch SGD with a constant step; the answer is the average since epoch 1, 2, 4, 8, …

    For the quadratic surrogate it minimises what the closed form minimises,
    (1/N) Σ w_i Φ + (α/2) tr(WᵀḠW), by least-squares steps W ← W − γ(φ(θ + u)ᵀ + αW); for other
    surrogates (1/N) Σ w_i Φ + (α/2)‖W‖². The step is 1/(2c(R²/b + λ_max)) with R² = E‖φ‖⁴/E‖φ‖²,
    λ_max that of E φφᵀ, b the batch size and c the curvature of the surrogate in θ; it falls by √2
    at every restart from epoch 4 on.

    Parameters
    ----------
    alpha : "auto" or float
        "auto" is the mean squared norm of the features over the number of examples.
    batch_size : int
    max_epochs : int
    tol : float
        Stop when the risk improved by less than this share for `patience` epochs.
    patience : int
    early_stopping : bool
        Hold out `validation_fraction` of the rows and keep the average with the least task loss
        on them.
    validation_fraction : float
    step_factor : float
        Multiplies the step.
    label_sampling : bool
        Use one label c drawn from μ instead of the sum over all (surrogates of the (a, b) family).
    checkpoint : str, optional
        File that the state is written to after every epoch; a fit that finds one there goes on
        from it and ends with the same weights as one that was never stopped.

    Examples
    --------
    >>> AveragedSGD(batch_size=8, early_stopping=True)
    AveragedSGD(batch_size=8, early_stopping=True)
    """

    alpha: Any = "auto"
    batch_size: int = 16
    max_epochs: int = 50
    tol: float = 1e-3
    patience: int = 5
    early_stopping: bool = False
    validation_fraction: float = 0.1
    step_factor: float = 1.0
    label_sampling: bool = False
    checkpoint: str | None = None

    def __post_init__(self) -> None:
        _single_alpha(self.alpha)
        self._set(
            batch_size=check_count(self.batch_size, "batch_size"),
            max_epochs=check_count(self.max_epochs, "max_epochs"),
            tol=check_number(self.tol, "tol"),
            patience=check_count(self.patience, "patience"),
            validation_fraction=check_number(
                self.validation_fraction, "validation_fraction", low=0.0, high=0.9, open_low=True
            ),
            step_factor=check_number(self.step_factor, "step_factor", low=0.0, open_low=True),
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
        """Averaged weights and the risk of every epoch."""
        require(self, surrogate, "give a surrogate of this package")
        labels = np.asarray(true)
        weight = np.ones(len(labels)) if sample_weight is None else sample_weight
        held_out: Any = None
        training = np.arange(len(labels))
        if self.early_stopping:
            training, held_out = self._split(len(labels), rng)
        run = SGDRun(self, surrogate, score_map, inputs[training], labels[training],
                     weight[training], rng)  # fmt: skip
        fingerprint = ""
        if self.checkpoint is not None:
            plain = replace(self, checkpoint=None)
            fingerprint = joblib.hash(
                (repr(plain), repr(surrogate), vars(score_map.features), inputs, labels, weight)
            )
            found = read_checkpoint(self.checkpoint, fingerprint)
            if found is not None:
                run.state.restore(found.arrays, found.numbers)
                run.risks = list(found.numbers["risks"])
                rng.bit_generator.state = found.numbers["generator"]
        started = time.perf_counter()
        while run.state.epoch < self.max_epochs:
            if run.state.epochs_without_progress >= self.patience:
                break
            risk = run.epoch(rng)
            if held_out is not None:
                theta = score_map.apply(run.weights(), inputs[held_out])
                losses = surrogate.loss(surrogate.decode(theta), labels[held_out])
                risk = float(np.average(losses, weights=weight[held_out]))
            run.record(risk, keep_best=held_out is not None)
            logger.info(
                "SGD epoch %d: risk %.6g, %.1f s",
                run.state.epoch,
                risk,
                time.perf_counter() - started,
            )
            if self.checkpoint is not None:
                numbers = run.state.numbers()
                numbers["risks"] = run.risks
                numbers["generator"] = rng.bit_generator.state
                write_checkpoint(
                    self.checkpoint, Checkpoint(run.state.arrays(), numbers, fingerprint)
                )
        weights = run.state.best_weights if held_out is not None else run.weights()
        return SolverResult(
            weights, run.state.alpha, run.state.epoch, {"risk": np.array(run.risks)}
        )

    def _split(self, n: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        size = max(1, round(self.validation_fraction * n))
        if size >= n:
            raise ValueError(
                f"early_stopping needs rows to train on and rows to hold out, got {n} row(s); "
                f"turn it off"
            )
        order = rng.permutation(n)
        return np.sort(order[size:]), np.sort(order[:size])


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
        bound = self.design.radius_square / self.solver.batch_size
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
                self.solver.batch_size,
                self.score_map.fit_intercept,
                averaging,
            )
        )

    def _dense_epoch(self, order: IntArray, averaging: bool, rng: np.random.Generator) -> float:
        state = self.state
        gradient = self._gradient(rng)
        total = 0.0
        for start in range(0, len(order), self.solver.batch_size):
            batch = order[start : start + self.solver.batch_size]
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
    direction = rng.normal(size=(len(sample), width))
    value = np.ones(len(sample))
    for _ in range(20):
        direction /= np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-300)
        ahead = surrogate.value_and_gradient(1e-4 * direction, sample)[1]
        behind = surrogate.value_and_gradient(-1e-4 * direction, sample)[1]
        direction = (ahead - behind) / 2e-4
        value = np.linalg.norm(direction, axis=1)
    return float(value.max()) or 1.0
