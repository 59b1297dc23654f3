"""NumPy archives: dense or CSR inputs, plain or packed truths, train and test parts in one file."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from consistruct.learning.files.data.base import (
    DataSet,
    Layout,
    Request,
    bad,
    check_finite,
    kind_of,
)

__all__ = ["read_npz"]


def read_npz(path: Path, request: Request) -> DataSet:
    """Read members ``X`` and ``y``, or ``X_train`` and ``y_train`` with ``part="train"``.

    X is dense, or CSR in the members ``X_data``, ``X_indices``, ``X_indptr``, ``X_shape``. The
    truth is the member named by the target, else ``y`` or ``Y``; ``Y_packed`` with ``Y_ncol`` holds
    bits (`numpy.packbits` along rows). ``labels`` or ``classes`` hold names, ``groups`` one group
    per row or ``group`` the sizes of consecutive groups. Nothing is unpickled.
    """
    try:
        # opened here: NumPy leaves the file open if it is no archive
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            members = {name: archive[name] for name in archive.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, KeyError) as error:
        raise bad(path, f"not an npz archive of plain arrays ({error})") from None
    except Exception as error:  # zlib.error and whatever a damaged member raises
        raise bad(path, f"a member of the archive is damaged ({error})") from None
    return _Archive(path, members, request).read()


class _Archive:
    def __init__(self, path: Path, members: dict[str, NDArray[Any]], request: Request) -> None:
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

    def read(self) -> DataSet:
        request = self.request
        X = self._inputs()
        y, target = self._truths(X.shape[0])
        groups = self._groups(X.shape[0])
        names = next(
            (self.members[key] for key in ("labels", "classes") if key in self.members), None
        )
        label_names = None if names is None else tuple(str(name) for name in names.tolist())
        like = request.like
        if like is not None and X.shape[1] != like.n_features:
            fault = f"{X.shape[1]} features where the model was fitted on {like.n_features}"
            raise bad(self.path, fault)
        layout = like or Layout(
            "npz",
            X.shape[1],
            target=(target,) if target else (),
            label_names=label_names,
            groups="groups" if groups is not None else None,
            multilabel=y is not None and y.ndim == 2,
            truth_kind=kind_of(y),
        )
        return DataSet(X, y, None, label_names, groups, layout)

    def _inputs(self) -> Any:
        if self._has("X"):
            X = self._get("X")
            if X.ndim != 2 or X.dtype.kind not in "biuf":
                raise bad(
                    self.path,
                    f"{self._name('X')} must be a matrix of numbers, got {X.dtype} of shape "
                    f"{X.shape}",
                )
            # float32 stays: half the memory, and the estimators take it
            X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
            check_finite(self.path, X)
            return X
        stems = ("X_data", "X_indices", "X_indptr", "X_shape")
        missing = [self._name(stem) for stem in stems if not self._has(stem)]
        if missing:
            wanted = "X" if len(missing) == len(stems) else missing[0]
            raise bad(
                self.path, f"there is no member {wanted!r}; members are {', '.join(self.members)}"
            )
        data, indices, indptr, shape = (self._get(stem) for stem in stems)
        try:
            n_rows, n_columns = (int(side) for side in shape)
            parts = (data.astype(np.float64), indices.astype(np.int32), indptr.astype(np.int32))
            sparse: Any = sp.csr_array(parts, shape=(n_rows, n_columns))
            sparse.check_format()
        except (ValueError, TypeError) as error:
            raise bad(self.path, f"the CSR parts do not fit together ({error})") from None
        check_finite(self.path, sparse.data)
        sparse.sort_indices()
        return sparse

    def _truths(self, n: int) -> tuple[NDArray[Any] | None, str]:
        request = self.request
        wanted = request.target or (request.like.target if request.like else ())
        if not request.with_target:
            return None, wanted[0] if wanted else ""
        if len(wanted) > 1:
            raise bad(self.path, f"an npz archive has one target member, got {', '.join(wanted)}")
        for stem in wanted or ("y", "Y"):
            if self._has(stem):
                return self._checked(self._name(stem), self._get(stem), n), stem
            if self._has(f"{stem}_packed"):
                packed = self._get(f"{stem}_packed")
                if not self._has(f"{stem}_ncol"):
                    fault = (
                        f"{self._name(stem + '_packed')} needs {self._name(stem + '_ncol')}, its "
                        f"number of columns; name another member with --target"
                    )
                    raise bad(self.path, fault)
                n_columns = int(self._get(f"{stem}_ncol"))
                bits = np.unpackbits(packed, axis=1)[:, :n_columns].astype(np.int64)
                return self._checked(self._name(f"{stem}_packed"), bits, n), stem
        name = self._name(wanted[0]) if wanted else f"{self._name('y')} or {self._name('Y')}"
        raise bad(
            self.path,
            f"there is no member {name}; name the truth with --target, members are "
            f"{', '.join(self.members)}",
        )

    def _checked(self, name: str, y: NDArray[Any], n: int) -> NDArray[Any]:
        if y.ndim not in (1, 2) or len(y) != n:
            raise bad(self.path, f"{name} must have {n} rows like X, got shape {y.shape}")
        if y.dtype.kind in "biu":
            return y.astype(np.int64)
        if y.dtype.kind == "f":
            check_finite(self.path, y.reshape(n, -1))
            return y.astype(np.float64)
        if y.dtype.kind == "U":
            return y
        raise bad(self.path, f"{name} must hold numbers or strings, got dtype {y.dtype}")

    def _groups(self, n: int) -> NDArray[Any] | None:
        if self._has("groups"):
            return self._checked(self._name("groups"), self._get("groups"), n)
        if not self._has("group"):
            return None
        sizes = self._get("group")
        if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or int(sizes.sum()) != n:
            raise bad(self.path, f"{self._name('group')} must hold group sizes that sum to {n}")
        return np.repeat(np.arange(len(sizes)), sizes)
