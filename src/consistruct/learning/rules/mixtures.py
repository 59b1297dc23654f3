"""The best mixture of rules for a concave metric, and a bound that no rule exceeds.

    max_α ψ(Σ_j α_j C_j)    over confusions C_j of Bayes decisions, α_j ≥ 0 summing to one
    ψ(C) = min_t ⟨A_t, C⟩ + b_t    recalls of the classes for the least one, else tangents

A linear program over the rules and tangents known so far; its dual weights of the tangents are one
linear function above ψ. The Bayes decisions for it are the next rule, the tangent at the mixture
the next tangent, and the largest value of that linear function over all rules is the bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from consistruct.learning.rules.balance import CLOSE, balanced_weights
from consistruct.learning.rules.counts import Counts
from consistruct.learning.streams.sample import mixed
from consistruct.losses.metrics import Metric
from consistruct.protocols import FloatArray, IntArray

__all__ = ["Mixture", "best_mixture", "drawn_members", "least_recall_drawn"]

ROUNDS = 60
CLOSEST = 1e-5
MANY_ROWS = 10_000  # from which on the game starts from the first rule
FEWEST = 1e-6  # shares below are left out
STEP = np.uint64(0x9E3779B97F4A7C15)  # of SplitMix64: zeros do not stay zeros


@dataclass(frozen=True, eq=False)
class Mixture:
    """Rules and how often each is drawn.

    Attributes
    ----------
    costs : (m, k, k) array
    shares : (m,) array
        Summing to one.
    confusion : (k, k) array
        Mean over draws, as the search counts.
    bound : float
        What no rule exceeds, drawn at random or not, if the probabilities are right.
    """

    costs: FloatArray
    shares: FloatArray
    confusion: FloatArray
    bound: float


def best_mixture(metric: Metric, rows: Counts, first: FloatArray) -> Mixture:
    """The mixture of largest ψ; `first` (m, k, k) are the costs of rules that are known."""
    costs = list(first)
    counted = [_counted(rows, one) for one in costs]
    many = len(rows) > MANY_ROWS
    above: list[tuple[FloatArray, float]] = []  # linear functions above ψ
    if metric.worst_class:
        off = 1.0 - np.eye(rows.n_classes)
        for weights, confusion in balanced_weights(rows, first[0] if many else None):
            costs.append(off * weights)
            counted.append(confusion)
            above.append((np.diag(weights) / (weights @ confusion.sum(axis=0)), 0.0))
        tangents = _recalls(counted[0])
    else:
        tangents = [metric.majorant(max(counted, key=metric.value))]
    best, reached = np.zeros(0), -np.inf
    for _ in range(ROUNDS):
        shares, duals = _mixed(counted, tangents)
        mixture = np.tensordot(shares, np.array(counted), axes=1)
        if metric.value(mixture) > reached:
            best, reached = shares, metric.value(mixture)
        if many and above and _bound(above, counted) - reached <= CLOSE:
            break  # another rule would be a pass over all rows
        slope = sum(dual * A for dual, (A, _) in zip(duals, tangents, strict=True))
        constant = float(sum(dual * b for dual, (_, b) in zip(duals, tangents, strict=True)))
        costs.append(slope.max(axis=0) - slope)
        counted.append(_counted(rows, costs[-1]))
        above.append((slope, constant))
        if _bound(above, counted) - reached <= CLOSEST or metric.kind == "linear":
            break
        if not metric.worst_class:
            # between the iterate and the best: at the edge of the simplex slopes may be infinite
            kept = np.tensordot(best, np.array(counted[: len(best)]), axes=1)
            tangents.append(metric.majorant(0.5 * (kept + mixture)))
    chosen = np.flatnonzero(best > FEWEST)
    part = best[chosen] / best[chosen].sum()
    confusion = np.tensordot(part, np.array([counted[j] for j in chosen]), axes=1)
    kept_costs = np.array([costs[j] for j in chosen])
    return Mixture(kept_costs, part, confusion, _bound(above, counted))


def least_recall_drawn(counted: list[FloatArray]) -> float:
    """The largest least recall of a mixture of rules with these confusions, (k, k) each."""
    tangents = _recalls(counted[0])
    mixture = np.tensordot(_mixed(counted, tangents)[0], np.array(counted), axes=1)
    return float(min(np.sum(slope * mixture) for slope, _ in tangents))


def drawn_members(shares: FloatArray, chances: FloatArray, seed: int) -> IntArray:
    """Which rule decides each row, (n,): drawn by the seed, the row's estimates and its place.

    The same table gets the same decisions. Rows alike draw anew, since their places differ, and
    so do rows that are requested one at a time, since their estimates differ.
    """
    words = np.ascontiguousarray(chances, dtype=np.float64).view(np.uint64)
    state = mixed(np.arange(len(chances), dtype=np.uint64) + np.uint64(seed << 20) + STEP)
    for column in words.T:
        state = mixed((state ^ column) + STEP)
    level = (state >> np.uint64(11)) * 2.0**-53
    last = len(shares) - 1
    return np.minimum(np.searchsorted(np.cumsum(shares), level, side="right"), last)


def _counted(rows: Counts, costs: FloatArray) -> FloatArray:
    return rows.confusion(rows.decide(costs)).sum(axis=0)


def _bound(above: list[tuple[FloatArray, float]], counted: list[FloatArray]) -> float:
    """The least of the largest values of linear functions above ψ."""
    return min(_largest(*one, counted) for one in above)


def _largest(slope: FloatArray, constant: float, counted: list[FloatArray]) -> float:
    """Of a linear function: that of its Bayes decisions, which are among the rules.

    Where others found on the way do better than those of the probabilities, they count.
    """
    return max(float(np.sum(slope * one)) for one in counted) + constant


def _recalls(confusion: FloatArray) -> list[tuple[FloatArray, float]]:
    """Of every class with rows, as linear functions of a confusion with the same true labels."""
    k, true = len(confusion), confusion.sum(axis=0)
    found = []
    for label in np.flatnonzero(true > 0):
        slope = np.zeros((k, k))
        slope[label, label] = 1.0 / true[label]
        found.append((slope, 0.0))
    return found


def _mixed(
    counted: list[FloatArray], tangents: list[tuple[FloatArray, float]]
) -> tuple[FloatArray, FloatArray]:
    """Shares of the rules that make the least tangent largest, and weights of the tangents."""
    table = np.array([[np.sum(A * one) + b for one in counted] for A, b in tangents])
    goal = np.append(np.zeros(len(counted)), -1.0)
    found = linprog(
        goal,
        A_ub=np.hstack([-table, np.ones((len(tangents), 1))]),
        b_ub=np.zeros(len(tangents)),
        A_eq=np.append(np.ones(len(counted)), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0.0, None)] * len(counted) + [(None, None)],
        method="highs-ds",  # a corner: few rules have a share
    )
    duals = np.maximum(-found.ineqlin.marginals, 0.0)
    shares = np.maximum(np.asarray(found.x)[:-1], 0.0)
    return shares / shares.sum(), duals / duals.sum()
