"""Classes of a fitted model: their order, other losses over them, later batches.

A model counts classes in the order of its loss; scikit-learn reads `classes_` and the columns of
`predict_proba` and `decision_function` in sorted order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from consistruct.decisions.classes import (
    UNSEEN,
    ClassLabels,
    are_codes,
    class_labels,
    in_order,
    listed,
    lookup_codes,
)
from consistruct.losses import CostMatrix
from consistruct.losses.base import Loss
from consistruct.protocols import LabelArray

__all__ = [
    "class_columns",
    "encode_again",
    "encoding_for",
    "loss_in_code_order",
    "prediction_columns",
]


def class_columns(encoding: Any) -> LabelArray:
    """Return the codes of the sorted classes: column j of `predict_proba` is code columns[j]."""
    return np.argsort(encoding.classes, kind="stable")


def prediction_columns(encoding: Any) -> LabelArray | None:
    """Return the codes of the predictions in the order of the sorted classes.

    Predictions that are no classes (abstaining, actions) follow in the order of the loss. None
    where predictions have no names, or where the loss has this order already.
    """
    if not isinstance(encoding, ClassLabels):
        return None
    rank = {label: place for place, label in enumerate(np.sort(encoding.classes).tolist())}
    names = encoding.predictions.tolist()
    places = [rank.get(label, len(rank) + code) for code, label in enumerate(names)]
    order = np.argsort(places, kind="stable")
    return None if np.array_equal(order, np.arange(len(order))) else order


def loss_in_code_order(loss: Loss, encoding: Any) -> Loss:
    """Return the loss with its true labels in the order of the codes that a model was fitted for.

    Names of the loss are matched with the classes; a loss without names is over the sorted classes,
    as in `fit`. A model estimates P(code | x), so that where the orders differ the true labels of
    the loss are put in the order of the codes, as a cost matrix with names.
    """
    if not isinstance(encoding, ClassLabels):
        return loss
    classes, names = np.sort(encoding.classes), getattr(loss.true_labels, "names", None)
    if names is None and loss.ordered_classes:
        classes = in_order(classes, None, loss)
    missing = names is not None and set(names) != {str(label) for label in classes}
    if missing and not are_codes(classes, len(classes)):
        raise ValueError(
            f"the classes of the loss are {listed(names)}, but the model was fitted for "
            f"{listed(classes)}; give the loss these classes, or fit again"
        )
    over = class_labels(loss, classes)
    codes = lookup_codes(encoding.classes, over.classes)
    if np.array_equal(codes, np.arange(len(codes))):
        return loss
    matrix = loss.matrix()
    rows = np.append(codes, np.arange(len(codes), len(matrix)))
    if names is None and np.array_equal(matrix[rows][:, codes], matrix):
        return loss  # the same for every order of the classes, such as the 0-1 loss
    labels = [tuple(map(str, part.tolist())) for part in (over.predictions, encoding.classes)]
    return CostMatrix(matrix[:, codes], *labels, rows="pred")


def encoding_for(loss: Loss, encoding: Any) -> Any:
    """The encoding for another loss over the same classes, which may have other predictions."""
    if isinstance(encoding, ClassLabels):
        return class_labels(loss, encoding.classes)
    return encoding


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
