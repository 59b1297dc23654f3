"""Peers that score every label, and the rules that turn scores into label sets.

A peer is fitted for several settings; its scores on held-out training rows choose the setting and
the parameter of the rule together, by the metric that is reported.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.multioutput import ClassifierChain
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from benchmarks.metrics import independent_f1
from benchmarks.metrics.ridge import LeaveOneOutRidge
from benchmarks.metrics.rows import timed

__all__ = [
    "AtThreshold",
    "Chain",
    "IndependentF1",
    "LinearSupportVectors",
    "Logistic",
    "Peer",
    "PrecomputedSVC",
    "Ridge",
    "SupportVectors",
    "TunedThreshold",
    "choose_and_predict",
    "f1",
    "hamming",
]

FOLDS = 3
CANDIDATES = 50  # thresholds compared in each of two rounds
NEVER = -1e9  # score of a label that never occurs in training
Scorer = Callable[[Any], np.ndarray]  # inputs -> scores (n, T)
Measure = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (predicted, true) -> (n,)


def f1(pred: np.ndarray, true: np.ndarray) -> np.ndarray:
    """F1 of each example, (n,); 1 for two empty sets."""
    total = pred.sum(axis=1) + true.sum(axis=1)
    shared = (pred & true).sum(axis=1)
    return np.where(total > 0, 2 * shared / np.maximum(total, 1), 1.0)


def hamming(pred: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Share of wrong labels of each example, (n,)."""
    return np.asarray((pred != true).mean(axis=1))


# --- rules: scores -> label sets ------------------------------------------------------------------


class AtThreshold:
    """Every label whose score exceeds a number that nothing is tuned for."""

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold

    def tune(self, scores: np.ndarray, Y: np.ndarray, better: Measure) -> float:
        """Mean of `better` (greater is better) over the rows."""
        return float(better(self.predict(scores), Y).mean())

    def predict(self, scores: np.ndarray) -> np.ndarray:
        return (scores > self.threshold).astype(np.int64)

    def __str__(self) -> str:
        return ""


class TunedThreshold(AtThreshold):
    """One threshold for all labels, the best on held-out rows; optionally never the empty set."""

    def __init__(self, *, at_least_one: bool = False) -> None:
        super().__init__(0.0)
        self.at_least_one = at_least_one

    def tune(self, scores: np.ndarray, Y: np.ndarray, better: Measure) -> float:
        # quantiles around the share of true labels, then numbers beside the best of them
        share = float(Y.mean())
        tails = np.geomspace(share / 1000, min(0.99, share * 8), CANDIDATES)
        grid = np.append(np.unique(np.quantile(scores, 1.0 - tails)), scores.max())
        best = int(np.argmax([self._value(t, scores, Y, better) for t in grid]))
        ends = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
        grid = np.append(grid[best], np.linspace(*ends, CANDIDATES))
        values = [self._value(t, scores, Y, better) for t in grid]
        best = int(np.argmax(values))
        self.threshold = float(grid[best])
        return values[best]

    def _value(self, threshold: float, scores: np.ndarray, Y: np.ndarray, better: Measure) -> float:
        self.threshold = float(threshold)
        return float(better(self.predict(scores), Y).mean())

    def predict(self, scores: np.ndarray) -> np.ndarray:
        labels = super().predict(scores)
        if self.at_least_one:
            labels[np.arange(len(labels)), scores.argmax(axis=1)] = 1
        return labels

    def __str__(self) -> str:
        return f"threshold {self.threshold:.3g}"


class IndependentF1(AtThreshold):
    """The set with the largest expected F1 if labels were independent.

    Where no training example is empty, agreeing on the empty set is worth nothing.
    """

    def __init__(self, Y: np.ndarray) -> None:
        super().__init__(0.5)
        self.empty = float((Y.sum(axis=1) == 0).any())

    def predict(self, scores: np.ndarray) -> np.ndarray:
        return independent_f1.decode(np.clip(scores, 0.0, 1.0), empty=self.empty)


