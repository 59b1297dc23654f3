"""Request the numbers of risk control and of reports; see `adapters`."""

from __future__ import annotations

from typing import Any

import numpy as np

import consistruct as cs
from consistruct import losses, models
from consistruct.guarantees.plan_table import plan_table
from consistruct.report import calibration_report
from paper.audit import run_audit
from paper.figures import figure_data
from paper.learning_curves import learning_curve
from paper.problems import synthetic_problem
from tests.frozen import data
from tests.frozen.adapters_learning import (
    Compute,
    classifier,
    cost_matrix,
    in_class_order,
    logistic,
    prices,
    structured,
    written,
)
from tests.frozen.data import TRAIN

# --- risk control: the guarantee, how safe it made the rules, and what they then predict ---

CALIBRATION = 400  # rows, of which the first TRAIN train the model


def _controlled(loss: Any, labels: str, level: float, **settings: Any) -> dict[str, Any]:
    table = data.table(CALIBRATION + 40)
    y = getattr(table, labels)
    model = classifier(loss, models.Ridge("linear")).fit(table.X[:TRAIN], y[:TRAIN])
    safe = cs.RiskControl(model, level, random_state=0, **settings)
    safe.fit(table.X[TRAIN:CALIBRATION], y[TRAIN:CALIBRATION])
    return _safety(safe, table.X[CALIBRATION:], y[CALIBRATION:])


def _controlled_ranks() -> dict[str, Any]:
    X, y, query = data.queries(150)
    new = query >= 140
    safe = cs.RiskControl(structured("ndcg", models.Items("ridge")), 0.3, cv=0.6, random_state=0)
    safe.fit(X[~new], y[~new], groups=query[~new])
    return _safety(safe, X[new], y[new], groups=query[new])


def _safety(safe: Any, X: Any, y: Any, **about: Any) -> dict[str, Any]:
    seen = safe.evaluate(X, y, **about)
    (threshold,) = safe.thresholds_.values()
    return {
        "level": safe.guarantee_.level,
        "confidence": safe.guarantee_.confidence,
        "holds for the fitted model": safe.guarantee_.proved,
        "rows": safe.guarantee_.n,
        "safety": threshold.safety,
        "predictions": written(safe.predict(X, **about)),
        "risk": _interval(seen.risk),
        "risk of answers": None if seen.selective_risk is None else _interval(seen.selective_risk),
        "coverage": seen.coverage,
        "size": seen.size,
    }


def _interval(interval: Any) -> list[float]:
    return [interval.low, interval.estimate, interval.high]


TREE = losses.Tree((-1, 0, 0, 1, 1, 2, 2))
# by the safer predictions, for which there is one class each
SAFER: dict[str, Compute] = {
    "abstain": lambda: _controlled(prices(), "y", 0.6, policy="abstain"),
    "abstain, surely": lambda: _controlled(
        "zero_one", "y", 0.3, policy="abstain", risk="selective", confidence=0.8
    ),
    "sets": lambda: _controlled("zero_one", "y", 0.1),
    "sets, surely": lambda: _controlled("zero_one", "y", 0.15, confidence=0.9),
    "sets, cross-fitted": lambda: _controlled("zero_one", "y", 0.1, cv=3),
    "ancestor": lambda: _controlled(TREE, "grades", 0.15),
    "grow": lambda: _controlled("hamming", "sets", 0.1),
    "shrink": lambda: _controlled("hamming", "sets", 0.1, policy="shrink"),
    "threshold": lambda: _controlled("hamming", "sets", 0.35, policy="threshold", confidence=0.8),
    "list": _controlled_ranks,
    "defer": lambda: _controlled(
        "zero_one", "y", 0.3, policy="defer", defer_cost=0.05, confidence=0.8
    ),
}


# --- reports: one of each kind, the numbers that it is read for ---


