"""Populations of known risk: finitely many rows, all equally likely, with a fixed model.

Calibration rows are drawn with replacement, so that the risk of any rule is its mean over the
population, without error. Every loss of the registry has one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import consistruct as cs
from consistruct.exceptions import RiskLevelError
from consistruct.guarantees.risk.ladders import Ladder
from consistruct.guarantees.risk.policies import POLICIES
from consistruct.guarantees.risk.policies.base import Options
from consistruct.guarantees.risk.thresholds import calibrate
from consistruct.guarantees.risk.views import View
from consistruct.losses.registry import LOSSES

ROWS = 3000
TRAINING = 250
DEFER_COST = 0.1  # of the largest loss


# an expected regret would need the best value of every training row
NAMES = [name for name in LOSSES if name != "decision"]


def loss_of(name: str) -> Any:
    """The example of the registry with most labels: the smallest ones leave nothing to choose."""
    examples = LOSSES[name].examples
    return max(examples, key=lambda loss: (loss.n_labels or 0, repr(loss)))


def _true_labels(loss: Any, X: np.ndarray, rng: np.random.Generator) -> Any:
    """True labels that the inputs tell most of the time: the one of their cell, or any."""
    n = len(X)
    cells = (X @ rng.normal(size=(X.shape[1], 6))).argmax(axis=1)
    if loss.true_labels.size is None:  # cost vectors
        typical = loss.true_labels.sample(6, rng) * getattr(loss, "max_cost", 1.0)
        return typical[cells] * rng.random((n, typical.shape[1]))
    typical = loss.true_labels.sample(6, rng)
    noise = rng.random(n) < 0.25
    drawn = loss.true_labels.sample(n, rng)
    return np.where(noise.reshape((n,) + (1,) * (drawn.ndim - 1)), drawn, typical[cells])


@cache
def model_and_rows(name: str) -> tuple[Any, np.ndarray, Any]:
    """A fitted estimator for the loss, and the rows of the population."""
    loss, rng = loss_of(name), np.random.default_rng(7)
    X = rng.normal(size=(ROWS + TRAINING, 4))
    y = _true_labels(loss, X, rng)
    ridge = cs.models.Ridge(features="linear", alpha=0.01)
    train, rest = slice(None, TRAINING), slice(TRAINING, None)
    if name == "cost-vectors":
        estimator = cs.TaskLossClassifier("zero_one", ridge)
        estimator.fit(X[train], costs=y[train])
    elif name == "fbeta" or loss.true_labels.shape == ():
        estimator = cs.TaskLossClassifier(loss, ridge).fit(X[train], y[train])
    else:
        estimator = cs.StructuredPredictor(loss, ridge).fit(X[train], y[train])
    return estimator, X[rest], y[rest]


@dataclass(frozen=True)
class Population:
    """The ladders of all rows under one policy, and what the policy states of them."""

    ladder: Ladder
    bounds: tuple[float, float]
    monotone: bool
    two_values: bool
    level: float  # that can be reached, and is not reached by the least safe predictions

    def draw(self, n: int, rng: np.random.Generator) -> Ladder:
        return self.ladder.take(rng.integers(len(self.ladder), size=n))

    def risk(self, safety: float, selective: bool = False) -> float:
        losses = self.ladder.at(safety)
        if not selective:
            return float(losses.mean())
        answered = self.ladder.at(safety, self.ladder.answered)
        return float(losses[answered].mean()) if answered.any() else 0.0

    def risks(self, draws: int, n: int, seed: int, **requested: Any) -> np.ndarray:
        """True risk of the rule found on each of so many calibration sets; 0 where none is."""
        rng = np.random.default_rng(seed)
        selective = requested.get("risk") == "selective"
        found = np.zeros(draws)
        for number in range(draws):
            try:
                threshold = calibrate(
                    self.draw(n, rng),
                    level=self.level,
                    bounds=self.bounds,
                    monotone=self.monotone,
                    two_values=self.two_values,
                    rng=rng,
                    **requested,
                )
            except RiskLevelError:
                continue  # nothing is predicted, nothing is guaranteed
            found[number] = self.risk(threshold.safety, selective)
        return found


@cache
def population(name: str, policy: str, selective: bool = False) -> Population:
    """The population of a loss under a policy."""
    estimator, X, y = model_and_rows(name)
    loss = estimator.loss_
    options = Options(loss, DEFER_COST * loss.max_value)
    chosen = POLICIES[policy]
    family = chosen.family(View.of(estimator, X), options)
    ladder = family.ladder(y)
    steps = ladder.steps()
    if selective:
        answers = np.maximum(steps.totals(ladder.answered.astype(float)), 1.0)
        risks = steps.totals(ladder.losses * ladder.answered) / answers
        risks = risks[answers > 0.1 * len(ladder)]
    else:
        risks = steps.totals(ladder.losses) / len(ladder)
    level = float(risks.min() + 0.6 * (risks[0] - risks.min()))
    low, high = chosen.bounds(options)
    if name == "cost-vectors":  # how large they can be is for the user to say
        high = float(ladder.losses.max())
    monotone, two_values = chosen.monotone(options), chosen.two_values(options)
    return Population(ladder, (low, high), monotone, two_values, level)


def served() -> list[tuple[str, str]]:
    """Losses of the registry with the policies that serve them."""
    found = []
    for name in NAMES:
        estimator = model_and_rows(name)[0]
        loss = estimator.loss_
        options = Options(loss, DEFER_COST * loss.max_value)
        found += [
            (name, key) for key, policy in POLICIES.items()
            if policy.refusal(estimator, options) is None
        ]  # fmt: skip
    return found
