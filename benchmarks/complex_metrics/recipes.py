"""Decisions from probabilities, ours and the usual ones: out-of-fold rows in, test decisions out.

Every recipe sees out-of-fold probabilities and labels of training rows and probabilities of test rows,
nothing else; class weights see those of a model that was fitted with them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.optimize import minimize
from scipy.stats import beta

from benchmarks.complex_metrics.fits import Fitted
from consistruct.decisions.recalibration import Recalibration
from consistruct.learning.rules.labels import decide_labels, label_confusion, search_labels
from consistruct.learning.rules.rule import searched_rows
from consistruct.learning.rules.search import search
from consistruct.losses.metrics import Constrained, Metric, PrecisionScore, RecallAtLeast

Recipe = Callable[[Metric, Fitted], np.ndarray]

OURS = "consistruct"
POWERS = np.linspace(0.0, 1.5, 16)


def confusion(decisions: np.ndarray, y: np.ndarray, k: int) -> np.ndarray:
    """Counts, (k, k); rows are decisions."""
    return np.bincount(decisions * k + y, minlength=k * k).reshape(k, k).astype(np.float64)


# --- classes -------------------------------------------------------------------------------------


def ours(metric: Metric, fit: Fitted) -> np.ndarray:
    """What `TaskLossClassifier` does after the model's fit, without the estimate of the metric."""
    again, rows = searched_rows(metric, fit.left, fit.y, np.ones(len(fit.y)))
    return by_costs(search(metric, rows, np.random.default_rng(0)).costs[0], again, fit)


def by_costs(costs: np.ndarray, again: Recalibration, fit: Fitted) -> np.ndarray:
    """Decisions of least expected cost on test rows."""
    return np.asarray((again.for_decisions(fit.test) @ costs.T).argmin(axis=1))


def likeliest(metric: Metric, fit: Fitted) -> np.ndarray:
    return np.asarray(fit.test.argmax(axis=1))


def class_weights(metric: Metric, fit: Fitted) -> np.ndarray:
    return np.asarray(fit.weighted.argmax(axis=1))


def prior_shift(metric: Metric, fit: Fitted) -> np.ndarray:
    """Probabilities over class shares to a power; the power is the best on out-of-fold rows."""
    k = fit.left.shape[1]
    shares = np.bincount(fit.y, minlength=k) / len(fit.y)
    values = [
        metric.value(confusion((fit.left / shares**power).argmax(axis=1), fit.y, k))
        for power in POWERS
    ]
    return np.asarray((fit.test / shares ** POWERS[int(np.argmax(values))]).argmax(axis=1))


def tuned_threshold(metric: Metric, fit: Fitted) -> np.ndarray:
    """Two classes: the cut of greatest metric on out-of-fold labels; more: as prior shift."""
    if fit.left.shape[1] != 2:
        return prior_shift(metric, fit)
    levels = np.quantile(fit.left[:, 1], np.linspace(0.005, 0.995, 200))
    values = [
        metric.value(confusion((fit.left[:, 1] > level).astype(int), fit.y, 2)) for level in levels
    ]
    return np.asarray(fit.test[:, 1] > levels[int(np.argmax(values))]).astype(int)


CLASS_RECIPES: dict[str, Recipe] = {
    OURS: ours,
    "likeliest class": likeliest,
    "class weights": class_weights,
    "prior shift": prior_shift,
    "tuned threshold": tuned_threshold,
}


# --- grades --------------------------------------------------------------------------------------


def expected_grade(metric: Metric, fit: Fitted) -> np.ndarray:
    """The decision of least expected squared error."""
    k = fit.test.shape[1]
    return np.clip(np.rint(fit.test @ np.arange(k)), 0, k - 1).astype(int)


def cut_points(metric: Metric, fit: Fitted) -> np.ndarray:
    """k − 1 cuts of the expected grade, by Nelder–Mead from several starts on out-of-fold labels."""
    k = fit.left.shape[1]
    mean, rng = fit.left @ np.arange(k), np.random.default_rng(0)

    def lost(cuts: np.ndarray) -> float:
        return -metric.value(confusion(np.searchsorted(np.sort(cuts), mean), fit.y, k))

    shares = np.cumsum(np.bincount(fit.y, minlength=k))[:-1] / len(fit.y)
    plain = np.arange(k - 1) + 0.5
    starts = [plain, np.quantile(mean, shares), mean.mean() + 0.6 * (plain - mean.mean())]
    starts += [starts[1] + 0.2 * rng.normal(size=k - 1) for _ in range(3)]
    found = min(
        (minimize(lost, start, method="Nelder-Mead") for start in starts), key=lambda f: f.fun
    )
    return np.searchsorted(np.sort(found.x), fit.test @ np.arange(k))


