"""Ridge regression with many outputs: a few penalties by Cholesky instead of an eigenbasis.

With p features and a width of the same order or more (F_β: labels × set sizes) the eigenbasis costs
9p³ and its products with all outputs as much again. One penalty needs far less: with A = ΦᵀWΦ and
B = ΦᵀWY (centred), R = (A + NαI)⁻¹Φ_Sᵀ for the rows S that are left out in turn gives their fitted
values RᵀB and leverages, p³/3 + 2p²|S| + 2p·width·|S| operations. The leave-one-out loss has one
valley along the penalties, so few are tried: every fourth of the grid around its middle, further
towards an edge that is best, then between.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from consistruct.learning.contrast import Centre, choose_contrast
from consistruct.learning.normal_equations import Moments
from consistruct.learning.ridge_path import (
    LEVERAGE_LIMIT,
    PathScores,
    penalty_grid,
    score_path,
)
from consistruct.learning.score_map import ScoreMap
from consistruct.learning.selection import Choice, Selection
from consistruct.protocols import FloatArray, LabelArray
from consistruct.surrogates import QuadraticSurrogate

__all__ = ["FactoredRidge", "fit_by_search", "search_penalty", "selection_rows"]

logger = logging.getLogger(__name__)

FIRST_STEP = 4  # positions of the grid between the first penalties
SELECTION_WORK = 2.5e9  # multiplications per penalty for the fitted values of the rows left out
FEWEST_ROWS = 512


def selection_rows(n_features: int, width: int, most: int) -> int:
    """How many rows are left out in turn, so that one penalty stays affordable."""
    return int(np.clip(SELECTION_WORK / (n_features * width), min(FEWEST_ROWS, most), most))


@dataclass(frozen=True, eq=False)
class FactoredRidge:
    """The problem with its moments; one factorisation for each penalty that is asked for."""

    moments: Moments
    fit_intercept: bool

    def _factor(self, alpha: float) -> Any:
        matrix = self.moments.second_moment.copy()
        diagonal = np.einsum("ii->i", matrix)
        # rounding may leave A slightly indefinite; this is far below the penalties of the grid
        floor = len(matrix) * float(np.finfo(np.float64).eps) * float(diagonal.max(initial=0.0))
        diagonal += max(self.moments.total_weight * alpha, floor or 1.0)
        return scipy.linalg.cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)

    def coefficients(self, alpha: float) -> FloatArray:
        """(A + NαI)⁻¹ B, (p, width)."""
        solution = scipy.linalg.cho_solve(
            self._factor(alpha), self.moments.cross_moment, check_finite=False
        )
        return np.asarray(solution)

    def leave_one_out(
        self, rows: FloatArray, weight: FloatArray, share: FloatArray, y: FloatArray, alpha: float
    ) -> FloatArray:
        """Predictions (n, width) for rows φ_i − φ̄ from the fit without the share of that row."""
        solved = scipy.linalg.cho_solve(self._factor(alpha), rows.T, check_finite=False)  # (p, n)
        square = np.einsum("np,pn->n", rows, solved)
        leverage = weight * (square + self.fit_intercept / self.moments.total_weight)
        kept = 1.0 - np.minimum(share * leverage, LEVERAGE_LIMIT)
        centred = y - self.moments.mean_target
        residual = centred - solved.T @ self.moments.cross_moment
        residual /= kept[:, None]
        return np.asarray(y - residual)


def search_penalty(
    ridge: FactoredRidge,
    rows: FloatArray,  # (n, p)
    weight: FloatArray,  # (n,)
    share: FloatArray,  # (n,)
    surrogate: QuadraticSurrogate,
    true: LabelArray,
    grid: FloatArray,  # increasing
    criterion: str,  # "task_loss" or "surrogate"
) -> PathScores:
    """Leave-one-out risks of the penalties that the search visited, in the order of the grid."""
    found: dict[int, PathScores] = {}

    def value(position: int) -> float:
        if position not in found:
            alpha = float(grid[position])
            found[position] = score_path(
                lambda part, y: [
                    ridge.leave_one_out(rows[part], weight[part], share[part], y, alpha)
                ],
                weight,
                surrogate,
                true,
                [alpha],
            )
        scores = found[position]
        risks = scores.task_loss if criterion == "task_loss" else scores.surrogate_risk
        return float(risks[0])

    valley_search(value, len(grid))
    return PathScores.joined([found[position] for position in sorted(found)])


def fit_by_search(
    surrogate: QuadraticSurrogate,
    score_map: ScoreMap,
    sums: Moments,
    weight: FloatArray,  # (n,) of the rows left out
    share: FloatArray,  # (n,)
    true: LabelArray,
    selection: Selection,
) -> tuple[FloatArray, Choice]:
    """Weights of the best penalty, before any contrast, and what was chosen."""
    ridge = FactoredRidge(sums, score_map.fit_intercept)
    mean_square = float(np.trace(sums.second_moment)) / sums.total_weight
    grid = penalty_grid(mean_square, mean_square, sums.precision)
    rows = np.asarray(sums.kept_rows, dtype=np.float64)
    found = search_penalty(ridge, rows, weight, share, surrogate, true, grid, selection.criterion)
    best = found.best(selection.criterion)
    alpha = float(found.alphas[best])
    logger.info(
        "closed form: alpha %.3g, %d of %d tried, leave-one-out task loss %.4f",
        alpha,
        len(found.alphas),
        len(grid),
        found.task_loss[best],
    )
    choice = selection.with_contrast(
        Choice(alpha, found.as_dict()),
        lambda: choose_contrast(
            lambda part, y: ridge.leave_one_out(rows[part], weight[part], share[part], y, alpha),
            Centre(sums.mean_target, sums.total_weight, weight * share, score_map.fit_intercept),
            weight,
            surrogate,
            true,
        ),
    )
    return ridge.coefficients(alpha), choice


def valley_search(value: Callable[[int], float], n: int) -> int:
    """Position of the least value among 0..n−1 if the values have one valley.

    >>> tried = []
    >>> def value(position):
    ...     tried.append(position)
    ...     return (position - 13) ** 2
    >>> valley_search(value, 21), len(set(tried))
    (13, 8)
    """
    step = FIRST_STEP
    middle = (n - 1) // 2
    best = min((middle, max(middle - step, 0), min(middle + step, n - 1)), key=value)
    while True:  # towards an edge while that is better
        neighbours = [p for p in (best - step, best + step) if 0 <= p < n]
        nearest = min([best, *neighbours], key=value)
        if nearest == best:
            break
        best = nearest
    while step > 1:
        step //= 2
        neighbours = [p for p in (best - step, best + step) if 0 <= p < n]
        best = min([best, *neighbours], key=value)
    return best
