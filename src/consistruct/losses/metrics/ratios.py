"""F-beta, Jaccard, precision and recall of a class, and their means over classes or labels.

Each is a ratio of two linear functions of the 2 x 2 confusion of one class against the rest.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np

from consistruct._validation import check_choice, check_number
from consistruct.losses.metrics.base import (
    Kind,
    Metric,
    check_confusion,
    one_against_rest,
    one_against_rest_adjoint,
)
from consistruct.protocols import FloatArray

__all__ = ["FScore", "JaccardScore", "PrecisionScore", "RatioMetric", "RecallScore"]

Average = Literal["binary", "macro", "micro", "weighted"]
AVERAGES = ("binary", "macro", "micro", "weighted")


class RatioMetric(Metric):
    """Measure ⟨a, C⟩ / ⟨b, C⟩ of a 2 x 2 confusion, 0 where both are 0. Required: `coefficients`.

    average="binary" is about the second of two classes; "macro" is the mean over classes or
    labels, "weighted" the mean by how frequent they are, "micro" the ratio of pooled counts.
    Classes that are neither true nor predicted are left out; labels of label sets never are.
    """

    average: Average

    @property
    @abstractmethod
    def coefficients(self) -> tuple[FloatArray, FloatArray]:
        """Return a and b, (2, 2): rows are predictions, columns true labels."""

    @property
    def kind(self) -> Kind:
        return "ratio" if self.average in ("binary", "micro") else "other"

    @property
    def n_classes(self) -> int | None:  # type: ignore[override]
        return 2 if self.average == "binary" else None

    @property
    def labels(self) -> bool:  # type: ignore[override]
        return self.average != "binary"

    def value(self, confusion: FloatArray) -> float:
        parts, weight, _ = self._parts(confusion)
        return float(weight @ self.ratio(parts)[0])

    def gradient(self, confusion: FloatArray) -> FloatArray:
        confusion = np.asarray(confusion, dtype=np.float64)
        parts, weight, total = self._parts(confusion)
        ratio, slope = self.ratio(parts)
        slope = slope * weight[:, None, None]
        if self.average == "weighted":  # a weight is itself the share of a true label
            slope[:, :, 1] += ((ratio - weight @ ratio) / total)[:, None]
        if self.average == "binary":
            return np.asarray(slope[0])
        if self.average == "micro":
            n = len(confusion)
            slope = np.repeat(slope, n, axis=0) / n  # each part is 1/n of the pooled one
        return slope if confusion.ndim == 3 else one_against_rest_adjoint(slope)

    def ratio(self, parts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the ratio of each 2 x 2 confusion, (m,), and its gradient, (m, 2, 2)."""
        a, b = self.coefficients
        above, below = np.sum(a * parts, axis=(-2, -1)), np.sum(b * parts, axis=(-2, -1))
        safe = np.where(below > 0, below, 1.0)
        value = np.where(below > 0, above / safe, 0.0)
        # ∇(⟨a, C⟩/⟨b, C⟩) = (a − ratio·b)/⟨b, C⟩; where nothing is counted below, no direction is
        # better
        gradient = (a - value[..., None, None] * b) / safe[..., None, None]
        return value, np.where((below > 0)[..., None, None], gradient, 0.0)

    def _parts(self, confusion: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """Return 2 x 2 confusions (m, 2, 2), their weights (m,), and what divided the weights."""
        table = check_confusion(confusion, self)
        if self.average == "binary":
            return table[None], np.ones(1), 1.0
        parts = table if table.ndim == 3 else one_against_rest(table)
        if self.average == "micro":
            # mean in place of sum: a ratio does not see the factor, and shares stay shares
            return parts.mean(axis=0)[None], np.ones(1), 1.0
        if self.average == "macro":
            present = np.ones(len(parts))
            if table.ndim == 2:  # as scikit-learn: over classes that are true or predicted
                present = (table.sum(axis=0) + table.sum(axis=1) > 0).astype(np.float64)
            return parts, present / present.sum(), 1.0
        frequent = parts[:, :, 1].sum(axis=1)
        total = float(frequent.sum())
        return parts, frequent / total, total


@dataclass(frozen=True, eq=False, repr=False)
class FScore(RatioMetric):
    """Measure F-beta over the whole data set: (1+β²)·TP / ((1+β²)·TP + β²·FN + FP).

    Not `FBeta`, the loss of each label set on its own, whose mean over examples is something else.

    Parameters
    ----------
    beta : float
        Recall counts β times as much as precision.
    average : "binary", "macro", "micro" or "weighted"

    Examples
    --------
    >>> from consistruct.losses.metrics import FScore
    >>> FScore(average="macro").value([[4, 1], [0, 5]])
    0.898989898989899
    """

    beta: float = 1.0
    average: Average = "binary"

    def __post_init__(self) -> None:
        check_choice(self.average, "average", AVERAGES)
        self._set(beta=check_number(self.beta, "beta", low=0.0, open_low=True))

    @property
    def coefficients(self) -> tuple[FloatArray, FloatArray]:
        square = self.beta**2
        return (
            np.array([[0.0, 0.0], [0.0, 1.0 + square]]),
            np.array([[0.0, square], [1.0, 1.0 + square]]),
        )


@dataclass(frozen=True, eq=False, repr=False)
class _HitRatio(RatioMetric):
    """Measure TP / ⟨b, C⟩, hits against what sets Jaccard, precision and recall apart."""

    average: Average = "binary"

    def __post_init__(self) -> None:
        check_choice(self.average, "average", AVERAGES)

    @property
    @abstractmethod
    def below(self) -> FloatArray:
        """Return b, (2, 2): the cells that hits are compared with."""

    @property
    def coefficients(self) -> tuple[FloatArray, FloatArray]:
        return np.array([[0.0, 0.0], [0.0, 1.0]]), self.below


class JaccardScore(_HitRatio):
    """Measure the Jaccard index over the whole data set: TP / (TP + FN + FP).

    Parameters
    ----------
    average : "binary", "macro", "micro" or "weighted"
    """

    @property
    def below(self) -> FloatArray:
        return np.array([[0.0, 1.0], [1.0, 1.0]])


class PrecisionScore(_HitRatio):
    """Measure the share of rows predicted as the class that belong to it: TP / (TP + FP).

    On its own it is best where next to nothing is predicted: give it a constraint.

    Parameters
    ----------
    average : "binary", "macro", "micro" or "weighted"
    """

    @property
    def below(self) -> FloatArray:
        return np.array([[0.0, 0.0], [1.0, 1.0]])


class RecallScore(_HitRatio):
    """Measure the share of the rows of a class that are predicted as it: TP / (TP + FN).

    On its own it is best where the class is always predicted: give it a constraint.

    Parameters
    ----------
    average : "binary", "macro", "micro" or "weighted"
    """

    @property
    def below(self) -> FloatArray:
        return np.array([[0.0, 1.0], [0.0, 1.0]])

    @property
    def kind(self) -> Kind:
        # TP + FN are the true rows of the class, which no decision moves: the ratio is linear
        return "linear"
