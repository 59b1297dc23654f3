"""Metrics and scorers in scikit-learn's order (y_true, y_pred)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from consistruct._members import Member
from consistruct.learning.label_encoding import (
    ClassLabels,
    LabelEncoding,
    PartLabels,
    RawLabels,
    SetLabels,
    lookup_codes,
    prepare_labels,
)
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray

__all__ = ["TaskLossScorer", "task_loss", "task_losses"]


def task_losses(y_true: Any, y_pred: Any, *, loss: Loss | str) -> FloatArray:
    """Loss of each example, (n,).

    Parameters
    ----------
    y_true, y_pred : (n,) or (n, …) arrays
        Labels as an estimator takes and gives them.
    loss : Loss or str
        A spec takes its sizes from both label arrays together.

    Returns
    -------
    losses : (n,) array

    Examples
    --------
    >>> from consistruct.learning.metrics import task_losses
    >>> task_losses(["cat", "dog"], ["cat", "cat"], loss="zero_one")
    array([0., 1.])
    """
    true, pred = np.asarray(y_true), np.asarray(y_pred)
    if len(true) != len(pred):
        raise ValueError(
            f"y_true and y_pred must have the same length, got {len(true)} and {len(pred)}"
        )
    every = np.concatenate([true, pred]) if isinstance(loss, str) else true
    structured = true.ndim != 1
    found, encoding, _ = prepare_labels(loss, every, structured=structured)
    return encoding.losses(found, _prediction_codes(encoding, pred, found), true)


def task_loss(y_true: Any, y_pred: Any, *, loss: Loss | str, sample_weight: Any = None) -> float:
    """Mean loss.

    Parameters
    ----------
    y_true, y_pred : (n,) or (n, …) arrays
    loss : Loss or str
    sample_weight : (n,) array, optional

    Returns
    -------
    mean : float

    Examples
    --------
    >>> from consistruct.learning.metrics import task_loss
    >>> task_loss([0, 1, 4], [0, 2, 1], loss="ordinal:5")
    1.3333333333333333
    """
    return float(np.average(task_losses(y_true, y_pred, loss=loss), weights=sample_weight))


def _prediction_codes(encoding: LabelEncoding, pred: Any, loss: Loss) -> Any:
    if isinstance(encoding, RawLabels | SetLabels):
        return loss.predictions.check(pred, "y_pred")
    names = encoding.predictions if isinstance(encoding, ClassLabels) else encoding.states
    codes = lookup_codes(pred.ravel(), names).reshape(pred.shape)
    if isinstance(encoding, PartLabels) and codes.ndim == 1:
        codes = codes[:, None]
    if (codes < 0).any():
        unknown = pred.reshape(codes.shape)[codes < 0].tolist()[0]
        raise ValueError(f"y_pred holds {unknown!r}, which is no prediction of {loss!r}")
    return codes


@dataclass(frozen=True, eq=False, repr=False)
class TaskLossScorer(Member):
    """A scorer for model selection: minus the mean task loss of the predictions.

    Estimators of this package know how labels are named and truths they have never seen count as
    wrong; any other estimator is scored by what it predicts.

    Parameters
    ----------
    loss : Loss or str

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

    loss: Loss | str

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        pred = estimator.predict(X)
        encoding = getattr(estimator, "label_encoding_", None)
        if encoding is not None:
            loss = self.loss
            if isinstance(loss, str):
                loss = prepare_labels(loss, _known_labels(encoding, estimator, y),
                                      structured=np.ndim(y) != 1)[0]  # fmt: skip
            codes = _prediction_codes(encoding, np.asarray(pred), loss)
            values = encoding.losses(loss, codes, np.asarray(y))
            return -float(np.average(values, weights=sample_weight))
        return -task_loss(y, pred, loss=self.loss, sample_weight=sample_weight)


def _known_labels(encoding: LabelEncoding, estimator: Any, y: Any) -> Any:
    """Labels that tell the sizes of a loss spec as the estimator saw them."""
    if isinstance(encoding, ClassLabels):
        return encoding.classes
    if isinstance(encoding, PartLabels):
        (n_parts,) = estimator.loss_.truths.shape
        return np.repeat(encoding.states[:, None], n_parts, axis=1)
    return y
