"""Well-specified problems whose optimum, surrogate risk and task risk are known exactly.

The conditional distribution at an input is a mixture Σ_j φ_j(x) p_j of m anchor distributions p_j,
so that each conditional probability q_c(x) = ⟨(p_j(c))_j, φ(x)⟩ lies in the RKHS of φ. Its norm is
known, and so is Q = Σ_c ‖q_c‖, or a bound on it. Distributions are drawn from and averaged, never
listed.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from consistruct._validation import check_count, check_number
from consistruct.exceptions import NotInSpanError
from consistruct.losses import Block, Loss
from consistruct.losses.base import dense_target
from consistruct.protocols import FloatArray, IntArray, LabelArray
from consistruct.structures import Structure
from consistruct.structures.base import ENUMERATION_LIMIT
from consistruct.structures.classes import Partition

N_INPUTS = 256  # enough that hat functions of 24 anchors have ten inputs each
INDISTINCT = 1e-12  # differences of expected losses that are rounding


@dataclass(frozen=True, eq=False)
class AnchorDistributions(ABC):
    """m distributions of the true label, as probabilities of whatever they are built from."""

    probabilities: FloatArray

    @property
    def n_anchors(self) -> int:
        return len(self.probabilities)

    @abstractmethod
    def sample(self, anchors: IntArray, rng: np.random.Generator) -> LabelArray:
        """Draw one true label from the distribution of each given anchor."""

    @abstractmethod
    def mean_target(self, loss: Loss) -> FloatArray:
        """Return E[u_y] of each distribution in the loss's own coordinates, (m, width)."""

    @abstractmethod
    def q_bound(self) -> float:
        """Return Σ_c ‖q_c‖, or a bound on it."""


@dataclass(frozen=True, eq=False)
class ListedDistributions(AnchorDistributions):
    """probabilities (m, number of true labels)."""

    def sample(self, anchors: IntArray, rng: np.random.Generator) -> LabelArray:
        return _draw(self.probabilities, anchors, rng)

    def mean_target(self, loss: Loss) -> FloatArray:
        return self.probabilities @ dense_target(loss.target(loss.true_labels.enumerate()))

    def q_bound(self) -> float:
        return float(np.linalg.norm(self.probabilities, axis=0).sum())


@dataclass(frozen=True, eq=False)
class BlockDistributions(AnchorDistributions):
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
class ProductDistributions(AnchorDistributions):
    """probabilities (m, T, s) of independent parts: s^T true labels that are never listed."""

    def sample(self, anchors: IntArray, rng: np.random.Generator) -> LabelArray:
        ends = np.cumsum(self.probabilities, axis=2)[:, :, :-1]
        heights = rng.random((len(anchors), self.probabilities.shape[1]))
        return (heights[:, :, None] >= ends[anchors]).sum(axis=2)

    def mean_target(self, loss: Loss) -> FloatArray:
        # u_y = −one-hot(y)/T
        flat = self.probabilities.reshape(self.n_anchors, -1)
        return -flat / self.probabilities.shape[1]

    def q_bound(self) -> float:
        # ‖q_c‖₂ ≤ ‖q_c‖₁, and Σ_c Σ_j p_j(c) = m; the sum over s^T true labels is not listed
        return float(self.n_anchors)


