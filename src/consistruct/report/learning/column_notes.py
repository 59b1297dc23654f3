"""What an estimator makes of the columns of a DataFrame."""

from __future__ import annotations

from typing import Any

__all__ = ["column_notes"]


def column_notes(X: Any) -> tuple[Any, ...]:
    """A `ColumnNote` for each column of a DataFrame; none for arrays and plain numbers.

    >>> import pandas as pd
    >>> for note in column_notes(pd.DataFrame({"age": [31, None], "town": ["Bonn", "Ulm"]})):
    ...     print(note.name, "-", note)
    age - number, 1 missing
    town - category of 2 values
    """
    if not (hasattr(X, "dtypes") and hasattr(X, "columns")):
        return ()
    from consistruct.learning.files.data.raw import ColumnNote
    from consistruct.learning.selection.columns import Columns

    found = Columns.of(X)
    if found.plain and not found.missing:
        return ()
    kinds = {
        **dict.fromkeys(found.numbers, "number"),
        **dict.fromkeys(found.categories, "category"),
        **dict.fromkeys(found.dates, "date"),
    }
    return tuple(
        ColumnNote(str(name), kinds[name], int(X[name].isna().sum()), int(X[name].nunique()))
        for name in X.columns
    )
