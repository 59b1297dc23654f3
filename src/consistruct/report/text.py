"""Reports for the terminal."""

from __future__ import annotations

import math

from rich.console import Group
from rich.table import Table
from rich.text import Text

from consistruct.exceptions import describe_count
from consistruct.report.calibration import CalibrationReport

__all__ = ["calibration_text"]


def calibration_text(report: CalibrationReport) -> Group:
    """The answers in plain language first, then the curve."""
    lines = [
        ("loss", report.loss),
        ("scores", f"{report.scores} (rank {report.rank})"),
        ("surrogate", f"{report.surrogate}, {report.decoding} decoding"),
        ("predictions", _predictions(report)),
        ("consistent", _consistency(report)),
        ("how hard", _hardness(report)),
        ("largest excess risk", f"{report.max_eps:g}"),
        ("method", f"{report.method}, reference measure {report.measure}"),
    ]
    if report.approximation_error > 0:
        lines.insert(5, ("approximation error", f"up to {report.approximation_error:g}"))
    facts = Table.grid(padding=(0, 2))
    for name, value in lines:
        facts.add_row(Text(name, style="bold"), Text(value))
    return Group(facts, Text(""), _curve(report))


def _predictions(report: CalibrationReport) -> str:
    total = describe_count(report.n_labels)
    if report.n_predictable == report.n_labels:
        return total
    return f"{total}, of which {describe_count(report.n_predictable)} can win under these scores"


def _consistency(report: CalibrationReport) -> str:
    if math.isnan(report.consistency_level):
        return "not known: only bounds on the calibration function are"
    if report.consistency_level == 0:
        return "yes: enough data make the task risk as small as it can be"
    return (
        f"only to level {report.consistency_level:g}: excess task risk below it may remain "
        f"however many examples there are"
    )


def _hardness(report: CalibrationReport) -> str:
    if report.surrogate != "quadratic":
        return "see the curve; an effective number of classes is for the quadratic surrogate"
    if report.effective_classes is None:
        return "no effective number of classes: the scores do not express the loss"
    if math.isinf(report.effective_classes) and report.effective_classes_log is not None:
        size = f"about 2^{report.effective_classes_log / math.log(2):.1f}"
    else:
        size = f"{report.effective_classes:.6g}"
    return f"at most as the 0-1 loss over {size} classes (H ≥ ε²/4k_eff; not a sample size)"


def _curve(report: CalibrationReport) -> Table:
    small = any(0 < point.upper < 1e-280 or point.log_scale < -600 for point in report.curve)
    table = Table(title="calibration function H(ε)", title_justify="left")
    table.add_column("ε", justify="right")
    table.add_column("log H ≥" if small else "H ≥", justify="right")
    table.add_column("log H ≤" if small else "H ≤", justify="right")
    quadratic = report.surrogate == "quadratic"  # the equivalent k of the 0-1 loss
    if quadratic:
        table.add_column("ε²/4H", justify="right")
    table.add_column("status")
    table.add_column("worst pair (better, predicted)", overflow="ellipsis", max_width=44)
    for point in report.curve:
        low, high = (point.log_lower, point.log_upper) if small else (point.lower, point.upper)
        pair = "" if point.pair is None else " , ".join(_short(report, p) for p in point.pair)
        classes = [_equivalent_classes(point.eps, point.log_lower)] if quadratic else []
        table.add_row(
            f"{point.eps:.4g}", f"{low:.8g}", f"{high:.8g}", *classes, point.status, Text(pair)
        )
    return table


def _equivalent_classes(eps: float, log_lower: float) -> str:
    if eps == 0 or math.isinf(log_lower):
        return ""
    log_classes = 2 * math.log(eps) - math.log(4) - log_lower
    return f"{math.exp(log_classes):.4g}" if log_classes < 690 else f"e^{log_classes:.1f}"


def _short(report: CalibrationReport, prediction: object) -> str:
    label = report.label(prediction)
    if isinstance(label, list):
        ones = len(label) if len(label) <= 16 else 8
        shown = "".join(str(state) for state in label[:ones])
        return shown if ones == len(label) else f"{shown}…"
    text = str(label)
    return text if len(text) <= 20 else f"{text[:8]}…"
