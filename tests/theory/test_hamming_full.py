"""Hamming loss with full scores: a scalar formula per number of differing parts.

For two states, k·H(ε) is half the minimum over d ≥ εT and 0 ≤ x ≤ ε of
(ε−x)² + Σ_{m,n} C(d,m) C(T−d,n) (x − mε/d − n/T)₊².
"""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from consistruct import calibration_function
from consistruct.calibration.proofs.hamming import HammingCertificate
from consistruct.losses import Hamming
from consistruct.structures import Full
from paper.numerics import certified
from tests.calibration.reference import definition_value


def naive(T, eps):
    """k·H for two states: every term of the formula, a scalar search over x."""
    best = math.inf
    for d in range(max(1, math.ceil(eps * T - 1e-12)), T + 1):
        terms = [
            (math.comb(d, m) * math.comb(T - d, n), m * eps / d + n / T)
            for m in range(d + 1)
            for n in range(T - d + 1)
            if (m, n) != (d, 0)
        ]
        count = np.array([number for number, _ in terms], dtype=np.float64)
        r = np.array([worse for _, worse in terms])

        def value(x, count=count, r=r):
            return (eps - x) ** 2 + float(count @ np.maximum(x - r, 0.0) ** 2)

        found = minimize_scalar(
            value, bounds=(0.0, eps), method="bounded", options={"xatol": 1e-12}
        )
        best = min(best, 0.5 * found.fun)
    return best


@pytest.mark.parametrize(("T", "s"), [(1, 2), (2, 2), (3, 2), (4, 2), (1, 3), (2, 3)])
def test_against_quadratic_programs_over_all_labels(T, s):
    curve = calibration_function(Hamming(T, s), "full")
    for eps in (0.1, 0.34, 0.5, 0.8, 1.0):
        low, high = curve.interval(eps)
        numeric = certified(curve.loss, curve.scores, eps, symmetric=True)
        assert low == pytest.approx(numeric[1], rel=1e-8)
        assert high == pytest.approx(numeric[0], rel=1e-8)
        curve.certificate(eps).check()


def test_third_states_against_quadratic_programs():
    curve = calibration_function(Hamming(3, 3), "full")
    for eps in (0.3, 0.7, 1.0):
        numeric = certified(curve.loss, curve.scores, eps, symmetric=True)
        assert curve(eps) == pytest.approx(numeric[1], rel=1e-8)


def test_against_the_definition():
    loss = Hamming(2)
    value = definition_value(loss.matrix(), np.eye(4), np.full(4, 0.25), 0.8)
    assert calibration_function(loss, "full")(0.8) == pytest.approx(value, rel=1e-7)


@pytest.mark.parametrize(("eps", "expected"), [(0.5, 1.58182), (0.75, 1.68283)])
def test_twenty_parts(eps, expected):
    curve = calibration_function(Hamming(20), "full")
    ratio = math.exp(curve.log(eps) + 20 * math.log(2)) / (eps**2 / 4)
    assert ratio == pytest.approx(expected, abs=5e-6)
    assert ratio == pytest.approx(naive(20, eps) / (eps**2 / 4), rel=1e-9)


@pytest.mark.parametrize("T", [3, 7, 12])
def test_against_the_naive_sum(T):
    curve = calibration_function(Hamming(T), "full")
    for eps in np.linspace(0.05, 1.0, 14):
        assert curve(eps) * 2**T == pytest.approx(naive(T, eps), rel=1e-9)


def test_equals_theorem_7_up_to_two_parts_and_then_jumps():
    T = 10
    curve = calibration_function(Hamming(T), "full")

    def ratio(eps):
        return curve(eps) * 2**T / (eps**2 / 4)

    for eps in (0.01, 0.1, 0.2):
        assert ratio(eps) == pytest.approx(1.0, rel=1e-9)
    # at ε = m/T the pairs that differ in m parts drop out: H is discontinuous there
    assert ratio(0.3 + 1e-9) > ratio(0.3) * 1.01


def test_a_thousand_parts_have_finite_logarithms():
    curve = calibration_function(Hamming(1000), "full")
    grid = np.linspace(0.0, 1.0, 101)[1:]
    start = time.perf_counter()
    logs = curve.log(grid)
    assert time.perf_counter() - start < 10  # seconds; two on an idle machine
    assert np.isfinite(logs).all()
    assert (np.diff(logs) > 0).all()
    # between Theorem 7 and Theorem 8
    theorem_7 = 2 * np.log(grid) - math.log(4) - 1000 * math.log(2)
    assert (logs >= theorem_7 - 1e-9).all()
    assert (logs <= theorem_7 + math.log(2) + 1e-9).all()


def test_certificates_cover_every_orbit_of_pairs():
    curve = calibration_function(Hamming(60), "full")
    certificate = curve.certificate(0.5)
    certificate.check()
    assert isinstance(certificate, HammingCertificate)
    assert len(certificate.x) == 31
    curve = calibration_function(Hamming(12, 4), Full(Hamming(12, 4)))
    curve.certificate(0.4).check()
