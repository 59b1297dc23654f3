"""Is this installation sound? Versions, threads, the cache of compiled loops, extras, a self-test.

What ``consistruct doctor`` prints, and what to send with a report of a bug.
"""

from __future__ import annotations

import itertools
import os
import platform
import re
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Extra", "Findings", "Trial", "examine"]

# what those who work on the package install; users have no use for them
DEVELOPERS = {"test", "bench", "docs"}
REQUIREMENT = re.compile(
    r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*([^;]*)(?:;.*extra == ['\"](\w+)['\"])?"
)


@dataclass(frozen=True)
class Extra:
    """One optional part of the package: what it needs, and what of that is not there."""

    name: str
    versions: dict[str, str]
    missing: tuple[str, ...]

    @property
    def remedy(self) -> str:
        """The command that installs it."""
        return f"pip install 'consistruct[{self.name}]'"


@dataclass(frozen=True)
class Trial:
    """One part of the self-test."""

    name: str
    seconds: float
    error: str | None


@dataclass(frozen=True)
class Findings:
    """What was found; `problems` in words, empty on a sound installation."""

    consistruct: str
    python: str
    versions: dict[str, str]
    extras: tuple[Extra, ...]
    threads: dict[str, str]
    cache: dict[str, str]
    trials: tuple[Trial, ...]
    problems: tuple[str, ...] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "consistruct": self.consistruct,
            "python": self.python,
            "versions": self.versions,
            "threads": self.threads,
            "compile_cache": self.cache,
            "extras": {
                extra.name: {"versions": extra.versions, "missing": list(extra.missing)}
                for extra in self.extras
            },
            "self_test": {
                trial.name: {"seconds": round(trial.seconds, 3), "error": trial.error}
                for trial in self.trials
            },
            "problems": list(self.problems),
        }


def examine() -> Findings:
    """Look at everything; takes a few seconds, more where loops have to be compiled first."""
    from consistruct import __version__

    problems: list[str] = []
    versions, extras = _packages(problems)
    trials = tuple(_tried(name, trial) for name, trial in TRIALS.items())
    problems += [f"self-test, {one.name}: {one.error}" for one in trials if one.error is not None]
    return Findings(
        __version__,
        f"{platform.python_version()} ({platform.python_implementation()}, "
        f"{platform.system()} {platform.machine()})",
        versions,
        extras,
        _threads(),
        _cache(),
        trials,
        tuple(problems),
    )


# --- packages ---


def _packages(problems: list[str]) -> tuple[dict[str, str], tuple[Extra, ...]]:
    """Versions of what the package needs, and the extras, as its metadata name them."""
    try:
        texts = requires("consistruct") or []
    except PackageNotFoundError:
        problems.append(
            "consistruct is not installed, only its source is on the path: pip install it"
        )
        return {}, ()
    core: dict[str, str] = {}
    wanted: dict[str, dict[str, str]] = {}
    for text in texts:
        found = REQUIREMENT.match(text)
        if found is None:
            continue
        name, bounds, extra = found[1], found[2].strip(), found[3]
        if extra is None:
            installed = _version(name)
            core[name] = installed or "missing"
            if installed is None or not _meets(installed, bounds):
                problems.append(f"{name} is {installed or 'missing'}, but {name}{bounds} is needed")
        elif extra not in DEVELOPERS:
            wanted.setdefault(extra, {})[name] = bounds
    return core, tuple(_extra(name, parts) for name, parts in sorted(wanted.items()))


def _extra(name: str, parts: dict[str, str]) -> Extra:
    found = {part: _version(part) for part in parts}
    good = {part: text for part, text in found.items() if text and _meets(text, parts[part])}
    return Extra(name, good, tuple(part for part in parts if part not in good))


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _meets(installed: str, bounds: str) -> bool:
    """Whether a version is at least the floor of its requirement.

    >>> _meets("1.10.2", ">=1.9"), _meets("2.13.0+cpu", ">=2.7"), _meets("1.8.9", ">=1.9")
    (True, True, False)
    """
    floor = re.search(r">=\s*([0-9.]+)", bounds)
    return floor is None or _numbers(installed) >= _numbers(floor[1])


def _numbers(text: str) -> tuple[int, ...]:
    """(1, 10, 2) of "1.10.2rc1+cpu", trailing zeros dropped."""
    found = re.match(r"[0-9]+(?:\.[0-9]+)*", text)
    parts = [int(part) for part in found[0].split(".")] if found else []
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


# --- threads and compiled loops ---


def _threads() -> dict[str, str]:
    """Processors, what the linear algebra library uses, and the settings that rule it."""
    import threadpoolctl

    from consistruct._threads import cores

    found = {"processors": f"{cores()} of {os.cpu_count()}"}
    np.ones((2, 2)) @ np.ones((2, 2))  # loads the library
    for entry in threadpoolctl.threadpool_info():
        name = f"{entry['user_api']} ({entry['internal_api']})"
        found[name] = str(entry["num_threads"])
    settings = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    found.update({name: os.environ[name] for name in settings if name in os.environ})
    return found


def _cache() -> dict[str, str]:
    """Where compiled loops are kept between starts."""
    from consistruct._compile import cache_folder
    from consistruct.structures._chain_kernels import best_sequence

    folder = cache_folder(best_sequence)
    if folder is None:
        return {"folder": "none that can be written to: loops are compiled at every start"}
    return {"folder": str(folder), "writable": "yes" if os.access(folder, os.W_OK) else "no"}


# --- self-test: small problems whose answers are known without the package ---


def _tried(name: str, trial: Callable[[], None]) -> Trial:
    start = time.perf_counter()
    error = None
    try:
        trial()
    except Exception as failure:  # whatever it is, it is what the user must see
        error = f"{type(failure).__name__}: {failure}"
    return Trial(name, time.perf_counter() - start, error)


def _expect(true_label: bool, what: str) -> None:
    if not true_label:
        raise AssertionError(what)


def _losses() -> None:
    """Offset + ⟨embed, target⟩ is the loss, and the decoder finds the best label."""
    from consistruct._validation import to_dense
    from consistruct.losses import Hamming

    loss = Hamming(4)
    labels = np.array(list(itertools.product((0, 1), repeat=4)))
    space = loss.score_space
    target = to_dense(loss.target(labels))
    table = loss.offset(labels) + space.embed(labels) @ target.T
    direct = (labels[:, None] != labels[None]).mean(axis=2)
    _expect(bool(np.allclose(table, direct, atol=1e-12)), "Hamming loss differs from its formula")
    theta = np.random.default_rng(0).normal(size=(20, space.width))
    best = labels[(theta @ space.embed(labels).T).argmax(axis=1)]
    _expect(bool((space.decode(theta) == best).all()), "the decoder misses the best")


def _certificate() -> None:
    """A calibration function with a proof in fractions, solved by the interior point solver."""
    from consistruct.calibration import calibration_function
    from consistruct.losses import CostMatrix

    curve = calibration_function(CostMatrix([[0, 1, 2], [3, 0, 1], [9, 4, 0]], rows="pred"))
    curve.certificate(1.0).check()


def _compiled() -> None:
    """The best sequence of a chain by a compiled loop, against all sequences."""
    from consistruct.structures._chain_kernels import best_sequence

    rng = np.random.default_rng(0)
    unary, edges = rng.normal(size=(4, 3)), rng.normal(size=(1, 3, 3))
    states = np.empty(4, dtype=np.int64)
    found = best_sequence(unary, edges, True, np.empty((4, 3)), states)
    paths = np.array(list(itertools.product(range(3), repeat=4)))
    totals = unary[np.arange(4), paths].sum(axis=1)
    totals += edges[0][paths[:, :-1], paths[:, 1:]].sum(axis=1)
    _expect(bool(np.isclose(found, totals.max())), "the compiled loop misses the best sequence")
    _expect(bool((states == paths[totals.argmax()]).all()), "the compiled loop misses its states")


def _learning() -> None:
    """Two groups far apart are distinguished, and a model file gives the same answers."""
    from consistruct.learning import TaskLossClassifier, load, models, save

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.repeat(["a", "b"], 20)
    X[20:] += 10.0
    model = TaskLossClassifier("zero_one", models.Ridge()).fit(X, y)
    _expect(bool((model.predict(X) == y).all()), "groups that are far apart are confused")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        save(model, path)
        same = (load(path).predict(X) == y).all()
    _expect(bool(same), "the model file predicts differently")


TRIALS: dict[str, Callable[[], None]] = {
    "losses and decoders": _losses,
    "compiled loops": _compiled,
    "exact certificate": _certificate,
    "learning and model files": _learning,
}
