"""A learning report in plain language: one section per question."""

from __future__ import annotations

from dataclasses import replace

from consistruct.report.learning.charts import CHARTS
from consistruct.report.learning.entries import DecisionChange, ForecastPoint, Profit
from consistruct.report.learning.model import LearningReport
from consistruct.report.learning.model_wording import models_section, plural
from consistruct.report.learning.score_wording import (
    CLEAR,
    columns_section,
    metric_section,
    overlap_warning,
)
from consistruct.report.sections import Section

__all__ = ["learning_sections"]

WORTH = 0.05  # of the loss, gained by twice the rows, is worth them


def learning_sections(report: LearningReport) -> tuple[Section, ...]:
    """The questions, in the order in which a reader asks them."""
    sections = (
        metric_section(report),
        *(() if not report.columns else (columns_section(report),)),
        *(() if report.decisions is None else (_decisions(report.decisions),)),
        *(() if report.profit is None else (_profit(report.profit),)),
        _choices(report),
        _more_data(report),
        _errors(report),
        _trust(report),
        _advice(report),
    )
    return tuple(replace(section, charts=_charts_in(section.key)) for section in sections)


def _charts_in(section: str) -> tuple[str, ...]:
    return tuple(key for key, chart in CHARTS.items() if chart.section == section)


def _decisions(change: DecisionChange) -> Section:
    held = "" if change.held_out is None else f" {change.held_out:.4g} on the held-out examples;"
    answer = (
        f"{change.metric}:{held} {change.estimate:.4g} on {change.out_of_fold_rows} out-of-fold "
        f"rows during fitting, where the most probable answer gets {change.plain:.4g}."
    )
    moved = sorted(
        (
            (abs(after - before), place, column, before, after)
            for place, rows in enumerate(zip(change.before, change.after, strict=True))
            for column, (before, after) in enumerate(zip(*rows, strict=True))
        ),
        reverse=True,
    )[:6]
    facts = [
        (_cell(change, place, column), f"{before:.1%} of the rows before, {after:.1%} now")
        for size, place, column, before, after in moved
        if size > 0
    ]
    if change.gap is not None:
        facts.append(("at most this far below the best rule", f"{change.gap:.4g}"))
    facts += [
        (
            f"constraint {number + 1}",
            f"{'satisfied' if slack >= 0 else 'violated'} by {abs(slack):.3g}",
        )
        for number, slack in enumerate(change.slack)
    ]
    by = "made with one cost matrix, found on out-of-fold rows, and the losses in this report use"
    if change.metric.startswith("Randomized("):
        by = (
            "made with one cost matrix, or drawn at random between a few where that is better; "
            "they were found on out-of-fold rows, and the losses in this report use the mean of"
        )
    details = (
        f"The metric is not an average over examples. Decisions are {by} these costs. The value "
        "on out-of-fold rows was computed with costs found on other rows.",
    )
    return Section(
        "decisions", "What changed when decisions were chosen for the metric?", answer, details,
        tuple(facts),
    )  # fmt: skip


def _cell(change: DecisionChange, place: int, column: int) -> str:
    """A cell of the confusion in words."""
    if len(change.before[0]) == len(change.before) == len(change.names):
        return f"“{change.names[column]}” mistaken for “{change.names[place]}”"
    return f"“{change.names[place]}” {('correctly absent', 'missed', 'spurious', 'found')[column]}"


def _profit(profit: Profit) -> Section:
    chosen, best = profit.points[profit.chosen], profit.points[profit.best]
    answer = (
        f"Acting where a gain is expected, on {chosen.share:.1%} of the examples, gains "
        f"{chosen.profit:.4g} per example compared with “{profit.base}” for all"
    )
    answer += "." if chosen.savings is None else f": savings of {chosen.savings:.1%}."
    facts = [
        ("acted on", f"{chosen.share:.1%} of the examples"),
        ("gain", f"{chosen.profit:.4g} per example"),
        ("best in hindsight", f"{best.profit:.4g} per example, acting on {best.share:.1%}"),
    ]
    details = (
        "Every example has its own costs. The single decision is the one that costs least if it "
        "is made for all examples; savings are the share of its cost that is saved.",
        "The best in hindsight knows the outcomes of these examples; no rule for new ones can "
        "reach it.",
    )
    return Section("profit", "How much do its decisions gain?", answer, details, tuple(facts))


