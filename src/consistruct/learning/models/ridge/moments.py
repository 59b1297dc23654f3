"""Moments of features and targets, summed over chunks of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from consistruct._sparse import is_sparse, to_dense
from consistruct.learning.models.features.feature_maps import LinearFeatures
from consistruct.learning.models.features.kernels import squared_norms
from consistruct.learning.models.solvers.score_map import ScoreMap
from consistruct.learning.statistics import Statistic
from consistruct.protocols import FloatArray, LabelArray, Target

__all__ = ["Moments", "accumulate"]


@dataclass(frozen=True, eq=False)
class Moments:
    """Weighted sums over the examples, centred if there is an intercept.

    Attributes
    ----------
    second_moment : (m, m) array
        Σ_i w_i (φ_i − φ̄)(φ_i − φ̄)ᵀ.
    cross_moment : (m, width) array
        Σ_i w_i (φ_i − φ̄)(y_i − ȳ)ᵀ with y = τ.
    mean_feature, mean_target : (m,) and (width,) arrays
        φ̄ and ȳ; zeros without intercept.
    target_squares : float
        Σ_i w_i ‖y_i − ȳ‖².
    total_weight : float
    precision : float
        Unit round-off of the products.
    kept_rows : (n_kept, m) array
        φ_i − φ̄ of the rows that were asked for.
    """

    second_moment: FloatArray
    cross_moment: FloatArray
    mean_feature: FloatArray
    mean_target: FloatArray
    target_squares: float
    total_weight: float
    precision: float
    kept_rows: NDArray[Any]


def accumulate(
    score_map: ScoreMap,
    statistic: Statistic,
    inputs: Any,
    true: LabelArray,
    weight: FloatArray,
    *,
    keep: Any = None,
) -> Moments:
    """One pass over the inputs; memory is one chunk, the sums and the rows in `keep`.

    Dense chunks are shifted by the mean of the first one before they are multiplied: the sums then
    lose no digits to a large mean, and the rest of the centring is a small correction. Where no
    mean exceeds the deviation of its column there is less than a bit to lose and no shift.
    """
    size, width = score_map.features.n_outputs, statistic.width
    second = np.zeros((size, size))
    cross = np.zeros((size, width))
    feature_sum, target_sum = np.zeros(size), np.zeros(width)
    target_squares = 0.0
    shift: NDArray[Any] | None = None
    buffer: NDArray[Any] = np.zeros((0, size))
    kept: list[NDArray[Any]] = []
    precision = float(np.finfo(np.float64).eps)
    uniform = bool((weight == weight[0]).all())
    product: NDArray[Any] | None = None
    single = isinstance(score_map.features, LinearFeatures) and inputs.dtype == np.float32
    for part in score_map.chunks(inputs, 4 if single else 8):
        features = _floating(score_map, score_map.features.transform(inputs[part]))
        precision = max(precision, float(np.finfo(features.dtype).eps))
        target = statistic.values(true[part])
        chunk_weight = weight[part]
        if score_map.fit_intercept and not is_sparse(features):
            if part.start == 0 and _has_large_means(features):
                shift = features.mean(axis=0)
                buffer = np.empty_like(features)  # one for all chunks; the inputs never change
            if shift is not None:
                features = np.subtract(features, shift, out=buffer[: len(features)])
        scaled = features if uniform else _scale_rows(features, np.sqrt(chunk_weight))
        if is_sparse(scaled):
            second += to_dense(scaled.T @ scaled)
        else:  # symmetric: NumPy calls syrk, which does half of the work
            product = np.matmul(scaled.T, scaled, out=product)
            second += product
        # a sparse target meets the features entry by entry
        weighted_target = target if uniform else _scale_rows(target, chunk_weight)
        cross += _dense_product(weighted_target, features)
        feature_sum += np.asarray(features.T @ chunk_weight.astype(features.dtype)).ravel()
        target_sum += np.asarray(target.T @ chunk_weight).ravel()
        target_squares += float(chunk_weight @ squared_norms(target))
        if keep is not None:
            inside = keep[(keep >= part.start) & (keep < part.stop)] - part.start
            rows = features[inside]
            kept.append(to_dense(rows))
    if uniform:
        second *= weight[0]
        cross *= weight[0]
    total = float(weight.sum())
    mean_target = np.zeros(width)
    mean_feature = np.zeros(size)
    kept_rows = np.vstack(kept) if kept else np.zeros((0, size))
    if score_map.fit_intercept:
        gap = feature_sum / total
        mean_target = target_sum / total
        second -= total * np.outer(gap, gap)
        cross -= total * np.outer(gap, mean_target)
        target_squares -= total * float(mean_target @ mean_target)
        kept_rows = kept_rows - gap.astype(kept_rows.dtype)
        mean_feature = gap if shift is None else gap + shift
    return Moments(
        second,
        cross,
        mean_feature,
        mean_target,
        target_squares,
        total,
        precision,
        kept_rows,
    )


def _has_large_means(features: NDArray[Any]) -> bool:
    """Whether some column's mean is larger than its deviation, by up to 2048 of the rows."""
    features = features[:: 1 + len(features) // 2048]
    mean = features.mean(axis=0, dtype=np.float64)
    square = np.einsum("nd,nd->d", features, features, dtype=np.float64) / len(features)
    return bool((2.0 * mean**2 > square).any())


def _floating(score_map: ScoreMap, features: Any) -> Any:
    """float32 inputs stay float32 on linear features; everything else is float64."""
    if isinstance(score_map.features, LinearFeatures) and features.dtype == np.float32:
        return features
    return features.astype(np.float64, copy=False)


def _scale_rows(rows: Any, factor: FloatArray) -> Any:
    if is_sparse(rows):
        return sp.csr_array(
            (
                rows.data * np.repeat(factor, np.diff(rows.indptr)).astype(rows.dtype),
                rows.indices,
                rows.indptr,
            ),
            shape=rows.shape,
        )
    return rows * factor.astype(rows.dtype)[:, None]


def _dense_product(target: Target, features: Any) -> FloatArray:
    """featuresᵀ target, (m, width), at the precision of the features."""
    target = target.astype(features.dtype, copy=False)
    if is_sparse(target) or is_sparse(features):
        product = target.T @ features  # (width, m)
        return np.asarray(to_dense(product)).T
    return np.asarray(features.T @ target)
