"""Generalized cross-validation of a whole path of penalties from the moments alone.

With A = Σ w φφᵀ (centered), m = Σ w φ yᵀ and λ = Nα, the solution is z = (A + λI)⁻¹m and

    RSS = Σ w‖y‖² − ⟨m, z⟩ − λ‖z‖²,    df = tr A(A + λI)⁻¹ (+ 1 for the intercept),
    GCV = (RSS/N) / (1 − df/N)²,

none of which looks at the examples again. A = QTQᵀ with tridiagonal T is enough for all λ: solving
with T + λI costs O(d) per output, and df needs the eigenvalues of T only. That is a third of the
work of an eigendecomposition, and no row has to be rotated.
"""

from __future__ import annotations

import logging

import numpy as np
from scipy.linalg import lapack

from consistruct._members import frozen_array
from consistruct.learning.models.ridge.moments import Moments
from consistruct.learning.models.ridge.selection import (
    LEVERAGE_LIMIT,
    Choice,
    OutputPenalty,
    ValidationRows,
    least_penalty,
    penalty_grid,
)
from consistruct.protocols import FloatArray

__all__ = ["TridiagonalPath", "fit_from_moments"]

logger = logging.getLogger(__name__)

ROWS_AT_A_TIME = 512  # of those that are left out in turn: their features are copied a few times


class TridiagonalPath:
    """Ridge regression for every penalty in the basis that makes the second moment tridiagonal."""

    def __init__(
        self,
        second_moment: FloatArray,  # (d, d), overwritten
        cross_moment: FloatArray,  # (d, width)
        total_weight: float,
        target_squares: float,
        fit_intercept: bool,
        penalty: OutputPenalty,
        precision: float,
    ) -> None:
        self.total = total_weight
        self.target_squares = target_squares
        self.fit_intercept = fit_intercept
        self.penalty = penalty
        self.precision = precision
        size = len(second_moment)
        # symmetric: the transpose of C order is Fortran order of the same matrix
        workspace = int(lapack.dsytrd_lwork(size, lower=1)[0])
        self._reflectors, self._diagonal, self._off, self._tau, _ = lapack.dsytrd(
            second_moment.T, lower=1, lwork=workspace, overwrite_a=1
        )
        if size == 1:  # LAPACK's wrappers want one number where there is none
            self._off = np.zeros(1)
        self.eigenvalues, _ = lapack.dsterf(self._diagonal, self._off)  # ascending
        self._block: FloatArray | None = None
        self._moments = self._rotate(penalty.into(cross_moment), "T")  # Qᵀm, (d, rank)

    def _rotate(self, rows: FloatArray, direction: str) -> FloatArray:
        """Qᵀ·rows ("T") or Q·rows ("N"): Q leaves the first coordinate alone."""
        rotated = np.array(rows, dtype=np.float64, order="F")
        if len(rows) > 1:
            if self._block is None:
                self._block = np.asfortranarray(self._reflectors[1:, :-1])
            rotated[1:] = lapack.dormqr(
                "L",
                direction,
                self._block,
                self._tau,
                np.asfortranarray(rotated[1:]),
                lwork=64 * max(1, rows.shape[1]),
                overwrite_c=1,
            )[0]
        return rotated

    def grid(self) -> FloatArray:
        """The penalties that alpha="auto" tries."""
        values = np.maximum(self.eigenvalues, 0.0)
        return penalty_grid(
            float(values.sum()) / self.total, float(values[-1]) / self.total, self.precision
        )

    def solution(self, alpha: float) -> FloatArray:
        """(T + λI)⁻¹ Qᵀm, (d, rank)."""
        result = np.empty_like(self._moments, order="F")
        distinct = np.unique(self.penalty.factor)
        for factor in distinct:
            # a slice, where it will do, is not copied
            columns = slice(None) if len(distinct) == 1 else self.penalty.factor == factor
            shifted = self._diagonal + self.total * alpha * factor
            pivots, ratios, failed_at = lapack.dpttrf(shifted, self._off)
            if failed_at:
                raise ValueError(
                    f"alpha={alpha:g} is too small: the features are dependent up to rounding; "
                    "choose a larger alpha, or 'auto'"
                )
            result[:, columns] = lapack.dpttrs(pivots, ratios, self._moments[:, columns])[0]
        return result

    def generalized_cross_validation(self, alpha: float) -> float:
        z = self.solution(alpha)
        strengths = self.total * alpha * self.penalty.factor  # (rank,)
        explained = np.einsum("dr,dr->", self._moments, z)
        explained += np.einsum("dr,dr->r", z, z) @ strengths
        distinct, copies = np.unique(strengths, return_counts=True)
        values = np.maximum(self.eigenvalues, 0.0)[:, None]
        degrees = (values / (values + distinct)).sum(axis=0)  # of freedom, for each strength
        freedom = float(degrees @ copies) / len(strengths) + self.fit_intercept
        remaining = max(1.0 - freedom / self.total, 1e-10)
        return float(self.target_squares - explained) / self.total / remaining**2

    def coefficients(self, alpha: float) -> FloatArray:
        """Weights of the features, (d, width)."""
        return self.penalty.back(self._rotate(self.solution(alpha), "N"))

    def leave_one_out(
        self, rows: FloatArray, weight: FloatArray, share: FloatArray, y: FloatArray, alpha: float
    ) -> FloatArray:
        """Estimates of y − ȳ, (n, width), for centered rows by the fit without their share."""
        centered = self.penalty.into(y)
        kept = np.empty_like(centered)
        distinct = np.unique(self.penalty.factor)
        for start in range(0, len(rows), ROWS_AT_A_TIME):
            some = slice(start, start + ROWS_AT_A_TIME)
            rotated = self._rotate(rows[some].T, "T")  # (d, n)
            for factor in distinct:
                columns = slice(None) if len(distinct) == 1 else self.penalty.factor == factor
                shifted = self._diagonal + self.total * alpha * factor
                pivots, ratios, _ = lapack.dpttrf(shifted, self._off)
                solved = lapack.dpttrs(pivots, ratios, rotated)[0]
                leverage = np.einsum("dn,dn->n", rotated, solved) + self.fit_intercept / self.total
                part = 1.0 - np.minimum(share[some] * weight[some] * leverage, LEVERAGE_LIMIT)
                kept[some, columns] = part[:, None]
        fitted = rows @ self._rotate(self.solution(alpha), "N")
        return self.penalty.back(centered - (centered - fitted) / kept)