def _choices(report: LearningReport) -> Section:
    if report.alpha is None:
        return models_section(report)
    question = "Were the penalty and the features well chosen?"
    facts = [("penalty α", f"{report.alpha:.3g}"), ("model", report.model)]
    details = []
    if not report.path:
        answer = f"The penalty is {report.alpha:.3g}: {report.reason('path')}."
    else:
        low, high = report.path[0].alpha, report.path[-1].alpha
        if report.alpha in (low, high):
            side = "smallest" if report.alpha == low else "largest"
            answer = (
                f"The penalty is the {side} of {len(report.path)} that were compared: try more "
                "extreme ones."
            )
        else:
            answer = (
                f"The penalty {report.alpha:.3g} is inside the range of the {len(report.path)} "
                "that were compared."
            )
        details.append(
            "Every penalty was judged by the loss on training examples that were left out of the "
            "fit, one at a time."
        )
    if report.contrast != 1.0:
        facts.append(("contrast", f"{report.contrast:g}"))
        details.append(
            f"Before a decision, estimates are stretched by {report.contrast:g} around their mean: "
            "a penalty shrinks them, and decisions so made cost less on training examples that "
            "were left out. Expected losses and the losses shown for penalties and bandwidths do "
            "not include this."
        )
    if report.bandwidths:
        best = min(report.bandwidths, key=lambda point: point.task_loss)
        chosen = next(point for point in report.bandwidths if point.chosen)
        near = chosen.task_loss <= best.task_loss + best.task_error
        details.append(
            "The bandwidth is within one standard error of the best that was tried."
            if near
            else f"A bandwidth of {best.bandwidth:.3g} looks better than {chosen.bandwidth:.3g}."
        )
    return Section("choices", question, answer, tuple(details), tuple(facts))


def _more_data(report: LearningReport) -> Section:
    question = "Would more data help?"
    ours = [fit for fit in report.learning_curve if fit.model == report.scores[0].name]
    if len(ours) < 2:
        reason = report.reason("learning_curve") or "no curve was computed"
        return Section("more_data", question, f"Not known: {reason}.")
    last, before = ours[-1], ours[-2]
    ahead = report.forecast
    if last.mean <= 0:
        answer = f"No: the loss on the held-out {plural(report.unit)} is already zero."
    elif ahead is None:
        gain = before.mean - last.mean
        answer = (
            f"{'Yes' if gain > WORTH * before.mean else 'Little'}: the last doubling of the data "
            f"changed the loss from {before.mean:.4g} to {last.mean:.4g}."
        )
    else:
        by_size = {point.n_train: point for point in ahead.points}
        double, tenfold = by_size[2 * last.n_train], by_size[10 * last.n_train]
        helps = last.mean - double.mean > WORTH * last.mean
        answer = (
            f"{'Yes' if helps else 'Little'}: it is {last.mean:.4g} now; the forecast is "
            f"{_ahead(double)} for twice the rows and {_ahead(tenfold)} for ten times."
        )
    details = [
        "The curve levels off at the noise in the data plus whatever these features cannot "
        "express; single points are noisy.",
    ]
    facts: list[tuple[str, str]] = []
    if ahead is not None:
        details.append(
            f"The forecast extrapolates the curve by a + b·n^−c. Its {ahead.confidence:.0%} "
            "intervals account for the limited number of test examples, for which examples "
            "happened to be drawn, and for every such curve that fits; they assume that new "
            "examples are like these."
        )
        facts = [
            (f"at {point.n_train} examples", _ahead(point))
            for point in ahead.points
            if point.n_train > last.n_train
        ]
        facts.append(
            (
                "floor of the curve",
                f"{ahead.floor:.3g} ({ahead.floor_low:.3g} to {ahead.floor_high:.3g})",
            )
        )
    return Section("more_data", question, answer, tuple(details), tuple(facts))


def _ahead(point: ForecastPoint) -> str:
    return f"{point.mean:.3g} ({point.low:.3g} to {point.high:.3g})"


