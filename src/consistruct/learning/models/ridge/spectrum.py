"""Ridge regression for every penalty from one eigendecomposition, with exact leave-one-out.

The problem, with weights w_i summing to N, features φ_i and targets y_i (width columns):

    min_W  (1/N) Σ_i w_i ‖y_i − b − Wᵀφ_i‖² + α ‖W‖²,      b free if there is an intercept.

Both the primal (d × d) and the dual (n × n) form lead to the same few numbers: eigenvalues s_j,
row coordinates z_i with Σ_i w_i z_i z_iᵀ = diag(s), and moments m = Σ_i w_i z_i (y_i − ȳ)ᵀ. Then

    fitted:    ŷ_i = ȳ + z_iᵀ diag(1/(s + Nα)) m
    leverage:  h_i = w_i (z_iᵀ diag(1/(s + Nα)) z_i + 1/N)         (1/N for the intercept)
    left out:  y_i − (y_i − ŷ_i)/(1 − τ_i h_i)

where τ_i is the share of row i that is left out: whole weights count repetitions, one of which is
left out, so that weighting a row and repeating it select the same penalty; else τ_i = 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from consistruct._validation import to_dense
from consistruct.learning.models.features.feature_maps import symmetric_eigen
from consistruct.protocols import FloatArray, Target
from consistruct.scores.base import BaseScoreSpace

__all__ = ["DualRidge", "OutputPenalty", "Spectrum", "inner_products"]

CHUNK_BYTES = 32 * 2**20
LEVERAGE_LIMIT = 1.0 - 1e-10  # a row that is interpolated exactly has no leave-one-out residual


class OutputPenalty:
    """Which outputs are penalised how much: tr(WᵀḠW) needs nothing, ‖W‖² the eigenbasis of Ḡ.

    In the eigenbasis E of Ḡ = E diag(g) Eᵀ the risk ½(θ+u)ᵀḠ(θ+u) + (α/2)‖W‖² falls apart into
    ridge problems with penalties α/g_e; directions with g_e = 0 change no score and stay zero.
    """

    def __init__(self, rotation: FloatArray | None, factor: FloatArray) -> None:
        self.rotation = rotation  # (width, rank), None for the identity
        self.factor = factor  # (rank,) multiplies α

    @classmethod
    def gram(cls, width: int) -> OutputPenalty:
        return cls(None, np.ones(width))

    @classmethod
    def weights(cls, space: BaseScoreSpace) -> OutputPenalty:
        values, vectors = np.linalg.eigh(space.gram().dense())
        kept = values > len(values) * float(np.finfo(np.float64).eps) * values[-1]
        return cls(np.ascontiguousarray(vectors[:, kept]), 1.0 / values[kept])

    def into(self, rows: FloatArray) -> FloatArray:
        return rows if self.rotation is None else rows @ self.rotation

    def back(self, rows: FloatArray) -> FloatArray:
        return rows if self.rotation is None else rows @ self.rotation.T


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The decomposed problem.

    Attributes
    ----------
    eigenvalues : (p,) array
        s, non-negative.
    moments : (p, rank) array
        m, in the output basis of `penalty`.
    total_weight : float
        N.
    mean_target : (width,) array
        ȳ, zeros without intercept.
    fit_intercept : bool
    penalty : OutputPenalty
    """

    eigenvalues: FloatArray
    moments: FloatArray
    total_weight: float
    mean_target: FloatArray
    fit_intercept: bool
    penalty: OutputPenalty

    def shrunk(self, alpha: float) -> FloatArray:
        """diag(1/(s + Nα)) m, (p, rank)."""
        return self.moments / self._denominators(alpha, self.penalty.factor)

    def _denominators(self, alpha: float, factor: FloatArray) -> FloatArray:
        values = self.eigenvalues[:, None] + self.total_weight * alpha * factor
        # a direction without data has no moment either: 0/0 is 0
        return np.where(values > 0, values, np.inf)

    def leave_one_out(
        self, rows: FloatArray, weight: FloatArray, share: FloatArray, y: FloatArray, alpha: float
    ) -> FloatArray:
        """Predictions (n, width) for rows z_i from the fit without the share of that row."""
        return next(self.leave_one_out_path(rows, weight, share, y, [alpha]))

    def leave_one_out_path(
        self,
        rows: FloatArray,  # (n, p): z_i
        weight: FloatArray,  # (n,)
        share: FloatArray,  # (n,)
        y: FloatArray,  # (n, width)
        alphas: Sequence[float] | FloatArray,
    ) -> Iterator[FloatArray]:
        """The same for one penalty after the other; products are made for many at once."""
        distinct, column = np.unique(self.penalty.factor, return_inverse=True)
        centred = self.penalty.into(y - self.mean_target)
        squares = rows**2
        size = max(1, CHUNK_BYTES // (8 * max(centred.size, self.moments.size, 1)))
        for start in range(0, len(alphas), size):
            some = [float(alpha) for alpha in alphas[start : start + size]]
            inverses = [1.0 / self._denominators(alpha, distinct) for alpha in some]
            square = np.split(squares @ np.hstack(inverses), len(some), axis=1)  # (n, distinct)
            fitted = np.split(rows @ np.hstack(list(map(self.shrunk, some))), len(some), axis=1)
            for norms, values in zip(square, fitted, strict=True):
                leverage = weight[:, None] * (norms + self.fit_intercept / self.total_weight)
                kept = 1.0 - np.minimum(share[:, None] * leverage, LEVERAGE_LIMIT)
                residual = (centred - values) / kept[:, column]
                yield self.mean_target + self.penalty.back(centred - residual)

    def generalised_cross_validation(self, target_squares: float, alphas: FloatArray) -> FloatArray:
        """N·RSS/(N − df)² of each penalty, summed over the outputs; needs no pass over the data."""
        values, total = self.eigenvalues[:, None], self.total_weight
        scores = np.empty(len(alphas))
        for position, alpha in enumerate(alphas):
            denominators = self._denominators(float(alpha), self.penalty.factor)
            explained = self.moments**2 * (2.0 / denominators - values / denominators**2)
            freedom = float((values / denominators).sum(axis=0).mean()) + self.fit_intercept
            remaining = max(1.0 - freedom / total, 1e-10)
            scores[position] = (target_squares - float(explained.sum())) / total / remaining**2
        return scores


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
        squares = float(((target * target).T @ weight).sum())
        self.target_squares = squares - total * float(mean @ mean)
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
