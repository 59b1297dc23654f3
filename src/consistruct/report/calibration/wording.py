"""A calibration report in plain language: one section per question, the answer before any formula.

Text and HTML (and the explorer) show these sections, in this order. All strings are plain text.
"""

from __future__ import annotations

import math
from dataclasses import replace

from consistruct._members import describe_count
from consistruct.calibration.proofs.base import short_text
from consistruct.report.calibration.charts import CHARTS
from consistruct.report.calibration.easier import easier
from consistruct.report.calibration.model import CalibrationReport, WorstCase
from consistruct.report.formats import count_text, label_text, log_text, pair_difference
from consistruct.report.sections import WORST_CASE, Section

__all__ = ["calibration_sections"]

ROUNDING = 1e-9  # of the largest excess risk: levels below are those of rounded scores
KNOWN = ("exact", "certified", "numerical", "rounding")
MANY_CLASSES = 100


def calibration_sections(report: CalibrationReport) -> tuple[Section, ...]:
    """The six questions, in the order in which a reader asks them.

    If the report covers only some distributions of the true label, there is one more: how much
    easier it is.

    Examples
    --------
    >>> import consistruct as cs
    >>> from consistruct.report import calibration_report
    >>> report = calibration_report(cs.calibration_function(cs.losses.ZeroOne(3)))
    >>> [section.key for section in calibration_sections(report)]
    ['consistency', 'hardness', 'curve', 'worst_case', 'sample_size', 'advice']
    """
    sections = (
        _consistency(report),
        _hardness(report),
        _curve(report),
        _worst_case(report),
        _sample_size(report),
        *([] if report.restriction is None else [Section("distributions", *easier(report))]),
        _advice(report),
    )
    return tuple(replace(section, charts=_charts_in(section.key)) for section in sections)


def _charts_in(section: str) -> tuple[str, ...]:
    return tuple(key for key, chart in CHARTS.items() if chart.section == section)


# --- is it consistent, and to what level ---


def _consistency(report: CalibrationReport) -> Section:
    level, error = report.consistency_level, report.approximation_error
    details = []
    if level is None:
        answer = "Not known: only bounds on the calibration function are known."
        details.append(
            "There are too many labels, or too little structure, for an exact level. The lower "
            "bound on the curve below still holds."
        )
    elif level == 0:
        answer = "Yes: with enough data, the task risk becomes as small as it can be."
        details.append(
            "Whatever the distribution of the data, a model whose surrogate risk approaches its "
            "optimum also approaches the best task risk that these scores can reach."
        )
    elif level <= ROUNDING * report.max_eps:
        answer = (
            f"Yes, but for rounding errors in the scores: an excess task risk of up to "
            f"{short_text(level)} may remain."
        )
    else:
        answer = (
            f"Only up to level {short_text(level)}: an excess task risk of up to that much may "
            f"remain, however many examples there are."
        )
        details.append(
            "There are distributions under which even the perfect surrogate minimizer predicts "
            "the wrong label. Enough data still rule out any excess above the level."
        )
    if error:
        details.append(
            f"In addition, these scores cannot predict every label: the best rule with them may "
            f"lose up to {short_text(error)} compared with the best rule of all (approximation "
            f"error)."
        )
    details += report.warnings
    facts = [
        ("consistency level", "not known" if level is None else short_text(level)),
        ("approximation error", "not known" if error is None else short_text(error)),
        ("largest possible excess risk", short_text(report.max_eps)),
        ("predictions", _predictions(report)),
        ("surrogate", f"{report.surrogate}, {report.decoding} decoding"),
        ("rank of the scores", f"{describe_count(report.rank)}{_own_rank(report)}"),
    ]
    question = "Is learning consistent, and to what level?"
    return Section("consistency", question, answer, tuple(details), tuple(facts))


def _predictions(report: CalibrationReport) -> str:
    total = describe_count(report.n_labels)
    if report.n_predictable == report.n_labels:
        return total
    return f"{total}, of which {describe_count(report.n_predictable)} can win under these scores"


def _own_rank(report: CalibrationReport) -> str:
    if report.rank == report.own_rank:
        return ""
    verb = "suffice" if report.rank > report.own_rank else "would be needed"
    return f"; {describe_count(report.own_rank)} {verb} for this loss"


# --- how hard is it ---


