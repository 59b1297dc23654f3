"""CoNLL column files and templates of features.

A column file holds one token per line, its columns separated by blanks or tabs, an empty line after
each sequence. Lines that begin with ``-DOCSTART-`` are dropped, with the empty line after them.

A template has one feature per line: references to cells ``%x[shift,column]``, relative to the
current token, between any other text. An optional name before a colon keeps features of different
lines apart (otherwise the line number does); ``#`` begins a comment. A reference beyond the ends of
the sequence reads as ``_B-1``, ``_B+1`` and so on. These are the unigram lines of CRF++ and
CRFsuite-style templates::

    # the word, its neighbor, and a pair of parts of speech
    w[0]:%x[0,0]
    w[-1]:%x[-1,0]
    pos[-1]|pos[0]:%x[-1,1]|%x[0,1]
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from consistruct._atomic import atomic_write

__all__ = [
    "CHUNKING_TEMPLATE",
    "ColumnFile",
    "FeatureTemplate",
    "columns_text",
    "read_columns",
    "write_columns",
]

REFERENCE = re.compile(r"%x\[\s*([+-]?\d+)\s*,\s*(\d+)\s*\]")

# Words and parts of speech in a window of two, with their pairs and triples: the usual template
# for chunking.
CHUNKING_TEMPLATE = """
w[-2]:%x[-2,0]
w[-1]:%x[-1,0]
w[0]:%x[0,0]
w[1]:%x[1,0]
w[2]:%x[2,0]
w[-1]|w[0]:%x[-1,0]|%x[0,0]
w[0]|w[1]:%x[0,0]|%x[1,0]
p[-2]:%x[-2,1]
p[-1]:%x[-1,1]
p[0]:%x[0,1]
p[1]:%x[1,1]
p[2]:%x[2,1]
p[-2]|p[-1]:%x[-2,1]|%x[-1,1]
p[-1]|p[0]:%x[-1,1]|%x[0,1]
p[0]|p[1]:%x[0,1]|%x[1,1]
p[1]|p[2]:%x[1,1]|%x[2,1]
p[-2]|p[-1]|p[0]:%x[-2,1]|%x[-1,1]|%x[0,1]
p[-1]|p[0]|p[1]:%x[-1,1]|%x[0,1]|%x[1,1]
p[0]|p[1]|p[2]:%x[0,1]|%x[1,1]|%x[2,1]
"""


@dataclass(frozen=True)
class ColumnFile:
    """Sequences of tokens, each a tuple of cells; all rows have `n_columns` cells."""

    sequences: list[list[tuple[str, ...]]]
    n_columns: int

    def column(self, number: int) -> list[list[str]]:
        """One column as sequences of strings; −1 is the last, where tags usually stand."""
        if not -self.n_columns <= number < self.n_columns:
            raise ValueError(
                f"column {number} does not exist: the file has {self.n_columns} columns, "
                f"counted from 0"
            )
        return [[token[number] for token in sequence] for sequence in self.sequences]


def read_columns(path: str | os.PathLike[str], *, encoding: str = "utf-8") -> ColumnFile:
    """Read a column file; a row with another number of columns is named by its line."""
    sequences: list[list[tuple[str, ...]]] = []
    current: list[tuple[str, ...]] = []
    n_columns = 0
    try:
        with Path(path).open(encoding=encoding) as file:
            for number, line in enumerate(file, start=1):
                cells = tuple(line.split())
                if not cells or cells[0] == "-DOCSTART-":
                    if current:
                        sequences.append(current)
                        current = []
                    continue
                if n_columns == 0:
                    n_columns = len(cells)
                elif len(cells) != n_columns:
                    raise ValueError(
                        f"{path}, line {number}: {len(cells)} columns, the lines before have "
                        f"{n_columns}; separate columns by blanks or tabs, sequences by empty lines"
                    )
                current.append(cells)
    except UnicodeDecodeError:
        raise ValueError(
            f"{path}, line {_undecodable_line(path, encoding)}: not text in {encoding}; "
            f"convert the file, for example with iconv"
        ) from None
    if current:
        sequences.append(current)
    if not sequences:
        raise ValueError(
            f"{path} contains no tokens; one token per line, columns separated by blanks"
        )
    return ColumnFile(sequences, n_columns)


def _undecodable_line(path: str | os.PathLike[str], encoding: str) -> int:
    """Number of the first line that is not text; the reader knows its place in a buffer only."""
    content = Path(path).read_bytes()
    try:
        content.decode(encoding)
    except UnicodeDecodeError as error:
        return content[: error.start].decode(encoding).count("\n") + 1
    raise AssertionError("the file changed while it was read")


def columns_text(
    sequences: Iterable[Sequence[Sequence[str]]], tags: Iterable[Sequence[object]]
) -> str:
    """Tokens with their tags as a further last column, as conlleval reads it.

    >>> columns_text([[("The", "DT"), ("cat", "NN")]], [["B-NP", "I-NP"]])
    'The DT B-NP\\ncat NN I-NP\\n\\n'
    """
    lines = []
    for sequence, own in zip(sequences, tags, strict=True):
        lines += [" ".join([*token, str(tag)]) for token, tag in zip(sequence, own, strict=True)]
        lines.append("")
    return "".join(f"{line}\n" for line in lines)


def write_columns(
    path: str | os.PathLike[str],
    sequences: Iterable[Sequence[Sequence[str]]],
    tags: Iterable[Sequence[object]],
    *,
    encoding: str = "utf-8",
) -> None:
    """Write `columns_text` to a file, whole or not at all."""
    with atomic_write(os.fspath(path)) as file:
        file.write(columns_text(sequences, tags).encode(encoding))


@dataclass(frozen=True)
class FeatureTemplate:
    """Features of tokens by a template, see the module's docstring for its language.

    Examples
    --------
    >>> from consistruct.learning.files.conll import FeatureTemplate
    >>> template = FeatureTemplate.parse("w:%x[0,0]\\nprevious:%x[-1,0]")
    >>> template.features([("The", "DT"), ("cat", "NN")])
    [['w=The', 'previous=_B-1'], ['w=cat', 'previous=The']]
    """

    # name of each line, its references (shift, column), and the text around them
    lines: tuple[tuple[str, tuple[tuple[int, int], ...], tuple[str, ...]], ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        lines = []
        for number, raw in enumerate(text.splitlines(), start=1):
            line = raw.partition("#")[0].strip()
            if not line:
                continue
            found = REFERENCE.search(line)
            if found is None:
                raise ValueError(
                    f"template line {number}, {raw.strip()!r}, has no reference such as %x[0,0]"
                )
            name, colon, _ = line[: found.start()].partition(":")
            body = line[len(name) + 1 :] if colon else line
            references = tuple((int(a), int(b)) for a, b in REFERENCE.findall(body))
            around = tuple(REFERENCE.split(body)[::3])
            lines.append((name if colon else f"U{number}", references, around))
        if not lines:
            raise ValueError("the template contains no feature; write lines such as w:%x[0,0]")
        return cls(tuple(lines))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        return cls.parse(Path(path).read_text(encoding="utf-8"))

    @property
    def n_columns(self) -> int:
        """Columns that a file must have for the template."""
        return 1 + max(self.columns)

    @property
    def columns(self) -> frozenset[int]:
        """Numbers of the columns that the template reads."""
        return frozenset(column for _, references, _ in self.lines for _, column in references)

    def features(self, sequence: Sequence[Sequence[str]]) -> list[list[str]]:
        """Feature strings of each token of one sequence."""
        T = len(sequence)
        if T and len(sequence[0]) < self.n_columns:
            raise ValueError(
                f"the template reads column {self.n_columns - 1}, "
                f"but tokens have {len(sequence[0])} columns (counted from 0)"
            )
        tokens = []
        for t in range(T):
            own = []
            for name, references, around in self.lines:
                cells = [
                    sequence[t + shift][column]
                    if 0 <= t + shift < T
                    else (f"_B{t + shift}" if t + shift < 0 else f"_B+{t + shift - T + 1}")
                    for shift, column in references
                ]
                value = around[0] + "".join(
                    cell + text for cell, text in zip(cells, around[1:], strict=True)
                )
                own.append(f"{name}={value}")
            tokens.append(own)
        return tokens
