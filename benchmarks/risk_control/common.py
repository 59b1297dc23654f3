"""What the parts of the benchmark share: splits, models, data."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import consistruct as cs
from benchmarks import data as sources

CONFIDENCE = 0.9
FIT, CALIBRATE = 0.5, 0.25  # shares of the rows; the rest tests


def parts(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row numbers to fit, to calibrate and to test."""
    order = np.random.default_rng(seed).permutation(n)
    first, second = round(FIT * n), round((FIT + CALIBRATE) * n)
    return order[:first], order[first:second], order[second:]


class Remembered(ExtraTreesClassifier):
    """A forest that serves the same rows to several policies and computes them once."""

    def predict_proba(self, X: Any) -> Any:
        known = self.__dict__.setdefault("answers_", {})
        key = hash(np.ascontiguousarray(X).tobytes())
        if key not in known:
            known[key] = super().predict_proba(X)
        return known[key]


def forest(loss: Any, n_trees: int = 80) -> Any:
    trees = Remembered(n_trees, min_samples_leaf=2, random_state=0)
    return cs.TaskLossClassifier(loss, cs.models.Probabilities(trees))


def ridge(loss: Any) -> Any:
    return cs.TaskLossClassifier(loss, cs.models.Ridge("linear", standardize=True, alpha=0.1))


def logistic(loss: Any) -> Any:
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=500))
    return cs.TaskLossClassifier(loss, cs.models.Probabilities(model))


def both_parts(name: str, held_out: bool, **options: Any) -> tuple[Any, Any]:
    train = sources.load(name, "train", **options)
    assert train.y is not None
    if held_out:
        return train.X, train.y
    test = sources.load(name, "test", **options)
    assert test.y is not None
    return np.concatenate([train.X, test.X]), np.concatenate([train.y, test.y])
