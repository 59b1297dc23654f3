"""Largest excess cost of usual decision rules over all distributions, and where decisions change.

A rule chooses r on a polytope of distributions p, and the excess (L_r − L_b)·p over another
prediction b is linear in p, so the worst case is a linear program for each pair (r, b). The
polytopes of argmax, class weights, one threshold and a rounded mean have vertices in closed form,
so that no program has to be solved: sorting finds the best vertex, and its excess is then computed
in exact arithmetic. Where a rule is undecided (equal probabilities), it may choose either
prediction: the excess is approached from the side where it chooses the worse one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from consistruct.calibration.lp import minimize, simplex_row
from consistruct.certificates.exact import solve_integers
from consistruct.protocols import FloatArray, IntArray

__all__ = [
    "DENOMINATOR",
    "NEAR",
    "Advantage",
    "WorstCase",
    "advantage",
    "argmax_worst_case",
    "break_even",
    "matched_weights",
    "outline",
    "region",
    "region_share",
    "rounding_worst_case",
    "threshold_worst_case",
]

NEAR = 1e-9  # of the largest cost: vertices this close to the best one are compared exactly
ROUNDING = 1e-12  # of the largest cost: values this close to each other are equal
ZERO = 1e-9  # probabilities and multipliers of HiGHS below this are zero in an exact solution
EXACT_SUPPORT = 40  # unknowns of an exact system: beyond it integers of thousands of digits arise
# of the best threshold: a number that can be read and typed; the excess stated is that of this one
DENOMINATOR = 1000


@dataclass(frozen=True)
class WorstCase:
    """The most that a rule loses to the best prediction, and where.

    Attributes
    ----------
    excess : Fraction
        Exact at `distribution`; no other distribution has more but for rounding of the search,
        1e-12 of the largest cost.
    predicted, best : int
        Indices of what the rule predicts there and of what is best there.
    distribution : tuple of Fraction
        Probabilities of the true labels.
    threshold : Fraction or None
        Of the rule, if it has one.
    """

    excess: Fraction
    predicted: int
    best: int
    distribution: tuple[Fraction, ...]
    threshold: Fraction | None = None


@dataclass(frozen=True)
class Advantage:
    """By how much a prediction is better than all others, where it is at its best.

    Attributes
    ----------
    low, high : Fraction
        Certified bounds on max_p min_b (L_b − L_a)·p over predictions b with other costs: equal
        where the optimum was found exactly. Positive: a is the only best prediction somewhere; 0:
        it is best in ties only; negative: it is never best, and misses by this at least.
    distribution : (m,) array
        Where that is.
    """

    low: Fraction
    high: Fraction
    distribution: FloatArray


def argmax_worst_case(
    costs: FloatArray, right: IntArray, weights: Sequence[Fraction] | None = None
) -> WorstCase:
    """Return the worst case of predicting argmax_y w_y p_y.

    The vertices of {p : w_r p_r ≥ w_y p_y for all y} are p_y ∝ 1/w_y on the sets S that contain r.
    Over S, a weighted mean of D = L_r − L_b is largest for a prefix of the labels sorted by D.

    Parameters
    ----------
    costs : (k, m) array
        Rows are predictions.
    right : (m,) array
        The prediction that names each true label.
    weights : m non-negative fractions, optional
        All 1 if not given. Labels of weight 0, which must cost the same whatever is predicted,
        are left out: mass on them only dilutes an excess.

    Examples
    --------
    >>> costs = np.array([[0.0, 10.0], [1.0, 0.0]])
    >>> worst = argmax_worst_case(costs, np.arange(2))
    >>> worst.excess, worst.distribution   # calling it harmless at 1/2: 5 against 1/2
    (Fraction(9, 2), (Fraction(1, 2), Fraction(1, 2)))
    >>> argmax_worst_case(costs, np.arange(2), [Fraction(1), Fraction(10)]).excess
    Fraction(0, 1)
    """
    m = costs.shape[1]
    weights = [Fraction(1)] * m if weights is None else weights
    labels = np.array([y for y in range(m) if weights[y] > 0], dtype=np.int64)
    inverse = np.array([float(1 / weights[y]) for y in labels])
    points = []
    for position, y in enumerate(labels):
        D = (costs[right[y]] - costs)[:, labels]
        value, subset = _best_prefix(D, inverse, position)
        chosen = {int(labels[i]) for i in subset}
        total = sum((1 / weights[i] for i in chosen), Fraction(0))
        p = tuple(1 / weights[i] / total if i in chosen else Fraction(0) for i in range(m))
        points.append((value, int(right[y]), p))
    return _worst(costs, points)


def _best_prefix(D: FloatArray, mass: FloatArray, first: int) -> tuple[float, IntArray]:
    """max over rows b and sets S ∋ first of Σ_S mass·D_b / Σ_S mass, and the labels of that S."""
    others = np.delete(np.arange(D.shape[1]), first)
    order = others[np.argsort(-D[:, others], axis=1, kind="stable")]
    # r itself is always in S; of the others a better one is never left out for a worse one
    order = np.column_stack([np.full(len(D), first), order])
    share = mass[order]
    means = np.cumsum(np.take_along_axis(D, order, 1) * share, 1) / np.cumsum(share, 1)
    row, length = np.unravel_index(means.argmax(), means.shape)
    return float(means[row, length]), order[row, : length + 1]


def threshold_worst_case(costs: FloatArray, right: IntArray, label: int) -> WorstCase:
    """Return the worst case of the best rule "predict `label` where p_label ≥ t, else argmax".

    For p_label ≥ t the worst vertices have p_label = t (or 1) and the rest on one label; below,
    p_label = t (or 0) and the rest uniform on a set that contains the most likely other label. All
    excesses are linear in t, so the least of their maximum is where two of these lines cross.

    Examples
    --------
    Classes 1 and 2 are never told apart by costs, so that one threshold is right:

    >>> costs = np.array([[0.0, 4, 4], [1, 0, 0], [1, 0, 0]])
    >>> worst = threshold_worst_case(costs, np.arange(3), 0)
    >>> worst.excess, worst.threshold
    (Fraction(0, 1), Fraction(4, 5))
    """
    m = costs.shape[1]
    others = np.delete(np.arange(m), label)
    # (excess at t = 0, excess at t = 1, what is predicted, the labels other than `label`)
    D = costs[right[label]] - costs
    worst = others[D[:, others].argmax(axis=1)]
    rows = np.arange(len(D))
    lines = [(D[b, y], D[b, label], label, (y,)) for b, y in zip(rows, worst.tolist(), strict=True)]
    for position, y in enumerate(others):
        D = costs[right[y]] - costs
        for b in rows:
            mean, subset = _best_prefix(D[b : b + 1, others], np.ones(m - 1), position)
            lines.append((mean, D[b, label], int(y), tuple(others[subset].tolist())))
    # p_label = 1 where it is predicted and p_label = 0 where it is not: the same whatever t is
    # at the least maximum one line falls and another rises, or a constant holds it up
    start = np.array([line[0] for line in lines])
    end = np.array([line[1] for line in lines])
    constant = np.where([line[2] == label for line in lines], end, start)
    floor = max(float(constant.max()), 0.0)
    t = Fraction(_lowest_crossing(start, end, floor)).limit_denominator(DENOMINATOR)
    points = []
    for (_, _, predicted, sharing), low, high, fixed in zip(
        lines, start, end, constant, strict=True
    ):
        value = (1 - float(t)) * low + float(t) * high
        share = t if value >= fixed else Fraction(int(predicted == label))
        p = [Fraction(0)] * m
        p[label] = share
        for y in sharing:
            p[y] = (1 - share) / len(sharing)
        points.append((max(float(value), float(fixed)), int(right[predicted]), tuple(p)))
    # t was rounded to a number that people can type: its excess is computed, not that of t itself
    return replace(_worst(costs, points), threshold=t)


def _lowest_crossing(start: FloatArray, end: FloatArray, floor: float) -> float:
    """t in [0, 1] of the least max(floor, lines at t), by cutting planes, which end exactly."""
    slope = end - start
    rounding = ROUNDING * float(np.abs([start, end]).max())

    def active(t: float) -> int:
        return int((start + t * slope).argmax())

    low, high = active(0.0), active(1.0)
    if slope[low] >= 0 or start[low] <= floor:
        return 0.0
    if slope[high] <= 0:
        return 1.0
    while True:
        t = float((start[high] - start[low]) / (slope[low] - slope[high]))
        line = active(t)
        value = start[line] + t * slope[line]
        # in exact numbers the same line would come up again; ROUNDING is relative to the costs
        if value <= max(floor, start[low] + t * slope[low]) + rounding:
            return t
        low, high = (line, high) if slope[line] < 0 else (low, line)


def rounding_worst_case(costs: FloatArray, right: IntArray) -> WorstCase:
    """Return the worst case of predicting the mean Σ y p_y, rounded.

    The vertices of {p : r − ½ ≤ Σ y p_y ≤ r + ½} are the label r and pairs i < j of labels with
    the mean on one of the two edges.

    Examples
    --------
    A quarter on 2 and the rest on 0: the mean is 1/2, predicting 1 costs 1, predicting 0 costs 1/2.

    >>> distances = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3)))
    >>> worst = rounding_worst_case(distances, np.arange(3))
    >>> worst.excess, [str(q) for q in worst.distribution]
    (Fraction(1, 2), ['3/4', '0', '1/4'])
    """
    m = costs.shape[1]
    points = [(0.0, int(right[0]), tuple(Fraction(int(y == 0)) for y in range(m)))]
    for r in range(m):
        D = costs[right[r]] - costs
        for edge in {r - 0.5, r + 0.5} - {-0.5, m - 0.5}:
            # i below the edge, j above it, and the share of j that puts the mean on it
            i = np.arange(math.ceil(edge))[:, None]
            j = np.arange(math.ceil(edge), m)[None]
            share = (edge - i) / (j - i)
            values = (1 - share) * D[:, i] + share * D[:, j]
            b, low, high = np.unravel_index(values.argmax(), values.shape)
            first, second = int(low), int(high) + math.ceil(edge)
            weight = (Fraction(edge) - first) / (second - first)
            p = [Fraction(0)] * m
            p[first], p[second] = 1 - weight, weight
            points.append((float(values[b, low, high]), int(right[r]), tuple(p)))
    return _worst(costs, points)


def _worst(
    costs: FloatArray, points: Sequence[tuple[float, int, tuple[Fraction, ...]]]
) -> WorstCase:
    """Return the point of largest excess, compared exactly among those near the largest."""
    top = max(value for value, _, _ in points)
    near = top - NEAR * max(float(np.abs(costs).max()), abs(top))
    cases = [_excess(costs, *point[1:]) for point in points if point[0] >= near]
    return max(cases, key=lambda case: case.excess)


def _excess(costs: FloatArray, predicted: int, p: tuple[Fraction, ...]) -> WorstCase:
    """Return (Lp)_predicted − min_b (Lp)_b in exact arithmetic."""
    where = [y for y, value in enumerate(p) if value]
    expected = costs[:, where] @ np.array([float(p[y]) for y in where])
    # exact costs of hundreds of predictions would take seconds, and one of these few is the best
    near = np.flatnonzero(expected <= expected.min() + NEAR * max(float(np.abs(costs).max()), 1))
    exact = {
        int(b): sum((Fraction(float(costs[b, y])) * p[y] for y in where), Fraction(0))
        for b in {*near.tolist(), predicted}
    }
    best = min(exact, key=lambda b: (exact[b], b))
    return WorstCase(exact[predicted] - exact[best], predicted, best, p)


def matched_weights(costs: FloatArray, right: IntArray) -> list[Fraction] | None:
    """Return the class weights w for which argmax_y w_y p_y is right for every p, or None.

    On {w_a p_a = w_b p_b ≥ the others} a and b must cost the same, so (L_a − L_b)·p vanishes on an
    open piece of a hyperplane and is a multiple of w_b p_b − w_a p_a. From three labels on this
    holds for all pairs if and only if, of each true label, every wrong prediction costs the same:
    L(c, y) − L(y, y) = w_y ≥ 0 for all c ≠ y. With two labels it always does.

    Examples
    --------
    >>> matched_weights(np.array([[0.0, 5.0], [1.0, 0.0]]), np.arange(2))
    [Fraction(1, 1), Fraction(5, 1)]
    """
    weights = []
    for y, prediction in enumerate(right):
        # predictions that name no label (an abstention) have no say in which weights compare labels
        wrong = {float(costs[c, y]) for c in right if c != prediction}
        if len(wrong) > 1:
            return None
        w = Fraction(next(iter(wrong), 0.0)) - Fraction(float(costs[prediction, y]))
        if w < 0:
            return None
        weights.append(w)
    return weights


def break_even(costs: FloatArray) -> list[tuple[int, Fraction, Fraction]]:
    """Return the predictions that are best for two true labels, with their ranges of p_1.

    The lower envelope of k lines in p_1, exactly; ranges of length 0 are left out.

    Examples
    --------
    >>> [(c, str(low), str(high)) for c, low, high in break_even(np.array([[0, 10.0], [1, 0]]))]
    [(0, '0', '1/11'), (1, '1/11', '1')]
    """
    lines = [[Fraction(float(x)) for x in row] for row in costs]
    slopes = [b - a for a, b in lines]
    # best at p_1 = 0, and among ties the one that stays best for larger p_1
    current = min(range(len(lines)), key=lambda c: (lines[c][0], slopes[c], c))
    at = Fraction(0)
    ranges: list[tuple[int, Fraction, Fraction]] = []
    while True:
        crossings = [
            ((lines[c][0] - lines[current][0]) / (slopes[current] - slopes[c]), slopes[c], c)
            for c in range(len(lines))
            if slopes[c] < slopes[current]
        ]
        # where several lines cross at one point, the steepest descent is the one that follows
        following = min(crossings, default=(Fraction(1), Fraction(0), current))
        if following[0] >= 1:
            return [*ranges, (current, at, Fraction(1))]
        if following[0] > at:
            ranges.append((current, at, following[0]))
        at, _, current = following


def region(costs: FloatArray, prediction: int) -> FloatArray:
    """Return the corners (c, 3) of {p : (L_a − L_b)·p ≤ 0 for all b} for three true labels."""
    corners = np.eye(3)
    for row in np.unique(costs, axis=0):
        values = corners @ (costs[prediction] - row)
        # Sutherland and Hodgman 1974: keep the corners on the right side, and where edges cross
        cut: list[FloatArray] = []
        for p, q, u, v in zip(
            corners, np.roll(corners, -1, 0), values, np.roll(values, -1), strict=True
        ):
            cut += [p] if u <= 0 else []
            cut += [p + (q - p) * u / (u - v)] if min(u, v) < 0 < max(u, v) else []
        corners = np.array(cut).reshape(-1, 3)
    return corners


def region_share(corners: FloatArray) -> float:
    """Return the share of all distributions within corners (c, 3), by the shoelace formula."""
    x, y = corners[:, 1], corners[:, 2]
    # the triangle has area 1/2 in (p_1, p_2), and the formula gives twice the area
    return float(abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)))


def outline(corners: Sequence[Sequence[float]]) -> tuple[tuple[float, ...], ...]:
    """Return p_1 of the corners of a region, and the range of p_2 there: x, low, high.

    Examples
    --------
    >>> outline([(1, 0, 0), (0, 1, 0), (0, 0, 1)])
    ((0, 1), (0.0, 0.0), (1.0, 0.0))
    """
    x = tuple(sorted({corner[1] for corner in corners}))
    ends = np.array([*corners, corners[0]], dtype=np.float64)[:, 1:]
    low, high = np.full(len(x), np.inf), np.full(len(x), -np.inf)
    for p, q in pairwise(ends):
        # an edge counts at every corner that lies above or below it; a vertical one is two points
        for first, last in ((p, q), (q, p)):
            within = (np.array(x) >= min(p[0], q[0])) & (np.array(x) <= max(p[0], q[0]))
            share = (np.array(x) - first[0]) / (last[0] - first[0]) if p[0] != q[0] else 0.0
            heights = first[1] + (last[1] - first[1]) * share
            low = np.where(within, np.minimum(low, heights), low)
            high = np.where(within, np.maximum(high, heights), high)
    return x, tuple(low.tolist()), tuple(high.tolist())


def advantage(costs: FloatArray, prediction: int) -> Advantage:
    """Return max_p min_b (L_b − L_a)·p, the value of a matrix game, with certified bounds.

    HiGHS solves it; the equations of its supports are then solved exactly. Whatever comes out, a
    distribution p bounds the value from below and a mixture w of the other predictions from above,
    in exact arithmetic, so that rounding can widen the bounds but not make them wrong.

    Examples
    --------
    No answer at 3/4 misses by 1/12: guessing costs 2/3 at most where it is most expensive.

    >>> costs = np.vstack([1.0 - np.eye(3), np.full((1, 3), 0.75)])
    >>> margin = advantage(costs, 3)
    >>> margin.low, margin.high
    (Fraction(-1, 12), Fraction(-1, 12))
    """
    # rows are compared as wholes: copies of the prediction are no rivals
    rivals = np.unique(costs[(costs != costs[prediction]).any(axis=1)], axis=0)
    m = costs.shape[1]
    D = rivals - costs[prediction]
    D = D / np.abs(D).max()  # HiGHS drops what is below 1e-9, and takes 1e20 for infinity
    A_eq, b_eq = simplex_row(m)
    solved = minimize(
        np.append(np.zeros(m), -1.0),
        A_ub=np.column_stack([-D, np.ones(len(D))]),
        b_ub=np.zeros(len(D)),
        A_eq=np.column_stack([A_eq, [0.0]]),
        b_eq=b_eq,
        bounds=[(0.0, None)] * m + [(None, None)],
    )
    costs_of_a = [Fraction(float(x)) for x in costs[prediction]]
    payoff = [
        [Fraction(float(x)) - a for x, a in zip(row, costs_of_a, strict=True)] for row in rivals
    ]
    columns = [list(column) for column in zip(*payoff, strict=True)]
    p, w, value = solved.x[:m], -solved.marginals, float(solved.x[m])
    binding = np.abs(D @ p - value) <= ZERO, np.abs(w @ D - value) <= ZERO
    low = max(min(_mean(row, q) for row in payoff) for q in _exact(payoff, p, binding[0]))
    high = min(max(_mean(row, q) for row in columns) for q in _exact(columns, w, binding[1]))
    return Advantage(low, high, p)


def _mean(values: Sequence[Fraction], weights: Sequence[Fraction]) -> Fraction:
    return sum((x * q for x, q in zip(values, weights, strict=True) if q), Fraction(0))


def _exact(
    payoff: list[list[Fraction]], given: FloatArray, binding: NDArray[np.bool_]
) -> Iterator[list[Fraction]]:
    """Yield a float strategy in exact numbers, and the vertex that it is a rounded form of.

    At a vertex the rows that bind have equal means; with Σ x = 1 these equations determine the
    entries that are not zero. Where rounding chose other rows, the vertex is only another feasible
    strategy, whose bound is true and worse: so both are tried.
    """
    rounded = [max(Fraction(float(value)), Fraction(0)) for value in given]
    yield [value / sum(rounded, Fraction(0)) for value in rounded]
    support, rows = np.flatnonzero(given > ZERO).tolist(), np.flatnonzero(binding).tolist()
    if max(len(support), len(rows)) > EXACT_SUPPORT:
        return
    unit = math.lcm(*(x.denominator for row in payoff for x in row))
    equations = [[*(int(payoff[b][y] * unit) for y in support), -1] for b in rows]
    equations.append([1] * len(support) + [0])
    solution = solve_integers(equations, [[0]] * len(rows) + [[1]])
    if solution is None or any(row[0] < 0 for row in solution[:-1]):
        return
    vertex = [Fraction(0)] * len(given)
    for index, row in zip(support, solution, strict=False):
        vertex[index] = row[0]
    yield vertex
