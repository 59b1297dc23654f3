"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

__all__ = [
    "AsJson",
    "CostRows",
    "DataFile",
    "DateFormat",
    "Decimal",
    "DropMissingTarget",
    "Figures",
    "Format",
    "Groups",
    "HashBits",
    "HtmlPage",
    "Labels",
    "LabelsAt",
    "Missing",
    "ModelPath",
    "Part",
    "QBound",
    "Radius",
    "Seed",
    "TagScheme",
    "Target",
    "Template",
    "Transitions",
]

DataFile = Annotated[
    Path,
    typer.Argument(
        help="Data: .csv, .tsv, .parquet, .svm (svmlight), .arff, .npz or .conll (column file); or "
        "a folder of .parquet, .csv, .tsv or .svm files, read in one pass."
    ),
]
ModelPath = Annotated[Path, typer.Argument(help="Model file that `consistruct fit` wrote.")]
Format = Annotated[
    str | None,
    typer.Option(
        "--format", help="csv, tsv, parquet, svmlight, arff, npz or conll; default: by suffix."
    ),
]
Target = Annotated[
    list[str] | None,
    typer.Option(
        help="Column with the true label (repeat for several labels); a number if the file has no "
        "header (-1 is the last column). In an .npz file: name of the member."
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(help="Word for a missing cell besides NA, nan, ? and empty: --missing unknown."),
]
Decimal = Annotated[
    str | None,
    typer.Option(help="Decimal sign of numbers where cells such as 1,862 leave it open: . or ,"),
]
DateFormat = Annotated[
    str | None,
    typer.Option(help="How dates are written where 07/12/2023 leaves it open: %d/%m/%Y."),
]
DropMissingTarget = Annotated[
    bool,
    typer.Option("--drop-missing-target", help="Leave out rows without a true label."),
]
Labels = Annotated[
    str | None,
    typer.Option(help="ARFF: how many attributes are labels, or a Mulan label file (.xml)."),
]
LabelsAt = Annotated[
    Literal["end", "start"], typer.Option(help="ARFF: where those attributes are.")
]
Part = Annotated[str | None, typer.Option(help="NPZ with several parts: train or test.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Template = Annotated[
    Path | None,
    typer.Option(help="Column file: template with one feature per line, such as w:%x[0,0]."),
]
Transitions = Annotated[
    str,
    typer.Option(help="Column file: shared, or features (each edge has its own scores)."),
]
TagScheme = Annotated[
    str | None,
    typer.Option(
        help="Column file: bio (its variant iob1 is recognized) or iobes; forbids tags that break "
        "the scheme."
    ),
]
HashBits = Annotated[
    int | None,
    typer.Option(help="Column file, folder with solver=sgd: hash features into 2^bits columns."),
]
Groups = Annotated[str | None, typer.Option(help="Column with the query or group.")]
CostRows = Annotated[str, typer.Option(help="What the rows of a cost file are: pred or true.")]
Radius = Annotated[float, typer.Option(help="R, the largest norm of the features.")]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Random seed.")]
QBound = Annotated[
    float, typer.Option(help="Q, the sum of the norms of the conditional probabilities.")
]
HtmlPage = Annotated[Path | None, typer.Option(help="Write the report as one HTML page.")]
Figures = Annotated[Path | None, typer.Option(help="Write the figures to a PNG, SVG or PDF file.")]
