"""One model on the way from candidate to member of a stack, and the rows it is validated on."""

from __future__ import annotations

import contextlib
import logging
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from consistruct._clock import Deadline, duration
from consistruct.decisions.recalibration import Recalibration, Unchanged, recalibrate_probabilities
from consistruct.decisions.statistics import Statistic
from consistruct.exceptions import CapabilityError
from consistruct.learning.encoding.kinds import Examples, take_codes
from consistruct.learning.models.base import OutOfFold, TargetModel
from consistruct.learning.selection.cross_fitting import (
    Fold,
    few_threads,
    fit_fold,
    joined,
    shuffled_folds,
)
from consistruct.protocols import FloatArray, IntArray

__all__ = [
    "REFIT_ROWS",
    "Sample",
    "Trial",
    "compared_rows",
    "estimate_out_of_fold",
    "fit_and_hold_out",
    "fit_given",
    "fit_model",
    "one_split",
    "own_recalibration",
    "part_fit",
    "recalibrated",
    "too_late",
    "translate",
]

logger = logging.getLogger(__name__)

COMPARED_ROWS, COMPARED_SHARE = 10_000, 1 / 15  # that models are fitted on to be compared
VALIDATION_ROWS, FEWEST_VALIDATION = 20_000, 2000  # validation rows at most, and at least
VALIDATION_ENTRIES = 2_000_000  # of their estimates at most, which every model keeps in memory
# Validation rows where a tenth of all is less, up to a fifth: fewer choose worse
# (docs/design/0011).
STEADY_ROWS = 4000


# up to here what was compared is fitted again on all rows: fits without the validation rows had a
# log loss 0.3 to 1 % higher on five tables of 9,000 to 17,000 rows, and 18 % on one
REFIT_ROWS = 50_000
FEWEST_PILOT = 30  # rows of a fit that is only timed


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows on which models are compared."""

    examples: Examples
    whole: bool  # whether these are all rows
    exact: bool  # whether exact leave-one-out may stand for folds


@dataclass(eq=False)
class Trial:
    """One model on the way from candidate to member."""

    name: str
    model: TargetModel | None
    reason: str = ""
    left: OutOfFold | None = None
    statistic: Statistic = None  # type: ignore[assignment]
    fitted: TargetModel | None = None  # on all rows of the sample
    recalibration: Recalibration = Unchanged()  # noqa: RUF009 - an immutable value
    weight: float = 0.0
    criterion: float | None = None
    task_loss: float | None = None
    seconds: float = 0.0
    rounds: int = 0  # of boosting
    ahead: float = 0.0  # seconds of the fits that follow if it is used, where time is limited

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


def one_split(examples: Examples, width: int, rng: np.random.Generator) -> tuple[Sample, Fold]:
    """Rows to fit on and others to validate on, of many rows.

    Weights, recalibrations and with them expected losses are
    learned on fits to all the others: learned on fits to 10,000 rows and used with those to all,
    which are surer, expected losses were up to twice those that occurred.
    """
    n = len(examples)
    most = max(FEWEST_VALIDATION, min(VALIDATION_ROWS, VALIDATION_ENTRIES // width))
    n_validation = min(max(n // 10, STEADY_ROWS), n // 5, most)
    fit, left = next(shuffled_folds(examples, round(n / n_validation), rng))
    return Sample(examples, whole=False, exact=False), (fit, left)


def compared_rows(fit: IntArray, rng: np.random.Generator) -> IntArray:
    """The rows, of those that may be fitted on, that models are fitted on to be compared."""
    some = min(len(fit), max(COMPARED_ROWS, int(len(fit) * COMPARED_SHARE)))
    return fit if some == len(fit) else np.sort(rng.choice(fit, some, replace=False))


def fit_and_hold_out(
    trial: Trial, sample: Sample, split: Fold, seed: int, requested: Statistic
) -> None:
    """One fit, and its estimates of the rows that are held out."""
    part, left = sample.examples.take(split[0]), sample.examples.take(split[1])
    assert trial.model is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # close enough
        trial.fitted = fit_model(trial.model, part, requested, np.random.default_rng(seed))
    trial.statistic = trial.fitted.statistic_
    trial.left = OutOfFold(split[1], trial.fitted.expected(left.inputs))
    trial.rounds = int(getattr(trial.fitted, "n_rounds_", 0))


def part_fit(trial: Trial, sample: Sample, share: float, requested: Statistic) -> None:
    """A fit on a share of the rows, and its estimates of them: how long does that take?"""
    n = len(sample.examples)
    rng = np.random.default_rng(0)
    rows = np.sort(rng.choice(n, min(n, max(FEWEST_PILOT, round(share * n))), replace=False))
    part = sample.examples.take(rows)
    assert trial.model is not None
    with warnings.catch_warnings(), contextlib.suppress(ValueError):  # too few rows for it
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit_model(trial.model, part, requested, rng).expected(part.inputs)


def too_late(
    trial: Trial,
    sample: Sample,
    splits: list[Fold],
    requested: Statistic,
    deadline: Deadline,
    ahead: float,
) -> str:
    """Why the trial would end too late, with the fits that are used; empty where it would not.

    `ahead` are the seconds that members found before still take. The trial's own are set.
    """
    n, model = len(sample.examples), trial.model
    assert model is not None
    compared = [len(fit) / n for fit, _ in splits]
    if not sample.whole:  # then all rows but those that validate, and all
        others = 1.0 - len(splits[0][1]) / n
        again = [others] * (others > compared[0]) + [1.0] * (n <= REFIT_ROWS)
    elif sample.exact and type(model).out_of_fold is not TargetModel.out_of_fold:
        compared, again = [1.0], []
    else:
        again = [1.0]
    if deadline.passed:
        return "was reached"
    deadline = deadline.before(ahead)
    time = duration(lambda share: part_fit(trial, sample, share, requested), deadline)
    if time is None:
        return "would be exceeded by fits on parts of the rows"
    trial.ahead = sum(map(time.of, again))
    expected = sum(map(time.of, compared)) + trial.ahead
    if deadline.allows(expected):
        return ""
    trial.ahead = 0.0
    return f"would be exceeded: it takes about {expected:.2g} s more"


def estimate_out_of_fold(
    trial: Trial,
    sample: Sample,
    splits: list[Fold],
    statistic: Statistic,
    seed: int,
    n_jobs: int | None,
    *,
    alone: bool,
) -> None:
    """Out-of-fold estimates: the model's own where they are exact, else one fit per fold.

    They must be of all rows to be compared with others; one that is `alone` is compared with none.
    """
    examples, model = sample.examples, trial.model
    assert model is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # close enough to be compared
        if sample.exact and type(model).out_of_fold is not TargetModel.out_of_fold:
            trial.fitted = fit_model(model, examples, statistic, np.random.default_rng(seed))
            with contextlib.suppress(CapabilityError):
                left = trial.fitted.out_of_fold()
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
            examples.codes,
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
    """What a model's exact out-of-fold estimates say about its probabilities, where it has some."""
    own = fitted.statistic_
    if not (fitted.shrinks and own.of_classes):
        return otherwise
    try:
        left = fitted.out_of_fold()
    except CapabilityError:
        return otherwise
    found, _ = recalibrate_probabilities(
        own,
        own.project(left.expected),
        take_codes(examples.codes, left.rows),
        examples.weight[left.rows],
    )
    return found


def fit_given(
    trials: list[Trial],
    examples: Examples,
    statistic: Statistic,
    rng: np.random.Generator,
) -> None:
    """Fit the models; one that cannot take these rows has no weight, and states why."""
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
