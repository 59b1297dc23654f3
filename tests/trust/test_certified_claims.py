"""What is certified holds for exactly the numbers given; rational arithmetic is the judge.

`tests.calibration.rational` solves the definition of H in fractions with nothing of the package.
"""

from __future__ import annotations

import math
import re
import warnings
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

import consistruct as cs
from consistruct import losses, structures
from consistruct.calibration.proofs.base import PlainCertificate
from consistruct.report import calibration_report
from consistruct.report.calibration.wording import calibration_sections
from tests.calibration.rational import calibration_value

GRADED = np.diag([1e8, 1.0, 1e-8])
ROTATION = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]


def fractions(rows):
    return [[Fraction(float(x)) for x in row] for row in rows]


def true_label(L, F, eps, columns=None):
    """H(ε) under the uniform measure; `columns` in place of the true labels of L."""
    k = len(L)
    rows = fractions(L) if columns is None else columns
    F = None if F is None else fractions(F)
    return calibration_value(rows, F, [Fraction(1, k)] * k, Fraction(eps))


def curve(L, F, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        space = "full" if F is None else structures.Dense(F)
        return cs.calibration_function(losses.CostMatrix(L, rows="pred"), space, **settings)


# --- the rank of scores ---


def test_scores_of_very_different_sizes_keep_their_rank():
    L = 1 - np.eye(3)
    H = curve(L, GRADED)
    assert true_label(L, GRADED, 0.5) == Fraction(1, 48)
    low, high = H.interval(0.5)
    assert Fraction(low) <= Fraction(1, 48) <= Fraction(high)
    assert high - low < 1e-15
    assert round(H(0.5), 7) == 0.0208333
    assert (H.scores.rank, H.consistency_level, H.approximation_error) == (3, 0.0, 0.0)
    assert H.scores.predictable().size == 3
    assert float(H.effective_classes) == 3.0
    proof = H.certificate(0.5)
    assert isinstance(proof, PlainCertificate)
    proof.check("zero-one:3", structures.Dense(GRADED))


# the second has columns of one size: only exact arithmetic tells its rank
@pytest.mark.parametrize(
    "F",
    [
        GRADED,
        GRADED @ ROTATION,
        [[1, 1, 1], [1, 1 + 1e-15, 2], [1, 1, 3], [1, 1, 4]],
    ],
)
def test_a_small_direction_of_the_scores_is_not_dropped(F):
    F = np.array(F, dtype=float)
    L = 1 - np.eye(len(F))
    for eps in (0.3, 0.7):
        H = curve(L, F)
        low, high = H.interval(eps)
        assert Fraction(low) <= true_label(L, F, eps) <= Fraction(high)
        assert H.curve(eps)[0].status in ("certified", "rounding")


def test_a_rank_beyond_floats_is_stated():
    with pytest.warns(UserWarning, match=r"rank 3 exactly, but floats tell only 2"):
        cs.calibration_function(losses.ZeroOne(3), structures.Dense(GRADED @ ROTATION))


@pytest.mark.filterwarnings("ignore::consistruct.calibration.LabelOrderWarning")
def test_a_rank_that_was_not_decided_certifies_nothing():
    rng = np.random.default_rng(0)
    F = rng.standard_normal((6, 2)) @ rng.standard_normal((2, 3000))
    F = np.repeat(F, 40, axis=0)  # few labels can win, too many entries to decide the rank
    L = np.repeat(rng.random((6, 3)), 40, axis=0)
    with pytest.warns(UserWarning, match="is an estimate"):
        H = cs.calibration_function(losses.CostMatrix(L, rows="pred"), structures.Dense(F))
    assert H.curve(0.9 * H.max_eps)[0].status not in ("exact", "certified")


def test_scores_that_nearly_express_a_loss_have_a_level_of_their_own():
    L = np.array([[0.0, 1.0], [0.7, 0.0], [1.0, 0.2], [0.4, 0.9]])
    F = np.column_stack([np.ones(4), L])
    F[3, 2] += 1e-11
    H = curve(L, F)
    assert true_label(L, F, 1e-14) == 0
    assert true_label(L, F, 1e-9) > 0
    low, high = H.consistency_interval
    assert low <= 1e-9
    assert 1e-14 <= high <= 1e-9
    assert "rounding" in (H.consistency_reason or "")


def test_own_scores_express_the_loss_exactly():
    L = np.random.default_rng(1).random((5, 3))
    H = cs.calibration_function(losses.CostMatrix(L, rows="pred"))
    own = np.column_stack([np.ones(5), L])
    for eps in (1e-6, 0.4):
        low, high = H.interval(eps)
        assert Fraction(low) <= true_label(L, own, eps) <= Fraction(high)
    proof = H.certificate(0.4)
    assert isinstance(proof, PlainCertificate)
    proof.check(losses.CostMatrix(L, rows="pred"), "own")


# --- restricted distributions ---


def extreme(kind, m, x):
    """The extreme points of each polytope of `distributions`, from their definition."""
    x = Fraction(x)
    if kind == "noise":
        rows = [
            [(1 - x) * (t == b) + x * (t == a) for t in range(m)]
            for b in range(m)
            for a in range(m)
        ]
        return [rows[b * m : (b + 1) * m] for b in range(m)]
    found = []
    if kind == "cap":
        full = int(1 / (1 - x))
        rest = 1 - full * (1 - x)
        for chosen in combinations(range(m), full):
            for last in [t for t in range(m) if t not in chosen] if rest else [None]:
                row = [
                    1 - x if t in chosen else rest if t == last else Fraction(0) for t in range(m)
                ]
                found.append(row)
        return [found]
    for best in range(m):
        part = []
        for size in range(m):
            for second in combinations([t for t in range(m) if t != best], size):
                top = (1 + size * x) / (size + 1)
                low = dict.fromkeys(second, top - x) | {best: top}
                part.append([low.get(t, Fraction(0)) for t in range(m)])
        found.append(part)
    return found


@pytest.mark.parametrize("seed", range(6))
def test_restricted_intervals_hold_for_the_exact_distributions(seed):
    rng = np.random.default_rng(seed)
    compared = 0
    for case in range(24):
        k, m = int(rng.integers(2, 4)), int(rng.integers(2, 4))
        L = rng.random((k, m)) if case % 3 else rng.random((k, m)).round(1)
        kind = ("noise", "margin", "cap")[case % 3]
        x = round(float(rng.uniform(0.02, 0.45)), int(rng.integers(1, 4)))
        F = (
            None
            if case % 2
            else np.column_stack([np.ones(k), rng.standard_normal((k, max(1, k - 2)))])
        )
        H = curve(L, F, distributions=f"{kind}:{x}")
        for eps in (0.2 * H.max_eps, 0.95 * H.max_eps):
            if eps == 0:
                continue
            values = []
            for points in extreme(kind, m, x):
                columns = [
                    [sum(a * b for a, b in zip(row, q, strict=True)) for q in points]
                    for row in fractions(L)
                ]
                values.append(true_label(L, F, eps, columns))
            expected = min(value for value in values if value is not None)
            low, high = H.interval(eps)
            assert Fraction(low) <= expected <= Fraction(high)
            compared += 1
    assert compared > 30


def test_restricted_intervals_of_many_labels_are_about_the_exact_distributions():
    L = np.random.default_rng(0).random((20, 3))
    H = curve(L, None, distributions="noise:0.1")
    for eps in (0.4 * H.max_eps, H.max_eps):
        proof = H.certificate(eps)
        proof.check()
        for part, points in zip(proof.parts, extreme("noise", 3, 0.1), strict=True):
            exact = [
                [sum(a * b for a, b in zip(row, q, strict=True)) for q in points]
                for row in fractions(L)
            ]
            if part is not None:  # else no pair of labels differs by ε there
                assert [[Fraction(x) for x in row] for row in part.loss] == exact
        low, high = H.interval(eps)
        assert low <= proof.lower <= proof.upper <= high <= low * (1 + 1e-6)


# --- envelopes ---


def convex_minorant(x, y, at):
    hull = []
    for a, b in zip(x, y, strict=True):
        while len(hull) > 1:
            (x0, y0), (x1, y1) = hull[-2:]
            if (y1 - y0) * (a - x0) < (b - y0) * (x1 - x0):
                break
            hull.pop()
        hull.append((a, b))
    x, y = zip(*hull, strict=True)
    return np.interp(at, x, y)


@pytest.mark.parametrize("k", [3, 4, 5])
def test_the_envelope_is_the_largest_convex_minorant(k):
    rng = np.random.default_rng(k)
    L = rng.integers(0, 5, (k, k)).astype(float)
    F = np.column_stack([np.ones(k), rng.integers(-2, 3, (k, k - 2))])
    for space in (None, F):
        H = curve(L, space)
        pieces = H.pieces
        grid = np.unique(
            np.concatenate([[0.0], *(np.linspace(p.low, p.high, 2001) for p in pieces)])
        )
        # H at a jump is the value of the piece that ends there
        values = [next((p(e) for p in pieces if p.low < e <= p.high), 0.0) for e in grid]
        at = np.linspace(0.05, 1.0, 12) * H.max_eps
        expected = convex_minorant(grid, np.maximum(values, 0.0), at)
        found = np.asarray(H.envelope()(at))
        assert (found <= expected + 1e-12).all()
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-9)
        assert (np.asarray(H.envelope().gap(at)) == 0).all()


