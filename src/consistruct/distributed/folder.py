"""A folder of Parquet, CSV or svmlight files as batches of rows, in the same order every time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consistruct.distributed.batches import Columns, batches_of
from consistruct.distributed.hashing import text_key
from consistruct.exceptions import DataFileError
from consistruct.learning.files.data import SUFFIXES, Layout
from consistruct.learning.streams.sample import mixed
from consistruct.learning.streams.source import Batch

__all__ = ["Folder", "Place"]

FORMATS = ("parquet", "csv", "tsv", "svmlight")
BATCH_ROWS = 32_768
EDGE = 65_536  # bytes of both ends of a file that identify it, with its size and time


@dataclass(frozen=True)
class Place:
    """Where a batch stands: the number of its file and its number in the file."""

    file: int
    batch: int


class Folder:
    """Files of one format and one set of columns, read batch by batch.

    Parameters
    ----------
    path : path
        Folder; files in folders below it count too, names that start with "." or "_" do not.
    target : sequence of str
        Column(s) with the true label; svmlight files have it in front.
    ignore : sequence of str
        Columns to leave out.
    like : Layout, optional
        Layout of the data that a model was fitted on: its columns, found by name.
    only, without : str, optional
        Patterns such as "2026-11-*" on the names of files: those that match, those that do not.
    n_features : int, optional
        svmlight: how many columns there are, if not so many as the largest index.
    hash_bits : int, optional
        Put all features, numbers and words, into 2^hash_bits columns by a hash of their names (and
        words): for more columns or words than can be listed. For models trained by SGD.
    batch_rows : int
    drop_missing_target : bool
        Leave out rows without a true label, which are refused otherwise.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.csv").write_text("x,y\\n1,cat\\n2,dog\\n")
    >>> _ = (folder / "b.csv").write_text("x,y\\n3,cat\\n")
    >>> [(batch.X.ravel().tolist(), batch.y.tolist()) for batch in Folder(folder, target=["y"])]
    [([1.0, 2.0], ['cat', 'dog']), ([3.0], ['cat'])]
    """

    def __init__(
        self,
        path: str | Path,
        *,
        target: Sequence[str] = (),
        ignore: Sequence[str] = (),
        like: Layout | None = None,
        with_target: bool = True,
        only: str | None = None,
        without: str | None = None,
        n_features: int | None = None,
        hash_bits: int | None = None,
        batch_rows: int = BATCH_ROWS,
        drop_missing_target: bool = False,
    ) -> None:
        self.path = Path(path)
        self.files = _files(self.path, only, without)
        self.format = _format(self.path, self.files)
        self.batch_rows = batch_rows
        self.columns = Columns.of(
            self.files[0], self.format, tuple(target), tuple(ignore), like, with_target,
            n_features, hash_bits, drop_missing_target,
        )  # fmt: skip
        self.label_kind: str | None = None if like is None else like.label_kind

    @property
    def n_bytes(self) -> int:
        """Size of all files together."""
        return sum(file.stat().st_size for file in self.files)

    @property
    def layout(self) -> Layout:
        """How the files were read, for a model file."""
        columns = self.columns
        target = columns.target
        return Layout(
            "svmlight" if self.format == "svmlight" else self.format,
            columns.n_features,
            columns.features,
            target,
            target if len(target) > 1 else None,
            zero_based=columns.zero_based,
            label_kind=self.label_kind,
            kinds=columns.kinds,
            hash_bits=columns.hash_bits,
        )

    def __iter__(self) -> Iterator[Batch]:
        for _, batch in self.placed():
            yield batch

    def shuffled(self, rng: np.random.Generator) -> Iterator[Batch]:
        """The files in random order, the batches of each in turn."""
        for number in rng.permutation(len(self.files)):
            yield from self.batches(int(number))

    def placed(self, after: Place | None = None) -> Iterator[tuple[Place, Batch]]:
        """Batches with their places, from the one behind `after`."""
        start = 0 if after is None else after.file
        for number in range(start, len(self.files)):
            for position, batch in enumerate(self.batches(number)):
                if after is None or (number, position) > (after.file, after.batch):
                    yield Place(number, position), batch

    def batches(self, number: int) -> Iterator[Batch]:
        """Batches of one file."""
        file = self.files[number]
        seed = self._file_keys[number]
        row = 0
        for X, y in batches_of(file, self.format, self.columns, self.batch_rows):
            places = np.arange(row, row + X.shape[0], dtype=np.uint64)
            row += X.shape[0]
            yield Batch(X, self._labels(file, y), None, mixed(places ^ seed))

    def _labels(self, file: Path, y: NDArray[Any] | None) -> Any:
        """Labels of the kind that all files have; CSV files do not say, so all of them decide."""
        if y is None or self.label_kind is None or y.dtype.kind != "U":
            return y
        if self.label_kind == "str":
            return y
        try:
            return y.astype(np.float64 if self.label_kind == "float" else np.int64)
        except ValueError:
            raise DataFileError(
                f"{file}: the true labels are numbers in the other files, but here one is not"
            ) from None

    def labels(self) -> Iterator[NDArray[Any]]:
        """The true labels alone, batch by batch; columns of a Parquet file are read alone."""
        for file in self.files:
            for _, y in batches_of(
                file, self.format, self.columns, self.batch_rows, features=False
            ):
                yield self._labels(file, y)

    @cached_property
    def _file_keys(self) -> list[np.uint64]:
        names = [file.relative_to(self.path).as_posix() for file in self.files]
        return [text_key(name) << np.uint64(32) for name in names]

    def identity(self) -> dict[str, str]:
        """What each file was: size, time and a digest of both ends, by name."""
        return {file.relative_to(self.path).as_posix(): _identity(file) for file in self.files}


def _identity(file: Path) -> str:
    status = file.stat()
    with file.open("rb") as stream:
        digest = hashlib.blake2b(stream.read(EDGE), digest_size=12)
        stream.seek(max(0, status.st_size - EDGE))
        digest.update(stream.read(EDGE))
    return f"{status.st_size} {status.st_mtime_ns} {digest.hexdigest()}"


def _files(path: Path, only: str | None, without: str | None) -> list[Path]:
    if not path.is_dir():
        raise DataFileError(f"{path} is not a folder of data files")

    def hidden(file: Path) -> bool:
        return any(part.startswith((".", "_")) for part in file.relative_to(path).parts)

    found = [f for f in path.rglob("*") if f.is_file() and not hidden(f)]
    if only is not None:
        found = [f for f in found if f.match(only)]
    if without is not None:
        found = [f for f in found if not f.match(without)]
    if not found:
        words = f" whose names match {only!r}" if only else ""
        raise DataFileError(f"{path} contains no files{words}")
    return sorted(found, key=lambda file: file.relative_to(path).as_posix())


def _format(path: Path, files: list[Path]) -> str:
    kinds = {SUFFIXES.get(file.suffix.lower(), file.suffix or file.name) for file in files}
    known = sorted(kinds & set(FORMATS))
    if len(kinds) != 1 or not known:
        shown = ", ".join(sorted(kinds))
        raise DataFileError(
            f"{path} must contain files of one format ({', '.join(FORMATS)}), got {shown}"
        )
    return known[0]
