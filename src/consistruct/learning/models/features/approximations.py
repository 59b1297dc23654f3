"""Feature maps of a few functions: a kernel on landmarks, or random frequencies."""

from __future__ import annotations

from typing import Any

import numpy as np

from consistruct._validation import check_count, is_sparse
from consistruct.learning.models.features.feature_maps import (
    FeatureMap,
    Kernel,
    Scaling,
    dense_rows,
    symmetric_eigen,
)
from consistruct.protocols import FloatArray

__all__ = ["KernelCenters", "NystroemFeatures", "RandomFeatures"]

# Smallest eigenvalue of K_mm, of the largest, down to which sums of kernel values are whitened
# instead of rows: rounding ε of the sums grows by its inverse, the sums fall with it.
MIXED_AFTERWARDS = {"float64": 1e-6, "float32": 1e-4}


class KernelCenters(FeatureMap):
    """φ(x) = k(x, landmarks), not whitened: for solvers that penalize by the kernel of these."""

    def __init__(self, kernel: Kernel, landmarks: Any, scaling: Scaling | None = None) -> None:
        self.kernel = kernel
        self.scaling = scaling or Scaling()
        self.landmarks = dense_rows(self.scaling(landmarks))  # (m, d), already scaled
        self.n_outputs = len(self.landmarks)

    def transform(self, X: Any) -> FloatArray:
        return self.kernel(self.scaling(X), self.landmarks)


class NystroemFeatures(FeatureMap):
    """φ(x) = K_mm^{−1/2} k(x, landmarks): the kernel restricted to the span of m landmarks."""

    def __init__(self, kernel: Kernel, landmarks: Any, scaling: Scaling | None = None) -> None:
        self.kernel = kernel
        self.scaling = scaling or Scaling()
        self.landmarks = dense_rows(self.scaling(landmarks))  # (m, d), already scaled
        values, vectors = symmetric_eigen(kernel(self.landmarks, self.landmarks))
        # directions below rounding carry noise only; near-duplicate landmarks make them
        kept = values > len(values) * float(np.finfo(np.float64).eps) * max(values[-1], 1e-300)
        self.whitening = np.ascontiguousarray(vectors[:, kept] / np.sqrt(values[kept]))
        self.n_outputs = int(kept.sum())
        self.condition = float(values[kept][0] / values[-1])  # of K_mm, at most 1

    def transform(self, X: Any) -> FloatArray:
        return self.kernel(self.scaling(X), self.landmarks) @ self.whitening

    # Whitening each row costs twice as much as its products: a well conditioned K_mm can wait.

    @property
    def mixing(self) -> FloatArray | None:
        return self.whitening if self.condition >= MIXED_AFTERWARDS["float64"] else None

    @property
    def n_sums(self) -> int:
        return self.n_outputs if self.mixing is None else len(self.landmarks)

    def summed(self, X: Any, *, single: bool = False) -> Any:
        if self.mixing is None:
            return self.transform(X)
        if not single or not self.single(X.dtype) or is_sparse(X):
            return self.kernel(self.scaling(X), self.landmarks)
        scaling = self.scaling
        if scaling.scale is not None:
            scale = scaling.scale.astype(np.float32)
            X = (X if scaling.shift is None else X - scaling.shift.astype(np.float32)) / scale
        return self.kernel.single(X, self.landmarks)

    def single(self, dtype: Any) -> bool:
        rbf = self.kernel.name == "rbf"
        return dtype == np.float32 and rbf and self.condition >= MIXED_AFTERWARDS["float32"]


class RandomFeatures(FeatureMap):
    """φ(x) = √(2/m) cos(ωᵀx + b): random Fourier features of the RBF or Laplace kernel.

    ω is normal with variance 1/h² for RBF and Cauchy with scale 1/h for Laplace (‖·‖₁).
    """

    def __init__(
        self,
        kernel: Kernel,
        n_features: int,
        n_components: int,
        rng: np.random.Generator,
        scaling: Scaling | None = None,
        dtype: Any = np.float64,
    ) -> None:
        if kernel.name not in ("rbf", "laplace"):
            raise ValueError(
                f"random features exist only for the kernels 'rbf' and 'laplace', got "
                f"{kernel.name!r}; use features='nystroem' for it"
            )
        self.kernel = kernel
        self.scaling = scaling or Scaling()
        self.n_outputs = check_count(n_components, "n_components")
        shape = (n_features, self.n_outputs)
        drawn = rng.normal(size=shape) if kernel.name == "rbf" else rng.standard_cauchy(size=shape)
        self.frequencies = (drawn / kernel.bandwidth).astype(dtype)
        self.phases = rng.uniform(0.0, 2.0 * np.pi, size=self.n_outputs).astype(dtype)

    def transform(self, X: Any) -> FloatArray:
        # in the precision of the frequencies: single for the many tokens of sequences
        angles = np.asarray(self.scaling(X) @ self.frequencies, dtype=self.frequencies.dtype)
        angles += self.phases
        np.cos(angles, out=angles)
        angles *= np.sqrt(2.0 / self.n_outputs)
        return angles
