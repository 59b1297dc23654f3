"""Ridge regression with exact leave-one-out predictions, on features or kernel values.

With centered features Z = Q diag(√s) Vᵀ, targets Y and penalty λ the fitted values are
ȳ + Q diag(s/(s+λ)) Qᵀ(Y − ȳ); row i has leverage h_i = 1/n + Σ_j Q_ij² s_j/(s_j+λ), and the
prediction without row i is y_i − (y_i − ŷ_i)/(1 − h_i).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

__all__ = ["LeaveOneOutRidge"]


class LeaveOneOutRidge:
    """Ridge regression of Y on inputs for many penalties.

    Parameters
    ----------
    X : (n, d) array or CSR; with `kernel` the (n, n) kernel matrix
    Y : (n, T) array
    kernel : bool
        New inputs are then rows of kernel values with the n training inputs.
    """

    def __init__(self, X: Any, Y: np.ndarray, *, kernel: bool) -> None:
        self.Y = np.asarray(Y, dtype=np.float64)
        n = len(self.Y)
        self._mean = self.Y.mean(axis=0)
        if kernel:
            K = np.asarray(X, dtype=np.float64)
            self._row_mean = K.mean(axis=0)
            centered = K - self._row_mean - self._row_mean[:, None] + self._row_mean.mean()
            values, vectors = scipy.linalg.eigh(centered, driver="evd")
            kept = values > n * np.finfo(float).eps * values[-1]
            self._s, self._q = values[kept], vectors[:, kept]
            self._into = self._q / self._s  # centered kernel values -> Q
        else:
            mean = np.asarray(X.mean(axis=0)).ravel()
            square: Any = X.T @ X
            if sp.issparse(square):
                square = np.asarray(square.todense())  # type: ignore[attr-defined]
            values, vectors = scipy.linalg.eigh(square - n * np.outer(mean, mean), driver="evd")
            kept = values > len(values) * np.finfo(float).eps * values[-1]
            self._s = values[kept]
            self._into = vectors[:, kept] / np.sqrt(self._s)
            self._row_mean = mean
            self._q = np.asarray(X @ self._into) - mean @ self._into
        self._kernel = kernel
        self._moments = self._q.T @ (self.Y - self._mean)
        size = float(self._s.sum()) / n
        self.penalties = tuple(n * size * 10.0 ** np.arange(-6.0, 1.5, 0.5))

    def out_of_fold(self, penalty: float) -> np.ndarray:
        """Predictions (n, T) of each row by the fit without it."""
        shrink = self._s / (self._s + penalty)
        fitted = self._mean + self._q @ (shrink[:, None] * self._moments)
        leverage = 1.0 / len(self.Y) + self._q**2 @ shrink
        return self.Y - (self.Y - fitted) / np.maximum(1.0 - leverage, 1e-10)[:, None]

    def scorer(self, penalty: float) -> Callable[[Any], np.ndarray]:
        """The fitted model: inputs (m, d), or kernel values (m, n), -> predictions (m, T)."""
        weights = self._into @ ((self._s / (self._s + penalty))[:, None] * self._moments)
        if self._kernel:
            # Q is orthogonal to constants, so that the mean of a new kernel row need not go
            return lambda K: self._mean + (K - self._row_mean) @ weights
        return lambda X: self._mean + (np.asarray(X @ weights) - self._row_mean @ weights)
