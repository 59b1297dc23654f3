"""Between labels as users write them (names, any classes, indicator rows) and label codes.

An encoder holds arrays and flags only. `encode` marks labels that were never seen with −1, so that
scoring can count them as wrong; fitting refuses them. Tables of costs, candidate sets and orders
have modules of their own, imported on use. Names of labels are at the end.
"""

from __future__ import annotations

from typing import Any, Protocol

import narwhals as nw
import numpy as np

from consistruct.decisions.classes import (
    UNSEEN,
    ClassLabels,
    class_labels,
    distinct_labels,
    in_order,
    listed,
    lookup_codes,
    shown,
)
from consistruct.learning.encoding.sets import SetLabels
from consistruct.losses import CostVectors, Decision, parse_loss
from consistruct.losses.base import Loss, Sizes
from consistruct.losses.metrics import Metric, requested_metric
from consistruct.losses.registry import LOSSES, loss_name
from consistruct.protocols import FloatArray, LabelArray
from consistruct.structures.registry import ORACLES

__all__ = [
    "LabelEncoding",
    "PartLabels",
    "RawLabels",
    "loss_class",
    "order_of",
    "over_classes",
    "over_parts",
    "prepare_labels",
    "takes_any_labels",
    "written_as",
]


class LabelEncoding(Protocol):
    """An encoder; `known`, where there is one, encodes what can be scored but not learned from."""

    def class_names(self, loss: Loss) -> Any:
        """What scikit-learn calls classes: the columns of a label matrix."""

    def encode(self, y: Any, loss: Loss) -> LabelArray:
        """Codes of the true labels, (n, …)."""

    def decode(self, pred: LabelArray) -> Any:
        """Predictions as users write them."""

    def losses(self, loss: Loss, pred: LabelArray, y: Any) -> FloatArray:
        """Task loss of each prediction code against true labels as the user writes them, (n,)."""


class RawLabels:
    """Labels that are codes already: permutations, relevance grades, cost vectors, states."""

    def class_names(self, loss: Loss) -> Any:
        return np.arange(
            loss.true_labels.shape[0] if loss.true_labels.shape else loss.true_labels.size or 0
        )

    def encode(self, y: Any, loss: Loss) -> LabelArray:
        labels = np.asarray(y)
        finite = loss.true_labels.size is not None
        if finite and labels.dtype.kind == "f" and (labels == np.floor(labels)).all():
            labels = labels.astype(np.int64)  # 2.0 is how many programs write the grade 2
        return loss.true_labels.check(labels, "y")

    def decode(self, pred: LabelArray) -> Any:
        return pred

    def losses(self, loss: Loss, pred: LabelArray, y: Any) -> FloatArray:
        return loss(pred, self.encode(y, loss))


class PartLabels:
    """Labels of T parts: `states` names the states, `flat` states that T = 1 was given as (n,)."""

    def __init__(self, states: Any, flat: bool) -> None:
        self.states = states  # (s,)
        self.flat = flat

    def class_names(self, loss: Loss) -> Any:
        return np.unique(self.states) if self.flat else np.arange(loss.true_labels.shape[0])

    def encode(self, y: Any, loss: Loss) -> LabelArray:
        """Codes (n, T), −1 where a state is none of the states."""
        labels = np.asarray(y)
        if labels.ndim == 1:
            labels = labels[:, None]
        (n_parts,) = loss.true_labels.shape
        if labels.ndim != 2 or labels.shape[1] != n_parts:
            raise ValueError(
                f"y must have shape (n, {n_parts}), one column per part, got {np.shape(y)}"
            )
        return lookup_codes(labels.ravel(), self.states).reshape(labels.shape)

    def decode(self, pred: LabelArray) -> Any:
        labels = self.states[pred]
        return labels[:, 0] if self.flat else labels

    def losses(self, loss: Loss, pred: LabelArray, y: Any) -> FloatArray:
        codes = self.encode(y, loss)
        # an unseen state differs from whatever was predicted there: any other state stands for it
        other = (pred + 1) % max(len(self.states), 2)
        return loss(pred, np.where(codes == UNSEEN, other, codes))


def loss_class(loss: Any) -> type[Loss] | None:
    """The class of a loss, also where it is written as a spec; None if there is no such loss.

    >>> loss_class("spearman_rho").__name__
    'SpearmanRho'
    """
    if isinstance(loss, str):
        name = loss_name(loss.partition(":")[0])
        if name in ORACLES:
            return Decision
        return LOSSES[name].cls if name in LOSSES else None
    return type(loss) if isinstance(loss, Loss) else None


def written_as(loss: Any) -> str | None:
    """How true labels of a loss are written, also of a spec; None if there is no such loss.

    >>> written_as("fbeta"), written_as("zero_one"), written_as("kendall")
    ('sets', 'classes', 'orders')
    """
    found = loss_class(loss)
    if found is None:
        return None
    if found.labels_as is not None:
        return found.labels_as
    # specs of losses that say nothing are over classes: the others say so
    return "classes" if isinstance(loss, str) else getattr(loss.true_labels, "labels_as", "codes")


