"""Every registered loss as a criterion: values, gradients and decisions of the NumPy side."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import consistruct as cs
from consistruct.losses import FBeta, Hamming
from consistruct.losses.base import dense_target
from consistruct.structures import Centered, Chain, Orthonormalized, Separable
from consistruct.torch import Decoder, Head, TaskLoss
from tests.torch.comparisons import compare_with_numpy
from tests.torch.members import CASES, LOSSES_TRIED, batch, named


@pytest.mark.parametrize(("loss", "name"), CASES, ids=named)
def test_values_gradients_and_decisions(loss, name):
    compare_with_numpy(loss, name)


@pytest.mark.parametrize("loss", LOSSES_TRIED, ids=repr)
def test_ties_are_broken_as_on_the_host(loss):
    space = loss.score_space
    theta = torch.as_tensor(np.random.default_rng(1).integers(-1, 2, (9, loss.score_space.width)))
    found, expected = Decoder(loss)(theta.double()).numpy(), space.decode(theta.double().numpy())
    if "augmenting" in space.tie_rule:
        score = (space.embed(found) * theta.numpy()).sum(1)
        np.testing.assert_allclose(score, (space.embed(expected) * theta.numpy()).sum(1))
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["quadratic", "log", "hinge", "softmax-margin"])
@pytest.mark.parametrize("scores", [Separable(3, 3), Chain(3, 3)], ids=repr)
def test_hamming_in_other_scores(name, scores):
    compare_with_numpy(cs.losses.Hamming(3, 3), name, scores)


@pytest.mark.parametrize(
    ("loss", "scores"),
    [
        (cs.losses.Ordinal(4), Orthonormalized(cs.losses.Ordinal(4).score_space)),
        (cs.losses.Mixed((2, 2), 0.4), cs.losses.Block((2, 2)).score_space),  # a projection
        (cs.losses.NDCG(3), Centered(cs.losses.NDCG(3).score_space)),
    ],
    ids=repr,
)
def test_quadratic_in_other_scores(loss, scores):
    compare_with_numpy(loss, "quadratic", scores)


@pytest.mark.parametrize("name", ["quadratic", "log", "hinge", "softmax-margin"])
def test_logits_are_two_scores_that_differ(name):
    loss = cs.losses.Hamming(4)
    criterion = TaskLoss(loss, name, scores="logits")
    assert criterion.width == 4
    z, true = batch(loss, 4)
    both = torch.stack([-z / 2, z / 2], 2).flatten(1)
    full = TaskLoss(loss, name, scores=loss.score_space)
    for weight in (None, torch.arange(6.0)):
        torch.testing.assert_close(
            criterion(z, true, weight=weight), full(both, true, weight=weight)
        )
    torch.testing.assert_close(criterion.decode(z), full.decode(both))
    if name == "log":
        torch.testing.assert_close(criterion.expected_target(z), full.expected_target(both))
    if name == "quadratic":  # the same function of predictions, with the constant of the true label
        best = true.double() * 0.5 - 0.25
        target = loss.target(true.numpy()).toarray()
        np.testing.assert_allclose(criterion.expected_target(best).numpy(), target, atol=1e-12)


def test_expected_losses_of_listed_predictions():
    loss = cs.losses.CostMatrix([[0, 5, 9], [1, 0, 1], [4, 4, 0]], rows="pred")
    p = torch.tensor([[0.2, 0.5, 0.3]], dtype=torch.float64)
    prices = p.numpy() @ loss.M.T
    scores = torch.as_tensor(-(p.numpy() @ loss.target([0, 1, 2])))
    found = TaskLoss(loss).expected_losses(scores)
    np.testing.assert_allclose(found.numpy(), prices)
    found = TaskLoss(loss, "log").expected_losses(p.log())
    np.testing.assert_allclose(found.numpy(), prices)
    assert TaskLoss(loss, "log").decode(p.log()).item() == prices.argmin()


def test_a_thousand_labels_and_more():
    loss = cs.losses.Hamming(1000)
    theta, true = batch(loss, 2000, n=2)
    value = TaskLoss(loss)(theta, true)
    expected, _ = cs.surrogates.QuadraticSurrogate(loss).value_and_gradient(
        theta.numpy(), true.numpy()
    )
    np.testing.assert_allclose(value.item(), expected.mean())
    for huge in (cs.losses.NDCG(60, 10, n_grades=5), cs.losses.Matching(48)):
        theta, true = batch(huge, huge.score_space.width, n=2)
        assert torch.isfinite(TaskLoss(huge)(theta, true))
        np.testing.assert_array_equal(
            Decoder(huge)(theta).numpy(), huge.score_space.decode(theta.numpy())
        )


def test_heads_have_the_width_and_the_units_of_the_criterion():
    costs = 1000.0 * (1 - np.eye(3))
    criterion = TaskLoss(cs.losses.CostMatrix(costs, rows="pred"))
    true = torch.tensor([0, 0, 0, 1])
    head = Head(5, criterion, true)
    start = head(torch.ones(2, 5))
    assert start.shape == (2, criterion.width)
    mean = cs.losses.CostMatrix(costs, rows="pred").target(true.numpy()).mean(0)
    np.testing.assert_allclose(start[0].detach().numpy(), -mean, rtol=1e-6)  # of the labels
    assert 400 < head.scale < 600
    assert set(head.state_dict()) == {"linear.weight", "linear.bias", "shift", "scale"}
    assert Head(5, Decoder("fbeta:3"), bias=False).linear.bias is None
    assert Head(5, TaskLoss("zero-one:3", "log")).scale == 1
    assert Head(5, TaskLoss(cs.losses.Hamming(None, 4)))(torch.ones(2, 7, 5)).shape == (2, 7, 4)


@pytest.mark.parametrize(
    "loss", [FBeta(3), FBeta(3, 2.0, empty=0.5), FBeta(4, sizes=(1, 2, 4))], ids=repr
)
def test_members_and_sizes_tell_the_expected_target(loss):
    """At the logarithms of the true probabilities the slope is zero, and decisions are Bayes'."""
    rng = np.random.default_rng(0)
    sets = loss.true_labels.enumerate()
    distribution = rng.dirichlet(np.ones(len(sets)))
    criterion = TaskLoss(loss, "member-log", reduction="none")
    blocks = [s for s in loss.true_labels.allowed_sizes if 0 < s < loss.T]
    if loss.T in loss.true_labels.allowed_sizes:
        blocks.append(loss.T)
    size = sets.sum(1)
    scores = []
    for t in range(loss.T):
        present = [distribution[(sets[:, t] == 1) & (size == s)].sum() for s in blocks]
        scores += list(np.log([1.0 - sum(present), *present]))
    if 0 in loss.true_labels.allowed_sizes:
        empty = distribution[size == 0].sum()
        scores.append(np.log(empty / (1.0 - empty)))
    theta = torch.tensor([scores], dtype=torch.float64, requires_grad=True)
    assert theta.shape[1] == criterion.width
    values = criterion(theta.expand(len(sets), -1), torch.as_tensor(sets))
    (values @ torch.as_tensor(distribution)).backward()
    np.testing.assert_allclose(theta.grad.numpy(), 0.0, atol=1e-12)
    target = distribution @ dense_target(loss.target(sets))
    np.testing.assert_allclose(criterion.expected_target(theta)[0].detach(), target, atol=1e-12)
    every = loss.predictions.enumerate()
    risk = [(distribution * loss(np.tile(c, (len(sets), 1)), sets)).sum() for c in every]
    decided = criterion.decode(theta)[0].numpy()
    np.testing.assert_array_equal(decided, every[int(np.argmin(risk))])


def test_members_and_sizes_are_for_f_measures():
    with pytest.raises(ValueError, match="is only for F-measures"):
        TaskLoss(Hamming(3), "member-log")
