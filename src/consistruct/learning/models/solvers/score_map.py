"""θ = W φ(x) + b: weights on the features of a feature map."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from consistruct._sparse import is_sparse
from consistruct.learning.models.features.feature_maps import FeatureMap, LinearFeatures
from consistruct.protocols import FloatArray

__all__ = ["ScoreMap"]

CHUNK_BYTES = 32 * 2**20


class ScoreMap:
    """The linear map from weights to score parameters.

    Weights have shape (n_weights, width): one row per feature and, with an intercept, a last one
    for the constant feature 1.

    Parameters
    ----------
    features : FeatureMap
    fit_intercept : bool
        Whether to add the constant feature; it is never penalised.
    """

    def __init__(self, features: FeatureMap, *, fit_intercept: bool = True) -> None:
        self.features = features
        self.fit_intercept = fit_intercept

    @property
    def n_weights(self) -> int:
        return self.features.n_outputs + int(self.fit_intercept)

    def apply(self, weights: FloatArray, inputs: Any) -> FloatArray:
        """-> θ, (n, width), in chunks of inputs."""
        theta = np.empty((inputs.shape[0], weights.shape[1]))
        coef, intercept = self.split(weights)
        for part in self.chunks(inputs):
            theta[part] = self.features.transform(inputs[part]) @ coef
        theta += intercept
        return theta

    def adjoint(self, grad_theta: FloatArray, inputs: Any) -> FloatArray:
        """Σ_i φ(x_i) g_iᵀ, of the shape of the weights."""
        total = np.zeros((self.n_weights, grad_theta.shape[1]))
        size = self.features.n_outputs
        for part in self.chunks(inputs):
            total[:size] += self.features.transform(inputs[part]).T @ grad_theta[part]
        if self.fit_intercept:
            total[size] = grad_theta.sum(axis=0)
        return total

    def split(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights of the features (m, width) and the intercept (width,)."""
        if self.fit_intercept:
            return weights[:-1], weights[-1]
        return weights, np.zeros(weights.shape[1])

    def chunks(self, inputs: Any, itemsize: int = 8) -> Iterator[slice]:
        """Slices of inputs whose features, of `itemsize` bytes each, take about `CHUNK_BYTES`.

        Sparse inputs stay sparse under linear features: what counts are their entries.
        """
        width = float(self.features.n_outputs)
        if is_sparse(inputs) and isinstance(self.features, LinearFeatures):
            width = min(width, 2.0 * inputs.nnz / max(inputs.shape[0], 1))
        rows = max(1, int(CHUNK_BYTES / (itemsize * max(1.0, width))))
        for start in range(0, inputs.shape[0], rows):
            yield slice(start, min(start + rows, inputs.shape[0]))
