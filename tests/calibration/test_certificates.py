"""Certificates prove what they claim: tampered ones are refused, whatever was touched."""

from __future__ import annotations

import ast
import json
import math
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tools import check_zipapp

from consistruct import calibration_function
from consistruct import certificates as package
from consistruct.calibration.problem.distributions import Constrained
from consistruct.calibration.proofs import from_json
from consistruct.calibration.proofs.base import PlainCertificate
from consistruct.calibration.proofs.files import KINDS
from consistruct.calibration.proofs.hamming import HammingCertificate
from consistruct.calibration.proofs.listed import ListedCertificate
from consistruct.calibration.proofs.mixed import MixedCertificate
from consistruct.calibration.proofs.oracle import OracleCertificate
from consistruct.calibration.proofs.polyhedral import PolyhedralCertificate
from consistruct.exceptions import CertificateError
from consistruct.losses import (
    NDCG,
    CostMatrix,
    FBeta,
    Hamming,
    Kendall,
    Matching,
    Mixed,
    Ordinal,
    ZeroOne,
)
from consistruct.structures import Blocks, Chain, Dense
from tests.frozen.adapters import CERTIFIED

RNG = np.random.default_rng(0)
F = np.column_stack([np.ones(5), RNG.standard_normal((5, 3))])
COSTS = RNG.random((5, 4))

CURVES: dict[str, Any] = {
    "dense": (
        ListedCertificate,
        lambda: calibration_function(CostMatrix(COSTS, rows="pred"), Dense(F)),
    ),
    "full": (
        ListedCertificate,
        lambda: calibration_function(CostMatrix(COSTS, rows="pred"), "full"),
    ),
    "fast": (
        ListedCertificate,
        lambda: calibration_function(
            CostMatrix(np.random.default_rng(1).random((20, 20)), rows="pred"), "full"
        ),
    ),
    "blocks": (
        MixedCertificate,
        lambda: calibration_function(Mixed((2, 3, 4), 0.2), Blocks((2, 3, 4))),
    ),
    "orbits": (MixedCertificate, lambda: calibration_function(Mixed((2, 3, 4), 0.2), "full")),
    "zero-one": (MixedCertificate, lambda: calibration_function(ZeroOne(2**70))),
    "hamming": (HammingCertificate, lambda: calibration_function(Hamming(6), "full")),
    "separable": (HammingCertificate, lambda: calibration_function(Hamming(50, 3))),
    "oracle": (OracleCertificate, lambda: calibration_function(NDCG(8, n_grades=3))),
    "matching": (OracleCertificate, lambda: calibration_function(Matching(6))),
    "kendall": (OracleCertificate, lambda: calibration_function(Kendall(6))),
    "states": (OracleCertificate, lambda: calibration_function(Hamming(5, 3), Chain(5, 3))),
    "hinge": (
        PolyhedralCertificate,
        lambda: calibration_function(CostMatrix(COSTS[:4], rows="pred"), surrogate="hinge"),
    ),
    "max-min": (
        PolyhedralCertificate,
        lambda: calibration_function(Ordinal(6), surrogate="max-min-margin"),
    ),
    "sizes": (OracleCertificate, lambda: calibration_function(FBeta(8, sizes=(1, 2)))),
}
SHARE = 0.8
pytestmark = pytest.mark.filterwarnings("ignore::consistruct.calibration.LabelOrderWarning")


@pytest.fixture(scope="module")
def certificates():
    made = {}
    for name, (_, make) in CURVES.items():
        curve = make()
        made[name] = curve.certificate(SHARE * curve.max_eps)
    return made


@pytest.mark.parametrize("name", CURVES)
def test_genuine_certificates_pass(certificates, name):
    certificate = certificates[name]
    assert isinstance(certificate, CURVES[name][0])
    certificate.check()
    assert 0 < certificate.lower <= certificate.upper
    better, predicted = certificate.pair
    assert better != predicted


