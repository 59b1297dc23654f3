"""Different routes to one value: symmetry on and off, fast and generic, oracle and explicit."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
import pytest

from consistruct import calibration_function
from consistruct.calibration.methods.explicit.pool import ExplicitPairs, PairPool
from consistruct.calibration.methods.explicit_full import explicit_curve
from consistruct.calibration.methods.oracle.hard_pairs import HardPairs, SampledPairs
from consistruct.calibration.methods.oracle.method import OracleMethod
from consistruct.calibration.problem.listed import explicit_problem
from consistruct.calibration.problem.symmetry import Symmetry
from consistruct.calibration.proofs.provers.oracle import oracle_prover
from consistruct.exceptions import CertificateError
from consistruct.losses import (
    NDCG,
    Abstain,
    Block,
    CostMatrix,
    FBeta,
    Hamming,
    Kendall,
    Matching,
    Mixed,
    Ordinal,
    PrecisionAt,
    SpearmanFootrule,
    Tree,
    ZeroOne,
)
from consistruct.structures import Blocks, Chain, Dense, Full, Separable

SYMMETRIC = [
    (ZeroOne(5), Full(5)),
    (Block((2, 2, 3)), Full(7)),
    (Mixed((2, 2, 3), 0.3), Full(7)),
    (Mixed((2, 2), 0.3), Blocks((2, 2))),
    (Hamming(3), Full(Hamming(3))),
    (Hamming(3), Separable(3)),
    (Hamming(3), Chain(3, 2)),
    (Ordinal(5), Full(5)),
    (Abstain(4, 0.3), Full(5)),
    (Tree((-1, 0, 0, 1, 1, 2, 2)), Full(Tree((-1, 0, 0, 1, 1, 2, 2)))),
]


@pytest.mark.parametrize(("loss", "space"), SYMMETRIC, ids=repr)
def test_symmetry_changes_no_value(loss, space):
    problem = explicit_problem(loss, space)
    reduced = PairPool(ExplicitPairs(problem))
    plain = PairPool(ExplicitPairs(problem, symmetric=False))
    for share in (0.2, 0.55, 0.9, 1.0):
        eps = share * problem.max_eps
        one, other = reduced.point(eps), plain.point(eps)
        assert one.upper == pytest.approx(other.upper, rel=2e-6, abs=1e-14)
        assert one.lower == pytest.approx(other.lower, rel=2e-6, abs=1e-14)


def test_symmetry_shrinks_and_identifies_pairs():
    problem = explicit_problem(Hamming(4), Full(Hamming(4)))
    symmetry = Symmetry(problem)
    assert not symmetry.trivial
    signatures = set()
    for j in range(1, 16):
        pair, signature = symmetry.reduce(0, j)
        signatures.add(signature)
        assert len(pair.order) < 15
        assert sum(len(cell) for cell in pair.row_cells) == 15
        assert sum(len(cell) for cell in pair.column_cells) == 16
    assert len(signatures) == 4  # one orbit per number of differing parts


def test_symmetry_looks_at_scores_and_loss():
    # the loss is symmetric, the scores are not: no two labels may be merged
    scores = np.array([[1.0, 0.0], [0.3, 1.0], [-0.8, 0.2], [0.1, -2.0]])
    assert Symmetry(explicit_problem(ZeroOne(4), Dense(scores))).trivial


@pytest.mark.parametrize("kind", ["uniform", "integers", "weighted", "rectangular"])
def test_pool_against_the_fast_route(kind):
    rng = np.random.default_rng(4)
    k, m = 7, 5 if kind == "rectangular" else 7
    L = rng.random((k, m)) if kind != "integers" else rng.integers(0, 4, (k, m)).astype(float)
    mu = None
    if kind == "weighted":
        mu = rng.random(k) + 0.3
        mu /= mu.sum()
    loss = CostMatrix(L, rows="pred")
    problem = explicit_problem(loss, Full(loss))
    grid = np.linspace(0.1, 1.0, 7) * problem.max_eps * problem.unit
    fast = explicit_curve(L, grid, mu=mu)
    if mu is None:
        curve = calibration_function(loss, "full")
    else:
        curve = calibration_function(loss, Dense(np.eye(k), reference=mu))
    assert curve.method == "explicit quadratic programs"
    low, high = curve.interval(grid)
    np.testing.assert_allclose(high * k, fast.scaled_upper, rtol=3e-6)
    np.testing.assert_allclose(low * k, fast.scaled_lower, rtol=3e-6)


def test_the_fast_route_answers_from_twenty_labels_on():
    loss = CostMatrix(np.random.default_rng(5).random((20, 20)), rows="pred")
    curve = calibration_function(loss, "full")
    assert curve.method == "explicit active sets"
    problem = explicit_problem(loss, Full(loss))
    eps = 0.8 * curve.max_eps
    point = PairPool(ExplicitPairs(problem)).point(eps / problem.unit)
    scale = math.exp(problem.log_scale)
    assert curve.interval(eps)[1] == pytest.approx(point.upper * scale, rel=3e-6)
    assert curve.interval(eps)[0] == pytest.approx(point.lower * scale, rel=3e-6)


@pytest.mark.parametrize("T", [2, 3, 4, 5])
def test_oracle_against_listed_labels(T):
    loss, space = Hamming(T), Chain(T, 2)
    explicit = calibration_function(loss, space)
    assert explicit.method == "explicit quadratic programs"
    oracle = OracleMethod(loss, space, HardPairs(space), oracle_prover(loss, space))
    grid = np.array([0.2, 0.5, 0.9, 1.0])
    for point, high in zip(oracle.points(grid), explicit.interval(grid)[1], strict=True):
        assert point.lower <= high * (1 + 1e-6)
        assert point.upper == pytest.approx(high, rel=2e-6)


def test_oracle_with_three_states_against_listed_labels():
    loss, space = Hamming(3, 3), Chain(3, 3)
    explicit = calibration_function(loss, space)
    oracle = OracleMethod(loss, space, HardPairs(space), oracle_prover(loss, space))
    for point in oracle.points(np.array([0.3, 0.8])):
        low, high = explicit.interval(point.eps)
        assert point.lower <= high * (1 + 1e-6)
        assert point.upper >= low * (1 - 1e-6)


@pytest.mark.parametrize(("T", "s"), [(9, 4), (13, 3)])
def test_oracle_on_exponentially_many_labels(T, s):
    curve = calibration_function(Hamming(T, s), Chain(T, s))
    assert curve.method == "oracle cutting planes"
    start = time.perf_counter()
    for point in curve.curve([0.2, 0.5, 1.0]):
        assert 0 < point.lower <= point.upper
        assert point.upper <= 1.1 * point.lower
        assert point.status in ("certified", "bounds")
        curve.certificate(point.eps).check()
    assert time.perf_counter() - start < 60  # seconds; a few on an idle machine


@pytest.mark.parametrize("space", [Chain(5, 2), Chain(4, 3)], ids=repr)
def test_hard_pairs_against_all_pairs(space):
    labels = space.predictions.enumerate()
    F = space.matrix()
    kernel = F @ space.gram().solve(F).T
    distance = np.diag(kernel)[:, None] + np.diag(kernel) - 2 * kernel
    differing = (labels[:, None] != labels[None]).sum(axis=2)
    hard = HardPairs(space)
    for needed in range(1, space.T + 1):
        expected = distance[differing >= needed].max()
        found = []
        for i, j in hard.candidates(needed):
            assert (i != j).sum() >= needed
            a, b = space.predictions.index(np.array([i, j])).tolist()
            found.append(distance[a, b])
        assert max(found) == pytest.approx(expected, rel=1e-9)


def test_oracle_needs_an_exact_decoder(monkeypatch):
    from consistruct.calibration.methods.oracle.pair import OraclePair
    from consistruct.exceptions import CapabilityError

    space = Chain(4, 2)
    monkeypatch.setattr(type(space), "decoding_is_exact", False)
    with pytest.raises(CapabilityError, match="exact decoder"):
        OraclePair(Hamming(4), space, np.zeros(4, int), np.ones(4, int))


@pytest.mark.parametrize(
    ("loss", "certified"),
    [
        (Matching(4), True),
        (PrecisionAt(4, 2), True),
        (SpearmanFootrule(3), True),
        (Kendall(4), False),
        (NDCG(4), False),
        (FBeta(3, sizes=(0, 1, 2, 3)), False),  # by the orbits of sets otherwise
    ],
    ids=repr,
)
def test_oracle_without_known_structure_against_listed_labels(loss, certified):
    space = loss.score_space
    explicit = calibration_function(loss)
    assert explicit.method == "explicit quadratic programs"
    oracle = OracleMethod(loss, space, SampledPairs(loss, space), oracle_prover(loss, space))
    for point in oracle.points(np.array([0.2, 0.5]) * explicit.max_eps):
        low, high = explicit.interval(point.eps)
        assert point.lower <= high * (1 + 1e-6)
        assert point.upper >= low * (1 - 1e-6)
        if certified:
            assert point.status == "certified"


@pytest.mark.parametrize("loss", [Matching(12), PrecisionAt(30, 5)], ids=repr)
def test_more_permutations_than_can_be_listed(loss):
    curve = calibration_function(loss)
    assert curve.method == "oracle cutting planes"
    (point,) = curve.curve(0.5)
    assert point.status == "certified"
    curve.certificate(0.5).check()
    with pytest.raises(CertificateError):
        replace(curve.certificate(0.5), lower=1.01 * point.upper).check()  # type: ignore[type-var]
