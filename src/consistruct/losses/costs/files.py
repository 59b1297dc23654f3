"""Cost matrices and label trees from CSV files."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Literal

import numpy as np

from consistruct._budgets import FILES, unreadable_table
from consistruct._validation import read_number
from consistruct.exceptions import LossSpecError
from consistruct.losses.matrix import CostMatrix, corner, orient
from consistruct.losses.spec import naming
from consistruct.losses.tree import Tree

__all__ = ["parse_cost_csv", "read_cost_csv", "read_tree_csv"]


def read_cost_csv(path: str | Path, *, rows: Literal["pred", "true"] | None = None) -> CostMatrix:
    r"""Read a cost matrix from a CSV file.

    The file holds numbers only, or names in its first row and first column. The corner cell may
    say what the axes are: ``pred`` or ``true`` (of the rows), or both as ``true\pred``. Otherwise
    a matrix that is not symmetric needs `rows`.

    Parameters
    ----------
    path : path
    rows : "pred" or "true", optional
        What the rows of the file stand for.
    """
    return parse_cost_csv(_text(path), str(path), rows=rows)


def parse_cost_csv(
    text: str, source: str = "the cost matrix", *, rows: Literal["pred", "true"] | None = None
) -> CostMatrix:
    r"""Read a cost matrix from the text of a CSV file; errors name the `source`.

    Examples
    --------
    >>> from consistruct.losses.costs.files import parse_cost_csv
    >>> parse_cost_csv("true\\pred,ham,spam\nham,0,10\nspam,1,0").M  # rows become predictions
    array([[ 0.,  1.],
           [10.,  0.]])
    """
    lines, table = _table(source, text)
    # a first line of numbers alone is data; a corner cell or one name makes it a header
    named = not all(_is_number(cell) for cell in table[0])
    costs = _numbers(source, [line[named:] for line in table[named:]], lines[named:])
    row_axis, column_axis = corner(table[0][0].strip()) if named else (None, None)
    if named:
        row_names = [line[0].strip() for line in table[1:]]
        column_names = [name.strip() for name in table[0][1:]]
    else:  # both axes are numbered, so that a square matrix has the same names on both
        row_names, column_names = ([str(n) for n in range(size)] for size in costs.shape)
    with naming(source):
        matrix, *names = orient(
            costs,
            row_names,
            column_names,
            row_axis=row_axis,
            column_axis=column_axis,
            rows=rows,
        )
    return CostMatrix(matrix, *(names if named else ()), rows="pred")


def read_tree_csv(path: str | Path, *, predict: Literal["leaves", "nodes"] = "leaves") -> Tree:
    """Read a label tree: columns ``node,parent`` and optionally ``weight``, one node per line.

    Nodes are named; an empty parent marks a root. Names are numbered in the order of the file.

    Parameters
    ----------
    path : path
    predict : "leaves" or "nodes"
        Whether inner nodes may be predicted: stopping early costs the way that is left.
    """
    lines, table = _table(path, _text(path))
    header = [cell.strip().lower() for cell in table[0]]
    if header not in (["node", "parent"], ["node", "parent", "weight"]):
        raise LossSpecError(
            f"{path}: the first line of a tree must be node,parent or node,parent,weight, "
            f"got {','.join(table[0])!r}"
        )
    names = [line[0].strip() for line in table[1:]]
    if not names:
        raise LossSpecError(f"{path}: the tree has no nodes; add one line node,parent per node")
    if len(names) > FILES.tree_nodes:
        raise LossSpecError(
            f"{path}: a tree may have at most {FILES.tree_nodes} nodes, got {len(names)}; merge "
            f"labels, or leave out nodes with a single child"
        )
    number = {name: position for position, name in enumerate(names)}
    if len(number) != len(names):
        double = next(name for position, name in enumerate(names) if number[name] != position)
        raise LossSpecError(f"{path}: node {double!r} is listed twice")
    parents = []
    for line_number, line in zip(lines[1:], table[1:], strict=True):
        parent = line[1].strip()
        if parent and parent not in number:
            raise LossSpecError(
                f"{path}, line {line_number}: parent {parent!r} is not listed as a node"
            )
        parents.append(number[parent] if parent else -1)
    weights = None
    if len(header) == 3:
        weights = _numbers(path, [line[2:] for line in table[1:]], lines[1:])[:, 0]
    with naming(str(path)):
        return Tree(parents, weights, predict=predict, names=tuple(names))


def _text(path: str | Path) -> str:
    """Return the text of a file that may be read as a table."""
    fault = unreadable_table(path)
    if fault is not None:
        raise LossSpecError(f"{path} could not be read as a CSV file: {fault}")
    try:
        # utf-8-sig: spreadsheets write a byte order mark, which would become part of the first name
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            return file.read()
    except FileNotFoundError:
        raise LossSpecError(f"there is no file {str(path)!r}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise LossSpecError(f"{path} could not be read as a CSV file: {error}") from None


def _table(path: str | Path, text: str) -> tuple[list[int], list[list[str]]]:
    """Return numbers (as an editor counts) and cells of the lines that are not blank."""
    lines: list[int] = []
    table: list[list[str]] = []
    try:
        reader = csv.reader(io.StringIO(text, newline=""))
        for cells in reader:
            if any(cell.strip() for cell in cells):
                lines.append(reader.line_num)
                table.append(cells)
    except csv.Error as error:
        raise LossSpecError(f"{path} could not be read as a CSV file: {error}") from None
    if not table:
        raise LossSpecError(f"{path} is empty")
    for line_number, line in zip(lines, table, strict=True):
        if len(line) != len(table[0]):
            raise LossSpecError(
                f"{path}, line {line_number}: {len(line)} cells, but the first line has "
                f"{len(table[0])}"
            )
    return lines, table


def _is_number(cell: str) -> bool:
    try:
        read_number(cell)
    except ValueError:
        return False
    return True


def _numbers(path: str | Path, cells: list[list[str]], lines: list[int]) -> np.ndarray:
    """Return cells as numbers, (rows, columns); the first that is none is named by its line."""
    for line_number, line in zip(lines, cells, strict=True):
        for column, cell in enumerate(line, start=1):
            if not _is_number(cell):
                raise LossSpecError(
                    f"{path}, line {line_number}, cost {column}: {cell!r} is not a number"
                )
    return np.array([[float(cell) for cell in line] for line in cells], dtype=np.float64)
