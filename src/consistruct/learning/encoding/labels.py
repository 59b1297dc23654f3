"""Between labels as users write them (names, any classes, indicator rows) and label codes.

An encoder holds arrays and flags only. `encode` marks labels that were never seen with −1, so that
scoring can count them as wrong; fitting refuses them. Tables of costs, candidate sets and orders
have modules of their own, imported on use. Names of labels are at the end.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import narwhals as nw
import numpy as np

from consistruct.learning.encoding.missing import refuse_missing_labels
from consistruct.learning.encoding.sets import SetLabels
from consistruct.losses import CostVectors, Decision, parse_loss
from consistruct.losses.base import Loss, Sizes
from consistruct.losses.metrics import Metric, requested_metric
from consistruct.losses.registry import LOSSES, loss_name
from consistruct.protocols import FloatArray, LabelArray
from consistruct.structures import Classes
from consistruct.structures.registry import ORACLES

__all__ = [
    "UNSEEN",
    "ClassLabels",
    "LabelEncoding",
    "PartLabels",
    "RawLabels",
    "are_codes",
    "as_kind",
    "class_labels",
    "distinct_labels",
    "in_order",
    "listed",
    "lookup_codes",
    "loss_class",
    "order_of",
    "over_classes",
    "over_parts",
    "prepare_labels",
    "shown",
    "sorted_classes",
    "takes_any_labels",
    "written_as",
]

UNSEEN = -1


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


class ClassLabels:
    """Plain classes: `classes` name the true labels, `predictions` what can be predicted."""

    def __init__(self, classes: Any, predictions: Any) -> None:
        self.classes = classes  # (m,) in the order of the loss's true labels
        self.predictions = predictions  # (k,)

    def class_names(self, loss: Loss) -> Any:
        return sorted_classes(self.classes)

    def encode(self, y: Any, loss: Loss) -> LabelArray:
        """Codes (n,), −1 where a label is none of the classes."""
        labels = np.asarray(y).ravel()
        return _refuse_missing(labels, lookup_codes(labels, self.classes))

    def decode(self, pred: LabelArray) -> Any:
        return self.predictions[pred]

    def losses(self, loss: Loss, pred: LabelArray, y: Any) -> FloatArray:
        codes = self.encode(y, loss)
        known = codes != UNSEEN
        # a true label never seen is as wrong as can be
        values = np.full(len(codes), loss.max_value)
        values[known] = loss(pred[known], codes[known])
        return values


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
        codes = lookup_codes(labels.ravel(), self.states).reshape(labels.shape)
        return _refuse_missing(labels, codes)

    def decode(self, pred: LabelArray) -> Any:
        labels = self.states[pred]
        return labels[:, 0] if self.flat else labels

    def losses(self, loss: Loss, pred: LabelArray, y: Any) -> FloatArray:
        codes = self.encode(y, loss)
        # an unseen state differs from whatever was predicted there: any other state stands for it
        other = (pred + 1) % max(len(self.states), 2)
        return loss(pred, np.where(codes == UNSEEN, other, codes))


def _refuse_missing(labels: LabelArray, codes: LabelArray) -> LabelArray:
    """Return the codes, unless an unknown label is a missing one.

    A label that the fit never saw counts as wrong where a model is evaluated; a missing one would
    too, and its row says nothing about the model.
    """
    if (codes == UNSEEN).any():
        refuse_missing_labels(labels)
    return codes


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


def sorted_classes(classes: Any) -> Any:
    """Return the classes sorted, as scikit-learn requires of `classes_`."""
    try:
        return np.sort(classes)
    except TypeError:
        raise ValueError(
            f"the classes {listed(classes)} are of several types and cannot be sorted; write y and "
            "the names of the loss alike, as with y.astype(str)"
        ) from None


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
        from consistruct.learning.encoding.costs import loss_of_costs

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


def class_labels(loss: Loss, distinct: Any) -> ClassLabels:
    """Names of the loss where it has some, else codes 0..m−1, else the sorted classes of y."""
    true_labels, predictions = loss.true_labels, loss.predictions
    assert isinstance(true_labels, Classes)
    names = true_labels.names
    if names is not None:
        written = {str(label): label for label in distinct}
        unknown = [name for name in written if name not in names]
        if not unknown:
            kind = distinct.dtype
            classes = as_kind([written.get(name, name) for name in names], kind)
            named = getattr(predictions, "names", None)
            if named is None:
                return ClassLabels(classes, _prediction_labels(loss, classes))
            return ClassLabels(classes, as_kind([written.get(name, name) for name in named], kind))
        if not are_codes(distinct, true_labels.size):
            raise ValueError(
                f"y contains {shown(unknown[0])}, which is not a class of {type(loss).__name__}; "
                f"its classes are {listed(names)}"
            )
        return _numbered_labels(loss, names)
    if len(distinct) == true_labels.size:
        classes = distinct  # in the order given: numbers too may be ordered otherwise than by size
    elif are_codes(distinct, true_labels.size):
        classes = np.arange(true_labels.size).astype(distinct.dtype, copy=False)
    else:
        raise ValueError(
            f"{loss!r} is over {true_labels.size} classes, but y contains "
            f"{len(distinct)} different "
            f"labels; name the classes of the loss (a DataFrame or dict of costs), number those of "
            f"y 0..{true_labels.size - 1}, or omit the size in the loss"
        )
    return ClassLabels(classes, _prediction_labels(loss, classes))


def _numbered_labels(loss: Loss, names: Sequence[str]) -> ClassLabels:
    """Labels of a loss with names where y contains numbers 0..m−1 in their place.

    Meta-estimators of scikit-learn (voting, stacking, bagging) number the *sorted* classes before
    they fit, so that numbers are places among the sorted names, not rows of the cost matrix.
    """
    rank = {name: place for place, name in enumerate(sorted(names, key=_sort_key(names)))}
    classes = np.array([rank[name] for name in names])
    if (np.diff(classes) < 0).any():
        meaning = ", ".join(f"{place} = {name!r}" for name, place in list(rank.items())[:8])
        if loss.ordered_classes:
            raise ValueError(
                f"y contains numbers, but {loss!r} names its classes from lowest to highest, and "
                f"places among the sorted names would be {meaning}; pass the names in y, or omit "
                "them in the loss"
            )
        warnings.warn(
            f"y contains numbers, but the loss has names; they are taken as places among the "
            f"sorted names, {meaning}; pass the names in y if this is not what they are",
            UserWarning,
            stacklevel=2,
        )
    named = getattr(loss.predictions, "names", None)
    if named is None or not set(named) <= set(names):
        return ClassLabels(classes, _prediction_labels(loss, classes))
    return ClassLabels(classes, np.array([rank[name] for name in named]))


def _sort_key(names: Sequence[str]) -> Callable[[str], Any]:
    """Sort names as the labels that they stand for: numbers by value, text as text."""
    try:
        values = {name: float(name) for name in names}
    except ValueError:
        return str
    return values.__getitem__


def _prediction_labels(loss: Loss, classes: Any) -> Any:
    """What predictions are called: the classes, with one more for abstaining, or else numbers."""
    size = loss.predictions.size
    assert size is not None
    if loss.extra_prediction is not None and size == len(classes) + 1:
        if classes.dtype.kind not in "iuf":
            return as_kind([*classes.tolist(), loss.extra_prediction], np.dtype(object))
        label = len(classes) if np.array_equal(classes, np.arange(len(classes))) else -1
        if label in classes:
            raise ValueError(
                f"{loss.extra_prediction!r} is predicted as -1, but -1 is already a class; rename "
                "that class"
            )
        return np.append(classes, label).astype(np.result_type(classes, np.int64))
    return classes if size == len(classes) else np.arange(size)


# --- names of labels: distinct ones, their codes, and how messages show them ---


def distinct_labels(labels: Any) -> Any:
    """The different labels in order, which must be of one type."""
    try:
        return np.unique(np.asarray(labels))
    except TypeError:
        raise TypeError(
            "y must contain labels of one type that can be sorted, got a mixture (numbers and "
            "strings, or missing values); convert them to strings first"
        ) from None


def order_of(y: Any) -> tuple[Any, ...] | None:
    """The classes in order, where y is an ordered categorical (an Enum of Polars); else None."""
    if not nw.dependencies.is_into_series(y):
        dtype: Any = getattr(y, "dtype", None)  # of pandas.Categorical, which is no series
        return tuple(dtype.categories) if getattr(dtype, "ordered", None) is True else None
    kind = nw.from_native(y, series_only=True).dtype
    return tuple(kind.categories) if isinstance(kind, nw.Enum) else None


def in_order(distinct: Any, order: Any, requested: object) -> Any:
    """The classes from the lowest to the highest, for a loss or metric that requests it.

    Numbers have an order, and so have text that is numbers and single letters; other text must
    be put in order by whoever knows it.
    """
    if order is not None:
        written = {str(label): label for label in distinct}
        unknown = [name for name in written if name not in {str(label) for label in order}]
        if unknown:
            raise ValueError(
                f"y contains {shown(written[unknown[0]])}, which is not one of {listed(order)}"
            )
        known = [written[str(label)] for label in order if str(label) in written]
        return as_kind(known, distinct.dtype)
    if distinct.dtype.kind not in "OUS" or len(distinct) < 3:
        return distinct  # the distance of two classes is the same both ways
    if all(isinstance(label, str) and len(label) == 1 for label in distinct.tolist()):
        return distinct  # A to F
    try:
        return distinct[np.argsort([float(label) for label in distinct], kind="stable")]
    except (TypeError, ValueError):
        raise ValueError(
            f"{requested!r} needs the order of the classes, and text has none: y contains "
            f"{listed(distinct)}; name them from lowest to highest in the loss, such as "
            "'ordinal:low,mid,high' or 'qwk:low,mid,high', or pass numbers or an ordered pandas "
            "Categorical"
        ) from None


def lookup_codes(labels: Any, classes: Any) -> LabelArray:
    """Position of each label in `classes`, −1 if it is not there."""
    if len(labels) == 0:
        return np.zeros(0, dtype=np.int64)
    _check_kinds(labels, classes)
    if labels.dtype.kind in "OUS" or classes.dtype.kind in "OUS":
        position = {label: code for code, label in reversed(list(enumerate(classes.tolist())))}
        return np.array([position.get(label, UNSEEN) for label in labels.tolist()], dtype=np.int64)
    whole = labels.dtype.kind in "iu" and classes.dtype.kind in "iu"
    if whole and np.array_equal(classes, np.arange(len(classes))):
        inside = (labels >= 0) & (labels < len(classes))
        return np.where(inside, labels.astype(np.int64), UNSEEN)
    order = np.argsort(classes, kind="stable")
    place = np.minimum(np.searchsorted(classes, labels, sorter=order), len(classes) - 1)
    codes = order[place]
    return np.where(classes[codes] == labels, codes, UNSEEN).astype(np.int64)


def _check_kinds(labels: Any, classes: Any) -> None:
    """Refuse text where the classes are numbers, and the other way round: all would be unknown."""
    for given, known, one, other in (
        (labels, classes, "text", "numbers"),
        (classes, labels, "numbers", "text"),
    ):
        if given.dtype.kind in "US" and known.dtype.kind in "iufb":
            raise ValueError(
                f"y contains {one} such as {shown(labels[0])}, but the classes are {other}, "
                f"{listed(classes)}; convert y to the type that the model was fitted on"
            )


def are_codes(distinct: Any, size: int) -> bool:
    """Whether labels are integers of 0..size−1 already."""
    return distinct.dtype.kind in "iub" and int(distinct.min()) >= 0 and int(distinct.max()) < size


def as_kind(labels: list[Any], kind: np.dtype[Any]) -> Any:
    """Labels as an array of the dtype of y where they fit, else of objects."""
    if kind.kind in "US":
        return np.array(labels)
    if kind.kind in "iufb":
        try:
            return np.array(labels).astype(kind)
        except ValueError:  # names that are no numbers
            pass
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def shown(label: Any) -> str:
    """A label as messages show it."""
    return repr(label.item() if isinstance(label, np.generic) else label)


def listed(labels: Any) -> str:
    """Several labels as messages show them, the first eight."""
    first = [shown(label) for label in list(labels)[:8]]
    return ", ".join(first) + (", …" if len(labels) > 8 else "")