def anchor_distributions(
    loss: Loss, n_anchors: int, noise: float, rng: np.random.Generator
) -> AnchorDistributions:
    """Make anchors with a mode each: the mode with probability 1 − noise, else uniform.

    Modes of neighboring anchors differ. A Hamming loss has one mode per part, a block loss one
    block; other losses must have listed true labels.
    """
    if loss.hamming_shape is not None:
        T, s = loss.hamming_shape
        assert T is not None
        modes = rng.integers(s, size=(n_anchors, T))
        probabilities = np.full((n_anchors, T, s), noise / s)
        np.put_along_axis(probabilities, modes[:, :, None], 1.0 - noise + noise / s, axis=2)
        return ProductDistributions(probabilities)
    if isinstance(loss, Block):
        sizes = np.array(loss.partition.block_sizes, dtype=np.float64)
        return BlockDistributions(
            _peaked(n_anchors, sizes / sizes.sum(), noise, rng.permutation(len(sizes))),
            loss.partition,
        )
    n_true_labels = loss.true_labels.size
    if n_true_labels is None or n_true_labels > ENUMERATION_LIMIT:
        raise ValueError(
            f"a synthetic problem needs at most {ENUMERATION_LIMIT} true labels, or a Hamming or "
            "block "
            f"loss, got {loss!r}"
        )
    uniform = np.full(n_true_labels, 1.0 / n_true_labels)
    return ListedDistributions(_peaked(n_anchors, uniform, noise, rng.permutation(n_true_labels)))


def _peaked(n_anchors: int, base: FloatArray, noise: float, order: IntArray) -> FloatArray:
    peaked = np.tile(noise * base, (n_anchors, 1))
    peaked[np.arange(n_anchors), order[np.arange(n_anchors) % len(order)]] += 1.0 - noise
    return peaked


def _draw(probabilities: FloatArray, anchors: IntArray, rng: np.random.Generator) -> IntArray:
    """Draw from row `anchors[i]` each, by one search in all cumulated rows."""
    ends = np.cumsum(probabilities, axis=1)
    ends /= ends[:, -1:]
    ladder = (ends + np.arange(len(ends))[:, None]).ravel()
    outcome = np.searchsorted(ladder, anchors + rng.random(len(anchors)), side="right")
    return np.minimum(outcome - anchors * ends.shape[1], ends.shape[1] - 1)


@dataclass(frozen=True, eq=False)
class SyntheticProblem:
    """Inputs on [0, 1], hat functions as features, and a mixture of anchor distributions as q(x).

    An input x is one of `n_inputs` equally likely points, φ(x) the m hat functions at m equally
    spaced knots: non-negative, of sum 1. Then q_c(x) = Σ_j φ_j(x) p_j(c) lies in the RKHS of
    φ, and E[u_y | x] = φ(x)U with U the mean targets at the anchors. So W* = −U, and both risks
    of any W are finite sums over the inputs: nothing is estimated.
    """

    loss: Loss
    scores: Structure
    anchors: AnchorDistributions
    features: FloatArray  # (n_inputs, m)
    noise: float

    @property
    def radius(self) -> float:
        """R, the largest ‖φ(x)‖."""
        return math.sqrt(float((self.features**2).sum(axis=1).max()))

    @property
    def q_bound(self) -> float:
        """Q ≥ Σ_c ‖q_c‖."""
        return self.anchors.q_bound()

    @cached_property
    def mean_target(self) -> FloatArray:
        """U in the loss's own coordinates, (m, own width)."""
        return self.anchors.mean_target(self.loss)

    def in_scores(self, target: FloatArray) -> FloatArray:
        """Turn targets into coordinates of the scores: u_y itself, or Ḡ⁺E_c[F_c L(c, y)]."""
        own, space = self.loss.score_space, self.scores
        if space == own:
            return target
        try:
            return space.coordinates(own)(target)
        except NotInSpanError:
            return space.gram().solve(space.cross_gram(own)(target))

    @cached_property
    def optimum(self) -> FloatArray:
        """W* = −U in the coordinates of the scores, (m, width)."""
        return -self.in_scores(self.mean_target)

    def targets(self, true: LabelArray) -> FloatArray:
        """Return u_y of given true labels in the coordinates of the scores, (n, width)."""
        return self.in_scores(dense_target(self.loss.target(true)))

    def sample(self, n: int, rng: np.random.Generator) -> tuple[IntArray, LabelArray]:
        """Draw n fresh examples: rows of `features`, and true labels."""
        rows = rng.integers(len(self.features), size=n)
        # an anchor from the distribution φ(x), then a true label from the anchor's distribution
        ends = np.cumsum(self.features, axis=1)
        chosen = (rng.random(n)[:, None] >= ends[rows, :-1]).sum(axis=1)
        return rows, self.anchors.sample(chosen, rng)

    def surrogate_excess(self, weights: FloatArray, *, centered: bool = False) -> float:
        """Return ½ E_x ‖φ(x)(W − W*)‖²_Ḡ, exact; `centered` leaves out constants in the scores.

        A constant added to all scores changes no prediction, and the centered basis cannot learn
        it.
        """
        gap = self.features @ (weights - self.optimum)
        square = (gap * self.scores.gram().apply(gap)).sum(axis=1)
        if centered and self.scores.contains_constant:
            square = square - (gap @ self.scores.mean_embedding()) ** 2
        return max(0.5 * float(square.mean()), 0.0)

    def task_excess(self, weights: FloatArray) -> float:
        """Return E_x of the expected loss of the prediction over that of the best one; exact.

        The best is among the labels that the scores can predict, as in the theorem.
        """
        predicted = self.scores.decode(self.features @ weights)
        excess = self._expected_loss(predicted) - self._least_loss
        return float(np.where(excess > INDISTINCT, excess, 0.0).mean())

    def _expected_loss(self, predicted: LabelArray) -> FloatArray:
        """⟨F_ŷ, E[u_y | x]⟩, (n_inputs,); the offset is the same for every prediction."""
        embedded = self.loss.score_space.embed(predicted)
        return np.asarray((embedded * (self.features @ self.mean_target)).sum(axis=1))

    @cached_property
    def _least_loss(self) -> FloatArray:
        predictable = self.scores.predictable()
        if predictable.indices is None:
            own = self.loss.score_space
            return self._expected_loss(own.decode(-self.features @ self.mean_target))
        labels = self.loss.predictions.unindex(predictable.indices)
        expected = self.features @ self.mean_target @ self.loss.score_space.embed(labels).T
        return np.asarray(expected.min(axis=1))


