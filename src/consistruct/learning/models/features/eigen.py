"""Symmetric eigendecompositions with a sensible number of threads."""

from __future__ import annotations

from functools import cache

import scipy.linalg
from threadpoolctl import ThreadpoolController

from consistruct.protocols import FloatArray

__all__ = ["symmetric_eigen"]

SINGLE_THREAD_SIZES = range(128, 2049)


def symmetric_eigen(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues, ascending, and eigenvectors; `matrix` is overwritten.

    Half of the work is bound by memory and split into thousands of short parallel pieces. At
    moderate sizes threads gain little, and on a busy machine waiting for each other costs them a
    multiple of the work itself.
    """
    if len(matrix) in SINGLE_THREAD_SIZES:
        with _libraries().limit(limits=1, user_api="blas"):
            values, vectors = scipy.linalg.eigh(matrix, driver="evd", overwrite_a=True)
    else:
        values, vectors = scipy.linalg.eigh(matrix, driver="evd", overwrite_a=True)
    return values, vectors


@cache
def _libraries() -> ThreadpoolController:
    """The BLAS libraries of this process; looking for them takes longer than a small problem."""
    return ThreadpoolController()
