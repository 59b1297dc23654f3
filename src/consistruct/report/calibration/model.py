"""What an analysis found, as plain data with a versioned schema.

`CalibrationReport` holds numbers and names only: no curve, loss or solver objects. It is written as
JSON (`as_dict`), read back (`from_dict`) and drawn by everything else in this package, so a report
that was stored last year looks as it did then. The schema is ``schemas/calibration.json``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Self

from consistruct._plain_data import Form, dump, load
from consistruct.charts.model import Chart
from consistruct.report.formats import (
    Count,
    Label,
    LogOrZero,
    OrInfinite,
    Texts,
    dump_log,
    dump_magnitude,
    load_log,
    load_magnitude,
    null_as,
)
from consistruct.report.schema import CALIBRATION_SCHEMA, SCHEMA_VERSION, check_document, reading
from consistruct.report.sections import Section

if TYPE_CHECKING:
    from rich.console import Group

__all__ = [
    "SCHEMA_VERSION",
    "CalibrationReport",
    "DistributionEntry",
    "ReportPoint",
    "Restriction",
    "SampleSize",
    "SampleSizes",
    "WorstCase",
]


def _dump_end(name: str, log: float) -> dict[str, float]:
    return {f"log_{name}": log}


def _load_end(data: Mapping[str, Any], name: str) -> float:
    """The logarithm of an end of the interval: null beside 0 is −inf, beside null (+inf) +inf."""
    value, log = data[name], data[f"log_{name}"]
    if log is not None:
        return float(log)
    return math.inf if value is None else -math.inf


def _load_classes(data: Mapping[str, Any], name: str) -> float | None:
    """Null is an infinite number or the logarithm of 0, unless nothing is known of it."""
    value: float | None = data[name]
    if value is not None or data["effective_classes_exact"] is None:
        return value
    return -math.inf if name.endswith("_log") else math.inf


Classes = Annotated[float | None, Form(lambda name, value: {name: value}, _load_classes)]


@dataclass(frozen=True)
class ReportPoint:
    """H and what bounds it at one ε; the logarithms stay finite where the numbers underflow.

    Attributes
    ----------
    log_theorem_7, log_theorem_8, log_envelope : float or None
        log of ε²/4k_eff, of ε²/2k and of the convex function below H; None where there is none.
    status : str
        "exact", "certified", "numerical", "rounding", "loose", "bounds" or "infeasible" (see
        `CurvePoint`).
    pair : (Label, Label) or None
        (better, predicted): the second is predicted though the first is better.
    """

    eps: float
    lower: OrInfinite
    upper: OrInfinite
    log_lower: Annotated[float, Form(_dump_end, _load_end, "lower")]
    log_upper: Annotated[float, Form(_dump_end, _load_end, "upper")]
    log_theorem_7: Annotated[float | None, Form(dump_log, load_log, "theorem_7")]
    log_theorem_8: Annotated[float | None, Form(dump_log, load_log, "theorem_8")]
    log_envelope: Annotated[float | None, Form(dump_log, load_log, "envelope")]
    method: str
    status: str
    pair: tuple[Label, Label] | None

    @property
    def log_equivalent_classes(self) -> float | None:
        """log of ε²/4H: the 0-1 loss over so many classes has this H at this ε. None if H = 0."""
        if self.eps == 0 or math.isinf(self.log_lower):
            return None
        return 2 * math.log(self.eps) - math.log(4) - self.log_lower


@dataclass(frozen=True)
class DistributionEntry:
    """One true label (or group of true labels) and its probability."""

    true_label: str
    probability: float


@dataclass(frozen=True)
class WorstCase:
    """The distribution of the true label that makes the loss hard, in label names.

    Under it `predicted` costs ε more than `better`, yet scores whose surrogate risk is within H(ε)
    of the best let `predicted` win.

    Attributes
    ----------
    distribution : tuple of DistributionEntry
        The most likely true labels first; those left out have probability `rest` together.
    expected_better, expected_predicted : float or None
        Expected loss of both predictions under the distribution, where true labels are listed one
        by one.
    surrogate_gap : float
        H(ε), as its logarithm: how close to the optimum such scores come.
    note : str
        Where the distribution comes from.
    """

    eps: float
    better: Label
    predicted: Label
    distribution: tuple[DistributionEntry, ...]
    rest: float
    expected_better: float | None
    expected_predicted: float | None
    log_surrogate_gap: Annotated[float, null_as(-math.inf, "surrogate_gap_log")]
    note: str


@dataclass(frozen=True)
class SampleSize:
    """log₁₀ N* at one ε: −inf if any predictor will do, +inf if no number suffices.

    `gap`: by which share N* may be too large; +inf where H is known from below only.
    """

    eps: float
    log10_paper: Annotated[float, Form(dump_magnitude, load_magnitude, "paper")]
    log10_sharp: Annotated[float, Form(dump_magnitude, load_magnitude, "sharp")]
    gap: OrInfinite


@dataclass(frozen=True)
class SampleSizes:
    """How many examples, for every ε of the curve, and what the numbers rest on."""

    radius: float
    q_bound: float
    points: tuple[SampleSize, ...]
    paper_assumptions: Texts
    sharp_assumptions: Texts

    def at(self, eps: float) -> SampleSize:
        """The entry of an ε of the grid."""
        return next(point for point in self.points if point.eps == eps)


@dataclass(frozen=True)
class Restriction:
    """Which distributions of the true label the report is about, and what holds over all of them.

    Attributes
    ----------
    spec, meaning : str
        Such as ``noise:0.05``, and the same in words.
    level : float
        Consistency level over all distributions.
    log_lower, log_upper : float
        log of both ends of H over all distributions, at the ε of the report.
    log10_sharp : float or None
        log₁₀ of the sharp N* over all distributions there; None where the report has none.
    """

    spec: str
    meaning: str
    level: float
    log_lower: LogOrZero
    log_upper: LogOrZero
    log10_sharp: Annotated[float | None, Form(dump_magnitude, load_magnitude, "sharp")]


@dataclass(frozen=True)
class CalibrationReport:
    """Consistency, hardness, certified curve, worst case and sample size of one setting.

    Attributes
    ----------
    n_labels, n_predictable, rank, own_rank : int
        Predictions; those that can win under the scores; rank of the scores and of the loss's own.
    expresses : bool
        Whether every column of the loss is a score function, up to a constant.
    effective_classes : float or None
        k_eff with H ≥ ε²/4k_eff; +inf where only its logarithm is a float.
    rank_tolerance : float or None
        Singular values at or below it count as zero; None where the rank is known exactly.
    consistency_level, approximation_error : float or None
        None where only bounds on H are known.
    at : float or None
        The ε that worst case and sample size are given for; None if no excess risk is possible.
    at_reason : str
        Where that ε comes from.
    sample_sizes_reason, worst_case_reason : str or None
        Why there are none.
    warnings : tuple of str
        What the result depends on, such as the order of labels.
    restriction : Restriction or None
        Which distributions of the true label are meant; None: all.
    loss_title, scores_title : str
        Loss and scores in words; `loss` and `scores` are how Python writes them.
    """

    loss: str
    scores: str
    surrogate: str
    decoding: str
    measure: str
    method: str
    n_labels: Count
    n_predictable: Count
    rank: Count
    own_rank: Count
    expresses: bool
    effective_classes: Classes
    effective_classes_log: Classes
    effective_classes_exact: bool | None
    rank_tolerance: float | None
    consistency_level: float | None
    approximation_error: float | None
    max_eps: float
    at: float | None
    at_reason: str
    curve: tuple[ReportPoint, ...]
    worst_case: WorstCase | None
    worst_case_reason: str | None
    sample_sizes: SampleSizes | None
    sample_sizes_reason: str | None
    warnings: tuple[str, ...] = ()
    restriction: Restriction | None = None
    loss_title: str = ""
    scores_title: str = ""

    def _repr_html_(self) -> str:
        from consistruct.report.card import report_card

        chart = next((c for c in self.charts() if c.key == "curve"), None)
        facts = (("loss", self.loss), ("scores", self.scores))
        return report_card("How hard is this loss?", facts, self.sections(), chart)

    def sections(self) -> tuple[Section, ...]:
        """Return the six questions and their answers in plain language, in a reader's order."""
        from consistruct.report.calibration.wording import calibration_sections

        return calibration_sections(self)

    def charts(self) -> tuple[Chart, ...]:
        """Return all charts that this report has, in the order of its questions."""
        from consistruct.report.calibration.charts import calibration_charts

        return calibration_charts(self)

    def tables(self) -> dict[str, str]:
        """Return the data behind the figures as CSV texts by name."""
        from consistruct.report.calibration.output import calibration_tables

        return calibration_tables(self)

    def to_html(self, *, title: str | None = None) -> str:
        """Return one self-contained page: answers, interactive figures, files to save."""
        from consistruct.report.calibration.output import calibration_html

        return calibration_html(self, title=title)

    def to_text(self) -> Group:
        """Return the questions with their answers for a terminal, to print with rich."""
        from consistruct.report.calibration.output import calibration_text

        return calibration_text(self)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready: big integers as decimal strings, infinities as null."""
        found = {"schema_version": CALIBRATION_SCHEMA, "kind": "calibration", **dump(self)}
        for entry, point in zip(found["curve"], self.curve, strict=True):
            entry["equivalent_classes_log"] = point.log_equivalent_classes
        return found

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Read back what `as_dict` wrote; another kind or version raises ConsistructError."""
        check_document(data, "calibration")
        with reading("calibration"):
            found: Self = load(cls, data)
        if found.restriction is None or found.sample_sizes is not None:
            return found
        # null is no sample size here, where there are any an infinite one
        return replace(found, restriction=replace(found.restriction, log10_sharp=None))