def fit_from_moments(
    sums: Moments,
    fit_intercept: bool,
    penalty: OutputPenalty,
    alphas: float | FloatArray | None,
    left: ValidationRows,
    kept_rows: FloatArray,  # (n, m): φ − φ̄ of the rows to be left out in turn
) -> tuple[FloatArray, Choice, FloatArray]:
    """Weights for one penalty, or for the best of several (None: of a grid); what was chosen.

    With the estimates (n, width) of the kept rows by fits without them. The second moment is
    overwritten.
    """
    problem = TridiagonalPath(
        sums.second_moment,
        sums.cross_moment,
        sums.total_weight,
        sums.target_squares,
        fit_intercept,
        penalty,
        sums.precision,
    )
    if isinstance(alphas, float):
        choice = Choice(alphas, {})
    else:
        alphas = problem.grid() if alphas is None else alphas
        scores = np.array([problem.generalized_cross_validation(float(alpha)) for alpha in alphas])
        best = least_penalty(alphas, scores)
        logger.info("closed form: alpha %.3g of %d by GCV", best, len(scores))
        choice = Choice(best, {"alphas": frozen_array(alphas), "gcv": scores})
    y = left.target(slice(None)) - sums.mean_target
    estimates = problem.leave_one_out(kept_rows, left.weight, left.share, y, choice.alpha)
    return problem.coefficients(choice.alpha), choice, sums.mean_target + estimates