# --- peers: inputs -> scores ----------------------------------------------------------------------


class Peer(ABC):
    """Scores of every label, for several settings; everything computed once, with its time."""

    settings: ClassVar[tuple[Any, ...]] = ()

    def __init__(self, X: Any, Y: np.ndarray, settings: tuple[Any, ...] | None = None) -> None:
        self.X, self.Y = X, Y
        self.tried = self.settings if settings is None else settings
        self._held_out: dict[Any, tuple[float, np.ndarray]] = {}
        self._fitted: dict[Any, tuple[float, Scorer]] = {}

    @abstractmethod
    def fit(self, setting: Any, X: Any, Y: np.ndarray) -> Scorer:
        """Fit one setting."""

    def held_out(self, setting: Any) -> tuple[float, np.ndarray]:
        """Processor seconds, and scores (n, T) of training rows by models without them."""
        if setting not in self._held_out:
            self._held_out[setting] = timed(lambda: self._cross_fitted(setting))
        return self._held_out[setting]

    def fitted(self, setting: Any) -> tuple[float, Scorer]:
        """Processor seconds, and the model on all training rows."""
        if setting not in self._fitted:
            self._fitted[setting] = timed(lambda: self.fit(setting, self.X, self.Y))
        return self._fitted[setting]

    def _cross_fitted(self, setting: Any) -> np.ndarray:
        scores = np.empty(self.Y.shape)
        for train, test in KFold(FOLDS, shuffle=True, random_state=0).split(self.Y):
            scores[test] = self.fit(setting, self.X[train], self.Y[train])(self.X[test])
        return scores


def choose_and_predict(
    peer: Peer, rule: AtThreshold, better: Measure, X_test: Any
) -> tuple[np.ndarray, float, str]:
    """Predicted sets, processor seconds with all choosing, and what was chosen."""
    settings = peer.tried
    nothing_to_choose = len(settings) == 1 and not isinstance(rule, TunedThreshold)
    seconds, setting = 0.0, settings[0]
    if not nothing_to_choose:
        values = []
        for candidate in settings:
            spent, scores = peer.held_out(candidate)
            choosing, value = timed(lambda scores=scores: rule.tune(scores, peer.Y, better))  # type: ignore[misc]
            seconds += spent + choosing
            values.append(value)
        setting = settings[int(np.argmax(values))]
        rule.tune(peer.held_out(setting)[1], peer.Y, better)
    spent, scorer = peer.fitted(setting)
    chosen = [_written(setting) if len(settings) > 1 else "", str(rule)]
    return rule.predict(scorer(X_test)), seconds + spent, ", ".join(filter(None, chosen))


def _written(setting: Any) -> str:
    parts = setting if isinstance(setting, tuple) else (setting,)
    return ", ".join(f"{part:.3g}" for part in parts)


def _per_label(make: Callable[[], Any], method: str, X: Any, Y: np.ndarray) -> Scorer:
    """One model per label; a label that never or always occurs keeps its constant."""
    models: list[Any] = []
    for y_true in Y.T:
        constant = y_true.min() == y_true.max()
        models.append(bool(y_true[0]) if constant else make().fit(X, y_true))

    def column(model: Any, inputs: Any) -> np.ndarray:
        if isinstance(model, bool):
            return np.full(inputs.shape[0], 1.0 if model else 0.0 if method != "raw" else NEVER)
        if method == "raw":
            return np.asarray(model.decision_function(inputs))
        return np.asarray(model.predict_proba(inputs)[:, 1])

    return lambda inputs: np.column_stack([column(model, inputs) for model in models])


def _scaled(X: Any, model: Any) -> Any:
    """Dense inputs are standardized; sparse 0/1 inputs are left as they are."""
    return model if sp.issparse(X) else make_pipeline(StandardScaler(), model)


