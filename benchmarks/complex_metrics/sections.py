"""What is measured, section by section: plain dicts of numbers, kept as JSON."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.metrics import precision_score, recall_score
from threadpoolctl import threadpool_limits

from benchmarks.complex_metrics import fits, recipes
from benchmarks.complex_metrics.recipes import OURS, Recipe
from consistruct.learning.rules.counts import LABEL_SHARE
from consistruct.learning.rules.labels import label_confusion, search_labels
from consistruct.learning.rules.rule import class_rule, searched_rows
from consistruct.learning.rules.search import search
from consistruct.losses.metrics import Randomized, parse_metric

CLASS_METRICS = ("macro-f1", "g-mean", "balanced-accuracy", "mcc")
TIMED = (*CLASS_METRICS, "qwk", "min-recall", "coverage:0.05:macro-f1")
CONCAVE = ("g-mean", "balanced-accuracy", "min-recall")
LEVEL = 0.9
CONSTRAINT_SPLITS = 50
OTHER_SPLITS = 200, 5000  # how many, and their seed
EXACT = "exact 95 % interval"
MANY = 300_000  # rows of ten classes, for the search beside a fit

Result = dict[str, Any]


def tables(n_jobs: int) -> Result:
    """Mean of each metric over models and splits, by table and recipe, in points."""
    found: Result = {metric: {} for metric in CLASS_METRICS}
    for name in fits.TABLES:
        values = _values(name, CLASS_METRICS, recipes.CLASS_RECIPES, n_jobs)
        for metric in CLASS_METRICS:
            found[metric][name] = values[metric]
        print(name, flush=True)
    return found


def grades(n_jobs: int) -> Result:
    """The same for quadratic weighted kappa."""
    return {
        name: _values(name, ("qwk",), recipes.GRADE_RECIPES, n_jobs)["qwk"] for name in fits.GRADED
    }


def _values(
    name: str, metrics: tuple[str, ...], among: dict[str, Recipe], n_jobs: int
) -> dict[str, dict[str, float]]:
    values: dict[str, dict[str, list[float]]] = {
        metric: {recipe: [] for recipe in among} for metric in metrics
    }
    for _, _, fit in fits.fitted(fits.jobs_of_table(name, fits.MODELS), n_jobs):
        k = fit.left.shape[1]
        for spec in metrics:
            metric = parse_metric(spec)
            for recipe, decide in among.items():
                counts = recipes.confusion(decide(metric, fit), fit.y_test, k)
                values[spec][recipe].append(100.0 * metric.value(counts))
    return {
        metric: {recipe: float(np.mean(v)) for recipe, v in by.items()}
        for metric, by in values.items()
    }


def labels(n_jobs: int) -> Result:
    """Macro-F1 of label sets, by set and model, in points; seconds of our search."""
    metric = parse_metric("macro-f1")
    found: Result = {}
    for name in fits.LABEL_SETS:
        for model, _, fit in fits.fitted(fits.jobs_of_labels(name), n_jobs):
            weight = np.full(len(fit.y_test), 1.0 / len(fit.y_test))
            row = {
                recipe: 100.0
                * metric.value(label_confusion(decide(metric, fit), fit.y_test, weight))
                for recipe, decide in recipes.LABEL_RECIPES.items()
            }
            found[f"{name}, {model}"] = row
            print(name, model, row, flush=True)
    return found


def constraints(n_jobs: int) -> Result:
    """Precision at recall 0.9 over random splits: shares that miss it, mean precision."""
    return _constrained(n_jobs, CONSTRAINT_SPLITS, 0)


def others(n_jobs: int) -> Result:
    """The same over four times as many other splits: what of it was the luck of fifty."""
    return _constrained(n_jobs, *OTHER_SPLITS)


def _constrained(n_jobs: int, count: int, seed: int) -> Result:
    found: Result = {}
    for name in fits.TWO_CLASSES:
        jobs = fits.jobs_of_table(name, ("logistic regression",), count, seed)
        rows: dict[str, list[tuple[float, float]]] = {name: [] for name in recipes.THRESHOLDS}
        for _, _, fit in fits.fitted(jobs, n_jobs):
            for recipe, threshold in recipes.THRESHOLDS.items():
                flagged = fit.test[:, 1] >= threshold(LEVEL, fit)
                rows[recipe].append(
                    (
                        recall_score(fit.y_test, flagged),
                        precision_score(fit.y_test, flagged, zero_division=0),
                    )
                )
        gained = np.array(rows[OURS])[:, 1] - np.array(rows[EXACT])[:, 1]
        found[name] = {
            recipe: {
                "missed": float(np.mean([recall < LEVEL for recall, _ in pairs])),
                "recall": float(np.mean([recall for recall, _ in pairs])),
                "precision": float(np.mean([precision for _, precision in pairs])),
            }
            for recipe, pairs in rows.items()
        }
        found[name][OURS]["gained"] = gained.tolist()  # precision over EXACT, split by split
        print(name, found[name], flush=True)
    return found


def gaps(n_jobs: int) -> Result:
    """Largest optimality gap on out-of-fold rows, first split of every table by every model.

    Of the single rule, and of what `randomized:` makes of it; the least recall of both on test
    rows, where rules are drawn at all; and what one row of the rarest class is worth there.
    """
    found: Result = {
        spec: {"single": 0.0, "where": "", "one row": 0.0, "drawn": 0.0} for spec in CONCAVE
    }
    drawn: Result = {}
    for name in fits.TABLES:
        jobs = [job for job in fits.jobs_of_table(name, fits.MODELS) if job[1][1] == 0]
        for model, _, fit in fits.fitted(jobs, n_jobs):
            for spec in CONCAVE:
                metric, row, k = parse_metric(spec), found[spec], fit.left.shape[1]
                single, again = class_rule(metric, fit.left, fit.y, np.ones(len(fit.y)))
                if single.gap > row["single"]:
                    row.update(single=single.gap, where=f"{name}, {model}")
                    row["one row"] = LABEL_SHARE / np.bincount(fit.y).min()
                if metric.kind == "linear":  # a mixture is never better
                    row["drawn"] = row["single"]
                    continue
                mixed = class_rule(Randomized(metric), fit.left, fit.y, np.ones(len(fit.y)))[0]
                row["drawn"] = max(row["drawn"], mixed.gap)
                if not len(mixed.shares):
                    continue
                each = [
                    recipes.confusion(recipes.by_costs(costs, again, fit), fit.y_test, k)
                    for costs in (*single.costs, *mixed.costs)
                ]
                mean = np.tensordot(mixed.shares, np.array(each[1:]), axes=1)
                drawn[f"{name}, {model}, {spec}"] = {
                    "rules": len(mixed.shares),
                    "gap": [single.gap, mixed.gap],
                    "left out": [single.estimate, mixed.estimate],
                    "test": [metric.value(each[0]), metric.value(mean)],
                }
        print(name, flush=True)
    return {"largest": found, "drawn": drawn}


def beyond(n_jobs: int) -> Result:
    """Processor seconds of what follows a fit to many rows, and of one fit of the base models.

    Recalibration (with the sample), the search, and all that `fit` does with out-of-fold estimates:
    both of them for all rows and for each of five folds, the bound and the estimate.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(MANY, 20))
    logits = X @ rng.normal(size=(20, 10)) * 0.4 + np.log(rng.dirichlet(np.full(10, 2.0)))
    chances = np.exp(logits)
    chances /= chances.sum(axis=1, keepdims=True)
    y = (chances.cumsum(axis=1) > rng.random((MANY, 1))).argmax(axis=1)
    found: Result = {"search": {}, "recalibration": {}, "whole": {}, "fit": {}}
    with threadpool_limits(1):
        for spec in TIMED:
            found["recalibration"][spec], found["search"][spec] = _seconds(spec, chances, y)
            start = time.process_time()
            class_rule(parse_metric(spec), chances, y, np.ones(MANY))
            found["whole"][spec] = time.process_time() - start
        for model in ("logistic regression", "boosting"):
            start = time.process_time()
            fits.base_model(model, np.zeros(20, dtype=bool)).fit(X, y)
            found["fit"][model] = time.process_time() - start
            print(found, flush=True)
    return found


