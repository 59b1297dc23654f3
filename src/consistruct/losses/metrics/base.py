"""Non-decomposable metrics: functions ψ of the mean confusion.

    C = E[e_ŷ e_yᵀ]        (k, k): rows are predictions, columns true labels, entries sum to one
    label sets             (T, 2, 2): one such confusion per label

ψ(C) is greater for better predictions. The best rule for ψ is the decision of least expected cost
for one cost matrix, −∇ψ at the best confusion: so a metric needs its value and its gradient, and
whoever searches (`consistruct.learning.rules`) does the rest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from consistruct._members import Member
from consistruct.exceptions import CapabilityError, ConsistructError
from consistruct.losses.matrix import Axis, CostMatrix, rows_as_predictions
from consistruct.protocols import FloatArray

if TYPE_CHECKING:
    from consistruct.losses.metrics.constraints import Constrained

__all__ = [
    "Kind",
    "Metric",
    "OfMetric",
    "check_confusion",
    "one_against_rest",
    "one_against_rest_adjoint",
]

Kind = Literal["linear", "concave", "ratio", "other"]


class Metric(Member, ABC):
    """Measure predictions by a function ψ(C) of their mean confusion; greater is better.

    **Must be written**: `value`, `gradient` and `kind`.

    **May be written**: `majorant`, `stages` and the attributes below.

    Gradients are those of the formula on any table of non-negative numbers. Every formula here
    is the same for counts as for shares: a confusion need not sum to one.

    Attributes
    ----------
    kind : "linear", "concave", "ratio" or "other"
        What ψ is over confusions with the same true labels: the search proves how far a rule is
        from the best for the first two, and needs no second start for the third.
    value_range : (float, float)
    n_classes : int or None
        2 where a positive class is meant (the second one), None for any number.
    labels : bool
        Whether confusions of label sets, (T, 2, 2), are taken too.
    worst_class : bool
        Whether only the least recall counts, so that rules are sought that make all recalls equal.
    drawn : bool
        Whether decisions may be drawn at random between rules.
    ordered_classes : bool
        Whether the order of the classes matters.
    names : tuple of str or None
        The classes in order, where the metric was given them.
    """

    value_range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    n_classes: int | None = None
    labels: bool = False
    worst_class: bool = False
    drawn: bool = False
    names: tuple[str, ...] | None = None

    @property
    def ordered_classes(self) -> bool:
        return False

    @property
    def conditions(self) -> Constrained | None:
        """Return the metric itself where conditions must hold on new rows, else None."""
        return None

    @property
    @abstractmethod
    def kind(self) -> Kind: ...

    @abstractmethod
    def value(self, confusion: FloatArray) -> float:
        """Return ψ at a confusion, (k, k) or (T, 2, 2)."""

    @abstractmethod
    def gradient(self, confusion: FloatArray) -> FloatArray:
        """Return ∇ψ, of the shape of the confusion. At corners any finite ascent direction."""

    # --- with a default ---

    def _repr_html_(self) -> str:
        from consistruct._cards import metric_card  # in notebooks only

        return metric_card(self)

    @property
    def stages(self) -> tuple[Metric, ...]:
        """Return smoother metrics that lead to this one; a search takes their rules on the way."""
        return ()

    def majorant(self, confusion: FloatArray) -> tuple[FloatArray, float]:
        """Return (A, b) with ψ(C') ≤ ⟨A, C'⟩ + b for every C' with the same true labels.

        The tangent at the confusion where ψ is concave; other metrics raise.
        """
        if self.kind not in ("linear", "concave"):
            raise CapabilityError(
                self, "majorant", "an upper bound of the metric", "only concave metrics have one"
            )
        gradient = self.gradient(confusion)
        return gradient, self.value(confusion) - float(np.sum(gradient * confusion))

    def costs(self, confusion: FloatArray) -> FloatArray:
        """Return what each decision costs near this confusion, in units of the metric.

        −∇ψ, with the least cost of every true set to zero, which no decision depends on.
        """
        # ψ(C + dC) ≈ ψ(C) + ⟨∇ψ, dC⟩: one more row with true label y, predicted as i, gains ∇ψ[i,
        # y]
        slope = -self.gradient(confusion)
        return np.asarray(slope - slope.min(axis=-2, keepdims=True))

    def linearized(self, confusion: FloatArray, *, rows: Axis | None = None) -> CostMatrix:
        """Return the task loss that this metric is, to first order, at a confusion of classes.

        Regret in its mean is, to first order, regret in the metric: so "how hard is it" is
        given by the calibration function of this loss.

        Parameters
        ----------
        confusion : (k, k) array
        rows : "pred" or "true"
            What its rows stand for; may be omitted only if it is symmetric. scikit-learn's
            confusion matrices have true labels as rows.

        Examples
        --------
        >>> from consistruct.losses.metrics import parse_metric
        >>> parse_metric("f1").linearized([[0.8, 0.1], [0.0, 0.1]], rows="pred").M.round(2)
        array([[0.  , 4.44],
               [2.22, 0.  ]])
        """
        checked = check_confusion(confusion, self)
        if checked.ndim != 2:
            raise ConsistructError(
                f"for label sets, {self!r} has one cost matrix per label; pass the confusion "
                "matrix of one label"
            )
        turned = rows_as_predictions(checked, rows, what="confusion matrix")
        return CostMatrix(self.costs(turned), rows="pred")


class OfMetric(Metric):
    """Put a condition or a leave around a metric: what it measures is the inner one's.

    Members say of which `kind` they are.
    """

    metric: Metric

    @property
    def value_range(self) -> tuple[float, float]:  # type: ignore[override]
        return self.metric.value_range

    @property
    def ordered_classes(self) -> bool:
        return self.metric.ordered_classes

    @property
    def names(self) -> tuple[str, ...] | None:  # type: ignore[override]
        return self.metric.names

    @property
    def n_classes(self) -> int | None:  # type: ignore[override]
        return self.metric.n_classes

    @property
    def worst_class(self) -> bool:  # type: ignore[override]
        return self.metric.worst_class

    @property
    def stages(self) -> tuple[Metric, ...]:
        return self.metric.stages

    def value(self, confusion: FloatArray) -> float:
        return self.metric.value(confusion)

    def gradient(self, confusion: FloatArray) -> FloatArray:
        return self.metric.gradient(confusion)

    def majorant(self, confusion: FloatArray) -> tuple[FloatArray, float]:
        return self.metric.majorant(confusion)


def check_confusion(confusion: object, metric: Metric) -> FloatArray:
    """Return a confusion as a table of non-negative numbers, of a shape that the metric takes."""
    table = np.asarray(confusion, dtype=np.float64)
    square = table.ndim in (2, 3) and table.shape[-1] == table.shape[-2] and table.shape[-1] >= 2
    if not square or (table.ndim == 3 and table.shape[1] != 2):
        raise ConsistructError(
            "a confusion matrix must have shape (k, k) with rows as predictions, or (T, 2, 2) "
            f"for label sets, got {table.shape}"
        )
    if not np.isfinite(table).all() or (table < 0).any() or table.sum() <= 0:
        raise ConsistructError(
            "a confusion matrix must contain non-negative numbers with a positive sum"
        )
    if table.ndim == 3 and not metric.labels:
        raise ConsistructError(f"{metric!r} is for classes, not for label sets")
    if table.ndim == 2 and metric.n_classes not in (None, len(table)):
        raise ConsistructError(
            f"{metric!r} is for {metric.n_classes} classes, got a confusion of {len(table)}"
        )
    return table


def one_against_rest(confusion: FloatArray) -> FloatArray:
    """Return confusions of every class against the others, (k, 2, 2), from (k, k).

    >>> one_against_rest(np.array([[3.0, 1.0], [0.0, 2.0]]))[1]
    array([[3., 1.],
           [0., 2.]])
    """
    right = np.diagonal(confusion)
    predicted, true = confusion.sum(axis=1), confusion.sum(axis=0)
    tables = np.empty((len(confusion), 2, 2))
    tables[:, 1, 1] = right
    tables[:, 1, 0] = predicted - right
    tables[:, 0, 1] = true - right
    tables[:, 0, 0] = confusion.sum() - predicted - true + right
    return tables


def one_against_rest_adjoint(gradient: FloatArray) -> FloatArray:
    """Return the gradient in C, (k, k), from one in the confusions against the rest, (k, 2, 2)."""
    # each class adds g[p, t] of its own 2 x 2 table to entry (i, j), p = [i is it], t = [j is it]:
    # summed over classes, all of them count as neither, except those of the row and the column
    none, miss, alarm, hit = gradient.reshape(-1, 4).T
    slope = none.sum() + (alarm - none)[:, None] + (miss - none)[None, :]
    slope[np.diag_indices(len(gradient))] += none - miss - alarm + hit
    return np.asarray(slope)
