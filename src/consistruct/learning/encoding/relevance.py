"""Which ranking loss an estimator means, and how ranks of items are judged by it."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from consistruct.labels import Ragged
from consistruct.learning.encoding.labels import written_as
from consistruct.learning.encoding.queries import QueryBatch, is_query_list, pack_queries
from consistruct.losses import parse_loss
from consistruct.losses.base import Loss, Sizes
from consistruct.losses.rankings.orders import RelevanceLoss
from consistruct.protocols import FloatArray, LabelArray

__all__ = [
    "RelevanceLabels",
    "losses_of_orders",
    "orders_of_ranks",
    "orders_of_scores",
    "query_losses",
    "ranking_loss",
    "ranks_of_orders",
    "takes_queries",
]

ANY_LENGTH = 2**40  # stands for the length that a spec leaves open: no cut-off reaches it


class RelevanceLabels:
    """Relevance grades of the items of queries: what item rankings are learnt from."""


def takes_queries(loss: Any, X: Any, y: Any, groups: Any = None) -> bool:
    """Whether items of queries are to be ranked: a ranking loss, with one relevance per item.

    >>> takes_queries("ndcg", np.zeros((5, 2)), np.zeros(5), groups=[0, 0, 0, 1, 1])
    True
    >>> takes_queries("ndcg", np.zeros((5, 2)), np.zeros((5, 3)))  # the same items everywhere
    False
    """
    if written_as(loss) != "relevance":
        return False
    if groups is not None or is_query_list(X):
        return True
    if y is None:
        return False
    shape = np.shape(y) if not isinstance(y, list | tuple) else np.shape(np.asarray(y, object))
    fixed = getattr(loss, "n", None) is not None
    return len(shape) == 1 or (shape[1:] == (1,) and not fixed)


def ranking_loss(loss: Loss | str, grades: Ragged) -> RelevanceLoss:
    """The loss for queries of any length and for the grades that occur.

    A spec may leave the length out ("ndcg", "ndcg::10", "precision_at::3"): it is then the family
    of all lengths. More grades than the loss names are added to it.
    """
    if isinstance(loss, str):
        fields = loss.split(":")
        fixed = len(fields) > 1 and fields[1] != ""
        found = parse_loss(loss, sizes=Sizes(n_parts=ANY_LENGTH, n_states=2))
        assert isinstance(found, RelevanceLoss)
        if not fixed:
            found = dataclasses.replace(found, n=None)  # type: ignore[type-var]
    else:
        assert isinstance(loss, RelevanceLoss)
        found = loss
    if found.n is not None:
        other = np.flatnonzero(grades.lengths != found.n)
        if len(other):
            name, _, _ = loss.partition(":") if isinstance(loss, str) else (None, "", "")
            hint = f"write {name}::{found.n} for a cut-off" if name else "use n=None"
            raise ValueError(
                f"{found!r} ranks {found.n} items, but query {other[0]} has "
                f"{grades.lengths[other[0]]}; {hint}"
            )
    return with_grades(found, grades)


def with_grades(loss: RelevanceLoss, grades: Ragged) -> RelevanceLoss:
    """The same loss, with as many grades as the truths have."""
    most = int(grades.values.max(initial=0))
    return loss if most < loss.n_grades else loss.with_grades(most)


def orders_of_scores(scores: Ragged) -> Ragged:
    """Items of each query, greatest score first; equal scores in the order of the items."""
    order = np.lexsort((-scores.values, scores.rows))
    return scores.with_values(order - scores.offsets[scores.rows])


def ranks_of_orders(orders: Ragged) -> Ragged:
    """Rank of each item in its query, 1 is best, from the items of each query, best first."""
    starts = orders.offsets[orders.rows]
    ranks = np.empty(len(starts), dtype=np.int64)
    ranks[orders.values + starts] = np.arange(len(starts)) - starts + 1
    return orders.with_values(ranks)


def orders_of_ranks(ranks: Ragged, name: str = "y_pred") -> Ragged:
    """Items of each query, best first, from ranks that are 1..n without ties."""
    values = np.asarray(ranks.values)
    order = np.lexsort((values, ranks.rows))
    expected = np.arange(len(values)) - ranks.offsets[ranks.rows] + 1
    wrong = values[order] != expected
    if wrong.any():
        query = int(ranks.rows[np.argmax(wrong)])
        shown = np.asarray(ranks[query]).tolist()
        listed = ", ".join(map(str, shown[:8])) + (", …" if len(shown) > 8 else "")
        raise ValueError(
            f"{name} must contain the ranks 1..{len(shown)} of the items of query {query} without "
            f"ties, 1 is best, got {listed}"
        )
    return ranks.with_values(order - ranks.offsets[ranks.rows])


def losses_of_orders(loss: RelevanceLoss, orders: Ragged, grades: Ragged) -> FloatArray:
    """Task loss of each query, (n,); grades that training never saw are taken as they are."""
    return with_grades(loss, grades)(orders, grades)


def query_losses(y_true: Any, y_pred: Any, loss: Loss | str, groups: Any) -> FloatArray:
    """Loss of each query for ranks as `StructuredPredictor.predict` gives them."""
    batch, grades = _batch_of(y_true, groups)
    ranks = batch.truths(y_pred, "y_pred")
    return losses_of_orders(ranking_loss(loss, grades), orders_of_ranks(ranks), grades)


def losses_of_scores(y_true: Any, scores: Any, loss: Loss | str, groups: Any) -> FloatArray:
    """Loss of each query whose items are sorted by scores, greatest first."""
    batch, grades = _batch_of(y_true, groups)
    values = np.asarray(scores, dtype=np.float64).reshape(-1)
    if values.shape != (batch.n_items,) or np.isnan(values).any():
        raise ValueError(
            f"scores must contain one number per item, shape ({batch.n_items},), without NaN, "
            f"got shape {np.shape(scores)}"
        )
    orders = orders_of_scores(batch.pack(values))
    return losses_of_orders(ranking_loss(loss, grades), orders, grades)


def _batch_of(y_true: Any, groups: Any) -> tuple[QueryBatch, Ragged]:
    """Queries of truths alone: items stand for their numbers."""
    if groups is None:
        rows = [np.asarray(row) for row in y_true]
        batch = pack_queries([np.zeros((row.size, 1)) for row in rows])
        return batch, batch.truths(rows, "y_true")
    truths: LabelArray = np.asarray(y_true)
    batch = pack_queries(np.zeros((len(truths), 1)), groups)
    return batch, batch.truths(truths, "y_true")
