"""How good a model is on its loss, against baselines, and what its columns were: in words."""

from __future__ import annotations

from collections import Counter

from consistruct.report.learning.entries import Measure, ModelScore
from consistruct.report.learning.model import LearningReport
from consistruct.report.learning.model_wording import plural
from consistruct.report.sections import Section

__all__ = ["CLEAR", "columns_section", "metric_section", "overlap_warning", "verdict"]

CLEAR = 2.0  # standard errors of a paired difference that are no accident
MANY = 0.5  # so large a share of held-out examples that were trained on is no coincidence
KINDS = {"number": "of numbers", "category": "of categories", "date": "of dates",
         "dropped": "left out"}  # fmt: skip


def metric_section(report: LearningReport) -> Section:
    """The loss on held-out examples beside that of the baselines."""
    model, others = report.scores[0], report.scores[1:]
    unit = report.unit
    answer = f"Its loss is {_pm(model)} per {unit}, out of at most {report.max_value:g}."
    warning = overlap_warning(report)
    if others:
        best = min(others, key=lambda score: score.mean)
        answer += (
            f" The loss of the best baseline ({best.name}) is {best.mean:.4g}: {verdict(best)}."
        )
    facts = [
        (score.name, f"{_pm(score)}{'' if score is model else f'; {verdict(score)}'}")
        for score in report.scores
    ]
    facts += [(measure.name, _interval(measure)) for measure in report.measures]
    facts += [
        (f"held-out {plural(unit)}", str(report.n_test)),
        (
            f"training {plural(unit)}",
            "not given" if report.n_train is None else str(report.n_train),
        ),
    ]
    if report.overlap:
        share = report.overlap / report.n_test
        facts.append(
            (f"held-out {plural(unit)} also used for training", f"{report.overlap} ({share:.0%})")
        )
    details = [
        *(() if warning is None else (warning,)),
        *(() if not others else (_about_baselines(report),)),
        f"Differences are computed {unit} by {unit}, so that easy and hard {plural(unit)} cancel "
        "out; a difference of more than two standard errors is called clear.",
        "± is one standard error; [low, high] contains the true mean with 95 % confidence, "
        f"however few the {plural(unit)} and however rare the errors.",
    ]
    reason = report.reason("baselines")
    if reason is not None:
        details.append(f"On baselines: {reason}.")
    return Section(
        "metric",
        "How good is it on the loss that matters?",
        answer,
        tuple(details),
        tuple(facts),
    )


def _pm(score: ModelScore) -> str:
    if score.standard_error is None:
        return f"{score.mean:.4g}"
    found = f"{score.mean:.4g} ± {score.standard_error:.2g}"
    if score.low is None or score.high is None:
        return found
    return f"{found} [{score.low:.4g}, {score.high:.4g}]"


def verdict(score: ModelScore) -> str:
    """How a baseline compares with the model."""
    gap, error = score.difference, score.difference_error
    if gap == 0:
        return "no difference"
    word = "worse" if gap > 0 else "better"
    if error is None:
        return f"{word} by {abs(gap):.3g}"
    if abs(gap) > CLEAR * error:
        return f"clearly {word} by {abs(gap):.3g} ± {error:.2g}"
    side = "more" if gap > 0 else "less"
    return f"no clear difference ({abs(gap):.2g} {side}, ± {error:.2g})"


def _about_baselines(report: LearningReport) -> str:
    """What the baselines of these labels are."""
    names = {score.name for score in report.scores}
    if report.n_train is None:  # costs of each example, with their classes
        return (
            "Baselines: the single decision that would have cost least for all of these examples, "
            "and the class that this model considers most probable, whatever it costs."
        )
    if report.unit == "sequence":
        what = (
            "the most common tag; logistic regression on the same features that tags each token "
            "by itself, without looking at the neighboring tags"
        )
    elif report.unit == "query":
        what = (
            "items sorted by the single column that sorts the training queries best; linear "
            "regression and boosting of the relevance, item by item"
        )
    elif report.profit is not None:
        what = (
            "the single decision of lowest cost overall; regressions of the costs, linear and "
            "by a random forest, followed by the lowest-cost decision"
        )
    elif any(name.startswith("logistic") for name in names):
        what = (
            "the best constant answer; logistic regression on standardized features that predicts "
            "the most probable label, or the label with the lowest expected loss (Bayes "
            "decisions; for label sets, as if labels were independent); for classes, a random "
            "forest and boosting with Bayes decisions"
        )
    else:
        what = "the best constant answer, and what people would try first"
    return f"Baselines: {what}. They are fitted on the training data of the report."


def overlap_warning(report: LearningReport) -> str | None:
    """Where the held-out examples were trained on, nothing here tells of new ones."""
    if not report.overlap or report.overlap < MANY * report.n_test:
        return None
    every = report.overlap == report.n_test
    many = "all" if every else f"{report.overlap} of the {report.n_test}"
    return (
        f"Warning: {many} held-out {plural(report.unit)} are also in the training data, so the "
        "baselines were fitted on the data they are evaluated on, and perhaps the model was too. "
        "Expect larger losses on new data: use rows that were set aside."
    )


def _interval(measure: Measure) -> str:
    if measure.low is None or measure.high is None:
        return f"{measure.value:.4g}"
    return f"{measure.value:.4g} [{measure.low:.4g}, {measure.high:.4g}]"


def columns_section(report: LearningReport) -> Section:
    """How many columns are what; the table has them all."""
    kinds = Counter(entry.treatment.split(",")[0].split(":")[0] for entry in report.columns)
    groups: dict[str, int] = {}
    for kind, number in kinds.items():
        name = next((word for word in KINDS if kind.startswith(word)), kind)
        groups[name] = groups.get(name, 0) + number
    listed = ", ".join(f"{number} {KINDS[name]}" for name, number in groups.items())
    missing = sum("missing" in entry.treatment for entry in report.columns)
    gaps = f"; {missing} with missing cells" if missing else ""
    return Section(
        "columns",
        "How was each column treated?",
        f"{len(report.columns)} columns: {listed}{gaps}.",
        (
            "Categories are encoded and missing cells are filled in for models that need it; "
            "trees get them as they are. Other files are read the same way; override this with "
            "`--columns name=kind` in fit (number, category, date, drop).",
        ),
    )
