"""Gram operators Ḡ = E_c[F_c F_cᵀ]: what all share; dense ones. Others stand with their spaces."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np

from consistruct._validation import check_rows
from consistruct.exceptions import TooManyLabelsError
from consistruct.protocols import FloatArray
from consistruct.scores.base import rank_tolerance

__all__ = [
    "BaseGram",
    "DenseGram",
    "SpectralGram",
    "dense_limit",
    "group_equal",
]


class BaseGram(ABC):
    """Required: `width`, `apply`, `solve`, `eigenvalues`."""

    @property
    @abstractmethod
    def width(self) -> int: ...

    @abstractmethod
    def apply(self, theta: FloatArray) -> FloatArray: ...

    @abstractmethod
    def solve(self, theta: FloatArray) -> FloatArray: ...

    @abstractmethod
    def eigenvalues(self) -> tuple[FloatArray, tuple[int, ...]]: ...

    def condition_number(self) -> float:
        values, _ = self.eigenvalues()
        return float(values[0] / values[-1]) if len(values) else 1.0

    def dense(self, *, limit: int = 4096) -> FloatArray:
        dense_limit(self.width, limit, "a dense Gram matrix")
        return self.apply(np.eye(self.width))


class DenseGram(BaseGram):
    """Ḡ given by a square-root factor: Ḡ = AᵀA with A = diag(√μ) F."""

    def __init__(self, factor: FloatArray) -> None:
        self.factor = factor  # (k, width)

    @property
    def width(self) -> int:
        return self.factor.shape[1]

    @cached_property
    def _svd(self) -> tuple[FloatArray, FloatArray]:
        """Non-zero singular values of A and their right vectors (rank, width)."""
        _, singular, right = np.linalg.svd(self.factor, full_matrices=False)
        kept = singular > rank_tolerance(self.factor.shape, singular)
        return singular[kept], right[kept]

    def apply(self, theta: FloatArray) -> FloatArray:
        return np.asarray((check_rows(theta, self.width) @ self.factor.T) @ self.factor)

    def solve(self, theta: FloatArray) -> FloatArray:
        singular, right = self._svd
        return np.asarray((check_rows(theta, self.width) @ right.T) / singular**2 @ right)

    def whitening(self) -> FloatArray:
        """B of shape (width, rank) with BᵀḠB = I."""
        singular, right = self._svd
        return right.T / singular

    def eigenvalues(self) -> tuple[FloatArray, tuple[int, ...]]:
        return group_equal(self._svd[0] ** 2)


class SpectralGram(DenseGram):
    """Ḡ given by its positive eigenvalues, ascending, and their vectors (width, rank)."""

    def __init__(self, values: FloatArray, vectors: FloatArray) -> None:
        super().__init__(np.sqrt(values)[:, None] * vectors.T)
        self._spectrum = np.sqrt(values[::-1]), vectors[:, ::-1].T

    @cached_property
    def _svd(self) -> tuple[FloatArray, FloatArray]:
        return self._spectrum


def group_equal(
    values: FloatArray, tolerance: float = 1e-12, *, relative_to_largest: bool = True
) -> tuple[FloatArray, tuple[int, ...]]:
    """Distinct values, descending, with multiplicities.

    Neighbours count as equal within `tolerance` times the largest value (rounding noise of a
    decomposition), or times their own magnitude.
    """
    ordered = np.sort(values)[::-1]
    if len(ordered) == 0:
        return ordered, ()
    scale = ordered[0] if relative_to_largest else ordered
    starts = np.flatnonzero(np.diff(ordered, prepend=np.inf) < -tolerance * scale)
    counts = np.diff(np.append(starts, len(ordered)))
    return ordered[starts], tuple(counts.tolist())


def dense_limit(
    size: int | None,
    limit: int,
    what: str,
    instead: str = "use the operators (apply, solve) or raise limit if it fits",
) -> None:
    """Raise unless a dense object over `size` columns is allowed."""
    if size is None or size > limit:
        raise TooManyLabelsError(size, limit, what, instead)
