"""Decisions from samples: against every label, and what a budget of metric calls guarantees."""

import math

import numpy as np
import pandas as pd
import pytest

import consistruct as cs
from consistruct.decisions.from_samples import decide_from_samples
from consistruct.exceptions import LossSpecError
from consistruct.losses import (
    NDCG,
    Abstain,
    CostMatrix,
    CostVectors,
    Decision,
    FBeta,
    Hamming,
    Kendall,
    Matching,
    Ordinal,
    Tree,
    ZeroOne,
)
from consistruct.structures import GridPath

KNOWN = [
    ZeroOne(4),
    CostMatrix([[0, 5, 1], [1, 0, 2], [4, 2, 0], [1.5, 1.5, 1.5]], rows="pred"),
    Abstain(4, 0.3),
    Ordinal(5, 2.0),
    FBeta(4),
    FBeta(4, 2.0, empty=0.5),
    Hamming(3, 3),
    0.5 * Hamming(3) + 0.5 * FBeta(3),
    NDCG(4, n_grades=3),
    Kendall(4),
    Matching(3),
    Tree((-1, 0, 0, 1, 1, 2), predict="nodes"),
]


def gaps(decisions):
    assert decisions.gap is not None
    return decisions.gap


def by_listing(loss, draws, weights):
    """Expected loss of every label by the direct formula, one draw after the other."""
    labels = loss.predictions.enumerate()
    total = np.zeros(len(labels))
    for draw, weight in zip(draws, weights, strict=True):
        total += weight * loss(labels, np.repeat(np.asarray(draw)[None], len(labels), axis=0))
    return labels, total / np.sum(weights)


@pytest.mark.parametrize("loss", KNOWN, ids=repr)
def test_known_losses_get_the_best_of_all_labels(loss):
    rng = np.random.default_rng(5)
    draws = [loss.true_labels.sample(m, rng) for m in (1, 2, 5, 9, 3, 4)]
    weights = [rng.random(len(row)) for row in draws]
    decisions = cs.decide(loss, samples=draws, weights=weights)
    for i, (row, weight) in enumerate(zip(draws, weights, strict=True)):
        _, risks = by_listing(loss, row, weight)
        best, second = np.sort(risks)[:2]
        assert decisions.expected_loss[i] == pytest.approx(best, abs=1e-12)
        assert risks[loss.predictions.index(decisions.labels)[i]] == pytest.approx(best, abs=1e-12)
        assert gaps(decisions)[i] == pytest.approx(second - best, abs=1e-12)
        runner_up = loss.predictions.index(decisions.runner_up)[i]
        assert runner_up != loss.predictions.index(decisions.labels)[i]
        assert risks[runner_up] == pytest.approx(second, abs=1e-12)


def test_the_best_label_may_be_none_of_the_draws():
    draws = np.array([[[1, 1, 0], [1, 0, 1], [0, 1, 1]]])
    decisions = cs.decide(Hamming(3), samples=draws)
    assert decisions.labels.tolist() == [[1, 1, 1]]
    among = cs.decide(Hamming(3), samples=draws, candidates=draws)
    assert among.labels.tolist() == [[1, 1, 0]]
    assert among.expected_loss[0] > decisions.expected_loss[0]


@pytest.mark.parametrize("loss", [Hamming(None, 3), NDCG(None, n_grades=3), Kendall(None)])
def test_families_decide_sequences_of_several_lengths(loss):
    rng = np.random.default_rng(1)
    sizes = [3, 2, 4, 3]
    draws = [loss.at(size).true_labels.sample(6, rng) for size in sizes]
    weights = [rng.random(6) for _ in sizes]
    decisions = cs.decide(loss, samples=draws, weights=weights)
    for i, size in enumerate(sizes):
        _, risks = by_listing(loss.at(size), draws[i], weights[i])
        assert len(decisions.labels[i]) == size
        assert decisions.expected_loss[i] == pytest.approx(risks.min(), abs=1e-12)
        assert gaps(decisions)[i] == pytest.approx(np.sort(risks)[1] - risks.min(), abs=1e-12)


