"""Agreement beyond chance: (weighted) kappa and Matthews' coefficient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from consistruct._validation import check_choice
from consistruct.losses.metrics.base import Kind, Metric, check_confusion
from consistruct.losses.spec import check_order
from consistruct.protocols import FloatArray

__all__ = ["Kappa", "Matthews"]


@dataclass(frozen=True, eq=False, repr=False)
class Kappa(Metric):
    """Measure agreement beyond chance: Cohen's kappa, 1 − ⟨W, C⟩ / ⟨W, r cᵀ⟩.

    r are the predicted and c the true shares, r cᵀ the confusion of guesses with these shares.

    Parameters
    ----------
    weights : None, "linear" or "quadratic"
        What a disagreement weighs: 1, its distance in the order of the classes, or the square of
        it (quadratic weighted kappa).
    names : tuple of str, optional
        The classes in order, where labels are text.

    Notes
    -----
    True labels being given, both terms are linear in the confusion. With squared weights the best
    decision is round(m + (μ(x) − m) / κ), with m the mean grade and μ(x) the expected one.

    Examples
    --------
    >>> from consistruct.losses.metrics import Kappa
    >>> round(Kappa("quadratic").value([[2, 1, 0], [0, 2, 1], [0, 0, 2]]), 3)
    0.805

    References
    ----------
    Cohen, *Weighted kappa: nominal scale agreement with provision for scaled disagreement or
    partial credit*, 1968.
    """

    weights: Literal["linear", "quadratic"] | None = None
    names: tuple[str, ...] | None = None

    value_range: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    def __post_init__(self) -> None:
        check_choice(self.weights, "weights", (None, "linear", "quadratic"))
        if self.names is not None:
            self._set(names=check_order(self.names))

    @property
    def ordered_classes(self) -> bool:
        return self.weights is not None

    @property
    def kind(self) -> Kind:
        return "ratio"

    def value(self, confusion: FloatArray) -> float:
        table = check_confusion(confusion, self)
        weights = self._weights(len(table))
        chance = self._chance(table, weights)
        return 1.0 - float(np.sum(weights * table)) / chance if chance > 0 else 0.0

    def gradient(self, confusion: FloatArray) -> FloatArray:
        table = check_confusion(confusion, self)
        weights = self._weights(len(table))
        chance, disagreement = self._chance(table, weights), float(np.sum(weights * table))
        # all rows of one class, all predicted as it: kappa is 0/0, and any error leads out of the
        # corner
        if chance <= 0:
            return np.asarray(-weights)
        predicted, true, total = table.sum(axis=1), table.sum(axis=0), table.sum()
        # one more row moves chance through its prediction, through its true label and through the
        # total
        moved = (weights @ true)[:, None] + (predicted @ weights)[None, :] - chance
        return np.asarray(-(weights * chance - disagreement * moved / total) / chance**2)

    def _chance(self, table: FloatArray, weights: FloatArray) -> float:
        """Return ⟨W, r cᵀ⟩ in counts: what guesses with these shares would weigh."""
        return float(table.sum(axis=1) @ weights @ table.sum(axis=0) / table.sum())

    def _weights(self, k: int) -> FloatArray:
        """Return W, (k, k): 0 on the diagonal, and what each disagreement weighs beside it."""
        distance = np.abs(np.subtract.outer(np.arange(k), np.arange(k))).astype(np.float64)
        if self.weights is None:
            return np.asarray(distance > 0, dtype=np.float64)
        return distance if self.weights == "linear" else distance**2


@dataclass(frozen=True, eq=False, repr=False)
class Matthews(Metric):
    """Measure the correlation of predictions and true labels, for any number of classes.

    Matthews' coefficient (s·tr C − r·c) / √((s² − r·r)(s² − c·c)) with s the sum of C, r the
    predicted and c the true shares; 0 where one of them is constant.

    Examples
    --------
    >>> from consistruct.losses.metrics import Matthews
    >>> round(Matthews().value([[40, 5], [10, 45]]), 3)
    0.704

    References
    ----------
    Gorodkin, *Comparing two K-category assignments by a K-category correlation coefficient*, 2004.
    """

    value_range: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    @property
    def kind(self) -> Kind:
        return "other"

    def value(self, confusion: FloatArray) -> float:
        together, predicted, true = self._moments(check_confusion(confusion, self))
        return float(together / np.sqrt(predicted * true)) if predicted * true > 0 else 0.0

    def gradient(self, confusion: FloatArray) -> FloatArray:
        table = check_confusion(confusion, self)
        rows, columns, total = table.sum(axis=1), table.sum(axis=0), float(table.sum())
        together, predicted, true = self._moments(table)
        slope = np.trace(table) - columns[:, None] - rows[None, :] + total * np.eye(len(table))
        floor = 1e-6 * total**2  # one class predicted throughout: any direction out of the corner
        predicted, true = max(predicted, floor), max(true, floor)
        # d/dC of log √(predicted·true), each a variance s² − Σ r², halved by the square root
        moved = (total - rows)[:, None] / predicted + (total - columns)[None, :] / true
        return np.asarray((slope - together * moved) / np.sqrt(predicted * true))

    def _moments(self, table: FloatArray) -> tuple[float, float, float]:
        """Return covariance and both variances of the one-hot rows, times s²."""
        rows, columns, total = table.sum(axis=1), table.sum(axis=0), float(table.sum())
        # rounding leaves a constant prediction a variance of 1e-17
        spread = [max(total**2 - float(s @ s), 0.0) for s in (rows, columns)]
        spread = [s if s > 1e-14 * total**2 else 0.0 for s in spread]
        return total * float(np.trace(table)) - float(rows @ columns), spread[0], spread[1]
