"""A fit exceeds its time limit by at most its first, fastest model, by a clock that tests turn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

import consistruct as cs
from consistruct import _clock
from consistruct.models import Chain, Costs, Items, Probabilities, Regressor, Stack

rng = np.random.default_rng(0)
N = 400
X = rng.normal(size=(N, 3))
Y = (X[:, 0] + rng.normal(size=N) > 0).astype(int)
SETS = (X @ rng.normal(size=(3, 4)) + rng.normal(size=(N, 4)) > 0).astype(int)


class Clock:
    """Seconds that pass only where somebody states it."""

    def __init__(self):
        self.time = 0.0

    def __call__(self):
        return self.time


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr(_clock, "now", found)
    return found


class Slow(BaseEstimator):  # type: ignore[misc]
    """Takes `seconds` for all N rows, growing with a power of the rows."""

    def __init__(self, clock=None, seconds=1.0, growth=1.0):
        self.clock = clock
        self.seconds = seconds
        self.growth = growth

    def __sklearn_clone__(self):
        return type(self)(self.clock, self.seconds, self.growth)

    def fit(self, X, y, sample_weight=None):
        self.clock.time += self.seconds * (len(X) / N) ** self.growth
        self.mean_ = np.mean(y, axis=0)
        self.classes_ = np.unique(y)
        return self


class SlowClassifier(ClassifierMixin, Slow):  # type: ignore[misc]
    def predict_proba(self, X):
        return np.tile([1 - self.mean_, self.mean_], (len(X), 1))

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


class SlowRegressor(RegressorMixin, Slow):  # type: ignore[misc]
    def predict(self, X):
        return np.tile(self.mean_, (len(X),) + (1,) * np.ndim(self.mean_))


def stack_of(kind, clock, *slow):
    wrapper, inner = {
        "classes": (Probabilities, SlowClassifier),
        "sets": (Regressor, SlowRegressor),
    }[kind]
    return Stack([wrapper(inner(clock, *each)) for each in ((1.0, 1.0), *slow)])


def statuses(model):
    return [entry["status"] for entry in model.portfolio_]


FIRST = 5.0  # five folds of four fifths, and one fit: the first model of Stack


@pytest.mark.parametrize("kind", ["classes", "sets"])
@pytest.mark.parametrize("limit", [0.0, 3.0, 20.0, 60.0, 200.0])
@pytest.mark.parametrize("growth", [1.0, 2.0, 3.0])
def test_portfolios_of_rows_end_in_time(kind, limit, growth, clock):
    stack = stack_of(kind, clock, (10.0, growth), (30.0, growth))
    if kind == "classes":
        model = cs.TaskLossClassifier("zero_one", stack, time_limit=limit).fit(X, Y)
    else:
        model = cs.StructuredPredictor("hamming", stack, time_limit=limit).fit(X, SETS)
    assert clock.time <= limit + FIRST
    tried = ["time_limit" not in status for status in statuses(model)]
    assert tried[0]
    if limit == 200.0:
        assert tried[1]  # 50 s: there is time for it
    if limit == 0.0:
        assert tried == [True, False, False]


def test_without_a_limit_all_models_are_tried(clock):
    model = cs.TaskLossClassifier("zero_one", stack_of("classes", clock, (10.0, 1.0))).fit(X, Y)
    assert not any("time_limit" in status for status in statuses(model))


@pytest.mark.parametrize("limit", [0.0, 3.0, 100.0])
def test_portfolios_of_rankings_end_in_time(limit, clock, monkeypatch):
    """Every learner takes a second per hundred queries, the first one a tenth of it."""
    from consistruct.learning.models.items import boosted, regressors, ridge

    def slowed(original, seconds):
        def fit(self, queries, *rest, **named):
            clock.time += seconds * len(queries)
            return original(self, queries, *rest, **named)

        return fit

    for owner, name, seconds in (
        (ridge.RidgeLearner, "fit_and_leave_out", 0.001),
        (regressors.RegressorLearner, "fit", 0.1),
        (boosted.BoostedLearner, "fit", 0.1),
    ):
        monkeypatch.setattr(owner, name, slowed(getattr(owner, name), seconds))
    groups = np.arange(N) % 40
    grades = (X[:, 0] > 0.5).astype(int) + (X[:, 0] > 1)
    model = cs.StructuredPredictor("ndcg", Items(), time_limit=limit, random_state=0)
    model.fit(X, grades, groups=groups)
    assert clock.time <= limit + 0.1
    tried = ["time_limit" not in status for status in statuses(model)]
    assert tried[0]
    assert all(tried) == (limit == 100.0)


SENTENCES = [[[f"w={word}"] for word in rng.integers(50, size=8)] for _ in range(120)]
TAGS = [[int(word[0][2:]) % 3 for word in sentence] for sentence in SENTENCES]


@pytest.mark.parametrize("limit", [0.0, 5.0, 40.0, 500.0])
def test_sequences_end_in_time(limit, clock, monkeypatch):
    """An epoch over all sequences takes a second."""
    from consistruct.learning.models.chain import sgd

    epoch = sgd.ChainSGD.epoch

    def slow(self, rng):
        clock.time += len(self.data.tokens) / len(SENTENCES)
        return epoch(self, rng)

    monkeypatch.setattr(sgd.ChainSGD, "epoch", slow)
    model = cs.StructuredPredictor("hamming", Chain(), time_limit=limit, random_state=0)
    model.fit(SENTENCES, TAGS)
    assert clock.time <= limit + 1.0
    assert model.model_.n_iter_ == {0.0: 1, 5.0: 4}.get(limit, 12)
    assert ("held_out_risk" in model.path_) == (limit >= 40.0)


@pytest.mark.parametrize(("limit", "skipped"), [(0.0, 2), (20.0, 1), (1000.0, 0)])
def test_decisions_end_in_time(limit, skipped, clock, monkeypatch):
    """Each comparison takes ten seconds for all rows, that of the first model one."""
    from consistruct.learning.models.costs import search as costs

    compare = costs.Search.finalists

    def slow(self, kinds, powers):
        clock.time += sum(1.0 if kind == "linear" else 10.0 for kind in kinds) * len(self.X) / N
        compare(self, kinds, powers)

    monkeypatch.setattr(costs.Search, "finalists", slow)
    C = np.exp(X @ rng.normal(size=(3, 4)) / 3)
    loss = cs.losses.Decision(cs.structures.GridPath(2, 2))
    model = cs.StructuredPredictor(loss, Costs(), time_limit=limit, random_state=0).fit(X, C)
    assert clock.time <= limit + 1.0
    late = [status for status in statuses(model) if "time_limit" in status]
    assert len(late) == skipped