def _learning_report(report: Any) -> dict[str, Any]:
    """Return the numbers of a report about a model; None stands for a part that it lacks."""
    confusion, profit, change = report.confusion, report.profit, report.decisions
    places = {score.name: place for place, score in enumerate(report.scores)}
    return {
        "examples": [report.n_train, report.n_test, report.overlap],
        "scores": [[s.low, s.mean, s.high, s.standard_error] for s in report.scores],
        "differences": [[s.difference, s.difference_error] for s in report.scores],
        "learning curve": [
            [places[fit.model], fit.n_train, fit.mean] for fit in report.learning_curve
        ],
        "expected to go on": None
        if report.forecast is None
        else [
            [point.n_train, point.low, point.mean, point.high] for point in report.forecast.points
        ],
        "penalty": report.alpha,
        "penalties": [[point.alpha, point.task_loss] for point in report.path],
        "bandwidths": [[point.bandwidth, point.task_loss] for point in report.bandwidths],
        "counts": confusion
        and sorted(
            [p, t, confusion.counts[i][j], confusion.cost[i][j]]
            for i, p in enumerate(confusion.predictions)
            for j, t in enumerate(confusion.true_labels)
        ),
        "labels": [[part.missed, part.spurious] for part in report.parts],
        "expected and occurred": [[b.n, b.predicted, b.observed] for b in report.bins],
        "rank correlation": report.rank_correlation,
        "risk against coverage": report.selective
        and [
            report.selective.low,
            report.selective.area,
            report.selective.high,
            report.selective.best_area,
            report.selective.random_area,
        ],
        "profit": profit and [[p.share, p.profit, p.savings] for p in profit.points],
        "measures": [[m.low, m.value, m.high] for m in report.measures],
        "worst examples": [[one.size, one.loss] for one in report.costliest],
        "metric": change and [change.held_out, change.estimate, change.plain, change.gap],
    }


def _report_on_rows(loss: Any, labels: str, model: Any, **settings: Any) -> dict[str, Any]:
    table = data.table(2 * TRAIN)
    y = getattr(table, labels)
    fitted = classifier(loss, model).fit(table.X[:TRAIN], y[:TRAIN])
    known = {"X_train": table.X[:TRAIN], "y_train": y[:TRAIN]}
    report = cs.learning_report(fitted, table.X[TRAIN:], y[TRAIN:], **known, repeats=1, **settings)
    return _learning_report(report)


def _report_on_tags() -> dict[str, Any]:
    X, y = data.sentences()
    model = structured("hamming", models.Chain(alpha=0.01)).fit(X[:40], y[:40])
    known = {"X_train": X[:40], "y_train": y[:40]}
    return _learning_report(
        cs.learning_report(model, X[40:], y[40:], **known, learning_curve=False)
    )


def _report_on_ranks() -> dict[str, Any]:
    X, y, query = data.queries()
    new = query >= 30
    model = structured("ndcg", models.Items("ridge")).fit(X[~new], y[~new], groups=query[~new])
    known = {"X_train": X[~new], "y_train": y[~new], "groups_train": query[~new]}
    report = cs.learning_report(
        model, X[new], y[new], groups=query[new], **known, learning_curve=False
    )
    return _learning_report(report)


def _report_on_costs() -> dict[str, Any]:
    table = data.table(2 * TRAIN)
    costs = in_class_order(table)
    model = classifier("zero_one", logistic(), rows="pred")
    model.fit(table.X[:TRAIN], table.y[:TRAIN], costs=costs[:TRAIN])
    return _learning_report(
        cs.learning_report(model, table.X[TRAIN:], table.y[TRAIN:], costs=costs[TRAIN:])
    )


def _calibration_report() -> dict[str, Any]:
    curve = cs.calibration_function(losses.Mixed((2, 3), 0.1))
    eps = np.array([0.11, 0.37, 0.73]) * curve.max_eps
    report = calibration_report(curve, eps, at=eps[1])
    worst, sizes = report.worst_case, report.sample_sizes
    return {
        "labels": [report.n_labels, report.n_predictable],
        "ranks": [report.rank, report.own_rank],
        "effective classes": report.effective_classes,
        "consistency level": report.consistency_level,
        "approximation error": report.approximation_error,
        "accuracy": report.at,
        "curve": [
            [point.eps, point.log_lower, point.log_upper, point.log_theorem_7, point.log_theorem_8]
            for point in report.curve
        ],
        "worst case": sorted(entry.probability for entry in worst.distribution),
        "log surrogate gap": worst.log_surrogate_gap,
        "sample sizes": [[p.eps, p.log10_paper, p.log10_sharp] for p in sizes.points],
    }


def _complexity(found: Any) -> dict[str, Any]:
    return {
        "accuracy": found.eps,
        "consistency level": found.consistency_level,
        "log H": found.log_envelope,
        "paper": [found.paper.log_D, found.paper.log_M, found.paper.log_iterations],
        "sharp": [found.sharp.log_D, found.sharp.log_M, found.sharp.log_iterations],
    }


