"""Conditions on the confusion that must hold on new rows: recall, precision, budgets, groups.

Each is linear: *slack* ≥ 0 as counted. Counts of out-of-fold rows are uncertain, and so are those
of the new rows that the condition is evaluated on; so a rule must have slack to spare, the
*margin*.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from consistruct._members import Member
from consistruct._validation import check_count, check_number
from consistruct.losses.metrics.base import Kind, Metric, OfMetric
from consistruct.protocols import FloatArray

__all__ = [
    "Constrained",
    "Constraint",
    "EqualRecall",
    "FlaggedAtMost",
    "PrecisionAtLeast",
    "RecallAtLeast",
]

CONFIDENCE = 0.9
# new rows for each out-of-fold one. On parts of the out-of-fold rows of four tables (200 splits in
# three, recall of at least 0.9) this is missed in 9.8 % of the splits; 1.0 in 11.2 %, 0.5 in 7.2 %.
NEW_SHARE = 0.75


class Constraint(Member, ABC):
    """One or several linear conditions. Required: `slack`, `gradient`, `margin`.

    Confusions are those of each group of rows, (g, k, k), which together sum to one; g = 1 where
    no groups are named.

    Attributes
    ----------
    column : name or number of a column of X, or None
        Whose values are the groups.
    """

    column: Any = None

    @abstractmethod
    def slack(self, confusions: FloatArray) -> FloatArray:
        """By how much each condition holds, (m,); negative where it does not."""

    @abstractmethod
    def gradient(self, confusions: FloatArray) -> FloatArray:
        """Gradient of the slack, (m, g, k, k)."""

    @abstractmethod
    def margin(self, confusions: FloatArray, n: float, new: float) -> FloatArray:
        """Standard error, (m,), of the slack on `new` rows minus that counted on n rows."""


class RateConstraint(Constraint):
    """hits ≥ level · trials. Required: `hits`, `trials` (masks of the confusion), `level`.

    The standard error is that of a rate which just meets its level (the score test), so that it
    does not vanish where every trial was a hit.
    """

    @property
    @abstractmethod
    def rate(self) -> float:
        """The least share of hits."""

    @abstractmethod
    def masks(self, k: int) -> tuple[FloatArray, FloatArray]:
        """Entries that are hits, and those that are trials, (k, k) each."""

    def slack(self, confusions: FloatArray) -> FloatArray:
        hits, trials = self.masks(confusions.shape[-1])
        return np.array([np.sum((hits - self.rate * trials) * confusions)])

    def gradient(self, confusions: FloatArray) -> FloatArray:
        hits, trials = self.masks(confusions.shape[-1])
        return np.broadcast_to(hits - self.rate * trials, (1, *confusions.shape))

    def margin(self, confusions: FloatArray, n: float, new: float) -> FloatArray:
        tried = float(np.sum(self.masks(confusions.shape[-1])[1] * confusions))
        spread = self.rate * (1.0 - self.rate) * tried
        return np.array([np.sqrt(spread * (1.0 / n + 1.0 / new))])


def _share(value: float, name: str) -> float:
    found = check_number(value, name)
    if not 0.0 < found < 1.0:
        raise ValueError(f"{name} must be between 0 and 1, got {value!r}")
    return found


@dataclass(frozen=True, eq=False, repr=False)
class RecallAtLeast(RateConstraint):
    """At least this share of the rows of a class is predicted as that class.

    Parameters
    ----------
    level : float
    label : int
        The class; the second one, if there are two, by default.
    """

    level: float
    label: int = 1

    def __post_init__(self) -> None:
        self._set(
            level=_share(self.level, "recall"), label=check_count(self.label, "label", minimum=0)
        )

    @property
    def rate(self) -> float:
        return self.level

    def masks(self, k: int) -> tuple[FloatArray, FloatArray]:
        hits, trials = np.zeros((2, k, k))
        hits[self.label, self.label] = 1.0
        trials[:, self.label] = 1.0
        return hits, trials


@dataclass(frozen=True, eq=False, repr=False)
class PrecisionAtLeast(RateConstraint):
    """At least this share of the rows predicted as a class belongs to it.

    Parameters
    ----------
    level : float
    label : int
    """

    level: float
    label: int = 1

    def __post_init__(self) -> None:
        self._set(
            level=_share(self.level, "precision"),
            label=check_count(self.label, "label", minimum=0),
        )

    @property
    def rate(self) -> float:
        return self.level

    def masks(self, k: int) -> tuple[FloatArray, FloatArray]:
        hits, trials = np.zeros((2, k, k))
        hits[self.label, self.label] = 1.0
        trials[self.label, :] = 1.0
        return hits, trials


@dataclass(frozen=True, eq=False, repr=False)
class FlaggedAtMost(RateConstraint):
    """A budget: at most this share of the rows is predicted as the class.

    For label sets: at most this share of all labels of all rows.

    Parameters
    ----------
    share : float
    label : int
    """

    share: float
    label: int = 1

    def __post_init__(self) -> None:
        self._set(
            share=_share(self.share, "share"), label=check_count(self.label, "label", minimum=0)
        )

    @property
    def rate(self) -> float:
        return 1.0 - self.share

    def masks(self, k: int) -> tuple[FloatArray, FloatArray]:
        hits = np.ones((k, k))
        hits[self.label, :] = 0.0
        return hits, np.ones((k, k))


@dataclass(frozen=True, eq=False, repr=False)
class EqualRecall(Constraint):
    """Recalls of a class differ by at most `within` between groups of rows.

    Parameters
    ----------
    within : float
    column : name or number of a column of X
        Whose values are the groups; the rule may treat them differently, and reads the column of
        new rows.
    label : int
    """

    within: float
    column: Any
    label: int = 1

    def __post_init__(self) -> None:
        self._set(
            within=_share(self.within, "within"), label=check_count(self.label, "label", minimum=0)
        )

    def _pairs(self, confusions: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Recalls and positives of each group, and the pairs of groups that have positives."""
        positives = confusions[:, :, self.label].sum(axis=1)
        found = np.flatnonzero(positives > 0)
        recalls = confusions[:, self.label, self.label] / np.maximum(positives, 1e-300)
        return recalls, positives, np.array([(a, b) for a in found for b in found if a != b])

    def slack(self, confusions: FloatArray) -> FloatArray:
        recalls, _, pairs = self._pairs(confusions)
        if len(pairs) == 0:
            return np.zeros(0)
        return np.asarray(self.within - (recalls[pairs[:, 0]] - recalls[pairs[:, 1]]))

    def gradient(self, confusions: FloatArray) -> FloatArray:
        recalls, positives, pairs = self._pairs(confusions)
        slope = np.zeros((len(pairs), *confusions.shape))
        for row, (high, low) in enumerate(pairs):
            for group, sign in ((high, -1.0), (low, 1.0)):
                slope[row, group, :, self.label] = -sign * recalls[group] / positives[group]
                slope[row, group, self.label, self.label] += sign / positives[group]
        return slope

    def margin(self, confusions: FloatArray, n: float, new: float) -> FloatArray:
        n = n * new / (n + new)
        recalls, positives, pairs = self._pairs(confusions)
        if len(pairs) == 0:
            return np.zeros(0)
        variance = np.maximum(recalls * (1.0 - recalls), 0.01) / np.maximum(n * positives, 1.0)
        return np.sqrt(variance[pairs[:, 0]] + variance[pairs[:, 1]])


