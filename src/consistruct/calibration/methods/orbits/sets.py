"""F-beta with its own scores over all set sizes: pairs and labels fall into few orbits.

Given i and j only the numbers of members in i∩j, i∖j, j∖i and outside both tell labels apart, so a
set is four counts. With all true sizes the scores are free in every (size, member), v(ŷ) =
α_m + Σ_t ŷ_t β_{m,t} with m = |ŷ|: sizes are independent layers of measure 1/(T+1), and

    K(ŷ, ŷ') = (T+1)·[m = m']·(1 + (|ŷ∩ŷ'| − m²/T)·T(T−1)/(m(T−m))).

The basis of the score space itself (a Cauchy matrix of sizes) has a condition number above 10^12
from eight labels on, where differences of its parameters are rounding; layers have none of that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np

from consistruct.calibration.curve import CurvePoint, Method, Progress, at_each, status_of
from consistruct.calibration.envelope import squared_lines
from consistruct.calibration.methods.explicit.pool import PairPool, PairSource
from consistruct.calibration.problem.listed import PairProblem
from consistruct.calibration.problem.pair_bounds import ROUNDING, Line
from consistruct.calibration.proofs.base import down, up
from consistruct.calibration.proofs.sets import Multipliers, SetCertificate
from consistruct.certificates.sets import SetProblem
from consistruct.exceptions import ConsistructError
from consistruct.losses.fbeta import FBeta
from consistruct.protocols import FloatArray, IntArray

__all__ = ["Groups", "SetMethod", "SetPairs", "cells_of", "layer_values"]

NEGLIGIBLE = 1e-9  # share of the largest weight, left out of certificates
Groups = tuple[int, int, int, int]  # sizes of i∩j, i∖j, j∖i and the rest


def cells_of(groups: Groups) -> IntArray:
    """(n, 4): every way to take members from the groups."""
    return np.array(list(product(*(range(size + 1) for size in groups))), dtype=np.int64)


@dataclass(eq=False)
class SetPairs(PairSource):
    """One pair (i, j) of label sets per orbit, its problem made when it is requested."""

    T: int
    beta: float
    empty: float

    def __post_init__(self) -> None:
        self.log_scale = 0.0
        T = self.T
        self.groups: list[Groups] = [
            (a, b, c, T - a - b - c)
            for a, b, c in product(range(T + 1), repeat=3)
            if a + b + c <= T and b + c > 0
        ]
        self.limits = np.array([float(self._gap(groups).max()) for groups in self.groups])

    def losses(self, groups: Groups, rows: IntArray) -> FloatArray:
        """(n, m): F-beta loss of sets `rows`, averaged over the true labels of each cell."""
        true_labels = cells_of(groups)
        share = np.array([1.0 / size if size else 0.0 for size in groups])
        overlap = (rows * share) @ true_labels.T
        sizes, true_sizes = rows.sum(axis=1)[:, None], true_labels.sum(axis=1)[None]
        weight = self.beta**2 * true_sizes + sizes
        with np.errstate(invalid="ignore", divide="ignore"):
            value = 1.0 - (1 + self.beta**2) * overlap / weight
        return np.where(weight > 0, value, 1.0 - self.empty)

    def _gap(self, groups: Groups) -> FloatArray:
        both = self.losses(groups, np.array([self.label_j(groups), self.label_i(groups)]))
        return np.asarray(both[0] - both[1])

    @staticmethod
    def label_i(groups: Groups) -> Groups:
        """Counts of i."""
        return groups[0], groups[1], 0, 0

    @staticmethod
    def label_j(groups: Groups) -> Groups:
        """Counts of j."""
        return groups[0], 0, groups[2], 0

    def embedding(self, groups: Groups, cells: IntArray) -> FloatArray:
        """(n, 5(T+1)): coordinates whose inner products are K, averaged over each cell."""
        T = self.T
        m = cells.sum(axis=1)
        inner = (m > 0) & (m < T)
        width = np.sqrt(np.where(inner, T * (T - 1) / np.where(inner, m * (T - m), 1.0), 0.0))
        size = np.array(groups, dtype=np.float64)
        share = cells / np.where(size > 0, size, 1.0) - (m / T)[:, None]
        found = np.zeros((len(cells), T + 1, 5))
        cell = np.arange(len(cells))
        found[cell, m, 0] = 1.0
        found[cell, m, 1:] = width[:, None] * share * np.sqrt(size)
        return np.asarray(found.reshape(len(cells), -1) * math.sqrt(T + 1))

    def problem(self, number: int) -> tuple[PairProblem, bytes]:
        groups = self.groups[number]
        cells = cells_of(groups)
        at_j = int((cells == self.label_j(groups)).all(axis=1).argmax())
        embedded, L = self.embedding(groups, cells), self.losses(groups, cells)
        others = np.delete(np.arange(len(cells)), at_j)
        order = embedded[others] - embedded[at_j]
        kept = np.abs(order).max(axis=0) > 0
        one_each = tuple(np.arange(len(cells))[:, None])
        problem = PairProblem(
            order[:, kept], L[others] - L[at_j], self._gap(groups), one_each[:-1], one_each
        )
        return problem, b"%d" % number

    @cached_property
    def distances(self) -> FloatArray:
        """(n_pairs,): K(i, i) + K(j, j) − 2K(i, j)."""
        found = []
        for groups in self.groups:
            both = np.array([self.label_i(groups), self.label_j(groups)])
            one, other = self.embedding(groups, both)
            found.append(float(((one - other) ** 2).sum()))
        return np.array(found)

    def start_line(self, number: int, eps: float) -> Line:
        """Theorem 7: the constraint of i alone, whose loss cancels the gap."""
        return Line(1.0, 0.0, math.sqrt(self.distances[number]) * (1 + ROUNDING))

    def start_lower(self, eps: float) -> FloatArray:
        bound = 0.5 * eps**2 / self.distances * (1 - 4 * ROUNDING)
        return np.where(eps <= self.limits, bound, np.inf)


def layer_values(T: int, groups: Groups, kept_v: FloatArray) -> FloatArray:
    """(T+1, 5): α_m and β_{m,g} of the function v(ŷ) from its coordinates, (T+1, 5)."""
    m = np.arange(T + 1, dtype=np.float64)
    inner = (m > 0) & (m < T)
    width = np.sqrt(np.where(inner, T * (T - 1) / np.where(inner, m * (T - m), 1.0), 0.0))
    size = np.array(groups, dtype=np.float64)
    root = np.sqrt(size)
    found = np.zeros((T + 1, 5))
    slope = width[:, None] * kept_v[:, 1:]
    found[:, 0] = kept_v[:, 0] - (m / T) * (slope * root).sum(axis=1)
    found[:, 1:] = np.where(size > 0, slope / np.where(size > 0, root, 1.0), 0.0)
    return np.asarray(found * math.sqrt(T + 1))


@dataclass(eq=False)
class SetMethod(Method):
    """H of FBeta(T) with its own scores: one small quadratic program per orbit of pairs."""

    loss: FBeta

    def __post_init__(self) -> None:
        self.name = "set orbits"
        self._pairs = SetPairs(self.loss.T, self.loss.beta, self.loss.empty)
        self._pool = PairPool(self._pairs)
        self._proofs: dict[float, SetCertificate] = {}

    @property
    def max_eps(self) -> float:
        return float(self._pairs.limits.max())

    def points(self, eps: FloatArray, progress: Progress | None = None) -> list[CurvePoint]:
        def point(value: float) -> CurvePoint:
            proof = self.certificate(value)  # exact, and cheaper than the search before it
            status = status_of(proof.lower, proof.upper, 1.0)
            return CurvePoint(value, proof.lower, proof.upper, 0.0, self.name, status, proof.pair)

        return at_each(eps, point, progress)

    def floor(self) -> FloatArray:
        lines: dict[int, list[Line]] = {
            number: [self._pairs.start_line(number, 0.0)]
            for number in range(len(self._pairs.groups))
        }
        for stored in self._pool.stored:
            lines[stored.pair].append(stored.line)
        limits = self._pairs.limits.tolist()
        return np.concatenate([squared_lines(lines[n], limits[n]) for n in lines if limits[n] > 0])

    def certificate(self, eps: float) -> SetCertificate:
        if eps not in self._proofs:
            self._proofs[eps] = self._prove(eps)
        return self._proofs[eps]

    def _prove(self, eps: float) -> SetCertificate:
        found = self._pool.point(eps)
        if found.solution is None:
            raise ConsistructError(f"no pair is feasible at ε = {eps}: H is +inf, nothing to prove")
        T, exact = self.loss.T, SetProblem(self.loss.T, self.loss.beta, self.loss.empty)
        groups = self._pairs.groups[found.pair]
        cells = [tuple(cell) for cell in cells_of(groups).tolist()]
        distribution = tuple(
            (cell, float(p)) for cell, p in zip(cells, found.solution.q, strict=True) if p
        )
        layers = tuple(
            tuple(row)
            for row in layer_values(T, groups, self._coordinates(groups, found.solution.v)).tolist()
        )
        at = Fraction(eps)
        upper = exact.primal(groups, distribution, layers, at)
        chosen: list[Multipliers] = []
        lower = upper
        for number, own in enumerate(self._pairs.groups):
            bound = exact.theorem_7(own, at)
            if bound >= found.lower or not exact.feasible(own, at):
                lower = min(lower, bound) if bound >= found.lower else lower
                continue
            entry = self._best_dual(number, eps)
            if entry is not None:
                chosen.append(entry)
                bound = max(bound, exact.dual(entry, at))
            lower = min(lower, bound)
        return SetCertificate(
            T, self.loss.beta, self.loss.empty, eps, down(lower), up(upper), groups,
            distribution, layers, tuple(chosen),
        )  # fmt: skip

    def _coordinates(self, groups: Groups, v: FloatArray) -> FloatArray:
        """(T+1, 5): v of a solved pair in all coordinates; its problem keeps those it needs."""
        cells = cells_of(groups)
        embedded = self._pairs.embedding(groups, cells)
        at_j = int((cells == self._pairs.label_j(groups)).all(axis=1).argmax())
        kept = np.abs(np.delete(embedded - embedded[at_j], at_j, axis=0)).max(axis=0) > 0
        full = np.zeros(embedded.shape[1])
        full[kept] = v
        return full.reshape(-1, 5)

    def _best_dual(self, number: int, eps: float) -> Multipliers | None:
        stored = [entry for entry in self._pool.stored if entry.pair == number]
        if not stored:
            return None
        best = max(stored, key=lambda entry: entry.line.lower(eps))
        groups = self._pairs.groups[number]
        at_j = self._pairs.label_j(groups)
        rows = [tuple(cell) for cell in cells_of(groups).tolist() if tuple(cell) != at_j]
        floor = NEGLIGIBLE * float(best.w.max(initial=0.0))
        kept = tuple((row, float(w)) for row, w in zip(rows, best.w, strict=True) if w > floor)
        return groups, float(best.line.nu), kept
