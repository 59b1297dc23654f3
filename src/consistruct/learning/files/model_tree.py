"""Python values as a typed tree of JSON plus named arrays, and back.

A tree node is a JSON scalar (None, bool, a finite float, an int of at most 63 bits, a string) or an
object ``{"t": tag, …}``. Arrays are kept apart under a name, so that they can be stored as they
are. Rebuilding calls nothing but the constructors of the types in the table it is given.

Memory order is part of the value: BLAS sums in another order over a transposed array, and saved
models must predict bit for bit what they predicted before.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from consistruct._budgets import FILES
from consistruct._validation import check_csr
from consistruct.exceptions import ModelFileError
from consistruct.learning.files.model_types import ModelType, TypeTable
from consistruct.learning.files.scikit_checks import check_generator
from consistruct.learning.files.scikit_parts import join_parts, split_parts, stored_by_skops

__all__ = ["Decoder", "Encoder"]

# What safetensors stores; other dtypes are refused rather than converted.
_STORED_DTYPES = frozenset(
    np.dtype(name)
    for name in ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?", "c8")
)
_SPARSE: dict[str, Any] = {
    "csr_array": sp.csr_array,
    "csr_matrix": sp.csr_matrix,
    "csc_array": sp.csc_array,
    "csc_matrix": sp.csc_matrix,
}
_BIT_GENERATORS: dict[str, Any] = {
    name: getattr(np.random, name) for name in ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
}
_INT64 = 2**63
# how many labels, items, parts or states a loss or structure has
_SIZES = frozenset(
    {
        "T",
        "columns",
        "k",
        "n",
        "n_classes",
        "n_costs",
        "n_grades",
        "n_items",
        "n_parts",
        "n_states",
        "rows",
        "sizes",
    }
)


def _is_plain(entry: Any) -> bool:
    """Whether an entry of an array of objects is a string, a number or a tuple of them."""
    if type(entry) is tuple:
        return all(map(_is_plain, entry))
    return entry is None or isinstance(entry, bool | int | float | str)


def _own_choices(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments without the file that a fit writes: that is chosen by whoever fits, not by a file.

    A model file from someone else would otherwise say where the next fit writes, and one of ours
    would tell others the names of our folders.
    """
    return {name: None if name == "checkpoint" else value for name, value in arguments.items()}


