"""Closed forms, orbits of blocks, and the Hamming loss: exact arithmetic at any size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from consistruct.calibration.curve import (
    CurvePoint,
    Method,
    Progress,
    at_each,
    status_of,
)
from consistruct.calibration.methods.explicit.parametric import lower_envelope
from consistruct.calibration.methods.orbits import ClosedForm, HammingFull, snapped
from consistruct.calibration.methods.orbits.closed_forms import Quadratic
from consistruct.calibration.proofs import Certificate
from consistruct.calibration.proofs.base import down, plain, up
from consistruct.calibration.proofs.hamming import HammingCertificate
from consistruct.calibration.proofs.provers.mixed import MixedProver, OrbitProof
from consistruct.certificates.hamming import full_bounds
from consistruct.exceptions import ConsistructError
from consistruct.losses.hamming import Hamming
from consistruct.protocols import FloatArray

__all__ = ["ClosedFormMethod", "HammingMethod", "MixedMethod", "SeparableHammingMethod"]

FLOAT_SLACK = 1e-9  # far above the rounding errors of the float formula, far below any claim


@dataclass(eq=False)
class ClosedFormMethod(Method):
    """A formula; `prover` is the method that certifies it."""

    form: ClosedForm
    prover: Method

    def __post_init__(self) -> None:
        self.name = "closed form"
        self.scale = self.form.scale
        self.log_scale = self.form.log_scale
        self.fast_pieces = True

    @property
    def max_eps(self) -> float:
        return self.form.max_eps

    def points(self, eps: FloatArray, progress: Progress | None = None) -> list[CurvePoint]:
        def point(value: float) -> CurvePoint:
            exact = self.form.value(Fraction(value))
            assert exact is not None
            pair = self.prover.pair_at(value)
            return CurvePoint(
                value, down(exact), up(exact), self.log_scale, self.name, "exact", pair, self.scale
            )

        return at_each(eps, point, progress)

    def certificate(self, eps: float) -> Certificate:
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
class MixedMethod(Method):
    """0-1, block and mixed losses of any size, with full scores or those of their blocks."""

    prover: MixedProver

    def __post_init__(self) -> None:
        self.name = "symmetric reduction"
        self.fast_pieces = True  # a handful of orbits
        self.scale = self.prover.scale
        self.log_scale = math.log(self.scale.numerator) - math.log(self.scale.denominator)

    @property
    def max_eps(self) -> float:
        return down(self.prover.max_eps)

    def _prove(self, eps: float) -> OrbitProof:
        found = self.prover.prove(Fraction(eps))
        if found is None:
            raise ConsistructError(f"no pair is feasible at ε = {eps}: H is +inf, nothing to prove")
        return found

    def points(self, eps: FloatArray, progress: Progress | None = None) -> list[CurvePoint]:
        def point(value: float) -> CurvePoint:
            found = self._prove(value)
            low, high = down(found.lower), up(found.upper)
            status = status_of(low, high, self.max_eps**2)
            pair = self.prover.labels(found.key)
            return CurvePoint(value, low, high, self.log_scale, self.name, status, pair, self.scale)

        return at_each(eps, point, progress)

    def certificate(self, eps: float) -> Certificate:
        self._prove(eps)
        found = self.prover.certificate(Fraction(eps))
        assert found is not None
        return found

    @property
    def consistency_level(self) -> float:
        flat = [
            high for curve in self.prover.curves for _, high, a, b, c in curve if a == b == c == 0
        ]
        return down(max(flat, default=Fraction(0)))

    @property
    def approximation_error(self) -> float:
        # a true label in a large block that is not its first label: only that label is free of η
        merged = self.prover.scores == "blocks" and max(self.prover.partition.block_sizes) > 1
        return float(self.prover.eta) if merged else 0.0

    def pieces(self) -> tuple[Quadratic, ...]:
        return lower_envelope(self.prover.curves)


@dataclass(eq=False)
class HammingMethod(Method):
    """Hamming loss with full scores, by the scalar formula."""

    form: HammingFull

    def __post_init__(self) -> None:
        self.name = "closed form"
        self.scale = Fraction(1, self.form.loss.n_labels or 1)
        self.log_scale = -math.log(self.form.loss.n_labels or 1)
        self._proved: dict[float, tuple[Fraction, Fraction, int, dict[int, Fraction]]] = {}

    @property
    def max_eps(self) -> float:
        return 1.0

    def _prove(self, eps: float) -> tuple[Fraction, Fraction, int, dict[int, Fraction]]:
        """Exact bounds on k·H, the number of differing parts, and x of the orbits near the least.

        Floats decide the orbits that are clearly above it; the certificate proves them too.
        """
        if eps not in self._proved:
            T, s = self.form.loss.T, self.form.loss.n_states
            assert T is not None
            at = snapped(eps, T)
            found = self.form.point(eps)
            near = found.lower <= found.upper.min() * (1 + FLOAT_SLACK)
            x, lows, highs = {}, {}, {}
            for d, value in zip(found.d[near].tolist(), found.x[near].tolist(), strict=True):
                x[d] = self.form.refined(at, d, min(max(value, 0.0), float(at)))
                lows[d], highs[d] = full_bounds(T, s, at, d, x[d])
            best = min(highs, key=lambda d: highs[d])
            self._proved[eps] = min(lows.values()), highs[best], best, x
        return self._proved[eps]

    def points(self, eps: FloatArray, progress: Progress | None = None) -> list[CurvePoint]:
        T = self.form.loss.T
        assert T is not None

        def point(value: float) -> CurvePoint:
            low, high, d, _ = self._prove(value)
            pair = (0,) * T, (1,) * d + (0,) * (T - d)
            return CurvePoint(
                value, down(low), up(high), self.log_scale, self.name, "exact", pair, self.scale
            )

        return at_each(eps, point, progress)

    def certificate(self, eps: float) -> Certificate:
        low, high, d, refined = self._prove(eps)
        T, s = self.form.loss.T, self.form.loss.n_states
        assert T is not None
        at, found = snapped(eps, T), self.form.point(eps)
        x = {
            number: refined.get(number, min(max(Fraction(value), Fraction(0)), at))
            for number, value in zip(found.d.tolist(), found.x.tolist(), strict=True)
        }
        return HammingCertificate(
            T, s, "full", plain(at), down(low), up(high), d,
            {number: plain(value) for number, value in x.items()},
        )  # fmt: skip


@dataclass(eq=False)
class SeparableHammingMethod(Method):
    """Hamming loss with separable scores: ε²/4sT, proved by two lines of arithmetic."""

    loss: Hamming

    def __post_init__(self) -> None:
        self.name = "closed form"
        self.scale = Fraction(1)

    @property
    def max_eps(self) -> float:
        return 1.0

    def pair_at(self, eps: float) -> tuple[tuple[int, ...], tuple[int, ...]]:
        assert self.loss.T is not None
        return (0,) * self.loss.T, (1,) * self.loss.T

    def _value(self, eps: float) -> Fraction:
        assert self.loss.T is not None
        return Fraction(eps) ** 2 / (4 * self.loss.n_states * self.loss.T)

    def points(self, eps: FloatArray, progress: Progress | None = None) -> list[CurvePoint]:
        def point(value: float) -> CurvePoint:
            low, high = down(self._value(value)), up(self._value(value))
            pair = self.pair_at(value)
            return CurvePoint(value, low, high, 0.0, self.name, "exact", pair, self.scale)

        return at_each(eps, point, progress)

    def certificate(self, eps: float) -> Certificate:
        T, s = self.loss.T, self.loss.n_states
        assert T is not None
        value = self._value(eps)
        return HammingCertificate(T, s, "separable", eps, down(value), up(value), T, {})
