"""A pass over rows: sums about a fixed shift, chunk by chunk, in memory of one chunk."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import blas

from consistruct._validation import is_sparse, to_dense
from consistruct.learning.models.features.feature_maps import (
    ScoreMap,
    squared_norms,
)
from consistruct.learning.statistics import Statistic
from consistruct.protocols import FloatArray, LabelArray, Target

__all__ = ["MomentSums", "accumulate"]

CHUNK_ENTRIES = 2**20  # features that are multiplied at a time
SINGLE_CHUNKS = 4  # times as many in float32, whose sums are added up in float64 after each chunk
FEWEST_ROWS = 1024
FEW_OUTPUTS = 32
DOUBLE = float(np.finfo(np.float64).eps)
STATE = ("second", "cross", "feature_sum", "target_sum", "scalars", "shift")


class MomentSums:
    """Σ w zzᵀ, Σ w zyᵀ, Σ w z, Σ w y, Σ w‖y‖² and Σ w with z = φ − shift.

    The shift is the mean of the first rows where some column's mean exceeds its deviation, so that
    the products lose no digits to it; sparse features are not shifted.

    Parameters
    ----------
    size, width : int
        Columns of the features and of the targets.
    single : bool
        Whether products are made in float32, a few thousand rows at a time, and added in float64:
        twice as fast, with seven digits in each product.
    """

    def __init__(self, size: int, width: int, *, single: bool = False) -> None:
        self.single = single
        self.second = np.zeros((size, size), order="F")  # below the diagonal
        self.cross = np.zeros((size, width))
        self.feature_sum, self.target_sum = np.zeros(size), np.zeros(width)
        self.scalars = np.zeros(4)  # Σ w, Σ w‖y‖², rows, whether a shift is settled
        self.shift = np.zeros(size)
        self._buffer: NDArray[Any] = np.zeros((0, size))

    @property
    def n_rows(self) -> int:
        return int(self.scalars[2])

    @property
    def precision(self) -> float:
        """Unit round-off of the products."""
        return float(np.finfo(np.float32).eps) if self.single else DOUBLE

    def add(self, features: Any, target: Target, weight: FloatArray | None = None) -> None:
        """More rows: features (n, m) and target (n, width), arrays or CSR; weight (n,)."""
        for part in self.chunks(features.shape[0]):
            self._add(features[part], target[part], None if weight is None else weight[part])

    def chunks(self, n: int) -> list[slice]:
        """Slices of rows that are multiplied at a time."""
        entries = CHUNK_ENTRIES * (SINGLE_CHUNKS if self.single else 1)
        rows = max(FEWEST_ROWS, entries // max(1, len(self.second)))
        return [slice(start, min(start + rows, n)) for start in range(0, n, rows)]

    def shifted(self, features: Any) -> Any:
        """Rows as they are summed, in the precision of the products; the inputs never change."""
        dtype: Any = np.float32 if self.single else np.float64
        if is_sparse(features):
            return features.astype(dtype, copy=False)
        moved = bool(self.shift.any())
        if not moved and features.dtype == dtype:
            return features
        # tables come column by column, arrays row by row: neither has to be turned
        out = self._room(features.shape, dtype, abs(features.strides[0]) < abs(features.strides[1]))
        if moved:
            shift = self.shift.astype(dtype, copy=False)
            return np.subtract(features, shift, out=out, dtype=dtype, casting="same_kind")
        out[...] = features
        return out

    def _room(self, shape: tuple[int, int], dtype: Any, by_columns: bool) -> NDArray[Any]:
        """An array that the next chunk overwrites."""
        if self._buffer.shape != shape or self._buffer.flags.f_contiguous != by_columns:
            self._buffer = np.empty(shape, dtype=dtype, order="F" if by_columns else "C")
        return self._buffer

    def _add(self, features: Any, target: Target, weight: FloatArray | None) -> None:
        n = features.shape[0]
        if n == 0:
            return
        if not self.scalars[3]:
            if not is_sparse(features) and _has_large_means(features):
                self.shift[:] = features.mean(axis=0, dtype=np.float64)
                if self.single:  # what is subtracted must be what is added back
                    self.shift[:] = self.shift.astype(np.float32)
            self.scalars[3] = 1.0
        rows = self.shifted(features)
        alike = weight is None or bool((weight == weight[0]).all())
        factor = 1.0 if weight is None else float(weight[0])
        if alike:
            self.feature_sum += factor * self._add_products(rows, target, factor)
            self.target_sum += factor * np.asarray(target.sum(axis=0)).ravel()
            self.scalars[:3] += (
                factor * n,
                factor * float(squared_norms(target).sum()),
                n if factor > 0 else 0,
            )
            return
        assert weight is not None
        root = np.sqrt(weight)
        self._add_products(scale_rows(rows, root), scale_rows(target, root), 1.0)
        self.feature_sum += np.asarray(rows.T @ weight.astype(rows.dtype)).ravel()
        self.target_sum += np.asarray(target.T @ weight).ravel()
        squares = float(weight @ squared_norms(target))
        self.scalars[:3] += float(weight.sum()), squares, float(np.count_nonzero(weight))

    def _add_products(self, rows: Any, target: Target, factor: float) -> FloatArray:
        """Add second and cross moments; the sum of the rows, (m,)."""
        if is_sparse(rows):
            self.second += factor * np.tril(to_dense(rows.T @ rows))
        else:  # symmetric: half of the work, added in place
            by_columns = rows.flags.f_contiguous
            block = rows if by_columns else rows.T
            if self.single:
                self.second += blas.ssyrk(factor, block, trans=by_columns, lower=1)
            else:
                self.second = blas.dsyrk(
                    factor, block, beta=1.0, c=self.second, trans=by_columns, lower=1, overwrite_c=1
                )
        few = self.single and not is_sparse(rows) and target.shape[1] <= FEW_OUTPUTS
        if few:  # a column of ones in the same product is cheaper than a sum in float64
            target = np.column_stack([to_dense(target), np.ones(rows.shape[0])])
        crossed = dense_product(target, rows)
        if few:
            crossed, summed = crossed[:, :-1], crossed[:, -1].astype(np.float64)
        else:
            summed = np.asarray(rows.sum(axis=0, dtype=np.float64)).ravel()
        self.cross += crossed if factor == 1.0 else crossed * factor
        return summed

    def centred(self) -> dict[str, Any]:
        """The sums about the mean, by the names of `Moments`."""
        total = float(self.scalars[0])
        size, width = self.cross.shape
        if total <= 0.0:
            empty = np.zeros((size, size)), np.zeros((size, width)), np.zeros(size), np.zeros(width)
            second, cross, mean_feature, mean_target = empty
            squares = 0.0
        else:
            gap, mean_target = self.feature_sum / total, self.target_sum / total
            second = self.second + np.tril(self.second, -1).T
            second -= total * np.outer(gap, gap)
            cross = self.cross - total * np.outer(gap, mean_target)
            squares = float(self.scalars[1]) - total * float(mean_target @ mean_target)
            mean_feature = gap + self.shift
        return {
            "second_moment": np.ascontiguousarray(second),
            "cross_moment": cross,
            "mean_feature": mean_feature,
            "mean_target": mean_target,
            "target_squares": squares,
            "total_weight": total,
        }

    # --- checkpoints: all of it, bit by bit ---

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The state of the pass."""
        return {name: np.ascontiguousarray(getattr(self, name)) for name in STATE}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Go on from what `arrays` gave."""
        for name in STATE:
            setattr(self, name, np.array(arrays[name]))
        self.second = np.asfortranarray(self.second)


def accumulate(
    score_map: ScoreMap,
    statistic: Statistic,
    inputs: Any,
    true: LabelArray,
    weight: FloatArray,
    *,
    keep: Any,
) -> tuple[MomentSums, NDArray[Any]]:
    """One pass over inputs in memory, with the shifted features of the rows in `keep`.

    float32 inputs on linear features are multiplied in float32; everything else is float64.
    """
    features = score_map.features
    single = features.keeps_inputs and features.transform(inputs[:1]).dtype == np.float32
    sums = MomentSums(features.n_outputs, statistic.width, single=single)
    kept: list[NDArray[Any]] = []
    for part in score_map.chunks(inputs, 4 if single else 8):
        rows = features.transform(inputs[part])
        sums.add(rows, statistic.values(true[part]), weight[part])
        inside = keep[(keep >= part.start) & (keep < part.stop)] - part.start
        if len(inside):
            kept.append(np.array(to_dense(sums.shifted(rows[inside]))))
    return sums, np.vstack(kept) if kept else np.zeros((0, features.n_outputs))


def _has_large_means(features: NDArray[Any]) -> bool:
    """Whether some column's mean is larger than its deviation, by up to 2048 of the rows."""
    features = features[:: 1 + len(features) // 2048]
    mean = features.mean(axis=0, dtype=np.float64)
    square = np.einsum("nd,nd->d", features, features, dtype=np.float64) / len(features)
    return bool((2.0 * mean**2 > square).any())


def scale_rows(rows: Any, factor: FloatArray) -> Any:
    """diag(factor) · rows, an array or CSR."""
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


def dense_product(target: Target, features: Any) -> FloatArray:
    """featuresᵀ target, (m, width), at the precision of the features."""
    if is_sparse(target) and not is_sparse(features) and target.shape[1] <= FEW_OUTPUTS:
        target = to_dense(target)  # zeros cost less than a walk through the entries
    target = target.astype(features.dtype, copy=False)
    if is_sparse(target) or is_sparse(features):
        product = target.T @ features  # (width, m): a sparse target meets the features row by row
        return np.asarray(to_dense(product)).T
    with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is told of the sums
        return np.asarray(features.T @ target)