def test_pieces_and_envelope_know_the_labels_that_only_exact_arithmetic_tells_apart():
    """Floats see two labels of four that can win: the curve of their pairs was too high."""
    L = np.array([[0.31, 0.09, 0.5], [0.83, 0.87, 0.41], [0.98, 0.97, 0.32], [0.12, 0.84, 0.94]])
    line = np.array([0.42276527265265684, -0.6772606566297126, 0.7062762008487691, -0.095570180155])
    for F in (
        np.column_stack([line, 3 * line]),  # the products are rounded: rank 2
        np.column_stack([line, line + np.array([1.0, 0.0, -2.0, 3.0]) * 1e-12]),
    ):
        H = curve(L, F)
        at = np.linspace(0.05, 1.0, 20) * H.max_eps
        for eps, height in zip(at, np.asarray(H.envelope()(at)), strict=True):
            exact = true_label(L, F, eps)
            assert Fraction(float(height)) <= exact
            piece = next(p for p in H.pieces if p.low < eps <= p.high)
            assert abs(piece(eps) - float(exact)) <= 1e-9 * H(H.max_eps)


# --- rounded numbers for readers ---


def test_own_scores_keep_columns_of_tiny_costs():
    L = np.random.default_rng(0).random((4, 2)) * [1.0, 1e-17]
    H = cs.calibration_function(losses.CostMatrix(L, rows="pred"))
    assert H.scores.rank == 3
    assert H.consistency_interval == (0.0, 0.0)
    for eps in (1e-18, 0.3):
        low, high = H.interval(eps)
        expected = true_label(L, np.column_stack([np.ones(4), L]), eps)
        assert Fraction(low) <= expected <= Fraction(high)


def test_a_level_that_six_digits_round_is_marked():
    H = cs.calibration_function(losses.Mixed((2, 2), 1 / 3), structures.Blocks((2, 2)))
    assert "only up to level ≈ 0.166667" in H._repr_html_()
    (section,) = (
        part for part in calibration_sections(calibration_report(H)) if part.key == "consistency"
    )
    assert "level ≈ 0.166667" in section.answer


@pytest.mark.parametrize("k", [3, 4, 6, 7, 8])
def test_as_many_examples_are_printed_as_guarantee_the_excess(k):
    report = calibration_report(cs.calibration_function(losses.ZeroOne(k)), at=0.0123)
    assert report.sample_sizes is not None
    needed = report.sample_sizes.at(0.0123).log10_sharp
    (section,) = (part for part in calibration_sections(report) if part.key == "sample_size")
    printed = re.search(r"At most ([\d,.]+) examples", " ".join(section.details))
    assert printed is not None
    assert math.log10(float(printed[1].replace(",", ""))) >= needed - 1e-12