def test_huge_label_sets_decide_without_listing():
    rng = np.random.default_rng(2)
    draws = rng.integers(2, size=(3, 11, 1000))
    decisions = cs.decide(Hamming(1000), samples=draws)
    assert np.array_equal(decisions.labels, (draws.mean(axis=1) > 0.5).astype(int))
    assert decisions.runner_up is None
    assert decisions.gap is None


def test_draws_of_nothing_but_empty_sets_decide_for_the_empty_set():
    decisions = cs.decide(FBeta(3), samples=np.zeros((2, 4, 3), dtype=int))
    assert not decisions.labels.any()
    assert decisions.expected_loss.tolist() == [0.0, 0.0]


def test_costs_that_may_come_true_decide_by_their_mean():
    rng = np.random.default_rng(3)
    costs = rng.random((4, 7, 3))
    decisions = cs.decide(CostVectors(3), samples=costs)
    assert np.array_equal(decisions.labels, costs.mean(axis=1).argmin(axis=1))
    assert decisions.expected_loss == pytest.approx(costs.mean(axis=1).min(axis=1))
    path = Decision(GridPath(2, 3))
    edges = rng.random((2, 5, path.score_space.width))
    decided = cs.decide(path, samples=edges)
    best = path.score_space.decode(-edges.mean(axis=1))
    assert np.array_equal(decided.labels, best)


def test_shared_weights_are_those_of_an_ensembles_members():
    draws = [[0, 1, 2], [1, 1, 0]]
    shared = cs.decide(ZeroOne(3), samples=draws, weights=[1, 2, 4])
    each = cs.decide(ZeroOne(3), samples=draws, weights=[[1, 2, 4], [1, 2, 4]])
    assert shared.labels.tolist() == each.labels.tolist() == [2, 0]
    assert shared.expected_loss == pytest.approx([3 / 7, 3 / 7])


def test_draws_may_be_names_of_classes():
    names = ["ham", "spam"]
    costs = CostMatrix.from_frame(
        pd.DataFrame([[0, 1], [10, 0]], index=names, columns=names), rows="pred"
    )
    draws = [["spam", "spam", "ham"], ["spam", "spam", "spam"]]
    codes = [[names.index(name) for name in row] for row in draws]
    decisions = cs.decide(costs, samples=draws)
    assert decisions.labels.tolist() == ["ham", "spam"]
    assert decisions.runner_up.tolist() == ["spam", "ham"]
    assert np.array_equal(decisions.expected_loss, cs.decide(costs, samples=codes).expected_loss)
    among = cs.decide(costs, samples=draws, candidates=[["spam"], ["ham", "spam"]])
    assert among.labels.tolist() == ["spam", "spam"]
    with pytest.raises(ValueError, match="'eggs' of example 1 is none of the classes"):
        cs.decide(costs, samples=draws, candidates=[["spam"], ["eggs"]])
    with pytest.raises(ValueError, match="'eggs', which is not a class"):
        cs.decide(costs, samples=[["eggs", "ham"]])
    with pytest.raises(ValueError, match="have no names"):
        cs.decide(Ordinal(3), samples=[["low", "high"]])


def test_tables_of_costs_decide_from_names():
    table = {"ham": {"spam": 1}, "spam": {"ham": 10}}
    draws = [["spam", "spam", "ham"], ["spam", "spam", "spam"]]
    decisions = cs.decide(table, samples=draws, rows="pred")
    assert decisions.labels.tolist() == ["ham", "spam"]  # 2/3 · 1 against 1/3 · 10
    assert decisions.expected_loss.tolist() == pytest.approx([2 / 3, 0.0])
    turned = cs.decide(table, samples=draws, rows="true")  # 2/3 · 10 against 1/3 · 1
    assert turned.labels.tolist() == ["spam", "spam"]
    with pytest.raises(ValueError, match="rows="):
        cs.decide(table, samples=draws)


