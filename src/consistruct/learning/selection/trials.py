"""One model on the way from candidate to member of a stack, and the rows it is judged on."""

from __future__ import annotations

import contextlib
import logging
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from consistruct.exceptions import CapabilityError
from consistruct.learning.encoding.kinds import Examples, take_truths
from consistruct.learning.models.base import LeftOut, TargetModel
from consistruct.learning.recalibration import Recalibration, Unchanged, recalibrate_probabilities
from consistruct.learning.selection.cross_fitting import (
    Fold,
    few_threads,
    fit_fold,
    folds,
    joined,
)
from consistruct.learning.statistics import Statistic
from consistruct.protocols import FloatArray, IntArray

__all__ = [
    "Sample",
    "Trial",
    "estimate_left_out",
    "fit_given",
    "fit_model",
    "one_split",
    "own_recalibration",
    "recalibrated",
    "translate",
]

logger = logging.getLogger(__name__)

FITTED = 4000, 10_000  # rows that models are fitted on to be compared: all that JUDGING leave,
JUDGING = 4000  # within these bounds and at most two thirds,
FITTED_SHARE = 1 / 15  # or this share of very many
JUDGED_ROWS, FEWEST_JUDGED = 20_000, 2000  # estimates cost much less than fits,
JUDGED_ENTRIES = 2_000_000  # and they should fit into memory for every model


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows on which models are compared."""

    rows: IntArray  # numbers among all training rows
    examples: Examples
    whole: bool  # whether these are all rows
    exact: bool  # whether exact leave-one-out may stand for folds


@dataclass(eq=False)
class Trial:
    """One model on the way from candidate to member."""

    name: str
    model: TargetModel | None
    reason: str = ""
    left: LeftOut | None = None
    statistic: Statistic = None  # type: ignore[assignment]
    fitted: TargetModel | None = None  # on all rows of the sample
    recalibration: Recalibration = Unchanged()  # noqa: RUF009 - an immutable value
    weight: float = 0.0
    criterion: float | None = None
    task_loss: float | None = None
    seconds: float = 0.0
    rounds: int = 0  # of boosting

    def entry(self) -> dict[str, Any]:
        """What `portfolio_` and reports show."""
        happened = self.reason or ("used" if self.weight > 0 else "not used")
        return {
            "name": self.name,
            "status": happened,
            "weight": self.weight,
            "criterion": self.criterion,
            "task_loss": self.task_loss,
            "seconds": self.seconds,
        }


def one_split(
    examples: Examples, width: int, rng: np.random.Generator
) -> tuple[Sample, list[Fold]]:
    """Rows to fit on and others to judge by, of many rows.

    Weights and recalibrations that are found here go with fits on all rows, so the fits here are
    of about that size as long as time and enough rows to judge by allow: with 4,000 rows costs were
    1.6 % higher (five tables of 10,500 to 28,000 rows). Of very many rows, more judge than are
    fitted on, since estimates are cheaper than fits.
    """
    n = len(examples)
    fitted = max(FITTED[0], min(n - JUDGING, FITTED[1]), int(n * FITTED_SHARE))
    fitted = min(fitted, 2 * n // 3)
    most = max(FEWEST_JUDGED, min(JUDGED_ROWS, JUDGED_ENTRIES // width))
    judged = min(n - fitted, most)
    rows = np.arange(n)
    if n > fitted + judged:
        rows = np.sort(rng.choice(n, fitted + judged, replace=False))
    part = examples.take(rows)
    smaller, larger = sorted((fitted, judged))
    rest, fold = folds(part, round(larger / smaller) + 1, rng)[0]
    split = (fold, rest) if judged > fitted else (rest, fold)
    return Sample(rows, part, whole=False, exact=False), [split]


def estimate_left_out(
    trial: Trial,
    sample: Sample,
    splits: list[Fold],
    statistic: Statistic,
    seed: int,
    n_jobs: int | None,
    *,
    alone: bool,
) -> None:
    """Left-out estimates: the model's own where they are exact, else one fit per fold.

    They must be of all rows to be compared with others; one that is `alone` is compared with none.
    """
    examples, model = sample.examples, trial.model
    assert model is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # close enough to be compared
        if sample.exact and type(model).left_out is not TargetModel.left_out:
            trial.fitted = fit_model(model, examples, statistic, np.random.default_rng(seed))
            with contextlib.suppress(CapabilityError):
                left = trial.fitted.left_out()
                if alone or len(left.rows) == len(examples):
                    trial.left, trial.statistic = left, trial.fitted.statistic_
                    return
        seeds = np.random.default_rng(seed).integers(2**63, size=len(splits))
        found = fit_fold(model, examples, statistic, splits, seeds, n_jobs)
        trial.left = joined([left for _, left in splits], [part[0] for part in found])
        trial.statistic = found[0][1]
        trial.rounds = max(part[2] for part in found)


def fit_model(
    model: TargetModel, examples: Examples, statistic: Statistic, rng: np.random.Generator
) -> TargetModel:
    """A fitted copy of the model."""
    with few_threads(model, len(examples)):
        return clone(model).fit(
            examples.inputs,
            examples.truths,
            statistic,
            sample_weight=examples.weight,
            groups=examples.groups,
            rng=rng,
        )


def translate(own: Statistic, common: Statistic, expected: FloatArray) -> FloatArray:
    """E[τ] of one statistic in the coordinates of another, by way of ū and ō."""
    if own == common:
        return expected
    target = own.target(own.project(expected))
    if common.open_offset:
        return np.column_stack([target, own.offset(expected)])
    return target


def recalibrated(statistic: Statistic, change: Recalibration, expected: FloatArray) -> FloatArray:
    """Estimates in the hull of the targets: a power of probabilities clips them by itself."""
    if isinstance(change, Unchanged):
        return statistic.project(expected)
    return np.asarray(change.for_reports(expected))


def own_recalibration(
    fitted: TargetModel, examples: Examples, otherwise: Recalibration
) -> Recalibration:
    """What a model's exact left-out estimates say about its probabilities, where it has some."""
    own = fitted.statistic_
    if not (fitted.shrinks and own.of_classes):
        return otherwise
    try:
        left = fitted.left_out()
    except CapabilityError:
        return otherwise
    found, _ = recalibrate_probabilities(
        own,
        own.project(left.expected),
        take_truths(examples.truths, left.rows),
        examples.weight[left.rows],
    )
    return found


def fit_given(
    trials: list[Trial],
    examples: Examples,
    statistic: Statistic,
    rng: np.random.Generator,
) -> None:
    """Fit the models; one that cannot take these rows has no weight, and says why."""
    for trial in trials:
        assert trial.model is not None
        try:
            trial.fitted = fit_model(trial.model, examples, statistic, rng)
        except ValueError as error:
            trial.reason, trial.weight = f"failed: {' '.join(str(error).split())[:200]}", 0.0
            logger.warning("%s left out: %s", trial.name, trial.reason)
            continue
        trial.recalibration = own_recalibration(trial.fitted, examples, trial.recalibration)
    total = sum(trial.weight for trial in trials)
    if total == 0.0:
        raise ValueError(f"no model could be fitted: {trials[0].reason}")
    for trial in trials:
        trial.weight /= total