def _advice() -> dict[str, Any]:
    found = cs.advise(losses.Mixed((2,) * 3, 0.1), eps=0.3)
    return {
        "families": [
            [f.rank, f.consistency_level, f.approximation_error, f.log_iterations]
            for f in found.families
        ],
        "recommended": found.recommended.rank,
        "crossings": [eps for _, eps in found.crossings],
        "surrogates": [
            [entry.lower, entry.upper, entry.draws_least, entry.draws_most]
            for entry in found.surrogates.entries
        ],
        "recommended surrogate": found.surrogates.entries.index(found.surrogates.recommended),
    }


def _forecast() -> dict[str, Any]:
    table = data.table(2 * TRAIN)
    found = cs.forecast(
        classifier("zero_one", models.Ridge("linear", alpha=0.01)), table.X, table.y
    )
    return {
        "measured": [[n, *_interval(loss)] for n, loss in found.measured()],
        "forecast": [[n, *_interval(loss)] for n, loss in found.table()],
        "floor": _interval(found.floor),
    }


def _comparison() -> dict[str, Any]:
    table = data.table(2 * TRAIN)
    several = {
        "costs": classifier(prices(), models.Ridge("linear")),
        "few rows": classifier(prices(), models.Ridge("linear", alpha=0.01)),
    }
    for number, model in enumerate(several.values()):
        model.fit(table.X[: TRAIN // (1 + 3 * number)], table.y[: TRAIN // (1 + 3 * number)])
    found = cs.compare(several, table.X[TRAIN:], table.y[TRAIN:])
    return {
        row.name: [*_interval(row.loss), *_interval(row.difference), row.p_value]
        for row in found.rows
    }


def _simulation() -> dict[str, Any]:
    problem = synthetic_problem(losses.ZeroOne(4), n_anchors=3, n_inputs=50, random_state=0)
    curve = learning_curve(problem, (10, 100), repeats=3, random_state=0)
    return {
        "norm": curve.optimum_norm,
        "start": [curve.surrogate_start, curve.task_start],
        "points": [
            [p.n_steps, p.surrogate, p.surrogate_bound, p.task, p.task_bound] for p in curve.points
        ],
    }


def _plan_table() -> dict[str, Any]:
    rows = plan_table(eps=0.1, sizes=(10, 100))
    return {"rows": [[row.size, row.paper_ratio, row.sharp_ratio] for row in rows]}


def _figure() -> dict[str, Any]:
    return {"columns": [column[::120] for column in figure_data("figure_1a").columns.values()]}


def _importance() -> dict[str, Any]:
    table = data.table(2 * TRAIN)
    model = classifier(prices(), models.Ridge("linear"))
    model.fit(table.X[:TRAIN], table.y[:TRAIN])
    X, y = table.X[TRAIN:], table.y[TRAIN:]
    found = cs.metrics.permutation_importance(model, X, y, random_state=0)
    return {"baseline": found.baseline, "increase": found.increase, "error": found.error}


def _audit() -> dict[str, Any]:
    entries = {
        "0-1 loss": "prop-zero-one",
        "Hamming loss": "prop-hamming",
        "rate": "theorem-rate",
        "lower bound is tight": "lower-bound-not-tight",
    }
    found = run_audit(list(entries.values()), quick=True)
    assert [result.entry.name for result in found.results] == list(entries.values())
    verdicts = [result.verdict for result in found.results]
    return dict(zip(entries, verdicts, strict=True))


CLOSED_REPORTS: dict[str, Compute] = {
    "calibration": _calibration_report,
    "plan": lambda: _complexity(cs.sample_complexity(losses.Hamming(50), eps=0.1)),
    "plan, default accuracy": lambda: _complexity(cs.sample_complexity(cost_matrix())),
    "plan table": _plan_table,
    "advice": _advice,
    "comparison": _comparison,
    "importance": _importance,
    "figure": _figure,
    "audit": _audit,
}
ITERATED_REPORTS: dict[str, Compute] = {
    "model of classes": lambda: _report_on_rows(prices(), "y", models.Ridge()),
    "model of sets": lambda: _report_on_rows("fbeta", "sets", models.Ridge("linear")),
    "model of a metric": lambda: _report_on_rows("macro-f1", "y", logistic(), learning_curve=False),
    "model of tags": _report_on_tags,
    "model of rankings": _report_on_ranks,
    "model of costs": _report_on_costs,
    "forecast": _forecast,
    "simulation": _simulation,
}
