"""The exact arithmetic behind certificates: each piece against the slow and obvious way."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from consistruct.calibration.methods.explicit.parametric import lower_envelope
from consistruct.calibration.methods.explicit_full._dual import pair_lower_bounds
from consistruct.calibration.proofs.base import down, log_down, log_up, up
from consistruct.calibration.proofs.filters import FloatView
from consistruct.calibration.proofs.provers.listed import ListedProver
from consistruct.calibration.proofs.provers.pair import active_set, lemke, trace
from consistruct.certificates.exact import (
    combination_or_direction,
    independent_columns,
    solve_integers,
)
from consistruct.certificates.listed import Problem, bound
from tests.calibration.rational import calibration_value, predictable


def fractions(values):
    return [[Fraction(float(x)) for x in row] for row in values]


@pytest.mark.parametrize("seed", range(20))
def test_rounding_is_outward_and_tight(seed):
    rng = np.random.default_rng(seed)
    x = Fraction(int(rng.integers(1, 10**9)), int(rng.integers(1, 10**9)))
    x *= Fraction(2) ** int(rng.integers(-900, 900))
    assert Fraction(down(x)) <= x <= Fraction(up(x))
    assert up(x) <= math.nextafter(down(x), math.inf)
    assert log_down(x) <= log_up(x) <= log_down(x) + 1e-12 * (1 + abs(log_down(x)))


def test_rounding_at_the_ends():
    tiny, huge = Fraction(1, 2**1200), Fraction(2) ** 1100
    assert (down(tiny), up(tiny)) == (0.0, 5e-324)
    assert (down(huge), up(huge)) == (1.7976931348623157e308, math.inf)
    assert log_down(Fraction(0)) == -math.inf
    assert log_down(tiny) == pytest.approx(-1200 * math.log(2))


@pytest.mark.parametrize("seed", range(30))
def test_exactly_one_alternative_holds(seed):
    rng = np.random.default_rng(seed)
    n, width = int(rng.integers(1, 7)), int(rng.integers(1, 4))
    rows = rng.integers(-2, 3, (n, width)).tolist()
    strict = (rng.random(n) < 0.5).tolist()
    mixture, theta = combination_or_direction(rows, strict)
    assert (mixture is None) != (theta is None)
    if mixture is not None:
        assert all(x >= 0 for x in mixture)
        assert sum(x for x, flag in zip(mixture, strict, strict=True) if flag) == 1
        for column in zip(*rows, strict=True):
            assert sum(x * a for x, a in zip(mixture, column, strict=True)) == 0
    else:
        for row, flag in zip(rows, strict, strict=True):
            value = sum(a * b for a, b in zip(row, theta, strict=True))
            assert value <= (-1 if flag else 0)


@pytest.mark.parametrize("seed", range(20))
def test_integer_systems(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    A = rng.integers(-3, 4, (n, n))
    if seed % 2:
        A[-1] = A[0]  # singular
    X = rng.integers(-3, 4, (n, 2))
    found = solve_integers(A.tolist(), (A @ X).tolist())
    assert found is not None
    for row, right in zip(A.tolist(), (A @ X).tolist(), strict=True):
        for c in (0, 1):
            assert sum(a * x[c] for a, x in zip(row, found, strict=True)) == right[c]
    assert len(independent_columns(A.tolist())) == np.linalg.matrix_rank(A)
    if seed % 2 and n > 1:
        bad = A @ X
        bad[-1] += 1
        assert solve_integers(A.tolist(), bad.tolist()) is None


@pytest.mark.parametrize("seed", range(15))
def test_predictable_labels(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 7))
    F = rng.integers(-1, 2, (k, 2)).astype(float)
    F[0, 0] += 1.0 if not F.any() else 0.0
    prover = ListedProver(rng.random((k, 3)).tolist(), F, predictable=[])
    if prover.problem.full:
        return
    assert prover.rows == predictable(fractions(np.array(prover.embedding)))
    for label in prover.rows:
        theta = prover.winners.wins(label)
        f = [sum(a * b for a, b in zip(row, theta, strict=True)) for row in prover.problem.scores]
        assert f.index(max(f)) == label


@pytest.mark.parametrize("seed", range(12))
def test_pieces_and_points_agree_with_the_reference(seed):
    rng = np.random.default_rng(seed)
    k, m = int(rng.integers(2, 5)), int(rng.integers(2, 5))
    L = rng.integers(0, 4, (k, m)).astype(float) if seed % 2 else rng.random((k, m))
    F = None if seed % 3 else rng.standard_normal((k, 2))
    prover = ListedProver(L.tolist(), F, predictable=[])
    pieces = [prover.trace(i, j) for i in prover.rows for j in prover.rows if i != j]
    top = max((curve[-1][1] for curve in pieces if curve), default=Fraction(0))
    for share in (Fraction(1, 10**7), Fraction(1, 3), Fraction(7, 8), Fraction(1)):
        eps = share * top
        if eps == 0:
            continue
        proof = prover.prove(eps)
        assert proof is not None
        assert proof.lower == proof.upper
        kept = None if prover.embedding is None else fractions(prover.embedding)
        true_value = calibration_value(fractions(L), kept, [Fraction(1, k)] * k, eps)
        assert proof.lower == true_value
        at = [
            (a * eps + b) * eps + c
            for curve in pieces
            for low, high, a, b, c in curve
            if low < eps <= high
        ]
        assert min(at) == true_value
    for curve in pieces:  # no gaps, continuous
        for one, other in pairwise(curve):
            assert one[1] == other[0]
            values = [(p[2] * one[1] + p[3]) * one[1] + p[4] for p in (one, other)]
            assert values[0] == values[1]


@pytest.mark.parametrize("seed", range(10))
def test_active_sets_give_what_lemke_gives(seed):
    rng = np.random.default_rng(seed)
    L = rng.random((4, 4))
    i, j = divmod(int(np.argmax([(b - a).max() for a in L for b in L])), 4)
    prover = ListedProver(L.tolist())
    pair, _ = prover.pair(i, j)
    eps = Fraction(max(pair.g)) / 3
    q, w, nu = lemke(pair, eps).at(eps)
    S = [y for y, x in enumerate(q) if x]
    W = [c for c, x in enumerate(w) if x]
    again = active_set(pair, eps, S, W, nu > 0)
    assert again is not None
    assert again.at(eps)[1:] == (w, nu)  # q need not be unique
    assert active_set(pair, eps, S, [], False) is None
    assert trace(pair, lambda at: lemke(pair, at))


@pytest.mark.parametrize("seed", range(20))
def test_float_bounds_are_below_the_exact_ones(seed):
    """Any dual point, of any size: what floats say is proved over the integers."""
    rng = np.random.default_rng(seed)
    k, m = int(rng.integers(3, 9)), int(rng.integers(2, 7))
    L = rng.random((k, m)) * 10.0 ** rng.uniform(-5, 5, (k, 1))
    F = None if seed % 2 else np.column_stack([np.ones(k), rng.standard_normal((k, 2))])
    measure = None if seed % 3 else rng.dirichlet(np.ones(k)).tolist()
    problem = Problem(L.tolist(), None if F is None else F.tolist(), measure)
    view = FloatView(problem)
    gaps = [(max(problem.gap(i, j)), i, j) for i in range(k) for j in range(k) if i != j]
    top = float(Fraction(max(gaps)[0], problem.unit))
    for _ in range(30):
        eps = top * 10.0 ** rng.uniform(-9, 0)
        i, j = rng.choice(k, 2, replace=False).tolist()
        exact = Fraction(eps)
        one = Fraction(1)
        start = bound(problem, i, j, {i: one}, one, exact)
        assert start is None or Fraction(view.start(eps)[i, j]) <= start
        chosen = rng.choice([c for c in range(k) if c != j], int(rng.integers(1, k)), replace=False)
        w = {int(c): Fraction(float(10.0 ** rng.uniform(-6, 1))) for c in chosen}
        nu = Fraction(float(10.0 ** rng.uniform(-3, 1)))
        found = bound(problem, i, j, w, nu, exact)
        assert found is None or Fraction(view.lines(i, j, [(w, nu)], eps)) <= found
        if view.infeasible(eps)[i, j]:
            assert max(problem.gap(i, j)) < exact * problem.unit
        if F is None and measure is None:
            dense = np.zeros((1, k))
            dense[0, list(w)] = [float(x) for x in w.values()]
            (low,) = pair_lower_bounds(
                L, np.ones(k), j, np.array([i]), dense, np.array([float(nu)]), np.array([eps])
            )[0]
            assert Fraction(low) <= k * found


def test_the_minimum_of_curves():
    rng = np.random.default_rng(5)
    for _ in range(20):
        curves = []
        for _ in range(4):
            edges = sorted({Fraction(0), *map(Fraction, rng.integers(1, 9, 2).tolist())})
            pieces = [
                (low, high, *map(Fraction, rng.integers(0, 4, 3).tolist()))
                for low, high in pairwise(edges)
            ]
            curves.append(pieces)
        found = lower_envelope(curves)
        for eps in rng.random(50) * float(found[-1].high):
            values = [
                float((a * Fraction(eps) + b) * Fraction(eps) + c)
                for curve in curves
                for low, high, a, b, c in curve
                if low < eps <= high
            ]
            piece = next(piece for piece in found if piece.low < eps <= piece.high)
            assert piece(eps) == pytest.approx(min(values), rel=1e-12)
