"""ARFF, dense and sparse, with many labels as Mulan and MEKA write them.

SciPy's reader takes neither sparse rows nor strings, hence this one. Supported attribute types:
numeric (also real, integer), nominal, string and date; "?" is a missing cell. In a sparse row, of
numbers only, an attribute that is left out is 0, or the first of its nominal values.
"""

from __future__ import annotations

import html
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from consistruct._budgets import unreadable_table
from consistruct._frames import is_missing_label
from consistruct._validation import read_number
from consistruct.learning.files.data.base import (
    DataSet,
    Layout,
    Request,
    bad,
    check_finite,
    check_gaps,
    is_number,
    kind_of,
    label_column,
    numbers_or_names,
    plain_digits,
)
from consistruct.learning.files.data.columns import Columns, choose_columns
from consistruct.learning.files.data.raw import (
    RawTable,
    notations,
    raw_table,
    requested_kinds,
    text_column,
)

__all__ = ["read_arff"]

# text in single or double quotes with backslash escapes, or a bare word
_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_TOKEN = rf"""{_QUOTED}|[^\s,{{}}'"]+"""
# names are freer than cells: Mulan's bag-of-words files have attributes such as don't
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|[^\s{{]+)\s*(.*)$", re.IGNORECASE)
_CELL = re.compile(rf"\s*({_TOKEN})\s*(,|$)")
_PAIR = re.compile(rf"\s*([0-9]{{1,18}})\s+({_TOKEN})\s*(,|$)")
_MEKA_COUNT = re.compile(r"-C\s+(-?[0-9]{1,9})(?![0-9])")
_XML_LABEL = re.compile(r"<label\s+name\s*=\s*(\"[^\"]*\"|'[^']*')")


@dataclass(frozen=True)
class _Attribute:
    name: str
    values: tuple[str, ...] | None  # of a nominal attribute, in order
    free: bool = False  # strings and dates

    @property
    def default(self) -> str:
        """What a sparse row means by leaving it out."""
        return "0" if self.values is None else self.values[0]

    @property
    def kind(self) -> str | None:
        """What its cells are, as far as the file declares it."""
        if self.free:
            return None
        return "number" if self.numeric else "category"

    @property
    def numeric(self) -> bool:
        if self.values is None:
            return not self.free
        return all(is_number(value) for value in self.values)


def read_arff(path: Path, request: Request) -> DataSet:
    """Read an ARFF file.

    The true label is named by the target, or it is the first or last `labels` attributes, or those
    in a Mulan label file (XML). Without any of these, the count in the relation name (MEKA's
    ``-C``) is used.
    """
    try:
        found = _read(path, request, raw=False) or _read(path, request, raw=True)
        assert found is not None  # raw rows are read whatever they hold
        return found
    except UnicodeDecodeError as error:
        raise bad(path, f"not a UTF-8 text file ({error.reason} at byte {error.start})") from None


def _read(path: Path, request: Request, *, raw: bool) -> DataSet | None:
    with path.open(encoding="utf-8-sig") as file:
        numbered = enumerate(file, start=1)
        relation, attributes = _header(path, numbered)
        names = [attribute.name for attribute in attributes]
        requested = _with_labels(path, relation, names, request)
        columns = choose_columns(path, names, len(names), requested)
        return _data(path, numbered, attributes, columns, requested, raw=raw)


def _header(path: Path, numbered: Iterator[tuple[int, str]]) -> tuple[str, list[_Attribute]]:
    relation, attributes = "", []
    for line, raw in numbered:
        text = raw.strip()
        if not text or text.startswith("%"):
            continue
        keyword = text.split(None, 1)[0].lower()
        if keyword == "@relation":
            relation = text[len("@relation") :].strip()
        elif keyword == "@attribute":
            attributes.append(_attribute(path, line, text))
        elif keyword == "@data":
            if not attributes:
                raise bad(path, "@data before any @attribute", line=line)
            return relation, attributes
        else:
            fault = f"expected @relation, @attribute or @data, got {text[:40]!r}"
            raise bad(path, fault, line=line)
    raise bad(path, "there is no @data section: the file is cut off or not an ARFF file")


def _attribute(path: Path, line: int, text: str) -> _Attribute:
    match = _ATTRIBUTE.match(text)
    if match is None:
        raise bad(path, f"cannot read the attribute {text[:60]!r}", line=line)
    name, kind = _unquoted(match[1]), match[2].strip()
    if kind.startswith("{") and kind.endswith("}"):
        values = tuple(_cells(path, line, kind[1:-1]))
        if not values:
            raise bad(path, f"attribute {name!r} has no values between the braces", line=line)
        return _Attribute(name, values)
    if kind.lower() in ("numeric", "real", "integer"):
        return _Attribute(name, None)
    if kind.lower() == "string" or kind.lower().partition(" ")[0] == "date":
        return _Attribute(name, None, free=True)
    raise bad(
        path,
        f"attribute {name!r} has type {kind!r}; only numeric, nominal, string and date attributes "
        "can be read",
        line=line,
    )


def _unquoted(token: str) -> str:
    if len(token) > 1 and token[0] in "'\"" and token[-1] == token[0]:
        return re.sub(r"\\(.)", r"\1", token[1:-1])
    return token


def _cells(path: Path, line: int, text: str) -> list[str]:
    if "'" not in text and '"' not in text:
        return [cell.strip() for cell in text.split(",")]
    cells, position, comma = [], 0, ","
    while comma:
        match = _CELL.match(text, position)
        if match is None:
            raise bad(
                path, f"cannot read the cell at {text[position : position + 30]!r}", line=line
            )
        cells.append(_unquoted(match[1]))
        position, comma = match.end(), match[2]
    return cells


def _with_labels(path: Path, relation: str, names: list[str], request: Request) -> Request:
    """Turn a count or a label file into target names."""
    labels = request.labels
    at = request.labels_at
    if request.target or (request.like is not None and labels is None):
        return request
    if isinstance(labels, Path):
        chosen: Sequence[str] = _mulan_labels(labels)
        known = set(names)
        unknown = [name for name in chosen if name not in known]
        if unknown:
            raise bad(path, f"label {unknown[0]!r} of {labels} is not an attribute of the file")
    else:
        if labels is None:
            meka = _MEKA_COUNT.search(relation)
            if meka is None:
                return request
            # MEKA: a positive count stands at the start, a negative one at the end
            labels, at = abs(int(meka[1])), "start" if int(meka[1]) > 0 else "end"
        if not 0 < labels < len(names):
            raise bad(path, f"the number of labels must be in 1..{len(names) - 1}, got {labels}")
        chosen = names[:labels] if at == "start" else names[-labels:]
    return replace(request, target=tuple(chosen), labels=None)


def _mulan_labels(path: Path) -> list[str]:
    refusal = unreadable_table(path)
    if refusal is not None:
        raise bad(path, f"the label file could not be read ({refusal})")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise bad(path, f"the label file could not be read ({error})") from None
    found = [html.unescape(match[1:-1]) for match in _XML_LABEL.findall(text)]
    if not found:
        raise bad(path, 'no <label name="…"> in the label file')
    return found


def _data(
    path: Path,
    numbered: Iterator[tuple[int, str]],
    attributes: list[_Attribute],
    columns: Columns,
    request: Request,
    *,
    raw: bool,
) -> DataSet | None:
    """The data; None where features are not all complete numbers, unless rows are read as text."""
    like = request.like
    if not raw:
        numeric = all(attributes[place].numeric for place in columns.features)
        if request.notation or not numeric or (like is not None and like.kinds is not None):
            return None
    rows = _Rows(path, attributes, columns, request.missing, raw=raw)
    for line, written in numbered:
        text = written.strip()
        if text and not text.startswith("%") and not rows.add(line, text):
            return None
    check_gaps(path, rows.gaps, "line", request)
    if not rows.lines:
        raise bad(path, "there is no line below @data")
    table = None
    if raw:
        table = rows.table(request)
        X: Any = table.X
        kept = tuple(columns.features[place] for place in table.kept)
        columns = Columns(kept, columns.target, columns.groups)
    else:
        X = rows.inputs()
    groups = numbers_or_names(rows.groups) if columns.groups is not None else None
    feature_names = tuple(attributes[place].name for place in columns.features)
    target = tuple(attributes[place].name for place in columns.target)
    single = [label_column(path, cells, rows.lines, request.like) for cells in rows.labels]
    y = None if not single else single[0] if len(single) == 1 else np.column_stack(single)
    label_names = target if len(target) > 1 else None
    layout = request.like or Layout(
        "arff",
        X.shape[1],
        feature_names,
        target,
        label_names,
        request.groups,
        label_kind=kind_of(y),
        kinds=None if table is None else table.kinds,
        formats=None if table is None else table.formats,
        missing=() if table is None else request.missing,
    )
    notes = () if table is None else table.notes
    return DataSet(X, y, feature_names, label_names, groups, layout, notes)


class _Rows:
    """Collects dense or sparse rows; a file holds one kind only."""

    def __init__(
        self,
        path: Path,
        attributes: list[_Attribute],
        columns: Columns,
        missing: tuple[str, ...],
        *,
        raw: bool,
    ) -> None:
        self.path, self.attributes, self.columns, self.raw = path, attributes, columns, raw
        self.missing = missing
        self.gaps: list[tuple[int, str]] = []  # lines without a true label, and which one
        self.cells: list[list[str]] = [[] for _ in columns.features]  # of rows read as text
        self.sparse: bool | None = None
        self.lines = array("q")
        self.values, self.indices, self.indptr = array("d"), array("q"), array("q", [0])
        self.labels: list[list[str]] = [[] for _ in columns.target]
        self.groups: list[str] = []
        # position in X of each attribute; −1 for those that are no feature
        self._feature = np.full(len(attributes), -1)
        self._feature[list(columns.features)] = np.arange(len(columns.features))
        self._allowed = {
            place: frozenset(attributes[place].values or ()) for place in columns.target
        }
        self._default = [attribute.default for attribute in attributes]
        # a nominal feature such as {1,0} means 1 where a sparse row leaves it out
        self._implied = {
            place: float(attributes[place].default)
            for place in columns.features
            if attributes[place].numeric and float(attributes[place].default) != 0.0
        }

    def add(self, line: int, text: str) -> bool:
        """Take a row; False if it holds other things than numbers and is not read as text."""
        sparse = text.startswith("{")
        if self.sparse is None:
            self.sparse = sparse
        if sparse != self.sparse:
            raise bad(self.path, "sparse {…} and dense rows are mixed", line=line)
        if sparse and self.raw:
            fault = (
                "sparse rows {…} may contain only numbers; leave out other features with --ignore"
            )
            raise bad(self.path, fault, line=line)
        if sparse:
            pairs = self._pairs(line, text)
            if self._is_gap(line, lambda place: pairs.get(place, self._default[place])):
                return True
            present = {**self._implied}
            for place, cell in pairs.items():
                if self._feature[place] >= 0:
                    present[place] = self._number(line, place, cell)
            for place in sorted(present, key=lambda place: self._feature[place]):
                self.indices.append(int(self._feature[place]))
                self.values.append(present[place])
            self.indptr.append(len(self.indices))
            self._label(line, lambda place: pairs.get(place, self._default[place]))
        else:
            row = _cells(self.path, line, text)
            if len(row) != len(self.attributes):
                fault = f"{len(row)} cells, but there are {len(self.attributes)} attributes"
                raise bad(self.path, fault, line=line)
            if self._is_gap(line, row.__getitem__):
                return True
            cells = [row[place] for place in self.columns.features]
            if self.raw:
                for column, cell in zip(self.cells, cells, strict=True):
                    column.append(cell)
            else:
                try:
                    values = list(map(float, cells))
                    plain = plain_digits("".join(cells)) and all(map(isfinite, values))
                except ValueError:
                    plain = False
                if not plain:
                    return False
                self.values.extend(values)
            self._label(line, row.__getitem__)
        self.lines.append(line)
        return True

    def _pairs(self, line: int, text: str) -> dict[int, str]:
        if not text.endswith("}"):
            raise bad(self.path, "a sparse row must end with }", line=line)
        inner = text[1:-1].strip()
        cells: dict[int, str] = {}
        position, comma = 0, "," if inner else ""
        while comma:
            match = _PAIR.match(inner, position)
            if match is None:
                fault = f"expected 'index value', got {inner[position : position + 30]!r}"
                raise bad(self.path, fault, line=line)
            place = int(match[1])
            if place >= len(self.attributes) or place in cells:
                word = "given twice" if place in cells else f"above {len(self.attributes) - 1}"
                raise bad(self.path, f"attribute index {place} is {word}", line=line)
            cells[place] = _unquoted(match[2])
            position, comma = match.end(), match[3]
        return cells

    def _number(self, line: int, place: int, cell: str) -> float:
        try:
            return read_number(cell)
        except ValueError:
            name = self.attributes[place].name
            fault = "is missing ('?')" if cell == "?" else f"is not a number, got {cell!r}"
            remedy = "fill in or drop missing values first" if cell == "?" else "correct the cell"
            raise bad(self.path, f"feature {name!r} {fault}; {remedy}", line=line) from None

    def _is_gap(self, line: int, cell_at: Any) -> bool:
        """Whether a true label of the row is missing; it is then noted, and not read further."""
        for place in self.columns.target:
            if is_missing_label(cell_at(place), self.missing):
                self.gaps.append((line, self.attributes[place].name))
                return True
        return False

    def _label(self, line: int, cell_at: Any) -> None:
        for cells, place in zip(self.labels, self.columns.target, strict=True):
            cell = cell_at(place)
            values = self.attributes[place].values
            if values is not None and cell not in self._allowed[place]:
                name = self.attributes[place].name
                allowed = ", ".join(values[:8])
                fault = f"label {name!r} must be one of {allowed}, got {cell!r}"
                raise bad(self.path, fault, line=line)
            cells.append(cell)
        if self.columns.groups is not None:
            self.groups.append(cell_at(self.columns.groups))

    def table(self, request: Request) -> RawTable:
        """Columns of any kind, from rows read as text."""
        names = [self.attributes[place].name for place in self.columns.features]
        requested = requested_kinds(self.path, names, request.columns, request.like)
        declared = [self.attributes[place].kind for place in self.columns.features]
        kinds = [wanted or kind for wanted, kind in zip(requested, declared, strict=True)]
        columns = [
            text_column(self.path, name, cells, self.lines, kind, notation)
            for name, cells, kind, notation in zip(
                names, self.cells, kinds, notations(request, kinds), strict=True
            )
        ]
        return raw_table(
            self.path, names, columns, requested=requested, like=request.like, named=True
        )

    def inputs(self) -> Any:
        shape = (len(self.lines), len(self.columns.features))
        values: NDArray[np.float64] = np.array(self.values, dtype=np.float64)
        if not self.sparse:
            X = values.reshape(shape)
            names = [self.attributes[place].name for place in self.columns.features]
            check_finite(self.path, X, names, self.lines)
            return X
        check_finite(self.path, values)
        kind: Any = np.int32 if max(len(values), shape[1]) < 2**31 else np.int64
        indices, indptr = np.array(self.indices, dtype=kind), np.array(self.indptr, dtype=kind)
        sparse = sp.csr_array((values, indices, indptr), shape=shape)
        sparse.eliminate_zeros()
        return sparse