@pytest.mark.parametrize("name", CURVES)
def test_under_its_distribution_the_predicted_label_is_worse_by_eps(certificates, name):
    loss, certificate = CURVES[name][1]().loss, certificates[name]
    found = certificate.worst_distribution(loss)
    assert len(found.true_labels) == len(found.distribution)
    assert found.distribution.sum() == pytest.approx(1)
    if isinstance(found.true_labels, list):  # groups of true labels, in words
        assert all(words.format(i="one", j="two") for words in found.true_labels)
        return
    better, predicted = (np.array([label] * len(found.distribution)) for label in found.pair)
    gap = (
        loss(predicted, found.true_labels) - loss(better, found.true_labels)
    ) @ found.distribution
    assert gap >= float(certificate.eps) - 1e-9


def test_every_kind_states_under_which_distribution_it_holds():
    silent = [
        cls
        for cls in KINDS.values()
        if cls.worst_distribution is PlainCertificate.worst_distribution
    ]
    assert silent == []


@pytest.mark.parametrize("name", CURVES)
def test_json_there_and_back(certificates, name):
    certificate = certificates[name]
    text = certificate.to_json()
    back: Any = from_json(text)
    back.check()
    assert type(back) is type(certificate)
    assert json.loads(back.to_json()) == json.loads(text)
    assert Fraction(back.lower) == Fraction(certificate.lower)
    assert back.pair == certificate.pair
    assert back.log_scale == certificate.log_scale


@pytest.mark.parametrize("name", CURVES)
def test_better_bounds_than_proved_are_refused(certificates, name):
    certificate = certificates[name]
    with pytest.raises(CertificateError):
        replace(certificate, lower=certificate.upper * 1.000001).check()
    with pytest.raises(CertificateError):
        replace(certificate, upper=certificate.lower * 0.999999).check()


@pytest.mark.parametrize("name", ["dense", "full", "orbits", "blocks", "separable", "hamming"])
def test_not_even_by_one_unit_in_the_last_place(certificates, name):
    """The ends are rounded once: the next floats inwards are not proved."""
    certificate = certificates[name]
    above = math.nextafter(float(certificate.lower), math.inf)
    below = math.nextafter(float(certificate.upper), 0.0)
    exact = above >= certificate.upper
    assert exact, "these are solved exactly: one or two units wide"
    if above > certificate.upper:
        with pytest.raises(CertificateError):
            replace(certificate, lower=math.nextafter(above, math.inf)).check()
    if below < certificate.lower:
        with pytest.raises(CertificateError):
            replace(certificate, upper=math.nextafter(below, 0.0)).check()


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), "x", None, "1e5", [1.0], True])
@pytest.mark.parametrize("name", CURVES)
def test_what_is_no_number_is_refused(certificates, name, bad):
    certificate = certificates[name]
    for field in ("eps", "lower", "upper"):
        with pytest.raises(CertificateError):
            replace(certificate, **{field: bad}).check()
    distribution = (
        "distribution" if hasattr(certificate, "distribution") and name != "separable" else None
    )
    if distribution is not None and not isinstance(certificate, HammingCertificate):
        with pytest.raises(CertificateError):
            replace(certificate, distribution=[bad, *certificate.distribution[1:]]).check()


@pytest.mark.parametrize("name", CURVES)
def test_the_scale_is_no_field(certificates, name):
    """Finding of the audit: log_scale could be replaced. It follows from the data now."""
    certificate = certificates[name]
    with pytest.raises(TypeError):
        replace(certificate, log_scale=10.0)
    assert certificate.log_scale == pytest.approx(
        math.log(certificate.scale.numerator) - math.log(certificate.scale.denominator)
    )


@pytest.mark.parametrize("name", CURVES)
def test_files_with_other_fields_are_refused(certificates, name):
    document = json.loads(certificates[name].to_json())
    with pytest.raises(CertificateError, match=r"unknown fields \['log_scale'\]"):
        from_json(json.dumps({**document, "log_scale": 0.0}))
    del document["upper"]
    with pytest.raises(CertificateError, match="missing or malformed data: KeyError"):
        from_json(json.dumps(document))


