"""Closed forms beside their formulas: pieces, certificates, sizes beyond listing, more states.

That the formulas are H is checked by the audit (`make paper`).
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from consistruct import calibration_function
from consistruct.losses import Block, Hamming, Mixed, ZeroOne
from consistruct.structures import Blocks
from paper.claims import mixed
from paper.numerics import certified

CASES = [
    *((ZeroOne(k), None) for k in (2, 3, 7)),
    *((Block(sizes), "full") for sizes in ((2, 2), (3, 5), (4, 2, 3), (1, 4))),
    *((Block(sizes), None) for sizes in ((3, 3), (2, 2, 2), (3, 5), (4, 2, 3), (1, 5), (1, 1, 6))),
    *((Hamming(T, s), None) for T, s in ((1, 2), (2, 2), (4, 2), (1, 4), (2, 3), (3, 3))),
    *(
        (Mixed((s,) * b, eta), "full")
        for b, s, eta in ((2, 2, 0.1), (3, 2, 0.3), (2, 3, 0.45), (2, 3, 0.6))
    ),
    *(
        (Mixed((s,) * b, eta), Blocks((s,) * b))
        for b, s in ((2, 2), (3, 2), (2, 4))
        for eta in (0.0, 0.1, 0.4, 0.7, 0.95)
    ),
]


@pytest.mark.parametrize(("loss", "scores"), CASES, ids=str)
def test_pieces_and_certificates_are_those_of_the_curve(loss, scores):
    curve = calibration_function(loss, scores)
    assert curve.method == "closed form"
    for eps in (0.04, 0.1, 0.3, 0.6, 0.77, 1.0):
        piece = next(p for p in curve.pieces if p.low < eps <= p.high)
        assert piece(eps) == pytest.approx(curve(eps), rel=1e-12, abs=1e-20)
    assert curve.max_eps == 1.0
    assert np.isinf(curve(1.01))
    curve.certificate(0.7).check()


@pytest.mark.parametrize(
    ("loss", "k_eff"),
    [
        (ZeroOne(7), 7),
        (Block((7,) * 2), 2),
        (Block((7,) * 5), 5),
        (Hamming(3), 6),
        (Hamming(2, 3), 6),
    ],
    ids=str,
)
def test_effective_classes_are_exact(loss, k_eff):
    curve = calibration_function(loss)
    assert curve.effective_classes == k_eff
    assert curve(0.5) == pytest.approx(0.25 / (4 * k_eff), rel=1e-12)
    assert (curve.consistency_level, curve.approximation_error) == (0.0, 0.0)


def test_one_block_has_no_excess_risk():
    assert calibration_function(Block((4,)), "full").max_eps == 0.0


@pytest.mark.parametrize(("T", "s"), [(1, 4), (2, 3), (3, 3)])
def test_hamming_with_more_than_two_states(T, s):
    """ε²/4sT; the paper has two states."""
    curve = calibration_function(Hamming(T, s))
    for eps in (0.25, 0.7, 1.0):
        for end in (*curve.interval(eps), *certified(curve.loss, curve.scores, eps)):
            assert end == pytest.approx(eps**2 / (4 * s * T), rel=1e-8)


def test_a_thousand_parts():
    assert calibration_function(Hamming(1000))(0.5) == pytest.approx(0.25 / 8000, rel=1e-12)


@pytest.mark.parametrize(("scores", "eta"), [("full", 0.1), ("full", 0.4), ("blocks", 0.3)])
@pytest.mark.parametrize("sizes", [(2, 3), (1, 2, 4)])
def test_unequal_blocks_by_orbits_against_all_labels(sizes, scores, eta):
    curve = calibration_function(Mixed(sizes, eta), "full" if scores == "full" else Blocks(sizes))
    assert curve.method == "symmetric reduction"
    for eps in (0.15, 0.3, 0.5, 0.7, 0.9, 1.0):
        if eps <= curve.consistency_level:
            continue
        low, high = curve.interval(eps)
        expected = certified(curve.loss, curve.scores, eps)[1]
        assert low <= expected * (1 + 1e-8)
        assert high >= expected * (1 - 1e-8)
        assert high - low <= 1e-6 * high
        curve.certificate(eps).check()


@pytest.mark.parametrize("eta", [0.1, 0.4])
@pytest.mark.parametrize("sizes", [(2, 3), (1, 2, 4)])
def test_pieces_of_unequal_blocks(sizes, eta):
    curve = calibration_function(Mixed(sizes, eta), "full")
    pieces = curve.pieces
    for eps in np.linspace(0.013, 1.0, 17):
        piece = next(p for p in pieces if p.low < eps <= p.high)
        low, high = curve.interval(eps)
        assert low * (1 - 1e-6) <= piece(eps) <= high * (1 + 1e-6)


@pytest.mark.parametrize(("b", "s"), [(200, 2), (3, 2**250)])
def test_many_and_huge_blocks_are_certified_by_orbits(b, s):
    curve = calibration_function(Mixed((s,) * b, 0.2), Blocks((s,) * b))
    assert curve(0.5) == pytest.approx(mixed.printed_blocks(0.5, b, s, 0.2), rel=1e-12)
    assert curve.approximation_error == 0.2
    certificate = curve.certificate(0.5)
    certificate.check()
    assert certificate.pair == (0, s)
    value = float(certificate.upper) * math.exp(certificate.log_scale)
    assert value == pytest.approx(curve(0.5), rel=1e-8)
