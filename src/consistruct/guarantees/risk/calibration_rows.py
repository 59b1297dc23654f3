"""Rows that calibrate: given ones, a share kept apart, or all of them by cross-fitting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv

from consistruct._frames import labels_by_name
from consistruct.guarantees.risk.ladders import Ladder
from consistruct.guarantees.risk.policies import Policy
from consistruct.guarantees.risk.policies.base import Options
from consistruct.guarantees.risk.views import View, take_labels
from consistruct.learning.encoding.queries import is_query_list, pack_queries
from consistruct.learning.estimator import TargetEstimator
from consistruct.protocols import FloatArray, IntArray

__all__ = ["Calibration", "calibration_rows"]


@dataclass(frozen=True, eq=False)
class Calibration:
    """Views of calibration rows with their true labels.

    Attributes
    ----------
    views : list of (View, true labels)
        One, or one per fold, each by an estimator that did not see the rows.
    rows : (n,) int array or None
        Their numbers among the rows given; None for all in order.
    n_given : int
        Rows given.
    proved : bool
        Whether the estimator that predicts is the one that the rows calibrate.
    """

    views: list[tuple[View, Any]]
    rows: IntArray | None
    n_given: int
    proved: bool

    @classmethod
    def of(cls, view: View, y: Any) -> Calibration:
        """All rows, predicted by one estimator."""
        n, y = len(view), labels_by_name(view.estimator, y)
        if view.estimator.kind_.name == "rows" and (y is None or len(y) != n):
            raise ValueError(f"y must contain one true label for each of {n} rows")
        return cls([(view, y)], None, n, True)

    def ladder(self, policy: Policy, options: Options) -> Ladder:
        """The ladders of all rows, chunk by chunk."""
        parts = []
        for view, y in self.views:
            whole = view.estimator.kind_.name != "rows"
            for rows, part in view.parts():
                y_true = (
                    y
                    if whole or len(part) == len(view)
                    else take_labels(view.estimator, y, np.arange(rows.start, rows.stop))
                )
                parts.append(policy.family(part, options).ladder(y_true))
        return _joined(parts)


def _joined(parts: list[Ladder]) -> Ladder:
    """Ladders one after the other; shorter ones are padded by rungs that are never reached."""
    if len(parts) == 1:
        return parts[0]
    width = max(part.losses.shape[1] for part in parts)

    def padded(table: Any, filled: float | None) -> FloatArray:
        missing = (width - (filled is not None)) - table.shape[1]
        if missing == 0:
            return np.asarray(table)
        end = np.repeat(table[:, -1:], missing, axis=1) if filled is None else np.full(
            (len(table), missing), filled
        )  # fmt: skip
        return np.hstack([table, end])

    return Ladder(
        np.concatenate([padded(part.thresholds, np.inf) for part in parts]),
        np.concatenate([padded(part.losses, None) for part in parts]),
        np.concatenate([padded(part.answered, None) for part in parts]),
        np.concatenate([padded(part.sizes, None) for part in parts]),
    )


def calibration_rows(
    estimator: TargetEstimator,
    X: Any,
    y: Any,
    groups: Any,
    cv: Any,
    rng: np.random.Generator,
) -> tuple[TargetEstimator, Calibration]:
    """Fit the estimator here, and say which rows calibrate it."""
    units = _Units.of(X, groups)
    if isinstance(cv, float):
        if not 0.0 < cv < 1.0:
            raise ValueError(f"cv as a share of rows must be between 0 and 1, got {cv}")
        order = rng.permutation(units.n)
        size = max(1, round(cv * units.n))
        if size == units.n:
            raise ValueError(f"cv={cv} leaves none of {units.n} rows to fit the estimator on")
        kept, rest = np.sort(order[:size]), np.sort(order[size:])
        fitted = units.fit(estimator, X, y, rest)
        view, y_true, rows = units.view(fitted, X, y, kept)
        return fitted, Calibration([(view, y_true)], rows, units.examples(fitted), True)
    views: list[tuple[View, Any]] = []
    numbers: list[IntArray] = []
    for fit, left in _splits(cv, units, y, rng):
        part = units.fit(clone(estimator), X, y, fit)
        view, y_true, rows = units.view(part, X, y, left)
        views.append((view, y_true))
        numbers.append(rows)
    fitted = units.fit(estimator, X, y, np.arange(units.n))
    return fitted, Calibration(views, np.concatenate(numbers), units.examples(fitted), False)


@dataclass(frozen=True, eq=False)
class _Units:
    """What is split: rows, sequences, queries, or the groups that rows belong to."""

    n: int
    unit: IntArray  # (N,) of each row of X
    groups: Any  # (N,) or None

    @classmethod
    def of(cls, X: Any, groups: Any) -> _Units:
        listed = isinstance(X, list | tuple) or is_query_list(X)
        n_rows = len(X) if listed else X.shape[0]
        if groups is None:
            return cls(n_rows, np.arange(n_rows), None)
        batch = pack_queries(np.zeros((n_rows, 1)), groups)  # by name, or by size
        unit = np.empty(n_rows, dtype=np.int64)
        unit[batch.positions] = np.repeat(np.arange(len(batch)), np.diff(batch.offsets))
        return cls(len(batch), unit, unit)

    def _rows(self, units: IntArray) -> IntArray:
        return np.flatnonzero(np.isin(self.unit, units))

    def _keywords(self, rows: IntArray) -> dict[str, Any]:
        return {} if self.groups is None else {"groups": self.groups[rows]}

    def fit(self, estimator: Any, X: Any, y: Any, units: IntArray) -> Any:
        """The estimator fitted on some units."""
        rows = self._rows(units)
        return estimator.fit(_take(X, rows), _take(y, rows), **self._keywords(rows))

    def _grouped(self, fitted: TargetEstimator) -> bool:
        """Whether a group is an example (a query, a sequence), not several."""
        return self.groups is not None and fitted.kind_.name != "rows"

    def view(self, fitted: TargetEstimator, X: Any, y: Any, units: IntArray) -> Any:
        """Some units as the estimator sees them, their true labels, and the examples' numbers."""
        rows = self._rows(units)
        grouped = self._grouped(fitted)
        view = View.of(fitted, _take(X, rows), self.groups[rows] if grouped else None)
        return view, _take(y, rows), units if grouped else rows

    def examples(self, fitted: TargetEstimator) -> int:
        return self.n if self._grouped(fitted) else len(self.unit)


def _splits(cv: Any, units: _Units, y: Any, rng: np.random.Generator) -> list[Any]:
    n = units.n
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        if not 2 <= cv <= n:
            raise ValueError(f"cv must be 2 to {n} folds, a share of rows or a splitter, got {cv}")
        lefts = [np.sort(part) for part in np.array_split(rng.permutation(n), cv)]
        return [(np.setdiff1d(np.arange(n), left), left) for left in lefts]
    plain = y if units.groups is None and np.ndim(y) == 1 else np.zeros(n)
    return list(check_cv(cv).split(np.zeros((n, 1)), plain))


def _take(table: Any, rows: IntArray) -> Any:
    if isinstance(table, list | tuple):
        return [table[row] for row in rows]
    if hasattr(table, "iloc"):
        return table.iloc[rows]
    return table[rows] if hasattr(table, "shape") else np.asarray(table)[rows]