def synthetic_problem(
    loss: Loss,
    scores: Structure | None = None,
    *,
    n_anchors: int = 4,
    noise: float = 0.5,
    n_inputs: int = N_INPUTS,
    random_state: int = 0,
) -> SyntheticProblem:
    """Make a problem: each anchor has one likely true label, and in between distributions mix.

    Parameters
    ----------
    loss : Loss
        Hamming and block losses of any size; others with listed true labels.
    scores : ScoreSpace, optional
        The loss's own if not given.
    n_anchors : int
        m: how many distributions there are to be learned. The norm of the optimum grows with it.
    noise : float
        Share of the mass that is uniform over all true labels (per part for Hamming).
    n_inputs : int
        Number of inputs, equally likely.
    random_state : int
        Which true labels are likely.

    Examples
    --------
    >>> from consistruct.losses import Hamming
    >>> problem = synthetic_problem(Hamming(20), n_anchors=3)   # 2^20 labels
    >>> problem.surrogate_excess(problem.optimum), problem.task_excess(problem.optimum)
    (0.0, 0.0)
    """
    n_anchors = check_count(n_anchors, "n_anchors", minimum=2)
    n_inputs = check_count(n_inputs, "n_inputs")
    noise = check_number(noise, "noise", low=0.0, high=1.0)
    space = loss.score_space if scores is None else scores
    if space.n_labels != loss.n_labels:
        raise ValueError(
            f"scores must cover the {loss.n_labels} predictions of {loss!r}, got {space!r}"
        )
    anchors = anchor_distributions(loss, n_anchors, noise, np.random.default_rng(random_state))
    places = (np.arange(n_inputs) + 0.5) / n_inputs * (n_anchors - 1)
    features = np.maximum(1.0 - np.abs(places[:, None] - np.arange(n_anchors)), 0.0)
    return SyntheticProblem(loss, space, anchors, features, noise)
