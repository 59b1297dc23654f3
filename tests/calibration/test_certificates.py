"""Certificates prove what they claim: tampered ones are rejected, whatever was touched."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from consistruct import calibration_function
from consistruct.calibration.proofs import (
    CurveCertificate,
    ExplicitCertificate,
    HammingCertificate,
    OracleCertificate,
    OrbitCertificate,
    ProblemCertificate,
)
from consistruct.exceptions import CertificateError
from consistruct.losses import CostMatrix, Hamming, Mixed
from consistruct.scores import Blocks, Chain, Dense

RNG = np.random.default_rng(0)
F = np.column_stack([np.ones(5), RNG.standard_normal((5, 3))])
COSTS = RNG.random((5, 4))

CURVES = {
    ExplicitCertificate: lambda: calibration_function(CostMatrix(COSTS), Dense(F)),
    ProblemCertificate: lambda: calibration_function(Mixed((2, 3, 4), 0.2), Blocks((2, 3, 4))),
    OrbitCertificate: lambda: calibration_function(Mixed((2, 3, 4), 0.2), "full"),
    HammingCertificate: lambda: calibration_function(Hamming(6), "full"),
    OracleCertificate: lambda: calibration_function(Hamming(7, 3), Chain(7, 3)),
    CurveCertificate: lambda: calibration_function(
        CostMatrix(np.random.default_rng(1).random((20, 20))), "full"
    ),
}
SHARE = 0.8
pytestmark = pytest.mark.filterwarnings("ignore::consistruct.calibration.LabelOrderWarning")


@pytest.fixture(scope="module")
def certificates():
    made = {}
    for cls, make in CURVES.items():
        curve = make()
        made[cls] = curve.certificate(SHARE * curve.max_eps)
    return made


@pytest.mark.parametrize("cls", CURVES, ids=lambda cls: cls.__name__)
def test_genuine_certificates_pass(certificates, cls):
    certificate = certificates[cls]
    assert type(certificate) is cls
    certificate.check()
    assert 0 < certificate.lower <= certificate.upper
    i, j = certificate.pair
    assert i != j


def curve_of(certificate, **changes):
    return replace(certificate, curve=replace(certificate.curve, **changes))


@pytest.mark.parametrize("cls", [c for c in CURVES if c is not CurveCertificate])
def test_better_bounds_than_proved_are_rejected(certificates, cls):
    certificate = certificates[cls]
    with pytest.raises(CertificateError, match="lower bound"):
        replace(certificate, lower=certificate.lower * 1.001).check()
    with pytest.raises(CertificateError, match="upper bound"):
        replace(certificate, upper=certificate.upper * 0.999).check()
    with pytest.raises(CertificateError):
        replace(certificate, lower=float("nan")).check()


def test_better_bounds_of_the_fast_route_are_rejected(certificates):
    certificate = certificates[CurveCertificate]
    with pytest.raises(CertificateError):
        curve_of(certificate, scaled_lower=certificate.curve.scaled_lower * 1.001).check()
    with pytest.raises(CertificateError):
        curve_of(certificate, scaled_upper=certificate.curve.scaled_upper * 0.999).check()
    with pytest.raises(CertificateError):
        curve_of(certificate, laws=certificate.curve.laws[:, ::-1].copy()).check()


def moved(law):
    """Another law: its mass shifted by one place."""
    return np.roll(np.asarray(law), 1)


@pytest.mark.parametrize(
    ("cls", "field"),
    [
        (ExplicitCertificate, "law"),
        (ExplicitCertificate, "scores"),
        (ProblemCertificate, "law"),
        (ProblemCertificate, "theta"),
        (OrbitCertificate, "law"),
        (OrbitCertificate, "scores"),
        (OrbitCertificate, "excess"),
        (HammingCertificate, "law"),
    ],
)
def test_other_primal_points_are_rejected(certificates, cls, field):
    certificate = certificates[cls]
    value = getattr(certificate, field)
    with pytest.raises(CertificateError):
        replace(certificate, **{field: moved(value)}).check()
    unnormalised = np.asarray(value) * 1.01
    with pytest.raises(CertificateError):
        replace(certificate, **{field: unnormalised}).check()


def test_other_primal_points_of_oracles_are_rejected(certificates):
    certificate = certificates[OracleCertificate]
    solution = certificate.solution
    with pytest.raises(CertificateError):
        replace(certificate, solution=replace(solution, law=moved(solution.law))).check()
    theta = solution.theta.copy()
    theta[0] += 0.3
    with pytest.raises(CertificateError):
        replace(certificate, solution=replace(solution, theta=theta)).check()


@pytest.mark.parametrize("cls", [ExplicitCertificate, ProblemCertificate])
def test_negative_multipliers_are_rejected(certificates, cls):
    certificate = certificates[cls]
    changed = {
        pair: [(-w - 1e-3, nu) for w, nu in points]
        for pair, points in certificate.multipliers.items()
    }
    with pytest.raises(CertificateError, match="negative"):
        replace(certificate, multipliers=changed).check()


@pytest.mark.parametrize("keep", [False, True], ids=["left out", "another slope"])
def test_other_multipliers_are_rejected(keep):
    # Theorem 7 does not settle squared distances in the middle of the range: 3.2 against 3.94
    matrix = (np.arange(5)[:, None] - np.arange(5)) ** 2.0
    certificate = calibration_function(CostMatrix(matrix), "full").certificate(8.0)
    assert isinstance(certificate, ExplicitCertificate)
    assert certificate.lower > 1.2 * 8.0**2 / (4 * 5)
    changed = {
        pair: [(w, nu * 1.7) for w, nu in points]
        for pair, points in certificate.multipliers.items()
    }
    with pytest.raises(CertificateError, match="not proved"):
        replace(certificate, multipliers=changed if keep else {}).check()


def test_other_multipliers_of_orbits_are_rejected(certificates):
    certificate = certificates[OrbitCertificate]
    negative = tuple((-w - 1.0, nu) for w, nu in certificate.multipliers)
    with pytest.raises(CertificateError, match="negative"):
        replace(certificate, multipliers=negative).check()
    useless = tuple((np.zeros_like(w), nu) for w, nu in certificate.multipliers)
    with pytest.raises(CertificateError, match="not proved"):
        replace(certificate, multipliers=useless).check()


def test_hamming_orbits_cannot_be_left_out(certificates):
    certificate = certificates[HammingCertificate]
    with pytest.raises(CertificateError, match="no bound is given for pairs that differ in 5"):
        replace(certificate, x=certificate.x[1:]).check()
    with pytest.raises(CertificateError):
        replace(certificate, x=tuple(0.9 * x for x in certificate.x)).check()


@pytest.mark.parametrize("cls", [ExplicitCertificate, OrbitCertificate, HammingCertificate])
def test_another_pair_is_rejected(certificates, cls):
    certificate = certificates[cls]
    i, j = certificate.pair
    other = (i, i) if cls is HammingCertificate else (j, i)
    with pytest.raises(CertificateError):
        replace(certificate, pair=other).check()


def test_certificates_exist_inside_the_range_only():
    curve = calibration_function(CostMatrix(COSTS), Dense(F))
    for eps in (0.0, -1.0, curve.max_eps * 1.1, float("nan")):
        with pytest.raises(ValueError, match="eps must lie in"):
            curve.certificate(eps)


def test_weighted_measures():
    mu = np.array([0.1, 0.2, 0.3, 0.25, 0.15])
    curve = calibration_function(CostMatrix(COSTS), Dense(F, reference=mu))
    certificate = curve.certificate(0.7 * curve.max_eps)
    certificate.check()
    assert isinstance(certificate, ExplicitCertificate)
    assert certificate.scores.argmax() == certificate.pair[1]
