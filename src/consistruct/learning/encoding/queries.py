"""Queries and their items, packed, and how their order is evaluated.

One matrix holds the features of all items, offsets say where each query starts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from consistruct._frames import as_array, is_frame, is_missing_label, is_table
from consistruct._validation import is_sparse
from consistruct.learning.encoding.labels import written_as
from consistruct.losses import parse_loss
from consistruct.losses.base import Loss, Sizes
from consistruct.losses.rankings.orders import RelevanceLoss
from consistruct.protocols import FloatArray, IntArray, LabelArray
from consistruct.structures import Ragged

__all__ = [
    "QueryBatch",
    "RelevanceLabels",
    "centered",
    "is_query_list",
    "losses_of_orders",
    "losses_of_scores",
    "orders_of_ranks",
    "orders_of_scores",
    "pack_queries",
    "query_losses",
    "query_means",
    "ranking_loss",
    "ranks_of_orders",
    "rows_of",
    "takes_queries",
    "with_grades",
]


@dataclass(frozen=True, eq=False)
class QueryBatch:
    """Items of all queries, query after query.

    Attributes
    ----------
    items : (N, d) array or CSR
        Features in the order in which they were given.
    positions : (N,) int array
        Where the packed items stand in the data: query q holds the rows
        ``positions[offsets[q]:offsets[q + 1]]``.
    offsets : (n + 1,) int array
    listed : bool
        Whether a list of queries was given; predictions are then lists too.
    """

    items: Any
    positions: IntArray
    offsets: IntArray
    listed: bool

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_items(self) -> int:
        return len(self.positions)

    @property
    def packed_items(self) -> Any:
        """Features of the items, query after query, (N, d)."""
        in_order = np.array_equal(self.positions, np.arange(self.items.shape[0]))
        return self.items if in_order else self.items[self.positions]

    def take(self, queries: Any) -> QueryBatch:
        """Some of the queries, by number, with the items of no other."""
        numbers = np.asarray(queries, dtype=np.int64)
        rows = rows_of(self.offsets, numbers)
        offsets = np.concatenate([[0], np.cumsum(np.diff(self.offsets)[numbers])])
        return QueryBatch(
            self.items[self.positions[rows]],
            np.arange(len(rows)),
            offsets.astype(np.int64),
            self.listed,
        )

    def pack(self, values: Any) -> Ragged:
        """One value per item, in the order of the data -> packed by query."""
        return Ragged(np.asarray(values)[self.positions], self.offsets)

    def unpack(self, packed: Ragged) -> Any:
        """Packed values -> an array in the order of the data, or a list of arrays."""
        if self.listed:  # positions are 0, 1, … then
            return [np.array(values) for values in packed]
        values = np.empty_like(packed.values)
        values[self.positions] = packed.values
        return values

    def grades(self, y: Any, name: str = "y") -> Ragged:
        """Relevance of the items as it was given, (N,) or a list per query, as packed grades."""
        if y is None:
            raise ValueError(
                f"rankings require {name} to be passed, the relevance of each item, got None"
            )
        y = as_array(y, name)
        if isinstance(y, Ragged) or (self.listed and not isinstance(y, np.ndarray)):
            rows = list(y)
            if len(rows) != len(self):
                raise ValueError(
                    f"{name} must contain the relevance of the items of {len(self)} queries, "
                    f"got {len(rows)} lists"
                )
            lengths = np.diff(self.offsets)
            for query, row in enumerate(rows):
                if np.shape(row) != (lengths[query],):
                    raise ValueError(
                        f"query {query} has {lengths[query]} items, but its {name} has shape "
                        f"{np.shape(row)}; pass one relevance per item"
                    )
            values = np.concatenate([np.asarray(row) for row in rows])
        else:
            values = np.asarray(y)
            if values.ndim == 2 and values.shape[1] == 1:
                values = values[:, 0]
            if values.shape != (self.n_items,):
                raise ValueError(
                    f"{name} must contain one relevance per item, shape ({self.n_items},), "
                    f"got {values.shape}"
                )
        return self.pack(_grades(values, name))


def _grades(values: Any, name: str) -> IntArray:
    if values.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must contain relevance grades 0, 1, 2, …, got dtype {values.dtype}"
        )
    whole = np.isfinite(values) & (values == np.floor(values)) & (values >= 0)
    if not whole.all():
        position = int(np.argmin(whole))
        raise ValueError(
            f"{name} must contain relevance grades 0, 1, 2, …, got {values[position]} for item "
            f"{position}; number the grades from 0, the least relevant"
        )
    return values.astype(np.int64)


def is_query_list(X: Any) -> bool:
    """Whether X is a list of (n_i, d) arrays, one per query.

    >>> is_query_list([np.zeros((2, 3)), np.zeros((5, 3))]), is_query_list([[1.0, 2.0]])
    (True, False)
    """
    if isinstance(X, Ragged):
        return True
    if not isinstance(X, list | tuple) or len(X) == 0:
        return False
    if is_frame(X[0]) or (isinstance(X[0], list | tuple) and is_table(X[0])):
        return True
    return all(is_sparse(query) or np.ndim(query) == 2 or np.size(query) == 0 for query in X)


def pack_queries(X: Any, groups: Any = None, *, one_query: bool = False) -> QueryBatch:
    """Queries from a list of (n_i, d) arrays, or from all items as rows with `groups`.

    `groups` is the query of each item ((N,), any labels, items of a query need not stand together)
    or, if it is shorter, the number of items of each query in turn, as LightGBM takes it. Without
    `groups` the rows of X are the items of one query where `one_query` allows that.

    >>> pack_queries(np.zeros((5, 1)), groups=["a", "b", "a", "b", "b"]).positions
    array([0, 2, 1, 3, 4])
    >>> pack_queries(np.zeros((5, 1)), groups=[2, 3]).offsets
    array([0, 2, 5])
    """
    if is_query_list(X):
        if groups is not None:
            raise ValueError(
                "groups are for items given as rows of one X; omit them for a list of queries"
            )
        queries: Sequence[Any] = list(X)
        for number, query in enumerate(queries):
            if (query.shape[0] if is_sparse(query) else len(query)) == 0:
                raise ValueError(f"query {number} is empty; leave out queries without items")
        lengths = np.array([q.shape[0] if is_sparse(q) else len(q) for q in queries])
        widths = {int(np.shape(query)[1]) for query in queries}
        if len(widths) > 1:
            raise ValueError(f"queries must have equally many features, got {sorted(widths)}")
        stacked = (
            sp.vstack([sp.csr_array(query) for query in queries], format="csr")
            if any(is_sparse(query) for query in queries)
            else np.concatenate([np.asarray(query) for query in queries])
        )
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        return QueryBatch(stacked, np.arange(int(offsets[-1])), offsets, listed=True)
    n_items = X.shape[0] if hasattr(X, "shape") else len(X)
    if groups is None:
        if not one_query:
            raise ValueError(
                "a ranking is learned from several queries: pass groups=, the query of each item, "
                "or X as a list with one (n_items, n_features) array per query"
            )
        return QueryBatch(X, np.arange(n_items), np.array([0, n_items]), listed=False)
    offsets, positions = _grouped(np.asarray(as_array(groups, "groups")), n_items)
    return QueryBatch(X, positions, offsets, listed=False)


def _grouped(groups: Any, n_items: int) -> tuple[IntArray, IntArray]:
    if groups.ndim == 1 and groups.dtype.kind in "iu" and len(groups) != n_items:
        if (groups <= 0).any():
            query = int(np.argmax(groups <= 0))
            raise ValueError(f"query {query} is empty; leave out queries without items")
        if int(groups.sum()) == n_items:
            return np.concatenate([[0], np.cumsum(groups)]).astype(np.int64), np.arange(n_items)
    if groups.shape != (n_items,):
        total = f" (which add up to {int(groups.sum())})" if groups.dtype.kind in "iu" else ""
        raise ValueError(
            f"groups must contain the query of each of the {n_items} items, or the sizes of the "
            f"queries, which add up to {n_items}; got shape {groups.shape}{total}"
        )
    if groups.dtype == object:  # a query may be called NA, so words are names here
        named = [isinstance(query, str) or not is_missing_label(query) for query in groups]
        gone = ~np.array(named, dtype=bool)
    else:
        gone = groups != groups  # NaN and NaT
    if gone.any():
        item = int(np.argmax(gone))
        shown = "NaN" if groups.dtype.kind == "f" else groups[item]
        raise ValueError(f"groups must name the query of each item, got {shown} for item {item}")
    try:
        _, first, inverse = np.unique(groups, return_index=True, return_inverse=True)
    except TypeError:
        raise ValueError(
            "groups must be of one type, such as numbers or strings, so that queries can be "
            "compared; convert them with astype(str)"
        ) from None
    order = np.argsort(first)  # queries in order of their first item
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    query_of = number[inverse]
    positions = np.argsort(query_of, kind="stable").astype(np.int64)
    return np.concatenate([[0], np.cumsum(np.bincount(query_of))]).astype(np.int64), positions


def query_means(values: FloatArray, offsets: IntArray) -> FloatArray:
    """Mean over the items of each query: (N, …) -> (n, …)."""
    lengths = np.diff(offsets).reshape((-1,) + (1,) * (values.ndim - 1))
    return np.asarray(np.add.reduceat(values, offsets[:-1], axis=0) / lengths)


def centered(values: FloatArray, offsets: IntArray) -> FloatArray:
    """Minus the mean over the items of each query: (N, …) -> (N, …)."""
    return np.asarray(values - np.repeat(query_means(values, offsets), np.diff(offsets), axis=0))


def rows_of(offsets: IntArray, queries: IntArray) -> IntArray:
    """Positions of the items of some queries, one after the other."""
    lengths = np.diff(offsets)[queries]
    if len(queries) == 0:
        return np.zeros(0, dtype=np.int64)
    starts = np.repeat(offsets[queries] - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
    return np.asarray(starts + np.arange(int(lengths.sum())))


# --- which ranking loss is meant, and how ranks are judged by it ---

ANY_LENGTH = 2**40  # stands for the length that a spec leaves open: no cut-off reaches it


class RelevanceLabels:
    """Relevance grades of the items of queries: what item rankings are learned from."""


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
    """The same loss, with as many grades as the true labels have."""
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
    ranks = batch.grades(y_pred, "y_pred")
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
    """Queries of true labels alone: items stand for their numbers."""
    if groups is None:
        rows = [np.asarray(row) for row in y_true]
        batch = pack_queries([np.zeros((row.size, 1)) for row in rows])
        return batch, batch.grades(rows, "y_true")
    grades: LabelArray = np.asarray(y_true)
    batch = pack_queries(np.zeros((len(grades), 1)), groups)
    return batch, batch.grades(grades, "y_true")
