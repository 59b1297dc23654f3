"""Every registered loss: expected targets from marginals are the sums that they stand for."""

from itertools import product

import numpy as np
import pytest

import consistruct as cs
from consistruct.exceptions import CapabilityError
from consistruct.losses.base import dense_target
from consistruct.losses.registry import LOSSES

LISTED = [
    loss
    for entry in LOSSES.values()
    for loss in entry.examples
    if loss.true_labels.size is not None and loss.true_labels.size <= 512
]
WITH_PARTS = [loss for loss in LISTED if len(loss.true_labels.shape) == 1]


@pytest.mark.parametrize("loss", LISTED, ids=repr)
def test_probabilities_of_whole_labels_decide_any_loss(loss):
    p = np.random.default_rng(0).dirichlet(np.full(loss.true_labels.size, 0.5), 25)
    losses = p @ loss.matrix().T
    found = cs.decide(loss, p)
    codes = loss.predictions.index(found.labels)
    np.testing.assert_allclose(losses[np.arange(25), codes], losses.min(axis=1), atol=1e-9)
    np.testing.assert_allclose(found.expected_loss, losses.min(axis=1), atol=1e-9)


@pytest.mark.parametrize("loss", WITH_PARTS, ids=repr)
def test_independent_parts(loss):
    shape, states = loss.true_labels.shape, getattr(loss.true_labels, "n_states", 2)
    marginals = np.random.default_rng(1).dirichlet(np.ones(states), (6, *shape))
    loss = loss.without_sizes
    try:
        target, offset = loss.independent_target(marginals)
    except CapabilityError:  # which losses those are is asserted below
        return
    (T,) = shape
    labels = np.array(list(product(range(states), repeat=T)))
    p = np.prod([marginals[:, t][:, labels[:, t]] for t in range(T)], axis=0)  # (6, labels)
    np.testing.assert_allclose(target, p @ dense_target(loss.target(labels)), atol=1e-12)
    np.testing.assert_allclose(offset, p @ loss.offset(labels), atol=1e-12)
    if loss.part_targets is not None:  # then dependence makes no difference
        joint = np.random.default_rng(2).dirichlet(np.ones(len(labels)), 6)
        given = np.stack([[joint @ (labels[:, t] == a) for a in range(states)] for t in range(T)])
        target, _ = loss.independent_target(given.transpose(2, 0, 1))
        np.testing.assert_allclose(target, joint @ dense_target(loss.target(labels)), atol=1e-12)


def test_some_losses_have_parts_and_some_are_refused():
    independent = []
    for loss in WITH_PARTS:
        try:
            states = getattr(loss.true_labels, "n_states", 2)
            shape = (1, *loss.true_labels.shape, states)
            loss.without_sizes.independent_target(np.full(shape, 1.0 / states))
            independent.append(type(loss).__name__)
        except CapabilityError:
            pass
    every = {type(loss).__name__ for loss in WITH_PARTS}
    assert {"Hamming", "LabelCosts", "FBeta", "NDCG", "PrecisionAt"} <= set(independent)
    assert {"Kendall", "MeanAveragePrecision"} <= every - set(independent)
