"""NumPy archives: dense or CSR inputs, plain or packed labels, train and test parts in one file."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from consistruct._budgets import FILES
from consistruct._frames import inexact_integer, is_missing_label
from consistruct._validation import check_csr, is_sparse
from consistruct.exceptions import DataFileError
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
    safe_integers,
)

__all__ = ["read_npz"]


def read_npz(path: Path, request: Request) -> DataSet:
    """Read members ``X`` and ``y``, or ``X_train`` and ``y_train`` with ``part="train"``.

    X is dense, or CSR in the members ``X_data``, ``X_indices``, ``X_indptr``, ``X_shape``. The
    true label is the member named by the target, else ``y`` or ``Y``; ``Y_packed`` with ``Y_ncol``
    holds bits (`numpy.packbits` along rows). ``labels`` or ``classes`` hold names, ``groups`` one
    group per row or ``group`` the sizes of consecutive groups. Nothing is unpickled, other members
    are not read, and those that are must be as large as they say.
    """
    with _open(path) as archive:
        return _Archive(path, _Members(path, archive), request).read()


@contextmanager
def _open(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        archive = zipfile.ZipFile(path)
    except (ValueError, OSError, EOFError, NotImplementedError, zipfile.BadZipFile) as error:
        raise bad(path, f"not an npz archive of plain arrays ({error})") from None
    with archive:
        yield archive


class _Members:
    """The arrays of an archive by name, each inflated when it is requested."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self._path, self._archive = path, archive
        self._infos = {
            info.filename.removesuffix(".npy"): info
            for info in archive.infolist()
            if info.filename.endswith(".npy")
        }
        if not self._infos:
            raise bad(path, "not an npz archive of plain arrays (it has no .npy member)")
        self._budget = FILES.inflated(path.stat().st_size)

    def __contains__(self, name: str) -> bool:
        return name in self._infos

    def __iter__(self) -> Iterator[str]:
        return iter(self._infos)

    def __getitem__(self, name: str) -> NDArray[Any]:
        try:
            return self._read(name)
        except (DataFileError, MemoryError):
            raise
        except Exception as error:  # zlib.error and whatever a damaged member raises
            detail = " ".join(str(error).split())[:200]
            raise bad(self._path, f"the member {name!r} is damaged ({detail})") from None

    def _read(self, name: str) -> NDArray[Any]:
        with self._archive.open(self._infos[name]) as stream:
            shape, fortran, dtype = _header(stream)
            if dtype.hasobject:
                fault = f"the member {name!r} contains Python objects, which are not unpickled"
                raise bad(self._path, f"{fault}; save numbers or strings")
            size = math.prod(shape) * dtype.itemsize  # exact: Python integers
            if size > self._budget:
                fault = f"the member {name!r} claims to take {size} bytes, but at most "
                raise bad(self._path, f"{fault}{self._budget} are read from a file of this size")
            self._budget -= size
            # one byte more than announced would be read, none less
            content = bytearray(stream.read(size + 1))
        if len(content) != size:
            more = "more" if len(content) > size else "less"
            raise bad(self._path, f"the member {name!r} contains {more} than its shape {shape}")
        if size == 0:
            return np.zeros(shape, dtype, order="F" if fortran else "C")
        if dtype.kind == "U":
            _check_characters(np.frombuffer(content, f"{dtype.byteorder}u4"))
        return np.frombuffer(content, dtype).reshape(shape, order="F" if fortran else "C")


def _check_characters(codes: NDArray[np.uint32]) -> None:
    """Refuse numbers that are no characters: Python cannot read them, no file can hold them."""
    wrong = (codes > 0x10FFFF) | ((codes >= 0xD800) & (codes <= 0xDFFF))
    if wrong.any():
        first = int(codes[np.argmax(wrong)])
        raise ValueError(f"a string contains the number {first:#x}, which is no character")


