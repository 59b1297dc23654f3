"""Hinge and max-min margin: twenty named losses up to 12 labels, a grid of laws, false proofs."""

from __future__ import annotations

import math

import numpy as np
import pytest

import consistruct as cs
from consistruct.calibration.nonquadratic import polyhedral
from consistruct.calibration.nonquadratic.hinges import HingeSolver, MaxMinSolver
from consistruct.calibration.nonquadratic.pairs import PairsCertificate
from consistruct.losses import Block, CostMatrix, Hamming, Mixed, Ordinal, Tree, ZeroOne
from tests.calibration.nonquadratic import brute_force
from tests.calibration.nonquadratic.test_values import constrained_optimum

SOLVERS = {"hinge": HingeSolver, "max-min-margin": MaxMinSolver}


def random_costs(k, seed, integers=False):
    rng = np.random.default_rng(seed)
    L = rng.integers(1, 6, (k, k)).astype(float) if integers else rng.random((k, k))
    np.fill_diagonal(L, 0)
    return CostMatrix(L)


def in_the_plane(k, seed):
    points = np.random.default_rng(seed).normal(size=(k, 2))
    return CostMatrix(np.linalg.norm(points[:, None] - points[None], axis=-1))


# the loss, and the share of its largest excess at which H is asked for
NAMED = {
    "zero-one, 12": (ZeroOne(12), 0.8),
    "zero-one, 8": (ZeroOne(8), 0.8),
    "blocks of 4, 4, 4": (Block((4, 4, 4)), 0.8),
    "blocks of 1, 5, 6": (Block((1, 5, 6)), 0.8),
    "mixed, 6 and 6": (Mixed((6, 6), 0.3), 0.95),
    "mixed, 4, 4, 4": (Mixed((4, 4, 4), 0.6), 0.8),
    "ordinal, 10": (Ordinal(10), 0.8),
    "ordinal, 11": (Ordinal(11), 0.8),
    "squared ordinal, 8": (Ordinal(8, 2.0), 0.8),
    "squared ordinal, 12": (Ordinal(12, 2.0), 0.8),
    "three bits": (Hamming(3), 0.8),
    "two parts of three states": (Hamming(2, 3), 0.8),
    "tree of eight leaves": (Tree((-1, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6)), 0.8),
    "plane, 8": (in_the_plane(8, 1), 0.8),
    "plane, 10": (in_the_plane(10, 2), 0.8),
    "plane, 12": (in_the_plane(12, 8), 0.8),
    "integers, 8": (random_costs(8, 3, integers=True), 0.8),
    "integers, 12": (random_costs(12, 9, integers=True), 0.9),
    "uniform, 9": (random_costs(9, 6), 0.8),
    "uniform, 12": (random_costs(12, 7), 0.95),
}


@pytest.mark.parametrize("surrogate", SOLVERS)
@pytest.mark.parametrize("name", NAMED)
def test_named_losses_are_within_one_per_cent(name, surrogate):
    loss, share = NAMED[name]
    H = cs.calibration_function(loss, surrogate=surrogate)
    eps = share * H.max_eps
    lower, upper = H.interval(eps)
    assert 0 < lower <= upper <= 1.01 * lower
    certificate = H.certificate(eps)
    assert isinstance(certificate, PairsCertificate)
    certificate.check()
    # the law of the certificate costs that much, by a linear program of its own
    L, q = loss.matrix(), certificate.proofs[certificate.winner].law
    i, j = certificate.winner
    assert (L[j] - L[i]) @ q >= eps - 1e-7 * L.max()
    assert constrained_optimum(surrogate, L, q, j) == pytest.approx(upper, rel=1e-6)


@pytest.mark.parametrize("surrogate", SOLVERS)
def test_a_grid_of_all_laws_of_three_labels(surrogate):
    """H ≤ the least excess over the grid, and the grid comes close."""
    L = np.random.default_rng(3).random((3, 3))
    np.fill_diagonal(L, 0)
    H = cs.calibration_function(CostMatrix(L), surrogate=surrogate)
    steps = 24
    grid = [
        np.array([a, b, steps - a - b]) / steps
        for a in range(steps + 1)
        for b in range(steps + 1 - a)
    ]
    for share in (0.5, 0.8):
        eps = share * H.max_eps
        found = math.inf
        for q in grid:
            ell = L @ q
            for j in np.flatnonzero(ell - ell.min() >= eps).tolist():
                found = min(found, constrained_optimum(surrogate, L, q, j))
        lower, upper = H.interval(eps)
        assert lower <= found + 1e-9
        assert found <= upper + 4 * L.max() / steps  # slopes times the step of the grid
    assert H.interval(0.8 * H.max_eps)[1] > 0


@pytest.mark.parametrize("surrogate", SOLVERS)
def test_twelve_labels_are_never_undercut(surrogate):
    excess = {"hinge": brute_force.excess_hinge, "max-min-margin": brute_force.excess_max_min}
    loss, share = NAMED["uniform, 12"]
    H = cs.calibration_function(loss, surrogate=surrogate)
    eps = share * H.max_eps
    rng = np.random.default_rng(5)
    found = brute_force.random_search(excess[surrogate], loss.matrix(), eps, rng, n=300)
    assert found >= H(eps) - 1e-8


@pytest.mark.parametrize("surrogate", SOLVERS)
def test_twins_need_not_be_told_apart(surrogate):
    """Two labels with equal rows and columns against one of them alone."""
    small = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
    order = [0, 1, 1, 2]
    one = cs.calibration_function(CostMatrix(small), surrogate=surrogate)
    two = cs.calibration_function(CostMatrix(small[np.ix_(order, order)]), surrogate=surrogate)
    for eps in (0.7, 1.5):
        assert two.interval(eps) == pytest.approx(one.interval(eps), abs=1e-9)


@pytest.mark.parametrize("surrogate", SOLVERS)
def test_a_tree_with_a_missing_branch_proves_nothing(surrogate):
    L = random_costs(5, 1).matrix()
    solver = SOLVERS[surrogate](L)
    pairs = np.argwhere(solver.limits >= 0.5).tolist()
    proofs = [solver.solve(i, j, 0.5, math.inf) for i, j in pairs]
    proof = next(one for one in proofs if one.root.children and one.lower > 0)
    assert proof.recompute()[0] == proof.lower
    removed = next(iter(proof.root.children))
    child = proof.root.children.pop(removed)
    assert proof.recompute() == (0.0, math.inf)
    proof.root.children[removed] = child
    proof.root.weights[:] = np.roll(proof.root.weights, 1)
    assert proof.recompute() == (0.0, math.inf)


def test_beyond_twelve_labels_a_bound_with_its_reason():
    H = cs.calibration_function(ZeroOne(13), surrogate="hinge")
    (point,) = H.curve([0.9])
    assert point.status == "bounds"
    assert "more than 12 labels" in H.method


def test_a_level_that_is_not_settled_is_not_invented(monkeypatch):
    monkeypatch.setattr(polyhedral, "LEVEL_NODES", 3)
    H = cs.calibration_function(NAMED["uniform, 12"][0], surrogate="hinge")
    low, high = H.consistency_interval
    assert low == H.consistency_level
    assert low < high <= H.max_eps * (1 + 1e-8)
    assert H.consistency_reason == "not settled by 3 simplices of distributions"
    assert H(0.95 * H.max_eps) > 0  # values do not need the level
