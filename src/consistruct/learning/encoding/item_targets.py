"""What each item of a query is regressed on, and how much its query counts.

A loss on orders whose score space is `Positions` is L(σ, y) = o_y + Σ_i u_i(y) d(σ(i)). Orders do
not change if a constant is added to all scores of a query, so only contrasts of items matter; on
them the Gram operator is a number g_n = Var(d)·n/(n−1). The quadratic surrogate of a query is then

    ½ g_n ‖P(θ + u)‖²,      P the centering of the items of the query,

and its minimizer is θ = −E[u | x] up to a constant: sorting by it is the Bayes decision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from consistruct.decisions.statistics import Statistic
from consistruct.exceptions import CapabilityError
from consistruct.learning.encoding.queries import centered, orders_of_scores
from consistruct.losses import MeanAveragePrecision
from consistruct.losses.base import Loss, dense_target
from consistruct.losses.rankings.orders import RelevanceLoss, rows_at
from consistruct.protocols import FloatArray, IntArray
from consistruct.structures import Positions, Ragged

__all__ = ["ItemTargets", "item_targets", "require_item_scores"]


@dataclass(frozen=True, eq=False, repr=False)
class ItemTargets(Statistic):
    """τ(y) = P u(y): the target of each item of a query, less their mean.

    All batches are packed (`Ragged`), one number per item. Sorting by them is the Bayes decision;
    the expected loss of a query is not reported, since the mean of its targets is left out.

    Parameters
    ----------
    loss : RelevanceLoss
        The family of all query lengths, or a member. For losses that need a score per pair of
        items the target is the closest one of single items.

    Examples
    --------
    >>> from consistruct.losses import PrecisionAt
    >>> statistic = ItemTargets(PrecisionAt(None, 1))
    >>> grades = Ragged.pack([[0, 1], [0, 0, 1, 0]])
    >>> statistic.values(grades).values
    array([ 0.5 , -0.5 ,  0.25,  0.25, -0.75,  0.25])
    >>> statistic.decode(statistic.values(grades)).values  # items of each query, best first
    array([1, 0, 2, 0, 1, 3])
    """

    loss: RelevanceLoss

    @property
    def width(self) -> int:
        return 1

    def values(self, true: Ragged) -> Any:
        return true.with_values(-item_targets(self.loss, true)[0])

    def target(self, expected: Any) -> Any:
        return expected

    def project(self, expected: Any) -> Any:
        """Less the mean of each query."""
        return expected.with_values(centered(expected.values, expected.offsets))

    def decode(self, expected: Any) -> Any:
        """Items of each query, best first; equal ones in the order of the data."""
        return orders_of_scores(expected.with_values(-expected.values))

    def squared_error(self, error: Any) -> FloatArray:
        weight = contrast_weights(self.loss, error.lengths)
        squares = centered(error.values, error.offsets) ** 2
        return np.asarray(0.5 * weight * np.add.reduceat(squares, error.offsets[:-1]))

    def offset(self, expected: Any) -> FloatArray:
        raise self._within_queries()

    def expected_loss(self, expected: Any, pred: Any) -> FloatArray:
        raise self._within_queries()

    def expected_losses(self, expected: Any) -> FloatArray:
        raise self._within_queries()

    def _within_queries(self) -> CapabilityError:
        return CapabilityError(
            self,
            "targets comparable between queries",
            "the expected loss of a query",
            "scores of items are comparable only within a query; expected_target returns them",
        )

    def with_loss(self, loss: Loss) -> Self:
        if loss == self.loss:
            return self
        raise CapabilityError(
            self,
            "a statistic of the true labels",
            f"changing the loss to {loss!r} after fitting",
            f"the model was fitted on the targets of {self.loss!r}; fit again with the new loss",
        )


def require_item_scores(loss: RelevanceLoss, scores: object) -> None:
    """Refuse a loss that item scores do not express, unless ``scores="items"`` accepts that."""
    if scores not in (None, "items"):
        raise ValueError(
            f"scores of rankings with item features must be None or 'items', got {scores!r}"
        )
    if scores is None and loss.needs_pairs:
        raise CapabilityError(
            loss,
            "item scores",
            "a consistent model of single items",
            "it needs a score per pair of items; scores='items' sorts by the closest item scores, "
            "which is not consistent in general; NDCG, PrecisionAt, ExpectedRankUtility and "
            "PairwiseDisagreement with two grades need only item scores",
        )


def item_targets(loss: RelevanceLoss, grades: Ragged) -> tuple[FloatArray, FloatArray]:
    """−u of every item, (N,), centered in each query, and the weight g of each query, (n,).

    Queries in which all orders are alike (one item, a cut-off at the last) weigh 0.
    """
    targets, weight = np.zeros(len(grades.values)), np.zeros(len(grades))
    lengths = grades.lengths
    for length in np.unique(lengths).tolist():
        if length == 1:
            continue
        queries = np.flatnonzero(lengths == length)
        member = loss if loss.n is not None else loss.at(length)
        rows = member.true_labels.check(rows_at(grades, queries), "y")
        values, weight[queries] = _targets_at(member, rows), _contrast_weight_of(member, length)
        values = values - values.mean(axis=1, keepdims=True)
        places = grades.offsets[queries][:, None] + np.arange(length)
        targets[places] = values
    return targets, weight


def contrast_weights(loss: RelevanceLoss, lengths: IntArray) -> FloatArray:
    """g of queries of these lengths, (n,); 0 where all orders are alike."""
    weight = np.zeros(len(lengths))
    for length in np.unique(lengths[lengths > 1]).tolist():
        member = loss if loss.n is not None else loss.at(length)
        weight[lengths == length] = _contrast_weight_of(member, length)
    return weight


def _contrast_weight_of(loss: RelevanceLoss, n: int) -> float:
    if isinstance(loss, MeanAveragePrecision):
        return _contrast_weight(loss.sortable_scores())
    if loss.needs_pairs:
        # θ_ij = s_i − s_j: ½θᵀḠθ = ½ n(n+1)/12 ‖Ps‖², as for scores linear in the position
        return n * (n + 1) / 12
    space = loss.score_space
    assert isinstance(space, Positions)
    return _contrast_weight(space)


def _targets_at(loss: RelevanceLoss, grades: IntArray) -> FloatArray:
    """−u (n, length) for queries of one length."""
    n = grades.shape[1]
    if isinstance(loss, MeanAveragePrecision):
        return np.asarray(grades * _precision_slopes(n)[grades.sum(axis=1, keepdims=True)])
    if loss.needs_pairs:
        # θ_ij = s_i − s_j: the closest such scores are the row means of the antisymmetric −u
        first, second = np.triu_indices(n, 1)
        pairs = -dense_target(loss.target(grades))[:, 1:]
        sums = np.zeros(grades.shape)
        rows = np.arange(len(grades))[:, None]
        np.add.at(sums, (rows, first), pairs)
        np.subtract.at(sums, (rows, second), pairs)
        return sums / n
    return -dense_target(loss.target(grades))


def _contrast_weight(space: Positions) -> float:
    """The eigenvalue of Ḡ on contrasts of items."""
    contrast = np.zeros((1, space.width))
    contrast[0, :2] = 1.0, -1.0
    return float(space.gram().apply(contrast)[0, 0])


def _precision_slopes(n: int) -> FloatArray:
    """−u of a relevant item for 1 − average precision in Σ_i θ_i/σ(i), r = 0..n relevant, (n + 1,).

    Minus the loss is A/r with A = Σ_{i≤j relevant} 1/max(σ(i), σ(j)). Its projection on the scores
    1/σ has the slope Cov(A/r, 1/σ(k) − 1/σ(l)) / g for a relevant k and another l. With positions
    a, b, c of different items, counting the pairs that k and l take part in leaves

        (1/r) (E[1/a²] + (r−1) E[1/(a max(a,b))] − E[1/(a b)] − (r−1) E[1/(a max(b,c))]).
    """
    p = np.arange(1, n + 1, dtype=np.float64)
    inverse = 1.0 / p
    later = np.append(np.cumsum(inverse[::-1])[::-1][1:], 0.0)  # Σ_{b>a} 1/b
    pairs, triples = n * (n - 1), max(n * (n - 1) * (n - 2), 1)
    same = float((inverse**2).mean())
    apart = (inverse.sum() ** 2 - (inverse**2).sum()) / pairs
    joined = float((inverse * ((p - 1) / p + later)).sum())  # Σ_{a≠b} 1/(a max(a,b))
    every = float((2.0 * (p - 1) / p).sum())  # Σ_{b≠c} 1/max(b,c)
    others = (inverse.sum() * every - 2.0 * joined) / triples
    r = np.arange(n + 1, dtype=np.float64)
    slopes = (same - apart + (r - 1) * (joined / pairs - others)) / np.maximum(r, 1.0)
    variance = float(np.var(inverse)) * n / (n - 1)
    slopes[[0, n]] = 0.0  # all items are alike
    return slopes / variance
