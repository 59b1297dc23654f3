"""After any model: what left-out estimates say about its own estimates.

Two corrections, both learnt on rows that the model did not see, both of them the identity where the
model is right:

* **Probabilities** of classes are sharpened or flattened: p → softmax(t·log(p + s)), with t and s
  of least log loss, where that gains something: ridge estimates are too flat, boosted ones too
  sure, averages of several models mostly right.
* **Targets** get a *contrast*: decisions use mean + c(estimate − mean). A penalty pulls estimates
  towards their mean, rightly for squared error; where every label is rare, decisions then say "no
  label" too often. c is the one of a short list with the least task loss on left-out rows.
  Consistency is not lost: c = 1 is on the list, and the best of finitely many rules by task loss is
  no worse in the limit. What is *reported* (expected losses) has no contrast.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from consistruct._members import ArrayField, Member, frozen_array
from consistruct.learning.models.ridge.selection import left_out_share
from consistruct.learning.statistics import Statistic, settled
from consistruct.losses.base import dense_target
from consistruct.protocols import FloatArray

__all__ = ["CONTRASTS", "Contrast", "Recalibration", "Temperature", "Unchanged", "recalibrate"]

logger = logging.getLogger(__name__)

CONTRASTS = (1.0, 1.25, 1.5, 2.0, 3.0, 5.0)
TEMPERATURES = tuple(float(t) for t in 2.0 ** np.linspace(-3.0, 3.0, 25))  # holds 1 exactly
FLOORS = (1e-4, 1e-3, 1e-2, 1e-1)  # times 1/classes
FEWEST_ROWS = 20  # fewer left-out rows say nothing
LEAST_GAIN = 0.02  # of the log loss: smaller gains are not worth a change
LOSS_SLACK = 1e-6  # relative: ties go to the smaller contrast
CHUNK_BYTES = 32 * 2**20


class Recalibration(Member, ABC):
    """E[τ] as decisions and reports use it."""

    @abstractmethod
    def for_decisions(self, expected: Any) -> Any:
        """Estimates that are decoded."""

    @abstractmethod
    def for_reports(self, expected: Any) -> Any:
        """Estimates that expected losses and probabilities are told from."""


@dataclass(frozen=True, eq=False, repr=False)
class Unchanged(Recalibration):
    """Nothing is known of left-out rows: estimates stay as they are."""

    def for_decisions(self, expected: Any) -> Any:
        return expected

    def for_reports(self, expected: Any) -> Any:
        return expected


@dataclass(frozen=True, eq=False, repr=False)
class Contrast(Recalibration):
    """Decisions by mean + contrast·(estimate − mean); reports by the estimates themselves.

    Parameters
    ----------
    contrast : float
    mean : (width,) array
    """

    contrast: float
    mean: ArrayField

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", frozen_array(self.mean))

    def for_decisions(self, expected: FloatArray) -> FloatArray:
        if self.contrast == 1.0:
            return expected
        return np.asarray(self.mean + self.contrast * (expected - self.mean))

    def for_reports(self, expected: FloatArray) -> FloatArray:
        return expected


@dataclass(frozen=True, eq=False, repr=False)
class Temperature(Recalibration):
    """Probabilities sharpened (power > 1) or flattened, kept off zero by `floor`."""

    power: float
    floor: float

    def for_decisions(self, expected: FloatArray) -> FloatArray:
        probabilities = np.maximum(expected, 0.0) + self.floor
        if self.power == 1.0:
            return np.asarray(probabilities / probabilities.sum(axis=1, keepdims=True))
        logits = self.power * np.log(probabilities)
        logits -= logits.max(axis=1, keepdims=True)
        np.exp(logits, out=logits)
        logits /= logits.sum(axis=1, keepdims=True)
        return logits

    def for_reports(self, expected: FloatArray) -> FloatArray:
        return self.for_decisions(expected)


def recalibrate(
    statistic: Statistic,
    expected: FloatArray,  # (m, width): of left-out rows
    truths: Any,  # (m, …)
    weight: FloatArray,  # (m,)
    mean: FloatArray,  # (width,): of τ over all training rows
) -> tuple[Recalibration, dict[str, FloatArray]]:
    """The correction that left-out rows ask for, and what was compared."""
    if len(weight) < FEWEST_ROWS or not statistic.loss.decodes_cheaply:
        return Unchanged(), {}
    if statistic.of_classes:
        return _temperature(statistic, expected, truths, weight)
    return _contrast(statistic, expected, truths, weight, mean)


def _temperature(
    statistic: Statistic, expected: FloatArray, truths: Any, weight: FloatArray
) -> tuple[Recalibration, dict[str, FloatArray]]:
    columns = statistic.loss.truths.index(truths)  # of the class of each row
    projected = np.ascontiguousarray(statistic.project(expected).T)  # sums over few classes are
    everyone = np.arange(len(columns))  # several times faster this way round
    share = weight / weight.sum()
    best, found = np.inf, Temperature(1.0, FLOORS[0] / statistic.width)
    losses = np.empty((len(FLOORS), len(TEMPERATURES)))
    for i, floor in enumerate(FLOORS):
        logs = np.log(projected + floor / statistic.width)
        for j, power in enumerate(TEMPERATURES):
            scaled = power * logs
            top = scaled.max(axis=0)
            normaliser = top + np.log(np.exp(scaled - top).sum(axis=0))
            losses[i, j] = share @ (normaliser - scaled[columns, everyone])
            if losses[i, j] < best - LOSS_SLACK * abs(best if np.isfinite(best) else 1.0):
                best, found = losses[i, j], Temperature(power, floor / statistic.width)
    compared = {
        "powers": np.array(TEMPERATURES),
        "floors": np.array(FLOORS) / statistic.width,
        "log_loss": losses,
    }
    plain = losses[:, TEMPERATURES.index(1.0)].min()
    if best > (1.0 - LEAST_GAIN) * plain:
        return Unchanged(), compared
    logger.info("probabilities: power %.3g, held-out log loss %.4f", found.power, best)
    return found, compared


def _contrast(
    statistic: Statistic, expected: FloatArray, truths: Any, weight: FloatArray, mean: FloatArray
) -> tuple[Recalibration, dict[str, FloatArray]]:
    task, unweighted = np.zeros((2, len(CONTRASTS)))
    size = max(1, CHUNK_BYTES // (8 * max(1, statistic.width)))
    values = statistic.values(truths)
    total, share = float(weight.sum()), left_out_share(weight)
    for start in range(0, len(weight), size):
        part = slice(start, start + size)
        # the mean without the row itself: with it, a row would vouch for its own label
        own = dense_target(values[part])
        left = (weight * share)[part, None]
        rest = np.maximum(total - left, np.finfo(np.float64).tiny)
        centre = mean + left / rest * (mean - own)
        for position, contrast in enumerate(CONTRASTS):
            sharp = settled(centre + contrast * (expected[part] - centre), own)
            losses = statistic.loss(statistic.decode(sharp), truths[part])
            task[position] += weight[part] @ losses
            unweighted[position] += losses.sum()
    task /= total
    # relative to all rows alike: those with next to no weight decide nothing
    slack = LOSS_SLACK * unweighted.max() / len(weight)
    best = int(np.flatnonzero(task <= task.min() + slack)[0])
    logger.info("contrast %g, held-out task loss %.4f", CONTRASTS[best], task[best])
    return Contrast(CONTRASTS[best], mean), {
        "contrasts": np.array(CONTRASTS),
        "contrast_loss": task,
    }
