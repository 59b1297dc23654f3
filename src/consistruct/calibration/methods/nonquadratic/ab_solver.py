"""(a, b) surrogates, one pair at one ε: a good distribution, then a search over thresholds.

Logistic is jointly convex in (q, s): one conic program. Any other pair: for each threshold τ a
convex problem in q, solved by sequential quadratic programming. In both cases the lower bound comes
from intervals of τ (`ab_bounds`), split until each is above what is to be shown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any

import clarabel
import numpy as np
import scipy  # its submodules are imported on use

from consistruct.calibration.methods.nonquadratic.ab import ABFamily
from consistruct.calibration.methods.nonquadratic.ab_bounds import (
    ABPair,
    ABProof,
    Slopes,
    optimal_threshold,
)
from consistruct.calibration.methods.nonquadratic.ab_polish import stationary_distributions
from consistruct.calibration.methods.nonquadratic.conic import solve_conic
from consistruct.calibration.methods.nonquadratic.pairs import (
    Pair,
    PairSolver,
    distribution_with_gap,
    reaching,
)
from consistruct.calibration.proofs.base import Certificate, down, plain, up
from consistruct.calibration.proofs.smooth import BregmanCertificate
from consistruct.certificates.bregman import Problem
from consistruct.protocols import FloatArray
from consistruct.surrogates import ABSurrogate, LogisticSurrogate, SquareSurrogate

__all__ = ["ABSolver"]

GOAL = 2e-8  # relative width at which the search over thresholds stops
GOAL_PLAIN = 5e-7  # the same without a bound on the curvature, where intervals are many
NEWTON_STEPS = 40
RESTARTS = 4
INWARDS = 1e-3  # share of a central distribution that a start gets
COARSE = 6  # thresholds tried before the local search
MAX_INTERVALS = 4000
PATIENCE, BATCH = 4, 6  # halvings before an interval gets its own dual point; how many at once
MAX_DUALS = 120  # problems in q solved for the lower bound of one pair


EXACT: dict[type[ABSurrogate], str] = {LogisticSurrogate: "logistic", SquareSurrogate: "square"}
EDGE = Fraction(1, 2**57)  # about the expected loss at the ends of the logistic window


class ABSolver(PairSolver[ABProof]):
    """One score per label; bounds are k·H."""

    def __init__(self, L: FloatArray, surrogate: ABSurrogate) -> None:
        super().__init__(L)
        self.family = family = ABFamily(surrogate)
        self.conic = type(surrogate) is LogisticSurrogate
        how = "exponential cones" if self.conic else "search over thresholds"
        self.name = f"{how}, {family.surrogate.name} (a, b)"
        self.log_scale = -math.log(len(L))

    def quick_lower(self, i: int, j: int, eps: float) -> float:
        """The terms of i and j alone, by a square below D; for planes only."""
        if self.exact is None:
            return 0.0
        share = eps / float(self.exact.largest)
        return share**2 * (1.0 if self.exact.logistic else 0.25) * (1 - 1e-12)

    @cached_property
    def exact(self) -> Problem | None:
        """The problem over the rationals, where the surrogate is one that the checker knows."""
        name = EXACT.get(type(self.family.surrogate))
        return None if name is None else Problem(name, self.family.l_max, self.L.tolist())

    def solve(self, i: int, j: int, eps: float, incumbent: float) -> ABProof:
        pair = ABPair(self.family, self.L, i, j, eps)
        gap = pair.gap
        tight = eps >= gap.max() * (1 - 1e-12)
        columns = np.flatnonzero(gap >= (gap.max() * (1 - 1e-12) if tight else -np.inf))
        q, tau = self._logistic(pair, columns) if self.conic else self._search(pair, columns)
        if self.family.surrogate.jointly_convex:
            return self._by_plane(pair, q, tau, columns)
        return self._prove(pair, q, tau, columns, incumbent)

    def _by_plane(self, pair: ABPair, q: FloatArray, tau: float, columns: np.ndarray) -> ABProof:
        """A tangent plane at q; at a kink (ℓ_c = τ) Newton may need another start to converge."""
        nothing = np.zeros(0, dtype=np.int64)
        best = ABProof(pair, q, tau, np.zeros(0), nothing, [])
        for _ in range(RESTARTS):
            if best.upper - best.lower <= GOAL * best.upper:
                break
            q, tau = self._refined(pair, q, columns)
            best = _narrower(best, ABProof(pair, q, tau, np.zeros(0), nothing, []))
        if best.upper - best.lower > GOAL * best.upper and len(columns) == len(pair.gap):
            for distribution in stationary_distributions(pair, best.distribution):
                q = self._feasible(pair, distribution, columns)
                tau = optimal_threshold(self.L @ q, pair.j)
                best = _narrower(best, ABProof(pair, q, tau, np.zeros(0), nothing, []))
        return best

    # --- the certificate ---

    def certificate(self, eps: float, winner: Pair, proofs: Mapping[Pair, ABProof]) -> Certificate:
        problem, found = self.exact, proofs[winner]
        if problem is None:
            return super().certificate(eps, winner, proofs)
        (i, j), exact = winner, Fraction(eps)
        q = reaching([Fraction(x) for x in found.distribution.tolist()], problem.gap(i, j), exact)
        threshold = Fraction(found.tau) / problem.largest
        entries = {pair: self._entry(pair, proof) for pair, proof in proofs.items()}
        plain_bound = problem.plain_bound(exact)
        lower = min(
            max(plain_bound, problem.bound(*pair, exact, entries[pair]))
            if pair in entries
            else plain_bound
            for pair in self.lowest(eps, proofs)
        )
        return BregmanCertificate(
            surrogate="logistic" if problem.logistic else "square", largest=self.family.l_max,
            loss=self.L.tolist(), eps=eps, lower=down(lower),
            upper=up(problem.excess(j, q, threshold)), pair=winner,
            distribution=[plain(x) for x in q], threshold=plain(threshold),
            pairs=list(entries.values()),
        )  # fmt: skip

    def _entry(self, pair: Pair, proof: ABProof) -> dict[str, Any]:
        """The plane of a pair as plain data."""
        assert self.exact is not None
        _, ell, active = proof.pair.plane_points(proof.distribution)
        points = [Fraction(x) / self.exact.largest for x in ell[active].tolist()]
        if self.exact.logistic:  # slopes are infinite at the ends
            points = [min(max(x, EDGE), 1 - EDGE) for x in points]
        return {
            "pair": list(pair),
            "labels": np.flatnonzero(active).tolist(),
            "points": [plain(x) for x in points],
            "nu": max(proof.pair.plane_slope(proof.distribution), 0.0),
        }

    # --- upper bounds ---

    def _logistic(self, pair: ABPair, columns: np.ndarray) -> tuple[FloatArray, float]:
        """min Σ_c KL(ℓ_c/Lmax ‖ s_c), both sides of the binary distribution, s.t. s_j ≤ s_c."""
        L = self.L[:, columns] / self.family.l_max
        k, m = L.shape
        n = m + 3 * k
        q, s = np.arange(m), m + np.arange(k)
        rows = scipy.sparse.lil_matrix((1, n))
        rows[0, q] = 1.0
        order = scipy.sparse.lil_matrix((k, n))
        order[:, s] = -np.eye(k)
        order[:, s[pair.j]] += np.ones((k, 1))
        order[pair.j, :] = 0.0
        gap = scipy.sparse.lil_matrix((1, n))
        tight = len(columns) < len(pair.gap) or len(columns) == 1
        if not tight:
            gap[0, q] = -pair.gap[columns]
        cones = scipy.sparse.lil_matrix((6 * k, n))
        right = np.zeros(6 * k)
        for c in range(k):
            for side in range(2):  # p log(p/s) ≤ t, then the same for 1 − p and 1 − s
                row, sign = 6 * c + 3 * side, 1.0 if side else -1.0
                cones[row, m + k + 2 * c + side] = 1.0
                cones[row + 1, q] = sign * L[c]
                cones[row + 2, s[c]] = sign
                right[row + 1] = right[row + 2] = float(side)
        found = solve_conic(
            np.concatenate([np.zeros(m + k), np.ones(2 * k)]),
            [
                (rows, np.ones(1), clarabel.ZeroConeT(1)),
                (order, np.zeros(k), clarabel.NonnegativeConeT(k)),
                (-scipy.sparse.eye_array(m, n), np.zeros(m), clarabel.NonnegativeConeT(m)),
                (gap, np.array([0.0 if tight else -pair.eps]), clarabel.NonnegativeConeT(1)),
                (cones, right, [clarabel.ExponentialConeT() for _ in range(2 * k)]),
            ],
        )
        distribution = found.x[:m] if found.finite else np.full(m, 1 / m)
        return self._refined(pair, self._feasible(pair, distribution, columns), columns)

    def _search(self, pair: ABPair, columns: np.ndarray) -> tuple[FloatArray, float]:
        """The best of a coarse grid of thresholds, then the stationary point near it."""
        low, high = pair.range
        grid = low + (high - low) * (np.arange(COARSE) + 0.5) / COARSE
        q = self._feasible(pair, np.full(len(columns), 1 / len(columns)), columns)
        if len(columns) == 1:
            return q, optimal_threshold(self.L @ q, pair.j)
        best, least = q, math.inf
        for tau in grid.tolist():
            q = self._distribution_at(pair, q, columns, tau)
            value = pair.objective(self.L @ q, tau)
            if value < least:
                best, least = q, value
        return self._refined(pair, best, columns)

    def _refined(
        self, pair: ABPair, q: FloatArray, columns: np.ndarray
    ) -> tuple[FloatArray, float]:
        """A stationary distribution near q, with its threshold."""
        q = self._distribution_at(pair, q, columns, None)
        return q, optimal_threshold(self.L @ q, pair.j)

    def _distribution_at(
        self, pair: ABPair, start: FloatArray, columns: np.ndarray, fixed: float | None
    ) -> FloatArray:
        """argmin over q of the objective at τ, or at the best τ for q if none is fixed.

        Newton steps through quadratic programs. With u eliminated the Hessian in ℓ of the active
        terms is diag(G''(ℓ_c)) − G''(τ)/n, made positive semi-definite where it is not.
        """
        family, j = self.family, pair.j
        # probabilities sum to one: a constant per row changes nothing, and constant rows vanish
        rows = self.L - self.L[:, columns].min(axis=1, keepdims=True)
        L = rows[:, columns]

        def threshold(distribution: FloatArray) -> float:
            return optimal_threshold(self.L @ distribution, j) if fixed is None else fixed

        def objective(distribution: FloatArray) -> float:
            return pair.objective(self.L @ distribution, threshold(distribution))

        # a little inwards: slopes may be infinite where an expected loss is 0 or Lmax
        center = self._feasible(pair, np.full(len(columns), 1 / len(columns)), columns)
        q = (1 - INWARDS) * start + INWARDS * center
        value = objective(q)
        for _ in range(NEWTON_STEPS):
            ell, tau = self.L @ q, threshold(q)
            u = float(family.a(family.best_score(np.array([tau])))[0])
            active = (ell < tau) | (np.arange(len(ell)) == j)
            slope = np.where(active, u - family.a(family.best_score(ell)), 0.0)
            curvature = np.where(active, np.clip(family.curvature(ell), 1e-12, 1e12), 0.0)
            hessian = np.diag(curvature)
            if fixed is None:
                bend = float(family.curvature(np.array([tau]))[0])
                hessian = hessian - bend / active.sum() * np.outer(active, active)
                eigenvalues, vectors = np.linalg.eigh(hessian)
                hessian = (vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T
            step = self._quadratic_step(pair, q, slope @ L, L.T @ hessian @ L, columns) - q
            change = rows @ step
            fall = float(slope @ change)
            if fall >= -1e-15 * max(value, 1e-12):
                break
            length = self._room(ell, change, active)
            moved = objective(q + length * step)
            while moved > value + 1e-4 * length * fall and length > 1e-10:
                length *= 0.5
                moved = objective(q + length * step)
            done = value - moved <= 1e-14 * value
            if done:  # the value has converged, the distribution gains digits by one more full step
                length = 1.0 if objective(q + step) <= value * (1 + 1e-12) else 0.0
            q = np.maximum(q + length * step, 0.0)
            q, value = q / q.sum(), moved
            if done:
                break
        return self._feasible(pair, q[columns], columns)

    def _room(self, ell: FloatArray, step: FloatArray, active: np.ndarray) -> float:
        """The part of a step that keeps active expected losses off 0 and Lmax."""
        room = np.where(step < 0, ell, self.family.l_max - ell)[active]
        used = np.abs(step)[active]
        moving = (used > 0) & (room > 0)
        return min(1.0, 0.95 * float((room[moving] / used[moving]).min(initial=2.0)))

    def _quadratic_step(
        self,
        pair: ABPair,
        q: FloatArray,
        slope: FloatArray,
        hessian: FloatArray,
        columns: np.ndarray,
    ) -> FloatArray:
        m = len(columns)
        tight = m < len(pair.gap) or m == 1
        gap = np.zeros(m) if tight else -pair.gap[columns]
        ridge = 1e-12 * max(float(np.trace(hessian)), 1e-12) * np.eye(m)
        scale = max(float(np.abs(slope).max()), 1e-300)
        found = solve_conic(
            (slope - hessian @ q[columns]) / scale,
            [
                (np.ones((1, m)), np.ones(1), clarabel.ZeroConeT(1)),
                (-np.eye(m), np.zeros(m), clarabel.NonnegativeConeT(m)),
                (gap[None], np.array([0.0 if tight else -pair.eps]), clarabel.NonnegativeConeT(1)),
            ],
            np.triu(hessian + ridge) / scale,
        )
        return self._feasible(pair, found.x, columns) if found.finite else q

    def _feasible(self, pair: ABPair, distribution: FloatArray, columns: np.ndarray) -> FloatArray:
        """A distribution over all true labels with gap·q ≥ ε near one over `columns`."""
        q, allowed = np.zeros(self.L.shape[1]), np.zeros(self.L.shape[1], dtype=bool)
        q[columns], allowed[columns] = distribution, True
        return distribution_with_gap(q, pair.gap, pair.eps, allowed)

    # --- lower bounds ---

    def _prove(
        self, pair: ABPair, q: FloatArray, tau: float, columns: np.ndarray, incumbent: float
    ) -> ABProof:
        """Split the thresholds until every interval is above the goal."""
        best_q, best_tau, upper = q, tau, pair.value(q, tau)
        share = 1 - (GOAL_PLAIN if not self.family.has("variance") else GOAL)
        goal = min(upper, incumbent) * share
        duals = [pair.slopes(q, tau)]
        cuts = self._search_range(pair, goal)
        inner = np.unique(np.clip([tau * (1 - 1e-3), tau, tau * (1 + 1e-3)], *cuts))
        ends = np.unique(np.concatenate([cuts, inner]))
        low, high = ends[:-1], ends[1:]
        if len(low) == 0:
            low, high = np.array([cuts[0]]), np.array([cuts[1]])
        done: list[tuple[float, float, int]] = []
        depth = np.zeros(len(low), dtype=np.int64)
        n_intervals = 0
        while len(low) and n_intervals < MAX_INTERVALS:
            bounds = np.stack([pair.interval_bounds(dual, low, high) for dual in duals])
            which, value = bounds.argmax(axis=0), bounds.max(axis=0)
            closed = value >= goal
            n_intervals += len(low)
            done += list(
                zip(
                    low[closed].tolist(), high[closed].tolist(), which[closed].tolist(), strict=True
                )
            )
            low, high, depth, value = low[~closed], high[~closed], depth[~closed], value[~closed]
            stuck = np.flatnonzero(depth >= PATIENCE)
            worst = stuck[np.argsort(value[stuck])][:BATCH]
            for middle in (0.5 * (low[worst] + high[worst])).tolist():
                if len(duals) >= MAX_DUALS:
                    break
                distribution = self._distribution_at(pair, best_q, columns, middle)
                duals.append(pair.slopes(distribution, middle))
                threshold = optimal_threshold(self.L @ distribution, pair.j)
                found = pair.value(distribution, threshold)
                if found < upper:
                    best_q, best_tau, upper = distribution, threshold, found
                    goal = min(upper, incumbent) * share
            depth[worst] = 0
            middle_all = 0.5 * (low + high)
            low, high = np.concatenate([low, middle_all]), np.concatenate([middle_all, high])
            depth = np.concatenate([depth, depth]) + 1
        if len(low):  # not closed: keep the best dual point of each
            bounds = np.stack([pair.interval_bounds(dual, low, high) for dual in duals])
            rest = bounds.argmax(axis=0).tolist()
            done += list(zip(low.tolist(), high.tolist(), rest, strict=True))
        return self._assemble(pair, best_q, best_tau, done, duals)

    def _search_range(self, pair: ABPair, goal: float) -> FloatArray:
        """Thresholds that the terms of i and j alone do not rule out."""
        low, high = pair.range
        least = pair.eps + float(self.L[pair.i].min())
        most = float(self.L[pair.j].max()) - pair.eps
        first = _boundary(lambda tau: pair.below(tau) >= goal, low, min(least, high))
        last = _boundary(lambda tau: pair.above(tau) >= goal, high, max(most, low))
        return np.array([first, last]) if first < last else np.array([low, high])

    def _assemble(
        self,
        pair: ABPair,
        q: FloatArray,
        tau: float,
        done: list[tuple[float, float, int]],
        duals: list[Slopes],
    ) -> ABProof:
        done.sort()
        cuts = np.array([low for low, _, _ in done] + [done[-1][1]])
        return ABProof(pair, q, tau, cuts, np.array([which for _, _, which in done]), duals)


def _narrower(one: ABProof, other: ABProof) -> ABProof:
    return other if other.upper - other.lower < one.upper - one.lower else one


def _boundary(ruled_out: object, start: float, stop: float) -> float:
    """The last point from `start` toward `stop` that is ruled out; `start` if it is not itself."""
    assert callable(ruled_out)
    if not ruled_out(start):
        return start
    bad, good = start, stop
    for _ in range(60):
        middle = 0.5 * (bad + good)
        if ruled_out(middle):
            bad = middle
        else:
            good = middle
    return bad
