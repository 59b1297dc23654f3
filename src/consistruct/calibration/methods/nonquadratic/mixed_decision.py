"""The linear-regret surrogate: convex programs over the sets of tied labels, branch and bound.

With expected losses ℓ = Lq the excess at scores f is ‖ℓ̂ − ℓ‖²/2κ + Σ_c π_c(ℓ_c − min ℓ), where π
is any distribution on the labels of least ℓ̂, and j is predicted iff π_j is the largest weight.
Such π are mixtures of uniform distributions on sets A that contain j, and the excess is linear in
π, so

    H_ij(ε) = min over A ∋ j of min over q, ℓ̂:  ‖ℓ̂ − ℓ‖²/2κ + mean_A ℓ − min ℓ,
              ℓ̂ = τ on A, ℓ̂ ≥ τ elsewhere, (L_j − L_i)q ≥ ε,

each a convex quadratic program. For all A between I and I ∪ U, with n = |I ∪ U|, a relaxation is

    Σ_I (ℓ_c − τ)²/2κ + Σ_rest (τ − ℓ_c)₊²/2κ + (Σ_I ℓ_c − |I| min ℓ)/n,

exact where U is empty. Its dual point: Σz = 0, z_c ≤ 0 off I, ρ ≥ 0 with Σρ = |I|/n, and ν ≥ 0:

    νε + min_y [Lᵀ(z + 1_I/n − ρ) − ν(L_j − L_i)]_y − (κ/2)‖z‖².

Labels that can be swapped without changing L need not be distinguished: A is described by how many
of each class it has, and pairs by the classes of i and j. So the 0-1 loss has k − 1 sets and one
pair.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from heapq import heappop, heappush
from itertools import count
from typing import Any

import clarabel
import numpy as np

from consistruct.calibration.methods.nonquadratic.conic import solve_conic
from consistruct.calibration.methods.nonquadratic.pairs import (
    Pair,
    PairProof,
    PairSolver,
    distribution_with_gap,
    label_classes,
    reaching,
    without_repeats,
)
from consistruct.calibration.problem.pair_bounds import hull_slope
from consistruct.calibration.proofs.base import down, plain, up
from consistruct.calibration.proofs.smooth import TiesCertificate
from consistruct.certificates.ties import Problem
from consistruct.exceptions import ConsistructError
from consistruct.protocols import FloatArray, IntArray

__all__ = ["MixedDecisionProof", "MixedDecisionSolver", "tied_sets"]

GOAL = 1e-8  # relative width at which a set of labels is solved
ROUNDING = 8e-15
MAX_NODES = 4000
MAX_SETS = 1024  # over all pairs: six labels that differ

Counts = tuple[int, ...]  # how many of each class


@dataclass(frozen=True, eq=False)
class Box:
    """All A with `low` to `high` labels of each class, and the dual point that bounds them."""

    low: Counts
    high: Counts
    z: FloatArray  # (k,)
    rho: FloatArray  # (k,)
    nu: float


@dataclass(eq=False)
class MixedDecisionProof(PairProof):
    """A distribution and its best scores from above; from below boxes of all tied labels."""

    solver: MixedDecisionSolver
    pair: tuple[int, int]
    eps: float
    distribution: FloatArray
    boxes: list[Box]

    def __post_init__(self) -> None:
        self.lower, self.upper = self.recompute()

    def recompute(self) -> tuple[float, float]:
        solver, (i, j) = self.solver, self.pair
        classes = solver.classes(i, j)
        covered = np.zeros([len(members) + 1 for members in classes], dtype=bool)
        lower = math.inf
        for box in self.boxes:
            covered[tuple(slice(a, b + 1) for a, b in zip(box.low, box.high, strict=True))] = True
            lower = min(lower, solver.box_bound(i, j, self.eps, box))
        # j is its own class, the first one, and always in A
        lower = max(lower, 0.0) if covered[1].all() else 0.0
        return lower, solver.excess(self.distribution, i, j, self.eps)


class MixedDecisionSolver(PairSolver[MixedDecisionProof]):
    """One score per label; argmax decoding."""

    name = "quadratic programs over sets of tied labels"

    def __init__(self, L: FloatArray, kappa: float) -> None:
        super().__init__(L)
        self.kappa = kappa

    # --- symmetry ---

    @cached_property
    def _swaps(self) -> IntArray:
        return label_classes(self.L)

    def classes(self, i: int, j: int) -> list[list[int]]:
        """{j}, {i}, then the other labels by class."""
        found: dict[int, list[int]] = {}
        for c, number in enumerate(self._swaps.tolist()):
            if c not in (i, j):
                found.setdefault(number, []).append(c)
        return [[j], [i], *found.values()]

    @cached_property
    def limits(self) -> FloatArray:
        """As for all pairs, but −inf for pairs that a swap turns into an earlier one."""
        return without_repeats(super().limits, self.L)

    def require_few_sets(self) -> None:
        """Raise where there are too many sets of tied labels, up to symmetry."""
        sets = sum(
            math.prod(len(members) + 1 for members in self.classes(i, j)[1:])
            for i, j in np.argwhere(self.limits > -np.inf).tolist()
        )
        if sets > MAX_SETS:
            raise ConsistructError(
                f"{sets} sets of tied labels, up to symmetry, more than {MAX_SETS}"
            )

    # --- bounds in plain arithmetic ---

    def quick_lower(self, i: int, j: int, eps: float) -> float:
        """mean_A(ℓ − min ℓ) ≥ ε/k, and (ℓ_j − τ)² + (τ − ℓ_i)₊² ≥ ε²/2."""
        return (eps / len(self.L) + eps**2 / (4 * self.kappa)) * (1 - ROUNDING)

    def members(self, i: int, j: int, counts: Counts) -> list[int]:
        """The first so many labels of each class."""
        pairs = zip(self.classes(i, j), counts, strict=True)
        return [c for members, n in pairs for c in members[:n]]

    def box_bound(self, i: int, j: int, eps: float, box: Box) -> float:
        k = len(self.L)
        inside = np.zeros(k)
        inside[self.members(i, j, box.low)] = 1.0
        n = sum(box.high)
        z, rho, nu = box.z.copy(), np.maximum(box.rho, 0.0), max(box.nu, 0.0)
        z = np.where(inside > 0, z, np.minimum(z, 0.0))
        z[j] -= z.sum()
        share = inside.sum() / n
        rho = rho * (share / rho.sum()) if rho.sum() > 0 else np.full(k, share / k)
        weights = z + inside / n - rho
        gap = self.L[j] - self.L[i]
        planes = weights @ self.L + nu * (eps - gap)
        size = np.abs(weights).sum() * np.abs(self.L).max() + nu * np.abs(eps - gap).max()
        square = 0.5 * self.kappa * float(z @ z)
        # what the rescaled sums of z and ρ miss by rounding multiplies losses of that size
        return float(planes.min() - square - ROUNDING * (k * size + square))

    def excess(self, q: FloatArray, i: int, j: int, eps: float) -> float:
        """The least excess of scores that predict j, at a distribution; +inf if not feasible."""
        gap = self.L[j] - self.L[i]
        if (q < 0).any() or abs(q.sum() - 1) > 1e-12 or gap @ q < eps - 1e-11 * np.abs(gap).max():
            return math.inf
        ell = self.L @ q
        return min(value for value, _ in tied_sets(ell, j, self.kappa)) * (1 + 1e-13)

    # --- the certificate ---

    @cached_property
    def exact(self) -> Problem:
        """The problem over the rationals."""
        return Problem(self.kappa, self.L.tolist())

    def certificate(
        self, eps: float, winner: Pair, proofs: Mapping[Pair, MixedDecisionProof]
    ) -> TiesCertificate:
        problem, exact, (i, j) = self.exact, Fraction(eps), winner
        distribution = [Fraction(x) for x in proofs[winner].distribution.tolist()]
        q = reaching(distribution, problem.gap(i, j), exact)
        ell = [float(sum(x * y for x, y in zip(row, q, strict=True))) for row in problem.L]
        points = [(tied, Fraction(tau)) for tied, tau in self._points(np.array(ell), j)]
        value, tied, tau = min((problem.excess(q, *point), *point) for point in points)
        entries = {pair: self._entry(pair, proof) for pair, proof in proofs.items()}
        floor = problem.plain_bound(exact)
        lower = min(
            max(
                floor,
                min(problem.box_bound(*pair, exact, box) for box in entries[pair]["boxes"]),
            )
            if pair in entries
            else floor
            for pair in self.lowest(eps, proofs)
        )
        return TiesCertificate(
            kappa=self.kappa, loss=self.L.tolist(), eps=eps, lower=down(lower), upper=up(value),
            pair=winner, distribution=[plain(x) for x in q], tied=tied, threshold=plain(tau),
            pairs=list(entries.values()),
        )  # fmt: skip

    def _points(self, ell: FloatArray, j: int) -> list[tuple[list[int], float]]:
        """A = {j} and the n − 1 other labels of least ℓ, with the best τ, for every n."""
        others = [int(c) for c in np.argsort(ell, kind="stable") if c != j]
        sets = enumerate(tied_sets(ell, j, self.kappa))
        return [(sorted([j, *others[:n]]), tau) for n, (_, tau) in sets]

    def _entry(self, pair: Pair, proof: MixedDecisionProof) -> dict[str, Any]:
        """The boxes of a pair as plain data."""
        boxes = [
            {
                "low": list(box.low), "high": list(box.high),
                "z": box.z.tolist(), "rho": box.rho.tolist(), "nu": float(box.nu),
            }
            for box in proof.boxes
        ]  # fmt: skip
        return {"pair": list(pair), "boxes": boxes}

    # --- the search ---

    def solve(self, i: int, j: int, eps: float, incumbent: float) -> MixedDecisionProof:
        classes = self.classes(i, j)
        best_distribution: FloatArray | None = None
        upper = math.inf
        order = count()
        heap: list[tuple[float, int, Box]] = []
        done: list[Box] = []

        def visit(low: Counts, high: Counts) -> None:
            nonlocal best_distribution, upper
            box, distribution = self._relaxation(i, j, eps, low, high)
            value = self.excess(distribution, i, j, eps)
            if value < upper or best_distribution is None:
                best_distribution, upper = distribution, value
            heappush(heap, (self.box_bound(i, j, eps, box), next(order), box))

        visit((1,) + (0,) * (len(classes) - 1), tuple(len(members) for members in classes))
        nodes = 1
        while heap:
            bound, _, box = heappop(heap)
            solved = bound >= min(upper, incumbent) * (1 - GOAL) or box.low == box.high
            if solved or nodes >= MAX_NODES:
                done.append(box)
                continue
            width = [b - a for a, b in zip(box.low, box.high, strict=True)]
            where = int(np.argmax(width))
            middle = (box.low[where] + box.high[where]) // 2
            visit(box.low, _replaced(box.high, where, middle))
            visit(_replaced(box.low, where, middle + 1), box.high)
            nodes += 2
        assert best_distribution is not None
        return MixedDecisionProof(self, (i, j), eps, best_distribution, done)

    def _relaxation(
        self, i: int, j: int, eps: float, low: Counts, high: Counts
    ) -> tuple[Box, FloatArray]:
        """The best dual point of a box, and the distribution q of its multipliers.

        Variables z, ρ, ν, t: min (κ/2)‖z‖² − νε − t with t below every plane of the bound. The
        dual is solved, not the primal program: its z is unique, so that small ε keep their digits.
        """
        L, (k, m) = self.L, self.L.shape
        inside = self.members(i, j, low)
        rest = np.setdiff1d(np.arange(k), inside)
        n, size, gap = sum(high), 2 * k + 2, L[j] - L[i]
        planes = np.column_stack([-L.T, L.T, gap, np.ones(m)])
        sums = np.zeros((2, size))
        sums[0, :k], sums[1, k : 2 * k] = 1.0, 1.0
        signs = np.vstack([np.eye(size)[rest], -np.eye(size)[k : 2 * k + 1]])  # z off I, ρ, ν
        right = np.concatenate([L[inside].sum(axis=0) / n, np.zeros(len(signs))])
        found = solve_conic(
            np.concatenate([np.zeros(2 * k), [-eps, -1.0]]),
            [
                (sums, np.array([0.0, len(inside) / n]), clarabel.ZeroConeT(2)),
                (np.vstack([planes, signs]), right, clarabel.NonnegativeConeT(len(right))),
            ],
            np.diag(np.concatenate([np.full(k, self.kappa), np.zeros(k + 2)])),
        )
        every = np.ones(m, dtype=bool)
        if not found.finite:
            distribution = distribution_with_gap(np.full(m, 1 / m), gap, eps, every)
            return Box(low, high, np.zeros(k), np.full(k, 1 / k), 0.0), distribution
        distribution = distribution_with_gap(found.z[2 : 2 + m], gap, eps, every)
        z, rho = found.x[:k], np.maximum(found.x[k : 2 * k], 0.0)
        z[rest] = np.minimum(z[rest], 0.0)
        box = Box(low, high, z, rho, 0.0)
        return Box(low, high, z, rho, self._slope(i, j, eps, box)), distribution

    def _slope(self, i: int, j: int, eps: float, box: Box) -> float:
        """The best ν for z and ρ."""
        k, gap = len(self.L), self.L[j] - self.L[i]
        inside = np.zeros(k)
        inside[self.members(i, j, box.low)] = 1.0
        n = sum(box.high)
        share, rho = inside.sum() / n, np.maximum(box.rho, 0.0)
        rho = rho * (share / rho.sum()) if rho.sum() > 0 else np.full(k, share / k)
        z = box.z.copy()
        z[j] -= z.sum()
        if eps <= gap.min():
            return 0.0
        nu = hull_slope(gap, (z + inside / n - rho) @ self.L, eps)
        return nu * (1 + 1e-6) if eps >= gap.max() * (1 - 1e-12) else nu


def tied_sets(ell: FloatArray, j: int, kappa: float) -> list[tuple[float, float]]:
    """(excess, τ) with A = {j} and the n − 1 other labels of least ℓ, for every n.

    >>> import numpy as np
    >>> values = tied_sets(np.array([0.0, 1.0]), 1, 1.0)    # alone, then tied with label 0
    >>> [round(value, 9) for value, _ in values]
    [1.25, 0.75]
    """
    others = np.sort(np.delete(ell, j))
    sums = ell[j] + np.concatenate([[0.0], np.cumsum(others)])
    means = sums / np.arange(1, len(ell) + 1)
    following = np.append(others, np.inf)
    found = []
    for n in range(len(ell)):
        # τ is the mean of ℓ over A and the labels below τ
        p = n + int(np.argmax(means[n:] <= following[n:]))
        tau = float(means[p])
        pooled = np.append(others[:p], ell[j])
        square = float(((pooled - tau) ** 2).sum()) / (2 * kappa)
        found.append((square + float(means[n] - ell.min()), tau))
    return found


def _replaced(counts: Counts, where: int, value: int) -> Counts:
    return (*counts[:where], value, *counts[where + 1 :])
