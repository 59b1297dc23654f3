"""Kernel ridge on m landmarks by preconditioned conjugate gradients: no m × m sums over the rows.

    min_a  (1/N) Σ_i w_i ‖aᵀk(x_i) + b − y_i‖² + α tr(aᵀ K_mm a),   k(x)_j = k(x, z_j)

The normal equations H a = Σ w (k−k̄)(y−ȳ)ᵀ have H = Σ w (k−k̄)(k−k̄)ᵀ + NαK_mm. Rows that are like
the landmarks have H/N ≈ Tᵀ(TCTᵀ/m + αI)T with K_mm = TᵀT and C the centering of m landmarks, so
that B = T⁻¹A⁻¹ with AᵀA = TCTᵀ/m + αI makes BᵀHB/N nearly the identity and a few steps are enough
(Rudi, Carratino, Rosasco 2017). A step reads the rows once, in chunks, and costs 4nmw operations
besides the kernel; forming H would cost nm². Products are float32 for float32 inputs, the factors
and the steps are float64.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from consistruct._members import Member
from consistruct._validation import check_alpha, check_count, check_number, is_sparse, to_dense
from consistruct.decisions.statistics import Statistic
from consistruct.learning.models.features.feature_maps import KernelFeatures, ScoreMap
from consistruct.learning.models.ridge.selection import SELECTION_ROWS
from consistruct.protocols import FloatArray

__all__ = ["KernelCG"]

logger = logging.getLogger(__name__)

CHUNK_BYTES = 2**26  # kernel values that are held at a time
JITTER = 10.0  # roundings of the trace of K_mm that are added to its diagonal


@dataclass(frozen=True, eq=False, repr=False)
class KernelCG(Member):
    """Conjugate gradients for many landmarks, `Ridge(features="nystroem", solver="cg")`.

    Choose it where n_components is so large (many thousands) that n·m² operations or m² sums are
    too much; with few landmarks the closed form and solver="moments" are faster and exact.

    Parameters
    ----------
    max_iter : int
        Most steps, each of which reads the rows once.
    tol : float
        Stop when the residual of every output is this small, relative to the start.

    Examples
    --------
    >>> KernelCG(tol=1e-4)
    KernelCG(tol=0.0001)
    """

    max_iter: int = 40
    tol: float = 1e-5

    def __post_init__(self) -> None:
        self._set(
            max_iter=check_count(self.max_iter, "max_iter"),
            tol=check_number(self.tol, "tol", low=0.0, open_low=True),
        )

    def solve(
        self,
        statistic: Statistic,
        features: KernelFeatures,
        inputs: Any,
        true: Any,
        *,
        alpha: Any,
        fit_intercept: bool,
        sample_weight: FloatArray,
        rng: np.random.Generator,
    ) -> tuple[FloatArray, FloatArray, float, int]:
        """Expansion coefficients (m, width), intercept (width,), the penalty, and the steps."""
        penalty = _penalty(
            statistic, features, inputs, true, alpha, fit_intercept, sample_weight, rng
        )
        total = float(sample_weight.sum())
        rows = _Rows(features, inputs, sample_weight)
        mean_target = np.zeros(statistic.width)
        mean_kernel = np.zeros(features.n_outputs)
        if fit_intercept:
            values = statistic.values(true)
            mean_target = np.asarray(values.T @ sample_weight).ravel() / total
            for _, kernel, weight in rows:
                mean_kernel += kernel.T.astype(np.float64) @ weight / total
        right = np.zeros((features.n_outputs, statistic.width))
        for part, kernel, weight in rows:
            y = to_dense(statistic.values(true[part])) - mean_target
            right += kernel.T @ (weight[:, None] * y).astype(kernel.dtype)
        gram = features.kernel(features.support, features.support)
        factor = _Preconditioner(gram, penalty, fit_intercept)

        def normal(a: FloatArray) -> FloatArray:
            shift = mean_kernel @ a
            result = np.zeros_like(a)
            for _, kernel, weight in rows:
                fitted = kernel @ a.astype(kernel.dtype) - shift.astype(kernel.dtype)
                result += kernel.T @ (weight[:, None].astype(kernel.dtype) * fitted)
            return result / total + penalty * (gram @ a)

        beta, steps = conjugate_gradients(
            lambda b: factor.transposed(normal(factor.apply(b))),
            factor.transposed(right / total),
            self.max_iter,
            self.tol,
        )
        expansion = factor.apply(beta)
        logger.info("conjugate gradients: %d steps, alpha %.3g", steps, penalty)
        return expansion, mean_target - mean_kernel @ expansion, penalty, steps


class _Rows:
    """Kernel values against the landmarks, chunk by chunk, each time anew."""

    def __init__(self, features: KernelFeatures, inputs: Any, weight: FloatArray) -> None:
        self.features, self.inputs, self.weight = features, inputs, weight
        single = inputs.dtype == np.float32 and features.kernel.name == "rbf"
        self.single = single and not is_sparse(inputs)

    def __iter__(self) -> Iterator[tuple[slice, Any, FloatArray]]:
        features, n = self.features, self.inputs.shape[0]
        size = max(256, CHUNK_BYTES // ((4 if self.single else 8) * features.n_outputs))
        for start in range(0, n, size):
            part = slice(start, min(start + size, n))
            rows = self.inputs[part]
            if self.single:
                scaled = np.asarray(features.scaling(rows), dtype=np.float32)
                kernel: Any = features.kernel.single(scaled, features.support)
            else:
                kernel = features.transform(rows)
            yield part, kernel, self.weight[part]


class _Preconditioner:
    """B = T⁻¹A⁻¹ from two Cholesky factors."""

    def __init__(self, gram: FloatArray, alpha: float, centered: bool) -> None:
        size = len(gram)
        raised = gram.copy()
        eps = float(np.finfo(np.float64).eps)
        np.einsum("ii->i", raised)[:] += JITTER * eps * float(np.trace(gram))
        self.first = scipy.linalg.cholesky(raised)  # T, upper
        product = self.first @ self.first.T
        if centered:
            ones = self.first.sum(axis=1)
            product -= np.outer(ones, ones) / size
        product /= size
        np.einsum("ii->i", product)[:] += alpha
        self.second = scipy.linalg.cholesky(product)  # A, upper

    def apply(self, b: FloatArray) -> FloatArray:
        inner = scipy.linalg.solve_triangular(self.second, b)
        return np.asarray(scipy.linalg.solve_triangular(self.first, inner))

    def transposed(self, a: FloatArray) -> FloatArray:
        inner = scipy.linalg.solve_triangular(self.first, a, trans="T")
        return np.asarray(scipy.linalg.solve_triangular(self.second, inner, trans="T"))


def conjugate_gradients(
    operator: Callable[[FloatArray], FloatArray],
    right: FloatArray,  # (m, width)
    max_iter: int,
    tol: float,
) -> tuple[FloatArray, int]:
    """Solve for every column at once, each with its own steps; the solution and their number."""
    solution = np.zeros_like(right)
    residual = right.copy()
    direction = residual.copy()
    squares = np.einsum("mw,mw->w", residual, residual)
    goal = tol**2 * np.maximum(squares, np.finfo(np.float64).tiny)
    steps = 0
    while steps < max_iter and (squares > goal).any():
        image = operator(direction)
        curvature = np.einsum("mw,mw->w", direction, image)
        active = (squares > goal) & (curvature > 0)
        length = np.divide(squares, curvature, out=np.zeros_like(squares), where=active)
        solution += length * direction
        residual -= length * image
        new = np.einsum("mw,mw->w", residual, residual)
        ratio = np.divide(new, squares, out=np.zeros_like(new), where=squares > 0)
        direction = residual + ratio * direction
        squares = np.where(active, new, np.minimum(squares, goal))
        steps += 1
    return solution, steps


def _penalty(
    statistic: Statistic,
    features: KernelFeatures,
    inputs: Any,
    true: Any,
    alpha: Any,
    fit_intercept: bool,
    weight: FloatArray,
    rng: np.random.Generator,
) -> float:
    """One penalty: the one given, or the best of several on some rows with the exact kernel.

    There Nα, not α, is alike for more rows.
    """
    from consistruct.learning.models.ridge.closed_form import ClosedForm

    given = check_alpha(alpha)
    if isinstance(given, float):
        return given
    n = len(weight)
    some = np.sort(rng.choice(n, size=min(n, SELECTION_ROWS), replace=False))
    share = float(weight[some].sum() / weight.sum())
    trial = KernelFeatures(features.kernel, inputs[some], features.scaling)
    found = ClosedForm().solve(
        statistic,
        ScoreMap(trial, fit_intercept=fit_intercept),
        inputs[some],
        true[some],
        alpha="auto" if given is None else given / share,
        sample_weight=weight[some],
        rng=rng,
    )
    return found.alpha * share
