"""Metrics that are functions of the mean confusion: macro-F1, kappa, G-mean, with constraints."""

from consistruct.losses.metrics.agreement import Kappa, Matthews
from consistruct.losses.metrics.base import Metric, check_confusion
from consistruct.losses.metrics.constraints import (
    Constrained,
    Constraint,
    EqualRecall,
    FlaggedAtMost,
    PrecisionAtLeast,
    Randomized,
    RecallAtLeast,
)
from consistruct.losses.metrics.ratios import (
    FScore,
    JaccardScore,
    PrecisionScore,
    RatioMetric,
    RecallScore,
)
from consistruct.losses.metrics.recalls import RecallMean
from consistruct.losses.metrics.registry import (
    METRICS,
    MetricEntry,
    is_metric,
    parse_metric,
    requested_metric,
)

__all__ = [
    "METRICS",
    "Constrained",
    "Constraint",
    "EqualRecall",
    "FScore",
    "FlaggedAtMost",
    "JaccardScore",
    "Kappa",
    "Matthews",
    "Metric",
    "MetricEntry",
    "PrecisionAtLeast",
    "PrecisionScore",
    "Randomized",
    "RatioMetric",
    "RecallAtLeast",
    "RecallMean",
    "RecallScore",
    "check_confusion",
    "is_metric",
    "parse_metric",
    "requested_metric",
]
