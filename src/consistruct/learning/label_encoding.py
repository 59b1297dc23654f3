"""Between labels as users write them (names, any classes, indicator rows) and label codes.

An encoder holds arrays and flags only. `encode` marks labels that were never seen with −1, so that
scoring can count them as wrong; fitting refuses them.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from consistruct.labels import Classes, Product
from consistruct.losses import Abstain, FBeta, parse_loss
from consistruct.losses.base import Loss, Sizes
from consistruct.protocols import FloatArray, LabelArray

__all__ = ["ClassLabels", "LabelEncoding", "PartLabels", "RawLabels", "prepare_labels"]

UNSEEN = -1


class RawLabels:
    """Labels that are codes already: permutations, relevance grades, cost vectors, states."""

    def encode(self, y: Any, loss: Loss) -> LabelArray:
        return loss.truths.check(y, "y")

    def decode(self, pred: LabelArray) -> Any:
        return pred

    def losses(self, loss: Loss, pred: LabelArray, y: Any) -> FloatArray:
        """Task loss of each prediction code against truths as the user writes them, (n,)."""
        return loss(pred, self.encode(y, loss))


class ClassLabels:
    """Plain classes: `classes` name the truths, `predictions` what can be predicted."""

    def __init__(self, classes: Any, predictions: Any) -> None:
        self.classes = classes  # (m,) in the order of the loss's truths
        self.predictions = predictions  # (k,)

    def encode(self, y: Any, loss: Loss) -> LabelArray:
        """Codes (n,), −1 where a label is none of the classes."""
        return lookup_codes(np.asarray(y).ravel(), self.classes)

    def decode(self, pred: LabelArray) -> Any:
        return self.predictions[pred]

    def losses(self, loss: Loss, pred: LabelArray, y: Any) -> FloatArray:
        codes = self.encode(y, loss)
        known = codes != UNSEEN
        values = np.full(len(codes), loss.max_value)  # a truth never seen is as wrong as can be
        values[known] = loss(pred[known], codes[known])
        return values


class PartLabels:
    """Labels of T parts: `states` names the states, `flat` says that T = 1 was given as (n,)."""

    def __init__(self, states: Any, flat: bool) -> None:
        self.states = states  # (s,)
        self.flat = flat

    def encode(self, y: Any, loss: Loss) -> LabelArray:
        """Codes (n, T), −1 where a state is none of the states."""
        labels = np.asarray(y)
        if labels.ndim == 1:
            labels = labels[:, None]
        (n_parts,) = loss.truths.shape
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


class SetLabels:
    """Label sets as rows of 0 and 1; a set of a size that training never saw can be scored."""

    def encode(self, y: Any, loss: Loss) -> LabelArray:
        return loss.truths.check(y, "y")

    def decode(self, pred: LabelArray) -> Any:
        return pred

    def losses(self, loss: Loss, pred: LabelArray, y: Any) -> FloatArray:
        return loss(pred, y)  # the sizes of F_β restrict what is learnt from, not the loss


LabelEncoding = RawLabels | ClassLabels | PartLabels | SetLabels


def prepare_labels(
    loss: Loss | str, y: Any, *, classes: Any = None, structured: bool
) -> tuple[Loss, LabelEncoding, LabelArray]:
    """The loss with its sizes filled in, the encoder, and the codes of y.

    Parameters
    ----------
    loss : Loss or str
        A spec may leave out what y tells: the number of classes, of parts and of states.
    y : (n,) or (n, …) array
    classes : array, optional
        All classes, where y may lack some (`partial_fit`).
    structured : bool
        Whether labels may have any shape; otherwise y is 1-d or a 0/1 indicator matrix.
    """
    labels = np.asarray(y)
    if isinstance(loss, str):
        distinct = _distinct(labels if classes is None else classes)
        found = parse_loss(loss, sizes=_sizes(labels, distinct, structured))
    elif isinstance(loss, FBeta) and loss.sizes is None:
        found, distinct = _with_set_sizes(loss, labels), None
    elif isinstance(loss, Loss):
        found, distinct = loss, None
    else:
        raise TypeError(
            f"loss must be a Loss or a spec such as 'zero_one', got {type(loss).__name__}"
        )
    if isinstance(found.truths, Classes):
        if labels.ndim != 1:
            raise ValueError(
                f"{found!r} is a loss over classes and needs y of shape (n,), got {labels.shape}; "
                f"for label matrices use a loss over parts such as 'hamming'"
            )
        encoding: LabelEncoding = _class_labels(
            found, _distinct(labels if classes is None else classes)
        )
    elif isinstance(found.truths, Product) and not structured and labels.ndim == 2:
        encoding = PartLabels(np.array([0, 1]), flat=False)
    elif isinstance(found.truths, Product) and distinct is not None:
        states = distinct if len(distinct) > 1 else np.append(distinct, distinct)
        encoding = PartLabels(states, flat=labels.ndim == 1)
    elif isinstance(found, FBeta):
        encoding = SetLabels()
    else:
        encoding = RawLabels()
    codes = encoding.encode(labels, found)
    if isinstance(encoding, ClassLabels | PartLabels) and (codes == UNSEEN).any():
        unknown = labels[codes == UNSEEN][0]
        known = encoding.classes if isinstance(encoding, ClassLabels) else encoding.states
        raise ValueError(f"y holds {_show(unknown)}, which is none of {_list(known)}")
    return found, encoding, codes


def _sizes(labels: LabelArray, distinct: Any, structured: bool) -> Sizes:
    if labels.ndim == 1:  # classes, or labels of one part
        return Sizes(len(distinct), 1, max(2, len(distinct)))
    n_states = max(2, len(distinct)) if structured else 2
    return Sizes(
        n_parts=labels.shape[1] if labels.ndim > 1 else None,
        n_states=n_states,
        set_sizes=_set_sizes(labels),
    )


def _set_sizes(labels: LabelArray) -> tuple[int, ...] | None:
    """Sizes of the sets that occur, where y holds sets as 0/1 rows."""
    if labels.ndim != 2 or labels.dtype.kind not in "biuf" or not np.isin(labels, (0, 1)).all():
        return None
    return tuple(np.unique(labels.astype(np.int64).sum(axis=1)).tolist())


def _with_set_sizes(loss: FBeta, labels: LabelArray) -> FBeta:
    """F_β with the sizes of the sets that y holds: others would have no examples to learn from."""
    sets = loss.truths.check(labels, "y")
    return dataclasses.replace(loss, sizes=tuple(np.unique(sets.sum(axis=1)).tolist()))


def _class_labels(loss: Loss, distinct: Any) -> ClassLabels:
    """Names of the loss where it has some, else codes 0..m−1, else the sorted classes of y."""
    truths, predictions = loss.truths, loss.predictions
    assert isinstance(truths, Classes)
    names = truths.names
    if names is not None:
        written = {str(label): label for label in distinct}
        unknown = [name for name in written if name not in names]
        if not unknown:
            kind = distinct.dtype
            classes = _as_kind([written.get(name, name) for name in names], kind)
            named = predictions.names if isinstance(predictions, Classes) else None
            if named is None:
                return ClassLabels(classes, _prediction_labels(loss, classes))
            return ClassLabels(classes, _as_kind([written.get(name, name) for name in named], kind))
        if not _are_codes(distinct, truths.size):
            raise ValueError(
                f"y holds {_show(unknown[0])}, which is no class of {type(loss).__name__}; "
                f"its classes are {_list(names)}"
            )
    if _are_codes(distinct, truths.size):
        classes = np.arange(truths.size).astype(distinct.dtype, copy=False)
    elif len(distinct) == truths.size:
        classes = distinct
    else:
        raise ValueError(
            f"{loss!r} is over {truths.size} classes, but y holds {len(distinct)} different "
            f"labels; number them 0..{truths.size - 1}, or leave the size out of the loss"
        )
    return ClassLabels(classes, _prediction_labels(loss, classes))


def _prediction_labels(loss: Loss, classes: Any) -> Any:
    """What predictions are called: the classes, with one more for abstaining, or else numbers."""
    size = loss.predictions.size
    assert size is not None
    if isinstance(loss, Abstain):
        if classes.dtype.kind not in "iuf":
            return _as_kind([*classes.tolist(), "abstain"], np.dtype(object))
        label = len(classes) if np.array_equal(classes, np.arange(len(classes))) else -1
        if label in classes:
            raise ValueError("abstaining is predicted as -1, but -1 is a class; rename that class")
        return np.append(classes, label).astype(np.result_type(classes, np.int64))
    return classes if size == len(classes) else np.arange(size)


def _are_codes(distinct: Any, size: int) -> bool:
    return distinct.dtype.kind in "iub" and int(distinct.min()) >= 0 and int(distinct.max()) < size


def _as_kind(labels: list[Any], kind: np.dtype[Any]) -> Any:
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


def _distinct(labels: Any) -> Any:
    try:
        return np.unique(np.asarray(labels))
    except TypeError:
        raise TypeError(
            "y must hold labels of one type that can be sorted, got a mixture (numbers and "
            "strings, or missing values); convert them to strings first"
        ) from None


def lookup_codes(labels: Any, classes: Any) -> LabelArray:
    """Position of each label in `classes`, −1 if it is not there."""
    if len(labels) == 0:
        return np.zeros(0, dtype=np.int64)
    if labels.dtype.kind in "OUS" or classes.dtype.kind in "OUS":
        position = {label: code for code, label in reversed(list(enumerate(classes.tolist())))}
        return np.array([position.get(label, UNSEEN) for label in labels.tolist()], dtype=np.int64)
    order = np.argsort(classes, kind="stable")
    place = np.minimum(np.searchsorted(classes, labels, sorter=order), len(classes) - 1)
    codes = order[place]
    return np.where(classes[codes] == labels, codes, UNSEEN).astype(np.int64)


def _show(label: Any) -> str:
    return repr(label.item() if isinstance(label, np.generic) else label)


def _list(labels: Any) -> str:
    shown = [_show(label) for label in list(labels)[:8]]
    return ", ".join(shown) + (", …" if len(labels) > 8 else "")