class Encoder:
    """Turns values into nodes and collects their arrays in `arrays`."""

    def __init__(self, types: TypeTable) -> None:
        self.types = types
        self.arrays: dict[str, NDArray[Any]] = {}
        self._kept: dict[int, tuple[NDArray[Any], dict[str, Any]]] = {}

    def encode(self, value: Any, where: str) -> Any:
        """The node of `value`; `where` is its place, for array names and messages."""
        if value is None or type(value) in (str, bool):
            return value
        if type(value) is int:
            return value if -_INT64 <= value < _INT64 else {"t": "int", "v": hex(value)}
        if type(value) is float:
            return value if math.isfinite(value) else {"t": "float", "v": repr(value)}
        if type(value) in (list, tuple):
            entries = [self.encode(entry, f"{where}.{i}") for i, entry in enumerate(value)]
            return {"t": type(value).__name__, "v": entries}
        if type(value) in (set, frozenset):
            entries = [self.encode(entry, f"{where}.entry") for entry in value]
            # the order of a set changes from process to process, that of a file must not
            return {"t": type(value).__name__, "v": sorted(entries, key=json.dumps)}
        if type(value) is dict:
            return {"t": "dict", "v": self._pairs(value, where)}
        if isinstance(value, np.generic):
            return {"t": "scalar", "v": self._array(np.asarray(value), where)}
        if type(value) in (np.ndarray, np.memmap):
            return self._array(value, where)
        if sp.issparse(value):
            return self._sparse(value, where)
        if isinstance(value, np.random.Generator):
            state = dict(value.bit_generator.state)
            return {"t": "generator", "v": self.encode(state, where)}
        if isinstance(value, np.random.RandomState):
            return {
                "t": "random_state",
                "v": self.encode(dict(value.get_state(legacy=False)), where),
            }
        if stored_by_skops(value):
            return {"t": "skops", "v": self._array(split_parts(value, where), where)}
        return self._typed(value, where)

    def _pairs(self, value: Mapping[Any, Any], where: str) -> list[list[Any]]:
        return [
            [self.encode(key, f"{where}.key"), self.encode(entry, f"{where}.{key}")]
            for key, entry in value.items()
        ]

    def _array(self, value: NDArray[Any], where: str) -> dict[str, Any]:
        known = self._kept.get(id(value))
        if known is not None:
            return known[1]
        node = self._new_array(value, where)
        self._kept[id(value)] = (value, node)  # holding the array keeps its id its own
        return node

    def _new_array(self, value: NDArray[Any], where: str) -> dict[str, Any]:
        if value.dtype.kind == "U":
            width = value.dtype.itemsize // 4
            return {"t": "strings", "width": width, **self._listed(value, where)}
        if value.dtype == object:
            return {"t": "objects", **self._listed(value, where)}
        native = value.dtype.newbyteorder("=")
        if native not in _STORED_DTYPES:
            raise ModelFileError(
                f"cannot save {where}: model files have no arrays of dtype {value.dtype}; "
                f"convert it to numbers or strings first"
            )
        fortran = value.ndim > 1 and value.flags.f_contiguous and not value.flags.c_contiguous
        stored = np.ascontiguousarray(value.T if fortran else value, dtype=native)
        name = where
        while name in self.arrays:  # keys with dots can make two places look alike
            name += "'"
        self.arrays[name] = stored.reshape(value.shape[::-1] if fortran else value.shape)
        return {"t": "array", "v": name, "order": "F" if fortran else "C"}

    def _listed(self, value: NDArray[Any], where: str) -> dict[str, Any]:
        entries = value.ravel().tolist()
        if not all(map(_is_plain, entries)):
            raise ModelFileError(
                f"cannot save {where}: it contains Python objects other than strings and numbers"
            )
        return {"shape": list(value.shape), "v": [self.encode(entry, where) for entry in entries]}

    def _sparse(self, value: Any, where: str) -> dict[str, Any]:
        kind = type(value).__name__
        if type(value) is not _SPARSE.get(kind):
            raise ModelFileError(
                f"cannot save {where}: sparse format {kind} is not supported; convert it to CSR"
            )
        parts = {
            part: self._array(getattr(value, part), f"{where}.{part}")
            for part in ("data", "indices", "indptr")
        }
        return {"t": "sparse", "kind": kind, "shape": [int(side) for side in value.shape], **parts}

    def _typed(self, value: Any, where: str) -> dict[str, Any]:
        if isinstance(value, type):
            return {"t": "class", "name": self.types.of_class(value, where).name}
        known = self.types.of_class(type(value), where, value)
        arguments, state = known.take_apart(value)
        arguments = _own_choices(arguments)
        node: dict[str, Any] = {"t": "object", "class": known.name}
        node["arguments"] = self._named(arguments, where)
        if state:
            node["state"] = self._named(state, where)
        return node

    def _named(self, values: Mapping[str, Any], where: str) -> dict[str, Any]:
        prefix = f"{where}." if where else ""
        return {name: self.encode(value, f"{prefix}{name}") for name, value in values.items()}


