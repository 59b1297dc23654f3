"""What a ranker should beat: orders by one column, and regressions of the relevance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from consistruct._validation import is_sparse, to_dense
from consistruct.protocols import FloatArray
from consistruct.report.learning.baselines import Peer
from consistruct.structures import Ragged

__all__ = ["query_peers"]

MOST_COLUMNS = 200  # that are tried one by one
LINEAR = "linear regression of the relevance"
BOOSTED = "boosting of the relevance"


def query_peers(kind: Any) -> list[Peer]:
    """Items by their best single column, by least squares and by boosting of their grades."""

    def single(X: Any, true: Ragged, new: Any) -> dict[str, Any]:
        columns, others = _dense(X.packed_items), _dense(new.packed_items)
        losses = {
            (column, sign): _mean_loss(kind, sign * columns[:, column], true)
            for column in range(min(columns.shape[1], MOST_COLUMNS))
            for sign in (1.0, -1.0)
        }
        column, sign = min(losses, key=lambda place: losses[place])
        return {"best single column": _orders(sign * others[:, column], new)}

    return [
        Peer(single, in_curve=False),
        Peer(lambda X, true, new: {LINEAR: _orders(_regress(_linear, X, true, new), new)}),
        Peer(lambda X, true, new: {BOOSTED: _orders(_regress(_boosting, X, true, new), new)}),
    ]


def _mean_loss(kind: Any, scores: FloatArray, grades: Ragged) -> float:
    from consistruct.learning.encoding.queries import losses_of_orders, orders_of_scores

    orders = orders_of_scores(grades.with_values(np.nan_to_num(scores)))
    return float(losses_of_orders(kind.loss, orders, grades).mean())


def _orders(scores: FloatArray, batch: Any) -> Ragged:
    from consistruct.learning.encoding.queries import orders_of_scores

    return orders_of_scores(Ragged(np.nan_to_num(scores), batch.offsets))


def _regress(make: Callable[[], Any], X: Any, true: Ragged, new: Any) -> FloatArray:
    """Scores of the items, from grades as plain numbers."""
    model = make().fit(_dense(X.packed_items), true.values)
    return np.asarray(model.predict(_dense(new.packed_items)))


def _linear() -> Any:
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    filled = SimpleImputer(keep_empty_features=True)
    return make_pipeline(filled, StandardScaler(), RidgeCV(np.logspace(-2, 4, 13)))


def _boosting() -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(early_stopping=True, random_state=0)


def _dense(items: Any) -> FloatArray:
    return np.asarray(to_dense(items) if is_sparse(items) else items, dtype=np.float64)
