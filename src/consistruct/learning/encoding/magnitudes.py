"""Inputs of any magnitude: known to be finite, and extreme ones divided by a power of two.

Long inputs are judged by sums, which take all cores.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from consistruct._validation import is_sparse, to_dense
from consistruct.protocols import FloatArray

__all__ = [
    "check_magnitude",
    "column_units",
    "input_scale",
    "known_finite",
    "scale_for",
    "scaled_inputs",
]

SMALLEST, LARGEST = 1e-150, 1e150  # of the entry with the greatest magnitude
ORDINARY = 2.0**300  # up to here, and from its inverse, squares and their sums are safe
LONG = 2**22  # entries; above, a product of the library is faster than a serial pass


def known_finite(X: Any) -> bool:
    """Whether X is certainly finite; False only says that scikit-learn has to look.

    NaN and infinities stay in a sum. That pass is serial, and on a long array takes a tenth of the
    time of all products.

    >>> X = np.ones((2**20, 4))
    >>> known_finite(X)
    True
    >>> X[5, 1] = np.inf
    >>> known_finite(X)
    False
    """
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.size < LONG:
        return False
    if X.dtype not in (np.float32, np.float64):
        return False
    values = np.asarray(X)  # not a masked array, whose products are not
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.ones(len(values), values.dtype) @ values).all())


def input_scale(X: Any) -> float:
    """What the inputs of a fit are divided by: a power of two, 1 unless they are extreme.

    The greatest magnitude is about 1 afterwards. Kernels and penalties are relative to the inputs,
    and a power of two changes no digit, so the model is the same in other units.

    >>> input_scale(np.array([[3.0, -5.0]])), input_scale(np.array([[2.0**400]])) == 2.0**400
    (1.0, True)
    """
    return 1.0 if _surely_ordinary(X) else scale_for(_greatest_magnitude(X))


def scale_for(largest: float) -> float:
    """The same from the greatest magnitude."""
    if largest == 0.0:
        return 1.0
    if largest < SMALLEST or largest > LARGEST:
        raise ValueError(
            f"the largest magnitude in X must be between {SMALLEST:g} and {LARGEST:g}, got "
            f"{largest:g}; use other units, for example divide X by {largest:.1g}"
        )
    if 1.0 / ORDINARY <= largest <= ORDINARY:
        return 1.0
    return 2.0 ** math.floor(math.log2(largest))


def scaled_inputs(X: Any, scale: float) -> Any:
    """Inputs of a prediction, divided like those of the fit."""
    if not _surely_ordinary(X):
        check_magnitude(_greatest_magnitude(X))
    return X if scale == 1.0 else X / scale


def check_magnitude(largest: float) -> None:
    """Refuse inputs of a prediction that are out of range."""
    if largest > LARGEST:
        raise ValueError(
            f"the largest magnitude in X must be at most {LARGEST:g}, got {largest:g}; is it in "
            f"the units of the training data?"
        )


def column_units(X: Any) -> FloatArray | None:
    """Powers of two, (d,), that bring extreme columns near 1; None if no column is extreme.

    Beside a huge column a tiny one may remain extreme when all are divided alike.
    """
    if _surely_ordinary_columns(X):
        return None
    magnitudes = abs(X).max(axis=0) if is_sparse(X) else np.maximum(X.max(axis=0), -X.min(axis=0))
    largest = np.asarray(to_dense(magnitudes), dtype=np.float64).ravel()
    extreme = (largest > 0) & ((largest > ORDINARY) | (largest < 1.0 / ORDINARY))
    if not extreme.any():
        return None
    powers = np.floor(np.log2(largest, where=extreme, out=np.zeros(len(largest))))
    return np.asarray(2.0 ** np.where(extreme, powers, 0.0))


def _surely_ordinary_columns(X: Any) -> bool:
    values = X.data if is_sparse(X) else X
    if values.dtype == np.float32 or values.size == 0:
        return True
    if not is_sparse(X):
        return False
    sizes = np.abs(values)  # stored entries only: cheaper than a maximum of each column
    return bool(sizes.max() <= ORDINARY and sizes[sizes > 0].min(initial=1.0) >= 1.0 / ORDINARY)


def _surely_ordinary(X: Any) -> bool:
    """Whether a long array is ordinary by its sum of squares; False only asks for a search."""
    values = X.data if is_sparse(X) else X
    if values.dtype == np.float32 or values.size == 0:  # its range is narrower than ours
        return True
    if values.size < LONG or not (values.flags.c_contiguous or values.flags.f_contiguous):
        return False
    flat = values.ravel(order="K")
    with np.errstate(over="ignore", under="ignore"):
        squares = float(np.dot(flat, flat))
    return (values.size / ORDINARY) ** 2 < squares < ORDINARY**2


def _greatest_magnitude(X: Any) -> float:
    """Of the entries that are there: a missing one (NaN) has no magnitude."""
    values = X.data if is_sparse(X) else X
    low = float(np.fmin.reduce(values, axis=None, initial=0.0))
    return max(float(np.fmax.reduce(values, axis=None, initial=0.0)), -low)
