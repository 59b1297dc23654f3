"""Threads and workers: whatever starts any does so here, by one rule.

* Never more than the cores that this process may use (`cores`).
* Never nested: a worker starts no workers, and in it linear algebra and OpenMP use one thread.
* One thread for small tables (`libraries_for`): more would mostly wait for each other, and waiting
  takes processor time: libraries spin.

Environment variables (OMP_NUM_THREADS and the like), ``threadpoolctl`` and joblib's
``parallel_config`` are obeyed; nothing here raises what they set.
"""

from __future__ import annotations

import functools
import itertools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:  # looked up on use: it takes time
    from threadpoolctl import ThreadpoolController

__all__ = [
    "Run",
    "alone",
    "at_most",
    "cores",
    "crew",
    "each",
    "libraries_for",
    "limit_loaded",
    "share_rows",
    "staffed",
    "within_cores",
    "workers",
]

Method = TypeVar("Method", bound=Callable[..., Any])
Run = Callable[..., Iterable[Any]]  # like `map`
# the least limit of the blocks around, and what it has lowered, for a thread of its own
_limit: ContextVar[tuple[int, list[tuple[Any, int]]]] = ContextVar(
    "limit of threads", default=(sys.maxsize, [])
)

# Rows and columns of tables that one thread works on. At 265 rows `report` took four times the
# processor time with two threads on a busy machine; its largest products take a millisecond.
SMALL = 1000


# --- how many --------------------------------------------------------------------------------


def cores() -> int:
    """Return how many cores this process may use: its affinity and the limits of its container.

    >>> 1 <= cores() <= os.cpu_count()
    True
    """
    import joblib

    return int(joblib.cpu_count())


def workers(n_jobs: int | None) -> int:
    """Return how many workers may run for `n_jobs`: 1 within a worker, never more than `cores`.

    None means 1 unless joblib's ``parallel_config`` states otherwise. Negative numbers count from
    the cores, or from OMP_NUM_THREADS where that is less, which joblib sets in its own processes.

    >>> workers(None), 1 <= workers(-1) <= cores()
    (1, True)
    """
    import joblib
    from joblib.parallel import get_active_backend

    backend, _ = get_active_backend()
    requested = int(joblib.effective_n_jobs(n_jobs))
    if not type(backend).__module__.startswith("joblib._parallel_backends"):
        return requested  # workers on other machines, such as Dask's
    if backend.nesting_level:
        return 1
    allowed = cores() if n_jobs is None or n_jobs > 0 else min(cores(), _openmp_setting())
    return max(1, min(requested, allowed))


def _openmp_setting() -> int:
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    return int(first) if first.isdigit() and int(first) > 0 else sys.maxsize


# --- workers ---------------------------------------------------------------------------------


def each(
    function: Callable[..., Any],
    arguments: Iterable[Sequence[Any]],
    n_jobs: int | None,
    *,
    threads: bool = False,
) -> list[Any]:
    """Call `function` with each of the `arguments`, so many at a time; results in their order.

    By processes, or with `threads` where they share what they read and are free of the interpreter
    lock.

    >>> each(pow, [(2, 3), (3, 2)], 1)
    [8, 9]
    """
    calls = list(arguments)
    n = min(workers(n_jobs), len(calls))
    if n <= 1:
        return [function(*call) for call in calls]
    from joblib import Parallel, delayed

    parallel = Parallel(n_jobs=n, prefer="threads" if threads else None)
    # linear algebra has one number of threads for the process, set by whoever starts the threads
    with at_most(1 if threads else None):
        return list(parallel(delayed(_by_worker)(function, call) for call in calls))


def _by_worker(function: Callable[..., Any], call: Sequence[Any]) -> Any:
    with alone():
        return function(*call)


@contextmanager
def alone() -> Iterator[None]:
    """Within it nothing starts workers or threads: neither joblib nor the libraries."""
    from joblib import parallel_config

    with parallel_config(backend="sequential"), at_most(1):
        yield


@contextmanager
def staffed(n_jobs: int | None) -> Iterator[None]:
    """Within it, estimators that ask joblib for workers and leave their number open get so many."""
    from joblib import parallel_config

    n = workers(n_jobs)
    with parallel_config(n_jobs=n), at_most(1 if n > 1 else None):
        yield


