"""Ridge regression with weights that fit and other weights that choose the penalty."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from consistruct.learning.models.features.feature_maps import symmetric_eigen
from consistruct.learning.models.ridge.selection import (
    OutputPenalty,
    Spectrum,
    out_of_fold_share,
    relative_grid,
)
from consistruct.protocols import FloatArray

__all__ = ["WeightedFit", "fit_weighted", "output_sketch", "solve_in_parts"]

SKETCH = 32  # outputs in which penalties are compared: random projections keep squared errors
DOUBLE = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class WeightedFit:
    """One fit, and what it states about the rows that it did not see.

    Attributes
    ----------
    coef, intercept : (m, d) and (d,) arrays
    alpha : float
    out_of_fold : (n, d) array
    squares : float
        Mean squared error of the rows left out, by the weights that choose.
    """

    coef: FloatArray
    intercept: FloatArray
    alpha: float
    out_of_fold: FloatArray
    squares: float


def output_sketch(targets: FloatArray, rng: np.random.Generator) -> FloatArray | None:
    """(d, SKETCH) random directions for wide targets, None where all outputs are compared."""
    d = targets.shape[1]
    if d <= 2 * SKETCH:
        return None
    return rng.standard_normal((d, SKETCH)) / np.sqrt(SKETCH)


def fit_weighted(
    features: FloatArray,  # (n, m)
    targets: FloatArray,  # (n, d)
    weight: FloatArray,  # (n,): of the fit
    criterion: FloatArray,  # (n,): of the choice
    sketch: FloatArray | None = None,  # (d, s)
) -> WeightedFit:
    """Least squares with the penalty of least weighted squared error on rows left out in turn.

    One eigendecomposition of Σ w φφᵀ serves all penalties; leaving a row out is exact.
    """
    total = float(weight.sum())
    mean = weight @ features / total
    centered = features - mean
    average = weight @ targets / total
    weighted = centered * weight[:, None]
    values, vectors = symmetric_eigen(weighted.T @ centered)
    values = np.maximum(values, 0.0)
    rows = centered @ vectors
    moments = vectors.T @ (weighted.T @ targets)
    share = out_of_fold_share(weight)

    def spectrum(part: FloatArray, middle: FloatArray) -> Spectrum:
        return Spectrum(values, part, total, middle, True, OutputPenalty.gram(part.shape[1]))

    if sketch is None:
        searched, y = spectrum(moments, average), targets
    else:
        searched, y = spectrum(moments @ sketch, average @ sketch), targets @ sketch
    alphas = relative_grid(searched, DOUBLE)

    def errors(some: FloatArray) -> list[float]:
        path = searched.leave_one_out_path(rows, weight, share, y, some)
        return [float(criterion @ np.einsum("nd,nd->n", left - y, left - y)) for left in path]

    # every third penalty, then those beside the best of them
    coarse = errors(alphas[::3])
    first = int(np.argmin(coarse)) * 3
    near = [n for n in range(max(first - 2, 0), min(first + 3, len(alphas))) if n != first]
    fine = {first: min(coarse), **dict(zip(near, errors(alphas[near]), strict=True))}
    alpha = float(alphas[min(fine, key=fine.__getitem__)])
    whole = spectrum(moments, average)
    coef = vectors @ whole.shrunk(alpha)
    left = whole.leave_one_out(rows, weight, share, targets, alpha)
    error = float(criterion @ np.einsum("nd,nd->n", left - targets, left - targets))
    return WeightedFit(coef, average - mean @ coef, alpha, left, error / float(criterion.sum()))


def solve_in_parts(
    parts: Iterable[tuple[FloatArray, FloatArray, FloatArray]], alpha: float
) -> tuple[FloatArray, FloatArray]:
    """Coefficients (m, d) and intercept (d,) from (features, targets, weight) of some rows each."""
    total = 0.0
    second: Any = 0.0
    cross: Any = 0.0
    feature: Any = 0.0
    target: Any = 0.0
    for features, targets, weight in parts:
        weighted = features * weight[:, None]
        total += float(weight.sum())
        feature, target = feature + weight @ features, target + weight @ targets
        second, cross = second + weighted.T @ features, cross + weighted.T @ targets
    mean, average = feature / total, target / total
    moments = cross - total * np.outer(mean, average)
    penalized = second - total * np.outer(mean, mean)
    penalized[np.diag_indices_from(penalized)] += total * alpha
    coef = np.linalg.solve(penalized, moments)
    return np.asarray(coef, dtype=np.float64), np.asarray(average - mean @ coef)
