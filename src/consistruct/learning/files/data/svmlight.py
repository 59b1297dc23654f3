"""svmlight / libsvm files: ``labels qid:q index:value …``, one line per example."""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from consistruct._budgets import FILES
from consistruct._frames import is_missing_label
from consistruct._validation import read_integer
from consistruct.learning.files.data.base import (
    DataSet,
    Layout,
    Request,
    bad,
    check_features,
    check_finite,
    check_fit_width,
    check_gaps,
    kind_of,
    label_column,
    numbers_or_names,
    plain_digits,
)

__all__ = ["read_svmlight"]


def read_svmlight(path: Path, request: Request) -> DataSet:
    """Read a sparse file; several labels per line (``3,7``, or none) make it multi-label.

    Indices count from 1 as the format states, or from 0 if an index 0 occurs; a file read like an
    earlier one counts as that one does.
    """
    data, indices, indptr = array("d"), array("q"), array("q", [0])
    fields: list[str] = []
    queries: list[int] = []
    lines = array("q")
    try:
        with path.open(encoding="utf-8") as file:
            for line, text in enumerate(file, start=1):
                words = text.partition("#")[0].split()
                if not words:
                    continue
                # a line may start with its features: an example without any label
                labeled = ":" not in words[0]
                fields.append(words[0] if labeled else "")
                pairs = words[1:] if labeled else words
                if pairs and pairs[0].startswith("qid:"):
                    queries.append(_integer(path, line, pairs[0][4:], "query number"))
                    pairs = pairs[1:]
                _append_pairs(path, line, pairs, indices, data)
                indptr.append(len(indices))
                lines.append(line)
    except UnicodeDecodeError as error:
        raise bad(path, f"not a text file ({error.reason} at byte {error.start})") from None
    if not lines:
        raise bad(path, "the file has no examples")
    if queries and len(queries) != len(lines):
        raise bad(
            path,
            f"{len(queries)} of {len(lines)} lines have a qid; give one to every line or to none",
        )
    X, zero_based = _matrix(path, data, indices, indptr, lines, request.like)
    groups = np.array(queries, dtype=np.int64) if queries else None
    if request.with_target:
        gaps = [bool(field) and is_missing_label(field, request.missing) for field in fields]
        check_gaps(
            path, [(n, "label") for n, gap in zip(lines, gaps, strict=True) if gap], "line", request
        )
        kept = np.flatnonzero(~np.array(gaps))
        if not len(kept):
            raise bad(path, "the file has no examples")
        if len(kept) < len(gaps):
            X, groups = X[kept], None if groups is None else groups[kept]
            fields, lines = [fields[i] for i in kept], array("q", [lines[i] for i in kept])
    y, label_names = _labels(path, fields, lines, request)
    if request.like is None:
        check_fit_width(path, X.shape[1], y)
    layout = request.like or Layout(
        "svmlight",
        X.shape[1],
        label_names=label_names,
        groups="qid" if queries else None,
        zero_based=zero_based,
        multilabel=label_names is not None,
        label_kind=kind_of(y),
    )
    return DataSet(X, y, None, label_names, groups, layout)


def _append_pairs(
    path: Path, line: int, pairs: list[str], indices: array[int], data: array[float]
) -> None:
    previous = -1
    for pair in pairs:
        index_text, colon, value_text = pair.partition(":")
        try:
            if not plain_digits(pair):
                raise ValueError
            index, value = int(index_text), float(value_text)
        except ValueError:
            fault = (
                f"expected index:value, got {pair[:40]!r}" if colon else f"unexpected {pair[:40]!r}"
            )
            raise bad(path, fault, line=line) from None
        if index > FILES.features:
            check_features(path, index, line)
        if index <= previous:
            word = "negative" if index < 0 else "not above the one before it"
            raise bad(path, f"index {index} is {word}; indices must increase", line=line)
        previous = index
        indices.append(index)
        data.append(value)


def _integer(path: Path, line: int, text: str, what: str) -> int:
    try:
        return read_integer(text)
    except ValueError:
        raise bad(
            path,
            f"the {what} must be an integer of at most 18 digits, got {text[:40]!r}",
            line=line,
        ) from None


def _matrix(
    path: Path,
    data: array[float],
    indices: array[int],
    indptr: array[int],
    lines: array[int],
    like: Layout | None,
) -> tuple[sp.csr_array, bool]:
    columns = np.frombuffer(indices, dtype=np.int64) if indices else np.zeros(0, dtype=np.int64)
    values = np.frombuffer(data, dtype=np.float64).copy() if data else np.zeros(0)
    check_finite(path, values)
    rows = np.frombuffer(indptr, dtype=np.int64)
    zero_based = bool(len(columns) and columns.min() == 0)
    if like is not None and like.zero_based is not None:
        if zero_based and not like.zero_based:
            first = int(np.searchsorted(rows, np.argmax(columns == 0), side="right")) - 1
            fault = "index 0, but the model was fitted on a file that counts from 1"
            raise bad(path, fault, line=lines[first])
        zero_based = like.zero_based
    if not zero_based:
        columns = columns - 1
    n_features = int(columns.max()) + 1 if len(columns) else 0
    if like is not None:
        if n_features > like.n_features:
            first = int(np.searchsorted(rows, int(columns.argmax()), side="right")) - 1
            fault = f"a feature beyond the {like.n_features} that the model was fitted on"
            raise bad(path, fault, line=lines[first])
        n_features = like.n_features
    check_features(path, n_features)
    if n_features == 0:
        raise bad(path, "no line has a feature index:value")
    small = max(n_features, len(values)) < 2**31
    kind: Any = np.int32 if small else np.int64
    shape = (len(lines), n_features)
    return sp.csr_array((values, columns.astype(kind), rows.astype(kind)), shape=shape), zero_based


def _labels(
    path: Path, fields: list[str], lines: array[int], request: Request
) -> tuple[NDArray[Any] | None, tuple[str, ...] | None]:
    like = request.like
    if not request.with_target:
        return None, like.label_names if like else None
    several = any("," in field or not field for field in fields)
    if like is not None and several and not like.multilabel:
        first = next(i for i, field in enumerate(fields) if "," in field or not field)
        raise bad(path, "the model was fitted on one label per line", line=lines[first])
    if not (like.multilabel if like is not None else several):
        return label_column(path, fields, lines, like), None
    sets = [[label for label in field.split(",") if label] for field in fields]
    if like is not None and like.label_names is not None:
        names = list(like.label_names)
    else:
        found = np.unique(numbers_or_names(sorted({label for row in sets for label in row})))
        names = [str(label) for label in found.tolist()]
    column = {name: place for place, name in enumerate(names)}
    y = np.zeros((len(sets), len(names)), dtype=np.int64)
    for row, labels in enumerate(sets):
        for label in labels:
            place = column.get(label, column.get(str(numbers_or_names([label])[0])))
            if place is None:
                fault = f"label {label!r} did not occur in the file that the model was fitted on"
                raise bad(path, fault, line=lines[row])
            y[row, place] = 1
    return y, tuple(names)