def _header(stream: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    if version != (1, 0):  # later ones are for records, with headers of any length
        raise ValueError(f"version {version} of the format is for records, not for plain arrays")
    return np.lib.format.read_array_header_1_0(stream)


class _Archive:
    def __init__(self, path: Path, members: _Members, request: Request) -> None:
        self.path, self.members, self.request = path, members, request
        parts = sorted(
            {
                part
                for part in ("train", "test")
                if f"X_{part}" in members or f"X_{part}_data" in members
            }
        )
        if request.part is None and parts:
            raise bad(path, f"the archive has parts {' and '.join(parts)}; choose one with --part")
        if request.part is not None and not self._has("X") and not self._has("X_data"):
            has = f"it has {' and '.join(parts)}" if parts else "it has no parts; leave --part out"
            raise bad(path, f"there is no part {request.part!r}; {has}")

    def _name(self, stem: str) -> str:
        """``X_data`` of the part train is ``X_train_data``; ``y`` is ``y_train``."""
        head, _, tail = stem.partition("_")
        part = self.request.part
        return "_".join(word for word in (head, part, tail) if word)

    def _has(self, stem: str) -> bool:
        return self._name(stem) in self.members

    def _get(self, stem: str) -> NDArray[Any]:
        return self.members[self._name(stem)]

    def _integers(self, stem: str) -> NDArray[np.int64]:
        """A member of whole numbers, exactly."""
        return safe_integers(self.path, self._name(stem), self._get(stem))

    def read(self) -> DataSet:
        request = self.request
        X = self._inputs()
        y, target = self._labels(X.shape[0])
        groups = self._groups(X.shape[0])
        if y is not None:
            X, y, groups = self._complete(X, y, groups, target)
        names = next(
            (self.members[key] for key in ("labels", "classes") if key in self.members), None
        )
        label_names = None if names is None else tuple(str(name) for name in names.ravel().tolist())
        like = request.like
        if like is not None and X.shape[1] != like.n_features:
            fault = f"{X.shape[1]} features, but the model was fitted on {like.n_features}"
            raise bad(self.path, fault)
        if like is None and is_sparse(X):
            check_fit_width(self.path, X.shape[1], y)
        layout = like or Layout(
            "npz",
            X.shape[1],
            target=(target,) if target else (),
            label_names=label_names,
            groups="groups" if groups is not None else None,
            multilabel=y is not None and y.ndim == 2,
            label_kind=kind_of(y),
        )
        return DataSet(X, y, None, label_names, groups, layout)

    def _complete(self, X: Any, y: Any, groups: Any, target: str) -> tuple[Any, Any, Any]:
        """The rows whose labels are all there; others are refused unless they are to be dropped."""
        if y.dtype.kind == "U":
            words = [w for w in np.unique(y).tolist() if is_missing_label(w, self.request.missing)]
            gone = np.isin(y, words)
        else:
            gone = y != y  # NaN
        rows = gone.reshape(len(y), -1).any(axis=1)
        name = self._name(target)
        check_gaps(
            self.path,
            [(row + 1, name) for row in np.flatnonzero(rows).tolist()],
            "row",
            self.request,
        )
        if rows.any():
            X, y, groups = X[~rows], y[~rows], None if groups is None else groups[~rows]
        if y.dtype.kind == "f":
            check_finite(self.path, y.reshape(len(y), -1))
        if not len(y):
            raise bad(self.path, "there are no rows")
        return X, y, groups

    def _inputs(self) -> Any:
        if self._has("X"):
            X = self._get("X")
            if X.ndim != 2 or X.dtype.kind not in "biuf":
                raise bad(
                    self.path,
                    f"{self._name('X')} must be a matrix of numbers, got {X.dtype} of shape "
                    f"{X.shape}",
                )
            self._refuse_inexact("X", X)
            # float32 stays: half the memory, and the estimators take it
            X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
            check_finite(self.path, X)
            return X
        stems = ("X_data", "X_indices", "X_indptr", "X_shape")
        missing = [self._name(stem) for stem in stems if not self._has(stem)]
        if missing:
            wanted = "X" if len(missing) == len(stems) else missing[0]
            listed = ", ".join(list(self.members)[:20])
            raise bad(self.path, f"there is no member {wanted!r}; members are {listed}")
        data = self._get("X_data")
        if data.dtype.kind not in "biuf":
            fault = f"{self._name('X_data')} must contain real numbers, got dtype {data.dtype}"
            raise bad(self.path, fault)
        self._refuse_inexact("X_data", data)
        indices, indptr, shape = (self._integers(stem) for stem in stems[1:])
        try:
            n_rows, n_columns = (int(side) for side in shape)
            check_features(self.path, n_columns)
            check_csr(data, indices, indptr, (n_rows, n_columns))
            # SciPy takes a narrower type where the numbers fit
            parts = (data.astype(np.float64), indices, indptr)
            sparse: Any = sp.csr_array(parts, shape=(n_rows, n_columns))
        except DataFileError:
            raise
        except (ValueError, TypeError) as error:
            raise bad(self.path, f"the CSR parts do not fit together ({error})") from None
        check_finite(self.path, sparse.data)
        if max(n_columns, len(data)) < 2**31:
            sparse.indices, sparse.indptr = indices.astype(np.int32), indptr.astype(np.int32)
        sparse.sort_indices()
        return sparse

    def _refuse_inexact(self, stem: str, values: NDArray[Any]) -> None:
        """Refuse inputs that would become other numbers as floats; an array has no categories."""
        number = inexact_integer(values)
        if number is not None:
            fault = f"{self._name(stem)} contains {number}, which no float holds exactly"
            remedy = "divide it, or write identifiers to a CSV or Parquet table"
            raise bad(self.path, f"{fault}; {remedy}, which keeps them as categories")

    def _labels(self, n: int) -> tuple[NDArray[Any] | None, str]:
        request = self.request
        wanted = request.target or (request.like.target if request.like else ())
        if not request.with_target:
            return None, wanted[0] if wanted else ""
        if len(wanted) > 1:
            raise bad(self.path, f"an npz archive has one target member, got {', '.join(wanted)}")
        for stem in wanted or ("y", "Y"):
            if self._has(stem):
                return self._checked(self._name(stem), self._get(stem), n, complete=False), stem
            if self._has(f"{stem}_packed"):
                return self._checked(self._name(f"{stem}_packed"), self._bits(stem), n), stem
        name = self._name(wanted[0]) if wanted else f"{self._name('y')} or {self._name('Y')}"
        raise bad(
            self.path,
            f"there is no member {name}; choose the true label with --target, members are "
            f"{', '.join(list(self.members)[:20])}",
        )

    def _bits(self, stem: str) -> NDArray[np.int64]:
        """0/1 columns that `numpy.packbits` packed along rows."""
        name, count = self._name(f"{stem}_packed"), self._name(f"{stem}_ncol")
        if not self._has(f"{stem}_ncol"):
            fault = f"{name} needs {count}, its number of columns; name another member with"
            raise bad(self.path, f"{fault} --target")
        packed, columns = self._get(f"{stem}_packed"), self._integers(f"{stem}_ncol")
        if packed.ndim != 2 or packed.dtype != np.uint8:
            fault = f"{name} must be a matrix of uint8, got {packed.dtype} of shape {packed.shape}"
            raise bad(self.path, fault)
        most = 8 * packed.shape[1]
        if columns.size != 1 or not most - 8 < int(columns.ravel()[0]) <= most:
            shown = columns.ravel()[:3].tolist()
            raise bad(self.path, f"{count} must be in {max(most - 7, 0)}..{most}, got {shown}")
        n_columns = int(columns.ravel()[0])
        return np.unpackbits(packed, axis=1, count=n_columns).astype(np.int64)

    def _checked(
        self, name: str, y: NDArray[Any], n: int, *, complete: bool = True
    ) -> NDArray[Any]:
        if y.ndim not in (1, 2) or len(y) != n:
            raise bad(self.path, f"{name} must have {n} rows like X, got shape {y.shape}")
        if y.dtype.kind in "biu":
            return safe_integers(self.path, name, y)
        if y.dtype.kind == "f":
            if complete:
                check_finite(self.path, y.reshape(n, -1))
            return y.astype(np.float64)
        if y.dtype.kind == "U":
            return y
        raise bad(self.path, f"{name} must contain numbers or strings, got dtype {y.dtype}")

    def _groups(self, n: int) -> NDArray[Any] | None:
        if self._has("groups"):
            return self._checked(self._name("groups"), self._get("groups"), n)
        if not self._has("group"):
            return None
        sizes = self._integers("group")
        # each size alone first: a sum of huge ones wraps around and may come out right
        bounded = sizes.ndim == 1 and len(sizes) <= n and bool(((sizes >= 0) & (sizes <= n)).all())
        if not bounded or int(sizes.sum()) != n:
            raise bad(self.path, f"{self._name('group')} must contain group sizes that sum to {n}")
        return np.repeat(np.arange(len(sizes)), sizes)
