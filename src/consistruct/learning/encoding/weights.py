"""Sample and class weights, and generators of random numbers, as scikit-learn users give them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_sample_weight

from consistruct.protocols import FloatArray

__all__ = ["check_sample_weight", "combined_weight", "generator"]


def check_sample_weight(sample_weight: Any, n: int) -> FloatArray:
    """Weights (n,) of float64: finite, non-negative, not all zero; ones if None."""
    if sample_weight is None:
        return np.ones(n)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got {weight.ndim} dimensions")
    if weight.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), one per row, got {weight.shape}")
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError("sample_weight must be finite and non-negative")
    if not weight.any():
        raise ValueError("sample_weight is zero on every row; at least one weight must be positive")
    return weight


def combined_weight(sample_weight: Any, class_weight: Any, y: Any) -> FloatArray:
    """Sample weights times class weights."""
    weight = check_sample_weight(sample_weight, len(y))
    if class_weight is None:
        return weight
    weight = weight * compute_sample_weight(class_weight, y)
    if not weight.any():
        raise ValueError("class_weight leaves no row with a positive weight")
    return weight


def generator(random_state: Any) -> np.random.Generator:
    """A NumPy generator from None, an int, a RandomState or a Generator."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None:
        return np.random.default_rng()
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
