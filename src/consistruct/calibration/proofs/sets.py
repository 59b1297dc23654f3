"""Proof of H(ε) for F-beta with its own scores over all set sizes: exact, in fractions.

Labels are told apart by four counts (members in i∩j, i∖j, j∖i and outside). Upper end: a law over
counts and a function v(ŷ) = α_m + Σ_g β_{m,g}·c_g of the layer m = |ŷ|; what rounding has left of
a violation is repaired before the value is taken. Lower end: multipliers for the pairs that
Theorem 7 does not cover. Everything is a rational number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar, Self

from consistruct.calibration.proofs.base import PlainCertificate
from consistruct.exceptions import CertificateError

__all__ = ["SetCertificate", "SetProblem"]

Counts = tuple[int, int, int, int]
Multipliers = tuple[Counts, float, tuple[tuple[Counts, float], ...]]  # groups, ν, weights of cells


@dataclass(frozen=True)
class SetProblem:
    """The exact data: T labels, β, and F of two empty sets."""

    T: int
    beta: float
    empty: float

    def loss(self, row: Counts, truth: Counts, groups: Counts) -> Fraction:
        """Loss of a set of counts `row`, averaged over the truths of counts `truth`."""
        square = Fraction(self.beta) ** 2
        weight = square * sum(truth) + sum(row)
        if weight == 0:
            return 1 - Fraction(self.empty)
        shared = sum(Fraction(a * b, g) for a, b, g in zip(row, truth, groups, strict=True) if g)
        return 1 - (1 + square) * shared / weight

    def orbits(self) -> Iterator[Counts]:
        """One pair (i, j) of different sets for each quadruple of group sizes."""
        for a, b, c in product(range(self.T + 1), repeat=3):
            if a + b + c <= self.T and b + c > 0:
                yield a, b, c, self.T - a - b - c

    def squared_norm(self, weights: dict[Counts, Fraction], groups: Counts) -> Fraction:
        """‖Σ_c w_c F̃_c‖² of averaged rows: layers of measure 1/(T+1), a mean and contrasts each."""
        T, layers = self.T, [Fraction(0)] * (self.T + 1)
        slopes = [[Fraction(0)] * 4 for _ in range(T + 1)]
        for cell, w in weights.items():
            m = sum(cell)
            layers[m] += w
            for g in range(4):
                if groups[g]:
                    slopes[m][g] += w * (Fraction(cell[g], groups[g]) - Fraction(m, T))
        total = sum((x * x for x in layers), Fraction(0))
        for m in range(1, T):
            spread = sum((groups[g] * slopes[m][g] ** 2 for g in range(4)), Fraction(0))
            total += spread * Fraction(T * (T - 1), m * (T - m))
        return (T + 1) * total

    def theorem_7(self, groups: Counts, eps: Fraction) -> Fraction:
        """ε²/2‖F̃_i − F̃_j‖²."""
        i, j = _pair(groups)
        return eps**2 / (2 * self.squared_norm({i: Fraction(1), j: Fraction(-1)}, groups))

    def dual(self, entry: Multipliers, eps: Fraction) -> Fraction:
        """(νε + m)₊²/2‖Σ w_c(F̃_c − F̃_j)‖², m = min_y −Σ w_c(L_c − L_j)_y − ν(L_j − L_i)_y."""
        groups, nu, pairs = entry
        i, j = _pair(groups)
        weights = {cell: Fraction(w) for cell, w in pairs}
        rise = Fraction(nu)
        total = sum(weights.values(), Fraction(0))
        least = min(
            -sum((w * self.loss(c, y, groups) for c, w in weights.items()), Fraction(0))
            + (total - rise) * self.loss(j, y, groups)
            + rise * self.loss(i, y, groups)
            for y in _cells(groups)
        )
        height = rise * eps + least
        if height <= 0:
            return Fraction(0)
        direction = dict(weights)
        direction[j] = direction.get(j, Fraction(0)) - total
        norm = self.squared_norm(direction, groups)
        return height**2 / (2 * norm) if norm else Fraction(0)

    def feasible(self, groups: Counts, eps: Fraction) -> bool:
        """Whether some truth makes j worse than i by ε."""
        i, j = _pair(groups)
        return any(self.loss(j, y, groups) - self.loss(i, y, groups) >= eps for y in _cells(groups))

    def primal(
        self,
        groups: Counts,
        law: tuple[tuple[Counts, float], ...],
        layers: tuple[tuple[float, ...], ...],
        eps: Fraction,
    ) -> Fraction:
        """½E v² of the repaired point; raises CertificateError where there is no repair."""
        i, j = _pair(groups)
        q = {cell: max(Fraction(p), Fraction(0)) for cell, p in law}
        mass = sum(q.values(), Fraction(0))
        if mass == 0:
            raise CertificateError("the law is empty")
        q = {cell: p / mass for cell, p in q.items()}
        gaps = {y: self.loss(j, y, groups) - self.loss(i, y, groups) for y in _cells(groups)}
        gap = sum((p * gaps[y] for y, p in q.items()), Fraction(0))
        if gap < eps:  # towards the truth of largest gap
            top = max(gaps, key=lambda y: gaps[y])
            if gaps[top] < eps:
                raise CertificateError("no truth makes j worse than i by ε")
            move = (eps - gap) / (gaps[top] - gap)
            q = {y: p * (1 - move) for y, p in q.items()}
            q[top] = q.get(top, Fraction(0)) + move
        v = [[Fraction(x) for x in row] for row in layers]

        def value(cell: Counts) -> Fraction:
            row = v[sum(cell)]
            return row[0] + sum((row[g + 1] * cell[g] for g in range(4)), Fraction(0))

        def expected(cell: Counts) -> Fraction:
            return sum((p * self.loss(cell, y, groups) for y, p in q.items()), Fraction(0))

        base = value(j) - expected(j)
        worst = max(value(c) - expected(c) - base for c in _cells(groups))
        if worst > 0:
            # in the layer of j: |ŷ∩j| − |j|; −1 elsewhere. j gains at least one on every other set
            for m in range(self.T + 1):
                if m != sum(j):
                    v[m][0] -= worst
            v[sum(j)][0] -= worst * sum(j)
            v[sum(j)][1] += worst
            v[sum(j)][3] += worst
        return self._half_mean_square(v, groups)

    def _half_mean_square(self, v: list[list[Fraction]], groups: Counts) -> Fraction:
        """½E v²: counts of a uniform set of size m are hypergeometric."""
        T, total = self.T, Fraction(0)
        for m, (alpha, *beta) in enumerate(v):
            mean = alpha + sum(
                (b * Fraction(m * g, T) for b, g in zip(beta, groups, strict=True)), Fraction(0)
            )
            spread = sum((b * b * g for b, g in zip(beta, groups, strict=True)), Fraction(0))
            common = sum((b * g for b, g in zip(beta, groups, strict=True)), Fraction(0))
            scale = Fraction(m * (T - m), T * (T - 1)) if T > 1 else Fraction(0)
            total += mean**2 + scale * (spread - common**2 / T)
        return total / (2 * (T + 1))


def _pair(groups: Counts) -> tuple[Counts, Counts]:
    return (groups[0], groups[1], 0, 0), (groups[0], 0, groups[2], 0)


def _cells(groups: Counts) -> list[Counts]:
    return [(a, b, c, d) for a, b, c, d in product(*(range(size + 1) for size in groups))]


@dataclass(frozen=True)
class SetCertificate(PlainCertificate):
    """lower ≤ H(ε) ≤ upper for FBeta(T, beta) with its own scores and all set sizes.

    Attributes
    ----------
    groups : (int, int, int, int)
        Sizes of i∩j, i∖j, j∖i and the rest.
    cells : tuple of (counts, probability)
        The law of the truth: a set with these counts, uniformly.
    layers : (T+1, 5) nested tuple
        α_m and β_{m,g} of v = scores + expected losses.
    multipliers : tuple of (groups, ν, weights)
        For the pairs that Theorem 7 does not cover.
    """

    kind: ClassVar[str] = "sets"

    T: int
    beta: float
    empty: float
    eps: float
    lower: float
    upper: float
    groups: Counts
    cells: tuple[tuple[Counts, float], ...]
    layers: tuple[tuple[float, ...], ...]
    multipliers: tuple[Multipliers, ...]

    @property
    def pair(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """(i, j) as 0/1 vectors: the groups one after the other."""
        a, b, c, d = self.groups
        return (1,) * (a + b) + (0,) * (c + d), (1,) * a + (0,) * b + (1,) * c + (0,) * d

    def document(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def read(cls, document: dict[str, Any]) -> Self:
        names = [name for name in cls.__dataclass_fields__ if name != "kind"]
        if unknown := set(document) - set(names) - {"kind", "schema"}:
            raise CertificateError(f"unknown fields {sorted(unknown)}")
        return cls(**{name: _tuples(document[name]) for name in names})

    @staticmethod
    def verify(document: dict[str, Any]) -> None:
        SetCertificate.read(document).check()

    def check(self) -> None:
        """Recompute both ends exactly; raise CertificateError if they do not support the claim."""
        problem, eps = self._checked()
        upper = problem.primal(self.groups, self.cells, self.layers, eps)
        if Fraction(self.upper) < upper:
            raise CertificateError(f"the upper bound {self.upper!r} is not attained")
        claim = Fraction(self.lower)
        proved = {entry[0]: entry for entry in self.multipliers}
        for groups in problem.orbits():
            if problem.theorem_7(groups, eps) >= claim:
                continue
            if groups in proved and problem.dual(proved[groups], eps) >= claim:
                continue
            if problem.feasible(groups, eps):
                raise CertificateError(
                    f"the lower bound {self.lower!r} is not proved for the pair {groups}"
                )

    def _checked(self) -> tuple[SetProblem, Fraction]:
        if type(self.T) is not int or self.T < 1:
            raise CertificateError(f"T must be a positive integer, got {self.T!r}")
        try:
            weights = [w for *_, pairs in self.multipliers for _, w in pairs]
            rises = [nu for _, nu, _ in self.multipliers]
            masses = [p for _, p in self.cells]
            values = [x for row in self.layers for x in row]
            numbers = [self.beta, self.empty, self.eps, self.lower, self.upper, *rises, *weights]
            if not all(type(x) is float and math.isfinite(x) for x in numbers + masses + values):
                raise CertificateError("a number is not a finite float")
            if not all(x >= 0 for x in rises + weights):
                raise CertificateError("a multiplier is negative")
            if [len(row) for row in self.layers] != [5] * (self.T + 1):
                raise CertificateError("v needs five numbers for every set size")
            for groups, inside in [
                (self.groups, [cell for cell, _ in self.cells]),
                *((groups, [cell for cell, _ in pairs]) for groups, _, pairs in self.multipliers),
            ]:
                if sum(groups) != self.T or groups[1] + groups[2] == 0 or min(groups) < 0:
                    raise CertificateError(f"{groups} are no groups of {self.T} labels")
                if not set(inside) <= set(_cells(groups)):
                    raise CertificateError(f"counts do not fit the groups {groups}")
        except (TypeError, ValueError) as error:
            raise CertificateError(f"this is no set certificate: {error}") from None
        if not (self.beta > 0 and 0 < self.empty <= 1 and 0 < self.eps <= 1):
            raise CertificateError("β must be positive, empty and ε in (0, 1]")
        return SetProblem(self.T, self.beta, self.empty), Fraction(self.eps)


def _tuples(value: Any) -> Any:
    return tuple(_tuples(x) for x in value) if isinstance(value, list | tuple) else value