def _hardness(report: CalibrationReport) -> Section:
    question = "How hard is this loss?"
    if report.surrogate != "quadratic":
        return Section(
            "hardness",
            question,
            "See the curve: the effective number of classes is defined for the quadratic "
            "surrogate only.",
            (
                "Curves of different surrogates are in different units. What you can compare is "
                "where they leave zero and how they grow.",
            ),
        )
    facts: list[tuple[str, str]] = []
    details: list[str] = []
    if report.effective_classes_log is None:
        answer = "No effective number of classes: these scores do not express the loss."
        details.append(
            "The bound ε²/4k_eff needs scores in which the loss can be written. See ε²/4H instead."
        )
    else:
        size = count_text(report.effective_classes_log)
        exact = report.effective_classes_exact
        answer = f"No harder than telling {size} classes apart under the 0-1 loss."
        facts.append(
            ("effective classes k_eff", f"{size} ({'exact' if exact else 'certified upper bound'})")
        )
        details.append(
            f"The effective number of classes, k_eff, is the constant in the bound H(ε) ≥ "
            f"ε²/4k_eff. It depends on what the scores span and on the reference measure "
            f"({report.measure}), not on the size of the costs; {_tolerance(report)}. It is not a "
            f"number of examples."
        )
    at = report.at
    point = next((p for p in report.curve if p.eps == at), None)
    if point is not None and point.log_equivalent_classes is not None:
        size = count_text(point.log_equivalent_classes)
        facts.append((f"ε²/4H at ε = {at:.4g}", f"{size} classes"))
        details.append(
            f"ε²/4H(ε) measures hardness at one accuracy: at ε = {at:.4g} the loss is as hard as "
            f"the 0-1 loss over {size} classes. It compares calibration only and states nothing "
            f"about how large the functions to be learned are."
        )
    facts.append(("reference measure", report.measure))
    return Section("hardness", question, answer, tuple(details), tuple(facts))


def _tolerance(report: CalibrationReport) -> str:
    if report.rank_tolerance is None:
        return "the span is known exactly, without a tolerance"
    return (
        f"singular values up to {report.rank_tolerance:.2g} count as zero, and a tiny change in "
        f"the costs that adds a direction changes k_eff"
    )


# --- the curve ---


def _curve(report: CalibrationReport) -> Section:
    statuses = {point.status for point in report.curve if point.eps > 0}
    if statuses <= {"exact"}:
        answer = "Known exactly, by a formula."
    elif statuses <= {"exact", "certified", "rounding", "infeasible"}:
        answer = "Known to six digits at every ε shown, with a certificate that anyone can check."
    elif statuses <= {*KNOWN, "infeasible"}:
        answer = (
            "Known to six digits at every ε shown, by bounds evaluated in floating point: the "
            "functions of this surrogate cannot be checked exactly."
        )
    elif "bounds" in statuses:
        answer = "Only bounds are known; where the band has no upper edge, only a lower bound."
    else:
        answer = "Known to within the band, which at some ε is wider than six digits."
    details = [
        "H(ε) is the excess surrogate risk below which an excess task risk of ε is impossible. "
        "A larger H means that there is less to learn.",
        "H itself may jump and bend. Guarantees use its convex envelope, the largest convex "
        "function below it.",
    ]
    if any(point.log_theorem_7 is not None for point in report.curve):
        details.append(
            "Theorem 7 bounds H from below by the diameter of the scores; Theorem 8 bounds it from "
            "above for full scores and losses that are pseudometrics."
        )
    facts = (("method", report.method), ("values of ε", str(len(report.curve))))
    question = "What does the calibration function look like?"
    return Section("curve", question, answer, tuple(details), facts)


# --- the worst case ---


def _worst_case(report: CalibrationReport) -> Section:
    question = "Which situation makes it hard?"
    case = report.worst_case
    if case is None:
        reason = report.worst_case_reason or "no distribution is known"
        return Section("worst_case", question, f"No distribution can be shown: {reason}.")
    better, predicted = label_text(case.better), label_text(case.predicted)
    costs = case.eps
    if case.expected_better is not None and case.expected_predicted is not None:
        costs = case.expected_predicted - case.expected_better
    answer = (
        f"When the true label is {_mixture(case)}: answering “{predicted}” costs {costs:.4g} more "
        f"than answering “{better}”, and the scores can hardly tell the two apart."
    )
    proved = any(p.eps == case.eps and p.status in KNOWN for p in report.curve)
    gap = (
        "at no distance at all from the optimum"
        if case.log_surrogate_gap == -math.inf
        else f"within about {log_text(case.log_surrogate_gap)} of the optimal surrogate risk"
    )
    details = [
        f"Under this distribution there are scores {gap} that make “{predicted}” win."
        + (" No other distribution and pair of labels needs less." if proved else ""),
    ]
    difference = pair_difference((case.better, case.predicted))
    if difference is not None:
        details.append(f"How the two labels differ: {difference}.")
    facts = [("better answer", better), ("answer that wins", predicted)]
    if case.expected_better is not None and case.expected_predicted is not None:
        facts += [
            (f"expected loss of “{better}”", f"{case.expected_better:.4g}"),
            (f"expected loss of “{predicted}”", f"{case.expected_predicted:.4g}"),
        ]
    facts.append(("source", case.note))
    return Section("worst_case", question, answer, tuple(details), tuple(facts))


