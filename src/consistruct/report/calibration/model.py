"""What an analysis found, as plain data with a versioned schema.

`CalibrationReport` holds numbers and names only: no curve, loss or solver objects. It is written as
JSON (`as_dict`), read back (`from_dict`) and drawn by everything else in this package, so a report
that was stored last year looks as it did then. The schema is ``schemas/calibration.json``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

from consistruct.report.calibration.restriction import Restriction
from consistruct.report.numbers import (
    dump_log,
    dump_magnitude,
    dump_number,
    load_log,
    load_magnitude,
)
from consistruct.report.schema import CALIBRATION_SCHEMA, SCHEMA_VERSION, check_document, reading

__all__ = [
    "SCHEMA_VERSION",
    "CalibrationReport",
    "Label",
    "LawEntry",
    "ReportPoint",
    "SampleSize",
    "SampleSizes",
    "WorstCase",
]

Label = str | int | tuple[int, ...]  # a name, a class number, or the states of all parts


@dataclass(frozen=True)
class ReportPoint:
    """H and what bounds it at one ε; the logarithms stay finite where the numbers underflow.

    Attributes
    ----------
    log_theorem_7, log_theorem_8, log_envelope : float or None
        log of ε²/4k_eff, of ε²/2k and of the convex function below H; None where there is none.
    status : str
        "exact", "certified", "rounding", "loose", "bounds" or "infeasible" (see `CurvePoint`).
    pair : (Label, Label) or None
        (better, predicted): the second is predicted though the first is better.
    """

    eps: float
    lower: float
    upper: float
    log_lower: float
    log_upper: float
    log_theorem_7: float | None
    log_theorem_8: float | None
    log_envelope: float | None
    method: str
    status: str
    pair: tuple[Label, Label] | None

    @property
    def log_equivalent_classes(self) -> float | None:
        """log of ε²/4H: the 0-1 loss over so many classes has this H at this ε. None if H = 0."""
        if self.eps == 0 or math.isinf(self.log_lower):
            return None
        return 2 * math.log(self.eps) - math.log(4) - self.log_lower

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "eps": self.eps,
            "lower": dump_number(self.lower),
            "upper": dump_number(self.upper),
            "log_lower": dump_number(self.log_lower),
            "log_upper": dump_number(self.log_upper),
            **dump_log("theorem_7", self.log_theorem_7),
            **dump_log("theorem_8", self.log_theorem_8),
            **dump_log("envelope", self.log_envelope),
            "equivalent_classes_log": self.log_equivalent_classes,
            "method": self.method,
            "status": self.status,
            "pair": None if self.pair is None else [_dump_label(label) for label in self.pair],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The inverse of `as_dict`."""
        return cls(
            eps=data["eps"],
            lower=math.inf if data["lower"] is None else data["lower"],
            upper=math.inf if data["upper"] is None else data["upper"],
            log_lower=_load_end(data["lower"], data["log_lower"]),
            log_upper=_load_end(data["upper"], data["log_upper"]),
            log_theorem_7=load_log(data, "theorem_7"),
            log_theorem_8=load_log(data, "theorem_8"),
            log_envelope=load_log(data, "envelope"),
            method=data["method"],
            status=data["status"],
            pair=None
            if data["pair"] is None
            else (_load_label(data["pair"][0]), _load_label(data["pair"][1])),
        )


def _load_end(value: float | None, log: float | None) -> float:
    """The logarithm of an end of the interval: null beside 0 is −inf, beside null (+inf) +inf."""
    if log is not None:
        return log
    return math.inf if value is None else -math.inf


@dataclass(frozen=True)
class LawEntry:
    """One truth (or group of truths) and its probability."""

    truth: str
    probability: float


