"""Averaged stochastic gradient on chains, with steps that need no tuning.

A step c / mean‖x_t‖² on the summed gradient of a batch of sequences, its own step for transitions,
both falling with the square root of the epoch, and an average of the iterates with weights that
grow like k³ over snapshots k (Shamir and Zhang, 2013: no horizon has to be known, the second half
counts for fifteen sixteenths). A constant step gives the same errors, but its average keeps a
bias of the order of the step, and probabilities come out too sure of themselves. The step is
halved, and the epoch begun again, if the surrogate explodes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consistruct.learning.models.chain._sgd_kernels import gather_batch, sparse_steps
from consistruct.learning.models.chain.chain_weights import ChainModel
from consistruct.learning.models.chain.edge_steps import per_edge_steps
from consistruct.learning.models.chain.training_set import TrainingSet
from consistruct.protocols import IntArray
from consistruct.surrogates.chain import ChainSurrogate
from consistruct.surrogates.chain._kernels import gradients_packed

__all__ = ["AveragedSGD", "TrainingState"]

logger = logging.getLogger(__name__)

AVERAGING_POWER = 3  # weight of snapshot k grows like k³
MAX_HALVINGS = 30


@dataclass
class TrainingState:
    """Everything that the next epoch depends on, besides the data."""

    model: ChainModel
    average: ChainModel
    epoch: int = 0
    n_snapshots: int = 0
    step_factor: float = 1.0
    history: list[float] = field(default_factory=list)  # mean surrogate per token, by epoch
    # early stopping: the average with the least held-out error so far, and for how long
    best: ChainModel | None = None
    best_error: float = np.inf
    epochs_since_best: int = 0

    @classmethod
    def zeros(cls, n_features: int, n_states: int, *, per_edge: bool = False) -> TrainingState:
        model = ChainModel.zeros(n_features, n_states, per_edge=per_edge)
        return cls(model, model.copy())

    def copy(self) -> TrainingState:
        """A state whose next epoch leaves this one as it is (the best model is never changed)."""
        return replace(
            self,
            model=self.model.copy(),
            average=self.average.copy(),
            history=list(self.history),
        )


@dataclass
class AveragedSGD:
    """The solver.

    Parameters
    ----------
    surrogate : ChainSurrogate
    step : float
        c in the step c / mean‖x_t‖² of the weights.
    transition_step : float
        Step of transitions, start and end scores and biases.
    batch_size : int
        Sequences per step.
    boundaries : bool
        Whether start and end scores are learnt.
    alpha : float
        Penalty (alpha/2)‖(W, V)‖² on the sum of the surrogate over sequences.
    snapshots : int
        Snapshots per epoch that enter the average.
    """

    surrogate: ChainSurrogate
    step: float = 1.0
    transition_step: float = 0.05
    batch_size: int = 8
    boundaries: bool = True
    alpha: float = 0.0
    snapshots: int = 10

    def run_epoch(
        self, state: TrainingState, data: TrainingSet, rng: np.random.Generator
    ) -> TrainingState:
        """One pass in random order; halves the step and starts the pass again if it explodes."""
        order = rng.permutation(len(data.tokens))
        limit = 2.0 * self._value_at_zero(state, data) + 1e-9  # rounding, where there is one tag
        square_norm = data.mean_square_norm()
        for _ in range(MAX_HALVINGS):
            trial = state.copy()
            with np.errstate(over="ignore", invalid="ignore"):  # an explosion is dealt with below
                value = self._pass(trial, data, order, square_norm, limit)
            if value <= limit:
                trial.epoch += 1
                trial.history.append(value)
                return trial
            state.step_factor /= 2
            logger.warning(
                "the surrogate exploded in epoch %d (%.3g per token); step halved to %.3g",
                state.epoch + 1,
                value,
                self.step * state.step_factor,
            )
        raise ValueError(
            f"training diverged at every step down to {self.step * state.step_factor:.1e}; "
            f"scale the features (for example with StandardScaler), or use solver='lbfgs'"
        )

    def _value_at_zero(self, state: TrainingState, data: TrainingSet) -> float:
        """Mean surrogate per token of the empty model on some sequences."""
        rows = np.arange(min(len(data.tokens), 100))
        offsets = data.tokens.offsets[: len(rows) + 1]
        n_tokens, s = int(offsets[-1]), state.model.n_states
        empty = np.where(np.isneginf(state.model.edges), -np.inf, 0.0)[None]
        values = np.empty(len(rows))
        gradients_packed(
            self.surrogate.kind,
            self.surrogate.part_cost,
            np.zeros((n_tokens, s)),
            empty,
            True,
            offsets,
            data.states[:n_tokens],
            np.ones(len(rows)),
            values,
            np.empty((n_tokens, s)),
            np.zeros((1, s, s)),
        )
        return float(values.sum()) / n_tokens

    def _pass(
        self,
        state: TrainingState,
        data: TrainingSet,
        order: IntArray,
        square_norm: float,
        limit: float,
    ) -> float:
        """Visit the sequences in `order`; mean surrogate per token (weighted), before each step."""
        factor = state.step_factor / np.sqrt(1.0 + state.epoch)
        step = self.step * factor / max(square_norm, 1e-12)
        transition_step = self.transition_step * factor
        n_batches = -(-len(order) // self.batch_size)
        chunk = max(1, -(-n_batches // self.snapshots)) * self.batch_size
        lengths = np.diff(data.tokens.offsets)
        if not self.surrogate.flattens:
            # Curvature one at every token: the tokens of a batch add up, and weights, bias and
            # transitions (each with both ends) move the same score.
            step /= 4.0 * self.batch_size * float(lengths.mean())
            transition_step = step * square_norm
        visit = self._visit(data, state.model.per_edge)
        total, mass = 0.0, 0.0
        for first in range(0, len(order), chunk):
            part = order[first : first + chunk]
            total += visit(state.model, part, step, transition_step)
            mass += float(data.weights[part] @ lengths[part])
            if self.alpha:
                shrink = step * self.alpha * len(part) / len(order)
                state.model.weights *= 1.0 / (1.0 + shrink)
                state.model.edge_weights *= 1.0 / (1.0 + shrink)
            # a chunk is too short to judge by its mean alone: only an explosion ends it early
            if not total <= 20.0 * limit * max(mass, 1.0):
                return np.inf if np.isnan(total) else total / max(mass, 1e-300)
            state.n_snapshots += 1
            k, power = state.n_snapshots, AVERAGING_POWER
            state.average.move_towards(state.model, (power + 1) / (k + power))
        return total / max(mass, 1e-300)

    def _visit(
        self, data: TrainingSet, per_edge: bool
    ) -> Callable[[ChainModel, IntArray, float, float], float]:
        if per_edge:
            return self._per_edge_visit(data)
        return self._sparse_visit(data) if data.tokens.is_sparse else self._dense_visit(data)

    def _per_edge_visit(
        self, data: TrainingSet
    ) -> Callable[[ChainModel, IntArray, float, float], float]:
        def visit(model: ChainModel, part: IntArray, step: float, transition_step: float) -> float:
            return per_edge_steps(
                self.surrogate,
                model,
                data,
                part,
                step=step,
                transition_step=transition_step,
                batch_size=self.batch_size,
                boundaries=self.boundaries,
            )

        return visit

    def _sparse_visit(
        self, data: TrainingSet
    ) -> Callable[[ChainModel, IntArray, float, float], float]:
        matrix = data.tokens.features
        values = matrix.data.astype(np.float32, copy=False)
        if (values == 1.0).all():
            values = np.zeros(0, dtype=np.float32)

        def visit(model: ChainModel, part: IntArray, step: float, transition_step: float) -> float:
            return sparse_steps(
                self.surrogate.kind,
                self.surrogate.part_cost,
                step,
                transition_step,
                self.batch_size,
                part,
                data.tokens.offsets,
                matrix.indptr,
                matrix.indices,
                values,
                data.states,
                data.weights,
                model.weights,
                model.bias,
                model.edges[None],
                model.start,
                model.end,
                self.boundaries,
            )

        return visit

    def _dense_visit(
        self, data: TrainingSet
    ) -> Callable[[ChainModel, IntArray, float, float], float]:
        tokens = data.tokens
        size = min(self.batch_size, len(tokens))
        lengths = np.sort(np.diff(tokens.offsets))
        room = int(lengths[-size:].sum())
        buffer = np.empty((room, tokens.n_features), dtype=np.float32)
        states = np.empty(room, dtype=np.int64)
        offsets = np.empty(size + 1, dtype=np.int64)
        weights = np.empty(size)
        values = np.empty(size)
        features: NDArray[Any] = tokens.features

        def visit(model: ChainModel, part: IntArray, step: float, transition_step: float) -> float:
            total = 0.0
            s = model.n_states
            for first in range(0, len(part), size):
                rows = part[first : first + size]
                b = len(rows)
                n = gather_batch(
                    features, tokens.offsets, data.states, data.weights, rows,
                    buffer, offsets, states, weights,
                )  # fmt: skip
                ends = offsets[: b + 1]
                phi = data.features(buffer[:n], ends)
                unary = (phi @ model.weights).astype(np.float64)
                unary += model.bias
                if self.boundaries:
                    unary[ends[:-1]] += model.start
                    unary[ends[1:] - 1] += model.end
                gradient = np.empty((n, s))
                pairwise = np.zeros((1, s, s))
                gradients_packed(
                    self.surrogate.kind,
                    self.surrogate.part_cost,
                    unary,
                    model.edges[None],
                    True,
                    ends,
                    states[:n],
                    weights[:b],
                    values[:b],
                    gradient,
                    pairwise,
                )
                total += float(weights[:b] @ values[:b])
                model.weights -= phi.T @ (step * gradient).astype(np.float32)
                model.bias -= transition_step * gradient.sum(axis=0)
                if self.boundaries:
                    model.start -= transition_step * gradient[ends[:-1]].sum(axis=0)
                    model.end -= transition_step * gradient[ends[1:] - 1].sum(axis=0)
                model.edges -= transition_step * pairwise[0]
            return total

        return visit
