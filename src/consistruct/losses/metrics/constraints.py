"""Metrics with something around them: conditions on new rows, and leave to decide at random.

Each condition (recall, precision, budgets, groups) is linear: *slack* ≥ 0 as counted. Counts of
out-of-fold rows are uncertain, and so are those
of the new rows that the condition is evaluated on; so a rule must have slack to spare, the
*margin*.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from consistruct._members import Member
from consistruct._validation import check_count, check_number
from consistruct.losses.metrics.base import Kind, Metric, OfMetric
from consistruct.protocols import FloatArray, IntArray

__all__ = [
    "Constrained",
    "Constraint",
    "EqualRecall",
    "FlaggedAtMost",
    "PrecisionAtLeast",
    "Randomized",
    "RecallAtLeast",
]

# of the rules that are issued one in ten may miss its condition; NEW_SHARE makes that come true
CONFIDENCE = 0.9
# new rows for each out-of-fold one. On parts of the out-of-fold rows of four tables (200 splits in
# three, recall of at least 0.9) this is missed in 9.8 % of the splits; 1.0 in 11.2 %, 0.5 in 7.2 %.
NEW_SHARE = 0.75


class Constraint(Member, ABC):
    """Demand one or several linear conditions. Required: `slack`, `gradient`, `margin`.

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
        """Return by how much each condition holds, (m,); negative where it does not."""

    @abstractmethod
    def gradient(self, confusions: FloatArray) -> FloatArray:
        """Return the gradient of the slack, (m, g, k, k)."""

    @abstractmethod
    def margin(self, confusions: FloatArray, n: float, new: float) -> FloatArray:
        """Return the standard error, (m,), of slack on `new` rows minus that counted on n rows."""


class RateConstraint(Constraint):
    """Demand hits ≥ rate · trials. Required: `rate`, `masks`.

    The standard error is that of a rate which just meets its level (the score test), so that it
    does not vanish where every trial was a hit.
    """

    @property
    @abstractmethod
    def rate(self) -> float:
        """Return the least share of hits."""

    @abstractmethod
    def masks(self, k: int) -> tuple[FloatArray, FloatArray]:
        """Return which entries are hits, and which are trials, (k, k) each."""

    def slack(self, confusions: FloatArray) -> FloatArray:
        hits, trials = self.masks(confusions.shape[-1])
        return np.array([np.sum((hits - self.rate * trials) * confusions)])

    def gradient(self, confusions: FloatArray) -> FloatArray:
        hits, trials = self.masks(confusions.shape[-1])
        return np.broadcast_to(hits - self.rate * trials, (1, *confusions.shape))

    def margin(self, confusions: FloatArray, n: float, new: float) -> FloatArray:
        tried = float(np.sum(self.masks(confusions.shape[-1])[1] * confusions))
        # two independent samples, n and new: variances of a share add, p(1 − p)(1/n + 1/new)
        spread = self.rate * (1.0 - self.rate) * tried
        return np.array([np.sqrt(spread * (1.0 / n + 1.0 / new))])


def _share(value: float, name: str) -> float:
    share = check_number(value, name)
    if not 0.0 < share < 1.0:
        raise ValueError(f"{name} must be between 0 and 1, got {value!r}")
    return share


@dataclass(frozen=True, eq=False, repr=False)
class _HitsAtLeast(RateConstraint):
    """Compare C[label, label] with the column of the class (recall) or its row (precision)."""

    level: float
    label: int = 1

    what: ClassVar[str]  # the rate in messages

    def __post_init__(self) -> None:
        level = _share(self.level, self.what)
        self._set(level=level, label=check_count(self.label, "label", minimum=0))

    @property
    def rate(self) -> float:
        return self.level

    def masks(self, k: int) -> tuple[FloatArray, FloatArray]:
        hits, trials = np.zeros((2, k, k))
        hits[self.label, self.label] = 1.0
        trials[:, self.label] = 1.0  # the column of the class: its true rows
        return hits, trials


class RecallAtLeast(_HitsAtLeast):
    """Demand that at least this share of the rows of a class is predicted as that class.

    Parameters
    ----------
    level : float
    label : int
        The class; the second one, if there are two, by default.
    """

    what: ClassVar[str] = "recall"


class PrecisionAtLeast(_HitsAtLeast):
    """Demand that at least this share of the rows predicted as a class belongs to it.

    Parameters
    ----------
    level : float
    label : int
    """

    what: ClassVar[str] = "precision"

    def masks(self, k: int) -> tuple[FloatArray, FloatArray]:
        hits, trials = super().masks(k)
        return hits, trials.T  # the row of the class: what is predicted as it


