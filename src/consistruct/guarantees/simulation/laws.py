"""Distributions of the truth at the anchors of a problem: drawn from, averaged, never listed.

The conditional distribution at an input is a mixture Σ_j φ_j(x) p_j of m anchor distributions p_j,
so that each conditional probability q_c(x) = ⟨(p_j(c))_j, φ(x)⟩ lies in the RKHS of φ. Its norm is
known, and so is Q = Σ_c ‖q_c‖, or a bound on it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from consistruct.labels.base import ENUMERATION_LIMIT
from consistruct.labels.partition import Partition
from consistruct.losses import Block
from consistruct.losses.base import Loss, dense_target
from consistruct.protocols import FloatArray, IntArray, LabelArray

__all__ = ["AnchorLaws", "BlockLaws", "ListedLaws", "ProductLaws", "anchor_laws"]


@dataclass(frozen=True, eq=False)
class AnchorLaws(ABC):
    """m distributions of the truth, as probabilities of whatever they are built from."""

    probabilities: FloatArray

    @property
    def n_anchors(self) -> int:
        return len(self.probabilities)

    @abstractmethod
    def sample(self, anchors: IntArray, rng: np.random.Generator) -> LabelArray:
        """One truth from the distribution of each given anchor."""

    @abstractmethod
    def mean_target(self, loss: Loss) -> FloatArray:
        """E[u_y] of each distribution in the loss's own coordinates, (m, width)."""

    @abstractmethod
    def q_bound(self) -> float:
        """Σ_c ‖q_c‖, or a bound on it."""


@dataclass(frozen=True, eq=False)
class ListedLaws(AnchorLaws):
    """probabilities (m, number of truths)."""

    def sample(self, anchors: IntArray, rng: np.random.Generator) -> LabelArray:
        return _draw(self.probabilities, anchors, rng)

    def mean_target(self, loss: Loss) -> FloatArray:
        return self.probabilities @ dense_target(loss.target(loss.truths.enumerate()))

    def q_bound(self) -> float:
        return float(np.linalg.norm(self.probabilities, axis=0).sum())


@dataclass(frozen=True, eq=False)
class BlockLaws(AnchorLaws):
    """probabilities (m, blocks), uniform within each block of labels."""

    partition: Partition

    def sample(self, anchors: IntArray, rng: np.random.Generator) -> LabelArray:
        block = _draw(self.probabilities, anchors, rng)
        sizes = np.array(self.partition.block_sizes)
        return np.array(self.partition.first_labels)[block] + rng.integers(sizes[block])

    def mean_target(self, loss: Loss) -> FloatArray:
        # labels of a block share their target
        first = np.array(self.partition.first_labels)
        return self.probabilities @ dense_target(loss.target(first))

    def q_bound(self) -> float:
        # s labels with q_c = q_block/s: the sum over labels is the sum over blocks
        return float(np.linalg.norm(self.probabilities, axis=0).sum())


@dataclass(frozen=True, eq=False)
class ProductLaws(AnchorLaws):
    """probabilities (m, T, s) of independent parts: s^T truths that are never listed."""

    def sample(self, anchors: IntArray, rng: np.random.Generator) -> LabelArray:
        ends = np.cumsum(self.probabilities, axis=2)[:, :, :-1]
        heights = rng.random((len(anchors), self.probabilities.shape[1]))
        return (heights[:, :, None] >= ends[anchors]).sum(axis=2)

    def mean_target(self, loss: Loss) -> FloatArray:
        # u_y = −one-hot(y)/T
        flat = self.probabilities.reshape(self.n_anchors, -1)
        return -flat / self.probabilities.shape[1]

    def q_bound(self) -> float:
        # ‖q_c‖₂ ≤ ‖q_c‖₁, and Σ_c Σ_j p_j(c) = m; the sum over s^T truths is not listed
        return float(self.n_anchors)


def anchor_laws(loss: Loss, n_anchors: int, noise: float, rng: np.random.Generator) -> AnchorLaws:
    """Anchors with a mode each: the mode with probability 1 − noise, else uniform over everything.

    Modes of neighbouring anchors differ. A Hamming loss has one mode per part, a block loss one
    block; other losses must have listed truths.
    """
    if loss.wrong_parts is not None:
        T, s = loss.wrong_parts
        assert T is not None
        modes = rng.integers(s, size=(n_anchors, T))
        laws = np.full((n_anchors, T, s), noise / s)
        np.put_along_axis(laws, modes[:, :, None], 1.0 - noise + noise / s, axis=2)
        return ProductLaws(laws)
    if isinstance(loss, Block):
        sizes = np.array(loss.partition.block_sizes, dtype=np.float64)
        return BlockLaws(
            _peaked(n_anchors, sizes / sizes.sum(), noise, rng.permutation(len(sizes))),
            loss.partition,
        )
    n_truths = loss.truths.size
    if n_truths is None or n_truths > ENUMERATION_LIMIT:
        raise ValueError(
            f"a synthetic problem needs at most {ENUMERATION_LIMIT} truths, or a Hamming or block "
            f"loss, got {loss!r}"
        )
    uniform = np.full(n_truths, 1.0 / n_truths)
    return ListedLaws(_peaked(n_anchors, uniform, noise, rng.permutation(n_truths)))


def _peaked(n_anchors: int, base: FloatArray, noise: float, order: IntArray) -> FloatArray:
    laws = np.tile(noise * base, (n_anchors, 1))
    laws[np.arange(n_anchors), order[np.arange(n_anchors) % len(order)]] += 1.0 - noise
    return laws


def _draw(laws: FloatArray, anchors: IntArray, rng: np.random.Generator) -> IntArray:
    """An outcome from row `anchors[i]` each, by one search in all cumulated rows."""
    ends = np.cumsum(laws, axis=1)
    ends /= ends[:, -1:]
    ladder = (ends + np.arange(len(laws))[:, None]).ravel()
    found = np.searchsorted(ladder, anchors + rng.random(len(anchors)), side="right")
    return np.minimum(found - anchors * laws.shape[1], laws.shape[1] - 1)
