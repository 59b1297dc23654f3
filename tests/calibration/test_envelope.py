"""The convex envelope: exact from pieces, refined from values, proved line by line."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import consistruct as cs
from consistruct.calibration.envelope import Envelope, as_rows, envelope_from_values
from consistruct.calibration.methods.orbits.closed_forms import Quadratic
from consistruct.losses import CostMatrix, Hamming, Mixed, Ordinal
from consistruct.structures import Blocks, Dense


def lower_hull(x, y, at):
    """The lower convex hull of points, by the monotone chain: the slow reference."""
    hull: list[Any] = []
    for point in zip(x.tolist(), y.tolist(), strict=True):
        while len(hull) >= 2:
            (x0, y0), (x1, y1) = hull[-2:]
            if (y1 - y0) * (point[0] - x0) >= (point[1] - y0) * (x1 - x0):
                hull.pop()
            else:
                break
        hull.append(point)
    hx, hy = np.array(hull).T
    return np.interp(at, hx, hy)


def random_pieces(seed):
    """Convex quadratics on neighboring intervals that never fall and may jump up."""
    rng = np.random.default_rng(seed)
    edges = np.cumsum(rng.exponential(size=rng.integers(2, 7)))
    pieces: list[Any] = []
    height, low = 0.0, 0.0
    for high in edges.tolist():
        a = float(rng.choice([0.0, rng.exponential()]))
        slope = float(rng.choice([0.0, rng.exponential()]))  # at the left end
        b = slope - 2 * a * low
        start = height + float(rng.choice([0.0, 0.0, rng.exponential()])) * bool(pieces)
        pieces.append(Quadratic(low, high, a, b, start - (a * low + b) * low))
        height, low = pieces[-1](high), high
    return pieces


@pytest.mark.parametrize("seed", range(25))
def test_of_random_pieces_is_the_hull_of_dense_samples(seed):
    pieces = random_pieces(seed)
    end = pieces[-1].high
    envelope = Envelope(as_rows(pieces), end)
    x = np.concatenate([np.linspace(p.low, p.high, 4001) for p in pieces])
    y = np.concatenate([[p(e) for e in np.linspace(p.low, p.high, 4001)] for p in pieces])
    at = np.linspace(0.0, end, 41)
    # the chords between samples lie above a parabola by a·h²/4 at most
    slack = max(p.a * ((p.high - p.low) / 4000) ** 2 for p in pieces)
    true_value = lower_hull(np.append(0.0, x), np.append(0.0, y), at)
    found = envelope(at)
    assert (found <= true_value + 1e-12).all()
    assert (found >= true_value - slack - 1e-12).all()


@pytest.mark.parametrize("seed", range(25))
def test_every_value_is_proved_by_one_line_in_fractions(seed):
    pieces = random_pieces(seed + 100)
    end = pieces[-1].high
    envelope = Envelope(as_rows(pieces), end)
    for eps in (0.01 * end, 0.37 * end, 0.8 * end, end):
        slope, intercept = envelope.line(eps)
        assert envelope(eps) <= Fraction(slope) * Fraction(eps) + intercept
        assert intercept <= 0  # H(0) = 0
        for p in pieces:
            low, high, a, b, c = map(Fraction, (p.low, p.high, p.a, p.b, p.c))
            b -= Fraction(slope)
            ends = [low, high] + ([-b / (2 * a)] if a > 0 and low < -b / (2 * a) < high else [])
            assert min((a * x + b) * x + c for x in ends) >= intercept


@pytest.mark.parametrize("seed", range(25))
def test_the_inverse_of_random_pieces(seed):
    pieces = random_pieces(seed + 200)
    end = pieces[-1].high
    envelope = Envelope(as_rows(pieces), end)
    top = envelope(end)
    if top == 0:
        assert envelope.inverse(0.0) == end
        return
    for share in (1e-9, 0.01, 0.3, 0.99):
        eps = envelope.inverse(share * top)
        assert envelope(eps) >= share * top * (1 - 1e-12)  # rounded up
        assert envelope(eps * (1 - 1e-9)) <= share * top
    assert envelope.inverse(math.inf) == end
    assert envelope.inverse(top) == pytest.approx(end, rel=1e-12)
    assert envelope(envelope.inverse(0.0) * (1 - 1e-12)) == 0.0


def test_small_eps_keeps_its_relative_accuracy():
    # a wide range of magnitudes: a shift by a share of H(max) would wipe out the left end
    pieces = [Quadratic(0.0, 1e-6, 1.0), Quadratic(1e-6, 1.0, 3.0)]
    envelope = Envelope(as_rows(pieces), 1.0)
    assert envelope(1e-9) == pytest.approx(1e-18, rel=1e-12)
    assert envelope.inverse(1e-18) == pytest.approx(1e-9, rel=1e-12)


# --- the numbers that coarse envelopes got wrong ---


def sharp_examples(loss, space, eps, H):
    """N* = (B²ξ(1)/H)² from the definition: B² = max_y Var_c of the projected loss, R = Q = 1."""
    F, L = space.matrix(), loss.matrix()
    projected = F @ np.linalg.lstsq(F, L, rcond=None)[0]
    return (projected.var(axis=0).max() * 2 / H) ** 2


def block_scores_h(eps, eta, b, s):
    """Row "mixed, block scores" of the table of closed forms, typed in again."""
    return max(eps - eta / 2, 0) ** 2 / (4 * b) * ((eta / s + 1 - eta) / (1 - eta / 2)) ** 2


def test_just_above_the_level_the_number_of_examples_is_finite():
    loss, blocks = Mixed((2, 2, 2), 0.2), Blocks((2, 2, 2))
    expected = sharp_examples(loss, blocks, 0.11, block_scores_h(0.11, 0.2, 3, 2))
    assert expected == pytest.approx(1.87e9, rel=0.01)
    found = cs.sample_complexity(loss, blocks, eps=0.11)
    assert found.sharp.iterations == pytest.approx(expected, rel=1e-9)
    assert found.gap == 0.0


@pytest.mark.parametrize(("eps", "named"), [(0.15, 2.99e6), (0.11, 1.87e9), (0.5, None)])
def test_the_same_through_a_matrix_within_one_percent(eps, named):
    loss, blocks = Mixed((2, 2, 2), 0.2), Blocks((2, 2, 2))
    expected = sharp_examples(loss, blocks, eps, block_scores_h(eps, 0.2, 3, 2))
    if named is not None:
        assert expected == pytest.approx(named, rel=0.01)
    with pytest.warns(cs.calibration.LabelOrderWarning):
        found = cs.sample_complexity(
            CostMatrix(loss.matrix(), rows="pred"), Dense(blocks.matrix()), eps=eps
        )
    assert expected * (1 - 1e-9) <= found.sharp.iterations <= expected * 1.01
    assert 0 <= found.gap <= 0.01
    # the gap is honest: the right number lies within it
    assert found.sharp.iterations / (1 + found.gap) <= expected * (1 + 1e-9)


def test_advice_follows_the_numbers():
    loss = Mixed((5,) * 20, 0.02)
    blocks = sharp_examples(loss, Blocks((5,) * 20), 0.02, block_scores_h(0.02, 0.02, 20, 5))
    full = (loss.matrix().var(axis=0).max() * 2 / (0.02**2 / 400)) ** 2  # ε ≤ η/(1−η): ε²/4k
    assert blocks == pytest.approx(5.55e9, rel=0.01)
    assert full == pytest.approx(8.46e9, rel=0.01)
    advice = cs.advise(loss, eps=0.02, surrogates=False)
    assert advice.recommended is not None
    assert advice.recommended.name == "20 blocks"
    needs = {entry.name: entry.iterations for entry in advice.families}
    assert needs["20 blocks"] == pytest.approx(blocks, rel=0.01)
    assert needs["full scores (own span)"] == pytest.approx(full, rel=0.01)


# --- values ---


def test_steps_by_hand():
    grid = np.array([0.0, 1.0, 2.0])

    def values(x):
        found = np.array([0.0, 1.0, 5.0])[np.searchsorted(grid, x)]
        return found, found

    envelope = envelope_from_values(
        values, grid, quadratic=0.0, log_scale=0.0, at=np.zeros(0), tolerance=0.01, most=512
    )
    # H ≥ 0 on [0, 1), ≥ 1 on [1, 2): the hull goes through (0, 0), (1, 0), (2, 1)
    assert envelope(np.array([0.5, 1.0, 1.5, 2.0])).tolist() == [0, 0, 0.5, 1.0]
    assert envelope(2.5) == math.inf
    # from above: the hull of (0, 0), (1, 1), (2, 5)
    assert envelope.gap(2.0) == 4.0
    assert envelope.gap(0.5) == math.inf


@pytest.mark.parametrize("seed", range(8))
def test_values_are_refined_where_they_count(seed):
    pieces = random_pieces(seed + 300)
    end = pieces[-1].high
    exact = Envelope(as_rows(pieces), end)
    requested = 0

    def values(x):
        nonlocal requested
        requested += len(x)
        found = [next((p(e) for p in pieces if e <= p.high), math.inf) for e in x.tolist()]
        return np.array(found), np.array(found)

    for share in (0.3, 0.9):
        eps = share * end
        envelope = envelope_from_values(
            values, np.linspace(0, end, 33), quadratic=0.0, log_scale=0.0,
            at=np.array([eps]), tolerance=0.01, most=512,
        )  # fmt: skip
        true_value, gap = exact(eps), envelope.gap(eps)
        assert envelope(eps) <= true_value * (1 + 1e-12) + 1e-15
        assert envelope(eps) * (1 + gap) >= true_value * (1 - 1e-12)
        # a long straight part of H touches the line everywhere: it may use up the values
        assert gap <= 0.005 or (requested > 512 and gap < 0.02)
    assert requested < 1200


def test_loose_values_leave_a_gap_that_is_stated():
    def values(x):
        return 0.9 * x**2, 1.1 * x**2

    envelope = envelope_from_values(
        values, np.linspace(0, 1, 33), quadratic=0.0, log_scale=0.0,
        at=np.array([0.5]), tolerance=0.01, most=512,
    )  # fmt: skip
    assert envelope(0.5) == pytest.approx(0.9 * 0.25, rel=0.005)
    assert envelope.gap(0.5) == pytest.approx(1.1 / 0.9 - 1, rel=0.03)


@pytest.mark.parametrize(
    ("loss", "scores"), [(Mixed((2, 3), 0.2), None), (Hamming(6), "full"), (Ordinal(5), None)]
)
def test_logarithms_agree_with_values(loss, scores):
    H = cs.calibration_function(loss, scores)
    eps = np.array([0.1, 0.6, 1.0]) * H.max_eps
    envelope = H.envelope(eps)
    np.testing.assert_allclose(np.exp(envelope.log(eps)), envelope(eps), rtol=1e-12)
    assert (envelope(eps) <= H.interval(eps)[1]).all()
    assert max(envelope.gap(value) for value in eps.tolist()) < 0.0051
    assert envelope.log(0.0) == -math.inf
    assert envelope.log(2 * H.max_eps) == math.inf
    for value in eps.tolist():
        delta = envelope(value)
        assert envelope.inverse(delta) == pytest.approx(envelope.inverse_log(math.log(delta)))


def test_logarithms_stay_finite_where_values_underflow():
    envelope = cs.calibration_function(Hamming(1200), "full").envelope(0.5)
    assert envelope(0.5) == 0.0  # below all floats
    log = envelope.log(0.5)
    assert -850 < log < -800
    assert envelope.inverse_log(log) == pytest.approx(0.5)


def test_where_only_theorem_7_is_known_the_envelope_is_that_of_the_theorem():
    T = 20
    H = cs.calibration_function(3 * Hamming(T))
    assert H.method == "bounds"  # a multiple of a loss has no certificate of its own
    eps = np.array([0.1, 1.0, 3.0])
    np.testing.assert_allclose(H.envelope()(eps), eps**2 / (8 * T), rtol=1e-7)
    assert (H.envelope()(eps) <= H.interval(eps)[1]).all()
    assert math.isnan(H.envelope().gap(1.0))  # nobody knows how much is lost


def test_what_at_must_be():
    H = cs.calibration_function(CostMatrix([[0, 1.0], [2.0, 0]], rows="pred"))
    for bad in (-0.1, math.nan, math.inf):
        with pytest.raises(ValueError, match="at must be finite and non-negative"):
            H.envelope(bad)
    assert H.envelope(5.0)(5.0) == math.inf  # beyond the range
