"""Well-specified problems whose optimum, surrogate risk and task risk are known exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from consistruct._validation import check_count, check_number
from consistruct.exceptions import NotInSpanError
from consistruct.guarantees.simulation.laws import AnchorLaws, anchor_laws
from consistruct.losses.base import Loss, as_loss, dense_target
from consistruct.protocols import FloatArray, IntArray, LabelArray
from consistruct.scores.base import BaseScoreSpace

__all__ = ["SyntheticProblem", "synthetic_problem"]

N_INPUTS = 256
INDISTINCT = 1e-12  # differences of expected losses that are rounding


@dataclass(frozen=True, eq=False)
class SyntheticProblem:
    """Inputs on [0, 1], hat functions as features, and a mixture of anchor distributions as q(x).

    An input x is one of `n_inputs` equally likely points, φ(x) the m hat functions at m equally
    spaced knots: non-negative, of sum 1. Then q_c(x) = Σ_j φ_j(x) p_j(c) lies in the RKHS of
    φ, and E[u_y | x] = φ(x)U with U the mean targets at the anchors. So W* = −U, and both risks
    of any W are finite sums over the inputs: nothing is estimated.
    """

    loss: Loss
    scores: BaseScoreSpace
    laws: AnchorLaws
    features: FloatArray  # (n_inputs, m)
    noise: float

    @property
    def radius(self) -> float:
        """R, the largest ‖φ(x)‖."""
        return math.sqrt(float((self.features**2).sum(axis=1).max()))

    @property
    def q_bound(self) -> float:
        """Q ≥ Σ_c ‖q_c‖."""
        return self.laws.q_bound()

    @cached_property
    def mean_target(self) -> FloatArray:
        """U in the loss's own coordinates, (m, own width)."""
        return self.laws.mean_target(self.loss)

    def in_scores(self, target: FloatArray) -> FloatArray:
        """Targets in the coordinates of the scores: u_y itself, or Ḡ⁺E_c[F_c L(c, y)]."""
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
        """u_y of given truths in the coordinates of the scores, (n, width)."""
        return self.in_scores(dense_target(self.loss.target(true)))

    def sample(self, n: int, rng: np.random.Generator) -> tuple[IntArray, LabelArray]:
        """n fresh examples: rows of `features`, and truths."""
        rows = rng.integers(len(self.features), size=n)
        # an anchor from the distribution φ(x), then a truth from the anchor's distribution
        ends = np.cumsum(self.features, axis=1)
        anchors = (rng.random(n)[:, None] >= ends[rows, :-1]).sum(axis=1)
        return rows, self.laws.sample(anchors, rng)

    def surrogate_excess(self, weights: FloatArray, *, centred: bool = False) -> float:
        """½ E_x ‖φ(x)(W − W*)‖²_Ḡ, exact; `centred` leaves out constants that the scores contain.

        A constant added to all scores changes no prediction, and the centred basis cannot learn it.
        """
        gap = self.features @ (weights - self.optimum)
        square = (gap * self.scores.gram().apply(gap)).sum(axis=1)
        if centred and self.scores.contains_constant:
            square = square - (gap @ self.scores.mean_embedding()) ** 2
        return max(0.5 * float(square.mean()), 0.0)

    def task_excess(self, weights: FloatArray) -> float:
        """E_x of the expected loss of the prediction over that of the best one; exact.

        The best is among the labels that the scores can predict, as in the theorem.
        """
        predicted = self.scores.decoder()(self.features @ weights)
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
            return self._expected_loss(own.decoder()(-self.features @ self.mean_target))
        labels = self.loss.predictions.unindex(predictable.indices)
        expected = self.features @ self.mean_target @ self.loss.score_space.embed(labels).T
        return np.asarray(expected.min(axis=1))


def synthetic_problem(
    loss: Loss | str,
    scores: BaseScoreSpace | None = None,
    *,
    n_anchors: int = 4,
    noise: float = 0.5,
    n_inputs: int = N_INPUTS,
    random_state: int = 0,
) -> SyntheticProblem:
    """A problem for a loss: each anchor has one likely truth, and in between the distributions mix.

    Parameters
    ----------
    loss : Loss or spec
        Hamming and block losses of any size; others with listed truths.
    scores : ScoreSpace, optional
        The loss's own if not given.
    n_anchors : int
        m: how many distributions there are to be learnt. The norm of the optimum grows with it.
    noise : float
        Share of the mass that is uniform over all truths (per part for Hamming).
    n_inputs : int
        Number of inputs, equally likely.
    random_state : int
        Which truths are likely.

    Examples
    --------
    >>> from consistruct.losses import Hamming
    >>> problem = synthetic_problem(Hamming(20), n_anchors=3)   # 2^20 labels
    >>> problem.surrogate_excess(problem.optimum), problem.task_excess(problem.optimum)
    (0.0, 0.0)
    """
    loss = as_loss(loss)
    n_anchors = check_count(n_anchors, "n_anchors", minimum=2)
    n_inputs = check_count(n_inputs, "n_inputs")
    noise = check_number(noise, "noise", low=0.0, high=1.0)
    space = loss.score_space if scores is None else scores
    if space.n_labels != loss.n_labels:
        raise ValueError(
            f"scores must cover the {loss.n_labels} predictions of {loss!r}, got {space!r}"
        )
    laws = anchor_laws(loss, n_anchors, noise, np.random.default_rng(random_state))
    places = (np.arange(n_inputs) + 0.5) / n_inputs * (n_anchors - 1)
    features = np.maximum(1.0 - np.abs(places[:, None] - np.arange(n_anchors)), 0.0)
    return SyntheticProblem(loss, space, laws, features, noise)
