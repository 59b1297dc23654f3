"""F-beta over all set sizes: orbits of pairs of label sets."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from consistruct.calibration.certificate import Line
from consistruct.calibration.curve import CurvePoint, Method, Progress, at_each, status_of
from consistruct.calibration.envelope import squared_lines
from consistruct.calibration.pool import PairPool
from consistruct.calibration.proofs.base import down, up
from consistruct.calibration.proofs.checkers.sets import SetProblem
from consistruct.calibration.proofs.sets import Multipliers, SetCertificate
from consistruct.calibration.structured.set_orbits import (
    Groups,
    SetPairs,
    cells_of,
    layer_values,
)
from consistruct.exceptions import ConsistructError
from consistruct.losses.fbeta import FBeta
from consistruct.protocols import FloatArray

__all__ = ["SetMethod"]

NEGLIGIBLE = 1e-9  # share of the largest weight, left out of certificates


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
        law = tuple((cell, float(p)) for cell, p in zip(cells, found.solution.q, strict=True) if p)
        layers = tuple(
            tuple(row)
            for row in layer_values(T, groups, self._coordinates(groups, found.solution.v)).tolist()
        )
        at = Fraction(eps)
        upper = exact.primal(groups, law, layers, at)
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
            law, layers, tuple(chosen),
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
