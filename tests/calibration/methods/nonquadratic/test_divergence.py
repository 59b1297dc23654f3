"""Exact certificates of the log loss and of sparsemax, against a solver that lists vertices."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import consistruct as cs
from consistruct.calibration.proofs import from_json
from consistruct.certificates import exact
from consistruct.exceptions import CertificateError
from tests.calibration.rational_divergences import divergence_value

SETTINGS = [(s, d) for s in ("log", "sparsemax") for d in ("argmax", "bayes")]
SHARES = (1.0, 0.999, 0.5, 0.1, 1e-2, 1e-4, 1e-6)


def exact_rows(L):
    return tuple(tuple(Fraction(x) for x in row) for row in np.asarray(L, dtype=float).tolist())


def certified(L, surrogate, decoding, share):
    """(H, ε, certificate), the certificate checked after a way through JSON."""
    H = cs.calibration_function(
        cs.losses.CostMatrix(L, rows="pred"), surrogate=surrogate, decoding=decoding
    )
    eps = share * H.max_eps
    certificate: Any = H.certificate(eps)
    from_json(certificate.to_json()).check()
    return H, eps, certificate


def random_problem(rng, decoding):
    k = int(rng.integers(2, 4))
    m = k if decoding == "argmax" else int(rng.integers(2, 4))
    L = rng.integers(0, 4, (k, m)).astype(float)
    if rng.random() < 0.4:
        L = rng.random((k, m))
    return L * 10.0 ** float(rng.choice([0, 0, 12, -12]))


@pytest.mark.parametrize(("surrogate", "decoding"), SETTINGS)
def test_no_interval_excludes_the_true_value(surrogate, decoding):
    rng, checked = np.random.default_rng(21), 0
    for _ in range(15):
        L = random_problem(rng, decoding)
        H = cs.calibration_function(
            cs.losses.CostMatrix(L, rows="pred"), surrogate=surrogate, decoding=decoding
        )
        if H.max_eps == 0:
            continue
        eps = float(rng.choice(SHARES)) * H.max_eps
        (point,) = H.curve([eps])
        true_value = divergence_value(surrogate, decoding, exact_rows(L), Fraction(eps))
        assert Fraction(point.lower) <= true_value <= Fraction(point.upper)
        assert point.upper - point.lower <= 1e-5 * point.upper or point.upper < 1e-13
        H.certificate(eps).check()
        checked += 1
    assert checked > 8


@pytest.mark.parametrize(("surrogate", "decoding"), SETTINGS)
def test_more_labels_are_proved_at_every_size_of_eps(surrogate, decoding):
    rng = np.random.default_rng(22)
    L = rng.integers(0, 6, (6, 6)).astype(float)
    for share in SHARES:
        H, eps, found = certified(L, surrogate, decoding, share)
        lower, upper = H.interval(eps)
        assert (found.lower, found.upper) == (lower, upper)
        assert upper - lower <= 1e-6 * upper


def test_a_label_that_mixes_two_others_wins_in_ties_alone():
    """Label 0 is the mean of 1 and 2: it is predicted where both tie with it, a thin set."""
    L = [[0.5, 0.5, 1.0], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [0.6, 0.6, 0.0]]
    for surrogate in ("log", "sparsemax"):
        H, eps, found = certified(L, surrogate, "bayes", 0.4)
        loss = exact_rows(L)
        true_value = divergence_value(surrogate, "bayes", loss, Fraction(eps))
        assert Fraction(found.lower) <= true_value <= Fraction(found.upper)
        assert H(eps) == pytest.approx(float(true_value), rel=1e-6)


def test_labels_that_no_scores_predict_are_excluded_with_a_reason():
    """Label 1 repeats label 0, label 3 is worse than label 2 everywhere or equal."""
    L = [[0.0, 2.0, 1.0], [0.0, 2.0, 1.0], [1.0, 0.0, 2.0], [1.0, 3.0, 2.0]]
    _, _, found = certified(L, "log", "bayes", 0.5)
    assert {item["label"] for item in found.excluded} == {1, 3}
    document = json.loads(found.to_json())
    document["excluded"].append({"label": 2, "w": [[0, 1]]})
    with pytest.raises(CertificateError, match="label 2 may be predicted"):
        from_json(json.dumps(document)).check()


def test_zero_is_proved_up_to_the_consistency_level():
    L = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
    for surrogate in ("log", "sparsemax"):
        H = cs.calibration_function(cs.losses.CostMatrix(L, rows="pred"), surrogate=surrogate)
        assert H.consistency_level > 0
        found: Any = H.certificate(H.consistency_level)
        found.check()
        assert (found.lower, found.upper) == (0.0, 0.0)
        above: Any = H.certificate(1.01 * H.consistency_level)
        above.check()
        assert above.lower > 0


@pytest.mark.parametrize(("surrogate", "decoding"), SETTINGS)
def test_ends_that_claim_more_are_refused(surrogate, decoding):
    L = [[0.0, 1.0, 3.0], [2.0, 0.0, 1.0], [1.0, 2.0, 0.0]]
    _, _, found = certified(L, surrogate, decoding, 0.9)
    document = json.loads(found.to_json())
    for change in ({"lower": found.upper * 1.0001}, {"upper": found.lower * 0.9999}):
        with pytest.raises(CertificateError, match=r"bounded by|above upper"):
            from_json(json.dumps({**document, **change})).check()
    for change in ({"eps": found.eps * 1.01}, {"estimate": [0.0, 0.0, 0.0]}, {"pairs": [{}]}):
        with pytest.raises(CertificateError):
            from_json(json.dumps({**document, **change})).check()


def test_logarithms_are_rounded_outward():
    for x in (Fraction(3, 7), Fraction(10**40 + 1, 10**40), Fraction(2), Fraction(1, 10**30)):
        low, high = exact.log_down(x), exact.log_up(x)
        assert low < high < low + Fraction(1, 10**50) * (1 + abs(high))
        assert exact.exp_up(low) > x * (1 - Fraction(1, 10**50))
        assert exact.exp_up(high) >= x
    assert exact.log_up(Fraction(1)) == 0
    with pytest.raises(exact.Refused, match="too large"):
        exact.exp_up(Fraction(10**6))
