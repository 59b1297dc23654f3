"""How the columns of a CoNLL file become features and tags: what a model must know of its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from consistruct.exceptions import DataFileError
from consistruct.learning.files.conll import ColumnFile, FeatureTemplate

__all__ = ["ColumnLayout"]


@dataclass(frozen=True)
class ColumnLayout:
    """The template, the column with the tags, and the number of columns with it.

    A file to predict for may leave the column of tags out; the columns behind it then move up.

    Parameters
    ----------
    template : str
        Text of the template, see `FeatureTemplate`.
    tag_column : int
        Counted from 0; the template must not read it.
    n_columns : int

    Examples
    --------
    >>> from consistruct.learning.files.column_layout import ColumnLayout
    >>> from consistruct.learning.files.conll import ColumnFile
    >>> layout = ColumnLayout("w:%x[0,0]", tag_column=1, n_columns=2)
    >>> layout.features(ColumnFile([[("cat",), ("sleeps",)]], n_columns=1))
    [[['w=cat'], ['w=sleeps']]]
    """

    template: str
    tag_column: int
    n_columns: int

    def __post_init__(self) -> None:
        columns = FeatureTemplate.parse(self.template).columns
        last = self.n_columns - 1
        if not 0 <= self.tag_column <= last:
            raise ValueError(
                f"the column of tags must be between 0 and {last}, got {self.tag_column}"
            )
        if max(columns) > last:
            raise ValueError(
                f"the template reads column {max(columns)}, but the file has {self.n_columns} "
                f"columns, counted from 0"
            )
        if self.tag_column in columns:
            raise ValueError(
                f"the template reads column {self.tag_column}, which contains the tags to "
                "predict; remove it from the template, or choose another column of tags"
            )

    def features(self, file: ColumnFile) -> list[list[list[str]]]:
        """Feature strings of each token, whether or not the file has the column of tags."""
        template, k = FeatureTemplate.parse(self.template), self.tag_column
        if file.n_columns == self.n_columns:
            return [template.features(sequence) for sequence in file.sequences]
        if file.n_columns != self.n_columns - 1:
            raise DataFileError(
                f"the file has {file.n_columns} columns, but the model was fitted on "
                f"{self.n_columns} with the tags in column {k}; pass {self.n_columns} columns, or "
                f"{self.n_columns - 1} without the tags"
            )
        return [
            template.features([(*token[:k], "", *token[k:]) for token in sequence])
            for sequence in file.sequences
        ]

    def tags(self, file: ColumnFile) -> list[list[str]]:
        """The column of tags, which the file must have."""
        if file.n_columns != self.n_columns:
            raise DataFileError(
                f"the file has {file.n_columns} columns, but the model was fitted on "
                f"{self.n_columns} with the tags in column {self.tag_column}"
            )
        return file.column(self.tag_column)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        return cls(**values)
