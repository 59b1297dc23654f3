"""The float filter of `check` proves nothing where its error bounds do not hold."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import consistruct as cs
from consistruct import certificates
from consistruct.calibration.proofs import from_json
from consistruct.calibration.proofs.listed import ListedCertificate
from consistruct.exceptions import CertificateError


def certificate_of_zero_one(k, eps, measure=None):
    """The exact H(ε) = ε²·μ/4 of the 0-1 loss under equal weights μ, attained by one pair."""
    mu = Fraction(1, k) if measure is None else measure
    value = eps**2 * mu / 4
    base = cs.calibration_function(cs.losses.CostMatrix(1.0 - np.eye(k)), "full").certificate(0.5)
    assert isinstance(base, ListedCertificate)
    return replace(
        base,
        eps=eps,
        lower=value,
        upper=value,
        pair=(0, 1),
        distribution=[(1 + eps) / 2, (1 - eps) / 2, *[0] * (k - 2)],
        level=Fraction(-1, 2),
        measure=None if measure is None else [measure] * k,
        points={},
    )


@pytest.mark.parametrize(
    ("k", "eps", "measure"),
    [
        (64, Fraction(1, 2**532), None),
        (16, Fraction(1, 2**540), Fraction(2**1074 * 5, 7)),
    ],
)
def test_subnormal_numbers_prove_no_false_lower_end(k, eps, measure):
    true = certificate_of_zero_one(k, eps, measure)
    from_json(true.to_json()).check()
    for share in (Fraction(101, 100), Fraction(112, 100), Fraction(139, 100)):
        false = replace(true, lower=true.lower * share, upper=true.upper * 2)
        with pytest.raises(CertificateError, match="is bounded below by"):
            false.check()


def test_ends_in_the_wrong_order_are_refused():
    true = certificate_of_zero_one(16, Fraction(1, 2**540), Fraction(2**1074 * 5, 7))
    with pytest.raises(CertificateError):
        replace(true, lower=true.upper * Fraction(139, 100)).check()


def test_a_checker_that_lets_crossed_ends_pass_is_not_believed(monkeypatch):
    crossed = replace(certificate_of_zero_one(16, Fraction(1, 2)), lower=1, upper=Fraction(1, 2))
    monkeypatch.setattr(certificates.listed, "verify", lambda document, screen: None)
    with pytest.raises(CertificateError, match="lower end is above its upper end"):
        crossed.check()
