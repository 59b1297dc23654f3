"""Long inputs are known to be finite from their column sums, which take all cores."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["known_finite"]

LONG = 2**22  # entries; below, scikit-learn's own pass costs nothing


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
