"""F-beta over all set sizes: orbits of pairs of label sets, and their exact certificates."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from consistruct import calibration_function
from consistruct.calibration.methods.orbits.sets import SetPairs, cells_of
from consistruct.calibration.proofs import from_json
from consistruct.certificates.sets import SetProblem
from consistruct.exceptions import CertificateError
from consistruct.losses import CostMatrix, FBeta
from consistruct.report import calibration_report
from consistruct.structures import Dense


def layers(T):
    """One score per (size, member), one for ∅ and one for the full set: no Cauchy matrix."""
    sets = FBeta(T).predictions.enumerate()
    sizes = sets.sum(axis=1)
    columns = [(sizes == m) * sets[:, t] for m in range(1, T) for t in range(T)]
    return np.column_stack([*columns, sizes == 0, sizes == T]).astype(float)


@pytest.mark.parametrize(
    ("T", "beta", "empty"),
    [(2, 1.0, 1.0), (3, 1.0, 1.0), (3, 8.0, 0.5), (4, 2.0, 1.0), (4, 16.0, 1.0)],
)
def test_orbits_equal_all_pairs_of_listed_sets(T, beta, empty):
    loss = FBeta(T, beta, empty=empty)
    H = calibration_function(loss)
    assert H.method == "set orbits"
    listed = calibration_function(
        CostMatrix(loss.matrix(), rows="pred"),
        Dense(layers(T), reference=loss.predictions.weights()),
    )
    assert listed.method == "explicit quadratic programs"
    assert H.max_eps == pytest.approx(listed.max_eps)
    for share in (0.15, 0.5, 0.8, 1.0):
        eps = share * H.max_eps
        low, high = H.interval(eps)
        true_low, true_high = listed.interval(eps)
        assert high - low <= 1e-6 * high
        assert low <= true_high * (1 + 1e-9)
        assert true_low <= high * (1 + 1e-9)


@pytest.mark.parametrize("beta", [1.0, 8.0, 20.0])
def test_eight_labels_are_certified_whatever_beta(beta):
    H = calibration_function(FBeta(8, beta))
    (point,) = H.curve(0.6)
    assert point.status == "certified"
    assert point.lower >= 0.6**2 / (4 * float(H.effective_classes)) * (1 - 1e-9)  # Theorem 7
    proof = H.certificate(0.6)
    assert proof.lower <= point.upper * (1 + 1e-9)
    assert point.lower <= proof.upper * (1 + 1e-9)
    assert proof.upper - proof.lower <= 1e-6 * proof.upper
    if beta == 1.0:
        proof.check()


def test_coordinates_have_the_kernel_of_the_scores():
    T, groups = 4, (1, 1, 1, 1)  # cells of single labels: nothing is averaged
    pairs = SetPairs(T, 1.0, 1.0)
    cells = cells_of(groups)
    F = layers(T)
    loss = FBeta(T)
    mu = loss.predictions.weights()
    order = [int(loss.predictions.index(cell[None])[0]) for cell in cells]
    kernel = (F @ np.linalg.pinv(F.T @ (mu[:, None] * F)) @ F.T)[np.ix_(order, order)]
    embedded = pairs.embedding(groups, cells)
    np.testing.assert_allclose(embedded @ embedded.T, kernel, atol=1e-9)
    np.testing.assert_allclose(
        pairs.losses(groups, cells), loss.matrix()[np.ix_(order, order)], atol=1e-12
    )


def test_exact_losses_and_norms_are_those_of_the_floats():
    T, groups = 6, (2, 1, 2, 1)
    pairs, exact = SetPairs(T, 2.0, 0.5), SetProblem(T, 2.0, 0.5)
    cells = cells_of(groups)
    L = pairs.losses(groups, cells)
    rng = np.random.default_rng(0)
    for a, b in rng.integers(len(cells), size=(20, 2)):
        value = exact.loss(tuple(cells[a].tolist()), tuple(cells[b].tolist()), groups)
        assert float(value) == pytest.approx(L[a, b], abs=1e-14)
    w = rng.standard_normal(len(cells))
    weights = {tuple(c): Fraction(x) for c, x in zip(cells.tolist(), w.tolist(), strict=True)}
    norm = float(((w @ pairs.embedding(groups, cells)) ** 2).sum())
    assert float(exact.squared_norm(weights, groups)) == pytest.approx(norm, rel=1e-9)


def test_the_envelope_takes_few_values():
    H = calibration_function(FBeta(5, 2.0))
    envelope = H.envelope(0.7)
    assert len(H._cache) < 12
    assert envelope.gap(0.7) < 0.005
    fine = H.envelope(eps=np.linspace(0, H.max_eps, 201))  # by steps between values
    assert fine(0.7) <= envelope(0.7) * (1 + envelope.gap(0.7)) * (1 + 1e-9)
    grid = np.linspace(0.05, 1.0, 20) * H.max_eps
    assert (envelope(grid) <= H.interval(grid)[1] * (1 + 1e-9)).all()


# --- certificates ---


@pytest.fixture(scope="module")
def proof():
    found: Any = calibration_function(FBeta(5, 2.0)).certificate(0.6)
    assert found.multipliers
    return found


def test_certificates_are_plain_data(proof):
    proof.check()
    again = from_json(proof.to_json())
    assert again == proof
    again.check()


BROKEN = {
    "lower": lambda c: replace(c, lower=c.lower * (1 + 1e-6)),
    "upper": lambda c: replace(c, upper=c.upper * (1 - 1e-6)),
    "T": lambda c: replace(c, T=6),
    "beta": lambda c: replace(c, beta=1.0),
    "eps up": lambda c: replace(c, eps=0.7),
    "eps down": lambda c: replace(c, eps=0.5),
    "nan": lambda c: replace(c, beta=math.nan),
    "no multipliers": lambda c: replace(c, multipliers=()),
    "negative": lambda c: replace(c, multipliers=tuple((g, -1.0, w) for g, _, w in c.multipliers)),
    "groups": lambda c: replace(c, groups=(5, 0, 0, 0)),
    "empty distribution": lambda c: replace(c, cells=()),
    "strange cell": lambda c: replace(c, cells=(((9, 0, 0, 0), 1.0),)),
    "layers": lambda c: replace(c, layers=c.layers[1:]),
}


@pytest.mark.parametrize("name", BROKEN)
def test_tampered_certificates_are_refused(proof, name):
    with pytest.raises(CertificateError):
        BROKEN[name](proof).check()


def test_rounding_is_repaired_and_forgery_costs(proof):
    flat = replace(proof, layers=tuple((0.0,) * 5 for _ in proof.layers))
    with pytest.raises(CertificateError, match="not attained"):
        flat.check()  # v = 0 lets i win: the repair is expensive
    data = json.loads(proof.to_json())
    for broken in ({**data, "more": 1}, {k: v for k, v in data.items() if k != "cells"}):
        with pytest.raises(CertificateError):
            from_json(json.dumps(broken))


def test_the_report_tells_the_distribution_in_words():
    report = calibration_report(calibration_function(FBeta(4)), np.array([0.0, 0.5]), at=0.5)
    assert report.worst_case is not None
    assert "a set with" in report.worst_case.distribution[0].true_label


def test_what_the_orbits_do_not_take():
    for loss, reason in (
        (FBeta(13), "more than 12 labels"),
        (FBeta(9, sizes=(1, 2)), "all set sizes"),
        (FBeta(9, empty=0.0), "two empty sets"),
    ):
        H = calibration_function(loss)
        assert H.method != "set orbits"
        assert any(reason in text for text in H.refusals)
