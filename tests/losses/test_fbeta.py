"""The F-measure: against scikit-learn, enumeration, exact ranks, its own k_eff, memory."""

from __future__ import annotations

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from sklearn.metrics import fbeta_score

from consistruct.losses import FBeta, parse_loss
from consistruct.losses.base import Sizes, dense_target
from consistruct.structures import Product, SetSizes
from consistruct.structures import sets as set_decoders


@pytest.mark.parametrize(("T", "beta", "empty"), [(5, 1.0, 1.0), (6, 2.0, 0.0), (4, 0.5, 1.0)])
def test_values_are_those_of_scikit_learn(T, beta, empty):
    rng = np.random.default_rng(T)
    pred, true = rng.integers(0, 2, size=(2, 200, T))
    pred[:20], true[:10] = 0, 0
    expected = [
        1 - fbeta_score(y, p, beta=beta, zero_division=empty)
        for y, p in zip(true, pred, strict=True)
    ]
    # scikit-learn fills in zero_division where one set is empty, too: F is 0 there
    one_empty = (pred.any(axis=1)) != (true.any(axis=1))
    values = np.where(one_empty, 1.0, expected)
    assert FBeta(T, beta, empty=empty)(pred, true) == pytest.approx(values, abs=1e-12)


@pytest.mark.parametrize(
    ("T", "sizes"), [(3, None), (6, None), (8, (0, 1, 2, 5)), (10, (1, 2, 3)), (10, (0, 4))]
)
def test_decoder_attains_the_maximum_over_all_sets(T, sizes):
    loss = FBeta(T, 1.5, sizes=sizes)
    space = loss.score_space
    F = space.embed(Product(T).enumerate())
    rng = np.random.default_rng(0)
    theta = rng.standard_normal((50, space.width)) - np.linspace(-1, 1, 50)[:, None]
    found = space.embed(space.decode(theta))
    assert (found * theta).sum(axis=1) == pytest.approx((theta @ F.T).max(axis=1), rel=1e-12)


def test_both_ways_of_decoding_agree(monkeypatch):
    for sizes in ((0, 1, 2, 9), (3,), (1, 4, 5)):
        space = SetSizes(9, 1.0, sizes)
        rng = np.random.default_rng(0)
        theta = rng.standard_normal((60, space.width))
        theta[30:] = rng.integers(-1, 2, size=(30, space.width))  # ties
        theta[40:50, 0] = -np.inf
        theta[50:, -1] = 0.0
        together = space.decode(theta)
        monkeypatch.setattr(set_decoders, "BATCH_ITEMS", 0)
        one_by_one = space.decode(theta)
        monkeypatch.undo()
        assert np.array_equal(together[:30], one_by_one[:30])
        embed = SetSizes(9, 1.0, sizes).embed
        finite = np.where(np.isneginf(theta), 0.0, theta)
        values = [(embed(found) * finite).sum(axis=1) for found in (together, one_by_one)]
        assert values[0] == pytest.approx(values[1], abs=1e-12)
        assert not together[40:50, 0].any()  # −inf forbids the label
        assert not one_by_one[40:50, 0].any()


def test_bayes_decision_minimizes_the_expected_loss():
    loss = FBeta(7, 2.0)
    every = Product(7).enumerate()
    rng = np.random.default_rng(1)
    distributions = rng.dirichlet(np.full(len(every), 0.05), size=30)
    decided = loss.score_space.decode(-(distributions @ dense_target(loss.target(every))))
    risks = distributions @ loss.matrix().T
    attained = risks[np.arange(30), loss.predictions.index(decided)]
    assert attained == pytest.approx(risks.min(axis=1), abs=1e-12)


@pytest.mark.parametrize("T", [1, 2, 3, 4, 5])
def test_rank_with_all_sizes(T):
    space = SetSizes(T)
    assert space.rank == T**2 - T + 2
    assert np.linalg.matrix_rank(space.matrix(), tol=1e-9) == space.rank


@pytest.mark.parametrize("T", [2, 3, 4, 5])
@pytest.mark.parametrize("beta", [1.0, 3.0])
def test_rank_with_some_sizes(T, beta):
    for code in range(2, 2 ** (T + 1)):
        sizes = tuple(s for s in range(T + 1) if code >> s & 1)
        space = SetSizes(T, beta, sizes)
        assert np.linalg.matrix_rank(space.matrix(), tol=1e-9) == space.rank, sizes


def test_effective_classes_under_sizes_then_sets():
    # two sets of size 4 without overlap: 2(T²−1)T/(T−m) = 252 = 2·126
    assert SetSizes(8).effective_classes() == 126
    assert SetSizes(8).effective_classes().measure == "uniform over sizes, then over sets"
    assert SetSizes(1000).diameter_squared() == Fraction(2 * (1000**2 - 1) * 1000, 500)


