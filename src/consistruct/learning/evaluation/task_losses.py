"""Metrics and scorers in scikit-learn's order (y_true, y_pred)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from consistruct._frames import as_array, label_names, labels_in_order, refuse_missing_labels
from consistruct._members import Member
from consistruct.decisions.classes import ClassLabels, distinct_labels, in_order, lookup_codes
from consistruct.learning.encoding.candidates import CandidateLabels, candidate_sets
from consistruct.learning.encoding.labels import (
    LabelEncoding,
    PartLabels,
    RawLabels,
    order_of,
    prepare_labels,
    takes_any_labels,
    written_as,
)
from consistruct.learning.encoding.orders import OrderLabels, RankLabels
from consistruct.learning.encoding.queries import (
    is_query_list,
    losses_of_scores,
    query_losses,
    takes_queries,
)
from consistruct.learning.encoding.sets import SetLabels
from consistruct.learning.rules.deciding import confusion_of
from consistruct.losses import parse_loss
from consistruct.losses.base import Loss, Sizes
from consistruct.losses.costs.tables import loss_with_rows
from consistruct.losses.metrics import is_metric, requested_metric
from consistruct.protocols import FloatArray

__all__ = ["TaskLossScorer", "metric_value", "task_loss", "task_losses"]


def task_losses(
    y_true: Any, y_pred: Any, *, loss: Any, rows: str | None = None, groups: Any = None
) -> FloatArray:
    """Loss of each example, or of each query, (n,).

    Parameters
    ----------
    y_true, y_pred : (n,) or (n, …) arrays, or lists
        Labels as an estimator takes and gives them. Items of queries: relevance and ranks (1 is
        best) of all items with `groups`, or lists with an array per query.
    loss : Loss, str or table of costs
        A spec takes its sizes from both label arrays together.
    rows : "pred" or "true", optional
        What the rows of a table of costs are, where it does not say so itself.
    groups : (N,) array, optional
        The query of each item, or the size of each query, for ranking losses.

    Returns
    -------
    losses : (n,) array

    Examples
    --------
    >>> from consistruct.metrics import task_losses
    >>> task_losses(["cat", "dog"], ["cat", "cat"], loss="zero_one")
    array([0., 1.])
    >>> task_losses([1, 0, 0, 0, 1], [2, 1, 3, 1, 2], loss="precision_at::1", groups=[3, 2])
    array([1., 1.])
    """
    loss = loss_with_rows(loss, rows)
    y_pred = labels_in_order(y_pred, label_names(y_true), "y_pred")
    if takes_queries(loss, y_pred, y_true, groups) or _are_queries(loss, y_pred):
        return query_losses(y_true, y_pred, loss, groups)
    if len(y_true) != len(y_pred):
        raise ValueError(
            f"y_true and y_pred must have the same length, got {len(y_true)} and {len(y_pred)}"
        )
    written = written_as(loss)
    if written == "candidates":
        every: Any = candidate_sets(y_true, "y_true")
        if isinstance(loss, str) and isinstance(every, list):
            every = [*every, *candidate_sets(y_pred, "y_pred")]
        found, encoding, _ = prepare_labels(loss, every, structured=True)
        return encoding.losses(
            found, _prediction_codes(encoding, np.asarray(y_pred), found), y_true
        )
    true, pred = _complete(y_true, loss), np.asarray(as_array(y_pred, "y_pred"))
    if written == "sets":  # sizes restrict what is learned from, not the loss
        n_parts = true.shape[1] if true.ndim == 2 else None
        sets = parse_loss(loss, sizes=Sizes(n_parts=n_parts)) if isinstance(loss, str) else loss
        return np.asarray(sets(pred, true))
    every = np.concatenate([true, pred]) if isinstance(loss, str) else true
    found, encoding, _ = prepare_labels(
        loss, every, structured=true.ndim != 1, order=order_of(y_true)
    )
    return encoding.losses(found, _prediction_codes(encoding, pred, found), true)


def task_loss(
    y_true: Any,
    y_pred: Any,
    *,
    loss: Any,
    rows: str | None = None,
    sample_weight: Any = None,
    groups: Any = None,
) -> float:
    """Mean loss.

    Parameters
    ----------
    y_true, y_pred : (n,) or (n, …) arrays, or lists
    loss : Loss, str or table of costs
    rows : "pred" or "true", optional
        What the rows of a table of costs are, where it does not say so itself.
    sample_weight : (n,) array, optional
        Of the examples or queries.
    groups : (N,) array, optional
        For ranking losses, see `task_losses`.

    Returns
    -------
    mean : float

    Examples
    --------
    >>> from consistruct.metrics import task_loss
    >>> task_loss([0, 1, 4], [0, 2, 1], loss="ordinal:5")
    1.3333333333333333
    """
    values = task_losses(y_true, y_pred, loss=loss, rows=rows, groups=groups)
    return float(np.average(values, weights=sample_weight))


def metric_value(y_true: Any, y_pred: Any, *, metric: Any, sample_weight: Any = None) -> float:
    """A non-decomposable metric: macro-F1, kappa, G-mean, … (greater is better).

    Parameters
    ----------
    y_true, y_pred : (n,) classes or (n, T) label indicators
        Classes are those of both together, sorted; where a metric is about two of them, the second
        is the one to find. One that occurs alone must be 0 or 1, which states which of the two it
        is.
    metric : Metric or str
        See `consistruct.losses.parse_metric`.
    sample_weight : (n,) array, optional

    Returns
    -------
    value : float

    Examples
    --------
    >>> from consistruct.metrics import metric_value
    >>> value = metric_value(["a", "b", "b", "c"], ["a", "b", "c", "c"], metric="macro-f1")
    >>> round(value, 6)
    0.777778
    """
    found = requested_metric(metric)
    if found is None:
        raise ValueError(f"{metric!r} is not a metric; use task_loss for losses")
    y_pred = labels_in_order(y_pred, label_names(y_true), "y_pred")
    true, pred = _complete(y_true, None), np.asarray(as_array(y_pred, "y_pred"))
    if true.shape != pred.shape:
        raise ValueError(
            f"y_true and y_pred must have the same shape, got {true.shape} and {pred.shape}"
        )
    weight = np.ones(len(true)) if sample_weight is None else np.asarray(sample_weight)
    if true.ndim == 2:
        return found.value(confusion_of(found, pred, true, weight, 2))
    every = np.concatenate([true, pred])
    classes = distinct_labels(every)
    if found.n_classes == 2 and len(classes) == 1:
        if classes[0] not in (0, 1):
            raise ValueError(
                f"{found!r} is about the second of two classes, but y_true and y_pred hold only "
                f"{classes.tolist()[0]!r}; write classes as 0 and 1, of which 1 is the one to find"
            )
        classes = np.array([0, 1])
    if found.ordered_classes:
        classes = in_order(classes, found.names or order_of(y_true), found)
    codes = lookup_codes(every, classes)
    k = max(len(classes), 2)
    return found.value(confusion_of(found, codes[len(true) :], codes[: len(true)], weight, k))


def _complete(y_true: Any, loss: Any) -> Any:
    """True labels as an array, without missing ones but where the loss allows gaps."""
    if takes_any_labels(loss):
        return np.asarray(as_array(y_true, "y_true", complete=False))
    true = np.asarray(as_array(y_true, "y_true"))
    refuse_missing_labels(true, "y_true")
    return true


def _are_queries(loss: Any, y_pred: Any) -> bool:
    """Whether predictions are a list of ranks per query, as for a list of queries."""
    if not isinstance(y_pred, list) or not all(isinstance(row, np.ndarray) for row in y_pred):
        return False
    return written_as(loss) == "relevance"


def _prediction_codes(encoding: Any, pred: Any, loss: Loss) -> Any:
    if isinstance(encoding, RawLabels | SetLabels | RankLabels):
        return loss.predictions.check(pred, "y_pred")
    if isinstance(encoding, OrderLabels):
        return encoding.prediction_codes(pred)
    names = encoding.states if isinstance(encoding, PartLabels) else encoding.predictions
    codes = lookup_codes(pred.ravel(), names).reshape(pred.shape)
    if isinstance(encoding, PartLabels) and codes.ndim == 1:
        codes = codes[:, None]
    if (codes < 0).any():
        unknown = pred.reshape(codes.shape)[codes < 0].tolist()[0]
        raise ValueError(f"y_pred contains {unknown!r}, which is not a prediction of {loss!r}")
    return codes


@dataclass(frozen=True, eq=False, repr=False)
class TaskLossScorer(Member):
    """A scorer for model selection: minus the mean task loss of the predictions, or a metric.

    Estimators of this package know how labels are named and true labels they have never seen count
    as wrong; any other estimator is scored by what it predicts. For ranking losses with `groups`
    other estimators predict scores of items, as rankers do, which are sorted.

    Parameters
    ----------
    loss : Loss, str or table of costs
        Or a metric such as "macro-f1", whose value is the score.
    rows : "pred" or "true", optional
        What the rows of a table of costs are, where it does not say so itself.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> scores = cross_val_score(KNeighborsClassifier(), X, y, scoring=TaskLossScorer("ordinal"))
    >>> bool(-0.1 < scores.mean() < 0)
    True
    """

    loss: Any
    rows: str | None = None

    def __call__(
        self, estimator: Any, X: Any, y: Any, sample_weight: Any = None, groups: Any = None
    ) -> float:
        if is_metric(self.loss):
            pred = estimator.predict(X)
            return metric_value(y, pred, metric=self.loss, sample_weight=sample_weight)
        values = self._losses(estimator, X, y, groups)
        return -float(np.average(values, weights=sample_weight))

    def _losses(self, estimator: Any, X: Any, y: Any, groups: Any) -> FloatArray:
        loss = loss_with_rows(self.loss, self.rows)
        kind = getattr(getattr(estimator, "kind_", None), "name", "")
        if kind == "sequences":  # judged by the Hamming family, whatever its number of states
            return np.asarray(estimator.task_losses(X, y, groups))
        if kind == "queries":
            if groups is None and not is_query_list(X):
                groups = np.zeros(len(y), dtype=np.int64)  # one query
            return query_losses(y, estimator.predict(X, groups), loss, groups)
        if groups is not None:
            return losses_of_scores(y, estimator.predict(X), loss, groups)
        pred = estimator.predict(X)
        encoding = getattr(estimator, "label_encoding_", None)
        if encoding is None:
            return task_losses(y, pred, loss=loss)
        if isinstance(encoding, SetLabels):
            return task_losses(y, pred, loss=loss)
        classes = getattr(encoding, "classes", None)
        if isinstance(encoding, ClassLabels):
            # the names of the loss may be in another order than those that the model was fitted for
            loss, encoding, _ = prepare_labels(loss, classes, structured=False, order=classes)
        elif isinstance(loss, str):
            known = _known_labels(encoding, estimator, y)
            loss = prepare_labels(loss, known, structured=np.ndim(known) != 1, order=classes)[0]
        codes = _prediction_codes(encoding, np.asarray(pred), loss)
        return encoding.losses(loss, codes, y)


def _known_labels(encoding: LabelEncoding, estimator: Any, y: Any) -> Any:
    """Labels that tell the sizes of a loss spec as the estimator saw them."""
    if isinstance(encoding, CandidateLabels):
        return [[label] for label in encoding.classes.tolist()]
    if isinstance(encoding, OrderLabels):
        return encoding.items[None, :]
    if isinstance(encoding, PartLabels):
        (n_parts,) = estimator.loss_.true_labels.shape
        return np.repeat(encoding.states[:, None], n_parts, axis=1)
    return y
