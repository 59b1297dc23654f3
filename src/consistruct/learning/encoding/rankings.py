"""Queries: items with features and relevance grades, to be put in order."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, validate_data

from consistruct._frames import is_table
from consistruct.learning.encoding.item_targets import ItemTargets
from consistruct.learning.encoding.kinds import Examples, Kind, check_sample_weight
from consistruct.learning.encoding.named_inputs import table_numbers
from consistruct.learning.encoding.queries import (
    QueryBatch,
    RelevanceLabels,
    losses_of_orders,
    pack_queries,
    ranking_loss,
    ranks_of_orders,
    takes_queries,
)
from consistruct.losses.rankings.orders import RelevanceLoss
from consistruct.protocols import FloatArray
from consistruct.structures import Ragged

__all__ = ["Queries", "read_queries", "takes_queries"]


class Queries(Kind):
    """One query with its items per example; labels are packed grades, predictions packed orders."""

    name = "queries"
    loss: RelevanceLoss

    def __init__(self, loss: RelevanceLoss, labels: RelevanceLabels | None = None) -> None:
        self.loss = loss
        self.labels = RelevanceLabels() if labels is None else labels

    def inputs(self, estimator: Any, X: Any, groups: Any = None) -> QueryBatch:
        """Without `groups` the rows of X are the items of one query."""
        return _checked(estimator, X, groups, estimator.model_, reset=False)

    def take(self, inputs: QueryBatch, rows: Any) -> QueryBatch:
        return inputs.take(rows)

    def codes(self, inputs: QueryBatch, y: Any) -> Ragged:
        return inputs.grades(y)

    def losses(self, inputs: QueryBatch, codes: Ragged, y: Any) -> FloatArray:
        return self.code_losses(codes, self.codes(inputs, y))

    def code_losses(self, codes: Ragged, true_codes: Ragged) -> FloatArray:
        return losses_of_orders(self.loss, codes, true_codes)

    def present(self, inputs: QueryBatch, codes: Ragged) -> Any:
        """Rank of each item, 1 is best: in the order of the data, or a list with one per query."""
        return inputs.unpack(ranks_of_orders(codes))

    def statistic(self) -> ItemTargets:
        return ItemTargets(self.loss)


def read_queries(
    estimator: Any, model: Any, X: Any, y: Any, groups: Any, sample_weight: Any
) -> Examples:
    """Packed queries, their grades and weights; `model` states whether NaN in X is welcome."""
    batch = _checked(estimator, X, groups, model, reset=True)
    grades = batch.grades(y)
    weight = _query_weight(sample_weight, len(batch))
    return Examples(Queries(ranking_loss(estimator.loss, grades)), batch, grades, weight)


def _checked(estimator: Any, X: Any, groups: Any, model: Any, *, reset: bool) -> QueryBatch:
    """Packed items as checked numbers; columns of text become numbers first."""
    welcome = bool(model.takes_missing)
    if isinstance(X, list | tuple) and X and isinstance(X[0], list | tuple) and is_table(X[0]):
        items = [record for query in X for record in query]
        read = table_numbers(estimator, items, reset=reset, keep_missing=welcome)
        table: Any = np.split(read, np.cumsum([len(query) for query in X])[:-1])
    else:
        table = table_numbers(estimator, X, reset=reset, keep_missing=welcome)
    batch = pack_queries(table, groups, one_query=not reset)
    check = (
        check_array if table is not X else functools.partial(validate_data, estimator, reset=reset)
    )
    items = check(
        batch.items,
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        order="C",
        ensure_all_finite="allow-nan" if welcome else True,
    )
    return QueryBatch(items, batch.positions, batch.offsets, batch.listed)


def _query_weight(sample_weight: Any, n: int) -> FloatArray:
    if np.ndim(sample_weight) == 1 and len(sample_weight) != n:
        raise ValueError(
            f"sample_weight must have shape ({n},), one per query, got {np.shape(sample_weight)}"
        )
    return check_sample_weight(sample_weight, n)