@dataclass(frozen=True, eq=False, repr=False)
class FlaggedAtMost(RateConstraint):
    """Keep a budget: at most this share of the rows is predicted as the class.

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
        # at most a share flagged is at least the rest not flagged: a hit is a row left alone
        return 1.0 - self.share

    def masks(self, k: int) -> tuple[FloatArray, FloatArray]:
        hits = np.ones((k, k))
        hits[self.label, :] = 0.0
        return hits, np.ones((k, k))


@dataclass(frozen=True, eq=False, repr=False)
class EqualRecall(Constraint):
    """Demand that recalls of a class differ by at most `within` between groups of rows.

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

    def _pairs(self, confusions: FloatArray) -> tuple[FloatArray, FloatArray, IntArray]:
        """Return recalls and positives of each group, and pairs of groups that have positives."""
        positives = confusions[:, :, self.label].sum(axis=1)
        groups = np.flatnonzero(positives > 0)
        recalls = confusions[:, self.label, self.label] / np.maximum(positives, 1e-300)
        # |r_a − r_b| ≤ within is two linear conditions, one for each order of the pair. Recalls are
        # ratios, but given the true labels their denominators are fixed
        pairs = [(a, b) for a in groups for b in groups if a != b]
        return recalls, positives, np.array(pairs, dtype=np.int64).reshape(-1, 2)

    def slack(self, confusions: FloatArray) -> FloatArray:
        recalls, _, pairs = self._pairs(confusions)
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
        # 1/n + 1/new in place of 1/n: the harmonic size of both samples together
        n = n * new / (n + new)
        recalls, positives, pairs = self._pairs(confusions)
        # a group without a miss has no counted variance; 0.01 is that of a recall of 99 %
        variance = np.maximum(recalls * (1.0 - recalls), 0.01) / np.maximum(n * positives, 1.0)
        return np.sqrt(variance[pairs[:, 0]] + variance[pairs[:, 1]])


@dataclass(frozen=True, eq=False, repr=False)
class Constrained(OfMetric):
    """Make a metric large under conditions that must hold on new rows.

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
        """Return the column of X whose values are the groups, or None."""
        named = [part.column for part in self.constraints if part.column is not None]
        return named[0] if named else None

    # --- the conditions together ---

    def slack(self, confusions: FloatArray) -> FloatArray:
        """Return by how much each condition holds as counted, (m,)."""
        return np.concatenate([part.slack(confusions) for part in self.constraints])

    def slack_gradient(self, confusions: FloatArray) -> FloatArray:
        """Return the gradient of `slack`, (m, g, k, k)."""
        return np.concatenate([part.gradient(confusions) for part in self.constraints])

    def spare(self, confusions: FloatArray, n: float) -> FloatArray:
        """Return slack beyond the margin, as counted on n rows, (m,): positive is safe."""
        from scipy.special import ndtri

        new = NEW_SHARE * n if self.new_rows is None else self.new_rows
        margins = [part.margin(confusions, n, new) for part in self.constraints]
        return np.asarray(self.slack(confusions) - ndtri(self.confidence) * np.concatenate(margins))


@dataclass(frozen=True, eq=False, repr=False)
class Randomized(OfMetric):
    """Let the rule of a concave metric be drawn at random between a few cost matrices.

    Only where many rows have the same probabilities can that help: one rule has to treat them
    alike, and the recalls of the classes cannot be made equal. A mixture is used where it is better
    than the best single rule by at least 0.01 as the search counts.

    Parameters
    ----------
    metric : Metric
        Of kind "concave": the least recall, G-mean and other means of recalls. For linear metrics
        and ratios a single rule is as good as any mixture.

    Examples
    --------
    >>> from consistruct.losses.metrics import Randomized, RecallMean
    >>> Randomized(RecallMean(None)).value([[80, 5], [10, 5]])
    0.5
    """

    metric: Metric
    drawn = True

    def __post_init__(self) -> None:
        if not isinstance(self.metric, Metric):
            raise TypeError(f"metric must be a Metric, got {type(self.metric).__name__}")
        if self.metric.kind != "concave" or self.metric.drawn:
            raise ValueError(
                "decisions at random are for concave metrics such as min-recall or g-mean, got "
                f"{self.metric!r}; use it without randomized"
            )

    @property
    def kind(self) -> Kind:
        return self.metric.kind
