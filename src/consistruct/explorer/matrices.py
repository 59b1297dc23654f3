"""Uploaded cost matrices: checked once, kept by their content while the server runs."""

from __future__ import annotations

import dataclasses
import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Literal

from consistruct.exceptions import ConsistructError
from consistruct.explorer.limits import Limits
from consistruct.explorer.messages import junk_message
from consistruct.losses import CostMatrix, parse_metric
from consistruct.losses.costs.files import parse_cost_csv

__all__ = ["Matrices", "Rows", "Upload"]

Rows = Literal["pred", "true"]
SOURCE = "the file"
N_NAMES = 12  # label names that the page lists
MANY_ROWS = 20


@dataclass(frozen=True)
class Upload:
    """The text of a CSV file and what its rows are; `identifier` is a digest of both."""

    text: str
    rows: Rows | None

    @property
    def identifier(self) -> str:
        content = f"{self.rows or ''}\n{self.text}".encode()
        return hashlib.sha256(content).hexdigest()

    def matrix(self) -> CostMatrix:
        """The costs, or counts of a confusion, rows being predictions."""
        return parse_cost_csv(self.text, SOURCE, rows=self.rows)

    def loss(self, metric: str = "") -> CostMatrix:
        """The costs, or those that a metric is to first order at this confusion."""
        table = self.matrix()
        if not metric:
            return table
        costs = parse_metric(metric).linearized(table.M, rows="pred")
        return dataclasses.replace(table, M=costs.M, rows="pred")


class Matrices:
    """The uploads that are remembered; the one not used for longest goes first."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._uploads: OrderedDict[str, Upload] = OrderedDict()

    def read(self, content: bytes, rows: str) -> tuple[Upload, dict[str, Any]]:
        """Check a file; with what the page shows of it. Keeps nothing, so any thread may call."""
        upload = Upload(self._text(content), _check_rows(rows))
        matrix = upload.matrix()
        names = matrix.pred_names or ()
        longest = max((len(name) for name in (*names, *(matrix.true_names or ()))), default=0)
        if longest > self._limits.name_characters:
            raise ConsistructError(
                f"{SOURCE} has a label name of {longest} characters, but the explorer accepts at "
                f"most {self._limits.name_characters}; shorten it"
            )
        return upload, {
            "id": upload.identifier,
            "n_predictions": matrix.M.shape[0],
            "n_true_labels": matrix.M.shape[1],
            "names": list(names[:N_NAMES]),
            "in_address": len(content) <= self._limits.shared_bytes,
        }

    def keep(self, upload: Upload) -> None:
        """Remember a file that was read."""
        self._uploads[upload.identifier] = upload
        self._uploads.move_to_end(upload.identifier)
        while len(self._uploads) > self._limits.matrices:
            self._uploads.popitem(last=False)

    def get(self, identifier: str) -> Upload:
        """An upload by its identifier."""
        if identifier not in self._uploads:
            raise ConsistructError(
                "this cost matrix is not known to the running server; drop the CSV file again"
            )
        self._uploads.move_to_end(identifier)
        return self._uploads[identifier]

    def _text(self, content: bytes) -> str:
        """Text of a table within the limits, counted before anything is parsed."""
        junk = junk_message(content)
        if junk is not None:
            raise ConsistructError(junk)
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ConsistructError(
                f"{SOURCE} is not UTF-8 text; save the cost matrix as CSV (UTF-8)"
            ) from None
        if "\0" in text:
            raise ConsistructError(f"{SOURCE} contains binary data; save the cost matrix as CSV")
        most = self._limits.labels + 1  # a line and a column of names
        lines = [line for line in text.splitlines() if line.strip(" \t,")]
        n_columns = max((line.count(",") + 1 for line in lines), default=0)
        for number, what in ((n_columns, "columns"), (len(lines), "rows")):
            # commas in quoted names count too: a name with many of them is refused, which is safe
            if number > most:
                hint = (
                    "if it contains examples, `consistruct fit` learns from it"
                    if len(lines) > 2 * n_columns
                    else "`consistruct analyze cost:FILE.csv` accepts more"
                )
                raise ConsistructError(
                    f"{SOURCE} has {number} {what}, but the explorer accepts at most "
                    f"{self._limits.labels} labels; {hint}"
                )
        self._refuse_examples(lines)
        return text

    @staticmethod
    def _refuse_examples(lines: list[str]) -> None:
        """A table with far more rows than columns holds examples, not costs."""
        rows, columns = len(lines), lines[0].count(",") + 1 if lines else 0
        if columns > 1 and rows > MANY_ROWS and rows > 3 * columns:
            raise ConsistructError(
                f"{SOURCE} has {rows} rows and {columns} columns, which looks like a table of "
                "examples; a cost matrix has one row and one column for each label. `consistruct "
                "fit` learns from examples"
            )


def _check_rows(rows: str) -> Rows | None:
    if rows == "":
        return None
    if rows == "pred":
        return "pred"
    if rows == "true":
        return "true"
    raise ConsistructError(f"rows must be pred, true or empty, got {rows!r}")
