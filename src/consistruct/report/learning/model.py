"""How a fitted model does on its loss, as plain data with a versioned schema.

The schema is ``schemas/learning.json``. Losses are in the units of the task loss, per example.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from consistruct._plain_data import dump, load
from consistruct.charts.model import Chart, HeatMap
from consistruct.report.formats import Texts
from consistruct.report.learning.entries import (
    BandwidthPoint,
    ColumnEntry,
    Confusion,
    CostlyExample,
    CurveFit,
    CurveForecast,
    DecisionChange,
    LossBin,
    Measure,
    ModelScore,
    PartErrors,
    PathPoint,
    PortfolioEntry,
    Profit,
    Selective,
)
from consistruct.report.schema import LEARNING_SCHEMA, check_document, reading
from consistruct.report.sections import Section

if TYPE_CHECKING:
    from rich.console import Group

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
        Where the model is for a non-decomposable metric.
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
        Held-out examples that are among the training examples too, true labels included; None where
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
    reasons: Texts
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

        chart = next((c for c in self.charts() if c.key == "learning_curve"), None)
        facts = (("loss", self.loss), ("model", f"{self.estimator}, {self.model}"))
        return report_card("How good is this model on its loss?", facts, self.sections(), chart)

    def sections(self) -> tuple[Section, ...]:
        """Return the questions and their answers in plain language, in a reader's order."""
        from consistruct.report.learning.wording import learning_sections

        return learning_sections(self)

    def charts(self) -> tuple[Chart | HeatMap, ...]:
        """Return all charts that this report has, in the order of its questions."""
        from consistruct.report.learning.charts import learning_charts

        return learning_charts(self)

    def tables(self) -> dict[str, str]:
        """Return the data behind the figures as CSV texts by name."""
        from consistruct.report.learning.output import learning_tables

        return learning_tables(self)

    def to_html(self, *, title: str | None = None) -> str:
        """Return one self-contained page: answers, interactive figures, files to save."""
        from consistruct.report.learning.output import learning_html

        return learning_html(self, title=title)

    def to_text(self) -> Group:
        """Return the questions with their answers for a terminal, to print with rich."""
        from consistruct.report.learning.output import learning_text

        return learning_text(self)

    def reason(self, part: str) -> str | None:
        """Why a part is missing, if it is."""
        return dict(self.reasons).get(part)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"schema_version": LEARNING_SCHEMA, "kind": "learning", **dump(self)}

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Read back what `as_dict` wrote; another kind or version raises ConsistructError."""
        check_document(data, "learning")
        with reading("learning"):
            found: Self = load(cls, data)
            return found
