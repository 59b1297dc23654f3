"""Proofs for 0-1, block and mixed losses: one small problem per orbit of pairs, solved exactly."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Literal

from consistruct.calibration.proofs.base import down, plain, up
from consistruct.calibration.proofs.mixed import MixedCertificate
from consistruct.calibration.proofs.provers.pair import (
    IntegerPair,
    Piece,
    best_level,
    feasible_distribution,
    lemke,
    trace,
)
from consistruct.certificates.exact import integer_rows
from consistruct.certificates.mixed import Orbit, orbits
from consistruct.structures.classes import Partition

__all__ = ["MixedProver", "OrbitProof"]

Key = tuple[str, int] | tuple[str, int, int]


@dataclass(frozen=True, eq=False)
class OrbitProof:
    """lower ≤ H(ε)/scale ≤ upper."""

    lower: Fraction
    upper: Fraction
    key: Key
    distribution: list[Fraction]
    level: Fraction


@dataclass(frozen=True, eq=False)
class MixedProver:
    """All orbits of pairs of η·(0-1) + (1−η)·block with full or with block scores."""

    partition: Partition
    eta: Fraction
    scores: Literal["full", "blocks"]
    _points: dict[Key, list[tuple[list[Fraction], Fraction]]] = field(default_factory=dict)
    _proofs: dict[Fraction, OrbitProof | None] = field(default_factory=dict)

    @cached_property
    def scale(self) -> Fraction:
        sizes = self.partition.block_sizes
        return Fraction(1 if self.scores == "full" else min(sizes), sum(sizes))

    @cached_property
    def orbits(self) -> dict[Key, Orbit]:
        sizes = list(self.partition.block_sizes)
        return {key: Orbit(sizes, self.eta, self.scores, key) for key in orbits(sizes, self.scores)}

    @cached_property
    def max_eps(self) -> Fraction:
        """The largest excess risk; 0 if there is one label, or one block under block scores."""
        return max((max(orbit.gap()) for orbit in self.orbits.values()), default=Fraction(0))

    def _pair(self, orbit: Orbit) -> tuple[IntegerPair, int, int]:
        """The problem over cells other than j, and the units of losses and of the kernel."""
        rows = [row for c, row in enumerate(orbit.projected) if c != 1]
        differences = [
            [a - b for a, b in zip(row, orbit.projected[1], strict=True)] for row in rows
        ]
        both, unit = integer_rows([*differences, orbit.gap()])
        inverse = [1 / n for n in orbit.weights]
        others = [x for c, x in enumerate(inverse) if c != 1]
        kernel, scale = integer_rows(
            [
                [inverse[1] + (x if a == b else 0) for b in range(len(others))]
                for a, x in enumerate(others)
            ]
        )
        return IntegerPair(kernel, both[:-1], both[-1]), unit, scale

    def _solve(
        self, orbit: Orbit, eps: Fraction
    ) -> tuple[Fraction, list[Fraction], Fraction, list[Fraction], Fraction]:
        """Value, distribution and level of the best primal point, w and ν of the best dual one."""
        pair, unit, _ = self._pair(orbit)
        q, w, nu = lemke(pair, eps * unit).at(eps * unit)
        distribution = feasible_distribution(q, pair.g, eps * unit)
        assert distribution is not None
        expected = [
            sum((x * p for x, p in zip(distribution, row, strict=True)), Fraction(0))
            for row in orbit.projected
        ]
        level = best_level(expected, orbit.weights, 1)
        return (
            orbit.value(distribution, level, eps),
            distribution,
            level,
            [w[0], Fraction(0), *w[1:]],
            nu,
        )

    def prove(self, eps: Fraction) -> OrbitProof | None:
        """H(ε) for ε > 0; None above max_eps."""
        if eps not in self._proofs:
            self._proofs[eps] = self._search(eps)
        return self._proofs[eps]

    def _search(self, eps: Fraction) -> OrbitProof | None:
        lower: dict[Key, Fraction] = {}
        for key, orbit in self.orbits.items():
            if max(orbit.gap()) >= eps:
                lower[key] = max(orbit.bound(w, nu, eps) for w, nu in self._known(key))
        best: OrbitProof | None = None
        for key in sorted(lower, key=lambda key: lower[key]):
            if best is not None and lower[key] >= best.upper:
                continue
            value, distribution, level, w, nu = self._solve(self.orbits[key], eps)
            found = self.orbits[key].bound(w, nu, eps)
            if found > lower[key]:
                lower[key] = found
                self._points.setdefault(key, []).append((w, nu))
            if best is None or value < best.upper:
                best = OrbitProof(Fraction(0), value, key, distribution, level)
        if best is None:
            return None
        return OrbitProof(min(best.upper, *lower.values()), best.upper, *_rest(best))

    def _known(self, key: Key) -> list[tuple[list[Fraction], Fraction]]:
        n = len(self.orbits[key].weights)
        start = [Fraction(int(c == 0)) for c in range(n)], Fraction(1)
        return [start, *self._points.get(key, [])]

    def labels(self, key: Key) -> tuple[int, int]:
        """A pair (i, j) of the orbit."""
        sizes = self.partition.block_sizes
        one = sizes.index(key[1])
        if key[0] == "same":
            return self._label(one, 0), self._label(one, 1)
        other = next(b for b, size in enumerate(sizes) if size == key[-1] and b != one)
        return self._label(one, 0), self._label(other, 0)

    def _label(self, block: int, position: int) -> int:
        assignment = self.partition.assignment
        if assignment is None:
            return self.partition.first_labels[block] + position
        return [label for label, b in enumerate(assignment.tolist()) if b == block][position]

    def certificate(self, eps: Fraction) -> MixedCertificate | None:
        """All that a check of H(ε) needs."""
        proof = self.prove(eps)
        if proof is None:
            return None
        points = {}
        for key, orbit in self.orbits.items():
            if max(orbit.gap()) >= eps:
                known = self._known(key)
                bounds = [orbit.bound(w, nu, eps) for w, nu in known]
                best = known[bounds.index(max(bounds))]
                if best is not known[0]:
                    points[":".join(map(str, key))] = best
        assignment = self.partition.assignment
        return MixedCertificate(
            sizes=self.partition.block_sizes,
            assignment=None if assignment is None else assignment.tolist(),
            eta=plain(self.eta),
            scores=self.scores,
            eps=plain(eps),
            lower=down(proof.lower),
            upper=up(proof.upper),
            pair=self.labels(proof.key),
            distribution=list(proof.distribution),
            level=proof.level,
            points={key: (list(w), nu) for key, (w, nu) in points.items()},
        )

    @cached_property
    def curves(self) -> list[list[Piece]]:
        """H/scale of every orbit as rational pieces."""
        found = []
        for orbit in self.orbits.values():
            pair, unit, scale = self._pair(orbit)
            factor = Fraction(scale, unit**2)
            found.append(
                [
                    (low / unit, high / unit, a * factor * unit**2, b * factor * unit, c * factor)
                    for low, high, a, b, c in trace(pair, lambda at, pair=pair: lemke(pair, at))  # type: ignore[misc]
                ]
            )
        return found


def _rest(proof: OrbitProof) -> tuple[Key, list[Fraction], Fraction]:
    return proof.key, proof.distribution, proof.level
