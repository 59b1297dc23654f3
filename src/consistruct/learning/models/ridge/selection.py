"""Which penalty: compared on rows that are left out in turn."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from consistruct._members import frozen_array
from consistruct.learning.models.ridge.gcv_path import generalised_cross_validation, least_penalty
from consistruct.learning.models.ridge.ridge_path import (
    Choice,
    JudgedRows,
    PathScores,
    Spectrum,
    evaluate_path,
    relative_grid,
    score_path,
)
from consistruct.protocols import FloatArray

__all__ = ["SELECTION_ROWS", "KeptPredictions", "Selection"]

logger = logging.getLogger(__name__)

SELECTION_ROWS = 2048  # leave-one-out risks are averaged over at most so many rows


@dataclass(frozen=True)
class Selection:
    """How the closed form chooses.

    Attributes
    ----------
    alpha : float, (p,) array, or None for a grid
    criterion : "task_loss", "surrogate" or "gcv"
    """

    alpha: float | FloatArray | None
    criterion: str

    def rows(self, n: int, rng: np.random.Generator, limit: int = SELECTION_ROWS) -> Any:
        """Sorted row numbers for the leave-one-out risks; None if there is nothing to compare."""
        one_candidate = isinstance(self.alpha, float)
        if one_candidate or self.criterion == "gcv":
            return None
        if n <= limit:
            return np.arange(n)
        return np.sort(rng.choice(n, size=limit, replace=False))

    def penalty(
        self,
        spectrum: Spectrum,
        rows: FloatArray,  # (n, p): z_i of the examples left out; none for "gcv"
        left: JudgedRows,
        target_squares: float,
        precision: float,
    ) -> Choice:
        """The penalty from a decomposed problem."""
        alphas = self.alpha
        if isinstance(alphas, float):
            return Choice(alphas, {})
        if alphas is None:
            alphas = relative_grid(spectrum, precision)
        if self.criterion == "gcv":
            scores = generalised_cross_validation(spectrum, target_squares, alphas)
            path = {"alphas": frozen_array(alphas), "gcv": scores}
            return Choice(least_penalty(alphas, scores), path)
        found = evaluate_path(spectrum, rows, left, alphas)
        best = found.best(self.criterion)
        logger.info(
            "closed form: alpha %.3g of %d, leave-one-out task loss %.4f",
            alphas[best],
            len(alphas),
            found.task_loss[best],
        )
        return Choice(float(alphas[best]), found.as_dict())


class KeptPredictions:
    """Leave-one-out predictions of one penalty after the other; the best ones are kept.

    Recalibration needs those of the penalty that wins, and they cost a factorisation.
    """

    def __init__(self, predict: Callable[[float], FloatArray]) -> None:
        self._predict = predict  # alpha -> (n, width)
        self._least = np.inf
        self._kept: tuple[float, FloatArray] | None = None

    def scores(self, alpha: float, left: JudgedRows) -> PathScores:
        """Risks of one penalty over all rows."""
        theta = self._predict(alpha)
        found = score_path(lambda part, _y: [theta[part]], left, [alpha])
        if found.task_loss[0] <= self._least:
            self._least = float(found.task_loss[0])
            self._kept = alpha, theta
        return found

    def at(self, alpha: float) -> FloatArray:
        """Predictions of that penalty, made again if another one of the same loss was kept."""
        if self._kept is None or self._kept[0] != alpha:
            self._kept = alpha, self._predict(alpha)
        return self._kept[1]