def test_specs_take_their_sizes_from_the_draws():
    sets = [[[0, 1, 1], [1, 1, 0], [0, 1, 1]]]
    assert cs.decide("hamming", samples=sets).labels.tolist() == [[0, 1, 1]]
    fbeta = cs.decide("fbeta", samples=sets)
    assert fbeta.expected_loss.tolist() == cs.decide(FBeta(3), samples=sets).expected_loss.tolist()
    voted = cs.decide("zero-one", samples=[["b", "a", "b"], ["c", "c"]])
    assert voted.labels.tolist() == ["b", "c"]
    assert voted.expected_loss.tolist() == pytest.approx([1 / 3, 0.0])
    for loss, draws in (("zero-one", [[0, 1]]), ("hamming", [[[0, 1]], [[0, 1, 1]]])):
        with pytest.raises(LossSpecError, match="lacks the number of"):
            cs.decide(loss, samples=draws)


def test_candidates_of_a_known_loss_may_differ_in_number():
    rng = np.random.default_rng(4)
    draws = [rng.integers(2, size=(5, 3)) for _ in range(3)]
    offered = [rng.integers(2, size=(k, 3)) for k in (2, 4, 3)]
    decisions = cs.decide(FBeta(3), samples=draws, candidates=offered)
    for i in range(3):
        risks = [FBeta(3)([c] * 5, draws[i]).mean() for c in offered[i]]
        assert decisions.expected_loss[i] == pytest.approx(min(risks))
        assert gaps(decisions)[i] == pytest.approx(sorted(risks)[1] - min(risks))


# --- metrics that are functions -------------------------------------------------------------------


def distance(pred, true):
    """Share of the letters that differ, aligned at the start."""
    most = max(len(pred), len(true))
    return sum(a != b for a, b in zip(pred.ljust(most), true.ljust(most), strict=True)) / most


class Counting:
    """A metric that is a table, and how often each pair was called."""

    def __init__(self, table):
        self.table, self.calls = table, []

    def __call__(self, pred, true):
        self.calls.append((pred, true))
        return self.table[pred, true]


def random_table(rng, k, m):
    """Costs in [0, 1]: distances of points, so that some candidates are close rivals."""
    points, y_true = rng.normal(size=(k, 2)), rng.normal(size=(m, 2))
    return 1 - np.exp(-((points[:, None] - y_true[None]) ** 2).sum(axis=2) / 2)


def test_full_comparison_is_minimum_bayes_risk_over_distinct_samples():
    words = [["cat", "cart", "cat", "bat"], ["dog", "dig"]]
    weights = [[1, 2, 3, 1], [1, 3]]
    decisions = cs.decide(distance, samples=words, weights=weights)
    for i in range(2):
        risk = {
            c: np.average([distance(c, s) for s in words[i]], weights=weights[i]) for c in words[i]
        }
        assert risk[decisions.labels[i]] == min(risk.values())
        assert decisions.expected_loss[i] == pytest.approx(min(risk.values()))
        assert gaps(decisions)[i] == pytest.approx(np.diff(sorted(risk.values()))[0])
    assert decisions.n_calls.tolist() == [9, 4]
    assert decisions.certified.all()
    columns = "label expected_loss runner_up gap certified n_calls"
    assert list(decisions.to_frame()) == columns.split()
    assert decisions.to_frame()["label"].tolist() == list(decisions.labels)


def test_equal_labels_are_merged_and_no_pair_is_called_twice():
    metric = Counting({(a, b): float(a != b) for a in "abc" for b in "abc"})
    decisions = cs.decide(metric, samples=[list("abacaba")], budget=1000)
    assert len(metric.calls) == len(set(metric.calls)) == 9 == decisions.n_calls[0]
    lists = [[[1, 2], [1, 2], np.array([1, 2]), [3]]]
    decided = cs.decide(lambda a, b: float(len(a) != len(b)), samples=lists)
    assert decided.n_calls[0] == 4  # two distinct lists
    assert decided.expected_loss[0] == pytest.approx(0.25)


def test_a_metric_from_prediction_to_truth_need_not_be_symmetric():
    costs = {("a", "a"): 0, ("a", "b"): 1, ("b", "a"): 0.1, ("b", "b"): 0}
    decisions = cs.decide(lambda pred, true: costs[pred, true], samples=[["a", "a", "b"]])
    assert decisions.labels[0] == "b"
    assert decisions.runner_up[0] == "a"


