"""The minimum over pairs as quadratic pieces.

H_ij is the value of a quadratic program whose right-hand side is affine in ε: where the active sets
stay the same, the minimizer v is affine in ε and H_ij = ½‖v‖² is one quadratic. `exact` traces each
pair in rationals; the minimum of such curves changes hands where two of them cross, at roots.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from fractions import Fraction
from itertools import pairwise

from consistruct.calibration.methods.orbits.closed_forms import Quadratic
from consistruct.calibration.proofs.provers.pair import Piece

__all__ = ["lower_envelope"]

LATER = Fraction(1, 2**60)
ALIKE = Fraction(1, 10**13)  # relative difference of quadratics that stems from rounded data


def lower_envelope(curves: list[list[Piece]]) -> tuple[Quadratic, ...]:
    """The minimum of several piecewise quadratic curves, each +inf beyond its end.

    Pieces are (low, high, a, b, c) in rationals; the result is rounded at the end.
    """
    pieces = sorted({piece for curve in curves for piece in curve})
    edges = sorted({edge for piece in pieces for edge in piece[:2]})
    result: list[Piece] = []
    active: dict[int, list[Piece]] = {}
    for piece in pieces:
        for number in range(bisect_left(edges, piece[0]), bisect_left(edges, piece[1])):
            active.setdefault(number, []).append(piece)
    for number, (low, high) in enumerate(pairwise(edges)):
        if number in active:
            result += _least(_distinct(active[number], low, high), low, high)
    merged: list[Piece] = []
    for piece in result:
        if merged and merged[-1][1] == piece[0] and _alike(merged[-1], piece, *piece[:2]):
            merged[-1] = (merged[-1][0], piece[1], *merged[-1][2:])
        else:
            merged.append(piece)
    return tuple(Quadratic(*(float(x) for x in piece)) for piece in merged)


def _value(piece: Piece, eps: Fraction) -> Fraction:
    return (piece[2] * eps + piece[3]) * eps + piece[4]


def _least(pieces: list[Piece], low: Fraction, high: Fraction) -> list[Piece]:
    """The minimum of quadratics on (low, high)."""
    found: list[Piece] = []
    start = low
    while start < high:
        # the least one just after `start`: by value, then slope, then curvature
        best = min(
            pieces,
            key=lambda p: (_value(p, start), 2 * p[2] * start + p[3], p[2]),
        )
        crossings = [
            root for other in pieces if other is not best for root in _roots(best, other, start)
        ]
        stop = min([high, *(root for root in crossings if root < high)])
        found.append((start, stop, *best[2:]))
        start = stop
    return found


def _roots(one: Piece, other: Piece, start: Fraction) -> list[Fraction]:
    """Where the second quadratic gets below the first after `start`, within a float's precision."""
    a, b, c = (x - y for x, y in zip(one[2:], other[2:], strict=True))
    # in t = ε − start: a t² + b t + c crosses zero upwards
    b, c = 2 * a * start + b, (a * start + b) * start + c
    size = max(abs(a), abs(b), abs(c))
    if size == 0:
        return []
    if a == 0:
        roots = [-c / b] if b > 0 else []
    else:
        square = b * b - 4 * a * c
        if square < 0:
            return []
        root = _root(square)
        # the stable form of the root at which the difference grows: slope +√ there
        roots = [2 * c / (-b - root)] if b > 0 else [(-b + root) / (2 * a)]
    # a little later, so that the other one is surely below: the root itself may be irrational
    return [start + t * (1 + LATER) for t in roots if t > 0]


def _root(x: Fraction) -> Fraction:
    """√x to some fifty digits."""
    if x == 0:
        return Fraction(0)
    shift = max(0, 340 - (x.numerator.bit_length() - x.denominator.bit_length()))
    shift += shift % 2
    return Fraction(math.isqrt((x.numerator << shift) // x.denominator), 1 << (shift // 2))


def _alike(one: Piece, other: Piece, low: Fraction, high: Fraction) -> bool:
    """Equal up to rounding of the data, at both ends of an interval."""
    return all(
        abs(_value(one, at) - _value(other, at)) <= ALIKE * _value(one, at) for at in (low, high)
    )


def _distinct(pieces: list[Piece], low: Fraction, high: Fraction) -> list[Piece]:
    kept: list[Piece] = []
    for piece in pieces:
        if not any(_alike(piece, other, low, high) for other in kept):
            kept.append(piece)
    return kept
