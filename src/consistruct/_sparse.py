"""Arrays that may be dense or CSR: the few operations that differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # its submodules are imported on use

__all__ = ["is_sparse", "squared_entries", "to_dense"]


def is_sparse(rows: Any) -> bool:
    """Whether `rows` is a SciPy sparse container."""
    return bool(scipy.sparse.issparse(rows))


def to_dense(rows: Any) -> Any:
    """The same entries as a NumPy array; no copy if it is one."""
    return rows.toarray() if is_sparse(rows) else np.asarray(rows)


def squared_entries(rows: Any) -> Any:
    """Entrywise squares, sparse where `rows` is."""
    return rows.multiply(rows) if is_sparse(rows) else np.square(rows)