def test_candidates_need_not_be_samples_and_one_alone_is_chosen():
    decisions = cs.decide(
        distance, samples=[["cat", "bat"]] * 2, candidates=[["hat", "dog"], ["x"]]
    )
    assert decisions.labels.tolist() == ["hat", "x"]
    assert decisions.runner_up.tolist() == ["dog", None]
    assert math.isnan(gaps(decisions)[1])


@pytest.mark.parametrize("budget", [1, 3, 12, 50, 200, 599])
def test_the_budget_is_never_exceeded_and_no_call_is_repeated(budget):
    rng = np.random.default_rng(budget)
    for k, m in ((1, 700), (12, 50), (30, 20)):
        metric = Counting(random_table(rng, k, m))
        decisions = decide_from_samples(
            metric,
            [list(range(m))],
            candidates=[list(range(k))],
            weights=rng.random(m),
            budget=budget,
            rng=budget,
        )
        assert len(metric.calls) == len(set(metric.calls)) == decisions.n_calls[0]
        assert 1 <= decisions.n_calls[0] <= budget
        assert np.isfinite(decisions.expected_loss[0])


# Matrices on which a careless bound fails: rivals a hair better over few heavy samples, costs at
# both ends of the range, exact ties, skewed weights.
def adversarial(rng, kind):
    k, m = 6, 40
    weights = rng.random(m)
    if kind == "ends":
        table = (rng.random((k, m)) < 0.5).astype(float)
    elif kind == "rare":
        table = np.full((k, m), 0.5)
        table[:, rng.integers(m, size=3)] = rng.random((k, 3))
    elif kind == "skewed":
        table, weights = rng.random((k, m)), rng.pareto(0.7, size=m) + 1e-3
    else:
        table = np.repeat(rng.random((3, m)), 2, axis=0)
        table[1] = np.clip(table[0] + rng.choice([-0.05, 0.05], size=m), 0, 1)
    return table, weights / weights.sum()


@pytest.mark.parametrize("kind", ["ends", "rare", "skewed", "ties"])
@pytest.mark.parametrize("confidence", [0.5, 0.8])
def test_certified_choices_are_the_best_as_often_as_stated(kind, confidence):
    rng = np.random.default_rng(11)
    wrong = certified = 0
    repetitions = 400
    for repetition in range(repetitions):
        table, weights = adversarial(rng, kind)
        decisions = decide_from_samples(
            lambda c, s, table=table: table[c, s],
            [list(range(table.shape[1]))],
            candidates=[list(range(len(table)))],
            weights=[weights],
            budget=table.size - 1,
            confidence=confidence,
            rng=repetition,
        )
        risks = table @ weights
        certified += decisions.certified[0]
        wrong += decisions.certified[0] and risks[decisions.labels[0]] > risks.min() + 1e-12
    assert certified > 0
    # three standard errors of a binomial count beside the stated share
    error = 1 - confidence
    assert wrong <= repetitions * error + 3 * math.sqrt(repetitions * error * confidence)


def test_evidence_against_the_best_is_rare_whatever_the_leader():
    """The bound itself: how often the true best is dropped, where nothing else may stop it."""
    rng = np.random.default_rng(12)
    dropped = 0
    for repetition in range(500):
        table = np.full((2, 60), 0.5)
        table[0] = rng.permutation(np.repeat([0.0, 1.0], 30))  # equal means: the hardest null
        decisions = decide_from_samples(
            lambda c, s, table=table: table[c, s],
            [list(range(60))],
            candidates=[[0, 1]],
            budget=119,
            confidence=0.8,
            rng=repetition,
        )
        dropped += decisions.n_calls[0] < 118
    # either may be dropped, each with probability at most 0.2
    assert 0 < dropped <= 500 * 0.4 + 3 * math.sqrt(500 * 0.4 * 0.6)


def test_confidence_one_drops_only_what_cannot_win():
    rng = np.random.default_rng(13)
    for repetition in range(100):
        table, weights = adversarial(rng, "skewed")
        decisions = decide_from_samples(
            lambda c, s, table=table: table[c, s],
            [list(range(table.shape[1]))],
            candidates=[list(range(len(table)))],
            weights=[weights],
            budget=table.size - 1,
            confidence=1.0,
            rng=repetition,
        )
        risks = table @ weights
        if decisions.certified[0]:
            assert risks[decisions.labels[0]] == pytest.approx(risks.min(), abs=1e-12)
        assert decisions.certified[0] or decisions.n_calls[0] <= table.size - 1