def _errors(report: LearningReport) -> Section:
    question = "Which mistakes cost the most?"
    if report.confusion is not None:
        table = report.confusion
        cells = sorted(
            (
                (table.cost[p][t], table.counts[p][t], prediction, true_label)
                for p, prediction in enumerate(table.predictions)
                for t, true_label in enumerate(table.true_labels)
            ),
            reverse=True,
        )[:5]
        total = report.scores[0].mean
        facts = [
            (
                f"“{true_label}” mistaken for “{prediction}”",
                f"{_counted(count, report)}, {cost / total:.0%} of the loss",
            )
            for cost, count, prediction, true_label in cells
            if cost > 0
        ]
        answer = (
            f"{facts[0][0]}: {facts[0][1]}."
            if facts
            else f"None: no held-out {report.unit} has any loss."
        )
        return Section("errors", question, answer, (), (*facts, *_worst(report)))
    if report.parts:
        worst = report.parts[0]
        answer = (
            f"“{worst.name}” has the most errors: missed in {worst.missed:.1%} and spurious in "
            f"{worst.spurious:.1%} of the examples."
        )
        details = (
            "Except for the Hamming loss, what an error costs depends on the rest of the label "
            "set: the shares count errors, not costs.",
        )
        return Section("errors", question, answer, details)
    if report.costliest:
        return Section(
            "errors",
            f"Which {plural(report.unit)} have the highest loss?",
            _costly(report),
            (),
            _worst(report),
        )
    return Section("errors", question, f"Not shown: {report.reason('confusion')}.")


def _costly(report: LearningReport) -> str:
    worst = report.costliest[0]
    return f"{report.unit.capitalize()} {worst.name}, with {worst.size} items: {worst.loss:.4g}."


def _worst(report: LearningReport) -> tuple[tuple[str, str], ...]:
    what = "tokens" if report.unit == "sequence" else "items"
    return tuple(
        (f"{report.unit} {one.name}", f"loss {one.loss:.4g}, {one.size} {what}")
        for one in report.costliest
    )


def _counted(count: int, report: LearningReport) -> str:
    what = "token" if report.unit == "sequence" else report.unit
    return f"{count} {what if count == 1 else plural(what)}"


def _trust(report: LearningReport) -> Section:
    question = "Does the model know how wrong it is?"
    if not report.bins:
        return Section("trust", question, f"It cannot say: {report.reason('expected_loss')}.")
    n = sum(part.n for part in report.bins)
    predicted = sum(part.predicted * part.n for part in report.bins) / n
    observed = sum(part.observed * part.n for part in report.bins) / n
    answer = (
        f"It expects a loss of {predicted:.4g} per {report.unit} on average; the actual loss was "
        f"{observed:.4g}."
    )
    in_python = "predict_expected_loss in Python"
    on_rows = report.unit == "example"
    tool = f"`predict --expected-loss`, {in_python}" if on_rows else in_python
    details = [
        f"Rank {plural(report.unit)} by expected loss ({tool}), send the worst to a person, and "
        "trust the value itself only as far as the figure supports it."
    ]
    facts = []
    if report.rank_correlation is not None:
        facts.append(
            ("rank correlation of predicted and actual loss", f"{report.rank_correlation:.2f}")
        )
    if report.selective is not None:
        found = report.selective
        facts.append(
            (
                "area under the risk-coverage curve",
                f"{found.area:.4g} [{found.low:.4g}, {found.high:.4g}]; random order "
                f"{found.random_area:.4g}, best possible {found.best_area:.4g}",
            )
        )
        details.append(
            f"Answering only the most certain {plural(report.unit)} lowers the mean loss as the "
            "second figure shows; `fit --risk` (RiskControl) turns a level of loss into a "
            "guarantee."
        )
    return Section("trust", question, answer, tuple(details), tuple(facts))


def _advice(report: LearningReport) -> Section:
    hard = "How hard is this loss in itself? `consistruct analyze` tells you, without any data."
    question = "What should I do?"
    if overlap_warning(report) is not None:  # nothing below would be true of new data
        first = (
            "Use test data that the model was not trained on: the losses shown here are too "
            "optimistic."
        )
        return Section("advice", question, first, (hard,))
    steps = []
    others = report.scores[1:]
    better = [
        score
        for score in others
        if score.difference_error is not None and score.difference < -CLEAR * score.difference_error
    ]
    if better:
        best = min(better, key=lambda score: score.mean)
        steps.append(
            f"Use {best.name} on these data, which is clearly better here, or try other features."
        )
    elif not others:
        steps.append("Pass the training data as well, to compare with baselines.")
    else:
        steps.append("Keep this model: no baseline is clearly better on this loss.")
    if report.path and report.alpha in (report.path[0].alpha, report.path[-1].alpha):
        steps.append("Pass a wider list of penalties as alpha: the chosen one is at the edge.")
    more = _more_data(report).answer
    if more.startswith("Yes"):
        steps.append("Collect more data: the loss is still falling.")
    elif more.startswith("Little"):
        steps.append("Look for better features rather than more data: the curve is flat.")
    steps.append(hard)
    return Section("advice", question, steps[0], tuple(steps[1:]))
