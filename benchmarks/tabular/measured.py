"""Fits, kept on disk: probabilities of peers serve all costs, and ours can be run again alone."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

import consistruct
from benchmarks import data as sources
from benchmarks.measure import machine

__all__ = ["Measured", "measure_all", "package_digest", "versions"]

CACHE = Path(__file__).parents[1] / "cache" / "tabular"
LIBRARIES = ("numpy", "scikit-learn", "lightgbm", "catboost")


@dataclass(frozen=True, eq=False)
class Measured:
    """What one fit gave on the test rows: probabilities (n, k) or decisions (n,), its time, and the
    machine that took it.
    """

    values: np.ndarray
    processor: float
    wall: float
    machine: str


@dataclass(frozen=True, eq=False)
class Job:
    """One fit: `key` names everything that its answer depends on.

    `warm`: a small fit of the same kind, done before, so that what it imports and compiles is at
    hand when time is taken.
    """

    label: str
    key: str
    work: Callable[[], np.ndarray]
    warm: Callable[[], np.ndarray] | None = None


def versions(libraries: Sequence[str] = LIBRARIES) -> str:
    """Of the libraries, as pages and keys of the cache show them."""
    return ", ".join(f"{name} {_version(name)}" for name in libraries)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # a page can be made again from the cache without the peers
        return "not installed"


@cache
def package_digest() -> str:
    """Of the source of this package, so that ours is measured anew after every change."""
    digest = hashlib.sha256()
    for path in sorted(Path(consistruct.__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def data_key(name: str) -> str:
    return sources.SOURCES[name].sha256[:16]


def measure(job: Job) -> Measured:
    """The stored answer, or that of the work, done by one thread."""
    path = CACHE / f"{hashlib.sha256(job.key.encode()).hexdigest()[:32]}.npz"
    if path.exists():
        with np.load(path) as found:
            times = float(found["processor"]), float(found["wall"])
            return Measured(found["values"], *times, str(found["machine"]))
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few members of a class, iterations: the figures stand
        if job.warm is not None:
            job.warm()
        wall, processor = time.perf_counter(), time.process_time()
        values = job.work()
        times = time.process_time() - processor, time.perf_counter() - wall
        done = Measured(values, *times, machine())
    CACHE.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part.npz")
    np.savez_compressed(part, **vars(done))
    part.replace(path)
    print(f"{job.label}: {done.processor:.1f} s", flush=True)
    return done


def measure_all(jobs: Sequence[Job], n_jobs: int) -> list[Measured]:
    """Answers in the order of the jobs, by up to `n_jobs` processes of one thread each."""
    if n_jobs == 1:
        return [measure(job) for job in jobs]
    return list(Parallel(n_jobs=n_jobs, batch_size=1)(delayed(measure)(job) for job in jobs))


def probabilities(model: Any, X: np.ndarray, k: int) -> np.ndarray:
    """Of all k classes, (n, k); a class that the model never saw has none."""
    found = np.zeros((len(X), k))
    found[:, model.classes_] = model.predict_proba(X)
    return found
