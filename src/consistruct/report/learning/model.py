"""How a fitted model does on its loss, as plain data with a versioned schema.

The schema is ``schemas/learning.json``. Losses are in the units of the task loss, per example.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Self

from consistruct.report.learning.entries import (
    BandwidthPoint,
    ColumnEntry,
    Confusion,
    CostlyExample,
    CurveFit,
    CurveForecast,
    DecisionChange,
    ForecastPoint,
    LossBin,
    Measure,
    ModelScore,
    PartErrors,
    PathPoint,
    PortfolioEntry,
    Profit,
    ProfitPoint,
    Selective,
    SelectivePoint,
)
from consistruct.report.numbers import dump_number
from consistruct.report.schema import LEARNING_SCHEMA, check_document, reading

__all__ = ["LearningReport"]


@dataclass(frozen=True)
class LearningReport:
    """Metric against baselines, choice of penalty, learning curve, errors by cost, and trust.

    Attributes
    ----------
    scores : tuple of ModelScore
        The model first, then the baselines.
    model : str
        What estimates the expected target.
    portfolio : tuple of PortfolioEntry
        What was tried; empty for a single model.
    alpha : float or None
        Penalty of ridge regression; None for other models.
    contrast : float
        Decisions use mean + c(estimate − mean): how far shrinkage was undone.
    criterion : str or None
        What the penalty was chosen by: "task_loss", "gcv" …; None if there was nothing to choose.
    rank_correlation : float or None
        Spearman's, between predicted and real loss of the examples.
    reasons : tuple of (part, text)
        Why a part is missing.
    profit : Profit or None
        Where examples have costs of their own.
    decisions : DecisionChange or None
        Where the model is for a metric that is no mean over examples.
    selective : Selective or None
        Risk against coverage, where the model tells expected losses.
    forecast : CurveForecast or None
        How the learning curve goes on.
    loss_title : str
        The loss in words; `loss` is how Python writes it.
    unit : str
        What an example is: "example", "sequence" or "query".
    columns : tuple of ColumnEntry
        What was made of each column of a table with words, dates or gaps.
    measures : tuple of Measure
        Of sequences the token error, the sequence error and F1 of chunks.
    costliest : tuple of CostlyExample
        Sequences or queries with the largest losses, the worst first.
    overlap : int or None
        Held-out examples that are among the training examples too, truths included; None where
        these were not given.
    """

    loss: str
    estimator: str
    model: str
    portfolio: tuple[PortfolioEntry, ...]
    n_train: int | None
    n_test: int
    max_value: float
    alpha: float | None
    contrast: float
    scores: tuple[ModelScore, ...]
    criterion: str | None
    path: tuple[PathPoint, ...]
    bandwidths: tuple[BandwidthPoint, ...]
    learning_curve: tuple[CurveFit, ...]
    confusion: Confusion | None
    parts: tuple[PartErrors, ...]
    bins: tuple[LossBin, ...]
    rank_correlation: float | None
    reasons: tuple[tuple[str, str], ...]
    profit: Profit | None = None
    decisions: DecisionChange | None = None
    selective: Selective | None = None
    loss_title: str = ""
    unit: str = "example"
    columns: tuple[ColumnEntry, ...] = ()
    measures: tuple[Measure, ...] = ()
    costliest: tuple[CostlyExample, ...] = ()
    overlap: int | None = None
    forecast: CurveForecast | None = None

    def _repr_html_(self) -> str:
        from consistruct.report.card import report_card
        from consistruct.report.learning.charts import learning_charts
        from consistruct.report.learning.wording import learning_sections

        chart = next((c for c in learning_charts(self) if c.key == "learning_curve"), None)
        facts = (("loss", self.loss), ("model", f"{self.estimator}, {self.model}"))
        sections = learning_sections(self)
        return report_card("How good is this model on its loss?", facts, sections, chart)

    def reason(self, part: str) -> str | None:
        """Why a part is missing, if it is."""
        return dict(self.reasons).get(part)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        fields: dict[str, Any] = _plain(dataclasses.asdict(self))
        fields["reasons"] = dict(self.reasons)
        return {"schema_version": LEARNING_SCHEMA, "kind": "learning", **fields}

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Read back what `as_dict` wrote; another kind or version raises ConsistructError."""
        check_document(data, "learning")
        with reading("learning"):
            fields = {field.name: data[field.name] for field in dataclasses.fields(cls)}
            for name, entry in _LISTS.items():
                fields[name] = tuple(entry(**row) for row in data[name])
            confusion = data["confusion"]
            fields["confusion"] = (
                None
                if confusion is None
                else Confusion(
                    tuple(confusion["predictions"]),
                    tuple(confusion["truths"]),
                    tuple(tuple(row) for row in confusion["counts"]),
                    tuple(tuple(row) for row in confusion["cost"]),
                )
            )
            profit = data["profit"]
            if profit is not None:
                points = tuple(ProfitPoint(**point) for point in profit["points"])
                fields["profit"] = Profit(**{**profit, "points": points})
            change = data["decisions"]
            if change is not None:
                rows = {n: tuple(tuple(row) for row in change[n]) for n in ("before", "after")}
                lists = {name: tuple(change[name]) for name in ("names", "slack")}
                fields["decisions"] = DecisionChange(**{**change, **rows, **lists})
            selective = data["selective"]
            if selective is not None:
                shares = tuple(SelectivePoint(**point) for point in selective["points"])
                fields["selective"] = Selective(**{**selective, "points": shares})
            forecast = data["forecast"]
            if forecast is not None:
                ahead = tuple(ForecastPoint(**point) for point in forecast["points"])
                fields["forecast"] = CurveForecast(**{**forecast, "points": ahead})
            fields["reasons"] = tuple(data["reasons"].items())
            return cls(**fields)


_LISTS: dict[str, type[Any]] = {
    "scores": ModelScore,
    "portfolio": PortfolioEntry,
    "path": PathPoint,
    "bandwidths": BandwidthPoint,
    "learning_curve": CurveFit,
    "parts": PartErrors,
    "bins": LossBin,
    "columns": ColumnEntry,
    "measures": Measure,
    "costliest": CostlyExample,
}


def _plain(value: Any) -> Any:
    """Tuples as lists, numbers that JSON cannot hold as null."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(entry) for entry in value]
    return dump_number(value) if isinstance(value, float) else value
