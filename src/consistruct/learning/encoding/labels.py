"""Between labels as users write them (names, any classes, indicator rows) and label codes.

An encoder holds arrays and flags only. `encode` marks labels that were never seen with −1, so that
scoring can count them as wrong; fitting refuses them.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from consistruct.decoding.oracles import ORACLES
from consistruct.labels import Classes
from consistruct.learning.encoding.candidates import (
    CandidateLabels,
    candidate_sets,
    distinct_candidates,
)
from consistruct.learning.encoding.costs import CostLabels, cost_table, is_cost_table
from consistruct.learning.encoding.names import (
    UNSEEN,
    are_codes,
    as_kind,
    distinct_labels,
    in_order,
    listed,
    lookup_codes,
    shown,
)
from consistruct.learning.encoding.orders import OrderLabels, RankLabels, order_labels
from consistruct.learning.encoding.sets import SetLabels
from consistruct.losses import LOSSES, CostVectors, Decision, parse_loss
from consistruct.losses.base import Loss, Sizes
from consistruct.losses.costs.names import loss_name
from consistruct.losses.metrics import Metric, asked_metric
from consistruct.protocols import FloatArray, LabelArray

__all__ = [
    "ClassLabels",
    "LabelEncoding",
    "PartLabels",
    "RawLabels",
    "check_same_classes",
    "encode_again",
    "loss_class",
    "over_classes",
    "over_parts",
    "prepare_labels",
    "takes_any_labels",
    "written_as",
]


class RawLabels:
    """Labels that are codes already: permutations, relevance grades, cost vectors, states."""

    def class_names(self, loss: Loss) -> Any:
        """What scikit-learn calls classes: the columns of a label matrix."""
        return np.arange(loss.truths.shape[0] if loss.truths.shape else loss.truths.size or 0)

    def encode(self, y: Any, loss: Loss) -> LabelArray:
        labels = np.asarray(y)
        finite = loss.truths.size is not None
        if finite and labels.dtype.kind == "f" and (labels == np.floor(labels)).all():
            labels = labels.astype(np.int64)  # 2.0 is how many programs write the grade 2
        return loss.truths.check(labels, "y")

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

    def class_names(self, loss: Loss) -> Any:
        return self.classes

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

    def class_names(self, loss: Loss) -> Any:
        return np.unique(self.states) if self.flat else np.arange(loss.truths.shape[0])

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


LabelEncoding = (
    RawLabels
    | ClassLabels
    | CostLabels
    | PartLabels
    | SetLabels
    | OrderLabels
    | RankLabels
    | CandidateLabels
)


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
    """How truths of a loss are written, also of a spec; None if there is no such loss.

    >>> written_as("fbeta"), written_as("zero_one"), written_as("kendall")
    ('sets', 'classes', 'orders')
    """
    found = loss_class(loss)
    if found is None:
        return None
    if found.labels_as is not None:
        return found.labels_as
    # specs of losses that say nothing are over classes: the others say so
    return "classes" if isinstance(loss, str) else getattr(loss.truths, "labels_as", "codes")


def over_parts(loss: Any) -> bool:
    """Whether labels have parts, so that y may be an indicator matrix (also of a spec).

    >>> over_parts("hamming"), over_parts("zero_one")
    (True, False)
    """
    written = written_as(loss)
    if written is not None:
        return written in ("parts", "sets")
    metric = asked_metric(loss)
    return metric is not None and metric.labels


def over_classes(loss: Any) -> bool:
    """Whether a loss object is over plain classes."""
    return not isinstance(loss, str) and written_as(loss) == "classes"


def check_same_classes(loss: Loss, encoding: Any) -> None:
    """Refuse a loss for classes in another order than those that a model was fitted for."""
    if not isinstance(encoding, ClassLabels):
        return
    classes, names = encoding.classes, getattr(loss.truths, "names", None)
    if names is None and loss.ordered_classes:
        names = tuple(str(label) for label in in_order(classes, None, loss))
    known = tuple(str(label) for label in classes)
    if names is None or tuple(names) == known:
        return
    if set(names) == set(known) or not are_codes(classes, len(classes)):
        raise ValueError(
            f"the classes of the loss are {listed(names)}, but the model was fitted for "
            f"{listed(classes)}, in that order; give the loss these classes, or fit again"
        )


def encode_again(encoding: Any, loss: Loss, y: Any) -> LabelArray:
    """Codes of a later batch; labels that the first call did not announce are refused."""
    codes: LabelArray = encoding.encode(y, loss)
    if codes.dtype.kind == "i" and codes.shape == np.shape(y) and (codes == UNSEEN).any():
        unseen = np.asarray(y)[codes == UNSEEN].tolist()[0]
        raise ValueError(
            f"y contains {unseen!r}, which was not among the classes of the first call of "
            "partial_fit; pass all classes there"
        )
    return codes


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
    asked: Metric | None = None,
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
    asked : Metric, optional
        What the decisions are for, where the loss only serves the fit.
    """
    if not isinstance(loss, str | Loss):
        loss = _loss_of_costs(loss)
    written = written_as(loss)
    if written == "candidates":
        return _prepare_candidates(loss, y)
    if written == "orders":
        return _prepare_orders(loss, np.asarray(y))
    labels = np.asarray(y)
    distinct = None
    if isinstance(loss, str):
        distinct = distinct_labels(labels if classes is None else classes)
        found = parse_loss(loss, sizes=_sizes(loss, labels, distinct, structured))
    else:
        found = loss
    found = found.learnt_from(labels)
    if written == "classes":
        if labels.ndim != 1:
            raise ValueError(
                f"{found!r} is a loss over classes and needs y of shape (n,), got {labels.shape}; "
                f"for label matrices use a loss over parts such as 'hamming'"
            )
        known = distinct_labels(labels if classes is None else classes)
        wanted = found if asked is None else asked
        if wanted.ordered_classes and getattr(found.truths, "names", None) is None:
            if asked is not None and asked.names is not None:
                order = asked.names
            elif order is None and known.dtype.kind in "OUS":
                order = classes  # whoever names all classes names them in order
            known = in_order(known, order, wanted)
        encoding: LabelEncoding = _class_labels(found, known)
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


