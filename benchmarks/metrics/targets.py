"""What the benchmark must show, stated and judged from the measured rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from benchmarks.metrics.multilabel import LOGISTIC_AT_HALF, RIDGE_THRESHOLD
from benchmarks.metrics.ranking import LAMBDARANK_DEFAULTS
from benchmarks.metrics.rows import METRICS, Row

__all__ = ["Verdict", "judge"]

F1_LEVELS = {"yeast": 0.66, "scene": 0.76, "bibtex": 0.48}
F1_SLACK, F1_GAIN = 0.002, {"bibtex": 0.02}
HAMMING_SLACK = 0.002
NDCG_LEVEL, MOST_TIMES_LAMBDARANK = 0.847, 10
ORDINAL_LEVELS = {"ordinal_era": 1.217, "ordinal_swd": 0.443}


@dataclass(frozen=True)
class Verdict:
    """A target, what was measured, and whether it was met."""

    target: str
    measured: str
    met: bool


def judge(rows: Iterable[Row]) -> list[Verdict]:
    """All targets whose data sets were measured."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.data, row.metric), []).append(row)
    found = []
    for (data, metric), group in groups.items():
        found += _JUDGES[metric](data, group)
    return found


def best(rows: Sequence[Row], kinds: tuple[str, ...], metric: str) -> Row:
    """The peer of these kinds with the best mean on the test rows: chosen in its favor."""
    sign = 1.0 if METRICS[metric].greater_is_better else -1.0
    return max((row for row in rows if row.kind in kinds), key=lambda row: sign * row.mean)


def _ours(rows: Sequence[Row]) -> Row:
    return next(row for row in rows if row.kind == "ours")


def _named(rows: Sequence[Row], model: str) -> Row:
    return next(row for row in rows if row.model == model)


def _f1(data: str, rows: list[Row]) -> list[Verdict]:
    ours, ridge = _ours(rows), _named(rows, RIDGE_THRESHOLD)
    least = F1_GAIN.get(data, -F1_SLACK)
    verdicts = [
        Verdict(
            f"{data}: F1 at least {F1_LEVELS[data]}",
            f"{ours.mean:.4f}",
            ours.mean >= F1_LEVELS[data],
        ),
        Verdict(
            f"{data}: F1 above that of ridge on our features with a tuned threshold by at least "
            f"{least:+.3f}",
            f"{ridge.gain:+.4f} [{ridge.low:+.4f}, {ridge.high:+.4f}]",
            ridge.gain >= least,
        ),
    ]
    if data == "bibtex":
        peer = _named(rows, LOGISTIC_AT_HALF)
        verdicts.append(
            Verdict(
                "bibtex: fit time at most that of one-vs-rest logistic regression with C = 1",
                f"{ours.clock:.2f} s against {peer.clock:.2f} s by the clock; processor time "
                f"{ours.seconds:.2f} s against {peer.seconds:.2f} s",
                ours.clock <= peer.clock,
            )
        )
    return verdicts


def _hamming(data: str, rows: list[Row]) -> list[Verdict]:
    ours, peer = _ours(rows), best(rows, ("usual", "features"), "hamming")
    return [
        Verdict(
            f"{data}: Hamming loss above the best peer's by at most {HAMMING_SLACK}",
            f"{ours.mean:.5f} against {peer.mean:.5f} ({peer.model})",
            ours.mean - peer.mean <= HAMMING_SLACK,
        )
    ]


def _within_interval(data: str, rows: list[Row], kinds: tuple[str, ...], whom: str) -> Verdict:
    metric = rows[0].metric
    ours, peer = _ours(rows), best(rows, kinds, metric)
    return Verdict(
        f"{data}: {METRICS[metric].title} at least as good as {whom}, within the interval",
        f"{ours.mean:.4f} against {peer.mean:.4f} ({peer.model}), gain {peer.gain:+.4f} "
        f"[{peer.low:+.4f}, {peer.high:+.4f}]",
        peer.high >= 0,
    )


def _ranks(data: str, rows: list[Row]) -> list[Verdict]:
    return [_within_interval(data, rows, ("linear", "kernel"), "the best linear or kernel peer")]


def _ndcg(data: str, rows: list[Row]) -> list[Verdict]:
    ours = _ours(rows)
    level = Verdict(
        f"{data}: NDCG no worse than {NDCG_LEVEL}, that of the first version",
        f"{ours.mean:.4f}",
        round(ours.mean, 3) >= NDCG_LEVEL,
    )
    return [*_ranks(data, rows), level]


def _ndcg10(data: str, rows: list[Row]) -> list[Verdict]:
    ours, peer = _ours(rows), best(rows, ("boosting",), "ndcg10")
    plain = _named(rows, LAMBDARANK_DEFAULTS)
    return [
        Verdict(
            f"{data}: NDCG@10 at least that of lambdarank, the better of tuned and by defaults",
            f"{ours.mean:.4f} against {peer.mean:.4f} ({peer.model}), gain {peer.gain:+.4f} "
            f"[{peer.low:+.4f}, {peer.high:+.4f}]",
            ours.mean >= peer.mean,
        ),
        Verdict(
            f"{data}: fitted in at most {MOST_TIMES_LAMBDARANK} times the time of lambdarank by "
            f"defaults",
            f"{ours.seconds:.2f} s against {plain.seconds:.2f} s: "
            f"{ours.seconds / plain.seconds:.1f} times",
            ours.seconds <= MOST_TIMES_LAMBDARANK * plain.seconds,
        ),
    ]


def _mae(data: str, rows: list[Row]) -> list[Verdict]:
    known = ORDINAL_LEVELS[data]
    whom = f"the best of logistic regression and mord ({known} known)"
    return [_within_interval(data, rows, ("usual",), whom)]


_JUDGES: dict[str, Callable[[str, list[Row]], list[Verdict]]] = {
    "f1": _f1,
    "hamming": _hamming,
    "ndcg": _ndcg,
    "ndcg10": _ndcg10,
    "tau": _ranks,
    "mae": _mae,
}
