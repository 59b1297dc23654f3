"""Hinge and max-min margin: named losses up to 12 labels, a grid of distributions, false proofs."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import numpy as np
import pytest

import consistruct as cs
from consistruct.calibration.methods.nonquadratic.polyhedral import method as polyhedral
from consistruct.calibration.methods.nonquadratic.polyhedral.symmetries import pair_symmetries
from consistruct.calibration.proofs import from_json
from consistruct.exceptions import CertificateError
from consistruct.losses import Block, CostMatrix, Hamming, Mixed, Ordinal, Tree, ZeroOne
from tests.calibration.methods.nonquadratic import brute_force
from tests.calibration.methods.nonquadratic.test_values import constrained_optimum

SURROGATES = ("hinge", "max-min-margin")


def random_costs(k, seed, integers=False):
    rng = np.random.default_rng(seed)
    L = rng.integers(1, 6, (k, k)).astype(float) if integers else rng.random((k, k))
    np.fill_diagonal(L, 0)
    return CostMatrix(L, rows="pred")


def in_the_plane(k, seed):
    points = np.random.default_rng(seed).normal(size=(k, 2))
    return CostMatrix(np.linalg.norm(points[:, None] - points[None], axis=-1), rows="pred")


NAMED = {
    "zero-one, 12": ZeroOne(12),
    "zero-one, 8": ZeroOne(8),
    "blocks of 4, 4, 4": Block((4, 4, 4)),
    "blocks of 1, 5, 6": Block((1, 5, 6)),
    "mixed, 6 and 6": Mixed((6, 6), 0.3),
    "mixed, 4, 4, 4": Mixed((4, 4, 4), 0.6),
    "ordinal, 10": Ordinal(10),
    "ordinal, 11": Ordinal(11),
    "squared ordinal, 8": Ordinal(8, 2.0),
    "squared ordinal, 12": Ordinal(12, 2.0),
    "three bits": Hamming(3),
    "two parts of three states": Hamming(2, 3),
    "tree of eight leaves": Tree((-1, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6)),
    "plane, 8": in_the_plane(8, 1),
    "plane, 10": in_the_plane(10, 2),
    "plane, 12": in_the_plane(12, 8),
    "integers, 8": random_costs(8, 3, integers=True),
    "integers, 12": random_costs(12, 9, integers=True),
    "uniform, 9": random_costs(9, 6),
    "uniform, 12": random_costs(12, 7),
}


def check_named(name, surrogate, share):
    """Within one per cent, proved, attained; zero where it is zero, but for losses of thirds.

    Three bits have losses of thirds; those of the nearest floats have H of the order of rounding.
    """
    loss = NAMED[name]
    H = cs.calibration_function(loss, surrogate=surrogate)
    eps = share * H.max_eps
    lower, upper = H.interval(eps)
    zero = 1e-16 if name == "three bits" else 0.0
    assert upper <= zero or 0 < lower <= upper <= 1.01 * lower
    certificate: Any = H.certificate(eps)
    assert (certificate.lower, certificate.upper) == (lower, upper)
    from_json(certificate.to_json()).check()
    # the distribution of the certificate costs that much, by a linear program of its own
    L, q = loss.matrix(), np.array(certificate.probabilities)
    i, j = certificate.pair
    assert (L[j] - L[i]) @ q >= eps - 1e-12 * L.max()
    assert constrained_optimum(surrogate, L, q, j) == pytest.approx(
        upper, rel=1e-6, abs=1e-8 * L.max()
    )


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("name", NAMED)
def test_named_losses_are_within_one_per_cent(name, surrogate):
    check_named(name, surrogate, 0.8)


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("name", [*NAMED][::2])  # the others: tests/long/test_polyhedral.py
def test_named_losses_at_half_the_largest_excess(name, surrogate):
    check_named(name, surrogate, 0.5)


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("name", ["squared ordinal, 12", "uniform, 12"])
def test_named_losses_at_a_quarter_of_the_largest_excess(name, surrogate):
    check_named(name, surrogate, 0.25)


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_a_grid_of_all_distributions_of_three_labels(surrogate):
    """H ≤ the least excess over the grid, and the grid comes close."""
    L = np.random.default_rng(3).random((3, 3))
    np.fill_diagonal(L, 0)
    H = cs.calibration_function(CostMatrix(L, rows="pred"), surrogate=surrogate)
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


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_twelve_labels_are_never_undercut(surrogate):
    excess = {"hinge": brute_force.excess_hinge, "max-min-margin": brute_force.excess_max_min}
    loss, share = NAMED["uniform, 12"], 0.95
    H = cs.calibration_function(loss, surrogate=surrogate)
    eps = share * H.max_eps
    rng = np.random.default_rng(5)
    found = brute_force.random_search(excess[surrogate], loss.matrix(), eps, rng, n=300)
    assert found >= H(eps) - 1e-8


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_twins_need_not_be_distinguished(surrogate):
    """Two labels with equal rows and columns against one of them alone."""
    small = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
    order = [0, 1, 1, 2]
    one = cs.calibration_function(CostMatrix(small, rows="pred"), surrogate=surrogate)
    two = cs.calibration_function(
        CostMatrix(small[np.ix_(order, order)], rows="pred"), surrogate=surrogate
    )
    for eps in (0.7, 1.5):
        assert two.interval(eps) == pytest.approx(one.interval(eps), abs=1e-9)


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_multiples_of_a_loss(surrogate):
    """H of c·L at c·ε is c·H(ε): exactly for powers of two, whatever the size."""
    L = random_costs(6, 2).matrix()
    one = cs.calibration_function(CostMatrix(L, rows="pred"), surrogate=surrogate)
    eps = 0.7 * one.max_eps
    lower, upper = one.interval(eps)
    assert 0 < lower <= upper <= lower * (1 + 1e-9)
    for factor in (2.0**-40, 3.0, 2.0**40):
        other = cs.calibration_function(CostMatrix(factor * L, rows="pred"), surrogate=surrogate)
        found = other.interval(factor * eps)
        assert found == pytest.approx((factor * lower, factor * upper), rel=1e-9)


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_what_is_open_when_the_budget_ends_keeps_its_bound(monkeypatch, surrogate):
    exact = cs.calibration_function(Ordinal(7), surrogate=surrogate)
    eps = 0.3 * exact.max_eps
    monkeypatch.setattr(polyhedral, "PROGRAMS", 0)
    loose = cs.calibration_function(Ordinal(7), surrogate=surrogate)
    (point,) = loose.curve(eps)
    assert point.status == "loose"
    loose.certificate(eps).check()
    monkeypatch.undo()
    lower, upper = exact.interval(eps)
    assert point.lower < lower <= upper <= point.upper * (1 + 1e-9)


# --- false proofs ---


@pytest.fixture(scope="module")
def document():
    """A proof with several cuts, points, multipliers and symmetries."""
    H = cs.calibration_function(Ordinal(5), surrogate="max-min-margin")
    certificate: Any = H.certificate(0.4 * H.max_eps)
    found = json.loads(certificate.to_json())
    assert found["symmetries"] == [[4, 3, 2, 1, 0]]
    assert any("cut" in proof["tree"] for proof in found["pairs"])
    from_json(json.dumps(found)).check()
    return found


def refused(document, message=None):
    with pytest.raises(CertificateError, match=message):
        from_json(json.dumps(document)).check()


def test_a_missing_pair_is_noticed(document):
    for number in range(len(document["pairs"])):
        other = copy.deepcopy(document)
        del other["pairs"][number]
        refused(other, "is not proved")


def test_a_missing_branch_is_noticed(document):
    other = copy.deepcopy(document)
    tree = next(proof["tree"] for proof in other["pairs"] if "cut" in proof["tree"])
    tree["minus"] = {}
    refused(other)
    tree.clear()
    refused(other)


def test_points_beyond_their_bounds_are_noticed(document):
    other = copy.deepcopy(document)
    proof = next(proof for proof in other["pairs"] if any(point for _, point in proof["points"]))
    point = next(point for _, point in proof["points"] if point)
    point[0][-1] = 2**46
    refused(other, "exceeds its bounds")
    point[0][-1] = -1
    refused(other, "an integer from 0")


def test_false_symmetries_are_noticed(document):
    other = copy.deepcopy(document)
    other["symmetries"] = [[1, 2, 3, 4, 0]]
    refused(other, "changes the loss")
    other["symmetries"] = [[4, 4, 2, 1, 0]]
    refused(other, "changes the loss")
    other["symmetries"] = []
    refused(other, "is not proved")


def test_negative_multipliers_are_noticed(document):
    other = copy.deepcopy(document)
    waiting = [proof["tree"] for proof in other["pairs"]]
    while waiting:
        node = waiting.pop()
        waiting += [node[side] for side in ("plus", "minus") if side in node]
        if "nu" in node:
            node["nu"] = [[c, -1] for c in range(5)]
    refused(other, "an integer from 0")


def test_another_loss_or_surrogate_is_noticed(document):
    refused({**document, "loss": [[2 * x for x in row] for row in document["loss"]]})
    refused({**document, "loss": (Ordinal(5, 2.0).matrix()).tolist()})
    refused({**document, "surrogate": "hinge"})
    refused({**document, "eps": document["eps"] * (1 + 1e-12)})
    refused({**document, "lower": document["lower"] * (1 + 1e-9)}, "is bounded by")
    refused({**document, "upper": document["upper"] * (1 - 1e-9)}, "above upper")


def test_scores_must_predict_the_label():
    H = cs.calibration_function(random_costs(4, 1), surrogate="hinge")
    certificate: Any = H.certificate(0.8 * H.max_eps)
    found = json.loads(certificate.to_json())
    _, j = found["pair"]
    found["scores"][j] = -1.0
    refused(found, "do not predict")


def test_swapped_labels_and_orbits():
    first, found = pair_symmetries(ZeroOne(4).matrix())
    assert set(first.values()) == {(0, 1)}
    L = ZeroOne(4).matrix()
    for order in found:
        assert np.array_equal(L[np.ix_(order, order)], L)
    assert pair_symmetries(random_costs(5, 1).matrix())[1] == []


def test_beyond_twelve_labels_a_bound_with_its_reason():
    H = cs.calibration_function(ZeroOne(13), surrogate="hinge")
    (point,) = H.curve([0.9])
    assert point.status == "bounds"
    assert "more than 12 labels" in H.method


def test_a_level_that_is_not_decided_is_not_invented(monkeypatch):
    monkeypatch.setattr(polyhedral, "LEVEL_PROGRAMS", 3)
    H = cs.calibration_function(NAMED["uniform, 12"], surrogate="hinge")
    low, high = H.consistency_interval
    assert low == H.consistency_level
    assert low < high <= H.max_eps * (1 + 1e-8)
    assert H.consistency_reason == "not decided by 3 linear programs"
    assert H(0.95 * H.max_eps) > 0  # values do not need the level
