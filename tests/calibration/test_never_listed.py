"""Proofs over labels that are never listed, on members so small that they can be listed."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from consistruct import calibration_function
from consistruct.calibration.proofs import from_json
from consistruct.calibration.proofs.provers.oracle import oracle_prover
from consistruct.exceptions import CertificateError, ConsistructError
from consistruct.losses import (
    NDCG,
    ExpectedRankUtility,
    FBeta,
    Hamming,
    Kendall,
    Matching,
    MeanAveragePrecision,
    PairwiseDisagreement,
    PrecisionAt,
    SpearmanFootrule,
    SpearmanRho,
    ZeroOne,
)
from consistruct.losses.base import dense_target
from consistruct.structures import Chain
from tests.calibration.tampering import NEVER_LISTED, never_listed, true_value

MEMBERS: list[Any] = [
    (NDCG(4, n_grades=3), None), (NDCG(5, 2), None), (PrecisionAt(4, 2), None),
    (ExpectedRankUtility(4), None), (PairwiseDisagreement(4), None), (SpearmanRho(4), None),
    (Matching(4), None), (SpearmanFootrule(4), None), (Kendall(4), None),
    (Kendall(3, ties="average"), None), (Kendall(3, ties="exclude"), None),
    (PairwiseDisagreement(4, 3), None), (MeanAveragePrecision(4), None),
    (MeanAveragePrecision(5), None), (FBeta(3), None), (FBeta(4, 2.0, sizes=(1, 3)), None),
    (FBeta(4, sizes=(0, 2, 4)), None), (FBeta(3, empty=0.0), None),
    (Hamming(3, 3), Chain(3, 3)), (Hamming(4), Chain(4, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("loss", "space"), MEMBERS, ids=lambda member: repr(member))
def test_exact_scores_are_those_of_the_package(loss, space):
    space = loss.score_space if space is None else space
    exact = oracle_prover(loss, space).space
    labels, true_labels = loss.predictions.enumerate(), loss.true_labels.enumerate()
    F = np.array([[float(x) for x in exact.features(label)] for label in labels.tolist()])
    np.testing.assert_allclose(F, space.embed(labels), atol=1e-12)
    targets = np.array(
        [[float(x) for x in exact.target(true_label)] for true_label in true_labels.tolist()]
    )
    expected = space.coordinates(loss.score_space)(dense_target(loss.target(true_labels)))
    np.testing.assert_allclose(targets, expected, atol=1e-12)
    rng = np.random.default_rng(0)
    weights = loss.predictions.weights() if isinstance(loss, FBeta) else None
    for _ in range(3):
        theta = rng.standard_normal(space.width)
        values = F @ theta
        given = [Fraction(x) for x in theta.tolist()]
        assert float(exact.largest(given)) == pytest.approx(values.max(), abs=1e-9)
        mean = np.average(values**2, weights=weights)
        assert float(exact.mean_square(given)) == pytest.approx(mean, rel=1e-9)
    mu = np.full(len(F), 1 / len(F)) if weights is None else weights
    root = np.linalg.svd(np.sqrt(mu)[:, None] * F, full_matrices=False)
    kept = root[1] > 1e-10 * root[1][0]
    K = (F @ (root[2][kept].T / root[1][kept] ** 2)) @ (root[2][kept] @ F.T)
    squared = np.diag(K)[:, None] + np.diag(K) - 2 * K
    if isinstance(loss, Hamming):
        apart = (labels[:, None] != labels[None]).sum(axis=2)
        for needed in range(1, loss.T + 1):
            found = exact.diameter(Fraction(needed, loss.T))
            assert float(found) == pytest.approx(squared[apart >= needed].max(), rel=1e-8)
    else:
        assert float(exact.diameter(Fraction(0))) == pytest.approx(squared.max(), rel=1e-7)


# others take minutes in fractions; tests/long/test_tampered.py has all of them
FAST = [member for member in NEVER_LISTED if member not in (PairwiseDisagreement(3, 3), (2, 3))]


@pytest.mark.parametrize("member", FAST, ids=repr)
def test_the_true_value_lies_between_the_ends(member):
    method = never_listed(member)
    proof: Any = method.certificate(0.5 * method.max_eps)
    proof.check()
    document = json.loads(proof.to_json())
    value = true_value(document)
    assert Fraction(document["lower"]) <= value <= Fraction(document["upper"])
    again: Any = from_json(json.dumps(document))
    again.check()
    for broken in (
        {**document, "lower": float(value) * 1.001},
        {**document, "upper": float(value) * 0.999},
    ):
        with pytest.raises(CertificateError):
            from_json(json.dumps(broken)).check()


def test_values_that_floats_could_not_give():
    """Discounts of 2^-15 between neighbors: the upper end used to be infinite."""
    H = calibration_function(ExpectedRankUtility(40))
    low, high = H.interval(0.5)
    assert high - low <= 1e-6 * high
    H.certificate(0.5).check()


def test_the_ends_meet_theorem_7_without_a_margin():
    for loss in (Matching(7), SpearmanRho(8)):
        H = calibration_function(loss)
        low, high = H.interval(0.5)
        apart = 2 * 7 * 6 if isinstance(loss, Matching) else None
        if apart is not None:
            assert low == float(Fraction(1, 4) / (2 * apart))
        assert low <= high <= low * (1 + 1e-6)


def test_eps_is_snapped_to_whole_parts():
    H = calibration_function(Hamming(5, 3), Chain(5, 3))
    proof: Any = H.certificate(0.8)
    assert Fraction(proof.eps) == Fraction(4, 5)
    assert H.interval(0.8)[0] < H.interval(math.nextafter(0.8, 1) + 1e-12)[0]


def test_other_losses_are_refused_in_one_line():
    with pytest.raises(ConsistructError, match="no exact certificate is known for"):
        oracle_prover(ZeroOne(4), ZeroOne(4).score_space)
