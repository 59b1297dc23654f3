"""Rankings: items of queries of different lengths, sorted by a score per item."""

from consistruct.learning.encoding.queries import QueryBatch, pack_queries
from consistruct.learning.models.items.item_targets import item_targets, needs_pairs
from consistruct.learning.models.items.query_ridge import (
    QueryProblem,
    QueryRidge,
    leave_one_query_out,
)

__all__ = [
    "QueryBatch",
    "QueryProblem",
    "QueryRidge",
    "item_targets",
    "leave_one_query_out",
    "needs_pairs",
    "pack_queries",
]