def over_parts(loss: Any) -> bool:
    """Whether labels have parts, so that y may be an indicator matrix (also of a spec).

    >>> over_parts("hamming"), over_parts("zero_one")
    (True, False)
    """
    written = written_as(loss)
    if written is not None:
        return written in ("parts", "sets")
    metric = requested_metric(loss)
    return metric is not None and metric.labels


def over_classes(loss: Any) -> bool:
    """Whether a loss object is over plain classes."""
    return not isinstance(loss, str) and written_as(loss) == "classes"


def takes_any_labels(loss: Any) -> bool:
    """Whether y may be ragged or have gaps: candidate sets and orders with an open end."""
    return written_as(loss) in ("candidates", "orders")


def prepare_labels(
    loss: Any,
    y: Any,
    *,
    classes: Any = None,
    structured: bool,
    order: Any = None,
    requested: Metric | None = None,
) -> tuple[Loss, LabelEncoding, LabelArray]:
    """The loss with its sizes filled in, the encoder, and the codes of y.

    Parameters
    ----------
    loss : Loss, str or table of costs
        A spec may leave out what y tells: the number of classes, of parts, states, set sizes.
    y : (n,) or (n, …) array, or a list of candidate sets
    classes : array, optional
        All classes, where y may lack some (`partial_fit`).
    structured : bool
        Whether labels may have any shape; otherwise y is 1-d or a 0/1 indicator matrix.
    order : sequence, optional
        The classes from lowest to highest, where y or whoever calls knows it.
    requested : Metric, optional
        What the decisions are for, where the loss only serves the fit.
    """
    if not isinstance(loss, str | Loss):
        from consistruct.losses.costs.tables import loss_of_costs

        loss = loss_of_costs(loss)
    written = written_as(loss)
    if written == "candidates":
        from consistruct.learning.encoding.candidates import prepare_candidates

        return prepare_candidates(loss, y)
    if written == "orders":
        from consistruct.learning.encoding.orders import prepare_orders

        return prepare_orders(loss, np.asarray(y))
    labels = np.asarray(y)
    if written == "classes" and labels.ndim != 1:
        raise ValueError(
            f"{loss!r} is a loss over classes and needs y of shape (n,), got {labels.shape}; for "
            f"label matrices use a loss over parts such as 'hamming' or 'fbeta'"
        )
    distinct = None
    if isinstance(loss, str):
        distinct = distinct_labels(labels if classes is None else classes)
        found = parse_loss(loss, sizes=_sizes(loss, labels, distinct, structured))
    else:
        found = loss
    found = found.fit_sizes(labels)
    if written == "classes":
        known = distinct_labels(labels if classes is None else classes)
        wanted = found if requested is None else requested
        if wanted.ordered_classes and getattr(found.true_labels, "names", None) is None:
            if requested is not None and requested.names is not None:
                order = requested.names
            elif order is None and known.dtype.kind in "OUS":
                order = classes  # whoever names all classes names them in order
            known = in_order(known, order, wanted)
        encoding: LabelEncoding = class_labels(found, known)
    elif written == "parts" and not structured and labels.ndim == 2:
        encoding = PartLabels(np.array([0, 1]), flat=False)
    elif written == "parts" and distinct is not None:
        states = distinct if len(distinct) > 1 else np.append(distinct, distinct)
        encoding = PartLabels(states, flat=labels.ndim == 1)
    elif written == "sets":
        encoding = SetLabels()
    else:
        encoding = RawLabels()
    codes = encoding.encode(labels, found)
    if isinstance(encoding, ClassLabels | PartLabels) and (codes == UNSEEN).any():
        unknown = labels[codes == UNSEEN][0]
        known = encoding.classes if isinstance(encoding, ClassLabels) else encoding.states
        raise ValueError(f"y contains {shown(unknown)}, which is not one of {listed(known)}")
    return found, encoding, codes


def _sizes(loss: str, labels: LabelArray, distinct: Any, structured: bool) -> Sizes:
    if labels.ndim == 1:  # classes, or labels of one part
        return Sizes(len(distinct), 1, max(2, len(distinct)))
    if loss_class(loss) is CostVectors:  # a column for each prediction
        return Sizes(n_classes=labels.shape[1])
    n_states = max(2, len(distinct)) if structured else 2
    if written_as(loss) == "relevance" and distinct.dtype.kind in "biuf":
        n_states = max(2, int(distinct[-1]) + 1)  # grades are numbers, not names
    return Sizes(n_parts=labels.shape[1] if labels.ndim > 1 else None, n_states=n_states)


def order_of(y: Any) -> tuple[Any, ...] | None:
    """The classes in order, where y is an ordered categorical (an Enum of Polars); else None."""
    if not nw.dependencies.is_into_series(y):
        dtype: Any = getattr(y, "dtype", None)  # of pandas.Categorical, which is no series
        return tuple(dtype.categories) if getattr(dtype, "ordered", None) is True else None
    kind = nw.from_native(y, series_only=True).dtype
    return tuple(kind.categories) if isinstance(kind, nw.Enum) else None
