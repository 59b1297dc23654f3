"""yeast, scene and bibtex: F1 of each example and Hamming loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from benchmarks import data as sources
from benchmarks.measure import taking_turns
from benchmarks.metrics.multilabel_peers import (
    AtThreshold,
    Chain,
    IndependentF1,
    LinearSupportVectors,
    Logistic,
    Measure,
    Peer,
    PrecomputedSVC,
    Ridge,
    SupportVectors,
    TunedThreshold,
    choose_and_predict,
    f1,
    hamming,
)
from benchmarks.metrics.ours import described, ridge_features
from benchmarks.metrics.rows import Outcome, Row, compare, quiet
from consistruct import TaskLossClassifier
from consistruct.learning.models.features.feature_maps import LinearFeatures

__all__ = ["LOGISTIC_AT_HALF", "RIDGE_THRESHOLD", "kernel_of", "multilabel", "own_features"]

LOGISTIC_AT_HALF = "one-vs-rest logistic regression, at ½"
RIDGE_THRESHOLD = "ridge on our features, threshold tuned"
OURS = {"f1": ("fbeta", f1), "hamming": ("hamming", hamming)}


class Contest(NamedTuple):
    """A row of the table: a peer, the rule that turns its scores into sets, its test inputs."""

    title: str
    kind: str
    peer: Peer
    rule: AtThreshold
    inputs: Any


def multilabel(name: str, *, held_out: bool, rows: int | None) -> list[Row]:
    """Rows of both metrics; `rows` keeps that many training rows only (a check that it runs)."""
    X, Y, X_test, Y_test = sources.train_and_test(name, held_out=held_out)
    if rows is not None:
        common = Y[:rows].sum(axis=0) >= 10  # a chain needs both values of every label in each fold
        X, Y, X_test, Y_test = X[:rows], Y[:rows, common], X_test[:rows], Y_test[:rows, common]
    # these do not depend on our features: one set of fits for both metrics
    plain, logistic, chain = Logistic(X, Y, (1.0,)), Logistic(X, Y), Chain(X, Y)
    rbf = None if sp.issparse(X) else SupportVectors(X, Y)
    linear = LinearSupportVectors(X, Y) if sp.issparse(X) else None
    measured: list[Row] = []
    for metric, (spec, measure) in OURS.items():
        better = measure if metric == "f1" else _negative(measure)
        ours = TaskLossClassifier(spec, random_state=0)
        TaskLossClassifier(spec, random_state=0).fit(X[:100], Y[:100])  # compiles what is missing
        # ours and the untuned peer take turns; the least of three counts
        jobs: list[Callable[[], Any]] = [
            lambda model=ours: model.fit(X, Y),  # type: ignore[misc]
            lambda: plain.fit(1.0, X, Y),
        ]
        with quiet():
            own_time, plain_time = taking_turns(jobs, 3 if rows is None else 1).tolist()
        values = measure(np.asarray(ours.predict(X_test)), Y_test)
        chosen = described(ours)
        outcomes = [
            Outcome("consistruct, defaults", "ours", values, own_time[1], chosen, own_time[0])
        ]
        contests = usual(metric, Y, X_test, plain, logistic, chain, rbf)
        contests += on_our_features(metric, ridge_features(ours, X, Y), X, Y, X_test, linear)
        for title, kind, peer, rule, inputs in contests:
            pred, spent, settings = choose_and_predict(peer, rule, better, inputs)
            clock = np.nan
            if peer is plain:
                clock, spent = plain_time
            outcomes.append(Outcome(title, kind, measure(pred, Y_test), spent, settings, clock))
        measured += compare(name, metric, outcomes)
    return measured


def usual(
    metric: str,
    Y: np.ndarray,
    X_test: Any,
    plain: Logistic,
    logistic: Logistic,
    chain: Chain,
    rbf: SupportVectors | None,
) -> list[Contest]:
    """What people use now."""
    name, half = "one-vs-rest logistic regression", AtThreshold(0.5)
    pairs: list[tuple[str, Peer, AtThreshold]] = [
        (LOGISTIC_AT_HALF, plain, half),
        (f"{name}, C tuned, at ½", logistic, half),
        (f"{name}, C and threshold tuned", logistic, TunedThreshold()),
    ]
    if metric == "f1":
        pairs.append((f"{name}, C tuned, best F1 if independent", logistic, IndependentF1(Y)))
    pairs.append(("classifier chain of logistic regressions", chain, half))
    if rbf is not None:
        pairs.append(("one-vs-rest RBF SVC", rbf, AtThreshold(0.0)))
        pairs.append(("one-vs-rest RBF SVC, threshold tuned", rbf, TunedThreshold()))
    return [Contest(title, "usual", peer, rule, X_test) for title, peer, rule in pairs]


def on_our_features(
    metric: str,
    feature_map: Any,
    X: Any,
    Y: np.ndarray,
    X_test: Any,
    linear: LinearSupportVectors | None,
) -> list[Contest]:
    """Peers that see what our model sees; `linear` serves where features are the inputs."""
    features, features_test, kernel = own_features(feature_map, X, X_test)
    ridge = Ridge(features, Y, kernel=kernel)
    name = f"one-vs-rest {'' if kernel else 'linear '}SVC on our features"
    support = PrecomputedSVC(features, Y) if kernel else linear or LinearSupportVectors(features, Y)
    pairs: list[tuple[str, Peer, AtThreshold]] = [(RIDGE_THRESHOLD, ridge, TunedThreshold())]
    if metric == "f1":
        rule = TunedThreshold(at_least_one=True)
        pairs.append((f"{RIDGE_THRESHOLD}, at least one label", ridge, rule))
    pairs.append((name, support, AtThreshold(0.0)))
    pairs.append((f"{name}, threshold tuned", support, TunedThreshold()))
    return [Contest(title, "features", peer, rule, features_test) for title, peer, rule in pairs]


def kernel_of(feature_map: Any) -> Callable[[Any, Any], np.ndarray]:
    """The kernel that our model chose, between two sets of inputs."""
    kernel, scale = feature_map.kernel, feature_map.scaling
    return lambda A, B: np.asarray(kernel(scale(A), scale(B)))


def own_features(feature_map: Any, X: Any, X_test: Any) -> tuple[Any, Any, bool]:
    """The features of our model on both parts, and whether they are kernel values with X."""
    if isinstance(feature_map, LinearFeatures):
        return feature_map.transform(X), feature_map.transform(X_test), False
    kernel = kernel_of(feature_map)
    return kernel(X, X), kernel(X_test, X), True


def _negative(measure: Measure) -> Measure:
    return lambda pred, true: -measure(pred, true)
