"""How the parts of a sequence model are taken apart for a model file and put together again."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consistruct.exceptions import ModelFileError
from consistruct.learning.encoding.tags import TagSet
from consistruct.learning.encoding.tokens import FeatureIndex
from consistruct.learning.files.model_types import ModelType, Parts

__all__ = ["join_names", "sequence_types", "split_names"]


def sequence_types() -> list[ModelType]:
    """The parts of `Chain` that are more than their attributes."""
    return [_feature_index_type(), _tag_set_type()]


def join_names(names: Iterable[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """All names as one array of bytes, with the number of bytes of each.

    Millions of feature names would burst the text header of a model file; an array has no limit.

    >>> content, lengths = join_names(["w=a", "ü"])
    >>> bytes(content), lengths.tolist()
    (b'w=a\\xc3\\xbc', [3, 2])
    >>> split_names(content, lengths)
    ['w=a', 'ü']
    """
    # surrogatepass: Python strings may hold lone surrogates, plain UTF-8 may not
    encoded = [name.encode("utf-8", "surrogatepass") for name in names]
    lengths = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), lengths


def split_names(content: NDArray[np.uint8], lengths: NDArray[np.int64]) -> list[str]:
    """The inverse of `join_names`."""
    stops = np.cumsum(lengths).tolist()
    if (lengths < 0).any() or (stops[-1] if stops else 0) != len(content):
        raise ModelFileError("its feature names do not have the lengths that it states")
    text = content.tobytes()
    return [
        text[start:stop].decode("utf-8", "surrogatepass") for start, stop in pairwise([0, *stops])
    ]


def _feature_index_type() -> ModelType:
    def take_apart(value: FeatureIndex) -> Parts:
        content, lengths = join_names(value.columns)  # in order of their columns 0, 1, …
        return {}, {"names": content, "lengths": lengths}

    def put_together(arguments: dict[str, Any], state: dict[str, Any]) -> FeatureIndex:
        if arguments or set(state) != {"names", "lengths"}:
            raise ModelFileError("its feature index is not understood")
        names = split_names(state["names"], state["lengths"])
        value = FeatureIndex()
        value.columns = {name: column for column, name in enumerate(names)}
        if len(value.columns) != len(names):
            raise ModelFileError("it names a feature twice")
        return value

    return ModelType("learning.FeatureIndex", FeatureIndex, take_apart, put_together)


def _tag_set_type() -> ModelType:
    def take_apart(value: TagSet) -> Parts:
        return {"tags": value.tags}, {}

    def put_together(arguments: dict[str, Any], state: dict[str, Any]) -> TagSet:
        value = TagSet(**arguments)
        # states are positions: another order or a repeated tag would give other predictions
        if state or value.tags != arguments["tags"]:
            raise ModelFileError("its tags are not distinct and in order")
        return value

    return ModelType("learning.TagSet", TagSet, take_apart, put_together)
