"""Envelopes in logarithms, and where nothing but Theorem 7 is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

import consistruct as cs
from consistruct.losses import Hamming, Mixed, Ordinal


@pytest.mark.parametrize(
    ("loss", "scores"), [(Mixed((2, 3), 0.2), None), (Hamming(6), "full"), (Ordinal(5), None)]
)
def test_logarithms_agree_with_values(loss, scores):
    H = cs.calibration_function(loss, scores)
    envelope = H.envelope(21)
    eps = np.linspace(0.05, 1.0, 7) * H.max_eps
    np.testing.assert_allclose(np.exp(envelope.log(eps)), envelope(eps), rtol=1e-12)
    assert (envelope(eps) <= H(eps)).all()
    assert envelope.log(0.0) == -math.inf
    assert envelope.log(2 * H.max_eps) == math.inf
    for value in eps.tolist():
        delta = envelope(value)
        assert envelope.inverse(delta) == pytest.approx(envelope.inverse_log(math.log(delta)))


def test_logarithms_stay_finite_where_values_underflow():
    envelope = cs.calibration_function(Hamming(1200), "full").envelope(11)
    assert envelope(0.5) == 0.0  # below all floats
    log = envelope.log(0.5)
    assert -850 < log < -800
    assert envelope.inverse_log(log) == pytest.approx(0.5)


def test_where_only_theorem_7_is_known_the_envelope_is_that_of_the_theorem():
    T = 20
    H = cs.calibration_function(3 * Hamming(T))
    assert H.method == "oracle cutting planes"  # its lower ends are those of Theorem 7
    eps = np.array([0.1, 1.0, 3.0])
    np.testing.assert_allclose(H.envelope()(eps), eps**2 / (8 * T), rtol=1e-7)
    assert (H.envelope()(eps) <= H(eps)).all()