@dataclass(frozen=True, eq=False, repr=False)
class Constrained(OfMetric):
    """A metric to be made large under conditions that must hold on new rows.

    Parameters
    ----------
    metric : Metric
    constraints : Constraint or sequence of them
    confidence : float
        One minus the probability of a rule that is issued and misses the condition on new rows, for
        each condition. Where hardly any rule is issued, more of those that are may miss it.
    new_rows : int, optional
        How many new rows the conditions are evaluated on; three quarters of those that were left
        out if None. The fewer they are, the wider the margin.

    Examples
    --------
    >>> from consistruct.losses.metrics import Constrained, FScore, FlaggedAtMost
    >>> Constrained(FScore(), FlaggedAtMost(0.05)).value([[90, 5], [0, 5]])
    0.6666666666666666
    """

    metric: Metric
    constraints: Any  # one or several are given, a tuple is kept
    confidence: float = CONFIDENCE
    new_rows: int | None = None

    def __post_init__(self) -> None:
        given = self.constraints
        constraints = (given,) if isinstance(given, Constraint) else tuple(given)
        if not constraints or not all(isinstance(part, Constraint) for part in constraints):
            raise ValueError(f"constraints must be Constraint objects, got {given!r}")
        if isinstance(self.metric, Constrained):
            raise ValueError("pass all constraints to one Constrained, not one inside another")
        if self.metric.drawn:
            raise ValueError(f"constraints take one rule, not one drawn at random: {self.metric!r}")
        columns = {repr(part.column) for part in constraints if part.column is not None}
        if len(columns) > 1:
            raise ValueError(f"constraints must name one column of groups, got {sorted(columns)}")
        rows = None if self.new_rows is None else check_count(self.new_rows, "new_rows")
        self._set(
            constraints=constraints,
            confidence=_share(self.confidence, "confidence"),
            new_rows=rows,
        )

    @property
    def conditions(self) -> Constrained:
        return self

    @property
    def kind(self) -> Kind:
        return self.metric.kind

    @property
    def labels(self) -> bool:  # type: ignore[override]
        flags = all(isinstance(part, FlaggedAtMost) for part in self.constraints)
        return self.metric.labels and flags

    @property
    def column(self) -> Any:
        """The column of X whose values are the groups, or None."""
        named = [part.column for part in self.constraints if part.column is not None]
        return named[0] if named else None

    # --- the conditions together ---

    def slack(self, confusions: FloatArray) -> FloatArray:
        """By how much each condition holds as counted, (m,)."""
        return np.concatenate([part.slack(confusions) for part in self.constraints])

    def slack_gradient(self, confusions: FloatArray) -> FloatArray:
        """Of `slack`, (m, g, k, k)."""
        return np.concatenate([part.gradient(confusions) for part in self.constraints])

    def spare(self, confusions: FloatArray, n: float) -> FloatArray:
        """Slack beyond the margin, as counted on n rows, (m,): new rows meet it where positive."""
        from scipy.special import ndtri

        new = NEW_SHARE * n if self.new_rows is None else self.new_rows
        margins = [part.margin(confusions, n, new) for part in self.constraints]
        return np.asarray(self.slack(confusions) - ndtri(self.confidence) * np.concatenate(margins))
