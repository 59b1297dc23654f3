"""Ranking losses: against other definitions, enumeration, families of query lengths, bad input."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import kendalltau, spearmanr
from sklearn.metrics import average_precision_score, ndcg_score, roc_auc_score

from consistruct.exceptions import CapabilityError, FamilyError, LossSpecError
from consistruct.losses import (
    NDCG,
    ExpectedRankUtility,
    Kendall,
    Matching,
    MeanAveragePrecision,
    PairwiseDisagreement,
    PrecisionAt,
    SpearmanFootrule,
    SpearmanRho,
    parse_loss,
)
from consistruct.structures import (
    PairDiscount,
    PairOrder,
    Permutations,
    Positions,
    Ragged,
    pair_orders,
)

RNG = np.random.default_rng(0)
ORDERS = Permutations(6).sample(60, RNG)
SCORES = 6 - np.argsort(ORDERS, axis=1)  # item scores that rank as ORDERS do
BINARY = RNG.integers(0, 2, size=(60, 6))
BINARY[:, 0], BINARY[:, 1] = 1, 0  # something to rank in every query
GRADES = RNG.integers(0, 4, size=(60, 6))
GRADES[:, 0] = 3


@pytest.mark.parametrize("q", [None, 1, 3, 6])
def test_ndcg_is_that_of_scikit_learn(q):
    expected = [1 - ndcg_score([2.0**y - 1], [s], k=q) for y, s in zip(GRADES, SCORES, strict=True)]
    assert NDCG(6, q, n_grades=4)(ORDERS, GRADES) == pytest.approx(expected, abs=1e-12)
    linear = [1 - ndcg_score([y], [s], k=q) for y, s in zip(GRADES, SCORES, strict=True)]
    found = NDCG(6, q, n_grades=4, gain="linear")(ORDERS, GRADES)
    assert found == pytest.approx(linear, abs=1e-12)


def test_average_precision_and_auc_are_those_of_scikit_learn():
    pairs = list(zip(BINARY, SCORES, strict=True))
    expected = [1 - average_precision_score(y, s) for y, s in pairs]
    assert MeanAveragePrecision(6)(ORDERS, BINARY) == pytest.approx(expected, abs=1e-12)
    auc = [1 - roc_auc_score(y, s) for y, s in pairs]
    assert PairwiseDisagreement(6)(ORDERS, BINARY) == pytest.approx(auc, abs=1e-12)


def test_rank_distances_are_those_of_scipy():
    other = Permutations(6).sample(60, RNG)
    places = np.argsort(ORDERS, axis=1), np.argsort(other, axis=1)
    tau = [(1 - kendalltau(a, b).statistic) / 2 for a, b in zip(*places, strict=True)]
    rho = [(1 - spearmanr(a, b).statistic) / 2 for a, b in zip(*places, strict=True)]
    assert Kendall(6)(ORDERS, other) == pytest.approx(tau, abs=1e-12)
    assert SpearmanRho(6)(ORDERS, other) == pytest.approx(rho, abs=1e-12)
    footrule = np.abs(places[0] - places[1]).sum(axis=1) / 18
    assert SpearmanFootrule(6)(ORDERS, other) == pytest.approx(footrule)
    assert Matching(6)(ORDERS, other) == pytest.approx((other != ORDERS).mean(axis=1))


def test_precision_and_utility_by_hand():
    # items 3, 1 come first; 1 and 2 are relevant
    assert PrecisionAt(4, 2)([[3, 1, 0, 2]], [[0, 1, 1, 0]]) == 0.5
    # half-life 3: positions count 1, 2^-½, ½; gains 2 and 1 above the neutral grade 1
    loss = ExpectedRankUtility(3, 3.0, n_grades=4, neutral=1.0)
    best = 2 + math.sqrt(0.5)
    assert loss([[0, 1, 2]], [[0, 2, 3]]) == pytest.approx(1 - (math.sqrt(0.5) + 2 * 0.5) / best)


NOTHING_RELEVANT = [
    (PrecisionAt(3, 2), 1.0),
    (PrecisionAt(3, 2, empty=0.0), 0.0),
    (NDCG(3), 0.0),
    (NDCG(3, empty=1.0), 1.0),
    (ExpectedRankUtility(3), 0.0),
    (PairwiseDisagreement(3), 0.0),
    (PairwiseDisagreement(3, 3, empty=0.5), 0.5),
    (MeanAveragePrecision(3), 0.0),
    (MeanAveragePrecision(3, empty=0.25), 0.25),
]


@pytest.mark.parametrize(("loss", "value"), NOTHING_RELEVANT, ids=repr)
def test_true_labels_without_relevant_items(loss, value):
    every = loss.predictions.enumerate()
    nothing = np.zeros_like(every)
    assert (loss(every, nothing) == value).all()
    assert not np.asarray(loss.target(nothing)).any()
    assert (loss.offset(nothing) == value).all()


def test_equally_relevant_items_leave_no_pair():
    assert PairwiseDisagreement(3, empty=0.5)([[0, 1, 2]], [[1, 1, 1]]) == 0.5


def test_kendall_with_partial_orders():
    # ranks: 0 first, 1 and 2 tie behind; the order 1, 0, 2 inverts (0, 1) only
    assert Kendall(3, ties="average")([[1, 0, 2]], [[0, 1, 1]]) == pytest.approx(1.5 / 3)
    assert Kendall(3, ties="exclude")([[1, 0, 2]], [[0, 1, 1]]) == pytest.approx(1 / 2)
    assert Kendall(3, ties="exclude")([[1, 0, 2]], [[2, 2, 2]]) == 0.0
    full = np.argsort(ORDERS, axis=1)
    for ties in ("average", "exclude"):  # without ties all are the same
        found = Kendall(6, ties=ties)(ORDERS[::-1], full)
        assert found == pytest.approx(Kendall(6)(ORDERS[::-1], ORDERS))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_ranks(n):
    for space, rank in (
        (PairOrder(n), 1 + n * (n - 1) // 2),
        (PairDiscount(n), n * (n + 1) // 2 - (n > 1)),
        (SpearmanFootrule(n).score_space, (n - 1) ** 2 + 1),
        (NDCG(n).score_space, n),
    ):
        assert space.rank == rank == np.linalg.matrix_rank(space.matrix())


def test_binary_pairwise_disagreement_needs_one_score_per_item():
    # y_i − y_j is induced by item scores; three grades are not
    assert PairwiseDisagreement(5).score_space == Positions([5, 4, 3, 2, 1])
    L = PairwiseDisagreement(4, 3).matrix()
    assert np.linalg.matrix_rank(L) == PairwiseDisagreement(4, 3).score_space.rank == 7


def test_effective_classes_of_long_orders_are_bounded():
    # every order has leverage `rank`, so that no two are further apart than opposite points
    for n in (2, 3, 4, 5):
        space = PairDiscount(n)
        assert space.effective_classes().exact
        assert space.effective_classes() <= 2 * (space.rank - 1) + 1e-9
    long = PairDiscount(9).effective_classes()
    assert not long.exact
    assert long == 2 * (9 * 10 / 2 - 1 - 1)
    # reversing an order turns all pairs round: the bound is attained
    assert PairOrder(30).effective_classes() == 30 * 29
    assert PairOrder(30).effective_classes().exact


def best_by_enumeration(F, theta):
    return (theta @ F.T).max(axis=1)


@pytest.mark.parametrize("space", [PairOrder(6), PairDiscount(6)], ids=repr)
def test_orders_by_dynamic_programming_and_local_search(space, monkeypatch):
    n = 6
    F = space.embed(list(itertools.permutations(range(n))))
    theta = np.random.default_rng(3).standard_normal((100, F.shape[1]))
    best = best_by_enumeration(F, theta)
    assert space.decoding_is_exact
    assert space.tie_rule == "smallest index"
    found = (space.embed(space.decode(theta)) * theta).sum(axis=1)
    assert found == pytest.approx(best, abs=1e-12)
    monkeypatch.setattr(pair_orders, "EXACT_ITEMS", 3)
    assert not space.decoding_is_exact
    assert "Borda" in space.tie_rule
    orders = space.decode(theta)
    heuristic = (space.embed(orders) * theta).sum(axis=1)
    assert (heuristic <= best + 1e-12).all()
    assert (heuristic >= best - 1e-9).mean() > 0.7
    # a local optimum: no item can be moved for the better
    for row, order in zip(theta[:20], orders.tolist(), strict=False):
        score = float(space.embed([order])[0] @ row)
        for item, place in itertools.product(range(n), repeat=2):
            rest = [other for other in order if other != item]
            moved = [*rest[:place], item, *rest[place:]]
            assert float(space.embed([moved])[0] @ row) <= score + 1e-9


def test_score_induced_pairs_are_sorted_at_any_length():
    n = 40
    s = np.random.default_rng(0).standard_normal((5, n))
    first, second = np.triu_indices(n, 1)
    theta = np.concatenate([np.zeros((5, 1)), s[:, first] - s[:, second]], axis=1)
    space = PairOrder(n)
    assert not space.decoding_is_exact
    assert np.array_equal(space.decode(theta), np.argsort(-s, axis=1))


def test_worst_true_label_of_long_orders_is_exact_or_refused():
    loss = Kendall(30)
    order = loss.predictions.sample(3, np.random.default_rng(0))
    values, worst = loss.worst_true_label(loss.score_space.embed(order), 1.0)
    assert np.array_equal(worst, order[:, ::-1])
    assert values == pytest.approx(1.0)
    noise = np.random.default_rng(0).standard_normal((1, loss.score_space.width))
    with pytest.raises(CapabilityError, match="worst_true_label"):
        loss.worst_true_label(noise)
    with pytest.raises(CapabilityError, match="worst_true_label"):
        MeanAveragePrecision(30).worst_true_label(-np.ones((1, 465)))


FAMILIES = [
    PrecisionAt(None, 3),
    NDCG(None, n_grades=3),
    NDCG(None, 4, n_grades=3),
    ExpectedRankUtility(None, n_grades=3),
    PairwiseDisagreement(None, 3),
    MeanAveragePrecision(None),
    Kendall(None),
    SpearmanFootrule(None),
    SpearmanRho(None),
    Matching(None),
]


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_families_take_packed_queries(family):
    rng = np.random.default_rng(0)
    lengths = [5, 2, 5, 1, 7]
    members = [family.at(length) for length in lengths]
    pred = [member.predictions.sample(1, rng)[0] for member in members]
    true = [member.true_labels.sample(1, rng)[0] for member in members]
    expected = [
        float(member(p[None], y[None])[0]) for member, p, y in zip(members, pred, true, strict=True)
    ]
    packed = family(Ragged.pack(pred), Ragged.pack(true))
    assert packed == pytest.approx(expected)
    assert family.n_labels is None
    assert family.max_value == 1.0
    assert members[0](Ragged.pack(pred[:1]), Ragged.pack(true[:1])) == pytest.approx(expected[0])
    with pytest.raises(ValueError, match="queries of the same lengths"):
        family(Ragged.pack(pred), Ragged.pack(true[::-1]))
    with pytest.raises(ValueError, match="query 1 is empty; leave out queries without items"):
        family(Ragged.pack([[0], []]), Ragged.pack([[0], []]))
    with pytest.raises(TypeError, match="must both be packed"):
        family(Ragged.pack(pred), pred)
    with pytest.raises(ValueError, match="takes queries of 5 items, query 1 has 2"):
        members[0](Ragged.pack(pred), Ragged.pack(true))
    for action in (lambda: family([[0]], [[0]]), lambda: family.target([[0]])):
        with pytest.raises(FamilyError, match="is a family of sizes"):
            action()


def test_cut_offs_of_families_shrink_with_the_query():
    assert PrecisionAt(None, 3).at(2) == PrecisionAt(2, 2)
    assert NDCG(None, 3).at(5) == NDCG(5, 3)


def test_packed_sorting():
    scores = Ragged.pack([[0.1, 0.9, 0.5], [1.0], [0.2, 0.2]])
    space = NDCG(None).score_space
    assert space == Positions(None)
    assert [row.tolist() for row in space.decode_packed(scores)] == [[1, 2, 0], [0], [0, 1]]
    with pytest.raises(FamilyError, match="decode_packed takes Ragged scores"):
        space.decode([[0.0]])
    with pytest.raises(ValueError, match="one score per item"):
        space.decode_packed(Ragged.pack([np.zeros((1, 2))]))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: PrecisionAt(3, 4),
            ValueError,
            "q must be at most n = 3, the number of items, got 4",
        ),
        (lambda: NDCG(3, 4), ValueError, "q must be at most n = 3"),
        (lambda: NDCG(3, 0), ValueError, "q must be at least 1"),
        (lambda: NDCG(3, gain="log"), ValueError, "gain must be 'exponential' or 'linear', got"),
        (lambda: NDCG(3, discount="x"), ValueError, "discount must be 'log2', 'reciprocal' or"),
        (lambda: NDCG(3, n_grades=1), ValueError, "n_grades must be at least 2"),
        (
            lambda: NDCG(3, empty=2.0),
            ValueError,
            r"empty must be a finite number in \[0\.0, 1\.0\]",
        ),
        (lambda: ExpectedRankUtility(3, 1.0), ValueError, r"half_life must be .* in \(1\.0"),
        (lambda: ExpectedRankUtility(3, neutral=1.0), ValueError, "below the highest grade 1"),
        (lambda: Kendall(3, ties="x"), ValueError, "ties must be 'refuse', 'average' or"),
        (
            lambda: Kendall(3)([[0, 1, 2]], [[0, 1, 1]]),
            ValueError,
            "every item must occur once, without ties",
        ),
        (lambda: Kendall(3)([[0, 1, 3]], [[0, 1, 2]]), ValueError, r"permutations of 0\.\.2, got"),
        (lambda: Matching(3)([[0, 1]], [[0, 1]]), ValueError, r"pred must have shape \(n, 3\)"),
        (lambda: NDCG(3)([[0, 1, 2]], [[0, 2, 1]]), ValueError, r"states in 0\.\.1, got 2"),
        (lambda: NDCG(3)([[0, 1, 2]], [[0, 1]]), ValueError, r"true must have shape \(n, 3\)"),
        (lambda: NDCG(3)([[0, 1, 2]], [[0, 0.5, 1]]), TypeError, "must contain integer labels"),
        (lambda: Positions([1, 2]), ValueError, "must not increase with the position"),
        (lambda: Positions([1, -1]), ValueError, "non-negative with a positive first entry"),
        (lambda: Positions(None).width, FamilyError, "cannot have a width"),
        (lambda: MeanAveragePrecision(None).score_space, FamilyError, "have a score space"),
        (
            lambda: PairOrder(2).decode([[0.0, -np.inf]]),
            ValueError,
            "theta must be finite, got −inf",
        ),
    ],
)
def test_bad_input(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("spec", "loss"),
    [
        ("ndcg:10", NDCG(10)),
        ("ndcg:10:5", NDCG(10, 5)),
        ("ndcg:10::3", NDCG(10, n_grades=3)),
        ("precision-at:10:3", PrecisionAt(10, 3)),
        ("precision_at:10:3:5", PrecisionAt(10, 3, n_grades=5)),
        ("eru:10", ExpectedRankUtility(10)),
        ("eru:10:3.5:4", ExpectedRankUtility(10, 3.5, n_grades=4)),
        ("pairwise:10", PairwiseDisagreement(10)),
        ("pairwise:10:3", PairwiseDisagreement(10, 3)),
        ("map:5", MeanAveragePrecision(5)),
        ("kendall:6", Kendall(6)),
        ("footrule:6", SpearmanFootrule(6)),
        ("spearman-rho:6", SpearmanRho(6)),
        ("matching:5", Matching(5)),
    ],
)
def test_specs(spec, loss):
    assert parse_loss(spec) == loss


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("ndcg", "the spec of ndcg lacks the number of items"),
        ("ndcg:3:7", "q must be at most n = 3"),
        ("precision-at:10", "lacks the cut-off q"),
        ("eru:10:x", "half-life in the spec of eru must be a number, got 'x'"),
        ("kendall:6:2", "takes at most 1 field"),
        ("fbeta:4:-1", "beta must be a finite number"),
    ],
)
def test_bad_specs(spec, message):
    with pytest.raises(LossSpecError, match=message):
        parse_loss(spec)


@pytest.mark.parametrize("n", [3, 5, 20])
def test_pairs_that_do_not_conflict_are_decoded_exactly(n):
    rng = np.random.default_rng(n)
    order = rng.permutation(n)
    position = np.argsort(order)
    first, second = np.triu_indices(n, 1)
    # magnitudes of their own, so that no item scores induce these pairs
    size = rng.exponential(size=len(first)) + 1e-3
    pairs = np.where(position[first] < position[second], size, -size)
    theta = np.concatenate([[0.3], pairs])[None]
    assert PairOrder(n).decode(theta).tolist() == [order.tolist()]
