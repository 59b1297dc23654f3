"""yeast, scene and bibtex: F1 of each example and Hamming loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
from benchmarks.metrics.rows import Outcome, Row, compare, quiet
from consistruct import TaskLossClassifier
from consistruct.learning.feature_maps import LinearFeatures

__all__ = ["LOGISTIC_AT_HALF", "RIDGE_THRESHOLD", "kernel_of", "multilabel", "own_features"]

LOGISTIC_AT_HALF = "one-vs-rest logistic regression, at ½"
RIDGE_THRESHOLD = "ridge on our features, threshold tuned"
OURS = {"f1": ("fbeta", f1), "hamming": ("hamming", hamming)}


def multilabel(name: str, *, held_out: bool, rows: int | None) -> list[Row]:
    """Rows of both metrics; `rows` keeps that many training rows only (a check that it runs)."""
    X, Y, X_test, Y_test = sources.train_and_test(name, held_out=held_out)
    if rows is not None:
        common = Y[:rows].sum(axis=0) >= 10  # a chain needs both values of every label in each fold
        X, Y, X_test, Y_test = X[:rows], Y[:rows, common], X_test[:rows], Y_test[:rows, common]
    logistic, plain = Logistic(X, Y), Logistic(X, Y, (1.0,))
    shared: list[tuple[str, Peer]] = [("classifier chain of logistic regressions", Chain(X, Y))]
    if not sp.issparse(X):
        shared.append(("one-vs-rest RBF SVC", SupportVectors(X, Y)))
    linear: LinearSupportVectors | None = None
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
            (_, seconds), (_, plain_seconds) = taking_turns(jobs, 3 if rows is None else 1)
        outcomes = [
            Outcome(
                "consistruct, defaults",
                "ours",
                measure(np.asarray(ours.predict(X_test)), Y_test),
                float(seconds),
                f"alpha {ours.alpha_:.2g}",
            )
        ]
        features, features_test, kernel = own_features(ours.feature_map_, X, X_test)
        on_ours: Peer
        if kernel:
            name_svc, on_ours = "one-vs-rest SVC on our features", PrecomputedSVC(features, Y)
        else:  # the inputs themselves, whatever the metric
            name_svc = "one-vs-rest linear SVC on our features"
            linear = linear or LinearSupportVectors(features, Y)
            on_ours = linear
        ridge = Ridge(features, Y, kernel=kernel)
        contests: list[tuple[str, str, Peer, AtThreshold, Any]] = [
            (LOGISTIC_AT_HALF, "usual", plain, AtThreshold(0.5), X_test),
            (
                "one-vs-rest logistic regression, C tuned, at ½",
                "usual",
                logistic,
                AtThreshold(0.5),
                X_test,
            ),
            (
                "one-vs-rest logistic regression, C and threshold tuned",
                "usual",
                logistic,
                TunedThreshold(),
                X_test,
            ),
        ]
        if metric == "f1":
            contests.append(
                (
                    "one-vs-rest logistic regression, C tuned, best F1 if independent",
                    "usual",
                    logistic,
                    IndependentF1(Y),
                    X_test,
                )
            )
        for title, peer in shared:
            threshold = 0.5 if isinstance(peer, Chain) else 0.0
            contests.append((title, "usual", peer, AtThreshold(threshold), X_test))
            if not isinstance(peer, Chain):  # a chain decides label by label
                tuned = f"{title}, threshold tuned"
                contests.append((tuned, "usual", peer, TunedThreshold(), X_test))
        contests += [
            (RIDGE_THRESHOLD, "features", ridge, TunedThreshold(), features_test),
            (name_svc, "features", on_ours, AtThreshold(0.0), features_test),
            (
                f"{name_svc}, threshold tuned",
                "features",
                on_ours,
                TunedThreshold(),
                features_test,
            ),
        ]
        if metric == "f1":
            contests.append(
                (
                    f"{RIDGE_THRESHOLD}, at least one label",
                    "features",
                    ridge,
                    TunedThreshold(at_least_one=True),
                    features_test,
                )
            )
        for title, kind, peer, rule, inputs in contests:
            pred, seconds, settings = choose_and_predict(peer, rule, better, inputs)
            seconds = float(plain_seconds) if peer is plain else seconds
            outcomes.append(Outcome(title, kind, measure(pred, Y_test), seconds, settings))
        measured += compare(name, metric, outcomes)
    return measured


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
