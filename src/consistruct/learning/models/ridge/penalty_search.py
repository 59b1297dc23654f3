"""Ridge regression with many outputs: a few penalties by Cholesky instead of an eigenbasis.

With p features and a width of the same order or more (F_β: labels × set sizes) the eigenbasis costs
9p³ and its products with all outputs as much again. One penalty needs far less: with A = ΦᵀWΦ and
B = ΦᵀWY (centered), R = (A + NαI)⁻¹Φ_Sᵀ for the rows S that are left out in turn gives their fitted
values RᵀB and leverages, p³/3 + 2p²|S| + 2p·width·|S| operations. The leave-one-out loss has one
valley along the penalties, so few are tried: every fourth of the grid around its middle, further
toward an edge that is best, then between.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from consistruct.learning.models.ridge.moments import Moments
from consistruct.learning.models.ridge.selection import (
    LEVERAGE_LIMIT,
    SINGLE_PRECISION_MARGIN,
    Choice,
    KeptPredictions,
    PathScores,
    Selection,
    ValidationRows,
    penalty_grid,
)
from consistruct.protocols import FloatArray

__all__ = ["FactoredRidge", "fit_by_search", "selection_rows"]

logger = logging.getLogger(__name__)

FIRST_STEP = 4  # positions of the grid between the first penalties
SELECTION_WORK = 2.5e9  # multiplications per penalty for the fitted values of the rows left out
FEWEST_ROWS = 512
SINGLE_PRECISION_SIZE = 512  # features


def selection_rows(n_features: int, width: int, most: int) -> int:
    """How many rows are left out in turn, so that one penalty stays affordable."""
    return int(np.clip(SELECTION_WORK / (n_features * width), min(FEWEST_ROWS, most), most))


class FactoredRidge:
    """The problem with its moments; one factorization for each penalty that is requested.

    Leave-one-out predictions of large problems, which only choose a penalty, are computed in
    float32 where the penalty is clear of its rounding.
    """

    def __init__(self, moments: Moments, fit_intercept: bool) -> None:
        self.moments = moments
        self.fit_intercept = fit_intercept
        self._single: tuple[NDArray[Any], NDArray[Any]] | None = None  # both moments, in float32

    def _strength(self, alpha: float) -> float:
        diagonal = np.diag(self.moments.second_moment)
        # rounding may leave A slightly indefinite; this is far below the penalties of the grid
        floor = len(diagonal) * float(np.finfo(np.float64).eps) * float(diagonal.max(initial=0.0))
        return max(self.moments.total_weight * alpha, floor or 1.0)

    def _moments_for(self, strength: float) -> tuple[NDArray[Any], NDArray[Any]]:
        """A and B in the precision that this penalty needs."""
        second, cross = self.moments.second_moment, self.moments.cross_moment
        margin = SINGLE_PRECISION_MARGIN * float(np.finfo(np.float32).eps)
        if len(second) < SINGLE_PRECISION_SIZE or strength < margin * float(np.trace(second)):
            return second, cross
        if self._single is None:
            self._single = second.astype(np.float32), cross.astype(np.float32, order="F")
        return self._single

    def _factor(self, matrix: NDArray[Any], strength: float) -> Any:
        shifted = matrix.copy()
        np.einsum("ii->i", shifted)[:] += matrix.dtype.type(strength)
        return scipy.linalg.cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)

    def coefficients(self, alpha: float) -> FloatArray:
        """(A + NαI)⁻¹ B, (p, width)."""
        factor = self._factor(self.moments.second_moment, self._strength(alpha))
        solution = scipy.linalg.cho_solve(factor, self.moments.cross_moment, check_finite=False)
        return np.asarray(solution)

    def leave_one_out(
        self, rows: FloatArray, weight: FloatArray, share: FloatArray, y: FloatArray, alpha: float
    ) -> FloatArray:
        """Predictions (n, width) for rows φ_i − φ̄ from the fit without the share of that row."""
        strength = self._strength(alpha)
        second, cross = self._moments_for(strength)
        right = rows.T.astype(second.dtype, copy=False)
        solved = scipy.linalg.cho_solve(self._factor(second, strength), right, check_finite=False)
        square = np.einsum("np,pn->n", rows, solved)
        leverage = weight * (square + self.fit_intercept / self.moments.total_weight)
        kept = 1.0 - np.minimum(share * leverage, LEVERAGE_LIMIT)
        residual = y - self.moments.mean_target
        # SciPy's product, as it is SciPy that solved: NumPy's threads would wait beside its own
        (product,) = scipy.linalg.get_blas_funcs(("gemm",), (solved, cross))
        residual -= product(1.0, solved, cross, trans_a=True)
        residual /= kept[:, None]
        return np.subtract(y, residual, out=residual)


def fit_by_search(
    sums: Moments,
    fit_intercept: bool,
    left: ValidationRows,
    selection: Selection,
    kept_rows: FloatArray,  # (n, m): φ − φ̄ of the rows to be left out in turn
) -> tuple[FloatArray, Choice, FloatArray]:
    """Weights of the best penalty, what was chosen, and its estimates of the rows left out."""
    ridge = FactoredRidge(sums, fit_intercept)
    mean_square = float(np.trace(sums.second_moment)) / sums.total_weight
    grid = penalty_grid(mean_square, mean_square, sums.precision)  # increasing
    rows = np.asarray(kept_rows, dtype=np.float64)
    y = left.target(slice(None))
    kept = KeptPredictions(
        lambda alpha: ridge.leave_one_out(rows, left.weight, left.share, y, alpha)
    )
    found: dict[int, PathScores] = {}

    def value(position: int) -> float:
        if position not in found:
            found[position] = kept.scores(float(grid[position]), left)
        scores = found[position]
        by_task = selection.criterion == "task_loss"
        return float(scores.task_loss[0] if by_task else scores.surrogate_risk[0])

    valley_search(value, len(grid))
    path = PathScores.joined([found[position] for position in sorted(found)])
    best = path.best(selection.criterion)
    alpha = float(path.alphas[best])
    logger.info(
        "closed form: alpha %.3g, %d of %d tried, leave-one-out task loss %.4f",
        alpha,
        len(path.alphas),
        len(grid),
        path.task_loss[best],
    )
    return ridge.coefficients(alpha), Choice(alpha, path.as_dict()), kept.at(alpha)


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
    while True:  # toward an edge while that is better
        neighbors = [p for p in (best - step, best + step) if 0 <= p < n]
        nearest = min([best, *neighbors], key=value)
        if nearest == best:
            break
        best = nearest
    while step > 1:
        step //= 2
        neighbors = [p for p in (best - step, best + step) if 0 <= p < n]
        best = min([best, *neighbors], key=value)
    return best
