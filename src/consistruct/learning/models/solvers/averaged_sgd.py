"""Averaged SGD for learning: mini-batches, a constant step from the data, lazy sparse averages."""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import joblib
import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import check_count, check_number
from consistruct.learning.files.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from consistruct.learning.models.solvers.base import BaseSolver, SolverResult, require
from consistruct.learning.models.solvers.design_matrix import DesignMatrix
from consistruct.learning.models.solvers.held_out_penalty import best_share
from consistruct.learning.models.solvers.lbfgs import _single_alpha
from consistruct.learning.models.solvers.score_map import ScoreMap
from consistruct.learning.models.solvers.sgd_run import SGDRun
from consistruct.protocols import FloatArray, IntArray, LabelArray
from consistruct.surrogates import BaseSurrogate

__all__ = ["AveragedSGD"]

logger = logging.getLogger(__name__)

SEARCH_EPOCHS = 8  # of the search for a penalty; the average then starts at epoch 4


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
        "auto" is c·E‖φ‖²/N. `fit` takes the c of 1, 0.1, 0.01, 0.001 that does best by the task
        loss on a quarter of (at most 4096 of) the rows after eight epochs on the others; c is 1
        for fewer than 256 rows and in `partial_fit`.
    batch_size : "auto" or int
        "auto" is 1 for the quadratic surrogate on sparse inputs, whose steps are compiled and cost
        what their rows cost, and 16 otherwise.
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
    batch_size: Any = "auto"
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
            batch_size=(
                "auto" if self.batch_size == "auto" else check_count(self.batch_size, "batch_size")
            ),
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
        fingerprint, found = "", None
        if self.checkpoint is not None:
            plain = replace(self, checkpoint=None)
            fingerprint = joblib.hash(
                (repr(plain), repr(surrogate), vars(score_map.features), inputs, labels, weight)
            )
            found = read_checkpoint(self.checkpoint, fingerprint)
        part = (inputs[training], labels[training], weight[training])
        if found is not None:
            alpha = float(found.numbers["alpha"])
        else:
            alpha = self._penalty(surrogate, score_map, *part, rng)
        run = SGDRun(replace(self, alpha=alpha), surrogate, score_map, *part, rng)
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

    def _penalty(
        self,
        surrogate: BaseSurrogate,
        score_map: ScoreMap,
        inputs: Any,
        labels: LabelArray,
        weight: FloatArray,
        rng: np.random.Generator,
    ) -> float:
        """The penalty as given, or for "auto" the best share of E‖φ‖²/N on held-out rows."""
        given = _single_alpha(self.alpha)
        if given is not None:
            return given

        def fits(used: IntArray) -> Callable[[float], FloatArray]:
            run = SGDRun(self, surrogate, score_map, inputs[used], labels[used], weight[used], rng)
            start = run.state

            def fit(share: float) -> FloatArray:
                run.state = copy.deepcopy(start)
                run.state.alpha = share * run.design.mean_square / len(used)
                for _ in range(SEARCH_EPOCHS):
                    run.epoch(rng)
                return run.weights()

            return fit

        def task_loss(theta: FloatArray, true: LabelArray) -> FloatArray:
            return surrogate.loss(surrogate.decode(theta), true)

        share = best_share(score_map, inputs, labels, weight, rng, fits, task_loss)
        return share * DesignMatrix(score_map, inputs, weight).mean_square / len(labels)

    def _split(self, n: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        size = max(1, round(self.validation_fraction * n))
        if size >= n:
            raise ValueError(
                f"early_stopping needs rows to train on and rows to hold out, got {n} row(s); "
                f"turn it off"
            )
        order = rng.permutation(n)
        return np.sort(order[size:]), np.sort(order[:size])
