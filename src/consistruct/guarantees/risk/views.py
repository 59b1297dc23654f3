"""What a fitted estimator states about some rows: its decisions and how sure it is of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from consistruct.learning.encoding.kinds import take_codes
from consistruct.learning.estimator import TargetEstimator
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray
from consistruct.structures import Ragged, Subsets

__all__ = ["View", "check_estimator", "fitted", "take_labels"]

CHUNK = 50_000  # rows that are looked at together


def check_estimator(estimator: Any) -> TargetEstimator:
    """The estimator, if it is one of this package; the error states how to wrap a classifier."""
    found = estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator
    if not isinstance(found, TargetEstimator):
        raise TypeError(
            f"estimator must be a TaskLossClassifier or StructuredPredictor, got "
            f"{type(estimator).__name__}; wrap a classifier as TaskLossClassifier(loss, "
            f"consistruct.models.Probabilities(classifier))"
        )
    return found


def fitted(estimator: TargetEstimator) -> bool:
    """Whether the estimator has been fitted."""
    try:
        check_is_fitted(estimator, "model_")
    except NotFittedError:
        return False
    return True


def take_labels(estimator: TargetEstimator, y: Any, rows: Any) -> Any:
    """True labels of some examples, as the user wrote them."""
    if estimator.kind_.name == "rows":
        if isinstance(y, list | tuple):
            return [y[row] for row in rows]
        return y.iloc[rows] if hasattr(y, "iloc") else np.asarray(y)[rows]
    return take_codes(y, rows) if hasattr(y, "offsets") else [y[row] for row in rows]


@dataclass(frozen=True, eq=False)
class View:
    """Some examples as a policy sees them.

    Attributes
    ----------
    estimator : fitted estimator
    inputs : packed inputs
    """

    estimator: TargetEstimator
    inputs: Any

    @classmethod
    def of(cls, estimator: TargetEstimator, X: Any, groups: Any = None) -> View:
        return cls(estimator, estimator._read(X, groups))

    def __len__(self) -> int:
        shape = getattr(self.inputs, "shape", None)
        return len(self.inputs) if shape is None else int(shape[0])

    def parts(self) -> Iterator[tuple[slice, View]]:
        """The rows in chunks; sequences and queries all at once."""
        n = len(self)
        if self.estimator.kind_.name != "rows" or n <= CHUNK:
            yield slice(0, n), self
            return
        for start in range(0, n, CHUNK):
            rows = np.arange(start, min(start + CHUNK, n))
            part = View(self.estimator, self.estimator.kind_.take(self.inputs, rows))
            yield slice(start, start + len(rows)), part

    @property
    def loss(self) -> Loss:
        return self.estimator.loss_

    @cached_property
    def _expected(self) -> Any:
        """E[τ | x] as the model gives it."""
        self.estimator._require_estimates("a safer prediction")
        return self.estimator.model_.expected(self.inputs)

    @cached_property
    def codes(self) -> Any:
        """Decisions of the estimator as codes."""
        model, statistic = self.estimator.model_, self.estimator.statistic_
        if model.decides:
            return model.decisions(self.inputs)
        return statistic.decode(self.estimator.recalibration_.for_decisions(self._expected))

    @cached_property
    def _reported(self) -> Any:
        statistic = self.estimator.statistic_
        return statistic.project(self.estimator.recalibration_.for_reports(self._expected))

    @cached_property
    def expected_loss(self) -> FloatArray:
        """How much each decision is expected to cost, (n,)."""
        found = self.estimator.statistic_.expected_loss(self._reported, self.codes)
        return self.estimator._in_range(np.asarray(found))

    @cached_property
    def prices(self) -> FloatArray:
        """How much every prediction is expected to cost, (n, k)."""
        return self.estimator._in_range(self.estimator.statistic_.expected_losses(self._reported))

    @property
    def probabilities(self) -> FloatArray | None:
        """P(class | x), (n, m), where the model estimates it."""
        known = self.estimator.statistic_.of_classes
        return np.asarray(self._reported) if known else None

    @cached_property
    def target(self) -> Any:
        """Expected targets ū, (n, width); `Ragged` scores of items for queries."""
        return self.estimator.statistic_.target(self._reported)

    def true_codes(self, y: Any) -> Any:
        """Codes of true labels: an array, packed grades for queries."""
        if self.estimator.kind_.name == "queries":
            return self.inputs.grades(y)
        return self.estimator.label_encoding_.encode(y, self.loss)

    def label_sets(self, y: Any) -> Any:
        """True labels that are sets of labels, (n, T) of 0 and 1, of any size."""
        true_labels = self.loss.true_labels
        # sizes restrict what is learned from, not what is evaluated
        if isinstance(true_labels, Subsets):
            return Subsets(true_labels.n_items).check(y, "y")
        return self.true_codes(y)

    def losses(self, codes: Any, y: Any) -> FloatArray:
        """Task loss of predictions given as codes; a true label never seen counts as wrong."""
        return self.estimator.kind_.losses(self.inputs, codes, y)

    def present(self, codes: Any) -> Any:
        """Predictions as users expect them."""
        return self.estimator.kind_.present(self.inputs, codes)

    def without(self, predictions: Any, silent: np.ndarray) -> Any:
        """Presented predictions with None where there is no answer; unranked items have rank 0."""
        if self.estimator.kind_.name == "queries" and not isinstance(predictions, list):
            ranks = np.array(predictions)
            ranks[np.isin(self.inputs.pack(np.arange(len(ranks))).rows, np.flatnonzero(silent))] = 0
            return ranks
        answers = np.empty(len(silent), dtype=object)
        for row, answer in enumerate(_each(predictions)):
            answers[row] = None if silent[row] else answer
        return answers


def _each(predictions: Any) -> Any:
    if isinstance(predictions, Ragged | list):
        return list(predictions)
    return predictions.tolist() if predictions.ndim == 1 else list(predictions)
