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
from consistruct.learning.models.chain.chain_weights import ChainWeights
from consistruct.learning.models.chain.edge_steps import per_edge_steps
from consistruct.learning.models.chain.training_set import TrainingSet
from consistruct.learning.models.solvers.sgd_loop import Arrays
from consistruct.protocols import IntArray
from consistruct.surrogates._chain_kernels import gradients_packed
from consistruct.surrogates.chains import ChainSurrogate

__all__ = ["ChainSGD", "Steps", "TrainingState"]

logger = logging.getLogger(__name__)

AVERAGING_POWER = 3  # weight of snapshot k grows like k³
MAX_HALVINGS = 30
SNAPSHOTS = 10  # per epoch, that enter the average


@dataclass
class TrainingState:
    """Everything that the next epoch depends on, besides the data."""

    model: ChainWeights
    average: ChainWeights
    alpha: float = 0.0
    epoch: int = 0
    n_snapshots: int = 0
    step_factor: float = 1.0
    history: list[float] = field(default_factory=list)  # mean surrogate per token, by epoch

    @classmethod
    def zeros(
        cls,
        n_features: int,
        n_states: int,
        *,
        per_edge: bool = False,
        mask: ChainWeights | None = None,
    ) -> TrainingState:
        """Scores nothing, and forbids what `mask` forbids."""
        model = ChainWeights.zeros(n_features, n_states, per_edge=per_edge)
        if mask is not None:
            model = model.forbid(mask.edges, mask.start, mask.end)
        return cls(model, model.copy())

    def copy(self) -> TrainingState:
        """A state whose next epoch leaves this one as it is."""
        return replace(
            self,
            model=self.model.copy(),
            average=self.average.copy(),
            history=list(self.history),
        )


@dataclass(frozen=True)
class Steps:
    """How long steps are and how many sequences share one.

    Parameters
    ----------
    size : float
        c in the step c / mean‖x_t‖² of the weights.
    transitions : float
        Step of transitions, start and end scores and biases.
    batch_size : int
        Sequences per step.
    boundaries : bool
        Whether start and end scores are learned.
    """

    size: float = 1.0
    transitions: float = 0.1
    batch_size: int = 8
    boundaries: bool = True


