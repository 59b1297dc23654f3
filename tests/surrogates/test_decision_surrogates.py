"""SPO+ and perturbed Fenchel–Young: by their definitions over listed decisions, and trained."""

from __future__ import annotations

import numpy as np
import pytest

import consistruct as cs
from consistruct.exceptions import ConsistructError
from consistruct.learning.models import Costs, Linear
from consistruct.losses import CostMatrix, Decision, Hamming
from consistruct.structures import GridPath, Knapsack, TopK
from consistruct.structures.decisions import counted_calls
from consistruct.surrogates import (
    SURROGATES,
    PerturbedFenchelYoungSurrogate,
    SPOPlusSurrogate,
    make_surrogate,
)

LOSSES = [
    Decision(GridPath(3, 3)),
    Decision(Knapsack([2, 3, 4, 1], 5), sense="max"),
    Decision(TopK(4, 2)),
    CostMatrix([[0, 1, 3], [2, 0, 1], [1, 4, 0]], rows="pred"),
    Hamming(3),
]


def listed(loss):
    """F of all predictions."""
    if isinstance(loss, Decision):
        return loss.solver.listed()
    return loss.score_space.matrix()


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_spo_plus_by_its_definition(loss):
    """max_z ⟨c − 2ĉ, z⟩ + 2⟨ĉ, z*⟩ − ⟨c, z*⟩ with ĉ = −θ, over all predictions."""
    rng = np.random.default_rng(0)
    F, true = listed(loss), loss.true_labels.sample(8, rng)
    target = np.asarray(cs.losses.base.dense_target(loss.target(true)))
    theta = rng.normal(size=target.shape)
    surrogate = make_surrogate("spo_plus", loss)
    values, slopes = surrogate.value_and_gradient(theta, true)
    best = F[(target @ F.T).argmin(axis=1)]
    expected = ((target + 2 * theta) @ F.T).max(axis=1) - ((target + 2 * theta) * best).sum(axis=1)
    np.testing.assert_allclose(values, expected, atol=1e-12)
    # an upper bound of the regret of what would be decided
    decided = surrogate.decode(theta)
    least = (target @ F.T).min(axis=1)
    regret = (loss.score_space.embed(decided) * target).sum(axis=1) - least
    assert (values >= regret - 1e-12).all()
    _check_slopes(surrogate, theta, true, slopes)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_perturbed_fenchel_young_by_its_definition(loss):
    rng = np.random.default_rng(1)
    F, true = listed(loss), loss.true_labels.sample(5, rng)
    target = np.asarray(cs.losses.base.dense_target(loss.target(true)))
    theta = rng.normal(size=target.shape)
    surrogate = PerturbedFenchelYoungSurrogate(loss, sigma=0.7, n_samples=6)
    values, slopes = surrogate.value_and_gradient(theta, true)
    best = F[(target @ F.T).argmin(axis=1)]
    moved = theta[:, None] + surrogate._noise
    expected = (moved @ F.T).max(axis=2).mean(axis=1) - (theta * best).sum(axis=1)
    np.testing.assert_allclose(values, expected, atol=1e-12)
    _check_slopes(surrogate, theta, true, slopes)


def _check_slopes(surrogate, theta, true, slopes):
    """Against finite differences: both functions are linear between kinks."""
    step = 1e-7
    for column in range(theta.shape[1]):
        ahead, behind = theta.copy(), theta.copy()
        ahead[:, column] += step
        behind[:, column] -= step
        gap = surrogate.value_and_gradient(ahead, true)[0]
        gap = gap - surrogate.value_and_gradient(behind, true)[0]
        np.testing.assert_allclose(gap / (2 * step), slopes[:, column], atol=1e-6)


@pytest.mark.parametrize("name", ["spo-plus", "perturbed-fenchel-young"])
def test_training_and_fine_tuning_lower_the_regret(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    mean = (X @ rng.normal(size=(3, 12)) / 2 + 3) ** 6 / 3**6
    C = mean * rng.uniform(0.5, 1.5, mean.shape)
    loss = Decision(GridPath(3, 3))
    linear = Linear(name, decoding="argmax", solver="sgd", alpha=1e-4)
    scratch = cs.StructuredPredictor(loss, linear, random_state=0).fit(X, C)
    plain = Costs(["linear"], powers=(0,), regret_rows=0)
    fitted = cs.StructuredPredictor(loss, plain, random_state=0).fit(X, C)
    tuning = Costs(["linear"], powers=(0,), regret_rows=0, surrogate=name, n_epochs=5)
    with counted_calls() as calls:
        tuned = cs.StructuredPredictor(loss, tuning, random_state=0).fit(X, C)
    assert calls.n == tuned.model_.n_oracle_calls_ > 300 * 5
    floor = cs.StructuredPredictor(loss, "ridge").fit(X[:5], C[:5]).score(X, C)
    assert tuned.score(X, C) > fitted.score(X, C)
    assert scratch.score(X, C) > floor


def test_kernel_fits_can_be_tuned_and_other_models_cannot():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    C = np.exp(X @ rng.normal(size=(2, 12)))
    model = Costs(["kernel"], surrogate="spo_plus", n_epochs=1, regret_rows=0)
    fitted = cs.StructuredPredictor("path:3x3", model, random_state=0).fit(X, C)
    assert fitted.predict(X).shape == (80, 12)
    with pytest.raises(cs.exceptions.CapabilityError, match="out_of_fold"):
        fitted.model_.out_of_fold()
    with pytest.raises(ValueError, match="tunes only linear and kernel fits"):
        cs.StructuredPredictor("path:3x3", Costs(["log"], surrogate="spo_plus")).fit(X, C)


def test_registry_states_why_they_are_not_analyzed():
    for cls in (SPOPlusSurrogate, PerturbedFenchelYoungSurrogate):
        assert SURROGATES[cls.name].not_analyzed
    with pytest.raises(ConsistructError, match="symmetric noise"):
        cs.calibration_function("path:3x3", surrogate="spo-plus")
    with pytest.raises(ValueError, match="sigma must be"):
        PerturbedFenchelYoungSurrogate(LOSSES[0], sigma=0.0)
