"""From floats to exact numbers: the distribution, scores and coupling of an upper bound.

A distribution at which V_j = V, or pieces meet, satisfies equations: sums of a coupling that must
balance, expected losses that are equal, probabilities that are zero. Solving these exactly, with
all other coordinates rounded, makes an upper bound of zero exactly zero. Nothing rests on it:
whatever comes out is evaluated exactly, and the best is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from consistruct.calibration.methods.nonquadratic.pairs import reaching
from consistruct.calibration.methods.nonquadratic.polyhedral.hinges import Piece, Polyhedral
from consistruct.certificates.exact import Refused, dot
from consistruct.certificates.polyhedral import Problem
from consistruct.protocols import FloatArray

__all__ = ["UpperPoint", "upper_point"]

NOTHING = 1e-10  # shares and differences below are taken for zero
SHORT = 2**44  # denominator of rounded coordinates

Equation = tuple[list[Fraction], Fraction]  # row·x = right-hand side


@dataclass(frozen=True, eq=False)
class UpperPoint:
    """A distribution and scores that predict j, with their excess in units of the problem."""

    value: Fraction
    distribution: list[Fraction]
    scores: list[Fraction]
    coupling: list[list[Any]]


def upper_point(
    problem: Problem, model: Polyhedral, i: int, j: int, eps: Fraction, q: FloatArray
) -> UpperPoint:
    """The least excess shown at a distribution near q with (L_j − L_i)q ≥ ε, exactly."""
    found = _nearby(problem, model, i, j, eps, q)
    size = problem.size
    if 0 < found.value < NOTHING * size:
        inner = _inner_distribution(model, model.L[j] - model.L[i] - float(eps / size), j, q)
        found = min(found, _nearby(problem, model, i, j, eps, inner), key=lambda one: one.value)
    return found


def _inner_distribution(model: Polyhedral, above: FloatArray, j: int, q: FloatArray) -> FloatArray:
    """A distribution inside {q : r·q = V(q), above·q ≥ 0}, a convex set, r the piece of V_j at q.

    Corners of the set have more equations than floats can tell; the mean of many has few.
    """
    risks = model.piece(j, q).risks
    every = np.eye(model.k)
    corners = [q]
    for direction in (above, *every):
        found = model.farthest(risks - 1e-12, every, above[None], direction)
        corners += [] if found is None else [found[1]]
    return np.asarray(np.mean(corners, axis=0))


def _nearby(
    problem: Problem, model: Polyhedral, i: int, j: int, eps: Fraction, q: FloatArray
) -> UpperPoint:
    piece, (_, coupling) = model.piece(j, q), model.optimum(q)
    gap = problem.gap(j, i)
    equations = _distribution_equations(problem, model, j, q, piece, coupling)
    if (model.L[j] - model.L[i]) @ q < float(eps / problem.size) + NOTHING:
        equations.append(([Fraction(x) for x in gap], eps))
    found: list[UpperPoint] = []
    for distribution in (snapped(q, equations), snapped(q, _zeros(q)), snapped(q, [])):
        if min(distribution) < 0 or not sum(distribution):
            continue
        distribution = reaching(distribution, gap, eps)
        for scores in _scores(problem, model, j, piece):
            try:
                risks = problem.risks(scores, j)
            except Refused:
                continue
            parts = _peeled(distribution, coupling) if problem.hinge else []
            value = dot(risks, distribution) - problem.optimum_below(distribution, parts)
            found.append(UpperPoint(value, distribution, scores, parts))
    return min(found, key=lambda one: one.value)


def snapped(x: FloatArray, equations: Sequence[Equation]) -> list[Fraction]:
    """Exact numbers near x that satisfy equations, less those that contradict earlier ones."""
    found = [Fraction(round(value * SHORT), SHORT) for value in x.tolist()]
    simple = [Fraction(value).limit_denominator(5040) for value in x.tolist()]
    close = [abs(float(a) - b) < 1e-12 for a, b in zip(simple, x.tolist(), strict=True)]
    found = [a if good else b for a, b, good in zip(simple, found, close, strict=True)]
    rows = [[*row, right] for row, right in equations]
    pivots: list[tuple[int, list[Fraction]]] = []
    for row in rows:
        for column, head in pivots:
            factor = row[column]
            if factor:
                row = [a - factor * b for a, b in zip(row, head, strict=True)]
        # the largest coordinates are adjusted: small ones must not become negative
        columns = [c for c, a in enumerate(row[:-1]) if a]
        if not columns:
            continue
        column = max(columns, key=lambda c: abs(x[c]))
        row = [a / row[column] for a in row]
        pivots = [
            (c, [a - head[column] * b for a, b in zip(head, row, strict=True)])
            for c, head in pivots
        ]
        pivots.append((column, row))
    solved = {column for column, _ in pivots}
    for column, row in pivots:
        known = (row[c] * found[c] for c in range(len(found)) if c not in solved and row[c])
        found[column] = row[-1] - sum(known, Fraction(0))
    return found


def _zeros(x: FloatArray) -> list[Equation]:
    """x_c = 0 where that is so."""
    return [(_unit(c, len(x)), Fraction(0)) for c in np.flatnonzero(x < NOTHING).tolist()]


def _unit(c: int, size: int) -> list[Fraction]:
    return [Fraction(int(d == c)) for d in range(size)]


def _distribution_equations(
    problem: Problem, model: Polyhedral, j: int, q: FloatArray, piece: Piece, coupling: FloatArray
) -> list[Equation]:
    k = model.k
    found = [*_zeros(q), ([Fraction(1)] * k, Fraction(1))]
    if not problem.hinge:
        used = np.flatnonzero(piece.scores > NOTHING).tolist()
        for c in used[1:]:
            found.append(([Fraction(x) for x in problem.gap(c, used[0])], Fraction(0)))
        return found
    for point, free in ((coupling, None), (piece.point, j)):
        for rows, columns in _components(point, free, q):
            inside = [Fraction((c in rows) - (c in columns)) for c in range(k)]
            found.append((inside, Fraction(0)))
    return found


def _components(
    point: FloatArray, free: int | None, q: FloatArray
) -> list[tuple[set[int], set[int]]]:
    """Rows and columns that the support of a coupling joins and whose sums must balance."""
    k = len(q)
    found = [({c}, set[int]()) for c in range(k)] + [(set[int](), {y}) for y in range(k)]
    for c, y in np.argwhere(point > NOTHING).tolist():
        touched = [part for part in found if c in part[0] or y in part[1]]
        found = [part for part in found if part not in touched]
        rows = set[int]().union(*(part[0] for part in touched))
        columns = set[int]().union(*(part[1] for part in touched))
        found.append((rows, columns))
    slack = q - point.sum(axis=1) > NOTHING
    return [
        (rows, columns)
        for rows, columns in found
        if free is None or not (free in rows or any(slack[c] for c in rows))
    ]


def _scores(problem: Problem, model: Polyhedral, j: int, piece: Piece) -> list[list[Fraction]]:
    """Scores that predict j: rounded, and with the equations solved that complementarity gives."""
    k, equations = model.k, list[Equation]()
    if problem.hinge:
        # where L(c, y) + f_c is largest in a column, or f_c = f_j, it stays so
        for c in np.flatnonzero(piece.scores > -NOTHING).tolist():
            equations.append((_unit(c, k), Fraction(0)))
        heights = model.L + piece.scores[:, None]
        for y in range(k):
            used = np.flatnonzero(heights[:, y] > heights[:, y].max() - NOTHING).tolist()
            for c in used[1:]:
                row = [Fraction((d == c) - (d == used[0])) for d in range(k)]
                right = Fraction(problem.L[used[0]][y] - problem.L[c][y], problem.size)
                equations.append((row, right))
        options = [snapped(piece.scores, equations), snapped(piece.scores, [])]
        return [[x * problem.size for x in one] for one in options]
    z = piece.scores @ model.L
    ties = [y for y in range(k) if y != j and abs(z[y] - z[j]) < NOTHING]
    columns = problem.columns
    for y in ties:
        row = [Fraction(a - b) for a, b in zip(columns[y], columns[j], strict=True)]
        equations.append((row, Fraction(0)))
    equations += [*_zeros(piece.scores), ([Fraction(1)] * k, Fraction(1))]
    options = [snapped(piece.scores, equations), snapped(piece.scores, _zeros(piece.scores))]
    return [one for one in options if min(one) >= 0]


def _peeled(distribution: list[Fraction], coupling: FloatArray) -> list[list[Any]]:
    """The coupling with exact sums: cells that are alone in their row or column are determined."""
    rows, columns = list(distribution), list(distribution)
    cells = {(c, y) for c, y in np.argwhere(coupling > NOTHING).tolist()}
    found: list[list[Any]] = []
    while cells:
        by_row = {c: [cell for cell in cells if cell[0] == c] for c, _ in cells}
        by_column = {y: [cell for cell in cells if cell[1] == y] for _, y in cells}
        c, y = next(
            (lines[0] for lines in (*by_row.values(), *by_column.values()) if len(lines) == 1),
            min(cells),
        )
        cells.remove((c, y))
        part = min(rows[c], columns[y])
        if part > 0:
            rows[c] -= part
            columns[y] -= part
            found.append([c, y, part])
    return found
