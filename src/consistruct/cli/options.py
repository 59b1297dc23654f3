"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

__all__ = ["AsJson", "DataFile", "Format", "Labels", "LabelsAt", "ModelPath", "Part", "Target"]

DataFile = Annotated[
    Path, typer.Argument(help="Data: .csv, .tsv, .parquet, .svm (svmlight), .arff or .npz.")
]
ModelPath = Annotated[Path, typer.Argument(help="Model file that `consistruct fit` wrote.")]
Format = Annotated[
    str | None,
    typer.Option("--format", help="csv, tsv, parquet, svmlight, arff or npz; default: by suffix."),
]
Target = Annotated[
    list[str] | None,
    typer.Option(
        help="Column with the truth (repeat it for several labels); a number where the file has "
        "no header, -1 is the last. In an .npz: name of the member."
    ),
]
Labels = Annotated[
    str | None,
    typer.Option(help="ARFF: how many attributes are labels, or a Mulan label file (.xml)."),
]
LabelsAt = Annotated[
    Literal["end", "start"], typer.Option(help="ARFF: where those attributes stand.")
]
Part = Annotated[str | None, typer.Option(help="NPZ with several parts: train or test.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
