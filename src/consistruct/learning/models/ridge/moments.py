"""Moments of features and targets: sums over rows that merge exactly, whoever made them.

Least squares needs of its examples only Σ w φφᵀ, Σ w φyᵀ, Σ w‖y‖² and the means. Sums of two sets
of rows add up to those of both (a + b), and a set that was part of another can be taken out again
(a − b): one pass over any number of rows, in any order and on any number of machines, gives the
model of one big fit, up to rounding.

Everything is kept about the mean, so that a large mean costs no digits. With δ the difference of
the means of a and b (Chan, Golub, LeVeque 1979):

    S(a ∪ b) = S(a) + S(b) + (N_a N_b / (N_a + N_b)) δδᵀ

A pass over rows (`MomentSums`) sums about a fixed shift, chunk by chunk, in memory of one chunk.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from consistruct._validation import is_sparse, on_host, to_dense
from consistruct.decisions.statistics import Statistic
from consistruct.exceptions import ConsistructError
from consistruct.learning.files.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from consistruct.learning.models.features.feature_maps import ScoreMap, squared_norms
from consistruct.protocols import FloatArray, LabelArray, Target

__all__ = ["MomentSums", "Moments", "accumulate"]

ARRAYS = ("second_moment", "cross_moment", "mean_feature", "mean_target")
NUMBERS = ("target_squares", "total_weight", "precision", "n_rows")
FORM = "moments"
LOST_DIGITS = 1e-7  # of the sums of the whole: more below zero is no rounding
CHUNK_ENTRIES = 2**20  # features that are multiplied at a time
SINGLE_CHUNKS = 8  # times as many in float32, whose sums are added up in float64 after each chunk
FEWEST_ROWS = 2048  # of a chunk: adding its products up must take less time than making them
FEW_OUTPUTS = 32
DOUBLE = float(np.finfo(np.float64).eps)
STATE = ("second", "cross", "feature_sum", "target_sum", "scalars", "shift")


@dataclass(frozen=True, eq=False)
class Moments:
    """Weighted sums over examples, about their mean. Merge with ``+``, take out with ``-``.

    Attributes
    ----------
    second_moment : (m, m) array
        Σ_i w_i (φ_i − φ̄)(φ_i − φ̄)ᵀ.
    cross_moment : (m, width) array
        Σ_i w_i (φ_i − φ̄)(y_i − ȳ)ᵀ.
    mean_feature, mean_target : (m,) and (width,) arrays
        φ̄ and ȳ.
    target_squares : float
        Σ_i w_i ‖y_i − ȳ‖².
    total_weight : float
    n_rows : int
        Rows with a positive weight.
    precision : float
        Unit round-off of the products.
    key : str
        What features and targets these are sums of; sums with different keys do not mix.

    Notes
    -----
    The arrays are NumPy's, or float64 tensors on a device of PyTorch where the pass was made there
    (`Ridge(device=…)`); files hold the same either way.

    Examples
    --------
    >>> import numpy as np
    >>> X, Y = np.arange(12.0).reshape(6, 2) ** 2, np.eye(3)[[0, 1, 2, 0, 1, 2]]
    >>> whole = Moments.of(X, Y)
    >>> parts = Moments.of(X[4:], Y[4:]) + Moments.of(X[:4], Y[:4])
    >>> bool(np.allclose(whole.second_moment, parts.second_moment))
    True
    >>> (parts - Moments.of(X[4:], Y[4:])).n_rows
    4
    """

    second_moment: Any  # arrays of NumPy, or tensors
    cross_moment: Any
    mean_feature: Any
    mean_target: Any
    target_squares: float
    total_weight: float
    n_rows: int
    precision: float
    key: str = ""

    @classmethod
    def of(
        cls, features: Any, target: Target, weight: FloatArray | None = None, *, key: str = ""
    ) -> Moments:
        """Sums over the rows of arrays: features (n, m), target (n, width), weight (n,).

        Features and target may be CSR. float32 is read as it is and summed in float64.
        """
        sums = MomentSums(features.shape[1], target.shape[1])
        sums.add(features, target, weight)
        return cls.from_sums(sums, key=key)

    @classmethod
    def from_sums(cls, sums: MomentSums, *, key: str = "") -> Moments:
        """The result of a pass; the sums may go on, but not be used for another result."""
        total = float(sums.scalars[0])
        size, width = sums.cross.shape
        if total <= 0.0:
            empty = np.zeros((size, size)), np.zeros((size, width)), np.zeros(size), np.zeros(width)
            return cls(*empty, 0.0, total, sums.n_rows, sums.precision, key)
        gap, mean_target = sums.feature_sum / total, sums.target_sum / total
        second = sums.second - total * np.outer(gap, gap)
        return cls(
            second,
            sums.cross - total * np.outer(gap, mean_target),
            gap + sums.shift,
            mean_target,
            float(sums.scalars[1]) - total * float(mean_target @ mean_target),
            total,
            sums.n_rows,
            sums.precision,
            key,
        )

    def __add__(self, other: object) -> Moments:
        if not isinstance(other, Moments):
            return NotImplemented
        self._refuse_other_sums(other)
        if not other.n_rows or not self.n_rows:
            return self if self.n_rows else other
        total = self.total_weight + other.total_weight
        share = other.total_weight / total
        return self._combined(other, 1.0, total, share, self.total_weight * share)

    def __radd__(self, other: object) -> Moments:
        """``sum(parts)`` starts from 0."""
        return self if type(other) is int and other == 0 else NotImplemented

    def __sub__(self, other: object) -> Moments:
        if not isinstance(other, Moments):
            return NotImplemented
        self._refuse_other_sums(other)
        if not other.n_rows:
            return self
        rest = self.total_weight - other.total_weight
        if other.n_rows >= self.n_rows or rest <= 0:
            raise ConsistructError(
                f"cannot remove {other.n_rows} rows of weight {other.total_weight:g} from "
                f"{self.n_rows} rows of weight {self.total_weight:g}; some rows must remain"
            )
        share = -other.total_weight / rest
        result = self._combined(other, -1.0, rest, share, self.total_weight * share)
        floor = -LOST_DIGITS * abs(self.second_moment.diagonal())
        if (result.second_moment.diagonal() < floor).any():
            raise ConsistructError(
                "the rows to be removed are not among those summed: a sum of squares would be "
                "negative; subtract only moments that were added before"
            )
        return result

    def _combined(
        self, other: Moments, sign: float, total: float, share: float, coupling: float
    ) -> Moments:
        """Chan's formula; with sign −1 it is solved for the part that remains."""
        feature_gap = other.mean_feature - self.mean_feature
        target_gap = other.mean_target - self.mean_target
        second = self.second_moment + sign * other.second_moment
        second += coupling * _outer(feature_gap, feature_gap)
        cross = self.cross_moment + sign * other.cross_moment
        cross += coupling * _outer(feature_gap, target_gap)
        squares = self.target_squares + sign * other.target_squares
        return Moments(
            second,
            cross,
            self.mean_feature + share * feature_gap,
            self.mean_target + share * target_gap,
            squares + coupling * float(target_gap @ target_gap),
            total,
            self.n_rows + int(sign) * other.n_rows,
            max(self.precision, other.precision),
            self.key,
        )

    def _refuse_other_sums(self, other: Moments) -> None:
        if self.cross_moment.shape != other.cross_moment.shape:
            raise ConsistructError(
                f"moments of {_shape(self)} and of {_shape(other)} cannot be combined"
            )
        if self.key != other.key:
            raise ConsistructError(
                "these are moments of different features, labels or losses "
                f"({self.key or 'no key'}; {other.key or 'no key'}); make both with the same plan"
            )

    # --- other coordinates ---

    def about_zero(self) -> Moments:
        """The same sums about zero, for a fit without intercept; they merge no more."""
        features, target, total = self.mean_feature, self.mean_target, self.total_weight
        return dataclasses.replace(
            self,
            second_moment=self.second_moment + total * _outer(features, features),
            cross_moment=self.cross_moment + total * _outer(features, target),
            mean_feature=0.0 * features,
            mean_target=0.0 * target,
            target_squares=self.target_squares + total * float(target @ target),
        )

    def mapped(self, matrix: FloatArray) -> Moments:
        """Moments of the features φᵀ·matrix, (m, p); a vector scales each feature."""
        if matrix.ndim == 1:
            second = self.second_moment * _outer(matrix, matrix)
            cross, mean = self.cross_moment * matrix[:, None], self.mean_feature * matrix
        else:
            second = matrix.T @ self.second_moment @ matrix
            second = 0.5 * (second + second.T)
            cross, mean = matrix.T @ self.cross_moment, self.mean_feature @ matrix
        return dataclasses.replace(
            self, second_moment=second, cross_moment=cross, mean_feature=mean
        )

    @property
    def deviation(self) -> FloatArray:
        """Standard deviation of each feature, (m,)."""
        return np.sqrt(np.maximum(np.diag(self.second_moment), 0.0) / self.total_weight)

    # --- files ---

    def save(self, path: str | Path) -> None:
        """Write the sums to a file (safetensors with a checksum), whole or not at all."""
        numbers = {name: getattr(self, name) for name in NUMBERS}
        arrays = {name: on_host(getattr(self, name)) for name in ARRAYS}
        write_checkpoint(path, Checkpoint(arrays, {"form": FORM, **numbers}, self.key))

    @classmethod
    def load(cls, path: str | Path) -> Moments:
        """The moments in a file that `save` wrote; loading executes nothing."""
        found = read_checkpoint(path)
        if found is None:
            raise ValueError(f"there is no file {str(path)!r}")
        if found.numbers.get("form") != FORM:
            raise ValueError(f"{Path(path).name} contains no moments")
        numbers = {name: found.numbers[name] for name in NUMBERS}
        arrays: dict[str, Any] = {name: found.arrays[name] for name in ARRAYS}
        return cls(**arrays, **numbers, key=found.fingerprint)