@contextmanager
def crew(n_threads: int) -> Iterator[Run]:
    """Provide a `map` by so many threads for compiled loops; by one thread it starts none.

    >>> with crew(1) as run:
    ...     list(run(abs, [-1, 2]))
    [1, 2]
    """
    if n_threads <= 1:
        yield map
        return
    with at_most(1), ThreadPoolExecutor(n_threads) as pool:
        yield pool.map


def share_rows(work: Callable[[slice], None], n: int, fewest: int) -> None:
    """Call `work` on slices that cover n rows, of at least `fewest` rows each.

    They run at the same time, so `work` must be free of the interpreter lock, as compiled loops
    are, and touch its own rows only.

    >>> covered = []
    >>> share_rows(covered.append, 10, 100)
    >>> covered
    [slice(0, 10, None)]
    """
    n_threads = 1
    if n >= 2 * fewest:
        n_threads = max(1, min(workers(-1), _blas_threads(), n // fewest))
    edges = [n * part // n_threads for part in range(n_threads + 1)]
    slices = [slice(start, stop) for start, stop in itertools.pairwise(edges)]
    with crew(n_threads) as run:
        list(run(work, slices))  # the list raises what a thread has raised


def _blas_threads() -> int:
    found = _libraries().lib_controllers
    return max((lib.num_threads for lib in found if lib.user_api == "blas"), default=1)


# --- libraries of linear algebra and OpenMP --------------------------------------------------


@contextmanager
def at_most(n_threads: int | None) -> Iterator[None]:
    """Within it, libraries of linear algebra and OpenMP use at most so many threads.

    >>> with at_most(None), at_most(1):
    ...     _blas_threads()
    1
    """
    if n_threads is None:
        yield
        return
    outer, _ = _limit.get()
    n_threads = min(n_threads, outer)
    lowered: list[tuple[Any, int]] = []
    _lower(n_threads, lowered)
    token = _limit.set((n_threads, lowered))
    try:
        yield
    finally:
        _limit.reset(token)
        for library, before in reversed(lowered):
            library.set_num_threads(before)


def limit_loaded() -> None:
    """Put libraries that were loaded within `at_most` under its limit, too.

    For whoever imports a package of many threads at the last moment, as PyTorch is: it begins with
    as many as there are cores, and the limit of a fit was set before.

    >>> with at_most(1):
    ...     limit_loaded()
    ...     _blas_threads()
    1
    """
    _lower(*_limit.get())


def _lower(n_threads: int, lowered: list[tuple[Any, int]]) -> None:
    """Lower what uses more threads, and note in `lowered` how many it used."""
    # Each library by itself: the BLAS of SCS, say, stays at the one thread it was started with, and
    # a common limit, which must not raise any, would then leave the others as they are.
    for library in _libraries().lib_controllers:
        before = library.num_threads
        if before > n_threads:
            lowered.append((library, before))
            library.set_num_threads(n_threads)


def _libraries() -> ThreadpoolController:
    return _libraries_of(len(sys.modules))


@functools.lru_cache(maxsize=1)
def _libraries_of(n_modules: int) -> ThreadpoolController:
    """Look the libraries up, which takes as long as a small fit, again when a module was imported.

    Any module can bring one: a list of packages missed the BLAS of `sparsediffpy`, the OpenMP of
    Numba's `omppool`, and that of SciPy behind `scipy.special`.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


# --- tables ----------------------------------------------------------------------------------


def libraries_for(*tables: Any) -> Any:
    """Within it, libraries use one thread if all tables are small, else no more than `cores`."""
    return at_most(1 if max(map(_extent, tables)) <= SMALL else cores())


def _extent(X: Any) -> int:
    """Rows or columns of a table, whichever are more; of a list of tables, of all together."""
    shape = getattr(X, "shape", None)
    if shape is not None:  # Dask does not know all of its own
        return max((n if isinstance(n, int) else sys.maxsize for n in shape), default=0)
    if not isinstance(X, list | tuple):
        return 0
    parts = (len(part) if isinstance(part, list | tuple) else _extent(part) for part in X)
    return max(len(X), sum(parts))


def within_cores(method: Method) -> Method:
    """Run a method of X (and of X_train), and what it calls, with `libraries_for` them."""

    @functools.wraps(method)
    def ruled(*args: Any, **options: Any) -> Any:
        X = args[1] if len(args) > 1 else options.get("X")
        with libraries_for(X, options.get("X_train")):
            return method(*args, **options)

    return cast("Method", ruled)
