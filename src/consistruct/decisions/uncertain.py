"""Decisions for costs that are known up to ranges: least worst-case regret, value of knowing more.

Every cost M[c, y] lies somewhere in [lower, upper], each by itself. With p the probabilities of a
row, choosing a costs at most this more than the best prediction b under the same costs:

    R(a, p) = max_M max_b Σ_y p_y (M[a, y] − M[b, y]) = [U_a − min_{b ≠ a} L_b]₊,
    U = upper · p,  L = lower · p,

since a and b have no cost in common, the worst M has row a at its upper and row b at its lower end.
So the decision argmin_a R(a, p) takes two matrix products and no optimization.

Decisions are single predictions. A random choice between two can have less worst-case regret in
expectation (R_0 R_1/(R_0 + R_1) of two predictions, at least half of the smaller one), but then two
equal rows may be decided differently. Of two predictions the smaller regret is that of the smaller
U + L: the decision is the one for the costs in the middle. From three on it need not be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from consistruct._members import ArrayField, Member
from consistruct._validation import check_count
from consistruct.decisions.reading import (
    check_distributions,
    columns_by_class,
    read_given,
    refuse_two_names,
)
from consistruct.decisions.result import Decisions
from consistruct.losses.matrix import Axis, CostMatrix
from consistruct.protocols import FloatArray, IntArray

__all__ = ["CostRanges", "RangeDecisions", "decide_from_ranges"]

# rows whose regrets are computed together: nine values of a cost for as many rows stay in the cache
# of a core
CHUNK = 2**12


@dataclass(frozen=True, eq=False, repr=False)
class CostRanges(Member):
    """State costs of predicting c when y is true that are known up to ranges.

    Every entry lies between those of `lower` and `upper`, independently of the others. Costs that
    are known only relative to each other are stated in units of one that is taken as 1.

    Parameters
    ----------
    lower, upper : (k, m) arrays, or (m, k) with ``rows="true"``
        Finite, non-negative costs. As attributes they have predictions as rows.
    rows : "pred" or "true"
        What the rows stand for; may be omitted only if both are symmetric.
    pred_names, true_names : sequence of str, optional
        Names of the predictions and of the true labels.

    Examples
    --------
    Missing a fraud is 5 to 20 times as bad as a false alarm:

    >>> import consistruct as cs
    >>> from consistruct.decisions import CostRanges
    >>> entries = {("ok", "fraud"): (5, 20), ("fraud", "ok"): 1}
    >>> costs = CostRanges.from_entries(entries, names=("ok", "fraud"))
    >>> decided = cs.decide(costs, [[0.95, 0.05]], classes=["ok", "fraud"])
    >>> decided.labels, decided.worst_regret.round(2)   # 20 · 0.05 − 0.95 · 1
    (array(['ok'], dtype='<U5'), array([0.05]))
    """

    lower: ArrayField
    upper: ArrayField
    rows: Axis | None = field(default=None, kw_only=True)
    pred_names: tuple[str, ...] | None = None
    true_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        low, high = (
            CostMatrix(M, self.pred_names, self.true_names, rows=self.rows)
            for M in (self.lower, self.upper)
        )
        if low.M.shape != high.M.shape:
            raise ValueError(
                f"lower and upper must have one shape, got {low.M.shape} and {high.M.shape}"
            )
        if (low.M > high.M).any():
            c, y = np.argwhere(low.M > high.M)[0]
            raise ValueError(
                f"lower must be at most upper, got {low.M[c, y]:g} and {high.M[c, y]:g} for "
                f"prediction {c} and true label {y}"
            )
        self._set(
            lower=low.M,
            upper=high.M,
            rows="pred",
            pred_names=low.pred_names,
            true_names=low.true_names,
        )

    @classmethod
    def from_entries(
        cls,
        entries: Mapping[tuple[str, str], float | tuple[float, float]],
        names: Sequence[str],
    ) -> Self:
        """Build from statements: {(prediction, true label): cost, or (low, high)}.

        Right predictions cost 0 unless they are stated; every other entry has to be.

        Parameters
        ----------
        entries : mapping
        names : sequence of str
            The classes, predictions and true labels alike.
        """
        index = {(c, y): (i, j) for i, c in enumerate(names) for j, y in enumerate(names)}
        unknown = [pair for pair in entries if pair not in index]
        missing = [pair for pair in index if pair[0] != pair[1] and pair not in entries]
        if unknown or missing:
            what = f"no such entry {unknown[0]!r}" if unknown else f"no cost of {missing[0]!r}"
            raise ValueError(
                f"entries must state a cost, or (low, high), for each (prediction, true label) of "
                f"{', '.join(names)}: {what}"
            )
        # low and high ends; a single number is both of them, by broadcasting
        bounds = np.zeros((2, len(names), len(names)))
        for pair, value in entries.items():
            bounds[:, *index[pair]] = value
        return cls(bounds[0], bounds[1], tuple(names), tuple(names), rows="pred")

    @property
    def middle(self) -> CostMatrix:
        """Return the cost matrix in the middle of the ranges, (lower + upper)/2."""
        # not (lower + upper)/2: the sum of two finite costs may be none
        middle = self.lower + (self.upper - self.lower) / 2
        return CostMatrix(middle, self.pred_names, self.true_names, rows="pred")


@dataclass(frozen=True, eq=False)
class RangeDecisions(Decisions):
    """Hold decisions of least worst-case regret.

    `expected_loss` is for the costs in the middle of the ranges; `runner_up` and `gap` compare
    worst-case regrets.

    Attributes
    ----------
    worst_regret : (n,) array
        The most that a decision can cost above the best one, in expectation, whatever the costs
        within their ranges are. 0: certainly the best.
    ranges : CostRanges
    probabilities : (n, m) array
        In the order of the true labels of `ranges`.
    """

    worst_regret: FloatArray = field(kw_only=True)
    ranges: CostRanges = field(kw_only=True)
    probabilities: FloatArray = field(kw_only=True)

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row per decision, `worst_regret` among its columns."""
        return super().to_frame().assign(worst_regret=self.worst_regret)

    def value_of_knowing(self, *, points: int = 9) -> Any:
        """Return by how much the mean worst-case regret falls if a cost becomes known.

        If M[c, y] turns out to be m, decisions are made anew, with worst-case regrets V_i(m). Of
        each row, that of c rises with m and those of the others fall, since c costs more. So on a
        piece [m₁, m₂] of the range V_i(m) is at most min(R_c(m₂), min_{a ≠ c} R_a(m₁)).

        Parameters
        ----------
        points : int
            Values of m, evenly spaced, in each range. More of them sharpen `guaranteed`.

        Returns
        -------
        frame : pandas.DataFrame
            A row per cost with a range, those worth most first: `prediction`, `true_label`, `low`,
            `high`, `guaranteed` (the fall whatever m is, certainly at least this) and `expected`
            (the mean over the values of m).
        """
        import pandas as pd  # half a second, which only those wait for who want a frame

        points = check_count(points, "points", minimum=2)
        ranges, names, n = self.ranges, self.ranges.middle, len(self.probabilities)
        entries = np.argwhere(ranges.upper > ranges.lower)
        between = np.zeros((len(entries), points - 1))
        after = np.zeros((len(entries), points))
        for start in range(0, n, CHUNK):
            p = self.probabilities[start : start + CHUNK]
            regrets = _regrets_if_known(ranges, p, entries, points)
            for number, (of_c, others) in enumerate(regrets):
                # V is min(of_c, others) at the values, and at most this between two of them
                between[number] += np.minimum(of_c[1:], others[:-1]).sum(axis=1)
                after[number] += np.minimum(of_c, others).sum(axis=1)
        before = self.worst_regret.mean() if n else 0.0
        c, y = entries.T
        frame = pd.DataFrame(
            {
                "prediction": c if names.pred_names is None else np.array(names.pred_names)[c],
                "true_label": y if names.true_names is None else np.array(names.true_names)[y],
                "low": ranges.lower[c, y],
                "high": ranges.upper[c, y],
                "guaranteed": np.maximum(before - between.max(axis=1, initial=0.0) / max(n, 1), 0),
                "expected": before - after.mean(axis=1) / max(n, 1),
            }
        )
        return frame.sort_values(["guaranteed", "expected"], ascending=False, ignore_index=True)


