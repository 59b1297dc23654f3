"""The command decide: the decision of least expected loss for each row of a table.

Exit codes: 0 done, 2 bad usage or input.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from consistruct.cli.failures import show_exactly, tell
from consistruct.cli.file_checks import FileCommand
from consistruct.cli.options import AsJson, DataFile, Format
from consistruct.cli.output import show
from consistruct.cli.report_files import write_file

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(cls=FileCommand)(decide)


def decide(
    data: DataFile,
    loss: Annotated[
        str, typer.Option(help="Loss spec, such as cost:costs.csv, abstain:3:0.2 or ordinal:5.")
    ],
    rows: Annotated[
        str | None, typer.Option(help="What the rows of a cost file are: pred or true.")
    ] = None,
    identifier: Annotated[
        str | None, typer.Option("--id", help="Column that names the rows; it is handed through.")
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            help="Most rows with this decision: review=200, or a share, reject=0.05 (repeat)."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File for the decisions (CSV); default: stdout.")
    ] = None,
    format: Format = None,  # noqa: A002
    as_json: AsJson = False,
) -> None:
    """Decide for each row of a table of probabilities, whose columns are named like the classes.

    Example: consistruct decide probabilities.csv --loss cost:costs.csv --out decisions.csv
    """
    from consistruct._plain_data import csv_text
    from consistruct.decisions import decide as decide_rows
    from consistruct.decisions.reading import Given
    from consistruct.learning.files.data import read_data

    named = identifier is not None
    target = (identifier,) if identifier is not None else ()
    table = read_data(data, format=format, target=target, with_target=named)
    # words or gaps make categories of a column, which would be decided about as numbers
    if not isinstance(table.X, np.ndarray) or table.X.dtype == object:
        raise ValueError(
            f"{data}: every column must contain probabilities (numbers, none of them missing); "
            "name the column that names the rows in --id, and remove others"
        )
    given = Given(table.X, list(table.feature_names) if table.feature_names else None)
    decided = decide_rows(loss, given, rows=rows, limits=_limits(limit or []))
    columns = {identifier: table.y} if named else {}
    columns |= {name: _cells(cells) for name, cells in decided.columns().items()}
    listed = [np.asarray(cells).tolist() for cells in columns.values()]
    text = csv_text(list(map(str, columns)), zip(*listed, strict=True))
    if out is not None:
        write_file(out, text)
    elif not as_json:
        show_exactly(text)
        for note in decided.notes:
            tell(note, 0)
        return
    labels, counts = np.unique(np.asarray(_cells(decided.labels)).astype(str), return_counts=True)
    summary: dict[str, Any] = {
        "command": "decide",
        "data": str(data),
        "loss": loss,
        "n_examples": len(decided),
        "mean_expected_loss": float(decided.expected_loss.mean()),
        "decisions": dict(zip(labels.tolist(), map(str, counts.tolist()), strict=True)),
    }
    if decided.notes:
        summary["notes"] = " | ".join(decided.notes)
    if out is not None:
        summary["out"] = str(out)
    show(summary, as_json)


def _limits(given: list[str]) -> dict[str, float] | None:
    """Read review=200 or reject=0.05, a share where there is a decimal point."""
    limits: dict[str, float] = {}
    for text in given:
        name, _, number = text.rpartition("=")
        try:
            limits[name] = float(number) if "." in number else int(number)
        except ValueError:
            name = ""
        if not name:
            raise ValueError(
                f"--limit takes NAME=ROWS or NAME=SHARE, such as review=200, got {text}"
            )
    return limits or None


def _cells(cells: Any) -> Any:
    """Return labels with parts in one field, such as 0|1|1."""
    joined = ["|".join(map(str, cell)) if isinstance(cell, tuple) else cell for cell in cells]
    return np.array(joined) if joined and isinstance(joined[0], str) else joined
