"""A loss of one's own gets what is known of its structure, not of its class."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest

import consistruct as cs
from consistruct.guarantees.constants import target_norm
from consistruct.losses import Hamming, MatrixLoss
from consistruct.losses.base import Loss
from consistruct.structures import Chain, Classes, Full, Product, Separable


@dataclass(frozen=True, eq=False, repr=False)
class Mistakes(Loss):
    """The share of wrong parts, written anew."""

    n_parts: int
    n_states: int = 2

    @cached_property
    def score_space(self):
        return Separable(self.n_parts, self.n_states)

    @cached_property
    def true_labels(self):
        return Product(self.n_parts, self.n_states)

    max_value = 1.0

    @property
    def hamming_shape(self):
        return self.n_parts, self.n_states

    def _value(self, pred, true):
        return (pred != true).mean(axis=1)

    def target(self, true):
        return -self.score_space.embed(true) / self.n_parts

    def offset(self, true):
        return np.ones(len(true))


@dataclass(frozen=True, eq=False, repr=False)
class OrAsk(MatrixLoss):
    """Costs of classes 0 and 1, and 2 for asking someone."""

    @property
    def _prediction_set(self):
        return Classes(3)

    @property
    def true_labels(self):
        return Classes(2)

    @property
    def _columns(self):
        return np.array([[0.0, 5.0], [1.0, 0.0], [0.6, 0.6]])

    abstain_index = 2

    def _value(self, pred, true):
        return self._columns[pred, true]


@pytest.mark.parametrize("scores", [Separable(200, 3), Full(Mistakes(200, 3))], ids=["own", "full"])
def test_parts_of_any_number_have_their_formulas(scores):
    own = cs.calibration_function(Mistakes(200, 3), scores)
    ready = cs.calibration_function(Hamming(200, 3), scores)
    assert own.log(0.5) == ready.log(0.5)
    assert own.curve([0.5])[0].method == ready.curve([0.5])[0].method


def test_chains_are_followed():
    own = cs.calibration_function(Mistakes(30), Chain(30, 2))
    ready = cs.calibration_function(Hamming(30), Chain(30, 2))
    assert own.interval(0.4) == ready.interval(0.4)


def test_the_log_loss_scores_parts():
    own = cs.calibration_function(Mistakes(1000), surrogate="log")
    assert own(0.5) == cs.calibration_function(Hamming(1000), surrogate="log")(0.5)
    found = target_norm(Mistakes(1000), Separable(1000))
    assert found == target_norm(Hamming(1000), Separable(1000))


def test_no_answer_is_the_label_of_the_loss():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=200) > 0).astype(int)
    model = cs.TaskLossClassifier(OrAsk(), cs.models.Ridge(features="linear"))
    control = cs.RiskControl(model, level=0.2, policy="abstain", cv=0.3).fit(X, y)
    assert set(np.unique(control.predict(X)).tolist()) <= {0, 1, 2}
