"""Regret of decisions: against listing, with oracles of one's own, and its error paths."""

from __future__ import annotations

import numpy as np
import pytest

from consistruct import metrics
from consistruct.exceptions import CapabilityError, ConsistructError, LossSpecError
from consistruct.losses import Decision, parse_loss
from consistruct.losses.registry import LOSSES
from consistruct.structures import (
    Decisions,
    GraphPath,
    GridPath,
    Knapsack,
    MixedInteger,
    TopK,
    Tour,
)
from consistruct.structures.decisions import counted_calls
from consistruct.testing.labels import check_label_set
from consistruct.testing.members import check_member

EXAMPLES = [
    *LOSSES["decision"].examples,
    Decision(Knapsack([2, 3, 4, 1], 5)),
    Decision(GraphPath([[0, 1], [1, 2], [0, 2]], 0, 2)),
]


def first_of_three(costs):
    return np.eye(3)[np.argmin(costs, axis=1)]


@pytest.mark.parametrize("loss", EXAMPLES, ids=repr)
def test_regret_is_cost_less_the_least_one(loss):
    check_member(loss)
    check_label_set(loss.true_labels)
    rng = np.random.default_rng(0)
    feasible = loss.solver.listed()
    true = loss.true_labels.sample(12, rng)
    pred = feasible[rng.integers(len(feasible), size=12)]
    every = true @ feasible.T
    taken = (pred * true).sum(axis=1)
    expected = taken - every.min(axis=1) if loss.sense == "min" else every.max(axis=1) - taken
    np.testing.assert_allclose(loss(pred, true), expected, atol=1e-12)
    # offset + ⟨embed, target⟩, and the decoder of minus a mean target is the best decision
    inner = (loss.score_space.embed(pred) * loss.target(true)).sum(axis=1)
    np.testing.assert_allclose(loss.offset(true) + inner, expected, atol=1e-12)
    distribution = rng.dirichlet(np.ones(12))
    risks = distribution @ np.array([[loss(z[None], c[None])[0] for z in feasible] for c in true])
    mean = distribution @ loss.target(true)
    decided = loss.score_space.decode(-mean[None])
    chosen = np.flatnonzero((feasible == decided).all(axis=1))
    np.testing.assert_allclose(risks[chosen], risks.min(), atol=1e-12)
    assert (loss(pred, true) <= loss.max_value + 1e-12).all()
    np.testing.assert_array_equal(loss(loss.best(true), true), np.zeros(12))
    assert loss(pred[:0], true[:0]).shape == (0,)


def test_best_values_are_solved_once():
    loss = Decision(GridPath(3, 3))
    costs = np.random.default_rng(0).random((5, 12))
    with counted_calls() as calls:
        loss.offset(costs)
        loss.offset(costs[::-1])
        loss(loss.best(costs), costs)
        assert calls.n == 10  # five for the offsets, five for the best decisions
        loss.cost(loss.predictions.sample(5, np.random.default_rng(0)), costs)
        assert calls.n == 15


@pytest.mark.parametrize("batch", [True, False])
@pytest.mark.parametrize("sense", ["min", "max"])
def test_a_function_of_ones_own(batch, sense):
    pick = np.argmin if sense == "min" else np.argmax

    def many(costs):
        return np.eye(3)[pick(costs, axis=1)]

    def one(cost):
        return np.eye(3)[pick(cost)]

    loss = Decision(many if batch else one, 3, sense=sense, batch=batch, name="pick one")
    ready = Decision(TopK(3, 1), sense=sense)
    rng = np.random.default_rng(1)
    costs, pred = rng.normal(size=(7, 3)), np.eye(3)[rng.integers(3, size=7)]
    np.testing.assert_allclose(loss(pred, costs), ready(pred, costs))
    np.testing.assert_array_equal(loss.best(costs), ready.best(costs))
    assert loss.value_range == (0.0, np.inf)


def test_heuristics_may_have_negative_regret():
    loss = Decision(lambda costs: np.tile([1.0, 0.0], (len(costs), 1)), 2, exact=False)
    assert loss([[0.0, 1.0]], [[3.0, 1.0]]) == pytest.approx([-2.0])
    assert loss.value_range[0] == -np.inf
    assert not loss.score_space.decoding_is_exact


def test_answers_that_the_check_refuses_are_refused():
    def check(decisions):
        return decisions.sum(axis=1) == 1

    good = Decision(first_of_three, 3, check=check)
    good.best([[1.0, 2.0, 3.0]])
    with pytest.raises(ValueError, match="row 0 is not one"):
        good([[1.0, 1.0, 0.0]], [[1.0, 2.0, 3.0]])
    bad = Decision(lambda costs: np.ones_like(costs), 3, check=check)
    with pytest.raises(ConsistructError, match="row 0 is refused by the check"):
        bad.best([[1.0, 2.0, 3.0]])
    wrong = Decision(first_of_three, 3, check=lambda decisions: True)
    with pytest.raises(ConsistructError, match="yes or no for each"):
        wrong.best([[1.0, 2.0, 3.0]])
    with pytest.raises(ConsistructError, match=r"decisions of shape \(1, 3\)"):
        Decision(lambda costs: [[1.0]], 3).best([[1.0, 2.0, 3.0]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Decision(first_of_three), "n_costs must be set"),
        (lambda: Decision(3, 3), "must be a function"),
        (lambda: Decision(GridPath(2, 2), 5), "has 4 costs, got n_costs=5"),
        (lambda: Decision(GridPath(2, 2), sense="least"), "sense must be"),
        (lambda: Decision(GridPath(2, 2), exact=False), "function of your own"),
        (lambda: Decision(GraphPath([[0, 1]], 0, 1), sense="max"), "only minimizes"),
        (lambda: Decision(GraphPath([[0, 1]], 0, 1))([[1.0]], [[-1.0]]), "non-negative"),
        (lambda: Decision(GridPath(2, 2))([[1, 1, 0, 0]], [[1.0] * 4]), "feasible decisions"),
        (lambda: Decision(GridPath(2, 2))([[1, 0, 1, 0]], [[1.0] * 3]), r"shape \(n, 4\)"),
        (lambda: Decision(GridPath(2, 2))([[1, 0, 1, 0]], [[1.0, np.nan, 0, 0]]), "must be finite"),
        (lambda: parse_loss("path:5"), "path:5x5"),
        (lambda: parse_loss("decision"), "names a built-in oracle"),
        (lambda: parse_loss("knapsack:3"), "build it in Python"),
        (lambda: parse_loss("tsp:99"), "at most 50"),
    ],
)
def test_bad_input_is_refused_in_one_line(make, message):
    with pytest.raises((ValueError, TypeError), match=message) as raised:
        make()
    assert "\n" not in str(raised.value)


