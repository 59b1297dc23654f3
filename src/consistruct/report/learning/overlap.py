"""How many of the held-out examples were also trained on."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np

from consistruct._validation import is_sparse

__all__ = ["overlap"]


def overlap(train: Any, train_codes: Any, test: Any, test_codes: Any) -> int:
    """Held-out examples that are, with their true labels, among the training examples.

    Inputs are packed as an estimator reads them: (n, d) arrays, CSR or tables, packed sequences or
    queries; true labels are their codes, (n, …) or `Ragged`.

    >>> import numpy as np
    >>> X, y = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0, 1])
    >>> overlap(X, y, X, y), overlap(X, y, X, 1 - y)
    (2, 0)
    """
    seen = set(_digests(train, train_codes))
    return sum(digest in seen for digest in _digests(test, test_codes))


def _digests(inputs: Any, codes: Any) -> Iterator[bytes]:
    """A fingerprint of each example with its true label."""
    for features, code in zip(_examples(inputs), _rows(codes), strict=True):
        found = blake2b(features, digest_size=16)
        found.update(np.ascontiguousarray(code).tobytes())
        yield found.digest()


def _rows(codes: Any) -> Any:
    return list(codes) if hasattr(codes, "offsets") else np.asarray(codes)


def _examples(inputs: Any) -> Iterator[bytes]:
    if hasattr(inputs, "sequences"):  # tokens by names of features
        return (repr(sequence).encode() for sequence in inputs.sequences)
    rows: Any = next(
        (getattr(inputs, name) for name in ("packed_items", "features") if hasattr(inputs, name)),
        inputs,
    )
    every = list(_row_bytes(rows))
    if not hasattr(inputs, "offsets"):
        return iter(every)
    marks = inputs.offsets.tolist()
    return (b"".join(every[low:high]) for low, high in pairwise(marks))


def _row_bytes(rows: Any) -> Iterator[bytes]:
    if is_sparse(rows):
        for start, stop in pairwise(rows.indptr):
            places = rows.indices[start:stop].astype(np.int64)
            yield places.tobytes() + rows.data[start:stop].tobytes()
        return
    values = rows.to_numpy(dtype=object) if hasattr(rows, "to_numpy") else np.asarray(rows)
    if values.dtype.kind == "O":  # words, and NaN where a cell is missing
        for row in values:
            yield repr(row.tolist()).encode()
        return
    for row in np.ascontiguousarray(values):
        yield row.tobytes()