def test_elimination_saves_calls_where_candidates_differ():
    rng = np.random.default_rng(14)
    table = random_table(rng, 60, 300)
    decisions = decide_from_samples(
        lambda c, s: table[c, s],
        [list(range(300))],
        candidates=[list(range(60))],
        budget=table.size - 1,
        rng=0,
    )
    assert decisions.certified[0]
    assert decisions.n_calls[0] < table.size / 2
    assert table[decisions.labels[0]].mean() == pytest.approx(table.mean(axis=1).min())
    tight = decide_from_samples(
        lambda c, s: table[c, s],
        [list(range(300))],
        candidates=[list(range(60))],
        budget=table.size // 5,
        rng=0,
    )
    assert not tight.certified[0]
    assert "1 of 1" in tight.notes[0]
    assert table[tight.labels[0]].mean() <= table.mean(axis=1).min() + 0.01


def test_one_draw_estimates_the_risk_without_bias():
    rng = np.random.default_rng(15)
    table, weights = rng.random((1, 20)), rng.random(20)
    estimates = [
        decide_from_samples(
            lambda c, s: table[c, s],
            [list(range(20))],
            candidates=[[0]],
            weights=weights,
            budget=1,
            rng=seed,
        ).expected_loss[0]
        for seed in range(2000)
    ]
    error = np.std(estimates) / math.sqrt(len(estimates))
    assert np.mean(estimates) == pytest.approx((table @ weights)[0] / weights.sum(), abs=4 * error)


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"samples": []}, "at least one example"),
        ({"samples": [["a"], []]}, "samples of example 1 are empty"),
        ({"samples": ["cat", "dog"]}, "'cat' for example 0"),
        ({"samples": [["a"]], "weights": [[1, 2]]}, "weights of example 0 .* 1, got shape"),
        ({"samples": [["a", "b"]], "weights": [1, -1]}, "non-negative .* got -1 for example 0"),
        ({"samples": [["a", "b"]], "weights": [1, np.nan]}, "finite, .* got nan"),
        ({"samples": [["a", "b"]], "weights": [0, 0]}, "only zeros"),
        ({"samples": [["a"]], "weights": [[1], [1]]}, "got 2 rows for 1 examples"),
        ({"samples": [["a"]], "candidates": [["a"], ["b"]]}, "same examples, got 2 and 1"),
        ({"samples": [["a"]], "candidates": [[]]}, "candidates of example 0 are empty"),
        ({"samples": [["a", "b"]], "budget": 0}, "budget must be at least 1"),
        ({"samples": [["a", "b"]], "budget": 3, "confidence": 1.5}, "confidence must be"),
        ({"samples": [["a", "b"]], "budget": 3, "loss_range": 3}, "loss_range must be"),
        (
            {"samples": [["a", "b"]], "budget": 3, "loss_range": (1, 1)},
            r"loss_range\[1\] must be",
        ),
    ],
)
def test_bad_input_gets_one_line(call, message):
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        cs.decide(distance, **call)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [math.nan, math.inf, None, "0.5"])
def test_metrics_must_return_finite_numbers(value):
    with pytest.raises(
        ValueError, match=r"finite number, got .* prediction 'a' and the sample 'a'"
    ):
        cs.decide(lambda pred, true: value, samples=[["a", "b"]])


def test_a_budget_needs_a_metric_within_its_range():
    with pytest.raises(ValueError, match=r"returned 7 in example 0, outside loss_range=\(0, 1\)"):
        cs.decide(lambda pred, true: 7.0, samples=[["a", "b"]], budget=3)
    samples = [list("aaaaaaaabcd")]
    wide = cs.decide(
        lambda a, b: 7.0 * (a != b), samples=samples, budget=15, loss_range=(0, 7), rng=0
    )
    assert wide.labels[0] == "a"


def test_draws_of_one_example_have_one_length():
    with pytest.raises(ValueError, match="equal lengths"):
        cs.decide(Hamming(None), samples=[[0, 1, 1]])
