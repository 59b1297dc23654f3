"""Exact certificates of the logistic and of the square surrogate."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import consistruct as cs
from consistruct.calibration.proofs import from_json
from consistruct.calibration.proofs.smooth import BregmanCertificate
from consistruct.exceptions import CertificateError
from tests.calibration.rational_pairs import bregman_value

SHARES = (1.0, 0.9, 0.3, 1e-2, 1e-4)


def certified(L, surrogate, share):
    H = cs.calibration_function(cs.losses.CostMatrix(L, rows="pred"), surrogate=surrogate)
    eps = share * H.max_eps
    certificate = H.certificate(eps)
    assert isinstance(certificate, BregmanCertificate)
    from_json(certificate.to_json()).check()
    (point,) = H.curve([eps])
    return eps, certificate, point


def problems(seed, n, shape=None):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        size = shape or tuple(rng.integers(2, 5, 2).tolist())
        L = rng.integers(0, 5, size).astype(float) if rng.random() < 0.5 else rng.random(size)
        L *= 10.0 ** float(rng.choice([0, 0, 3, -3, 12, -12]))
        if max((row - other).max() for row in L for other in L) > 0:
            yield L, float(rng.choice(SHARES))


def test_the_logistic_on_two_labels_contains_the_true_value():
    for L, share in problems(1, 20, (2, 2)):
        eps, found, point = certified(L, "logistic", share)
        loss = tuple(tuple(Fraction(x) for x in row) for row in L.tolist())
        true_value = bregman_value("logistic", Fraction(found.largest), loss, Fraction(eps))
        assert Fraction(found.lower) <= true_value <= Fraction(found.upper)
        assert Fraction(point.lower) <= true_value / 2 <= Fraction(point.upper)


def test_the_square_agrees_with_the_rational_solver():
    for L, share in problems(2, 15, (3, 3)):
        eps, found, _ = certified(L, "square", share)
        loss = tuple(tuple(Fraction(x) for x in row) for row in L.tolist())
        true_value = bregman_value("square", Fraction(1), loss, Fraction(eps))
        assert Fraction(found.lower) <= true_value <= Fraction(found.upper)


@pytest.mark.parametrize("surrogate", ["logistic", "square"])
def test_other_sizes_are_proved(surrogate):
    for L, share in problems(3, 12):
        certified(L, surrogate, share)


@pytest.mark.parametrize("surrogate", ["logistic", "square"])
def test_what_claims_more_is_refused(surrogate):
    L = [[0.0, 1.0, 3.0], [2.0, 0.0, 1.0], [1.0, 2.0, 0.0]]
    _, good, _ = certified(L, surrogate, 0.8)
    with pytest.raises(CertificateError, match="is bounded by"):
        replace(good, lower=good.upper * 1.0001).check()
    with pytest.raises(CertificateError, match="above upper"):
        replace(good, upper=good.lower * 0.9999).check()
    entry: Any = good.pairs[0]
    for change, reason in (
        ({"points": [*entry["points"][:-1], 10.0]}, "above their mean|strictly between"),
        ({"labels": [entry["labels"][0]] * len(entry["labels"])}, "distinct"),
        ({"nu": -1.0}, "must not be negative"),
    ):
        with pytest.raises(CertificateError, match=reason):
            replace(good, pairs=[{**entry, **change}, *good.pairs[1:]]).check()


def test_losses_above_the_largest_are_refused():
    _, good, _ = certified([[0.0, 1.0], [2.0, 0.0]], "logistic", 0.5)
    document = json.loads(good.to_json())
    with pytest.raises(CertificateError, match="losses from 0 to largest"):
        from_json(json.dumps({**document, "largest": 1.5})).check()


def test_a_number_that_is_not_used_is_read_all_the_same():
    _, good, _ = certified([[0.0, 1.0], [2.0, 0.0]], "square", 0.5)
    with pytest.raises(CertificateError, match="largest must be a finite number"):
        from_json(json.dumps({**json.loads(good.to_json()), "largest": {}})).check()
