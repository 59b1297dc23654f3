"""Pieces, envelope, inverse and the edges of the curve object."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from consistruct import calibration_function
from consistruct.exceptions import ConsistructError, FamilyError
from consistruct.losses import (
    Block,
    CostMatrix,
    CostVectors,
    Hamming,
    Kendall,
    Mixed,
    Ordinal,
    PrecisionAt,
    ZeroOne,
)
from consistruct.structures import Blocks, Chain, Dense
from tests.calibration.reference import random_problem

pytestmark = pytest.mark.filterwarnings("ignore::consistruct.calibration.LabelOrderWarning")

RNG = np.random.default_rng(2)
CASES = {
    "explicit": (CostMatrix(RNG.random((5, 4)), rows="pred"), "full"),
    "inconsistent": (CostMatrix(RNG.random((5, 4)), rows="pred"), RNG.standard_normal((5, 2))),
    "ordinal": (Ordinal(5, power=2), None),
    "mixed": (Mixed((2, 3), 0.2), "full"),
    "mixed blocks": (Mixed((2, 2, 2), 0.3), Blocks((2, 2, 2))),
    "hamming full": (Hamming(5), "full"),
    "oracle": (PrecisionAt(13, 3), None),
    "zero-one": (ZeroOne(4), None),
    "one true label": (CostMatrix([[0.0], [1.0], [0.5]], rows="pred"), "full"),
}
WITH_PIECES = [name for name in CASES if name not in ("hamming full", "oracle")]


def value_of(pieces, eps):
    return next(piece(eps) for piece in pieces if piece.low < eps <= piece.high)


@pytest.mark.parametrize("name", WITH_PIECES)
def test_pieces_equal_pointwise_values(name):
    curve = calibration_function(*CASES[name])
    pieces = curve.pieces
    assert pieces[0].low == 0.0
    assert pieces[-1].high == pytest.approx(curve.max_eps, rel=1e-12)
    for before, after in pairwise(pieces):
        assert before.high == after.low
    edges = np.array([piece.high for piece in pieces])
    for eps in np.linspace(0.01, 0.999, 23) * curve.max_eps:
        if np.abs(edges - eps).min() < 1e-5 * curve.max_eps:
            continue  # a jump is located to six digits
        low, high = curve.interval(eps)
        value = value_of(pieces, eps)
        assert low * (1 - 1e-6) - 1e-12 <= value <= high * (1 + 1e-6) + 1e-12


@pytest.mark.parametrize("seed", range(12))
def test_pieces_of_random_problems(seed):
    L, F, mu = random_problem(seed + 900)
    curve = calibration_function(CostMatrix(L, rows="pred"), Dense(F, reference=mu))
    if curve.max_eps == 0:
        assert curve.pieces == ()
        return
    pieces = curve.pieces
    edges = np.array([piece.high for piece in pieces])
    for eps in np.array([0.07, 0.31, 0.52, 0.83, 0.97]) * curve.max_eps:
        if np.abs(edges - eps).min() < 1e-5 * curve.max_eps:
            continue
        low, high = curve.interval(eps)
        value = value_of(pieces, eps)
        assert low * (1 - 1e-6) - 1e-11 <= value <= high * (1 + 1e-6) + 1e-11


def test_pieces_are_refused_where_the_curve_is_not_resolved():
    with pytest.raises(ConsistructError, match="does not resolve the whole curve"):
        calibration_function(Hamming(5), "full").pieces  # noqa: B018
    with pytest.raises(ConsistructError, match="underflow"):
        calibration_function(ZeroOne(2**1200)).pieces  # noqa: B018


@pytest.mark.parametrize("name", CASES)
def test_envelope_is_convex_non_decreasing_and_below(name):
    curve = calibration_function(*CASES[name])
    envelope = curve.envelope(eps=np.linspace(0.0, curve.max_eps, 41 if name != "oracle" else 5))
    grid = np.linspace(0.0, curve.max_eps, 61)
    values = envelope(grid)
    assert (np.diff(values) >= -1e-15).all()
    assert (np.diff(values, 2) >= -1e-12 * values.max()).all()
    n = 60 if name != "oracle" else 4
    check = np.linspace(0.0, curve.max_eps, n + 1)
    assert (envelope(check) <= curve.interval(check)[1] * (1 + 1e-9) + 1e-18).all()
    assert envelope(curve.max_eps * 1.001) == math.inf
    assert envelope(0.0) == 0.0
    # it is not trivial: at the end of the range it reaches a good part of H
    if curve.consistency_level < 0.5 * curve.max_eps:
        assert envelope(curve.max_eps) >= 0.5 * curve(curve.max_eps * (1 - 1e-9)) - 1e-12


@pytest.mark.parametrize("name", ["inconsistent", "mixed blocks", "zero-one", "one true label"])
def test_inverse_is_the_inverse_of_the_envelope(name):
    curve = calibration_function(*CASES[name])
    top = curve.envelope()(curve.max_eps)
    for share in (0.05, 0.3, 0.8):
        delta = share * top
        eps = curve.inverse(delta)
        envelope = curve.envelope(eps)
        assert envelope(eps) <= delta * 1.01
        assert envelope(min(eps * 1.01, curve.max_eps)) >= delta
    assert curve.inverse(top * 10) == curve.max_eps
    assert curve.inverse(math.inf) == curve.max_eps
    assert curve.inverse(0.0) >= curve.consistency_level * (1 - 1e-9)
    for bad in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="delta must be non-negative"):
            curve.inverse(bad)


def test_inverse_survives_underflow():
    curve = calibration_function(ZeroOne(2**1200))
    # δ = H(½) in logarithms is far below all floats: the smallest positive one allows everything
    assert curve.inverse(5e-324) == 1.0
    assert curve.inverse(0.0) == 0.0
    assert math.isfinite(curve.log(0.5))
    assert curve(0.5) == 0.0


def test_envelope_where_only_bounds_are_known():
    loss = Kendall(16)  # its decoder is a heuristic beyond 14 items, which proves nothing
    curve = calibration_function(loss)
    if curve.method != "bounds":
        pytest.fail(f"this loss is meant to have bounds only, now it has {curve.method}")
    low, high = curve.interval(0.5)
    assert high == math.inf
    assert curve.curve(0.5)[0].status == "bounds"
    assert curve.envelope()(0.5) <= low * (1 + 1e-9)
    assert curve.envelope()(0.5) == pytest.approx(low, rel=1e-6)  # Theorem 7 is convex
    assert curve.plot().get_lines()
    with pytest.raises(ConsistructError, match="only the bound of Theorem 7"):
        curve.certificate(0.5)


# --- edges ---


@pytest.mark.parametrize(
    ("loss", "scores"),
    [
        (ZeroOne(1), None),
        (ZeroOne(1), "full"),
        (CostMatrix([[0.3, 0.7]], rows="pred"), None),
        (CostMatrix(np.zeros((3, 2)), rows="pred"), None),
        (CostMatrix(np.zeros((3, 2)), rows="pred"), "full"),
        (Block((3,)), None),
        (Block((3,)), "full"),
        (ZeroOne(3), np.ones((3, 1))),  # only the first label can win
        (CostMatrix([[0.2, 0.5], [0.2, 0.5]], rows="pred"), "full"),
    ],
    ids=repr,
)
def test_nothing_to_lose(loss, scores):
    curve = calibration_function(loss, scores)
    assert curve.max_eps == 0.0
    assert curve(0.0) == 0.0
    assert curve.interval(0.1) == (math.inf, math.inf)
    assert curve.curve(0.1)[0].status == "infeasible"
    assert curve.log(0.1) == math.inf
    assert curve.log(0.0) == -math.inf
    assert curve.pieces == ()
    assert curve.consistency_level == 0.0
    assert curve.envelope()(0.0) == 0.0
    assert curve.inverse(1.0) == 0.0
    with pytest.raises(ValueError, match="eps must be in"):
        curve.certificate(0.1)


@pytest.mark.parametrize("name", CASES)
def test_ends_of_the_range(name):
    curve = calibration_function(*CASES[name])
    low, high = curve.interval(curve.max_eps)
    assert 0 < low <= high < math.inf
    assert curve.curve(curve.max_eps)[0].status in ("exact", "certified")
    assert curve.interval(np.nextafter(curve.max_eps, math.inf)) == (math.inf, math.inf)
    assert curve.interval(0) == (0.0, 0.0)


def test_scalars_and_arrays():
    curve = calibration_function(CostMatrix([[0, 1.0], [2.0, 0]], rows="pred"))
    assert isinstance(curve(0.5), float)
    assert isinstance(curve.log(0.5), float)
    low, high = curve.interval(0.5)
    assert isinstance(low, float)
    assert isinstance(high, float)
    grid = np.array([[0.0, 0.5], [1.0, 5.0]])
    values = curve(grid)
    assert values.shape == (2, 2)
    assert values[0, 1] == curve(0.5)
    assert values[1, 1] == math.inf
    assert curve.log(grid).shape == (2, 2)
    assert [part.shape for part in curve.interval(grid)] == [(2, 2), (2, 2)]
    assert curve([0.5, 1.0]).shape == (2,)
    assert curve([]).shape == (0,)
    assert [point.eps for point in curve.curve([1.0, 0.5, 1.0])] == [1.0, 0.5, 1.0]


@pytest.mark.parametrize("eps", [-0.1, float("nan"), float("inf"), [0.1, -1.0]])
def test_refuses_bad_eps(eps):
    curve = calibration_function(ZeroOne(3))
    for evaluate in (curve, curve.interval, curve.log):
        with pytest.raises(ValueError, match="eps must be finite and non-negative"):
            evaluate(eps)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((Hamming(None),), FamilyError, r"family of sizes.*\.at\(10\)"),
        ((Hamming(4), Chain(None, 2)), FamilyError, r"family of sizes.*\.at\(10\)"),
        ((CostVectors(4),), ConsistructError, "infinitely many; list those that occur"),
        ((np.eye(3),), TypeError, "wrap a matrix in losses.CostMatrix"),
        ((ZeroOne(3), "chains"), ValueError, "scores must be None, 'full', a score space"),
        ((ZeroOne(3), np.eye(4)), ValueError, "one row per label"),
        ((ZeroOne(3), Blocks((2, 2))), ValueError, "scores are over 4 predictions"),
        ((ZeroOne(3), None, "huber"), ValueError, "surrogate must be"),
        ((ZeroOne(3), None, "quadratic", "bayes"), ValueError, "decoding must be 'argmax'"),
    ],
)
def test_refuses_bad_arguments_in_one_line(arguments, error, message):
    with pytest.raises(error, match=message) as raised:
        calibration_function(*arguments)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("jobs", [0, -1, 1.5, True])
def test_refuses_bad_jobs(jobs):
    with pytest.raises(ValueError, match="jobs must be a positive integer"):
        calibration_function(ZeroOne(3), jobs=jobs)


def test_blocks_of_two_to_the_250_with_full_scores():
    sizes = (2**250, 3, 2**250)
    curve = calibration_function(Mixed(sizes, 0.2), "full")
    assert curve.loss.n_labels == 2**251 + 3
    for eps in (0.1, 0.6, 1.0):
        (point,) = curve.curve(eps)
        assert point.status == "certified"
        # between ε²/4k and twice as much
        ratio = math.exp(point.log_upper + math.log(2**251 + 3)) / (eps**2 / 4)
        assert 1 - 1e-9 <= ratio <= 2
        curve.certificate(eps).check()


def test_two_orders_of_the_same_blocks_agree():
    one = calibration_function(Mixed((2, 4), 0.2), "full")
    other = calibration_function(Mixed((4, 2), 0.2), "full")
    assert one(0.7) == pytest.approx(other(0.7), rel=1e-6)


def test_weighted_measure_changes_h_as_it_should():
    # two labels, full scores: H = ε²/(2(1/μ_1 + 1/μ_2))
    loss = CostMatrix([[0.0, 1.0], [1.0, 0.0]])
    curve = calibration_function(loss, Dense(np.eye(2), reference=[0.2, 0.8]))
    assert curve.measure != "uniform"
    assert curve(0.5) == pytest.approx(0.25 / (2 * (5 + 1.25)), rel=1e-6)
    assert curve.effective_classes == pytest.approx((5 + 1.25) / 2)


def test_effective_classes_are_none_where_the_scores_do_not_express_the_loss():
    assert calibration_function(*CASES["inconsistent"]).effective_classes is None
    k_eff = calibration_function(*CASES["ordinal"]).effective_classes
    assert k_eff is not None
    assert k_eff.exact


def test_what_answered_is_on_record():
    curve = calibration_function(CostMatrix([[0, 1.0], [2.0, 0]], rows="pred"))
    assert curve.refusals[0].startswith("closed form: no closed form is known")
    assert "CostMatrix" in repr(curve)
    assert curve.curve(0.5)[0].method == curve.method
