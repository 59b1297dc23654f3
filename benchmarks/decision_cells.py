"""What is decided: PyEPO's generators of costs, with our oracles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consistruct.losses import Decision
from consistruct.structures import GridPath, Knapsack, Tour

DEGREES = (1, 4, 6)
CELLS = tuple(f"{name}:{degree}" for name in ("path5", "path15", "knapsack32", "tsp10")
              for degree in DEGREES)  # fmt: skip
EXTRA = tuple(f"{name}:6:{kind}" for name in ("path5", "knapsack32")
              for kind in ("features", "additive"))  # fmt: skip
TRAIN, TEST, NOISE, CAPACITY = 1000, 1000, 0.5, 20.0


@dataclass(frozen=True, eq=False)
class Task:
    """One draw: costs (values with sense "max") of training and test rows, and their means."""

    loss: Decision
    X: np.ndarray
    C: np.ndarray
    X_test: np.ndarray
    C_test: np.ndarray
    mean_test: np.ndarray

    @property
    def sign(self) -> float:
        """From costs that are minimized to the numbers of the data."""
        return -1.0 if self.loss.sense == "max" else 1.0

    def regret(self, predicted: np.ndarray) -> float:
        """Σ regret / Σ |best value| on the test rows, as PyEPO reports it."""
        decisions = self.loss.solver(self.sign * predicted)
        total = float(np.abs(self.loss.best_values(self.C_test)).sum())
        return float(self.loss(decisions, self.C_test).sum()) / total


def make_task(cell: str, seed: int) -> Task:
    """A cell such as ``path5:6``, ``knapsack32:6:features`` (30 instead of 5) or ``…:additive``.

    PyEPO's noise multiplies costs by a uniform number in [½, 1½]; additive noise is uniform with
    half the mean cost as half-width.
    """
    import pyepo

    name, degree, *kind = cell.split(":")
    n, p = TRAIN + TEST, 30 if kind == ["features"] else 5
    noise = 0.0 if kind == ["additive"] else NOISE
    settings = {"deg": int(degree), "seed": seed}

    def draw(width: float) -> tuple[Decision, np.ndarray, np.ndarray]:
        given = {**settings, "noise_width": width}
        if name.startswith("path"):
            side = int(name.removeprefix("path"))
            X, costs = pyepo.data.shortestpath.genData(n, p, (side, side), **given)
            return Decision(GridPath(side, side)), X, costs
        if name.startswith("knapsack"):
            items = int(name.removeprefix("knapsack"))
            weights, X, costs = pyepo.data.knapsack.genData(n, p, items, dim=1, **given)
            return Decision(Knapsack(weights[0], CAPACITY), sense="max"), X, costs
        cities = int(name.removeprefix("tsp"))
        X, costs = pyepo.data.tsp.genData(n, p, cities, **given)
        return Decision(Tour(cities)), X, costs

    loss, X, costs = draw(noise)
    mean = draw(0.0)[2].astype(np.float64)  # the same draw without noise
    costs = costs.astype(np.float64)
    if name.startswith("knapsack") and noise:
        mean = knapsack_means(n, p, int(name.removeprefix("knapsack")), int(degree), seed)
    if kind == ["additive"]:
        half = NOISE * float(np.abs(mean).mean())
        costs = mean + half * np.random.default_rng(seed).uniform(-1.0, 1.0, mean.shape)
    return Task(loss, X[:TRAIN], costs[:TRAIN], X[TRAIN:], costs[TRAIN:], mean[TRAIN:])


def knapsack_means(n: int, p: int, items: int, degree: int, seed: int) -> np.ndarray:
    """Expected values: PyEPO rounds them up, which adds one half on average.

    The numbers are drawn as its generator draws them; its values without noise are rounded too, and
    too coarse to decide by.
    """
    draws = np.random.RandomState(seed)
    draws.choice(range(300, 800), size=(1, items))
    B = draws.binomial(1, 0.5, (items, p))
    x = draws.normal(0, 1, (n, p))
    means = 5.0 * ((x @ B.T / np.sqrt(p) + 3) ** degree + 1) / 3.5**degree
    return np.asarray(means + 0.5)