class ChainSGD:
    """Sequences, and a state that epochs over them change (a `StochasticProblem`).

    It minimizes (1/N) Σ_i w_i Φ_i + (α/2)‖(W, V)‖² with α = ``state.alpha`` and N = Σ w_i.
    """

    def __init__(
        self, surrogate: ChainSurrogate, data: TrainingSet, state: TrainingState, steps: Steps
    ) -> None:
        self.surrogate = surrogate
        self.data = data
        self.state = state
        self.steps = steps

    def averaged(self) -> Arrays:
        return self.state.average.copy().named()

    def arrays(self) -> Arrays:
        return self.state.model.named("model.") | self.state.average.named("average.")

    def numbers(self) -> dict[str, Any]:
        names = ("alpha", "epoch", "n_snapshots", "step_factor", "history")
        return {name: getattr(self.state, name) for name in names}

    def restore(self, arrays: Arrays, numbers: dict[str, Any]) -> None:
        self.state = TrainingState(
            ChainWeights.from_named(arrays, "model."),
            ChainWeights.from_named(arrays, "average."),
            **numbers,
        )

    def epoch(self, rng: np.random.Generator) -> float:
        """One pass in random order; halves the step and starts the pass again if it explodes."""
        state, data = self.state, self.data
        order = rng.permutation(len(data.tokens))
        limit = 2.0 * self._value_at_zero() + 1e-9  # rounding, where there is one tag
        square_norm = data.mean_square_norm()
        for _ in range(MAX_HALVINGS):
            trial = state.copy()
            with np.errstate(over="ignore", invalid="ignore"):  # an explosion is dealt with below
                value = self._pass(trial, order, square_norm, limit)
            if value <= limit:
                trial.epoch += 1
                trial.history.append(value)
                self.state = trial
                return value
            state.step_factor /= 2
            logger.warning(
                "the surrogate exploded in epoch %d (%.3g per token); step halved to %.3g",
                state.epoch + 1,
                value,
                self.steps.size * state.step_factor,
            )
        raise ValueError(
            f"training diverged at every step down to {self.steps.size * state.step_factor:.1e}; "
            f"scale the features (for example with StandardScaler), or use solver='lbfgs'"
        )

    def _value_at_zero(self) -> float:
        """Mean surrogate per token of the empty model on some sequences."""
        state, data = self.state, self.data
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
        self, state: TrainingState, order: IntArray, square_norm: float, limit: float
    ) -> float:
        """Visit the sequences in `order`; mean surrogate per token (weighted), before each step."""
        data, steps = self.data, self.steps
        factor = state.step_factor / np.sqrt(1.0 + state.epoch)
        step = steps.size * factor / max(square_norm, 1e-12)
        transition_step = steps.transitions * factor
        n_batches = -(-len(order) // steps.batch_size)
        chunk = max(1, -(-n_batches // SNAPSHOTS)) * steps.batch_size
        lengths = np.diff(data.tokens.offsets)
        if not self.surrogate.flattens:
            # Curvature one at every token: the tokens of a batch add up, and weights, bias and
            # transitions (each with both ends) move the same score.
            step /= 4.0 * steps.batch_size * float(lengths.mean())
            transition_step = step * square_norm
        visit = self._visit(state.model.per_edge)
        total, mass = 0.0, 0.0
        for first in range(0, len(order), chunk):
            part = order[first : first + chunk]
            total += visit(state.model, part, step, transition_step)
            mass += float(data.weights[part] @ lengths[part])
            if state.alpha:  # against the sum over the sequences of this part
                shrink = step * state.alpha * float(data.weights[part].sum())
                state.model.weights *= 1.0 / (1.0 + shrink)
                state.model.edge_weights *= 1.0 / (1.0 + shrink)
            # a chunk is too short to judge by its mean alone: only an explosion ends it early
            if not total <= 20.0 * limit * max(mass, 1.0):
                return np.inf if np.isnan(total) else total / max(mass, 1e-300)
            state.n_snapshots += 1
            k, power = state.n_snapshots, AVERAGING_POWER
            state.average.move_toward(state.model, (power + 1) / (k + power))
        return total / max(mass, 1e-300)

    def _visit(self, per_edge: bool) -> Callable[[ChainWeights, IntArray, float, float], float]:
        if per_edge:
            return self._per_edge_visit()
        return self._sparse_visit() if self.data.tokens.is_sparse else self._dense_visit()

    def _per_edge_visit(self) -> Callable[[ChainWeights, IntArray, float, float], float]:
        def visit(model: ChainWeights, part: IntArray, step: float, edge_step: float) -> float:
            return per_edge_steps(
                self.surrogate,
                model,
                self.data,
                part,
                step=step,
                transition_step=edge_step,
                batch_size=self.steps.batch_size,
                boundaries=self.steps.boundaries,
            )

        return visit

    def _sparse_visit(self) -> Callable[[ChainWeights, IntArray, float, float], float]:
        data = self.data
        matrix = data.tokens.features
        values = matrix.data.astype(np.float32, copy=False)
        if (values == 1.0).all():
            values = np.zeros(0, dtype=np.float32)

        def visit(model: ChainWeights, part: IntArray, step: float, edge_step: float) -> float:
            return sparse_steps(
                self.surrogate.kind,
                self.surrogate.part_cost,
                step,
                edge_step,
                self.steps.batch_size,
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
                self.steps.boundaries,
            )

        return visit

    def _dense_visit(self) -> Callable[[ChainWeights, IntArray, float, float], float]:
        data, tokens = self.data, self.data.tokens
        size = min(self.steps.batch_size, len(tokens))
        lengths = np.sort(np.diff(tokens.offsets))
        room = int(lengths[-size:].sum())
        buffer = np.empty((room, tokens.n_features), dtype=np.float32)
        states = np.empty(room, dtype=np.int64)
        offsets = np.empty(size + 1, dtype=np.int64)
        weights = np.empty(size)
        values = np.empty(size)
        features: NDArray[Any] = tokens.features

        def visit(model: ChainWeights, part: IntArray, step: float, edge_step: float) -> float:
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
                if self.steps.boundaries:
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
                model.bias -= edge_step * gradient.sum(axis=0)
                if self.steps.boundaries:
                    model.start -= edge_step * gradient[ends[:-1]].sum(axis=0)
                    model.end -= edge_step * gradient[ends[1:] - 1].sum(axis=0)
                model.edges -= edge_step * pairwise[0]
            return total

        return visit