def _seconds(spec: str, chances: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Of the recalibration and of the search."""
    metric = parse_metric(spec)
    start = time.process_time()
    _, rows = searched_rows(metric, chances, y, np.ones(len(y)))
    middle = time.process_time()
    search(metric, rows, np.random.default_rng(0))
    return middle - start, time.process_time() - middle


def speed(n_jobs: int) -> Result:
    """Processor seconds of the search: 100,000 rows of ten classes, 2,000 rows of 4,000 labels."""
    rng = np.random.default_rng(0)
    logits = 1.5 * rng.normal(size=(100_000, 10)) + np.log(rng.dirichlet(np.full(10, 2.0)))
    chances = np.exp(logits)
    chances /= chances.sum(axis=1, keepdims=True)
    y_true = (chances.cumsum(axis=1) > rng.random((len(chances), 1))).argmax(axis=1)
    found: Result = {}
    for spec in TIMED:
        again, sought = _seconds(spec, chances, y_true)
        found[spec] = {"recalibration": again, "search": sought}
    many = 1.0 / (1.0 + np.exp(4.0 - 2.0 * rng.normal(size=(2000, 4000))))
    y = (rng.random(many.shape) < many).astype(np.int64)
    start = time.process_time()
    search_labels(parse_metric("macro-f1"), many, y, np.full(2000, 1 / 2000))
    found["4000 labels"] = {"recalibration": 0.0, "search": time.process_time() - start}
    return found


SECTIONS = {
    "tables": tables,
    "grades": grades,
    "labels": labels,
    "constraints": constraints,
    "others": others,
    "gaps": gaps,
    "speed": speed,
    "beyond": beyond,
}
__all__ = ["OURS", "SECTIONS"]
