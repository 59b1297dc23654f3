"""Forecasts as text and plain data: what more rows bring, then the worst case under its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from consistruct._plain_data import dump
from consistruct.report.formats import count_text
from consistruct.report.guarantees import plan_dict
from consistruct.report.schema import SCHEMA_VERSION
from consistruct.report.sections import WORST_CASE

if TYPE_CHECKING:  # forecasts load scikit-learn
    from consistruct.guarantees.complexity import SampleComplexity
    from consistruct.guarantees.forecasts.forecast import Forecast, RowsNeeded

__all__ = ["forecast_dict", "forecast_text"]


def forecast_dict(
    forecast: Forecast, needed: Sequence[RowsNeeded], worst: SampleComplexity | str
) -> dict[str, Any]:
    """JSON-ready; `worst` is the guarantee, or why there is none."""
    return {
        "schema_version": SCHEMA_VERSION,
        **forecast.as_dict(),
        "rows_needed": dump(list(needed)),
        "worst_case": {"reason": worst} if isinstance(worst, str) else plan_dict(worst),
    }


def forecast_text(
    forecast: Forecast, needed: Sequence[RowsNeeded], worst: SampleComplexity | str
) -> Group:
    """The table of the forecast, how many rows losses take, and the worst case in two lines."""
    name = "loss" if forecast.metric is None else forecast.metric
    table = Table(title=f"{forecast.loss}, from {forecast.n} rows", title_justify="left")
    table.add_column("rows", justify="right")
    table.add_column(f"{name} expected", justify="right")
    table.add_column(f"{forecast.confidence:.0%} interval", justify="right")
    table.add_column("")
    for n, found in forecast.table():
        times = "now" if n == forecast.n else f"{n // forecast.n} times the rows"
        table.add_row(
            str(n), f"{found.estimate:.3g}", f"{found.low:.3g} to {found.high:.3g}", times
        )
    floor = forecast.floor
    table.add_row(
        "∞", f"{floor.estimate:.3g}", f"{floor.low:.3g} to {floor.high:.3g}", "floor of the curve"
    )
    parts: list[RenderableType] = [table, *(Text(one.text) for one in needed)]
    measured = ", ".join(f"{found.estimate:.4g} at {n}" for n, found in forecast.measured())
    parts.append(
        Text(
            f"Measured on rows held out from refits: {measured}. The forecast extrapolates them "
            "by a + b·n^−c and assumes that new rows are like these; a model chosen for the "
            "larger size may do better.",
            style="dim",
        )
    )
    parts.append(Text(f"\n{WORST_CASE} (not a forecast for these data)", style="bold"))
    parts += [Text(line, style="dim") for line in _worst(worst)]
    return Group(*parts)


def _worst(worst: SampleComplexity | str) -> list[str]:
    if isinstance(worst, str):
        return [f"  none: {worst}"]
    log = worst.sharp.log_iterations
    number = "no number of" if log == float("inf") else count_text(log, up=True)
    return [
        f"  {number} examples keep the expected excess over the best rule below {worst.eps:g} "
        f"({worst.eps_reason}),",
        "  whatever the distribution. Use it to compare losses and scores; `consistruct plan "
        "SPEC` shows its assumptions.",
    ]
