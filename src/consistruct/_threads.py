"""Threads: how many the linear algebra may use, and rows shared out among as many."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any

__all__ = ["at_most", "share_rows"]


def at_most(n_threads: int | None) -> AbstractContextManager[Any]:
    """Within it, libraries of linear algebra and OpenMP use so many threads; None changes nothing.

    Nothing is looked up for None: finding the libraries takes as long as a small fit.

    >>> with at_most(None), at_most(1):
    ...     pass
    """
    if n_threads is None:
        return nullcontext()
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[Any] = threadpool_limits(n_threads)
    return limits


def share_rows(work: Callable[[slice], None], n: int, fewest: int) -> None:
    """Call `work` on slices that cover n rows, of at least `fewest` rows each.

    They run at the same time, so `work` must be free of the interpreter lock, as compiled loops
    are, and touch its own rows only. OMP_NUM_THREADS and `threadpoolctl` rule how many there are.

    >>> covered = []
    >>> share_rows(covered.append, 10, 100)
    >>> covered
    [slice(0, 10, None)]
    """
    n_threads = max(1, min(_blas_threads(), n // fewest)) if n >= 2 * fewest else 1
    edges = [n * part // n_threads for part in range(n_threads + 1)]
    slices = [slice(start, stop) for start, stop in itertools.pairwise(edges)]
    if n_threads == 1:
        work(slices[0])
        return
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(work, slices))  # the list raises what a thread has raised


def _blas_threads() -> int:
    import threadpoolctl

    found = threadpoolctl.threadpool_info()
    return max((entry["num_threads"] for entry in found if entry["user_api"] == "blas"), default=1)
