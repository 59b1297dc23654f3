"""Data files as arrays: CSV, Parquet, svmlight, ARFF and npz behind one function."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from consistruct._budgets import irregular_file
from consistruct.exceptions import DataFileError
from consistruct.learning.files.data.arff import read_arff
from consistruct.learning.files.data.base import DataSet, Layout, Request
from consistruct.learning.files.data.npz import read_npz
from consistruct.learning.files.data.svmlight import read_svmlight
from consistruct.learning.files.data.tables import read_csv, read_parquet, read_tsv

__all__ = ["FORMATS", "SUFFIXES", "DataSet", "Layout", "read_data"]

FORMATS: dict[str, Callable[[Path, Request], DataSet]] = {
    "csv": read_csv,
    "tsv": read_tsv,
    "parquet": read_parquet,
    "svmlight": read_svmlight,
    "arff": read_arff,
    "npz": read_npz,
}
SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".arff": "arff",
    ".npz": "npz",
}


def read_data(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002
    target: str | Sequence[str] = (),
    groups: str | None = None,
    ignore: Sequence[str] = (),
    labels: int | str | Path | None = None,
    labels_at: str = "end",
    part: str | None = None,
    like: Layout | None = None,
    with_target: bool = True,
    columns: Mapping[str, str] | None = None,
    missing: Sequence[str] = (),
    decimal: str | None = None,
    date_format: str | None = None,
    drop_missing_target: bool = False,
) -> DataSet:
    """Read examples and true labels from a file.

    Parameters
    ----------
    path : path
    format : str, optional
        One of `FORMATS`; by the suffix of the file name if not given.
    target : str or sequence of str
        Column(s) that hold the true label: names, or numbers where the file has no header (−1 is
        the last). Of an npz archive, the name of the member.
    groups : str, optional
        Column that states which query or sequence a row belongs to.
    ignore : sequence of str
        Columns to leave out.
    labels : int or path, optional
        ARFF: how many attributes are labels, or a Mulan label file (XML).
    labels_at : "end" or "start"
        ARFF: where those attributes stand.
    part : str, optional
        npz: "train" or "test", for archives with both.
    like : Layout, optional
        Layout of the file that a model was fitted on: same columns in the same order.
    columns : mapping of names to "number", "category", "date" or "drop", optional
        CSV, Parquet and ARFF: what feature columns are, where it is not what their cells say.
    missing : sequence of str
        CSV, Parquet and ARFF: words for missing cells, besides the empty cell, ``NA`` and others.
    decimal : "." or ",", optional
        The decimal sign of numbers, where their cells leave it open (``1,862``).
    date_format : str, optional
        How dates are written, such as ``%d/%m/%Y``, where their cells leave it open.
    drop_missing_target : bool
        Leave out rows without a true label, which are refused otherwise.
    with_target : bool
        False leaves the true label out, which may then be absent from the file (prediction).

    Returns
    -------
    DataSet

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from consistruct.learning.files.data import read_data
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "animals.csv"
    >>> _ = file.write_text("weight,legs,kind\\n4.0,4,cat\\n0.1,2,bird\\n")
    >>> data = read_data(file, target="kind")
    >>> data.X, data.y
    (array([[4. , 4. ], [0.1, 2. ]]), array(['cat', 'bird'], dtype='<U4'))
    """
    file = Path(path)
    kind = format or SUFFIXES.get(file.suffix.lower())
    if kind not in FORMATS:
        given = f"the format {format!r}" if format else f"the suffix {file.suffix!r}"
        raise DataFileError(
            f"{file}: {given} is not known; the formats are {', '.join(FORMATS)}; use --format if "
            "the file name does not show it (on the command line also conll, for column files of "
            "sequences)"
        )
    if labels_at not in ("end", "start"):
        raise DataFileError(f"labels_at must be 'end' or 'start', got {labels_at!r}")
    if not file.exists():
        raise DataFileError(f"there is no file {str(file)!r}")
    if like is not None and like.hash_bits is not None:
        raise DataFileError(
            f"{file}: the model was fitted on a folder with hashed columns; put the file into a "
            "folder, and name that"
        )
    irregular = irregular_file(file)
    if irregular is not None:
        raise DataFileError(f"{file} is {irregular}; pass a data file")
    words = (missing,) if isinstance(missing, str) else tuple(missing)
    request = Request(
        target=(target,) if isinstance(target, str) else tuple(target),
        groups=groups,
        ignore=tuple(ignore),
        labels=Path(labels) if isinstance(labels, str | Path) else labels,
        labels_at=labels_at,
        part=part,
        like=like,
        with_target=with_target,
        columns=dict(columns or {}),
        missing=words if like is None else (*like.missing, *words),
        decimal=decimal,
        date_format=date_format,
        drop_missing_target=drop_missing_target,
    )
    _check_notation(file, kind, request)
    if request.columns and kind not in ("csv", "tsv", "parquet", "arff"):
        raise DataFileError(
            f"{file}: --columns applies only to tables with named columns (csv, parquet, arff), "
            f"not {kind}"
        )
    try:
        return FORMATS[kind](file, request)
    except OSError as error:
        raise DataFileError(f"{file} could not be read: {error.strerror or error}") from None


def _check_notation(file: Path, kind: str, request: Request) -> None:
    """Refuse options that say how text is written where a format has no such text."""
    if request.decimal not in (None, ".", ","):
        raise DataFileError(f"--decimal must be . or , (a comma), got {request.decimal!r}")
    if request.date_format is not None:
        try:
            time.strptime(time.strftime(request.date_format), request.date_format)
        except ValueError:
            raise DataFileError(
                f"--date-format must be a format such as %d/%m/%Y, got {request.date_format!r}"
            ) from None
    given = {
        "missing": request.missing,
        "decimal": request.decimal,
        "date-format": request.date_format,
    }
    tables = ("csv", "tsv", "parquet", "arff")
    unused = next((name for name, value in given.items() if value), None)
    if unused and kind not in tables:
        raise DataFileError(f"{file}: --{unused} applies only to {', '.join(tables)}, not {kind}")
