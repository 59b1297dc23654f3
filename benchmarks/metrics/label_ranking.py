"""labelrank_pendigits: Kendall's tau between predicted and true orders of ten labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import scipy.linalg
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, train_test_split
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks import data as sources
from benchmarks.metrics.multilabel import kernel_of
from benchmarks.metrics.ours import described, ridge_features
from benchmarks.metrics.ridge import LeaveOneOutRidge
from benchmarks.metrics.rows import Outcome, Row, compare, timed
from consistruct import StructuredPredictor
from consistruct.losses import Kendall

__all__ = ["kendall_tau", "label_ranking", "order_of_ranks", "ranks_of_order"]

FOLDS = 3
Scorer = Callable[[Any], np.ndarray]  # inputs -> estimated ranks (n, T), least first


def ranks_of_order(order: np.ndarray) -> np.ndarray:
    """Position of each label, from orders that list labels from best to worst, (n, T)."""
    return np.argsort(order, axis=1, kind="stable")


def order_of_ranks(ranks: np.ndarray) -> np.ndarray:
    """Labels sorted by their estimated rank: the Borda order."""
    return np.argsort(ranks, axis=1, kind="stable")


def kendall_tau(pred: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Concordant minus discordant pairs, as a share of all pairs, of each row."""
    return 1.0 - 2.0 * Kendall(true.shape[1])(pred, true)


class OrderPeer(ABC):
    """Estimates the rank of every label; settings are chosen by tau on a held-out quarter."""

    settings: tuple[Any, ...]

    @abstractmethod
    def fit(self, X: np.ndarray, order: np.ndarray) -> Callable[[Any], Scorer]:
        """Models of all settings; what can be shared between settings is computed once."""

    def tune_and_fit(self, X: np.ndarray, order: np.ndarray) -> tuple[Any, Scorer]:
        parts = train_test_split(X, order, test_size=0.25, random_state=0)
        of_setting = self.fit(parts[0], parts[2])
        values = [
            kendall_tau(order_of_ranks(of_setting(setting)(parts[1])), parts[3]).mean()
            for setting in self.settings
        ]
        best = self.settings[int(np.argmax(values))]
        return best, self.fit(X, order)(best)


class RidgeOfRanks(OrderPeer):
    """Ridge regression of the rank of every label on features φ(x)."""

    settings = tuple(10.0 ** np.arange(-6.0, 0.1, 0.5))  # in units of the mean squared norm

    def __init__(self, features: Callable[[Any], Any]) -> None:
        self.features = features

    def fit(self, X: np.ndarray, order: np.ndarray) -> Callable[[Any], Scorer]:
        phi = self.features(X)
        ridge = LeaveOneOutRidge(phi, ranks_of_order(order), kernel=False)
        size = float(np.square(phi).sum())

        def of_setting(setting: Any) -> Scorer:
            score = ridge.scorer(setting * size)
            return lambda new: score(self.features(new))

        return of_setting


class KernelRidgeOfRanks(OrderPeer):
    """Kernel ridge regression of the rank of every label; `kernel` takes two sets of inputs."""

    settings = tuple(10.0 ** np.arange(-8.0, -0.9))  # penalty over the number of examples

    def __init__(self, kernel: Callable[[Any, Any], np.ndarray]) -> None:
        self.kernel = kernel

    def fit(self, X: np.ndarray, order: np.ndarray) -> Callable[[Any], Scorer]:
        ranks = ranks_of_order(order)
        mean = ranks.mean(axis=0)
        gram = self.kernel(X, X)

        def of_setting(setting: Any) -> Scorer:
            shifted = gram + setting * len(X) * np.eye(len(X))
            factor = scipy.linalg.cho_factor(shifted, overwrite_a=True, check_finite=False)
            weights = scipy.linalg.cho_solve(factor, ranks - mean, check_finite=False)
            return lambda new: mean + self.kernel(new, X) @ weights

        return of_setting


class PairwiseLogistic(OrderPeer):
    """A logistic regression for every pair of labels; ranks add up the probabilities."""

    settings = (0.1, 1.0, 10.0)  # C

    def fit(self, X: np.ndarray, order: np.ndarray) -> Callable[[Any], Scorer]:
        ranks = ranks_of_order(order)
        n_labels = order.shape[1]

        def of_setting(setting: Any) -> Scorer:
            models = {}
            for i, j in zip(*np.triu_indices(n_labels, 1), strict=True):
                first = ranks[:, i] < ranks[:, j]
                constant = first.min() == first.max()
                models[i, j] = (
                    float(first[0])
                    if constant
                    else make_pipeline(
                        StandardScaler(), LogisticRegression(C=setting, max_iter=1000)
                    ).fit(X, first)
                )

            def score(new: Any) -> np.ndarray:
                estimate = np.zeros((len(new), n_labels))
                for (i, j), model in models.items():
                    first = model if isinstance(model, float) else model.predict_proba(new)[:, 1]
                    estimate[:, j] += first
                    estimate[:, i] += 1.0 - first
                return estimate

            return score

        return of_setting


