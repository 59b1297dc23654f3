"""One model on the way from candidate to member of a stack, and the rows it is judged on."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from consistruct.learning.encoding.kinds import Examples, take_truths
from consistruct.learning.models.base import LeftOut, TargetModel
from consistruct.learning.recalibration import Recalibration, Unchanged, recalibrate
from consistruct.learning.selection.cross_fitting import few_threads
from consistruct.learning.statistics import ClassProbabilities, Statistic, TargetValues
from consistruct.protocols import FloatArray, IntArray

__all__ = ["Sample", "Trial", "fit_given", "fit_model", "leaves_out_exactly", "translate"]

logger = logging.getLogger(__name__)


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


def leaves_out_exactly(model: TargetModel) -> bool:
    """Whether the model has left-out estimates without folds, as ridge regression has."""
    return type(model).left_out is not TargetModel.left_out


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
    if isinstance(common, TargetValues) and common.constant_offset is None:
        return np.column_stack([target, own.offset(expected)])
    return target


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
        own = trial.fitted.statistic_
        if trial.model.shrinks and isinstance(own, ClassProbabilities):
            left = trial.fitted.left_out()
            truths = take_truths(examples.truths, left.rows)
            trial.recalibration, _ = recalibrate(
                own,
                own.project(left.expected),
                truths,
                examples.weight[left.rows],
                np.zeros(own.width),
            )
    total = sum(trial.weight for trial in trials)
    if total == 0.0:
        raise ValueError(f"no model could be fitted: {trials[0].reason}")
    for trial in trials:
        trial.weight /= total
