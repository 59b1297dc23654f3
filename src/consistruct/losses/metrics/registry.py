"""List the metrics: what spec strings, tests and docs know them by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from consistruct.exceptions import LossSpecError
from consistruct.losses.metrics.agreement import Kappa, Matthews
from consistruct.losses.metrics.base import Metric
from consistruct.losses.metrics.constraints import (
    Constrained,
    EqualRecall,
    FlaggedAtMost,
    PrecisionAtLeast,
    Randomized,
    RecallAtLeast,
)
from consistruct.losses.metrics.ratios import FScore, JaccardScore, PrecisionScore, RecallScore
from consistruct.losses.metrics.recalls import RecallMean
from consistruct.losses.spec import at_most, check_spec, naming, number_field

__all__ = ["METRICS", "MetricEntry", "is_metric", "parse_metric", "requested_metric"]

Arguments = tuple[str, ...]


@dataclass(frozen=True)
class MetricEntry:
    """Register a metric.

    Attributes
    ----------
    build : callable
        From the fields of a spec to the metric.
    spec : str
        How it is written as a string.
    examples : tuple of Metric
        Members that the conformance checks run on.
    """

    build: Callable[[Arguments], Metric]
    spec: str
    examples: tuple[Metric, ...]


def _plain(name: str, metric: Metric) -> MetricEntry:
    """Register a metric without fields: its name is its whole spec."""

    def build(arguments: Arguments) -> Metric:
        at_most(name, arguments, 0, name)
        return metric

    return MetricEntry(build, name, (metric,))


def _f_beta(arguments: Arguments) -> Metric:
    at_most("f-beta", arguments, 2, "f-beta:2 or f-beta:2:macro")
    beta = number_field("f-beta", arguments, 0, "beta")
    return FScore(beta, arguments[1] if len(arguments) > 1 else "binary")  # type: ignore[arg-type]


def _kappa(arguments: Arguments) -> Metric:
    at_most("kappa", arguments, 2, "kappa or kappa:linear:low,mid,high")
    names = tuple(arguments[1].split(",")) if len(arguments) > 1 else None
    return Kappa(arguments[0] if arguments else None, names)  # type: ignore[arg-type]


def _qwk(arguments: Arguments) -> Metric:
    at_most("qwk", arguments, 1, "qwk or qwk:low,mid,high")
    return Kappa("quadratic", tuple(arguments[0].split(",")) if arguments else None)


def _precision_at_recall(arguments: Arguments) -> Metric:
    return Constrained(PrecisionScore(), (RecallAtLeast(_level("precision", "recall", arguments)),))


def _recall_at_precision(arguments: Arguments) -> Metric:
    return Constrained(RecallScore(), (PrecisionAtLeast(_level("recall", "precision", arguments)),))


def _level(metric: str, condition: str, arguments: Arguments) -> float:
    name = f"{metric}-at-{condition}"
    at_most(name, arguments, 1, f"{name}:0.9")
    return number_field(name, arguments, 0, condition)


def _coverage(arguments: Arguments) -> Metric:
    share = number_field("coverage", arguments, 0, "share of flagged rows")
    metric = parse_metric(":".join(arguments[1:])) if len(arguments) > 1 else RecallScore()
    return Constrained(metric, (FlaggedAtMost(share),))


def _equal_recall(arguments: Arguments) -> Metric:
    within = number_field("equal-recall", arguments, 0, "allowed difference")
    if len(arguments) < 2 or not arguments[1]:
        raise LossSpecError(
            "the spec of equal-recall names the column of the groups; write for example "
            "equal-recall:0.05:sex or equal-recall:0.05:sex:f1"
        )
    metric = parse_metric(":".join(arguments[2:])) if len(arguments) > 2 else FScore()
    # a number is the place of a column of an array, anything else the name of one of a frame
    column = int(arguments[1]) if arguments[1].isdecimal() else arguments[1]
    return Constrained(metric, (EqualRecall(within, column),))


def _randomized(arguments: Arguments) -> Metric:
    if not arguments:
        raise LossSpecError(
            "the spec of randomized names the metric; write for example randomized:min-recall"
        )
    return Randomized(parse_metric(":".join(arguments)))


METRICS: dict[str, MetricEntry] = {
    "f1": _plain("f1", FScore()),
    "macro-f1": _plain("macro-f1", FScore(average="macro")),
    "micro-f1": _plain("micro-f1", FScore(average="micro")),
    "weighted-f1": _plain("weighted-f1", FScore(average="weighted")),
    "f-beta": MetricEntry(
        _f_beta,
        "f-beta:2 or f-beta:2:macro",
        (FScore(2.0), FScore(0.5, "macro"), FScore(2.0, "micro")),
    ),
    "jaccard": _plain("jaccard", JaccardScore()),
    "macro-jaccard": _plain("macro-jaccard", JaccardScore("macro")),
    "micro-jaccard": _plain("micro-jaccard", JaccardScore("micro")),
    "balanced-accuracy": _plain("balanced-accuracy", RecallMean(1.0)),
    "g-mean": _plain("g-mean", RecallMean(0.0)),
    "min-recall": _plain("min-recall", RecallMean(None)),
    "kappa": MetricEntry(_kappa, "kappa or kappa:linear:low,mid,high", (Kappa(), Kappa("linear"))),
    "qwk": MetricEntry(_qwk, "qwk or qwk:low,mid,high", (Kappa("quadratic"),)),
    "mcc": _plain("mcc", Matthews()),
    "precision-at-recall": MetricEntry(
        _precision_at_recall,
        "precision-at-recall:0.9",
        (Constrained(PrecisionScore(), RecallAtLeast(0.9)),),
    ),
    "recall-at-precision": MetricEntry(
        _recall_at_precision,
        "recall-at-precision:0.9",
        (Constrained(RecallScore(), PrecisionAtLeast(0.9)),),
    ),
    "coverage": MetricEntry(
        _coverage,
        "coverage:0.05 or coverage:0.05:f1",
        (Constrained(FScore(average="macro"), FlaggedAtMost(0.05)),),
    ),
    "equal-recall": MetricEntry(
        _equal_recall,
        "equal-recall:0.05:COLUMN or equal-recall:0.05:COLUMN:f1",
        (Constrained(FScore(), EqualRecall(0.05, "sex")),),
    ),
    "randomized": MetricEntry(
        _randomized,
        "randomized:min-recall",
        (Randomized(RecallMean(None)), Randomized(RecallMean(0.0))),
    ),
}


def is_metric(value: object) -> bool:
    """Tell whether a loss parameter is a metric of this room: an object, or a spec with its name.

    >>> is_metric("macro_f1"), is_metric("zero-one")
    (True, False)
    """
    if isinstance(value, str):
        return _name(value) in METRICS
    return isinstance(value, Metric)


def requested_metric(value: object) -> Metric | None:
    """Return the metric that a loss parameter names, or None where it is a loss."""
    if isinstance(value, str):
        return parse_metric(value) if _name(value) in METRICS else None
    return value if isinstance(value, Metric) else None


def parse_metric(spec: str) -> Metric:
    """Build a metric from a string such as ``macro-f1`` or ``precision-at-recall:0.9``.

    Examples
    --------
    >>> from consistruct.losses.metrics import parse_metric
    >>> parse_metric("macro_f1"), parse_metric("qwk")
    (FScore(average='macro'), Kappa(weights='quadratic'))
    """
    check_spec(spec, "metric")
    head, _, tail = spec.partition(":")
    if _name(spec) not in METRICS:
        raise LossSpecError(
            f"unknown metric {head!r} in the spec {spec!r}; the metrics are "
            f"{', '.join(sorted(METRICS))}"
        )
    with naming(repr(spec)):
        return METRICS[_name(spec)].build(tuple(tail.split(":")) if tail else ())


def _name(spec: str) -> str:
    return spec.partition(":")[0].strip().lower().replace("_", "-")
