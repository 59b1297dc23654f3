"""Inputs that are tensors of PyTorch: they stay on their device where the model computes there."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from consistruct.learning.encoding.kinds import check_magnitude, scale_for

__all__ = ["device_inputs", "take_tensor"]


def take_tensor(X: Any, rows: Any) -> Any:
    """Some rows, on the device where they are."""
    return X[sys.modules["torch"].as_tensor(np.asarray(rows)).to(X.device)]


def device_inputs(estimator: Any, X: Any, *, reset: bool) -> Any:
    """(n, d) rows on their device, checked there as scikit-learn checks arrays."""
    torch = sys.modules["torch"]
    name = type(estimator).__name__
    if X.ndim != 2:
        raise ValueError(f"X must have shape (n, n_features), got a tensor of {tuple(X.shape)}")
    if not X.is_floating_point():
        X = X.to(torch.float32)
    n, d = X.shape
    if n == 0 or d == 0:
        raise ValueError(f"X must have rows and columns, got a tensor of {tuple(X.shape)}")
    if reset:
        estimator.n_features_in_ = d
        vars(estimator).pop("feature_names_in_", None)
    elif d != estimator.n_features_in_:
        raise ValueError(
            f"X has {d} features, but {name} is expecting {estimator.n_features_in_} features as "
            f"input"
        )
    largest = float(X.detach().abs().max())  # NaN and inf show in it
    if not np.isfinite(largest):
        raise ValueError(f"X must not contain NaN or infinity: impute them before {name}")
    if reset:
        estimator.input_scale_ = scale_for(largest)
    check_magnitude(largest)
    return X.detach() if estimator.input_scale_ == 1.0 else X.detach() / estimator.input_scale_