def moved(distribution):
    """Another distribution: its mass shifted by one place."""
    return [*distribution[1:], distribution[0]]


@pytest.mark.parametrize("name", ["dense", "full", "fast", "blocks", "orbits", "oracle"])
def test_other_distributions_are_refused(certificates, name):
    certificate = certificates[name]
    with pytest.raises(CertificateError):
        replace(certificate, distribution=moved(certificate.distribution)).check()
    with pytest.raises(CertificateError):
        replace(certificate, distribution=[-1.0, *certificate.distribution[1:]]).check()
    with pytest.raises(CertificateError):
        replace(certificate, distribution=[0] * len(certificate.distribution)).check()


@pytest.mark.parametrize("name", ["full", "fast", "blocks", "orbits"])
@pytest.mark.parametrize("factor", [Fraction(101, 100), Fraction(99, 100)])
def test_other_levels_are_refused(certificates, name, factor):
    certificate = certificates[name]
    level = Fraction(certificate.level) * factor
    with pytest.raises(CertificateError, match="above the upper end"):
        replace(certificate, level=level).check()


def test_other_scores_are_refused(certificates):
    for name in ("dense", "oracle"):
        certificate = certificates[name]
        theta = [Fraction(x) for x in certificate.theta]
        theta[1] += Fraction(3, 10)
        with pytest.raises(CertificateError):
            replace(certificate, theta=[float(x) for x in theta]).check()


def test_unpredictable_labels_are_refused():
    # the middle label of three on a line wins ties only if it comes first
    L = 1 - np.eye(3)
    late = calibration_function(CostMatrix(L, rows="pred"), Dense([[1.0], [-1.0], [0.0]]))
    certificate: Any = late.certificate(0.8)
    certificate.check()
    assert certificate.excluded
    assert 2 not in certificate.pair
    with pytest.raises(CertificateError):
        replace(certificate, pair=(0, 2)).check()
    with pytest.raises(CertificateError):
        replace(certificate, wins={c: [0] for c in certificate.pair}).check()
    with pytest.raises(CertificateError, match="lose every tie"):
        replace(certificate, excluded={1: {0: 1}}).check()
    early = calibration_function(CostMatrix(L, rows="pred"), Dense([[0.0], [1.0], [-1.0]]))
    assert early.interval(0.8) == (0.0, 0.0)
    early.certificate(0.8).check()
    with pytest.raises(CertificateError, match="lose every tie"):
        replace(certificate, scores=[[0.0], [1.0], [-1.0]], excluded={0: {1: 0.5, 2: 0.5}}).check()


def test_multipliers_matter():
    # Theorem 7 does not decide squared distances in the middle of the range: 3.2 against 3.94
    matrix = (np.arange(5)[:, None] - np.arange(5)) ** 2.0
    certificate: Any = calibration_function(CostMatrix(matrix, rows="pred"), "full").certificate(
        8.0
    )
    assert certificate.lower > 1.2 * 8.0**2 / (4 * 5)
    with pytest.raises(CertificateError, match="bounded below"):
        replace(certificate, points={}).check()
    other = {
        pair: [(w, nu * Fraction(17, 10)) for w, nu in points]
        for pair, points in certificate.points.items()
    }
    with pytest.raises(CertificateError, match="bounded below"):
        replace(certificate, points=other).check()
    negative = {
        pair: [({c: -x for c, x in w.items()}, nu) for w, nu in points]
        for pair, points in certificate.points.items()
    }
    with pytest.raises(CertificateError, match="negative"):
        replace(certificate, points=negative).check()


def test_multipliers_of_orbits_matter(certificates):
    certificate = certificates["orbits"]
    assert certificate.points
    with pytest.raises(CertificateError, match="bounded below"):
        replace(certificate, points={}).check()
    negative = {key: ([-x for x in w], nu) for key, (w, nu) in certificate.points.items()}
    with pytest.raises(CertificateError, match="negative"):
        replace(certificate, points=negative).check()