def _loss_of_costs(table: Any) -> Loss:
    if not is_cost_table(table):
        raise TypeError(
            f"loss must be a Loss, a spec such as 'zero_one' or a table of costs, "
            f"got {type(table).__name__}"
        )
    return cost_table(table)


def _prepare_candidates(loss: Any, y: Any) -> tuple[Loss, LabelEncoding, LabelArray]:
    sets = candidate_sets(y)
    distinct = distinct_candidates(sets)
    if isinstance(loss, str):
        loss = parse_loss(loss, sizes=Sizes(n_classes=len(distinct)))
    if written_as(loss.loss) != "classes":  # masks over structured truths
        encoding: LabelEncoding = RawLabels()
        return loss, encoding, encoding.encode(sets, loss)
    named = _class_labels(loss.loss, distinct)
    encoding = CandidateLabels(named.classes, named.predictions)
    return loss, encoding, encoding.encode(sets, loss)


def _prepare_orders(loss: Any, labels: LabelArray) -> tuple[Loss, LabelEncoding, LabelArray]:
    if getattr(loss, "ties", "refuse") != "refuse":
        encoding: LabelEncoding = RankLabels()
        return loss, encoding, encoding.encode(labels, loss)
    encoding, partial = order_labels(labels)
    if isinstance(loss, str):
        loss = parse_loss(loss, sizes=Sizes(n_parts=labels.shape[1]))
        if partial and hasattr(loss, "ties"):  # a tied pair has no order to disagree with
            loss = dataclasses.replace(loss, ties="exclude")
    elif loss.n is None:
        loss = loss.at(labels.shape[1])
    if loss.n != labels.shape[1]:
        raise ValueError(f"{loss!r} needs y of shape (n, {loss.n}), got {labels.shape}")
    return loss, encoding, encoding.encode(labels, loss)


def _sizes(loss: str, labels: LabelArray, distinct: Any, structured: bool) -> Sizes:
    if labels.ndim == 1:  # classes, or labels of one part
        return Sizes(len(distinct), 1, max(2, len(distinct)))
    if loss_class(loss) is CostVectors:  # a column for each prediction
        return Sizes(n_classes=labels.shape[1])
    n_states = max(2, len(distinct)) if structured else 2
    if written_as(loss) == "relevance" and distinct.dtype.kind in "biuf":
        n_states = max(2, int(distinct[-1]) + 1)  # grades are numbers, not names
    return Sizes(n_parts=labels.shape[1] if labels.ndim > 1 else None, n_states=n_states)


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
            classes = as_kind([written.get(name, name) for name in names], kind)
            named = getattr(predictions, "names", None)
            if named is None:
                return ClassLabels(classes, _prediction_labels(loss, classes))
            return ClassLabels(classes, as_kind([written.get(name, name) for name in named], kind))
        if not are_codes(distinct, truths.size):
            raise ValueError(
                f"y contains {shown(unknown[0])}, which is not a class of {type(loss).__name__}; "
                f"its classes are {listed(names)}"
            )
    if are_codes(distinct, truths.size):
        classes = np.arange(truths.size).astype(distinct.dtype, copy=False)
    elif len(distinct) == truths.size:
        classes = distinct
    else:
        raise ValueError(
            f"{loss!r} is over {truths.size} classes, but y contains {len(distinct)} different "
            f"labels; number them 0..{truths.size - 1}, or omit the size in the loss"
        )
    return ClassLabels(classes, _prediction_labels(loss, classes))


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
