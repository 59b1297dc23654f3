"""Decode 1,000 sequences of length 200 over 10 states: batched Viterbi against NumPy, one run.

python -m benchmarks.viterbi            # print the table
python -m benchmarks.viterbi --write    # and write benchmarks/results/viterbi.md
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numba
import numpy as np

from consistruct.protocols import FloatArray, IntArray
from consistruct.structures import Chain
from consistruct.structures.chains import ChainScores

RESULT = Path(__file__).parent / "results" / "viterbi.md"
REQUIRED_RATIO = 20
ROUNDS = 5


def numpy_viterbi(unary: FloatArray, edges: FloatArray) -> IntArray:  # (T, s), (T−1, s, s)
    """The peer: one sequence at a time, states in vectorized NumPy, the usual forward recursion."""
    T, s = unary.shape
    best = unary[0]
    origin = np.empty((T, s), dtype=np.int64)
    for t in range(1, T):
        scores = best[:, None] + edges[t - 1]
        origin[t] = scores.argmax(axis=0)
        best = scores[origin[t], np.arange(s)] + unary[t]
    states = np.empty(T, dtype=np.int64)
    states[-1] = best.argmax()
    for t in range(T - 1, 0, -1):
        states[t - 1] = origin[t, states[t]]
    return states


def timed(action: Callable[[], IntArray]) -> tuple[float, IntArray]:
    """Wall time and result of one call."""
    start = time.perf_counter()
    result = action()
    return time.perf_counter() - start, result


def compare(n: int = 1000, T: int = 200, s: int = 10) -> list[tuple[str, float, float]]:
    """Rows (scores, our seconds, NumPy's seconds), with equal decisions checked."""
    rng = np.random.default_rng(0)
    space = Chain(T, s)
    theta = rng.standard_normal((n, space.width))
    unary = theta[:, : T * s].reshape(n, T, s)
    edges = theta[:, T * s :].reshape(n, T - 1, s, s)
    shared = rng.standard_normal((s, s))
    packed = ChainScores(unary.reshape(n * T, s), shared, np.arange(n + 1) * T)
    family = Chain(None, s)
    space.decode(theta[:1])  # compile before the clock starts
    family.decode_packed(packed)
    repeated = np.broadcast_to(shared, (T - 1, s, s))
    cases: list[tuple[str, Callable[[], IntArray], Callable[[], IntArray]]] = [
        (
            "one matrix per edge",
            lambda: space.decode(theta),
            lambda: np.array([numpy_viterbi(u, e) for u, e in zip(unary, edges, strict=True)]),
        ),
        (
            "shared transitions, packed",
            lambda: family.decode_packed(packed).values.reshape(n, T),
            lambda: np.array([numpy_viterbi(u, repeated) for u in unary]),
        ),
    ]
    rows = []
    for name, ours, peer in cases:
        rounds = []
        for _ in range(ROUNDS):  # alternately, so that a busy machine slows both
            (our_seconds, our_states), (peer_seconds, peer_states) = timed(ours), timed(peer)
            if not np.array_equal(our_states, peer_states):
                raise RuntimeError(f"{name}: the two decoders disagree")
            rounds.append((our_seconds, peer_seconds))
        rows.append((name, *np.min(rounds, axis=0).tolist()))
    return rows


def render(rows: list[tuple[str, float, float]]) -> str:
    """The result as a Markdown page."""
    lines = [
        "# Viterbi: Chain(200, 10), 1,000 sequences",
        "",
        "`python -m benchmarks.viterbi --write`; best of "
        f"{ROUNDS} alternating rounds, single thread, equal decisions checked.",
        "",
        "| scores | consistruct, s | NumPy per sequence, s | ratio |",
        "|---|---|---|---|",
        *(f"| {name} | {ours:.4f} | {peer:.3f} | {peer / ours:.1f} |" for name, ours, peer in rows),
        "",
        f"Python {platform.python_version()}, NumPy {np.__version__}, Numba {numba.__version__}, "
        f"{platform.machine()}. Required ratio: {REQUIRED_RATIO}.",
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--write", action="store_true", help=f"write results/{RESULT.name}")
    options = parser.parse_args()
    rows = compare()
    page = render(rows)
    print(page)
    if options.write:
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text(page, encoding="utf-8")
    return 0 if all(peer / ours >= REQUIRED_RATIO for _, ours, peer in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