def _regrets_if_known(
    ranges: CostRanges, p: FloatArray, entries: IntArray, points: int
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield the regret of c and the least of the others for values of each M[c, y], (points, n).

    Only U_c and L_c depend on that cost: U_c in the regret of c, L_c in those of the others.
    """
    high, low = p @ ranges.upper.T, p @ ranges.lower.T
    for c in np.unique(entries[:, 0]):
        others, rivals = np.delete(high, c, axis=1), np.delete(low, c, axis=1)
        least_rival = rivals.min(axis=1, initial=np.inf)
        # a ≠ c has two kinds of rivals, c and the rest: U_a − min(L_c, L_b) is the larger regret
        fixed = (others - _least_of_others(rivals)).T
        for y in entries[entries[:, 0] == c, 1]:
            ends = ranges.lower[c, y], ranges.upper[c, y]
            m = np.linspace(*ends, points)[:, None]
            of_c = high[:, c] - p[:, y] * (ends[1] - m) - least_rival
            c_low = low[:, c] + p[:, y] * (m - ends[0])
            least = np.full_like(of_c, np.inf)
            for a, regret in zip(others.T, fixed, strict=True):
                np.minimum(least, np.maximum(regret, a - c_low), out=least)
            yield np.maximum(of_c, 0.0), np.maximum(least, 0.0)


def _least_of_others(values: FloatArray) -> FloatArray:
    """Return min_{b ≠ a} values[:, b] for each column a; +inf where there is no other."""
    if values.shape[1] <= 1:
        return np.full_like(values, np.inf)
    # where the least occurs twice it is the second, too: equal columns are each other's rival
    least, second = np.partition(values, 1, axis=1)[:, :2].T
    return np.where(values == least[:, None], second[:, None], least[:, None])


def decide_from_ranges(
    ranges: CostRanges, probabilities: Any, *, classes: Any = None
) -> RangeDecisions:
    """Return argmin_a [U_a − min_{b ≠ a} L_b]₊ for each row; ties go to the first prediction.

    Parameters
    ----------
    ranges : CostRanges
    probabilities : (n, m) array or data frame
        Of the true labels, as `decide` takes them.
    classes : sequence, optional
        Names of the columns.

    Returns
    -------
    decisions : RangeDecisions
    """
    middle = ranges.middle
    given = read_given(probabilities, classes)
    refuse_two_names(given, classes)
    p, labels = columns_by_class(given, middle)
    note = check_distributions(p)
    high, low = p @ ranges.upper.T, p @ ranges.lower.T
    # below 0 where a is certainly best: then b = a is the best prediction, and nothing is lost
    regret = np.maximum(high - _least_of_others(low), 0.0)
    each, codes = np.arange(len(p)), regret.argmin(axis=1)
    worst = regret[each, codes]
    names = labels.predictions
    runner_up = gap = None
    if len(names) > 1:
        regret[each, codes] = np.inf
        second = regret.argmin(axis=1)
        runner_up, gap = names[second], regret[each, second] - worst
    return RangeDecisions(
        names[codes],
        (p @ middle.M.T)[each, codes],
        runner_up,
        gap,
        (note,) if note else (),
        worst_regret=worst,
        ranges=ranges,
        probabilities=p,
    )
