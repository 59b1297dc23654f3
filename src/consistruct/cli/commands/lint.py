"""``consistruct lint``: what to know about a loss before training with it."""

from __future__ import annotations

import typer

from consistruct.cli.commands.plan import read_loss, show
from consistruct.cli.file_checks import FileCommand
from consistruct.cli.options import AsJson, CostRows, Figures
from consistruct.cli.report_files import write_file
from consistruct.exceptions import ConsistructError

__all__ = ["lint", "register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(cls=FileCommand)(lint)


def lint(
    loss: str = typer.Argument(help="Loss spec, e.g. cost:costs.csv, ordinal:5, fbeta:14."),
    rows: CostRows = "",
    json_output: AsJson = False,
    plot: Figures = None,
) -> None:
    """Is something wrong with these costs, and what do argmax, class weights, thresholds lose?

    Example: consistruct lint abstain:3:0.3
    """
    from consistruct.charts import chart_picture
    from consistruct.guarantees import lint as find
    from consistruct.report.guarantees import lint_text

    result = find(read_loss(loss, rows))
    chart = result.chart()
    if plot is not None and chart is None:
        raise ConsistructError(
            f"--plot draws the regions of three true labels, and {loss} has another number; leave "
            "--plot out"
        )
    show(result.as_dict() if json_output else lint_text(result))
    if plot is not None and chart is not None:
        path = write_file(plot, chart_picture(chart, plot.suffix[1:].lower()))
        typer.echo(f"written: {path}", err=json_output)