@dataclass(frozen=True)
class WorstCase:
    """The distribution of the truth that makes the loss hard, in label names.

    Under it `predicted` costs ε more than `better`, yet scores whose surrogate risk is within H(ε)
    of the best let `predicted` win.

    Attributes
    ----------
    law : tuple of LawEntry
        The most likely truths first; those left out have probability `rest` together.
    expected_better, expected_predicted : float or None
        Expected loss of both predictions under the distribution, where truths are listed one by
        one.
    surrogate_gap : float
        H(ε), as its logarithm: how close to the optimum such scores come.
    note : str
        Where the distribution comes from.
    """

    eps: float
    better: Label
    predicted: Label
    law: tuple[LawEntry, ...]
    rest: float
    expected_better: float | None
    expected_predicted: float | None
    log_surrogate_gap: float
    note: str

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "eps": self.eps,
            "better": _dump_label(self.better),
            "predicted": _dump_label(self.predicted),
            "law": [{"truth": e.truth, "probability": e.probability} for e in self.law],
            "rest": self.rest,
            "expected_better": self.expected_better,
            "expected_predicted": self.expected_predicted,
            "surrogate_gap_log": dump_number(self.log_surrogate_gap),
            "note": self.note,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The inverse of `as_dict`."""
        gap = data["surrogate_gap_log"]
        return cls(
            eps=data["eps"],
            better=_load_label(data["better"]),
            predicted=_load_label(data["predicted"]),
            law=tuple(LawEntry(e["truth"], e["probability"]) for e in data["law"]),
            rest=data["rest"],
            expected_better=data["expected_better"],
            expected_predicted=data["expected_predicted"],
            log_surrogate_gap=-math.inf if gap is None else gap,
            note=data["note"],
        )


@dataclass(frozen=True)
class SampleSize:
    """log₁₀ N* at one ε: −inf if any predictor will do, +inf if no number suffices.

    `gap`: by which share N* may be too large; +inf where H is known from below only.
    """

    eps: float
    log10_paper: float
    log10_sharp: float
    gap: float


@dataclass(frozen=True)
class SampleSizes:
    """How many examples, for every ε of the curve, and what the numbers rest on."""

    radius: float
    q_bound: float
    points: tuple[SampleSize, ...]
    paper_assumptions: tuple[tuple[str, str], ...]
    sharp_assumptions: tuple[tuple[str, str], ...]

    def at(self, eps: float) -> SampleSize:
        """The entry of an ε of the grid."""
        return next(point for point in self.points if point.eps == eps)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "radius": self.radius,
            "q_bound": self.q_bound,
            "points": [
                {
                    "eps": point.eps,
                    **dump_magnitude("paper", point.log10_paper),
                    **dump_magnitude("sharp", point.log10_sharp),
                    "gap": point.gap if math.isfinite(point.gap) else None,
                }
                for point in self.points
            ],
            "paper_assumptions": dict(self.paper_assumptions),
            "sharp_assumptions": dict(self.sharp_assumptions),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The inverse of `as_dict`."""
        return cls(
            radius=data["radius"],
            q_bound=data["q_bound"],
            points=tuple(
                SampleSize(
                    p["eps"],
                    load_magnitude(p, "paper"),
                    load_magnitude(p, "sharp"),
                    math.inf if p["gap"] is None else p["gap"],
                )
                for p in data["points"]
            ),
            paper_assumptions=tuple(data["paper_assumptions"].items()),
            sharp_assumptions=tuple(data["sharp_assumptions"].items()),
        )


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
        Which distributions of the truth are meant; None: all.
    loss_title, scores_title : str
        Loss and scores in words; `loss` and `scores` are how Python writes them.
    """

    loss: str
    scores: str
    surrogate: str
    decoding: str
    measure: str
    method: str
    n_labels: int
    n_predictable: int
    rank: int
    own_rank: int
    expresses: bool
    effective_classes: float | None
    effective_classes_log: float | None
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
        from consistruct.report.calibration.charts import calibration_charts
        from consistruct.report.calibration.wording import calibration_sections
        from consistruct.report.card import report_card

        chart = next((c for c in calibration_charts(self) if c.key == "curve"), None)
        facts = (("loss", self.loss), ("scores", self.scores))
        return report_card("How hard is this loss?", facts, calibration_sections(self), chart)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready: big integers as decimal strings, infinities as null."""
        return {
            "schema_version": CALIBRATION_SCHEMA,
            "kind": "calibration",
            "loss": self.loss,
            "scores": self.scores,
            "loss_title": self.loss_title,
            "scores_title": self.scores_title,
            "surrogate": self.surrogate,
            "decoding": self.decoding,
            "measure": self.measure,
            "method": self.method,
            "n_labels": str(self.n_labels),
            "n_predictable": str(self.n_predictable),
            "rank": str(self.rank),
            "own_rank": str(self.own_rank),
            "expresses": self.expresses,
            "effective_classes": dump_number(self.effective_classes),
            "effective_classes_log": dump_number(self.effective_classes_log),
            "effective_classes_exact": self.effective_classes_exact,
            "rank_tolerance": self.rank_tolerance,
            "consistency_level": self.consistency_level,
            "approximation_error": self.approximation_error,
            "max_eps": self.max_eps,
            "at": self.at,
            "at_reason": self.at_reason,
            "curve": [point.as_dict() for point in self.curve],
            "worst_case": None if self.worst_case is None else self.worst_case.as_dict(),
            "worst_case_reason": self.worst_case_reason,
            "sample_sizes": None if self.sample_sizes is None else self.sample_sizes.as_dict(),
            "sample_sizes_reason": self.sample_sizes_reason,
            "warnings": list(self.warnings),
            "restriction": None if self.restriction is None else self.restriction.as_dict(),
        }

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Read back what `as_dict` wrote; another kind or version raises ConsistructError."""
        check_document(data, "calibration")
        with reading("calibration"):
            known = data["effective_classes_exact"] is not None
            size, log = data["effective_classes"], data["effective_classes_log"]
            fields: dict[str, Any] = {name: data[name] for name in _PLAIN}
            fields |= {name: int(data[name]) for name in _COUNTS}
            return cls(
                **fields,
                effective_classes=math.inf if known and size is None else size,
                effective_classes_log=-math.inf if known and log is None else log,
                curve=tuple(ReportPoint.from_dict(point) for point in data["curve"]),
                worst_case=None
                if data["worst_case"] is None
                else WorstCase.from_dict(data["worst_case"]),
                sample_sizes=None
                if data["sample_sizes"] is None
                else SampleSizes.from_dict(data["sample_sizes"]),
                warnings=tuple(data["warnings"]),
                restriction=None
                if data["restriction"] is None
                else Restriction.from_dict(
                    data["restriction"], sizes=data["sample_sizes"] is not None
                ),
            )


_PLAIN = (
    "loss", "scores", "loss_title", "scores_title", "surrogate", "decoding", "measure", "method",
    "expresses", "effective_classes_exact", "rank_tolerance", "consistency_level",
    "approximation_error", "max_eps", "at", "at_reason", "worst_case_reason", "sample_sizes_reason",
)  # fmt: skip
_COUNTS = ("n_labels", "n_predictable", "rank", "own_rank")


def _dump_label(label: Label) -> Any:
    return list(label) if isinstance(label, tuple) else label


def _load_label(label: Any) -> Label:
    return tuple(label) if isinstance(label, list) else label
