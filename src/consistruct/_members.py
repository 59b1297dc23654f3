"""Value semantics for the frozen dataclasses of the package.

Losses, score spaces, label sets and decoders are *members*: immutable values that hash by
content, pickle by their constructor and print as the code that makes them. A member is written as

    @dataclass(frozen=True, eq=False, repr=False)
    class Hamming(Loss): ...

and inherits equality, hash, repr, copy and pickle from `Member`. How many labels a member has is
written by `describe_count`, whatever the number.
"""

from __future__ import annotations

import dataclasses
import hashlib
from math import log2
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["ArrayField", "Member", "describe_count", "frozen_array"]

# A field that is given as anything array-like and kept as a read-only array; the class docstring
# states shape and meaning. (Typed as Any: a dataclass field has one type for both.)
ArrayField = Any

REPR_ENTRIES = 64  # longer tuples and arrays print as shape and digest


def frozen_array(values: ArrayLike, dtype: Any = np.float64) -> NDArray[Any]:
    """Copy `values` into a read-only array, so that a member never changes under its owner."""
    array = np.array(values, dtype=dtype, order="C")
    array.setflags(write=False)
    return array


class Member:
    """Immutable value: equal content means equal object, equal hash and equal repr."""

    def _content(self) -> tuple[object, ...]:
        return tuple(
            _hashable(getattr(self, field.name))
            for field in dataclasses.fields(self)  # type: ignore[arg-type]
        )

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        assert isinstance(other, Member)
        return self is other or self._content() == other._content()

    def __hash__(self) -> int:
        cached = self.__dict__.get("_hash")
        if cached is None:
            cached = self.__dict__["_hash"] = hash((type(self).__qualname__, self._content()))
        return int(cached)

    def __repr__(self) -> str:
        parts = []
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            required = (
                field.default is dataclasses.MISSING
                and field.default_factory is dataclasses.MISSING
            )
            if required and not field.kw_only:
                parts.append(_repr(value))
            elif required or not _same(value, field.default):
                parts.append(f"{field.name}={_repr(value)}")
        return f"{type(self).__name__}({', '.join(parts)})"

    # A frozen value is its own copy; scikit-learn's `clone` deep-copies constructor arguments.
    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    # Pickle through the constructor: inputs are validated again and cached values are left out.
    def __reduce__(self) -> tuple[Any, ...]:
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        return _rebuild, (type(self), {field.name: getattr(self, field.name) for field in fields})

    def _set(self, **values: object) -> None:
        """Store normalized fields; to be called from ``__post_init__`` only."""
        for name, value in values.items():
            object.__setattr__(self, name, value)


def _rebuild(cls: type[Member], fields: dict[str, Any]) -> Member:
    return cls(**fields)


def _hashable(value: object) -> object:
    if isinstance(value, np.ndarray):
        content = value.tobytes() if value.dtype != object else tuple(value.ravel().tolist())
        return ("array", value.shape, value.dtype.str, content)
    if isinstance(value, tuple):
        return tuple(_hashable(entry) for entry in value)
    # 1 == 1.0 == True: keep the type, so that members that print differently differ.
    return value if isinstance(value, Member) else (type(value).__name__, value)


def _same(value: object, default: object) -> bool:
    if isinstance(value, np.ndarray) or isinstance(default, np.ndarray):
        return False
    return type(value) is type(default) and value == default


def _repr(value: object) -> str:
    if isinstance(value, np.ndarray):
        if value.size <= REPR_ENTRIES:
            return repr(value.tolist())
        digest = hashlib.sha256(value.tobytes()).hexdigest()[:8]
        return f"<array {value.shape} {value.dtype} sha256:{digest}>"
    if isinstance(value, tuple) and len(value) > REPR_ENTRIES:
        digest = hashlib.sha256(repr(value).encode()).hexdigest()[:8]
        return f"<tuple of {len(value)} sha256:{digest}>"
    return repr(value)


def describe_count(size: int | None) -> str:
    """Write a label count in full while it is readable, as a power of two above that.

    >>> describe_count(1024), describe_count(2**1000 + 1), describe_count(None)
    ('1024', 'about 2^1000.0', 'infinitely many')
    """
    if size is None:
        return "infinitely many"
    if size < 10**12:
        return str(size)
    # bit_length gives the integer part of log2, the leading 60 bits its fraction.
    shift = max(size.bit_length() - 60, 0)
    return f"about 2^{shift + log2(size >> shift):.1f}"
