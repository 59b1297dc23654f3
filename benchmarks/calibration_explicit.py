"""Certified calibration curves of explicit cost matrices: us, and loops over all pairs.

    python -m benchmarks.calibration_explicit [--quick] [--jobs 2]

Every curve has 101 values of ε from 0 to max_eps and is verified again from its certificate. The
peers solve the same pair problems (scores eliminated, "i is optimal" dropped: their easiest form),
each pair built once and re-solved for every ε. They are timed on a random sample in this run,
extrapolated to all feasible (pair, ε), and divided by the number of jobs as if they ran in parallel
without loss. Their sampled values are checked against our lower ends. Memory is the largest
resident size of this process so far.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import clarabel
import cvxpy
import numpy as np
from scipy import sparse

from consistruct.calibration.methods.explicit_full import ExplicitCurve, explicit_curve, verify
from consistruct.protocols import FloatArray

cp: Any = cvxpy  # its stubs leave out the atoms
RESULTS = Path(__file__).parent / "results"
NOTE = """101 values of ε from 0 to max_eps, full scores, warm compile cache. The peers are
extrapolated from a random sample of pairs and ε timed in the same run, and divided by the number
of threads as if they ran in parallel without loss.
"""
N_EPS = 101


def uniform(k: int, rng: np.random.Generator) -> FloatArray:
    return rng.random((k, k))


def log_normal(k: int, rng: np.random.Generator) -> FloatArray:
    return rng.lognormal(size=(k, k))


def integer(k: int, rng: np.random.Generator) -> FloatArray:
    return rng.integers(0, 10, (k, k)).astype(float)


COSTS = {"uniform": uniform, "log-normal": log_normal, "integer 0..9": integer}


class ClarabelPair:
    """Variables (q, τ, s): min ½‖s‖², s_j ≥ ℓ_j − τ, s_c ≥ τ − ℓ_c, ℓ_j − ℓ_i ≥ ε, q a distribution."""

    def __init__(self, L: FloatArray, i: int, j: int) -> None:
        k, m = L.shape
        sign = np.where(np.arange(k) == j, 1.0, -1.0)[:, None]
        distributions = np.hstack([np.ones(m), np.zeros(k + 1)])
        excess = np.hstack([L[i] - L[j], np.zeros(k + 1)])
        slacks = np.hstack([sign * L, -sign, -np.eye(k)])
        positive = np.hstack([-np.eye(m), np.zeros((m, k + 1))])
        self.A = sparse.csc_matrix(np.vstack([distributions, excess, slacks, positive]))
        self.P = sparse.diags(np.concatenate([np.zeros(m + 1), np.ones(k)])).tocsc()
        self.right = np.concatenate([[1.0, 0.0], np.zeros(k + m)])
        self.cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(1 + k + m)]
        self.settings = clarabel.DefaultSettings()
        self.settings.verbose = False

    def solve(self, eps: float) -> float:
        self.right[1] = -eps
        solver = clarabel.DefaultSolver(
            self.P, np.zeros(self.P.shape[0]), self.A, self.right, self.cones, self.settings
        )
        return float(solver.solve().obj_val)


class CvxpyPair:
    """The same problem with ε as a parameter, so that CVXPY compiles it once per pair."""

    def __init__(self, L: FloatArray, i: int, j: int) -> None:
        k, m = L.shape
        q, tau = cp.Variable(m, nonneg=True), cp.Variable()
        self.eps = cp.Parameter(nonneg=True)
        others = np.delete(np.arange(k), j)
        objective = cp.square(L[j] @ q - tau) + cp.sum_squares(cp.pos(tau - L[others] @ q))
        constraints = [cp.sum(q) == 1, (L[j] - L[i]) @ q >= self.eps]
        self.problem = cp.Problem(cp.Minimize(0.5 * objective), constraints)

    def solve(self, eps: float) -> float:
        self.eps.value = eps
        with warnings.catch_warnings():  # "may be inaccurate" at degenerate ε: its time counts
            warnings.simplefilter("ignore", UserWarning)
            return float(self.problem.solve(solver=cp.CLARABEL))


@dataclass(frozen=True)
class Sample:
    """Random feasible pairs with some ε each, and the number of feasible (pair, ε) in all."""

    pairs: list[tuple[int, int, FloatArray]]
    n_pairs: int
    n_problems: int


def draw_sample(L: FloatArray, curve: ExplicitCurve, size: int, rng: np.random.Generator) -> Sample:
    k = L.shape[0]
    largest = np.array([(L - row).max(axis=1) for row in L])  # [i, j] = max_y L_jy − L_iy
    np.fill_diagonal(largest, 0)
    positive = curve.eps[curve.eps > 0]
    feasible = (largest[:, :, None] >= positive).sum(axis=2)
    chosen = rng.choice(np.flatnonzero(feasible.ravel()), size, replace=False)
    pairs = []
    for i, j in (divmod(int(pair), k) for pair in chosen):
        pairs.append((i, j, rng.choice(positive[positive <= largest[i, j]], 4)))
    return Sample(pairs, int((feasible > 0).sum()), int(feasible.sum()))


def extrapolate(
    peer: type[ClarabelPair] | type[CvxpyPair],
    L: FloatArray,
    curve: ExplicitCurve,
    sample: Sample,
    jobs: int,
) -> float:
    """Seconds for all feasible pairs and ε: the first solve of a pair also pays for its set-up."""
    first: list[float] = []
    following: list[float] = []
    for i, j, eps in sample.pairs:
        start = time.perf_counter()
        problem = peer(L, i, j)
        for number, value in enumerate(eps):
            found = problem.solve(value)
            (following if number else first).append(time.perf_counter() - start)
            lower = curve.scaled_lower[np.flatnonzero(curve.eps == value)[0]]
            if found < lower * (1 - 1e-5):
                raise AssertionError(f"pair ({i}, {j}) at eps {value}: {found} < {lower}")
            start = time.perf_counter()
    total = sample.n_pairs * np.mean(first)
    total += (sample.n_problems - sample.n_pairs) * np.mean(following)
    return float(total) / jobs


def human(seconds: float) -> str:
    for limit, unit, name in ((90, 1, "s"), (5400, 60, "min"), (130_000, 3600, "h")):
        if seconds < limit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds / 86400:.3g} days"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="k up to 64, smaller samples")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help="write the results page")
    options = parser.parse_args()
    sizes = [("uniform", k) for k in ((16, 32, 64) if options.quick else (16, 32, 64, 128, 256))]
    cases = [*sizes, ("log-normal", 64), ("integer 0..9", 64)]
    if not options.quick:
        cases += [("log-normal", 128), ("integer 0..9", 256)]
    explicit_curve(1 - np.eye(3), [0.5, 1.0], jobs=options.jobs)  # compile, or load the cache

    lines = [
        "| costs | k | seconds | verify, s | largest width | loose | dual points | memory, MiB "
        "| Clarabel loop | ratio | CVXPY loop | ratio |",
        "|---" * 12 + "|",
    ]
    print("\n".join(lines))
    for name, k in cases:
        rng = np.random.default_rng([options.seed, k])
        L = COSTS[name](k, rng)
        np.fill_diagonal(L, 0)
        eps = np.linspace(0, (L.max(axis=0) - L.min(axis=0)).max(), N_EPS)
        start = time.perf_counter()
        curve = explicit_curve(L, eps, jobs=options.jobs)
        ours = time.perf_counter() - start
        start = time.perf_counter()
        verify(L, curve)
        verified = time.perf_counter() - start
        width = (curve.scaled_upper - curve.scaled_lower)[1:] / curve.scaled_upper[1:]
        cells = [
            name,
            str(k),
            f"{ours:.2f}",
            f"{verified:.2f}",
            f"{width.max():.1e}",
            str(curve.status.count("loose")),
            str(len(curve.points)),
            f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}",
        ]
        size = (6 if options.quick else 20) if k <= 64 else 3
        sample = draw_sample(L, curve, size, rng)
        for peer in (ClarabelPair, CvxpyPair):
            seconds = extrapolate(peer, L, curve, sample, options.jobs)
            cells += [human(seconds), f"{seconds / ours:,.0f}"]
        lines.append("| " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    if options.write:
        command = "python -m benchmarks.calibration_explicit --write"
        page = [f"# Explicit cost matrices\n\nMade by `{command}`, {options.jobs} threads.\n", NOTE]
        (RESULTS / "calibration_explicit.md").write_text("\n".join([*page, *lines]) + "\n")


if __name__ == "__main__":
    main()
