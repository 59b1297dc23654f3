"""Gram operators of scores that treat all items alike.

θ holds n_blocks numbers for each of T items, then n_extra numbers of their own. If renaming the
items changes nothing, Ḡ acts in two independent ways: on what differs between items, by one
n_blocks × n_blocks matrix for every contrast of the items (multiplicity T − 1); and on the item
means together with the extra columns. Both matrices come as square-root factors, so that nothing
is squared before it is decomposed. Cost O(T·n_blocks²) per row; T may be anything.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from consistruct._validation import check_rows
from consistruct.protocols import FloatArray
from consistruct.scores.anova import helmert_contrasts
from consistruct.scores.base import rank_tolerance
from consistruct.scores.gram import BaseGram, group_equal

__all__ = ["ItemGram"]


class ItemGram(BaseGram):
    """Ḡ = AᵀA ⊗ (I − 11ᵀ/T) on contrasts and MᵀM on (√T · item means, extra columns)."""

    def __init__(
        self,
        n_items: int,
        contrast: FloatArray,  # A, (any, n_blocks)
        common: FloatArray,  # M, (any, n_blocks + n_extra)
    ) -> None:
        self.n_items = n_items
        self.n_blocks = contrast.shape[1]
        self.n_extra = common.shape[1] - self.n_blocks
        self.contrast = contrast if n_items > 1 else contrast[:0]
        self.common = common

    @property
    def width(self) -> int:
        return self.n_blocks * self.n_items + self.n_extra

    @cached_property
    def _contrast_svd(self) -> tuple[FloatArray, FloatArray]:
        return _non_zero_svd(self.contrast)

    @cached_property
    def _common_svd(self) -> tuple[FloatArray, FloatArray]:
        return _non_zero_svd(self.common)

    @property
    def ranks(self) -> tuple[int, int]:
        """Numerical ranks of the contrast part (per contrast) and of the common part."""
        return len(self._contrast_svd[0]), len(self._common_svd[0])

    def split(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Deviations from the item means (n, n_blocks, T); common coordinates (n, blocks+extra)."""
        theta = check_rows(theta, self.width)
        n, T = len(theta), self.n_items
        blocks = theta[:, : self.n_blocks * T].reshape(n, self.n_blocks, T)
        mean = blocks.mean(axis=2)
        common = np.concatenate([np.sqrt(T) * mean, theta[:, self.n_blocks * T :]], axis=1)
        return blocks - mean[:, :, None], common

    def join(self, deviations: FloatArray, common: FloatArray) -> FloatArray:
        """The inverse of `split`."""
        blocks = deviations + common[:, : self.n_blocks, None] / np.sqrt(self.n_items)
        flat = blocks.reshape(len(blocks), self.n_blocks * self.n_items)
        return np.concatenate([flat, common[:, self.n_blocks :]], axis=1)

    def apply(self, theta: FloatArray) -> FloatArray:
        deviations, common = self.split(theta)
        return self.join(
            (self.contrast.T @ self.contrast) @ deviations, (common @ self.common.T) @ self.common
        )

    def solve(self, theta: FloatArray) -> FloatArray:
        deviations, common = self.split(theta)
        return self.join(
            _pseudo_inverse(*self._contrast_svd) @ deviations,
            common @ _pseudo_inverse(*self._common_svd),
        )

    def eigenvalues(self) -> tuple[FloatArray, tuple[int, ...]]:
        repeated = np.repeat(self._contrast_svd[0] ** 2, self.n_items - 1)
        return group_equal(np.concatenate([repeated, self._common_svd[0] ** 2]))

    def expand(self, z: FloatArray) -> FloatArray:
        """Orthonormal coordinates (n, rank) -> θ (n, width)."""
        (singular, right), T = self._contrast_svd, self.n_items
        n_own = len(singular) * (T - 1)
        own = z[:, :n_own].reshape(len(z), len(singular), T - 1) @ helmert_contrasts(T).T
        deviations = (right.T / singular) @ own
        common_singular, common_right = self._common_svd
        return self.join(deviations, (z[:, n_own:] / common_singular) @ common_right)

    def contract(self, theta: FloatArray) -> FloatArray:
        """Transpose of `expand`: (n, width) -> (n, rank)."""
        deviations, common = self.split(theta)
        singular, right = self._contrast_svd
        own = (right / singular[:, None]) @ deviations @ helmert_contrasts(self.n_items)
        common_singular, common_right = self._common_svd
        flat = own.reshape(len(own), len(singular) * (self.n_items - 1))
        return np.concatenate([flat, (common @ common_right.T) / common_singular], axis=1)

    def kernel_parts(self, blocks: FloatArray, common: FloatArray) -> tuple[FloatArray, FloatArray]:
        """K(a, b) = ⟨x_a, x_b⟩·first[a, b] + second[a, b] for embeddings x ⊗ blocks, see callers.

        `blocks` (k, n_blocks) multiply the centred item indicators, `common` (k, blocks + extra).
        """
        return (
            blocks @ _pseudo_inverse(*self._contrast_svd) @ blocks.T,
            common @ _pseudo_inverse(*self._common_svd) @ common.T,
        )


def _non_zero_svd(factor: FloatArray) -> tuple[FloatArray, FloatArray]:
    _, singular, right = np.linalg.svd(factor, full_matrices=False)
    kept = singular > rank_tolerance(factor.shape, singular) if len(singular) else singular > 0
    return singular[kept], right[kept]


def _pseudo_inverse(singular: FloatArray, right: FloatArray) -> FloatArray:
    """(AᵀA)⁺ from the singular values and right vectors of A."""
    scaled = right / singular[:, None]
    return np.asarray(scaled.T @ scaled)
