"""Networks inside the estimators: every kind of label, checkpoints, files, clear errors."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import consistruct as cs
from consistruct.decisions.statistics import ClassProbabilities
from consistruct.exceptions import CapabilityError, ModelFileError
from consistruct.learning import load, save
from consistruct.learning.models import Ridge, Stack, Torch
from consistruct.learning.statistics import TargetValues

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 4))
CLASSES = (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(int) + (X[:, 2] > 0.5)
SETS = (X @ RNG.normal(size=(4, 5)) + 0.3 * RNG.normal(size=(240, 5)) > 0.2).astype(int)
QUICK = {"max_epochs": 30, "learning_rate": 0.01, "batch_size": 32, "device": "cpu"}


def fitted(loss, y, **settings):
    model = Torch((32,), **{**QUICK, **settings})
    return cs.TaskLossClassifier(loss, model, random_state=0).fit(X, y)


@pytest.mark.parametrize(
    ("loss", "y", "bound"),
    [
        ("zero_one", CLASSES, 0.2),
        (
            cs.losses.CostMatrix([[0, 1, 900], [100, 0, 200], [900, 300, 0]], rows="pred"),
            CLASSES,
            60.0,
        ),
        ("ordinal", CLASSES, 0.25),
        ("fbeta", SETS, 0.2),
        ("hamming", SETS, 0.15),
    ],
)
@pytest.mark.parametrize("surrogate", ["quadratic", "log"])
def test_networks_learn(loss, y, bound, surrogate):
    model = fitted(loss, y, surrogate=surrogate)
    assert -model.score(X, y) < bound
    classes = surrogate == "log" and y.ndim == 1
    assert isinstance(model.statistic_, ClassProbabilities if classes else TargetValues)
    assert len(model.model_.path_["held_out"]) == model.model_.n_iter_ > 1


def test_probabilities_serve_another_loss():
    model = fitted("zero_one", CLASSES, surrogate="log")
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(1), 1.0)
    costs = cs.losses.CostMatrix([[0, 1, 9], [1, 0, 1], [2, 2, 0]], rows="pred")
    np.testing.assert_array_equal(model.set_loss(costs).predict(X), (p @ costs.M.T).argmin(1))


@pytest.mark.parametrize("surrogate", ["hinge", "softmax_margin"])
def test_scores_that_only_rank(surrogate):
    model = fitted("zero_one", CLASSES, surrogate=surrogate)
    assert -model.score(X, CLASSES) < 0.2
    with pytest.raises(CapabilityError, match="only rank"):
        model.model_.expected(X)
    with pytest.raises(CapabilityError):
        model.expected_losses(X)


def test_offsets_that_depend_on_the_true_label_are_learned():
    loss = cs.losses.Kendall(3, ties="exclude")
    ranks = np.array([loss.true_labels.sample(1, RNG)[0] for _ in range(60)])
    statistic = TargetValues(loss)
    model = Torch((16,), max_epochs=200, validation_fraction=0.0, learning_rate=0.01, device="cpu")
    model.fit(X[:60], ranks, statistic, rng=np.random.default_rng(0))
    expected = model.expected(X[:60])
    assert expected.shape == (60, statistic.width)
    mean = statistic.values(ranks).mean(0)
    assert abs(expected[:, -1].mean() - mean[-1]) < 0.1
    assert model.path_["held_out"].size == 0


def test_candidates_costs_and_sparse_inputs():
    masks = np.eye(3, dtype=int)[CLASSES] | (RNG.random((240, 3)) < 0.2)
    model = fitted(cs.losses.PartialLabels(cs.losses.ZeroOne(3), "average"), masks)
    assert (model.predict(X) == CLASSES).mean() > 0.7
    costs = np.abs(np.arange(3) - CLASSES[:, None]) * 50.0
    statistic = TargetValues(cs.losses.CostVectors(3, 100.0))
    network = Torch((32,), **QUICK).fit(X, costs, statistic, rng=np.random.default_rng(0))
    assert (statistic.decode(network.expected(X)) == CLASSES).mean() > 0.8
    sparse = sp.csr_array(np.where(np.abs(X) > 0.3, X, 0.0))
    model = cs.TaskLossClassifier(model=Torch((32,), **QUICK), random_state=0).fit(sparse, CLASSES)
    assert -model.score(sparse, CLASSES) < 0.25


def test_a_stopped_fit_goes_on_where_it_was(tmp_path):
    file = tmp_path / "state"
    settings = {**QUICK, "max_epochs": 6}
    rng = np.random.default_rng
    statistic = ClassProbabilities(cs.losses.ZeroOne(3))

    class Stop(Exception):  # noqa: N818
        pass

    class Layer(torch.nn.Linear):
        """Fails in the fourth epoch, unless set not to."""

        calls, limit = 0, 7 * 3 + 2

        def forward(self, inputs):
            if self.training:
                Layer.calls += 1
                if Layer.calls > Layer.limit:
                    raise Stop
            return super().forward(inputs)

    model = Torch(Layer, checkpoint=file, **settings)
    with pytest.raises(Stop):
        model.fit(X, CLASSES, statistic, rng=rng(0))
    assert file.exists()
    Layer.limit = 10**9
    model.fit(X, CLASSES, statistic, rng=rng(0))
    whole = Torch(Layer, **settings).fit(X, CLASSES, statistic, rng=rng(0))
    for name in whole.weights_:
        np.testing.assert_array_equal(model.weights_[name], whole.weights_[name])
    np.testing.assert_array_equal(model.path_["training"], whole.path_["training"])
    with pytest.raises(ValueError, match="other data or parameters"):
        model.fit(X, CLASSES[::-1].copy(), statistic, rng=rng(0))


def test_groups_are_held_out_whole():
    model = Torch((4,), max_epochs=1, device="cpu", validation_fraction=0.3)
    groups = np.arange(240) // 24
    held, rows = model._hold_out(240, groups, 0)
    assert set(groups[held]).isdisjoint(groups[rows])
    assert len(held) == 3 * 24
    with pytest.raises(ValueError, match="one group"):
        model._hold_out(240, np.zeros(240), 0)


def factory(n_inputs, n_outputs):
    return torch.nn.Sequential(
        torch.nn.Linear(n_inputs, 8),
        torch.nn.BatchNorm1d(8),
        torch.nn.Dropout(0.2),
        torch.nn.Linear(8, n_outputs),
    )


def test_networks_of_ones_own(tmp_path):
    state = torch.random.get_rng_state()
    model = cs.TaskLossClassifier("zero_one", Torch(factory, **QUICK), random_state=0)
    model.fit(X, CLASSES)
    assert torch.equal(torch.random.get_rng_state(), state)  # the user's generator is left alone
    expected = model.model_.expected(X)
    for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(twin.model_.expected(X), expected)
    with pytest.raises(ModelFileError, match="function"):
        save(model, tmp_path / "model")
    plain = fitted("fbeta", SETS)
    save(plain, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X), plain.predict(X))


def test_in_a_stack():
    stack = Stack([Ridge("linear", alpha=0.1), Torch((8,), max_epochs=3, device="cpu")], cv=2)
    model = cs.TaskLossClassifier("hamming", stack, random_state=0).fit(X, SETS)
    assert -model.score(X, SETS) < 0.2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"surrogate": "best"}, "surrogate must be one of"),
        ({"device": "nowhere"}, "device must be 'auto'"),
        ({"module_factory": lambda n, m: "net"}, "must return a torch.nn.Module"),
        ({"module_factory": lambda n, m: torch.nn.Linear(n, m + 1)}, "scores per row"),
        ({"module_factory": (8, 0)}, "hidden size"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"validation_fraction": 1.5}, "validation_fraction"),
        ({"validation_fraction": 0.0, "patience": 3}, "patience=3 has an effect"),
        ({"learning_rate": 1e30, "surrogate": "square"}, "diverged"),
    ],
)
def test_bad_settings_are_refused_in_one_line(settings, message):
    model = Torch(**{"device": "cpu", "max_epochs": 2, **settings})
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        cs.TaskLossClassifier(model=model).fit(X, CLASSES)
    assert "\n" not in str(caught.value)