class Decoder:
    """The inverse of `Encoder`; raises ModelFileError on anything that it does not know."""

    def __init__(
        self,
        types: TypeTable,
        arrays: Mapping[str, NDArray[Any]],
        file_bytes: int = 0,
    ) -> None:
        self.types = types
        self.arrays = arrays
        self.file_bytes = file_bytes
        self._bytes_left = FILES.model(file_bytes)
        self._built: dict[tuple[str, str], NDArray[Any]] = {}
        self._learned = False  # within what a fit has learned

    def decode(self, node: Any) -> Any:
        if node is None or isinstance(node, bool | int | float | str):
            return node
        if not isinstance(node, dict):
            raise ModelFileError(f"a value is written as a JSON {type(node).__name__}")
        tag = node.get("t")
        method = self._METHODS.get(tag) if isinstance(tag, str) else None
        if method is None:
            raise ModelFileError(f"it contains a value of unknown kind {tag!r}")
        return method(self, node)

    def _spend(self, n_bytes: int) -> None:
        """Take memory from the budget of the file, before it is allocated.

        A file can refer to one array, or to one wide string, thousands of times, and what is built
        from it may copy it each time: so each reference counts, not each array.
        """
        self._bytes_left -= n_bytes
        if self._bytes_left < 0:
            raise ModelFileError(
                f"its content would take more than {FILES.model(self.file_bytes)} bytes of memory, "
                f"the budget of a model file of {self.file_bytes} bytes"
            )

    def _int(self, node: dict[str, Any]) -> int:
        return int(node["v"], 16)

    def _float(self, node: dict[str, Any]) -> float:
        return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[node["v"]]

    def _list(self, node: dict[str, Any]) -> list[Any]:
        return [self.decode(entry) for entry in node["v"]]

    def _tuple(self, node: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(self._list(node))

    def _set(self, node: dict[str, Any]) -> set[Any]:
        return set(self._list(node))

    def _frozenset(self, node: dict[str, Any]) -> frozenset[Any]:
        return frozenset(self._list(node))

    def _dict(self, node: dict[str, Any]) -> dict[Any, Any]:
        return {self.decode(key): self.decode(value) for key, value in node["v"]}

    def _scalar(self, node: dict[str, Any]) -> Any:
        return self.decode(node["v"])[()]

    def _array(self, node: dict[str, Any]) -> NDArray[Any]:
        key = (node["v"], node["order"])
        if key not in self._built:
            stored = self.arrays[node["v"]]
            self._built[key] = stored.T if node["order"] == "F" else stored
        self._spend(self._built[key].nbytes)
        return self._built[key]

    def _strings(self, node: dict[str, Any]) -> NDArray[Any]:
        entries, width = self._list(node), int(node["width"])
        if width < 0:
            raise ModelFileError(f"it contains strings of {width} characters")
        self._spend(4 * width * max(len(entries), 1))
        values = np.array(entries, dtype=f"<U{width}")
        return values.reshape(node["shape"])

    def _objects(self, node: dict[str, Any]) -> NDArray[Any]:
        entries = self._list(node)
        values = np.empty(len(entries), dtype=object)
        for position, entry in enumerate(entries):  # one by one: tuples would be taken for rows
            values[position] = entry
        return values.reshape(node["shape"])

    def _sparse(self, node: dict[str, Any]) -> Any:
        data, indices, indptr = (self.decode(node[part]) for part in ("data", "indices", "indptr"))
        kind, shape = node["kind"], tuple(node["shape"])
        # compressed columns are the compressed rows of the transpose
        check_csr(data, indices, indptr, shape if kind.startswith("csr") else shape[::-1])
        return _SPARSE[kind]((data, indices, indptr), shape=shape)

    def _generator(self, node: dict[str, Any]) -> np.random.Generator:
        state = self.decode(node["v"])
        bit_generator = _BIT_GENERATORS[state["bit_generator"]]()
        bit_generator.state = state
        generator = np.random.Generator(bit_generator)
        check_generator(generator)
        return generator

    def _random_state(self, node: dict[str, Any]) -> np.random.RandomState:
        generator = np.random.RandomState()
        generator.set_state(self.decode(node["v"]))
        check_generator(generator)
        return generator

    def _skops(self, node: dict[str, Any]) -> Any:
        return join_parts(self.decode(node["v"]), self._spend)

    def _class(self, node: dict[str, Any]) -> type:
        return self.types.named(node["name"]).cls

    def _object(self, node: dict[str, Any]) -> Any:
        known: ModelType = self.types.named(node["class"])
        learned = self._learned
        arguments = self._values(node, "arguments")
        if learned and known.name.startswith(("losses.", "structures.")):
            self._check_sizes(known.name, arguments)
        self._learned = True
        state = self._values(node, "state")
        self._learned = learned
        return known.put_together(_own_choices(arguments), state)

    def _values(self, node: dict[str, Any], part: str) -> dict[str, Any]:
        return {name: self.decode(value) for name, value in node.get(part, {}).items()}

    def _check_sizes(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Refuse a number of labels that no weights in the file can be about.

        A few digits would make each row's estimates, or a sample of true labels, take gigabytes.
        What was not learned may name any size: a fit bounds it by the data.
        """
        most = FILES.model_sizes(self.file_bytes)
        sides = {field: arguments[field] for field in sorted(_SIZES & set(arguments))}
        if all(type(sides.get(field)) is int for field in ("rows", "columns")):
            # a grid lists its nodes: two sides of 60,000 are 4 billion
            sides["rows x columns"] = sides["rows"] * sides["columns"]
        for field, value in sides.items():
            sizes = [size for size in np.ravel([value]).tolist() if type(size) is int]
            if sum(map(abs, sizes)) > most:
                raise ModelFileError(
                    f"it has {name} with {field}={value!r:.100}; a model file of "
                    f"{self.file_bytes} bytes may name sizes of up to {most}"
                )

    _METHODS = {  # noqa: RUF012
        "int": _int,
        "float": _float,
        "list": _list,
        "tuple": _tuple,
        "set": _set,
        "frozenset": _frozenset,
        "dict": _dict,
        "scalar": _scalar,
        "array": _array,
        "strings": _strings,
        "objects": _objects,
        "sparse": _sparse,
        "generator": _generator,
        "random_state": _random_state,
        "skops": _skops,
        "class": _class,
        "object": _object,
    }