class NearestOrders(OrderPeer):
    """Mean ranks of the nearest neighbors (instance-based label ranking)."""

    settings = (3, 5, 10, 20, 40)

    def fit(self, X: np.ndarray, order: np.ndarray) -> Callable[[Any], Scorer]:
        scaler = StandardScaler().fit(X)
        neighbors = NearestNeighbors().fit(scaler.transform(X))
        ranks = ranks_of_order(order)

        def of_setting(setting: Any) -> Scorer:
            def score(new: Any) -> np.ndarray:
                nearest = neighbors.kneighbors(
                    scaler.transform(new), n_neighbors=setting, return_distance=False
                )
                return np.asarray(ranks[nearest].mean(axis=1))

            return score

        return of_setting


class BoostedRanks(OrderPeer):
    """LightGBM regression of the rank of every label; settings are leaves and number of trees."""

    settings = tuple(product((15, 31), (200, 500)))

    def fit(self, X: np.ndarray, order: np.ndarray) -> Callable[[Any], Scorer]:
        import lightgbm  # the other peers do without it

        ranks = ranks_of_order(order)
        grown: dict[tuple[int, int], list[Any]] = {}

        def of_setting(setting: Any) -> Scorer:
            leaves, trees = setting
            # the first trees of a larger model are the smaller one
            larger = [key for key in grown if key[0] == leaves and key[1] >= trees]
            if not larger:
                models = [
                    lightgbm.LGBMRegressor(
                        num_leaves=leaves,
                        n_estimators=trees,
                        learning_rate=0.1,
                        random_state=0,
                        n_jobs=1,
                        verbose=-1,
                    ).fit(X, rank)
                    for rank in ranks.T
                ]
                grown[leaves, trees] = models
            models = grown[larger[0] if larger else (leaves, trees)]
            return lambda new: np.column_stack(
                [np.asarray(model.predict(new, num_iteration=trees)) for model in models]
            )

        return of_setting


def label_ranking(name: str, *, held_out: bool, rows: int | None) -> list[Row]:
    """Folds of all rows; with `held_out` a split of 40 % of them."""
    part = sources.load(name, target=("order",))
    assert part.y is not None
    X, order = np.asarray(part.X, dtype=np.float64), part.y
    if held_out:
        X, _, order, _ = train_test_split(X, order, train_size=0.4, random_state=5)
    if rows is not None:
        X, order = X[:rows], order[:rows]
    folds = list(KFold(FOLDS, shuffle=True, random_state=0).split(X))
    folds = folds[:1] if held_out else folds
    values: dict[str, list[np.ndarray]] = {}
    seconds: dict[str, float] = {}
    kinds: dict[str, str] = {}
    settings: dict[str, list[str]] = {}
    for train, test in folds:
        ours = StructuredPredictor("kendall", random_state=0)
        spent, _ = timed(lambda m=ours, t=train: m.fit(X[t], order[t]))  # type: ignore[misc]
        chosen = described(ours)
        results = [("consistruct, defaults", "ours", spent, chosen, ours.predict(X[test]))]
        own_kernel = kernel_of(ridge_features(ours, X[train], order[train]))
        scaler = StandardScaler().fit(X[train])
        peers: list[tuple[str, str, OrderPeer]] = [
            ("linear ridge of the ranks", "linear", RidgeOfRanks(scaler.transform)),
            ("pairwise logistic regressions", "linear", PairwiseLogistic()),
            ("nearest neighbors, mean ranks", "kernel", NearestOrders()),
            ("ridge of the ranks on our features", "kernel", KernelRidgeOfRanks(own_kernel)),
            ("LightGBM regression of the ranks", "boosting", BoostedRanks()),
        ]
        for title, kind, peer in peers:
            spent, (setting, scorer) = timed(
                lambda p=peer, t=train: p.tune_and_fit(X[t], order[t])  # type: ignore[misc]
            )
            results.append((title, kind, spent, _written(setting), order_of_ranks(scorer(X[test]))))
        for title, kind, spent, setting, pred in results:
            values.setdefault(title, []).append(kendall_tau(np.asarray(pred), order[test]))
            seconds[title] = seconds.get(title, 0.0) + spent
            kinds[title] = kind
            settings.setdefault(title, []).append(setting)
    outcomes = [
        Outcome(
            title,
            kinds[title],
            np.concatenate(values[title]),
            seconds[title],
            "; ".join(dict.fromkeys(settings[title])),
        )
        for title in values
    ]
    return compare(name, "tau", outcomes)


def _written(setting: Any) -> str:
    parts = setting if isinstance(setting, tuple) else (setting,)
    return ", ".join(f"{part:.3g}" for part in parts)