def test_hamming_orbits_cannot_be_omitted(certificates):
    certificate = certificates["hamming"]
    fewer = dict(list(certificate.x.items())[1:])
    with pytest.raises(CertificateError, match="no bound is given for pairs that differ in 5"):
        replace(certificate, x=fewer).check()
    shrunk = {d: Fraction(x) * 9 / 10 for d, x in certificate.x.items()}
    with pytest.raises(CertificateError):
        replace(certificate, x=shrunk).check()
    with pytest.raises(CertificateError):
        replace(certificate, d=3).check()
    with pytest.raises(CertificateError):
        replace(certificate, T=7).check()


def test_another_loss_is_refused(certificates):
    """The loss is data of the certificate: a cheaper one does not carry the claim."""
    certificate = certificates["dense"]
    half = [[x / 2 for x in row] for row in certificate.loss]
    with pytest.raises(CertificateError):
        replace(certificate, loss=half).check()
    with pytest.raises(CertificateError):
        replace(certificates["orbits"], eta=0.9).check()
    with pytest.raises(CertificateError):
        replace(certificates["blocks"], sizes=(2, 2, 2)).check()
    with pytest.raises(CertificateError):
        replace(certificates["separable"], T=49).check()
    oracle = certificates["oracle"]
    with pytest.raises(CertificateError):
        replace(oracle, loss={**oracle.loss, "discount": oracle.loss["discount"][1:]}).check()
    with pytest.raises(CertificateError):
        replace(oracle, loss={**oracle.loss, "name": "rho", "n": 8}).check()


class Stub:
    """An object that claims whatever one likes."""

    def __getattr__(self, name):
        return lambda *_, **__: 99.0


@pytest.mark.parametrize("name", CURVES)
def test_objects_are_not_trusted(certificates, name):
    certificate = certificates[name]
    for field in certificate.__dataclass_fields__:
        with pytest.raises(CertificateError):
            replace(certificate, **{field: Stub()}).check()


@pytest.mark.parametrize("name", ["full", "orbits", "zero-one"])
def test_another_pair_is_refused(certificates, name):
    certificate = certificates[name]
    i, j = certificate.pair
    for other in ((i, i), (-1, j), (i, 2**80)):
        with pytest.raises(CertificateError):
            replace(certificate, pair=other).check()


def test_certificates_exist_inside_the_range_only():
    curve = calibration_function(CostMatrix(COSTS, rows="pred"), Dense(F))
    for eps in (0.0, -1.0, curve.max_eps * 1.1, float("nan")):
        with pytest.raises(ValueError, match="eps must be in"):
            curve.certificate(eps)


def test_weighted_measures():
    mu = np.array([0.1, 0.2, 0.3, 0.25, 0.15])
    curve = calibration_function(CostMatrix(COSTS, rows="pred"), Dense(F, reference=mu))
    certificate: Any = curve.certificate(0.7 * curve.max_eps)
    certificate.check()
    assert isinstance(certificate, ListedCertificate)
    assert max(certificate.label_scores) == certificate.label_scores[certificate.pair[1]]
    with pytest.raises(CertificateError):
        replace(certificate, measure=[*mu[1:].tolist(), 0.0]).check()


# --- the check by itself ---


@pytest.fixture(scope="module")
def run_alone(tmp_path_factory):
    """Run the zipapp with no site packages, no environment and nothing of the source tree."""
    archive = tmp_path_factory.mktemp("alone") / "consistruct-check.pyz"
    check_zipapp.build(archive)

    def run(*paths):
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(archive), *map(str, paths)],
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )
        assert not done.stderr
        return done.returncode, done.stdout

    return run