class Logistic(Peer):
    """One-vs-rest logistic regression: probabilities of each label."""

    settings = (0.01, 0.1, 1.0, 10.0)  # C

    def fit(self, setting: Any, X: Any, Y: np.ndarray) -> Scorer:
        return _per_label(
            lambda: _scaled(X, LogisticRegression(C=setting, max_iter=1000)), "proba", X, Y
        )


class Chain(Peer):
    """Classifier chain of logistic regressions, labels in a random order."""

    settings = (0.1, 1.0, 10.0)  # C

    def fit(self, setting: Any, X: Any, Y: np.ndarray) -> Scorer:
        scaler = None if sp.issparse(X) else StandardScaler().fit(X)
        inputs = X if scaler is None else scaler.transform(X)
        base = LogisticRegression(C=setting, max_iter=1000)
        chain = ClassifierChain(base, order="random", random_state=0).fit(inputs, Y)
        # its own predictions, in which every link sees the decisions before it
        return lambda new: np.asarray(
            chain.predict(new if scaler is None else scaler.transform(new))
        )


class SupportVectors(Peer):
    """One-vs-rest RBF support vector machines on standardized inputs; settings are (C, gamma)."""

    def __init__(self, X: Any, Y: np.ndarray, settings: tuple[Any, ...] | None = None) -> None:
        scale = 1.0 / X.shape[1]  # scikit-learn's "scale" for standardized inputs
        grid = tuple((C, factor * scale) for C in (1.0, 10.0) for factor in (0.3, 1.0, 3.0))
        super().__init__(X, Y, grid if settings is None else settings)

    def fit(self, setting: Any, X: Any, Y: np.ndarray) -> Scorer:
        C, gamma = setting
        return _per_label(lambda: _scaled(X, SVC(C=C, gamma=gamma, cache_size=500)), "raw", X, Y)


class PrecomputedSVC(Peer):
    """One-vs-rest support vector machines on our features: inputs are rows of kernel values."""

    settings = (0.1, 1.0, 10.0)  # C

    def __init__(
        self, kernel: np.ndarray, Y: np.ndarray, settings: tuple[Any, ...] | None = None
    ) -> None:
        super().__init__(kernel, Y, settings)  # (n, n)

    def _cross_fitted(self, setting: Any) -> np.ndarray:
        scores = np.empty(self.Y.shape)
        for train, test in KFold(FOLDS, shuffle=True, random_state=0).split(self.Y):
            scorer = self.fit(setting, self.X[np.ix_(train, train)], self.Y[train])
            scores[test] = scorer(self.X[np.ix_(test, train)])
        return scores

    def fit(self, setting: Any, X: Any, Y: np.ndarray) -> Scorer:
        return _per_label(lambda: SVC(C=setting, kernel="precomputed", cache_size=500), "raw", X, Y)


class LinearSupportVectors(Peer):
    """One-vs-rest linear support vector machines."""

    settings = (0.01, 0.1, 1.0)  # C

    def fit(self, setting: Any, X: Any, Y: np.ndarray) -> Scorer:
        return _per_label(lambda: LinearSVC(C=setting, random_state=0), "raw", X, Y)


class Ridge(Peer):
    """Ridge regression of the 0/1 labels; exact leave-one-out scores are the held-out ones."""

    def __init__(self, X: Any, Y: np.ndarray, *, kernel: bool) -> None:
        self._seconds, self._ridge = timed(lambda: LeaveOneOutRidge(X, Y, kernel=kernel))
        super().__init__(X, Y, self._ridge.penalties)

    def held_out(self, setting: Any) -> tuple[float, np.ndarray]:
        return timed(lambda: self._ridge.out_of_fold(setting))

    def fitted(self, setting: Any) -> tuple[float, Scorer]:
        spent, scorer = timed(lambda: self.fit(setting, self.X, self.Y))
        return self._seconds + spent, scorer

    def fit(self, setting: Any, X: Any, Y: np.ndarray) -> Scorer:
        return self._ridge.scorer(setting)
