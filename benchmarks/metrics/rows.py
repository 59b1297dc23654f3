"""One measured model: a row of the CSV file, from which page, plot and targets are made."""

from __future__ import annotations

import csv
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import bootstrap_difference

__all__ = ["METRICS", "Clock", "Metric", "Outcome", "Row", "compare", "quiet", "read", "write"]


@dataclass(frozen=True)
class Metric:
    """How a metric is written and whether more is better."""

    title: str
    greater_is_better: bool
    digits: int = 4


METRICS = {
    "f1": Metric("F1 of each example", True),
    "hamming": Metric("Hamming loss", False, 5),
    "mae": Metric("mean absolute error", False),
    "ndcg": Metric("NDCG", True),
    "ndcg10": Metric("NDCG@10", True),
    "tau": Metric("Kendall's tau", True),
}


@dataclass(frozen=True)
class Outcome:
    """What one model did on the test rows.

    Attributes
    ----------
    model : str
    kind : str
        "ours"; "usual" for what people use now; "features" for peers on our features; "linear" and
        "kernel" for ranking peers by their scores; "boosting".
    values : (n,) array
        The metric of each test example or query.
    seconds : float
        Processor seconds of fitting, choosing settings included.
    settings : str
        What was chosen, for the reader.
    clock : float
        Seconds by the clock, where they were taken; else NaN.
    """

    model: str
    kind: str
    values: np.ndarray
    seconds: float
    settings: str = ""
    clock: float = np.nan


@dataclass(frozen=True)
class Row:
    """A line of the table; `gain` is by how much ours is better, with its 95 % interval."""

    data: str
    metric: str
    model: str
    kind: str
    mean: float
    gain: float
    low: float
    high: float
    seconds: float
    clock: float
    n: int
    settings: str


def compare(data: str, metric: str, outcomes: Sequence[Outcome]) -> list[Row]:
    """Rows of one metric; the first outcome is ours and the others are compared with it."""
    ours = outcomes[0]
    sign = 1.0 if METRICS[metric].greater_is_better else -1.0
    rows = []
    for outcome in outcomes:
        gain, low, high = bootstrap_difference(sign * ours.values, sign * outcome.values)
        rows.append(
            Row(
                data,
                metric,
                outcome.model,
                outcome.kind,
                float(outcome.values.mean()),
                gain,
                low,
                high,
                outcome.seconds,
                outcome.clock,
                len(outcome.values),
                outcome.settings,
            )
        )
    return rows


# --- files ---


def write(rows: Iterable[Row], machines: dict[str, str]) -> str:
    """The CSV file: one comment line per data set states where it was measured."""
    lines = [f"# {data}: {machine}" for data, machine in machines.items()]
    names = [field.name for field in fields(Row)]
    buffer = _Lines(lines)
    table = csv.DictWriter(buffer, names, lineterminator="\n")
    table.writeheader()
    table.writerows({k: _short(v) for k, v in asdict(row).items()} for row in rows)
    return "\n".join(buffer.lines) + "\n"


def read(path: Path) -> tuple[list[Row], dict[str, str]]:
    """Rows and the machine of each data set; nothing where there is no file yet."""
    if not path.exists():
        return [], {}
    text = path.read_text(encoding="utf-8").splitlines()
    machines = dict(line[2:].split(": ", 1) for line in text if line.startswith("# "))
    numbers = {field.name for field in fields(Row) if field.type in ("float", "int")}
    rows = []
    for record in csv.DictReader(line for line in text if not line.startswith("# ")):
        values: dict[str, Any] = {
            key: float(value) if key in numbers else value for key, value in record.items()
        }
        rows.append(Row(**{**values, "n": int(values["n"])}))
    return rows, machines


class _Lines:
    """A file for `csv` that keeps lines."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines

    def write(self, line: str) -> int:
        self.lines.append(line.removesuffix("\n"))
        return len(line)


def _short(value: object) -> object:
    return f"{value:.6g}" if isinstance(value, float) else value


# --- measuring ---


class Clock:
    """Adds up the processor seconds of what runs inside `with clock:`."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __enter__(self) -> Clock:
        self._start = time.process_time()
        return self

    def __exit__(self, *error: object) -> None:
        self.seconds += time.process_time() - self._start


@contextmanager
def quiet() -> Iterator[None]:
    """Peers warn about rare classes and iterations; the figures stand."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds of one call, and what it returned."""
    with Clock() as clock, quiet():
        result = work()
    return clock.seconds, result