def _mixture(case: WorstCase) -> str:
    """Describe the most probable true labels in a sentence."""
    parts = [
        f"“{entry.true_label}” with {entry.probability:.1%}" for entry in case.distribution[:3]
    ]
    if len(case.distribution) > 3 or case.rest > 1e-6:
        parts.append("others with the rest")
    if len(parts) == 1:
        return parts[0]
    return ", ".join(parts[:-1]) + " and " + parts[-1]


# --- how many examples ---


def _sample_size(report: CalibrationReport) -> Section:
    """The answer from the reader's own data first; the worst case behind a fold, by name."""
    question = "How many examples does it take?"
    answer = (
        "Ask your data: consistruct plan DATA --target COLUMN --loss SPEC (in Python cs.forecast) "
        "forecasts the loss at 2, 4 and 10 times the rows, and how many rows a given loss takes."
    )
    sizes = report.sample_sizes
    if sizes is None or report.at is None:
        reason = report.sample_sizes_reason or "no excess risk is possible"
        details: tuple[str, ...] = (f"No worst case can be given: {reason}.",)
        return Section("sample_size", question, answer, details, fold=WORST_CASE)
    point = sizes.at(report.at)
    details = (
        f"{_guaranteed(report.at, point.log10_sharp)} This is for ε = {report.at:.4g}, "
        f"{report.at_reason}; use --at to choose another.",
        *_gap(point.log10_sharp, point.gap),
        f"This assumes features of norm at most R = {sizes.radius:g} and conditional "
        f"probabilities whose norms sum to at most Q = {sizes.q_bound:g}. Q may itself grow with "
        f"the number of labels: much of the hardness hides there.",
        "It is a worst case over all distributions that satisfy these assumptions, not a forecast "
        "for a data set; use it to compare losses. The paper's constants are shown next to the "
        "sharp ones; the proof needs only the sharp ones.",
    )
    facts = (
        ("N*, sharp constants", _examples(point.log10_sharp)),
        ("N*, the paper's constants", _examples(point.log10_paper)),
        *((f"sharp {name}", text) for name, text in sizes.sharp_assumptions),
    )
    return Section("sample_size", question, answer, details, facts, fold=WORST_CASE)


def _guaranteed(eps: float, log10: float) -> str:
    if log10 == math.inf:
        return (
            f"No number of examples guarantees an excess risk of {eps:.4g}: this is not above "
            f"what can be proved with these scores."
        )
    if log10 == -math.inf:
        return f"None are needed: every predictor has an excess risk of at most {eps:.4g}."
    return (
        f"At most {count_text(log10 * math.log(10), up=True)} examples guarantee an expected "
        f"excess risk of {eps:.4g}, in the worst case."
    )


def _gap(log10: float, gap: float) -> tuple[str, ...]:
    if not math.isfinite(log10) or not gap > 0:
        return ()
    if math.isfinite(gap):
        return (f"H is known only at some values: the number may be too large by {gap:.1%}.",)
    return ("Only a lower bound on H is known: the number may be far too large.",)


def _examples(log10: float) -> str:
    return "no number suffices" if log10 == math.inf else count_text(log10 * math.log(10))


# --- what to do ---


def _advice(report: CalibrationReport) -> Section:
    steps = []
    level = report.consistency_level
    if report.surrogate != "quadratic" and level:
        steps.append(
            "Use the quadratic surrogate, which is consistent for every loss, or the log loss "
            "with Bayes decoding: this surrogate keeps its level however much data you have."
        )
    elif not report.expresses and level:
        steps.append(
            f"If an excess of {short_text(level)} is too much, use the loss's own scores "
            f"(--scores own, rank {describe_count(report.own_rank)}), which are consistent. "
            f"Otherwise these scores are easier to learn: compare them with `consistruct advise`."
        )
    elif report.rank > report.own_rank:
        steps.append(
            f"Use the loss's own scores (--scores own): they have rank "
            f"{describe_count(report.own_rank)} instead of {describe_count(report.rank)}, are just "
            f"as consistent, and are easier to learn."
        )
    elif level is None:
        steps.append("Use the loss's own scores (--scores own): they are always consistent.")
    else:
        steps.append("Train with these scores: they are consistent for the loss.")
    steps.append(
        "To fit a model: consistruct fit DATA --target COLUMN --loss SPEC --model FILE, or in "
        "Python cs.TaskLossClassifier(loss=loss) for classes and label sets and "
        "cs.StructuredPredictor(loss=loss) for other labels."
    )
    if report.own_rank == report.n_labels > MANY_CLASSES:
        steps.append(
            "This loss distinguishes every class from every other. A loss that forgives near "
            "misses (blocks, a tree, Hamming over parts) is easier to learn, and may be closer to "
            "what you are judged by."
        )
    steps.append(
        "Then look at the learning report of the model (consistruct report): does it beat the "
        "usual baselines on this loss, and would more data help?"
    )
    return Section("advice", "What should I do?", steps[0], tuple(steps[1:]))
