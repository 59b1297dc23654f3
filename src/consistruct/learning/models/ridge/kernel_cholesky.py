"""Kernel ridge regression of thousands of examples: one Cholesky factorization per penalty.

With K̃ = P W^{1/2} K W^{1/2} P as in `DualRidge`, ỹ = √w(y − ȳ) and λ = Nα, let B = (K̃ + λI)⁻¹.
Then

    residual:  ỹ − K̃Bỹ = λ B ỹ,
    leverage:  h_i = [K̃B]_ii + w_i/N = 1 − λ B_ii + w_i/N       (w_i/N for the intercept),

so a factor LLᵀ and the column norms of L⁻¹ (B_ii = ‖L⁻¹e_i‖²) give exact leave-one-out residuals of
all examples for 2n³/3 operations on large blocks. An eigendecomposition serves all penalties, but
costs as much as twenty or more of these, and three or four penalties are enough to find the best.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from consistruct.learning.models.ridge.selection import (
    LEVERAGE_LIMIT,
    SINGLE_PRECISION_MARGIN,
    Choice,
    KeptPredictions,
    OutputPenalty,
    PathScores,
    Selection,
    ValidationRows,
    penalty_grid,
)
from consistruct.losses.base import dense_target
from consistruct.protocols import FloatArray, Target

__all__ = ["CholeskyRidge", "choose_by_factors"]

logger = logging.getLogger(__name__)

Score = TypeVar("Score")


class CholeskyRidge:
    """Solutions and leave-one-out risks for one penalty at a time; `kernel` is overwritten.

    One matrix (n, n) is kept and one more, of float32 where the penalty allows it, is made while a
    penalty is tried.
    """

    def __init__(
        self,
        kernel: FloatArray,  # (n, n)
        target: Target,  # (n, width): u, array or CSR
        weight: FloatArray,  # (n,), positive
        penalty: OutputPenalty,
        *,
        fit_intercept: bool,
        largest_eigenvalue: float,
    ) -> None:
        if np.ptp(penalty.factor) > 0:
            raise ValueError("one factorization works only for outputs with equal penalties")
        self.weight, self.fit_intercept, self.penalty = weight, fit_intercept, penalty
        self.total = float(weight.sum())
        self.largest_eigenvalue = largest_eigenvalue
        self._root = np.sqrt(weight)
        if not (weight == 1.0).all():
            kernel *= self._root[:, None]
            kernel *= self._root
        unit = self._root / np.sqrt(self.total)
        self._image = kernel @ unit  # W^{1/2} K w / √N, before centering
        matrix = kernel.T  # in Fortran order, as LAPACK wants it; only the lower triangle is used
        if fit_intercept:
            # P K P = K − u vᵀ − v uᵀ with v = Ku − ½(uᵀKu)u
            half = self._image - 0.5 * (unit @ self._image) * unit
            matrix = blas.dsyr2(-1.0, unit, half, a=matrix, lower=1, overwrite_a=1)
        self._matrix = matrix
        self.trace = float(np.trace(matrix))
        y = dense_target(target)  # (n, width)
        self.mean_target = np.zeros(y.shape[1])
        if fit_intercept:
            self.mean_target = weight @ y / self.total
        self._centered = penalty.into(y - self.mean_target)  # (n, rank)

    def _factor(self, alpha: float, *, last: bool = False) -> tuple[FloatArray, float]:
        """L with LLᵀ = K̃ + λI, and λ; the last one is of float64 and takes the matrix itself."""
        strength = self.total * alpha * float(self.penalty.factor[0])
        floor = SINGLE_PRECISION_MARGIN * float(np.finfo(np.float32).eps) * self.largest_eigenvalue
        for dtype in (np.float32, np.float64):
            if dtype is np.float32 and (last or strength < floor):
                continue
            work: NDArray[Any] = self._matrix
            if not last:
                work = np.array(work, dtype=dtype, order="F")
            work[np.diag_indices(len(work))] += strength
            potrf = lapack.spotrf if dtype is np.float32 else lapack.dpotrf
            factor, failed_at = potrf(work, lower=1, clean=0, overwrite_a=1)
            if failed_at == 0:
                return factor, strength
        raise ValueError(
            f"alpha={alpha:g} is too small for a kernel matrix of {len(self.weight)} rows: it is "
            "singular at float64; choose a larger alpha, or 'auto'"
        )

    def _solve(self, factor: FloatArray, right: FloatArray) -> FloatArray:
        """B·right in the precision of the factor."""
        potrs = lapack.spotrs if factor.dtype == np.float32 else lapack.dpotrs
        solution, _ = potrs(factor, np.asfortranarray(right, dtype=factor.dtype), lower=1)
        return np.asarray(solution, dtype=np.float64)

    def leave_one_out(
        self,
        alpha: float,
        share: FloatArray,  # (n,)
    ) -> tuple[FloatArray, float, float]:
        """Predictions (n, width) without the share of each row; residual squares; freedom."""
        factor, strength = self._factor(alpha)
        weighted = self._root[:, None] * self._centered
        residual = strength * self._solve(factor, weighted)  # √w times the residuals
        trtri = lapack.strtri if factor.dtype == np.float32 else lapack.dtrtri
        inverse, _ = trtri(factor, lower=1, overwrite_c=1)
        columns = (inverse[place:, place] for place in range(len(inverse)))
        diagonal = np.array([float(column @ column) for column in columns])  # B_ii
        kept = strength * diagonal
        leverage = 1.0 - kept + self.fit_intercept * self.weight / self.total
        left = 1.0 - np.minimum(share * leverage, LEVERAGE_LIMIT)
        error = residual / (self._root * left)[:, None]
        theta = self.mean_target + self.penalty.back(self._centered - error)
        freedom = len(kept) - float(kept.sum()) + self.fit_intercept
        return theta, float(np.einsum("nw,nw->", residual, residual)), freedom

    def generalized_cross_validation(self, alpha: float) -> float:
        """N·RSS/(N − df)² of one penalty, summed over the outputs."""
        _, squares, freedom = self.leave_one_out(alpha, np.ones(len(self.weight)))
        return squares / self.total / max(1.0 - freedom / self.total, 1e-10) ** 2

    def expansion(self, alpha: float) -> FloatArray:
        """Coefficients c (n, width) with θ(x) = Σ_i c_i k(x, x_i) + b; uses the matrix up."""
        factor, _ = self._factor(alpha, last=True)
        right = self._root[:, None] * self._centered
        inner = self._solve(factor, right)
        if self.fit_intercept:  # they sum to zero under √w but for rounding
            unit = self._root / np.sqrt(self.total)
            inner -= np.outer(unit, unit @ inner)
        return self._root[:, None] * self.penalty.back(inner)

    def intercept(self, expansion: FloatArray) -> FloatArray:
        if not self.fit_intercept:
            return self.mean_target
        # mean of the kernel rows under w/N: W^{−1/2} image / √N
        mean_row = self._image / (self._root * np.sqrt(self.total))
        return np.asarray(self.mean_target - mean_row @ expansion)


def choose_by_factors(
    problem: CholeskyRidge, selection: Selection, start: float, left: ValidationRows
) -> tuple[Choice, FloatArray]:
    """The best of the given penalties, which are all tried, or of the grid around `start`.

    With the estimates (n, width) of every example by the fit without it.
    """
    alphas = selection.alpha
    kept = KeptPredictions(lambda alpha: problem.leave_one_out(alpha, left.share)[0])
    if isinstance(alphas, float):
        return Choice(alphas, {}), kept.at(alphas)
    tried_in_full = alphas is not None
    if alphas is None:
        total, eps = problem.total, float(np.finfo(np.float64).eps)
        alphas = penalty_grid(problem.trace / total, problem.largest_eigenvalue / total, eps)
    if selection.criterion == "gcv":
        scores = _try(alphas, start, tried_in_full, problem.generalized_cross_validation, np.argmin)
        values = np.array(list(scores.values()))
        tried = alphas[list(scores)]
        best = float(tried[values.argmin()])
        return Choice(best, {"alphas": tried, "gcv": values}), kept.at(best)

    def evaluate(alpha: float) -> PathScores:
        found = kept.scores(alpha, left)
        logger.info(
            "closed form: alpha %.3g, leave-one-out task loss %.4f", alpha, found.task_loss[0]
        )
        return found

    parts = _try(
        alphas,
        start,
        tried_in_full,
        evaluate,
        lambda found: PathScores.joined(found).best(selection.criterion),
    )
    path = PathScores.joined(list(parts.values()))
    best = float(path.alphas[path.best(selection.criterion)])
    return Choice(best, path.as_dict()), kept.at(best)


def _try(
    alphas: FloatArray,  # (p,)
    start: float,
    in_full: bool,
    evaluate: Callable[[float], Score],
    best_of: Callable[[list[Score]], Any],
) -> dict[int, Score]:
    """Scores by position in `alphas`, which is ascending unless all are tried.

    From the candidate nearest to `start` the walk goes on while a neighbor of the best candidate
    so far is untried, toward smaller penalties first.
    """
    if in_full:
        return {place: evaluate(float(alpha)) for place, alpha in enumerate(alphas)}
    first = int(np.abs(np.log(alphas) - np.log(start)).argmin())
    tried = {first: evaluate(float(alphas[first]))}
    while True:
        tried = dict(sorted(tried.items()))
        best = list(tried)[int(best_of(list(tried.values())))]
        untried = [p for p in (best - 1, best + 1) if p not in tried and 0 <= p < len(alphas)]
        if not untried:
            return tried
        tried[untried[0]] = evaluate(float(alphas[untried[0]]))