@pytest.mark.parametrize(("T", "sizes"), [(6, (1, 2)), (7, (0, 3)), (6, (0, 1, 6)), (5, (1,))])
def test_effective_classes_with_some_sizes(T, sizes):
    space = SetSizes(T, 1.0, sizes)
    F, weights = space.matrix(), space.predictions.weights()
    inverse = np.linalg.pinv((F * weights[:, None]).T @ F, rcond=1e-12, hermitian=True)
    kernel = F @ inverse @ F.T
    leverage = np.diag(kernel)
    diameter = (leverage[:, None] + leverage - 2 * kernel).max()
    effective = space.effective_classes()
    assert effective.exact
    assert effective == pytest.approx(diameter / 2, rel=1e-6)


def test_many_sizes_give_a_certified_bound_instead():
    few, many = SetSizes(60, sizes=(1, 2)), SetSizes(60, sizes=range(1, 40))
    assert few.effective_classes().exact
    assert not many.effective_classes().exact
    # scores free in every size contain those of some sizes
    assert few.effective_classes() < many.effective_classes() == SetSizes(60).effective_classes()


def test_sizes_restrict_targets_but_not_the_loss():
    loss = FBeta(4, sizes=(1, 2))
    assert loss([[1, 1, 1, 0]], [[1, 1, 1, 0]]) == 0.0
    with pytest.raises(ValueError, match="sets of size 1, 2, got a set of size 3 at row 0; add"):
        loss.target([[1, 1, 1, 0]])
    assert loss.target([[1, 0, 0, 1]]).toarray().tolist() == [[0] * 4 + [-1, 0, 0, -1] + [0]]


def test_decoding_983_labels_needs_little_memory():
    # 3,000 examples with 25 sizes are 563 MiB of scores; decoding adds work space for one example
    space = SetSizes(983, sizes=range(1, 26))
    theta = np.random.default_rng(0).standard_normal((9, space.width)) - 1.0
    tracemalloc.start()
    labels = space.decode(theta)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * 2**20
    assert 3000 * space.width * 8 + peak < 2**30
    # no neighbor is better: one label more, or one less
    score = (space.embed(labels[:1]) @ theta[0])[0]
    neighbors = np.abs(labels[0] - np.eye(983, dtype=np.int64))
    assert (
        max((space.embed(neighbors[i : i + 100]) @ theta[0]).max() for i in range(0, 983, 100))
        <= score
    )


def test_forbidden_labels():
    decode = SetSizes(3, sizes=(0, 1)).decode
    assert decode([[5.0, 4.0, -np.inf, 0.0, 0.0]])[0, 2] == 0
    assert decode([[-9.0, -9.0, -9.0, -np.inf, 0.0]]).sum() == 1
    with pytest.raises(ValueError, match=r"every label is forbidden .* for example 1"):
        decode([[0.0] * 5, [-np.inf] * 5])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: FBeta(3, 0.0), ValueError, r"beta must be a finite number in \(0\.0"),
        (lambda: FBeta(3, -1.0), ValueError, "beta must be a finite number"),
        (lambda: FBeta(3, "1"), TypeError, "beta must be a number, got '1'"),
        (lambda: FBeta(0), ValueError, "T must be at least 1"),
        (
            lambda: FBeta(3, empty=1.5),
            ValueError,
            r"empty must be a finite number in \[0\.0, 1\.0\]",
        ),
        (lambda: FBeta(3, sizes=(4,)), ValueError, r"sizes must be in 0\.\.3, .* got 4"),
        (lambda: FBeta(3, sizes=(0,)), ValueError, "must contain a positive set size, got only 0"),
        (lambda: FBeta(3, sizes=()), ValueError, "sizes must not be empty"),
        (lambda: FBeta(3)([[0, 1]], [[0, 1]]), ValueError, r"pred must have shape \(n, 3\)"),
        (
            lambda: FBeta(2)([[0, 1]], [[0, 2]]),
            ValueError,
            "sets as 0/1 vectors, got 2 at position",
        ),
    ],
)
def test_bad_input(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_specs():
    assert parse_loss("fbeta:14") == FBeta(14)
    assert parse_loss("fbeta:14:2") == FBeta(14, 2.0)
    assert parse_loss("fbeta", sizes=Sizes(n_parts=3)) == FBeta(3)
    seen = Sizes(n_parts=9, set_sizes=(1, 2))
    assert parse_loss("fbeta", sizes=seen) == FBeta(9, sizes=(1, 2))
