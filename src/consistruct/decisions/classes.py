"""Names of classes: those of a loss against those of data, their codes, how messages show them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from consistruct._frames import refuse_missing_labels
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray, LabelArray
from consistruct.structures import Classes

__all__ = [
    "UNSEEN",
    "ClassLabels",
    "are_codes",
    "as_kind",
    "class_labels",
    "distinct_labels",
    "in_order",
    "listed",
    "lookup_codes",
    "refuse_missing_codes",
    "shown",
    "sorted_classes",
]

UNSEEN = -1


class ClassLabels:
    """Translate between labels as users write them and their codes in a loss.

    Parameters
    ----------
    classes : (m,) array
        Names of the true labels, in the order of the loss.
    predictions : (k,) array
        Names of what can be predicted: the classes, and one more where the loss may abstain.

    Examples
    --------
    >>> labels = ClassLabels(np.array(["ham", "spam"]), np.array(["ham", "spam", "ask"]))
    >>> labels.encode(["spam", "eggs"], None), labels.decode(np.array([2, 0]))
    (array([ 1, -1]), array(['ask', 'ham'], dtype='<U4'))
    """

    def __init__(self, classes: Any, predictions: Any) -> None:
        self.classes = classes
        self.predictions = predictions

    def class_names(self, loss: Loss) -> Any:
        """Return the classes sorted, as `classes_` of an estimator has them."""
        return sorted_classes(self.classes)

    def encode(self, y: Any, loss: Loss) -> LabelArray:
        """Return codes (n,), −1 where a label is none of the classes."""
        labels = np.asarray(y).ravel()
        return refuse_missing_codes(labels, lookup_codes(labels, self.classes))

    def decode(self, pred: LabelArray) -> Any:
        """Return the names of predicted codes (n,)."""
        return self.predictions[pred]

    def losses(self, loss: Loss, pred: LabelArray, y: Any) -> FloatArray:
        """Return L(pred_i, y_i) for predicted codes and true labels by name, (n,)."""
        codes = self.encode(y, loss)
        known = codes != UNSEEN
        # a true label never seen is as wrong as can be
        values = np.full(len(codes), loss.max_value)
        values[known] = loss(pred[known], codes[known])
        return values


def refuse_missing_codes(labels: LabelArray, codes: LabelArray) -> LabelArray:
    """Return the codes, unless an unknown label is a missing one.

    A label that the fit never saw counts as wrong where a model is evaluated; a missing one would
    too, and its row says nothing about the model.
    """
    if (codes == UNSEEN).any():
        refuse_missing_labels(labels)
    return codes


def sorted_classes(classes: Any) -> Any:
    """Return the classes sorted, as scikit-learn requires of `classes_`."""
    try:
        return np.sort(classes)
    except TypeError:
        raise ValueError(
            f"the classes {listed(classes)} are of several types and cannot be sorted; write y and "
            "the names of the loss alike, as with y.astype(str)"
        ) from None


def class_labels(loss: Loss, distinct: Any) -> ClassLabels:
    """Return what the labels of a loss are called, given those that occur in data.

    These are the names of the loss where it has some, else the labels themselves if there are as
    many as the loss has, else codes 0..m−1. Labels and names are compared as text, so that a cost
    file with the columns 1, 2, 3 fits integers; the dtype stays that of the data.

    Parameters
    ----------
    loss : Loss
        Over m classes.
    distinct : array
        The different labels of the data, each once.

    Examples
    --------
    >>> from consistruct.losses import CostMatrix
    >>> costs = CostMatrix([[0, 9], [1, 0]], ("low", "high"), ("low", "high"), rows="pred")
    >>> class_labels(costs, np.array(["high", "low"])).classes
    array(['low', 'high'], dtype='<U4')
    """
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
        # not sorted here: the caller may know another order, such as that of an ordinal loss
        classes = distinct
    elif are_codes(distinct, true_labels.size):
        # a class may be missing in a fold or a batch, and codes still state which one it is
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
    """Return the labels of a loss with names where y contains numbers 0..m−1 in their place.

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
    """Return what predictions are called: the classes, with one more to abstain, or numbers."""
    size = loss.predictions.size
    assert size is not None
    if loss.extra_prediction is not None and size == len(classes) + 1:
        if classes.dtype.kind not in "iuf":
            return as_kind([*classes.tolist(), loss.extra_prediction], np.dtype(object))
        # integers 0..m−1 go on with m; other numbers take −1, the outlier label of scikit-learn
        label = len(classes) if np.array_equal(classes, np.arange(len(classes))) else -1
        if label in classes:
            raise ValueError(
                f"{loss.extra_prediction!r} is predicted as -1, but -1 is already a class; rename "
                "that class"
            )
        return np.append(classes, label).astype(np.result_type(classes, np.int64))
    return classes if size == len(classes) else np.arange(size)


def distinct_labels(labels: Any) -> Any:
    """Return the different labels sorted; they must be of one type."""
    try:
        return np.unique(np.asarray(labels))
    except TypeError:
        raise TypeError(
            "y must contain labels of one type that can be sorted, got a mixture (numbers and "
            "strings, or missing values); convert them to strings first"
        ) from None


def in_order(distinct: Any, order: Any, requested: object) -> Any:
    """Return the classes from the lowest to the highest, for a loss or metric with an order.

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
    """Return the position of each label in `classes`, −1 if it is not there.

    >>> lookup_codes(np.array([7, 3, 8]), np.array([3, 7]))
    array([ 1,  0, -1])
    """
    if len(labels) == 0:
        return np.zeros(0, dtype=np.int64)
    _check_kinds(labels, classes)
    if labels.dtype.kind in "OUS" or classes.dtype.kind in "OUS":
        # a dict, since objects of several types cannot be sorted; reversed, so that the first of
        # two equal names counts
        position = {label: code for code, label in reversed(list(enumerate(classes.tolist())))}
        return np.array([position.get(label, UNSEEN) for label in labels.tolist()], dtype=np.int64)
    # codes already, the usual case of a million rows: no search
    whole = labels.dtype.kind in "iu" and classes.dtype.kind in "iu"
    if whole and np.array_equal(classes, np.arange(len(classes))):
        inside = (labels >= 0) & (labels < len(classes))
        return np.where(inside, labels.astype(np.int64), UNSEEN)
    # classes may be in any order: binary search needs them sorted, the codes must not be
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
    """Return whether labels are integers of 0..size−1 already."""
    return distinct.dtype.kind in "iub" and int(distinct.min()) >= 0 and int(distinct.max()) < size


def as_kind(labels: list[Any], kind: np.dtype[Any]) -> Any:
    """Return labels as an array of the dtype of y where they fit, else of objects."""
    if kind.kind in "US":
        return np.array(labels)
    if kind.kind in "iufb":
        try:
            return np.array(labels).astype(kind)
        except ValueError:  # names that are no numbers
            pass
    # np.array(labels, dtype=object) would make a matrix of labels that are tuples
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def shown(label: Any) -> str:
    """Return a label as messages show it: 'ham' or 3, not np.str_('ham')."""
    return repr(label.item() if isinstance(label, np.generic) else label)


def listed(labels: Any) -> str:
    """Return the first eight labels as messages show them."""
    first = [shown(label) for label in list(labels)[:8]]
    return ", ".join(first) + (", …" if len(labels) > 8 else "")