def test_metrics_of_regret():
    costs = [[1.0, 2.0, 2.0, 0.5], [1.0, 1.0, 1.0, 1.0]]
    decisions = [[1, 0, 1, 0], [1, 0, 1, 0]]
    loss = Decision(GridPath(2, 2))
    np.testing.assert_allclose(metrics.regret(costs, decisions, loss=loss), [0.5, 0.0])
    assert metrics.normalized_regret(costs, decisions, loss="path:2x2") == pytest.approx(0.5 / 4.5)
    weighted = metrics.normalized_regret(costs, decisions, loss=loss, sample_weight=[1, 0])
    assert weighted == pytest.approx(0.2)
    assert metrics.task_loss(costs, decisions, loss=loss) == pytest.approx(0.25)
    with pytest.raises(TypeError, match="must be a Decision"):
        metrics.regret([0], [0], loss="zero_one:2")
    with pytest.raises(ValueError, match="all 0"):
        metrics.normalized_regret([[0.0] * 4], [[1, 0, 1, 0]], loss=loss)


def test_specs_of_ready_made_oracles():
    assert parse_loss("path:5x5") == parse_loss("decision:path:5x5") == Decision(GridPath(5, 5))
    assert parse_loss("top_k:9:2") == Decision(TopK(9, 2), sense="max")
    assert parse_loss("tsp:6") == Decision(Tour(6))
    assert parse_loss("assignment:3").n_costs == 9
    assert parse_loss("spanning-tree:4").n_costs == 6
    assert parse_loss("arborescence:3").n_costs == 4
    with pytest.raises(LossSpecError, match="did you mean path"):
        parse_loss("pth:5x5")


@pytest.mark.parametrize("oracle", [GridPath(3, 3), GridPath(5, 5), Knapsack([2, 3, 4, 1, 2], 6)])
def test_gram_of_the_uniform_measure_by_counting(oracle):
    space = Decisions(oracle, "uniform")
    rows = oracle.listed()
    gram = rows.T @ rows / len(rows)
    np.testing.assert_allclose(space.gram().dense(), gram, atol=1e-12)
    theta = np.random.default_rng(0).normal(size=(3, oracle.n_costs))
    np.testing.assert_allclose(space.gram().solve(theta), theta @ np.linalg.pinv(gram), atol=1e-8)
    assert space.rank == np.linalg.matrix_rank(rows)
    assert space.n_decisions == len(rows)
    kernel = rows @ np.linalg.pinv(gram) @ rows.T
    gaps = np.diag(kernel)[:, None] + np.diag(kernel) - 2 * kernel
    assert space.effective_classes() == pytest.approx(gaps.max() / 2)
    assert space.contains_constant == (
        np.linalg.matrix_rank(np.column_stack([rows, np.ones(len(rows))])) == space.rank
    )


def test_identity_gram_and_diameters():
    paths = Decision(GridPath(5, 5)).score_space
    assert paths.effective_classes() == 8.0  # D² = 16
    assert paths.effective_classes().exact
    assert Decisions(GridPath(5, 5), "uniform").effective_classes() == pytest.approx(70.0)
    large = Decisions(GridPath(9, 9), "uniform")  # 12,870 paths: a certified bound
    assert not large.effective_classes().exact
    own = Decision(first_of_three, 3, diameter=np.sqrt(2))
    assert own.score_space.effective_classes() == pytest.approx(1.0)
    with pytest.raises(CapabilityError, match="pass diameter="):
        Decision(first_of_three, 3).score_space.effective_classes()
    with pytest.raises(ValueError, match="measure must be"):
        Decisions(GridPath(2, 2), "all")


def test_decoders_of_costs_at_least_zero_cut_estimates_off():
    oracle = GraphPath([[0, 1], [1, 2], [0, 2]], 0, 2)
    decoded = Decisions(oracle).decode([[0.5, -1.0, -2.0]])  # costs −0.5, 1, 2
    np.testing.assert_array_equal(decoded, [[1.0, 1.0, 0.0]])


def test_general_programs_as_decisions():
    loss = Decision(
        MixedInteger([[1.0, 1.0]], upper=2.5, high=3.0, integer=[True, False]), sense="max"
    )
    assert loss([[1.0, 0.0]], [[2.0, 1.0]]) == pytest.approx([2.5])