OTHERS: dict[str, Any] = {
    "chain": lambda: calibration_function(Hamming(9), Chain(9, 2)).certificate(0.8),
    "long chain": lambda: calibration_function(Hamming(25), Chain(25, 2)).certificate(0.8),
    "sets": lambda: calibration_function(FBeta(4, 2.0)).certificate(0.6),
    "restricted": lambda: calibration_function(
        CostMatrix(COSTS, rows="pred"), Dense(F), distributions="noise:0.25"
    ).certificate(0.6),
    "margin": lambda: calibration_function(
        CostMatrix(COSTS, rows="pred"), "full", distributions="margin:0.3"
    ).certificate(0.4),
    "cap": lambda: calibration_function(
        CostMatrix(COSTS, rows="pred"), "full", distributions="cap:0.4"
    ).certificate(0.1),
    "cut": lambda: calibration_function(
        CostMatrix(COSTS, rows="pred"),
        "full",
        distributions=Constrained(((1.0, 0.0, 0.5, 0.0), (0.0, 1.0, -1.0, 0.0)), (0.5, 0.25)),
    ).certificate(0.3),
}


def made(name):
    """A certificate of one of the problems whose values are recorded."""
    H = CERTIFIED[name]()
    return H.certificate(SHARE * H.max_eps)


OTHERS |= {name: partial(made, name) for name in ("divergence", "bregman", "ties")}


@pytest.mark.parametrize("name", [*CURVES, *OTHERS])
def test_the_check_runs_alone_and_agrees(certificates, name, tmp_path, run_alone):
    certificate = certificates[name] if name in CURVES else OTHERS[name]()
    certificate.check()
    path = tmp_path / "certificate.json"
    path.write_text(certificate.to_json(), encoding="utf-8")
    code, stated = run_alone(path)
    assert code == 0
    assert stated.startswith(f"{path}: proved: H(ε) in [")
    assert certificate.statement.sha256 in stated
    forged = replace(certificate, lower=float(certificate.upper) * 1.01)
    path.write_text(forged.to_json(), encoding="utf-8")
    code, stated = run_alone(path)
    assert code == 1
    assert stated.startswith(f"{path}: refused: ")
    path.write_text("{", encoding="utf-8")
    assert run_alone(path)[0] == 2


def test_several_files_give_the_worst_verdict(certificates, tmp_path, run_alone):
    proved, refused = tmp_path / "proved.json", tmp_path / "refused.json"
    certificate = certificates[next(iter(CURVES))]
    proved.write_text(certificate.to_json(), encoding="utf-8")
    forged = replace(certificate, lower=float(certificate.upper) * 1.01)
    refused.write_text(forged.to_json(), encoding="utf-8")
    assert run_alone(proved, proved)[0] == 0
    assert run_alone(proved, refused)[0] == 1
    assert run_alone(refused, tmp_path / "missing.json", proved)[0] == 2
    assert run_alone(tmp_path)[0] == 2  # a folder
    assert run_alone()[0] == 2


def test_the_check_needs_the_standard_library_alone():
    allowed = {*sys.stdlib_module_names, "consistruct"}
    for path in Path(package.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            names = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{name}" for name in names]
            assert {name.partition(".")[0] for name in names} <= allowed
            own = [name for name in names if name.startswith("consistruct.")]
            assert all(name.startswith("consistruct.certificates") for name in own)


def test_every_kind_of_certificate_has_a_check_and_runs_alone(certificates):
    assert package.KINDS.keys() == KINDS.keys()
    tried = {
        found.kind for found in (*certificates.values(), *(make() for make in OTHERS.values()))
    }
    assert tried == KINDS.keys()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not a JSON text"),
        ("[]", "not a certificate"),
        (
            '{"kind": "other"}',
            "its kind must be one of bregman, chain, divergence, hamming, listed, mixed",
        ),
        ('{"kind": "listed"}', "certificates of schema None are not read"),
        ('{"kind": "listed", "schema": 2}', "missing or malformed data"),
    ],
)
def test_other_texts_are_no_certificates(text, message):
    with pytest.raises(CertificateError, match=message):
        from_json(text)