def _outer(a: Any, b: Any) -> Any:
    return a[:, None] * b[None, :]


def _shape(moments: Moments) -> str:
    return f"{len(moments.mean_feature)} features and {len(moments.mean_target)} targets"


# --- the pass ---


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
        self.second = np.zeros((size, size))
        self.cross = np.zeros((size, width))
        self.feature_sum, self.target_sum = np.zeros(size), np.zeros(width)
        self.scalars = np.zeros(4)  # Σ w, Σ w‖y‖², rows, whether a shift is fixed
        self.shift = np.zeros(size)
        self._buffer: NDArray[Any] = np.zeros((0, size))
        self._square: NDArray[Any] = np.zeros((0, 0))

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

    def _product(self, dtype: Any) -> NDArray[Any]:
        """Room for the second moment of one chunk."""
        if self._square.dtype != dtype or len(self._square) != len(self.second):
            self._square = np.empty(self.second.shape, dtype=dtype)
        return self._square

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
            self.second += factor * to_dense(rows.T @ rows)
        else:  # NumPy calls syrk: half of the work
            # All products are NumPy's: SciPy brings a BLAS of its own, whose threads would wait for
            # work beside those of NumPy's (twice the time where both take turns).
            with np.errstate(invalid="ignore", over="ignore"):  # reported for the sums
                product = np.matmul(rows.T, rows, out=self._product(rows.dtype))
            self.second += product if factor == 1.0 else np.multiply(product, factor, out=product)
        if is_sparse(rows) or not self.single:
            crossed = dense_product(target, rows)
            summed = np.asarray(rows.sum(axis=0, dtype=np.float64)).ravel()
        elif is_sparse(target) and target.shape[1] > FEW_OUTPUTS:
            crossed = dense_product(target, rows)
            summed = np.ones(len(rows), dtype=rows.dtype) @ rows
        else:  # a column of ones in the same product is cheaper than a sum in float64
            crossed = dense_product(with_ones(target, rows.dtype), rows)
            crossed, summed = crossed[:, :-1], crossed[:, -1].astype(np.float64)
        self.cross += crossed if factor == 1.0 else crossed * factor
        return summed

    # --- checkpoints: all of it, bit by bit ---

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The state of the pass."""
        return {name: np.ascontiguousarray(getattr(self, name)) for name in STATE}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Go on from what `arrays` gave."""
        for name in STATE:
            setattr(self, name, np.array(arrays[name]))


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


def with_ones(target: Target, dtype: Any) -> NDArray[Any]:
    """The target as an array (n, width + 1) whose last column is one."""
    result = np.ones((target.shape[0], target.shape[1] + 1), dtype=dtype)
    result[:, :-1] = to_dense(target)
    return result


def dense_product(target: Target, features: Any) -> FloatArray:
    """featuresᵀ target, (m, width), at the precision of the features."""
    if is_sparse(target) and not is_sparse(features) and target.shape[1] <= FEW_OUTPUTS:
        target = to_dense(target)  # zeros cost less than a walk through the entries
    target = target.astype(features.dtype, copy=False)
    if is_sparse(target) or is_sparse(features):
        product = target.T @ features  # (width, m): a sparse target meets the features row by row
        return np.asarray(to_dense(product)).T
    with np.errstate(
        invalid="ignore", over="ignore"
    ):  # what is not finite is reported for the sums
        return np.asarray(features.T @ target)