GRADE_RECIPES: dict[str, Recipe] = {
    OURS: ours,
    "likeliest class": likeliest,
    "expected squared error": expected_grade,
    "cut points": cut_points,
}


# --- label sets ----------------------------------------------------------------------------------


def our_labels(metric: Metric, fit: Fitted) -> np.ndarray:
    weight = np.full(len(fit.y), 1.0 / len(fit.y))
    costs = search_labels(metric, fit.left, fit.y, weight)
    return decide_labels(costs, fit.test).astype(int)


def half(metric: Metric, fit: Fitted) -> np.ndarray:
    return np.asarray(fit.test > 0.5).astype(int)


def weighted_half(metric: Metric, fit: Fitted) -> np.ndarray:
    return np.asarray(fit.weighted > 0.5).astype(int)


def tuned_thresholds(metric: Metric, fit: Fitted) -> np.ndarray:
    """For each label the cut of greatest F1 on out-of-fold labels."""
    found = np.zeros(fit.test.shape, dtype=int)
    for label in range(fit.left.shape[1]):
        order = np.argsort(-fit.left[:, label], kind="stable")
        chance, y = fit.left[order, label], fit.y[order, label]
        hits, rank = np.cumsum(y), np.arange(1, len(y) + 1)
        f1 = 2.0 * hits / (rank + max(1, y.sum()))
        ends = np.append(chance[1:] < chance[:-1], True)
        best = int(np.where(ends, f1, -1.0).argmax())
        below = chance[best + 1] if best + 1 < len(chance) else 0.0
        found[:, label] = fit.test[:, label] > 0.5 * (chance[best] + below)
    return found


def xcolumns(metric: Metric, fit: Fitted) -> np.ndarray:
    """Its Frank–Wolfe mixture of weighted classifiers, drawn; the better start on out-of-fold rows."""
    from xcolumns import frank_wolfe
    from xcolumns.metrics import macro_f1_score_on_conf_matrix as macro_f1

    weight = np.full(len(fit.y), 1.0 / len(fit.y))
    found = []
    for start in ("random", "top"):
        mixed = frank_wolfe.find_classifier_using_fw(
            fit.y.astype(np.float64), fit.left, macro_f1, 0, init_classifier=start, seed=0
        )
        left, test = (
            np.asarray(
                frank_wolfe.predict_using_randomized_weighted_classifier(
                    chances, 0, mixed.a, mixed.b, mixed.p, seed=0
                )
            )
            for chances in (fit.left, fit.test)
        )
        found.append((metric.value(label_confusion(left > 0, fit.y, weight)), test))
    return np.asarray(max(found, key=lambda pair: pair[0])[1] > 0).astype(int)


LABEL_RECIPES: dict[str, Recipe] = {
    OURS: our_labels,
    "at ½": half,
    "class weights": weighted_half,
    "tuned thresholds": tuned_thresholds,
    "xcolumns": xcolumns,
}


# --- precision at a required recall --------------------------------------------------------------


def our_recall(level: float, fit: Fitted) -> float:
    """The threshold on p(1) that the constrained search finds."""
    metric = Constrained(PrecisionScore(), RecallAtLeast(level))
    flagged = ours(metric, fit) == 1
    return float(np.min(fit.test[flagged, 1], initial=1.1))


def empirical_recall(level: float, fit: Fitted) -> float:
    """The highest threshold with the recall on out-of-fold rows."""
    positives = np.sort(fit.left[fit.y == 1, 1])
    return float(positives[int(np.floor((1.0 - level) * len(positives)))])


def exact_recall(confidence: float, level: float, fit: Fitted) -> float:
    """The highest threshold whose Clopper–Pearson lower bound of the recall is at least `level`."""
    positives = np.sort(fit.left[fit.y == 1, 1])
    n = len(positives)
    kept = n - np.arange(n)  # at the i-th smallest as threshold
    lower = beta.ppf(1.0 - confidence, kept, n - kept + 1)
    enough = np.flatnonzero(lower >= level)
    return float(positives[enough[-1]]) if len(enough) else -1.0


THRESHOLDS: dict[str, Callable[[float, Fitted], float]] = {
    OURS: our_recall,
    "exact 95 % interval": partial(exact_recall, 0.975),
    "exact one-sided 95 %": partial(exact_recall, 0.95),
    "as on out-of-fold rows": empirical_recall,
}
