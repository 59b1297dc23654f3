"""Pairs over cells of labels that they cannot tell apart, with floats to say where to look."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np

from consistruct.calibration.problem.pair_bounds import hull_slope
from consistruct.calibration.proofs.provers.pair import (
    IntegerPair,
    Solution,
    active_set,
    feasible_distribution,
    is_small,
    lemke,
)
from consistruct.certificates.exact import integer_rows
from consistruct.protocols import FloatArray

__all__ = [
    "Cells",
    "Guide",
    "Reduced",
    "active_solution",
    "over_cells",
    "solve_reduced",
]

ACTIVE_LIMIT = 60  # unknowns of an active set that is solved exactly
FACTORS = (1, 100, 10_000, 10**6)  # ε times these: where active sets are looked for
THRESHOLDS = (1e-6, 1e-8, 1e-4, 1e-10)  # what counts as positive in a float solution


@dataclass(frozen=True, eq=False)
class Cells:
    """Labels (but j) and true labels that a pair cannot tell apart, and what equal pairs share.

    Approximate symmetry is good enough: what is found over cells is evaluated without them.
    """

    rows: list[list[int]]
    true_labels: list[list[int]]
    signature: bytes


class Guide(Protocol):
    """Where to look: floats that need not be right."""

    def cells(self, i: int, j: int) -> Cells | None:
        """The cells of a pair of labels; None where nothing is known of it."""

    def solution(self, i: int, j: int, eps: float) -> tuple[FloatArray, FloatArray] | None:
        """q over the cells of true labels and w over those of labels, at ε."""


def over_cells(pair: IntegerPair, others: list[int], cells: Cells) -> tuple[IntegerPair, int, int]:
    """Averages over cells as integers; the factors of the losses and of the kernel."""
    place = {label: a for a, label in enumerate(others)}
    rows = [[place[label] for label in cell] for cell in cells.rows]
    K = [
        [Fraction(sum(pair.K[a][b] for a in one for b in two), len(one) * len(two)) for two in rows]
        for one in rows
    ]
    B = [
        [
            Fraction(sum(pair.B[a][y] for a in one for y in two), len(one) * len(two))
            for two in cells.true_labels
        ]
        for one in rows
    ]
    g = [Fraction(sum(pair.g[y] for y in cell), len(cell)) for cell in cells.true_labels]
    kernel, scale = integer_rows(K)
    both, unit = integer_rows([*B, g])
    return IntegerPair(kernel, both[:-1], both[-1]), unit, scale


@dataclass(frozen=True, eq=False)
class Reduced:
    """A solution over cells, in the units of the problem without them."""

    q: list[Fraction]
    w: list[Fraction]
    nu: Fraction

    def spread(
        self, cells: Cells, others: list[int], n_true_labels: int
    ) -> tuple[list[Fraction], list[Fraction], Fraction]:
        """Every member of a cell gets its share."""
        q = [Fraction(0)] * n_true_labels
        for mass, cell in zip(self.q, cells.true_labels, strict=True):
            for y in cell:
                q[y] = mass / len(cell)
        place = {label: a for a, label in enumerate(others)}
        w = [Fraction(0)] * len(others)
        for weight, cell in zip(self.w, cells.rows, strict=True):
            for label in cell:
                w[place[label]] = weight / len(cell)
        return q, w, self.nu


def _from_floats(
    pair: IntegerPair,
    factor: Fraction,
    at: Fraction,
    q: FloatArray,
    w: FloatArray,
) -> Reduced:
    """Where no active set is optimal: the floats, w stretched until its own constraints hold."""
    distribution = feasible_distribution([Fraction(float(x)) for x in q], pair.g, at)
    assert distribution is not None
    weights = [Fraction(float(x)) if x > 0 else Fraction(0) for x in w]
    support = [a for a, x in enumerate(weights) if x]
    stretch = Fraction(0)
    for a in support:
        reach = sum((pair.K[a][b] * weights[b] for b in support), Fraction(0))
        needed = -sum((x * y for x, y in zip(pair.B[a], distribution, strict=True)), Fraction(0))
        if reach > 0 and needed > 0:
            stretch = max(stretch, needed / reach)
    weights = [stretch * x for x in weights]
    # ν from the lower hull of (gap, price): the best slope for these w
    price = [
        -sum((weights[a] * pair.B[a][y] for a in support), Fraction(0)) for y in range(len(pair.g))
    ]
    high, wide = max([Fraction(1), *map(abs, price)]), max(1, *map(abs, pair.g))
    slope = hull_slope(
        np.array([g / wide for g in pair.g]),
        np.array([float(x / high) for x in price]),
        float(at / wide),
    )
    nu = Fraction(slope) * high / wide
    return Reduced(distribution, [factor * x for x in weights], factor * nu)


def solve_reduced(
    guide: Guide,
    pair: IntegerPair,
    others: list[int],
    cells: Cells,
    labels: tuple[int, int],
    eps: Fraction,
    unit_of_g: int,
) -> Reduced | None:
    """The pair over cells: by Lemke's method, or from the active set that floats suggest."""
    small, unit, scale = over_cells(pair, others, cells)
    at = eps * unit_of_g * unit
    if at > max(small.g):
        return None
    factor = Fraction(scale, unit)  # w comes in this unit of the problem without cells
    found = active_solution(guide, small, *labels, eps, at)
    if found is None and is_small(small):
        found = lemke(small, at)
    if found is not None:
        q, w, nu = found.at(at)
        return Reduced(q, [factor * x for x in w], factor * nu)
    guessed = guide.solution(*labels, float(eps))
    return None if guessed is None else _from_floats(small, factor, at, *guessed)


def active_solution(
    guide: Guide, pair: IntegerPair, i: int, j: int, eps: Fraction, at: Fraction
) -> Solution | None:
    """The exact solution of the active set that floats suggest, if it is optimal at ε (in g: `at`).

    Where ε is tiny the floats see nothing; the active set of a larger ε often holds.
    """
    for factor in FACTORS:
        if factor > 1 and at * factor > max(pair.g):
            break
        guessed = guide.solution(i, j, float(eps * factor))
        if guessed is None:
            continue
        q, w = guessed
        largest = float(w.max(initial=0.0))
        tried = set()
        for threshold in THRESHOLDS:
            S = tuple(np.flatnonzero(q > threshold).tolist())
            W = tuple(np.flatnonzero(w > threshold * largest).tolist()) if largest > 0 else ()
            if (S, W) in tried or not S or len(S) + len(W) > ACTIVE_LIMIT:
                continue
            tried.add((S, W))
            for tight in (True, False):
                found = active_set(pair, at, S, W, tight)
                if found is not None:
                    return found
    return None
