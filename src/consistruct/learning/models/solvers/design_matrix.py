"""Features of all examples, held in memory where they fit, as iterative solvers read them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from consistruct._validation import is_sparse
from consistruct.learning.models.features.feature_maps import (
    ScoreMap,
    squared_norms,
)
from consistruct.protocols import FloatArray

__all__ = ["DesignMatrix"]

CACHE_BYTES = 2**30


class DesignMatrix:
    """Rows φ(x_i) − shift: the shift is the mean of dense features where there is an intercept.

    Shifting changes no prediction (the intercept takes it up) and makes gradient steps well
    conditioned; sparse features are not shifted.
    """

    def __init__(self, score_map: ScoreMap, inputs: Any, weight: FloatArray) -> None:
        self.score_map = score_map
        self.inputs = inputs
        features = score_map.features
        n = inputs.shape[0]
        small = features.keeps_inputs or 8 * n * features.n_outputs <= CACHE_BYTES
        self._cache = features.transform(inputs) if small else None
        self.sparse = is_sparse(features.transform(inputs[:1]))
        self.shift = np.zeros(features.n_outputs)
        share = weight / weight.sum()
        if score_map.fit_intercept and not self.sparse:
            for part in score_map.chunks(inputs):
                self.shift += share[part] @ self._raw(part)
        # E‖φ‖² and E‖φ‖⁴/E‖φ‖², the constant feature included
        second = fourth = 0.0
        for part in score_map.chunks(inputs):
            norms = squared_norms(self.rows(part)) + score_map.fit_intercept
            second += float(share[part] @ norms)
            fourth += float(share[part] @ norms**2)
        self.mean_square = second
        self.radius_square = fourth / second if second > 0 else 1.0
        self._share = share

    @property
    def csr(self) -> Any:
        """The whole matrix as CSR; only where the features are sparse and linear."""
        cached: Any = self._cache
        return sp.csr_array(cached)

    def _raw(self, part: Any) -> Any:
        if self._cache is not None:
            return self._cache[part]
        return self.score_map.features.transform(self.inputs[part])

    def rows(self, part: Any) -> Any:
        """Shifted features of a slice or of row numbers, (b, m), in float64."""
        raw = self._raw(part)
        return raw if self.sparse else np.asarray(raw - self.shift, dtype=np.float64)

    def largest_eigenvalue(self, rng: np.random.Generator, n_steps: int = 20) -> float:
        """λ_max of E φφᵀ (constant feature included), from below, by power iteration."""
        size = self.score_map.n_weights
        intercept = self.score_map.fit_intercept
        vector = rng.normal(size=size)
        vector /= np.linalg.norm(vector)
        value = 0.0
        for _ in range(n_steps):
            image = np.zeros(size)
            for part in self.score_map.chunks(self.inputs):
                rows = self.rows(part)
                product = rows @ vector[: rows.shape[1]] + (vector[-1] if intercept else 0.0)
                product = product * self._share[part]
                image[: rows.shape[1]] += rows.T @ product
                if intercept:
                    image[-1] += product.sum()
            value = float(np.linalg.norm(image))
            if value == 0.0:
                return 0.0
            vector = image / value
        return value

    def unshift(self, weights: FloatArray) -> FloatArray:
        """Weights for the features as they are, from weights for the shifted ones."""
        if not self.score_map.fit_intercept:
            return weights
        result = weights.copy()
        result[-1] -= self.shift @ weights[:-1]
        return result
