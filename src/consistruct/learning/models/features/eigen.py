"""Symmetric eigendecompositions, and small problems, with a sensible number of threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import scipy.linalg
from threadpoolctl import ThreadpoolController

from consistruct.protocols import FloatArray

__all__ = ["one_thread_if", "symmetric_eigen"]

SINGLE_THREAD_SIZES = range(128, 2049)


def symmetric_eigen(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues, ascending, and eigenvectors; `matrix` is overwritten.

    Half of the work is bound by memory and split into thousands of short parallel pieces. At
    moderate sizes threads gain little, and on a busy machine waiting for each other costs them a
    multiple of the work itself.
    """
    with one_thread_if(len(matrix) in SINGLE_THREAD_SIZES):
        values, vectors = scipy.linalg.eigh(matrix, driver="evd", overwrite_a=True)
    return values, vectors


@contextmanager
def one_thread_if(small: bool) -> Iterator[None]:
    """Products and decompositions of the body by one thread, where threads would only wait."""
    if not small:
        yield
        return
    with _libraries().limit(limits=1, user_api="blas"):
        yield


@cache
def _libraries() -> ThreadpoolController:
    """The BLAS libraries of this process; looking for them takes longer than a small problem."""
    return ThreadpoolController()
