"""Policies against their definitions: what a safer prediction counts, by listing what it holds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import consistruct as cs
from consistruct.guarantees.risk import RiskControl
from consistruct.guarantees.risk.policies import POLICIES, default_policy
from consistruct.guarantees.risk.policies.base import Options
from consistruct.guarantees.risk.policies.class_sets import _greedy
from consistruct.guarantees.risk.views import View
from consistruct.losses.registry import LOSSES
from tests.guarantees.risk.populations import DEFER_COST, NAMES, model_and_rows, population, served

SERVED = served()


def family_of(name, policy, rows=60):
    estimator, X, y = model_and_rows(name)
    loss = estimator.loss_
    options = Options(loss, DEFER_COST * loss.max_value)
    view = View.of(estimator, X[:rows])
    return estimator, POLICIES[policy].family(view, options), y[:rows]


def test_every_loss_has_a_policy_and_auto_finds_one():
    assert {name for name, _ in SERVED} == set(NAMES)
    for name in NAMES:
        estimator, X, y = model_and_rows(name)
        loss = estimator.loss_
        assert default_policy(loss) in POLICIES
        control = RiskControl(estimator, 0.9 * loss.max_value, max_loss=10 * loss.max_value)
        assert control.fit(X[:300], y[:300]).policy_ == default_policy(loss)
    assert {policy for _, policy in SERVED} == set(POLICIES)


@pytest.mark.parametrize(("name", "policy"), SERVED)
def test_ladders_are_what_policies_say_of_them(name, policy):
    found = population(name, policy)
    ladder = found.ladder
    assert (np.diff(ladder.thresholds, axis=1) >= 0).all() or np.isinf(ladder.thresholds).any()
    assert not np.isnan(ladder.thresholds).any()
    low, high = found.bounds
    assert ladder.losses.min() >= low - 1e-12
    assert ladder.losses.max() <= high + 1e-12
    if found.monotone:
        assert np.diff(ladder.losses, axis=1).max(initial=0.0) <= 1e-12
    if found.two_values:
        assert set(np.unique(ladder.losses)) <= {low, high}
    safest = POLICIES[policy].safest(Options(model_and_rows(name)[0].loss_, 0.0))
    assert ladder.losses[:, -1].min() >= safest - 1e-12


@pytest.mark.parametrize("name", sorted(NAMES))
def test_abstaining_answers_with_the_loss_itself(name):
    estimator, family, y = family_of(name, "abstain")
    losses = family.losses(y)
    own = estimator.task_losses(model_and_rows(name)[1][:60], y)
    if name == "abstain":  # its own abstentions are none of our answers
        own = np.where(estimator.predict(model_and_rows(name)[1][:60]) == 4, 0.0, own)
    np.testing.assert_allclose(losses[:, 0], own)
    assert not losses[:, 1].any()


def test_sets_count_the_least_loss_of_their_classes():
    for name in ("cost", "tree", "ordinal", "zero-one"):
        estimator, family, y = family_of(name, "sets")
        losses = family.losses(y)
        for rung in range(losses.shape[1]):
            sets = family.present(np.full(60, rung))
            for row, members in enumerate(sets):
                assert len(members) == rung + 1 == len(set(members))
                least = min(
                    float(estimator.loss_([member], [y_true])[0])
                    for member, y_true in itertools.product(members, [y[row]])
                )
                assert losses[row, rung] == pytest.approx(least)


def test_sets_for_the_zero_one_loss_take_classes_by_probability():
    estimator, family, _ = family_of("zero-one", "sets")
    chance = estimator.predict_proba(model_and_rows("zero-one")[1][:60])
    for row, order in enumerate(family.order):
        np.testing.assert_allclose(-family.thresholds[row], chance[row][order[1:]])
        assert order[0] == chance[row].argmax()


def test_sets_grow_by_the_class_of_largest_gain():
    rng = np.random.default_rng(0)
    matrix, chance = rng.random((4, 5)), rng.dirichlet(np.ones(5), size=20)
    first = (chance @ matrix.T).argmin(axis=1)
    order, gains = _greedy(chance, matrix, first)
    for row in range(20):
        inside = [first[row]]
        assert order[row, 0] == first[row]
        for rung in range(1, 4):
            before = chance[row] @ matrix[inside].min(axis=0)
            options = {
                c: before - chance[row] @ matrix[[*inside, c]].min(axis=0)
                for c in range(4)
                if c not in inside
            }
            best = max(options, key=options.get)
            assert gains[row, rung - 1] == pytest.approx(options[best])
            inside.append(order[row, rung])
            assert options[inside[-1]] == pytest.approx(options[best])


@pytest.mark.parametrize(
    "loss", [cs.losses.FBeta(4, 2.0, sizes=(0, 1, 2, 3, 4)), cs.losses.Hamming(4)]
)
@pytest.mark.parametrize("policy", ["grow", "shrink", "threshold"])
def test_label_sets_count_the_best_set_that_they_stand_for(loss, policy):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 3))
    Y = (X @ rng.normal(size=(3, 4)) + rng.normal(size=(150, 4)) > 0.5).astype(int)
    estimator = cs.StructuredPredictor(loss, cs.models.Ridge(features="linear", alpha=0.01))
    estimator.fit(X, Y)
    family = POLICIES[policy].family(View.of(estimator, X[:25]), Options(loss))
    losses = family.losses(Y[:25])
    every = np.array(list(itertools.product([0, 1], repeat=4)))
    for rung in range(5):
        for row, members in enumerate(family.present(np.full(25, rung))):
            assert members.sum() == (rung if policy == "grow" else 4 - rung)
            if policy == "grow":
                allowed = every[(every <= members).all(axis=1)]
            elif policy == "shrink":
                allowed = every[(every >= members).all(axis=1)]
            else:
                allowed = members[None]
            y_true = np.repeat(Y[[row]], len(allowed), axis=0)
            assert losses[row, rung] == pytest.approx(loss(allowed, y_true).min())


def test_probabilities_of_labels_are_those_of_the_true_labels():
    # of exact targets: their mean over true labels is the share of true labels with the label
    for loss in (cs.losses.Hamming(3), cs.losses.FBeta(3), cs.losses.FBeta(3, empty=0.0)):
        y_true = loss.true_labels.enumerate()
        target = loss.target(y_true)
        mean = np.asarray(target.mean(axis=0)).reshape(1, -1)
        np.testing.assert_allclose(loss.label_probabilities(mean)[0], y_true.mean(axis=0))


@pytest.mark.parametrize("name", ["ndcg", "precision-at", "eru", "map"])
def test_lists_count_only_the_items_that_are_shown(name):
    for loss in LOSSES[name].examples:
        rng = np.random.default_rng(2)
        orders, grades = loss.predictions.sample(30, rng), loss.true_labels.sample(30, rng)
        prefixes = loss.prefix_losses(orders, grades)
        np.testing.assert_allclose(prefixes[:, -1], loss(orders, grades))
        assert np.diff(prefixes, axis=1).max(initial=0.0) <= 1e-12


def test_a_list_of_ndcg_by_hand():
    loss = cs.losses.NDCG(3)
    found = loss.prefix_losses([[1, 0, 2]], [[1, 0, 1]])[0]
    ideal = 1 + 1 / np.log2(3)
    gains = np.cumsum([0, 1 / np.log2(3), 1 / np.log2(4)])
    np.testing.assert_allclose(found, 1 - gains / ideal)


@pytest.mark.parametrize("tree", LOSSES["tree"].examples, ids=repr)
def test_tree_nodes_stand_for_the_leaves_below_them(tree):
    parents, leaves = tree.parents, tree.leaves
    matrix = cs.losses.Tree(parents, tree.weights, kind=tree.kind).matrix()

    def below(node):
        found = []
        for position, leaf in enumerate(leaves):
            step = leaf
            while step >= 0 and step != node:
                step = parents[step]
            if step == node or node == len(parents):
                found.append(position)
        return found

    for node in range(len(parents) + 1):
        assert tree.leaves_below[node] == len(below(node))
        np.testing.assert_allclose(tree.least_below[node], matrix[below(node)].min(axis=0))
    for prediction, lineage in enumerate(tree.lineage):
        climbed = [int(tree._prediction_nodes[prediction])]
        while parents[climbed[-1]] >= 0:
            climbed.append(int(parents[climbed[-1]]))
        assert lineage[: len(climbed)].tolist() == climbed
        assert len(below(lineage[-1])) == len(leaves)


def test_ancestors_are_named():
    names = ("root", "L", "R", "a", "b", "c", "d")
    tree = cs.losses.Tree([-1, 0, 0, 1, 1, 2, 2], names=names)
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 2))
    y = np.array(list("abcd"))[(2 * (X[:, 0] > 0) + (X[:, 1] > 0)).astype(int)]
    model = cs.TaskLossClassifier(tree, cs.models.Ridge(features="linear", alpha=0.01))
    family = POLICIES["ancestor"].family(View.of(model.fit(X, y), X[:20]), Options(tree))
    up = {"a": "L", "b": "L", "c": "R", "d": "R"}
    leaves = family.present(np.zeros(20, dtype=int)).tolist()
    assert leaves == model.predict(X[:20]).tolist()
    assert family.present(np.ones(20, dtype=int)).tolist() == [up[leaf] for leaf in leaves]
    assert set(family.present(np.full(20, 2))) == {"root"}
    assert family.losses(y[:20])[0].tolist() == [0.0] * family.answered.shape[1]


def test_handing_over_costs_the_price_and_the_loss_of_the_second_model():
    estimator, X, y = model_and_rows("cost")
    rng = np.random.default_rng(4)
    second = cs.TaskLossClassifier(estimator.loss_, cs.models.Ridge(features="linear"))
    second.fit(X[:100], rng.permutation(y[:100]))
    person = POLICIES["defer"].family(View.of(estimator, X[:50]), Options(estimator.loss_, 0.2))
    np.testing.assert_allclose(person.losses(y[:50])[:, 1], 0.2)
    other = POLICIES["defer"].family(
        View.of(estimator, X[:50]), Options(estimator.loss_, 0.2, second)
    )
    expected = 0.2 + second.task_losses(X[:50], y[:50])
    np.testing.assert_allclose(other.losses(y[:50])[:, 1], expected)
    rungs = np.arange(50) % 2
    answers = other.present(rungs)
    assert answers[1::2].tolist() == second.predict(X[1:50:2]).tolist()
    assert answers[::2].tolist() == estimator.predict(X[:50:2]).tolist()
    assert person.present(rungs)[1] is None
