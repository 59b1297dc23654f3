"""The n × n form of ridge regression, decomposed once for all penalties."""

from __future__ import annotations

from typing import Any

import numpy as np

from consistruct._sparse import squared_entries, to_dense
from consistruct.learning.models.features.eigen import symmetric_eigen
from consistruct.learning.models.ridge.ridge_path import OutputPenalty, Spectrum
from consistruct.protocols import FloatArray, Target

__all__ = ["DualRidge", "inner_products"]


class DualRidge:
    """The n × n form: K = ΦΦᵀ with the square roots of the weights on both sides, centred.

    K̃ = P W^{1/2} K W^{1/2} P with P projecting off √w (with an intercept) is decomposed as
    Q diag(s) Qᵀ; the coordinates of row i are z_i = √s ∘ Q_i / √w_i.
    """

    def __init__(
        self,
        kernel: FloatArray,  # (n, n)
        target: Target,  # (n, width): τ, array or CSR
        weight: FloatArray,  # (n,), positive
        penalty: OutputPenalty,
        *,
        fit_intercept: bool,
    ) -> None:
        self.weight = weight
        self._root = np.sqrt(weight)
        total = float(weight.sum())
        centred = kernel * self._root[:, None] * self._root
        # rounding is relative to the kernel before centring, which may take most of it away
        noise = len(centred) * float(np.finfo(np.float64).eps) * float(np.trace(centred))
        unit = self._root / np.sqrt(total)
        if fit_intercept:
            image = centred @ unit
            centred -= unit[:, None] * image
            centred -= (image - (unit @ image) * unit)[:, None] * unit
        values, vectors = symmetric_eigen(centred)
        kept = values > noise
        self._values, self._vectors = values[kept], vectors[:, kept]
        if fit_intercept:  # √w has eigenvalue 0 and mixes with its small neighbours
            self._vectors -= np.outer(unit, unit @ self._vectors)
        mean = np.zeros(target.shape[1])
        if fit_intercept:
            mean = np.asarray(target.T @ weight).ravel() / total
        # Qᵀ W^{1/2}(y − ȳ) with y = τ, without writing τ densely
        weighted = self._vectors * self._root[:, None]
        self._moments = np.asarray((target.T @ weighted).T) - np.outer(weighted.sum(axis=0), mean)
        squares = squared_entries(target)
        self.target_squares = float((squares.T @ weight).sum()) - total * float(mean @ mean)
        self.spectrum = Spectrum(
            self._values,
            np.sqrt(self._values)[:, None] * penalty.into(self._moments),
            total,
            mean,
            fit_intercept,
            penalty,
        )

    @property
    def rows(self) -> FloatArray:
        """z_i, (n, p)."""
        return self._vectors * np.sqrt(self._values) / self._root[:, None]

    def expansion(self, alpha: float) -> FloatArray:
        """Coefficients c (n, width) with θ(x) = Σ_i c_i k(x, x_i) + b."""
        spectrum = self.spectrum
        inner = self._vectors @ (spectrum.shrunk(alpha) / np.sqrt(self._values)[:, None])
        return self._root[:, None] * spectrum.penalty.back(inner)

    def intercept(self, kernel: FloatArray, expansion: FloatArray) -> FloatArray:
        if not self.spectrum.fit_intercept:
            return self.spectrum.mean_target
        share = self.weight / self.spectrum.total_weight
        return self.spectrum.mean_target - (share @ kernel) @ expansion


def inner_products(features: Any) -> FloatArray:
    """φ_i·φ_j of all rows, dense."""
    product = features @ features.T
    return np.asarray(to_dense(product), dtype=np.float64)
