"""Moments of features and targets: sums over rows that merge exactly, whoever made them.

Least squares needs of its examples only Σ w φφᵀ, Σ w φyᵀ, Σ w‖y‖² and the means. Sums of two sets
of rows add up to those of both (a + b), and a set that was part of another can be taken out again
(a − b): one pass over any number of rows, in any order and on any number of machines, gives the
model of one big fit, up to rounding.

Everything is kept about the mean, so that a large mean costs no digits. With δ the difference of
the means of a and b (Chan, Golub, LeVeque 1979):

    S(a ∪ b) = S(a) + S(b) + (N_a N_b / (N_a + N_b)) δδᵀ
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from consistruct.exceptions import ConsistructError
from consistruct.learning.files.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from consistruct.learning.models.ridge.moment_sums import MomentSums
from consistruct.protocols import FloatArray, Target

__all__ = ["Moments"]

ARRAYS = ("second_moment", "cross_moment", "mean_feature", "mean_target")
NUMBERS = ("target_squares", "total_weight", "precision", "n_rows")
FORM = "moments"
LOST_DIGITS = 1e-7  # of the sums of the whole: more below zero is no rounding


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
        centred = sums.centred()
        return cls(**centred, n_rows=sums.n_rows, precision=sums.precision, key=key)

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
        arrays = {name: _on_host(getattr(self, name)) for name in ARRAYS}
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


def _on_host(array: Any) -> FloatArray:
    return np.asarray(array.cpu() if hasattr(array, "cpu") else array)


def _shape(moments: Moments) -> str:
    return f"{len(moments.mean_feature)} features and {len(moments.mean_target)} targets"
