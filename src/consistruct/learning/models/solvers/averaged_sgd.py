"""Averaged SGD for learning: mini-batches, a constant step from the data, lazy sparse averages."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import joblib
import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import check_count, check_number, single_alpha
from consistruct.learning.files.checkpoint import read_checkpoint
from consistruct.learning.models.features.feature_maps import ScoreMap
from consistruct.learning.models.solvers.base import BaseSolver, SolverResult
from consistruct.learning.models.solvers.design_matrix import DesignMatrix
from consistruct.learning.models.solvers.held_out_penalty import best_share
from consistruct.learning.models.solvers.objectives import objective_of
from consistruct.learning.models.solvers.sgd_loop import Arrays, run_epochs
from consistruct.learning.models.solvers.sgd_run import SGDRun
from consistruct.protocols import FloatArray, IntArray, LabelArray

__all__ = ["AveragedSGD"]

SEARCH_EPOCHS = 8  # of the search for a penalty; the average then starts at epoch 4


@dataclass(frozen=True, eq=False, repr=False)
class AveragedSGD(BaseSolver):
    """Mini-batch SGD with a constant step; the result is the average since epoch 1, 2, 4, 8, …

    It minimizes (1/N) Σ w_i Φ(Wᵀφ_i, y_i) + (α/2)‖W‖² for a surrogate Φ, and for a statistic τ the
    least squares ½‖θ − τ‖² in place of Φ (what the closed form minimizes). The step is
    1/(2c(R²/b + λ_max)) with R² = E‖φ‖⁴/E‖φ‖², λ_max that of E φφᵀ, b the batch size and c the
    curvature in θ; it falls by √2 at every restart from epoch 4 on.

    The penalty is the model's: ``alpha="auto"`` is c·E‖φ‖²/N, with c of 1, 0.1, 0.01, 0.001 the one
    that does best by the task loss on a quarter of (at most 4096 of) the rows after eight epochs on
    the others; c is 1 for fewer than 256 rows and in `partial_fit`.

    Parameters
    ----------
    batch_size : "auto" or int
        "auto" is 1 for least squares on sparse inputs, whose steps are compiled and cost
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
        objective: Any,
        score_map: ScoreMap,
        inputs: Any,
        true: ArrayLike,
        *,
        alpha: Any = "auto",
        sample_weight: FloatArray | None = None,
        rng: np.random.Generator,
    ) -> SolverResult:
        """Averaged weights and the risk of every epoch."""
        given = single_alpha(alpha)
        whole = objective_of(objective, true, fit_intercept=score_map.fit_intercept)
        weight = np.ones(len(whole)) if sample_weight is None else sample_weight
        held_out: Any = None
        training = np.arange(len(whole))
        if self.early_stopping:
            training, held_out = self._split(len(whole), rng)
        fingerprint, found = "", None
        if self.checkpoint is not None:
            plain = replace(self, checkpoint=None)
            identity = (repr(plain), repr(objective), repr(alpha), vars(score_map.features))
            fingerprint = joblib.hash((*identity, inputs, whole.codes, weight))
            found = read_checkpoint(self.checkpoint, fingerprint)
        part = inputs[training], whole.codes[training], weight[training]
        if found is not None:
            chosen = float(found.numbers["state"]["alpha"])
        elif given is not None:
            chosen = given
        else:
            chosen = self._penalty(objective, score_map, *part, rng)
        problem = SGDRun(self, objective, score_map, *part, rng, alpha=chosen)
        validate = None
        if held_out is not None:
            validation = whole.take(held_out)

            def validate(averaged: Arrays) -> float:
                theta = score_map.apply(averaged["weights"], inputs[held_out])
                return float(np.average(validation.task_losses(theta), weights=weight[held_out]))

        done = run_epochs(
            problem,
            max_epochs=self.max_epochs,
            patience=self.patience,
            tol=self.tol,
            validate=validate,
            checkpoint=self.checkpoint,
            fingerprint=fingerprint,
            rng=rng,
        )
        return SolverResult(
            done.weights["weights"], chosen, done.n_epochs, {"risk": np.array(done.risks)}
        )

    def _penalty(
        self,
        objective: Any,
        score_map: ScoreMap,
        inputs: Any,
        codes: LabelArray,
        weight: FloatArray,
        rng: np.random.Generator,
    ) -> float:
        """The best share of E‖φ‖²/N on held-out rows, times E‖φ‖²/N."""
        whole = objective_of(objective, codes, fit_intercept=score_map.fit_intercept)

        def fits(used: IntArray) -> Callable[[float], FloatArray]:
            part = inputs[used], codes[used], weight[used]
            run = SGDRun(self, objective, score_map, *part, rng)
            start = run.state

            def fit(share: float) -> FloatArray:
                run.state = copy.deepcopy(start)
                run.state.alpha = share * run.design.mean_square / len(used)
                for _ in range(SEARCH_EPOCHS):
                    run.epoch(rng)
                return run.weights()

            return fit

        def task_losses(theta: FloatArray, rows: IntArray) -> FloatArray:
            return whole.take(rows).task_losses(theta)

        share = best_share(score_map, inputs, weight, rng, fits, task_losses)
        return share * DesignMatrix(score_map, inputs, weight).mean_square / len(codes)

    def _split(self, n: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        size = max(1, round(self.validation_fraction * n))
        if size >= n:
            raise ValueError(
                f"early_stopping needs rows to train on and rows to hold out, got {n} row(s); "
                f"turn it off"
            )
        order = rng.permutation(n)
        return np.sort(order[size:]), np.sort(order[:size])
