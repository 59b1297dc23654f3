"""Scores on product labels under the uniform measure, diagonalised by their ANOVA terms.

A score function f(y) = Σ_t α_t(y_t) + Σ_t β_t(y_t, y_{t+1}) splits into uncorrelated terms

    f = c + Σ_t m_t(y_t) + Σ_t p_t(y_t, y_{t+1}),   every m_t, p_t with zero mean in each argument.

These terms are the eigenspaces of F Fᵀ on functions: f ↦ Σ_t E[f|y_t]/s + Σ_t E[f|y_t, y_{t+1}]/s²
multiplies c by T/s + (T−1)/s², m_t by 1/s + deg(t)/s² (deg(t) the number of edges at t) and
p_t by 1/s². All products below cost O(width); nothing of size k or width² is ever built.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from consistruct._validation import check_rows
from consistruct.protocols import FloatArray
from consistruct.scores.gram import BaseGram, group_equal

__all__ = ["ProductGram", "helmert_contrasts"]


@dataclass(frozen=True)
class Terms:
    """ANOVA terms of a batch of score functions."""

    constant: FloatArray  # (n,)
    main: FloatArray  # (n, T, s)
    pair: FloatArray | None  # (n, T−1, s, s)


class ProductGram(BaseGram):
    """Ḡ of one-hot parts, and of one-hot edges between neighbours if ``edges``.

    θ is laid out as the unary scores (T, s), then the edge scores (T−1, s, s).
    """

    def __init__(self, n_parts: int, n_states: int, *, edges: bool) -> None:
        self.n_parts = n_parts
        self.n_states = n_states
        self.edges = edges
        T, s = n_parts, n_states
        degree = np.zeros(T)
        if edges:
            degree[:-1] += 1
            degree[1:] += 1
        self._main_eigenvalues = 1 / s + degree / s**2  # (T,)
        self._pair_eigenvalue = 1 / s**2
        self._constant_eigenvalue = T / s + (T - 1) / s**2 * edges

    @property
    def width(self) -> int:
        T, s = self.n_parts, self.n_states
        return T * s + (T - 1) * s * s * self.edges

    def split(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Unary (n, T, s) and edge (n, T−1, s, s) scores; no edges: the latter is empty."""
        theta = check_rows(theta, self.width)
        n, T, s = len(theta), self.n_parts, self.n_states
        unary = theta[:, : T * s].reshape(n, T, s)
        rest = theta[:, T * s :]
        return unary, rest.reshape(n, T - 1, s, s) if self.edges else np.zeros((n, 0, s, s))

    def terms(self, theta: FloatArray) -> Terms:
        """ANOVA terms of the functions Fθ."""
        unary, edge = self.split(theta)
        unary_mean = unary.mean(axis=2, keepdims=True)
        main = unary - unary_mean
        constant = unary_mean.sum(axis=(1, 2))
        if not self.edges:
            return Terms(constant, main, None)
        left = edge.mean(axis=3)  # given y_t
        right = edge.mean(axis=2)  # given y_{t+1}
        mean = edge.mean(axis=(2, 3))
        main[:, :-1] += left - mean[:, :, None]
        main[:, 1:] += right - mean[:, :, None]
        pair = edge - left[:, :, :, None] - right[:, :, None, :] + mean[:, :, None, None]
        return Terms(constant + mean.sum(axis=1), main, pair)

    def adjoint(self, terms: Terms) -> FloatArray:
        """E_c[F_c f(c)] for functions f given by their terms, (n, width)."""
        s = self.n_states
        unary = (terms.constant[:, None, None] + terms.main) / s
        if terms.pair is None:
            return _rows(unary)
        edge = (
            terms.constant[:, None, None, None]
            + terms.main[:, :-1, :, None]
            + terms.main[:, 1:, None, :]
            + terms.pair
        ) / s**2
        return np.concatenate([_rows(unary), _rows(edge)], axis=1)

    def apply(self, theta: FloatArray) -> FloatArray:
        return self.adjoint(self.terms(theta))

    def solve(self, theta: FloatArray) -> FloatArray:
        # Ḡ = F*F, hence Ḡ⁺ = F* (FF*)⁻² F, and FF* multiplies each term by its eigenvalue
        terms = self.terms(theta)
        return self.adjoint(
            Terms(
                terms.constant / self._constant_eigenvalue**2,
                terms.main / self._main_eigenvalues[:, None] ** 2,
                None if terms.pair is None else terms.pair / self._pair_eigenvalue**2,
            )
        )

    def eigenvalues(self) -> tuple[FloatArray, tuple[int, ...]]:
        T, s = self.n_parts, self.n_states
        listed = [(self._constant_eigenvalue, 1)]
        listed += [(float(value), s - 1) for value in self._main_eigenvalues]
        if self.edges and T > 1:
            listed.append((self._pair_eigenvalue, (T - 1) * (s - 1) ** 2))
        values = np.array([value for value, _ in listed])
        distinct, _ = group_equal(values)
        counts = [0] * len(distinct)
        for value, multiplicity in listed:
            counts[int(np.argmin(np.abs(distinct - value)))] += multiplicity
        return distinct, tuple(counts)

    # --- an orthonormal basis: constant, contrasts of each part, products of contrasts ---

    def expand(self, z: FloatArray) -> FloatArray:
        """Orthonormal coordinates (n, rank) -> θ (n, width)."""
        n, T, s = len(z), self.n_parts, self.n_states
        contrasts = helmert_contrasts(s)
        main = z[:, 1 : 1 + T * (s - 1)].reshape(n, T, s - 1)
        unary = np.sqrt(s) * main @ contrasts.T + z[:, 0, None, None] / T
        if not self.edges:
            return _rows(unary)
        pair = z[:, 1 + T * (s - 1) :].reshape(n, T - 1, s - 1, s - 1)
        edge = s * contrasts @ pair @ contrasts.T
        return np.concatenate([_rows(unary), _rows(edge)], axis=1)

    def contract(self, theta: FloatArray) -> FloatArray:
        """Transpose of `expand`: (n, width) -> (n, rank)."""
        T, s = self.n_parts, self.n_states
        contrasts = helmert_contrasts(s)
        unary, edge = self.split(theta)
        parts = [
            unary.sum(axis=(1, 2))[:, None] / T,
            _rows(np.sqrt(s) * unary @ contrasts),
        ]
        if self.edges:
            parts.append(_rows(s * contrasts.T @ edge @ contrasts))
        return np.concatenate(parts, axis=1)


def _rows(array: FloatArray) -> FloatArray:
    """Flatten all axes but the first; reshape(n, −1) cannot tell the width of an empty batch."""
    return np.asarray(array.reshape(len(array), math.prod(array.shape[1:])))


def helmert_contrasts(n_states: int) -> FloatArray:
    """Helmert contrasts: (s, s−1) with orthonormal columns, each orthogonal to the constant."""
    columns = np.zeros((n_states, n_states - 1))
    for j in range(1, n_states):
        columns[:j, j - 1] = 1.0
        columns[j, j - 1] = -j
        columns[:, j - 1] /= np.sqrt(j * (j + 1))
    return columns
