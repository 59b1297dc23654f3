"""Closed forms, orbits of blocks, and the Hamming formula."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from consistruct.calibration.methods.base import Method, PairedMethod, Progress, each
from consistruct.calibration.parametric import lower_envelope, trace_pair
from consistruct.calibration.point import CurvePoint, status_of
from consistruct.calibration.pool import PairPool
from consistruct.calibration.proofs import Certificate, HammingCertificate, OrbitCertificate
from consistruct.calibration.structured import BlockOrbits, ClosedForm, HammingFull
from consistruct.calibration.structured.closed_forms import Quadratic
from consistruct.exceptions import ConsistructError
from consistruct.protocols import FloatArray

__all__ = ["ClosedFormMethod", "HammingMethod", "OrbitMethod"]


@dataclass(eq=False)
class ClosedFormMethod(Method):
    """A formula; `prover` is the numerical method that certifies it, where one is fast enough."""

    form: ClosedForm
    prover: Method | None

    def __post_init__(self) -> None:
        self.name = "closed form"
        self.log_scale = self.form.log_scale
        self.cheap_pieces = True

    @property
    def max_eps(self) -> float:
        return self.form.max_eps

    def points(self, eps: FloatArray, progress: Progress | None = None) -> list[CurvePoint]:
        def point(value: float) -> CurvePoint:
            scaled = self.form.scaled(value)
            low, high = scaled * (1 - 1e-14), scaled * (1 + 1e-14)
            pair = self.prover.pair_at(value) if isinstance(self.prover, PairedMethod) else None
            return CurvePoint(value, low, high, self.log_scale, self.name, "exact", pair)

        return each(eps, point, progress)

    def certificate(self, eps: float) -> Certificate:
        if self.prover is None:
            raise ConsistructError(
                f"the value is that of a formula ({self.form.name}: {self.form.formula}); "
                f"there are too many blocks to certify it numerically"
            )
        return self.prover.certificate(eps)

    @property
    def consistency_level(self) -> float:
        return self.form.level

    @property
    def approximation_error(self) -> float:
        return self.form.error

    def pieces(self) -> tuple[Quadratic, ...]:
        return self.form.pieces


@dataclass(eq=False)
class OrbitMethod(Method):
    """0-1, block and mixed losses of any size with full scores."""

    orbits: BlockOrbits

    def __post_init__(self) -> None:
        self.name = "symmetric reduction"
        self.log_scale = self.orbits.source.log_scale
        self._pool = PairPool(self.orbits.source)

    @property
    def max_eps(self) -> float:
        return float(self.orbits.source.limits.max(initial=0.0))

    def points(self, eps: FloatArray, progress: Progress | None = None) -> list[CurvePoint]:
        def point(value: float) -> CurvePoint:
            found = self._pool.point(value)
            status = status_of(found.lower, found.upper, self.max_eps**2)
            pair = self.orbits.orbits[found.pair][0] if found.pair >= 0 else None
            return CurvePoint(
                value, found.lower, found.upper, self.log_scale, self.name, status, pair
            )

        return each(eps, point, progress)

    def certificate(self, eps: float) -> Certificate:
        found = self._pool.point(eps)
        if found.solution is None:
            raise ConsistructError(f"no pair is feasible at ε = {eps}: H is +inf, nothing to prove")
        pair, cells = self.orbits.orbits[found.pair]
        multipliers = [self._best_dual(number, eps) for number in range(len(self.orbits.orbits))]
        return OrbitCertificate(
            self.orbits,
            eps,
            found.lower,
            found.upper,
            pair,
            tuple(cell.description for cell in cells),
            found.solution.q,
            self.orbits.scores(found.pair, found.solution.v, found.solution.q),
            found.solution.v,
            found.pair,
            tuple(multipliers),
        )

    def _best_dual(self, number: int, eps: float) -> tuple[FloatArray, float]:
        source = self.orbits.source
        line = source.start_line(number, eps)
        start = np.zeros(len(source.problems[number].order))
        start[source.own_row[number]] = 1.0
        best, w = line.lower(eps), (start, line.nu)
        for stored in self._pool.stored:
            if stored.pair == number and stored.line.lower(eps) > best:
                best, w = stored.line.lower(eps), (stored.w, stored.line.nu)
        return w

    def pieces(self) -> tuple[Quadratic, ...]:
        return lower_envelope([trace_pair(problem) for problem in self.orbits.source.problems])


@dataclass(eq=False)
class HammingMethod(Method):
    """Hamming loss with full scores, by the scalar formula."""

    form: HammingFull

    def __post_init__(self) -> None:
        self.name = "closed form"
        self.log_scale = -math.log(self.form.loss.n_labels or 1)

    @property
    def max_eps(self) -> float:
        return 1.0

    def _pair(self, d: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        T = self.form.loss.T
        assert T is not None
        return (0,) * T, (1,) * d + (0,) * (T - d)

    def points(self, eps: FloatArray, progress: Progress | None = None) -> list[CurvePoint]:
        def point(value: float) -> CurvePoint:
            found = self.form.point(value)
            best = int(found.upper.argmin())
            low, high = float(found.lower.min()), float(found.upper[best])
            pair = self._pair(int(found.d[best]))
            return CurvePoint(value, low, high, self.log_scale, self.name, "exact", pair)

        return each(eps, point, progress)

    def certificate(self, eps: float) -> Certificate:
        found = self.form.point(eps)
        best = int(found.upper.argmin())
        d = int(found.d[best])
        assert self.form.loss.T is not None
        delta = min(eps * self.form.loss.T / d, 1.0)
        return HammingCertificate(
            self.form,
            eps,
            float(found.lower.min()),
            float(found.upper[best]),
            self.log_scale,
            self._pair(d),
            ((1 + delta) / 2, (1 - delta) / 2),
            tuple(found.x.tolist()),
        )
