"""What "certified" must mean: each test is a case in which an earlier version broke the word."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import consistruct as cs
from consistruct.calibration.proofs.listed import ListedCertificate
from consistruct.exceptions import CertificateError
from consistruct.losses import CostMatrix, Hamming, Mixed, ZeroOne
from consistruct.structures import Blocks, Dense

pytestmark = pytest.mark.filterwarnings("ignore::consistruct.calibration.LabelOrderWarning")


def theorem_7(eps, diameter_squared):
    """ε²/(2 diam²), exactly."""
    return Fraction(eps) ** 2 / (2 * diameter_squared)


@pytest.mark.parametrize("eps", [4e-6, 4e-7, 4e-9, 1e-3, 1.0])
def test_upper_ends_are_not_below_theorem_7(eps):
    """L in the span of the scores, which are all of R³: diam² = 2k = 6."""
    L = np.array([[0, 3, 1], [0, 0, 1], [4, 1, 0]])
    H = cs.calibration_function(CostMatrix(L, rows="pred"), Dense(np.column_stack([np.ones(3), L])))
    (point,) = H.curve(eps)
    assert Fraction(point.upper) >= theorem_7(eps, 6)
    assert Fraction(point.lower) <= theorem_7(eps, 6)
    assert point.status == "certified"
    H.certificate(eps).check()


@pytest.mark.parametrize("eps", [1e-6, 1e-3, 0.3])
def test_the_zero_one_loss_of_two_labels(eps):
    for loss in (ZeroOne(2), CostMatrix(1 - np.eye(2))):
        lower, upper = cs.calibration_function(loss, "full").interval(eps)
        assert Fraction(lower) <= theorem_7(eps, 4) <= Fraction(upper)


def test_integer_losses_at_small_eps():
    """Full scores: diam² = 2k, and every loss attains Theorem 7 or more."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        k = int(rng.integers(2, 6))
        L = rng.integers(0, 5, (k, k))
        H = cs.calibration_function(CostMatrix(L, rows="pred"), "full")
        for eps in (1e-3, 1e-6):
            if eps <= H.max_eps:
                (point,) = H.curve(eps)
                assert Fraction(point.upper) >= theorem_7(eps, 2 * k)
                assert point.upper - point.lower <= 1e-12 * point.upper


def forged(loss, eps, distribution, level, pair, upper):
    return ListedCertificate(
        loss=loss, scores=None, measure=None, eps=eps, lower=0.0, upper=upper, pair=pair,
        distribution=distribution, level=level, theta=None, points={}, wins={}, excluded={},
    )  # fmt: skip


def test_no_tolerance_is_relative_to_the_costs():
    """H(1) = 1/12, but with 1e9 in the matrix a point that misses ε by 1 used to be good enough."""
    L = [[0, 1, 0], [1, 0, 0], [2, 2, 1e9]]
    H = cs.calibration_function(CostMatrix(L, rows="pred"), "full")
    assert H.interval(1.0) == (pytest.approx(1 / 12, rel=1e-15), pytest.approx(1 / 12, rel=1e-15))
    # under q = (½, ½, 0) labels 0 and 1 are alike: predicting either costs nothing
    with pytest.raises(CertificateError, match="not worse than 0 by eps"):
        forged(L, 1.0, [0.5, 0.5, 0.0], -0.5, (0, 1), 0.0).check()
    for c in range(3):
        with pytest.raises(CertificateError):
            forged(L, 1.0, [0.5, 0.5, 1e-9], -0.5, (0, c), 0.0).check()


@pytest.mark.parametrize("eps", [1e-6, 1e-8, 1e-12])
def test_small_eps_cannot_be_forged(eps):
    L = (1 - np.eye(3)).tolist()
    with pytest.raises(CertificateError, match="not worse"):
        forged(L, eps, [1, 1, 1], Fraction(-2, 3), (0, 1), 0.0).check()
    genuine: Any = cs.calibration_function(CostMatrix(L, rows="pred"), "full").certificate(eps)
    genuine.check()
    with pytest.raises(CertificateError, match="above the upper end"):
        replace(genuine, upper=genuine.upper * (1 - 1e-9), lower=0.0).check()


@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_loose_where_pieces_exist(seed):
    """At ε = 1e-5·max values were loose by 17 to 56 %, while the pieces had them."""
    rng = np.random.default_rng(seed)
    k, m = int(rng.integers(3, 6)), int(rng.integers(3, 6))
    L = rng.random((k, m)) * 10.0 ** rng.integers(-6, 7)
    scores = [None, "full", rng.standard_normal((k, 2))][seed % 3]
    H = cs.calibration_function(CostMatrix(L, rows="pred"), scores)
    pieces = H.pieces
    for share in (1e-9, 1e-5, 1e-2, 0.5, 1.0):
        eps = share * H.max_eps
        (point,) = H.curve(eps)
        assert point.status == "certified"
        piece = next(piece for piece in pieces if eps <= piece.high)
        terms = abs(piece.a) * eps**2 + abs(piece.b) * eps + abs(piece.c)
        assert piece(eps) == pytest.approx(point.upper, rel=1e-12, abs=1e-14 * terms)


def test_closed_forms_are_rounded_once():
    """(ε − η/2)² near η/2: expanded, it has no digit left."""
    H = cs.calibration_function(Mixed((2, 2, 2), 0.2), Blocks((2, 2, 2)))
    eta = Fraction(0.2)
    for eps in (np.nextafter(0.1, 1), 0.1 + 1e-9, 0.11, 0.7):
        x = Fraction(eps) - eta / 2
        exact = x**2 / 12 * (eta / 2 + 1 - eta) ** 2 / (1 - eta / 2) ** 2
        lower, upper = H.interval(eps)
        assert Fraction(lower) <= exact <= Fraction(upper)
        assert upper <= lower * (1 + 1e-15)
        certificate: Any = H.certificate(eps)
        certificate.check()
        assert Fraction(certificate.lower) * certificate.scale <= exact
        assert exact <= Fraction(certificate.upper) * certificate.scale


def test_the_factor_1_over_k_is_rounded_outward():
    for k in (3, 7, 10, 49, 2**70 + 1):
        lower, upper = cs.calibration_function(ZeroOne(k)).interval(0.3)
        assert Fraction(lower) <= Fraction(0.3) ** 2 / (4 * k) <= Fraction(upper)


@pytest.mark.parametrize(
    ("T", "eps", "d"), [(5, 0.8, 4), (10, 0.3, 3), (30, 0.8, 24), (3, 2 / 3, 2)]
)
def test_eps_is_snapped_to_whole_parts(T, eps, d):
    """H jumps there, and the float 0.8 is above 4/5."""
    H = cs.calibration_function(Hamming(T), "full")
    certificate: Any = H.certificate(eps)
    certificate.check()
    assert Fraction(certificate.eps) == Fraction(d, T)
    assert min(certificate.x) == d
    assert H.interval(eps)[1] < H.interval(eps + 1e-9)[0]
