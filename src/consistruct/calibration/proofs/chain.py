"""Proof of H(ε) for the Hamming loss with binary chain scores: plain numbers, checked exactly.

Upper end: a pattern, a flow z and contrasts y, of which every choice is feasible; the value is a
sum of squares in fractions. Lower end: multipliers ν; for each the dynamic programme of
`structured.chain` bounds all patterns at once. It is run again: in fractions up to 20 parts,
beyond in integers that are rounded down (`chain_bounds`). No solver and no tolerance is involved.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar, Self

from consistruct.calibration.proofs.base import PlainCertificate
from consistruct.calibration.structured.chain import flow_value
from consistruct.calibration.structured.chain_bounds import chain_bounds, pair_bound
from consistruct.exceptions import CertificateError

__all__ = ["ChainCertificate", "exact_chain_bounds"]

EXACT_UP_TO = 20  # parts: a second or two in fractions
Truth = tuple[int, ...]


@dataclass(frozen=True)
class ChainCertificate(PlainCertificate):
    """lower ≤ H(ε) ≤ upper for Hamming(T) with Chain(T, 2).

    Attributes
    ----------
    fraction : str
        ε as a fraction: H jumps at multiples of 1/T, where the nearest float may be on either side.
    differs : tuple of bool
        The parts in which i and j differ.
    flow : tuple of float
        z along the T−1 edges; their scores are |z|/2T.
    contrast : tuple of float
        y of the differing parts: the law puts (1+y)/2 on the state of i.
    multipliers : tuple of float
        ν of the dynamic programmes; Theorem 7 covers what none of them does.
    """

    kind: ClassVar[str] = "chain"

    T: int
    fraction: str
    lower: float
    upper: float
    differs: tuple[bool, ...]
    flow: tuple[float, ...]
    contrast: tuple[float, ...]
    multipliers: tuple[float, ...]

    @property
    def eps(self) -> float:
        return float(Fraction(self.fraction))

    @property
    def pair(self) -> tuple[Truth, Truth]:
        """(i, j): j is all zeros, as labels of the loss, and i is one where they differ."""
        return tuple(int(differ) for differ in self.differs), (0,) * self.T

    @property
    def law(self) -> tuple[tuple[Truth, float], ...]:
        """Few truths with the marginals that the contrasts ask for, and their probabilities.

        One uniform number decides all parts: a part has the state of i below (1+y)/2.
        """
        shares = iter((1 + min(max(y, -1.0), 1.0)) / 2 for y in self.contrast)
        share = [next(shares) if differ else 1.0 for differ in self.differs]
        cuts = sorted({0.0, 1.0, *share})
        i, j = self.pair
        found: dict[Truth, float] = {}
        for low, high in pairwise(cuts):
            truth = tuple(a if s >= high else b for a, b, s in zip(i, j, share, strict=True))
            found[truth] = found.get(truth, 0.0) + high - low
        return tuple(found.items())

    def document(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def read(cls, document: dict[str, Any]) -> Self:
        fields: dict[str, Any] = {
            name: document[name] for name in cls.__dataclass_fields__ if name != "kind"
        }
        if unknown := set(document) - set(fields) - {"kind", "schema"}:
            raise CertificateError(f"unknown fields {sorted(unknown)}")
        rows = ("differs", "flow", "contrast", "multipliers")
        fields |= {name: tuple(fields[name]) for name in rows}
        return cls(**fields)

    @staticmethod
    def verify(document: dict[str, Any]) -> None:
        ChainCertificate.read(document).check()

    def check(self) -> None:
        """Recompute both ends exactly; raise CertificateError if they do not support the claim."""
        eps = self._checked()
        T, scale = self.T, 8 * self.T**2
        try:
            upper = flow_value(self.differs, self.flow, self.contrast, eps)
        except ValueError as error:
            raise CertificateError(str(error)) from None
        if Fraction(self.upper) * scale < upper:
            raise CertificateError(
                f"the upper bound {self.upper!r} is not attained, only {float(upper / scale)!r} is"
            )
        spare = T - eps * T
        most = math.floor(spare)
        bounds = [pair_bound(T, n, eps) for n in range(most + 1)]
        run: Callable[[int, int, float], list[Fraction]] = (
            exact_chain_bounds if T <= EXACT_UP_TO else chain_bounds
        )
        for nu in self.multipliers:
            for n, bound in enumerate(run(T, most, nu)):
                bounds[n] = max(bounds[n], bound - 2 * Fraction(nu) * (spare - n))
        lower = min(bounds)
        if Fraction(self.lower) * scale > lower:
            raise CertificateError(
                f"the lower bound {self.lower!r} is not proved, only {float(lower / scale)!r} is"
            )

    def _checked(self) -> Fraction:
        """ε, after a look at every field."""
        if type(self.T) is not int or self.T < 1:
            raise CertificateError(f"T must be a positive integer, got {self.T!r}")
        try:
            eps = Fraction(self.fraction)
        except (ValueError, TypeError, ZeroDivisionError):
            raise CertificateError(f"ε must be a fraction, got {self.fraction!r}") from None
        if not 0 < eps <= 1:
            raise CertificateError(f"ε must lie in (0, 1], got {self.fraction}")
        numbers = (self.lower, self.upper, *self.flow, *self.contrast, *self.multipliers)
        if not all(type(x) is float and math.isfinite(x) for x in numbers):
            raise CertificateError("bounds, flow, contrasts and multipliers must be finite floats")
        if not all(type(d) is bool for d in self.differs):
            raise CertificateError("differs must be true or false for every part")
        sizes = (len(self.differs), len(self.flow) + 1, len(self.contrast))
        if sizes != (self.T, self.T, sum(self.differs)):
            raise CertificateError(f"the lengths {sizes} do not fit {self.T} parts")
        if not all(0 < nu <= 1 and (nu * 2**20) % 1 == 0 for nu in self.multipliers):
            raise CertificateError("a multiplier must be a multiple of 2^-20 in (0, 1]")
        return eps


# --- the dynamic programme in fractions ---


@dataclass(frozen=True)
class _State:
    """A convex function of z: corners of φ = −f′/2, falling from c to 0, and f at the last one."""

    z: tuple[Fraction, ...]
    phi: tuple[Fraction, ...]
    value: Fraction

    def at(self, x: Fraction) -> Fraction:
        """f(x) = f(end) + 2∫φ; left of the corners φ is c, right of them 0."""
        if x >= self.z[-1]:
            return self.value
        total = self.value
        for k in range(len(self.z) - 1, 0, -1):
            (left, right), (high, low) = self.z[k - 1 : k + 1], self.phi[k - 1 : k + 1]
            if x >= left:
                here = low + (high - low) * (right - x) / (right - left)
                return total + (here + low) * (right - x)
            total += (high + low) * (right - left)
        return total + 2 * self.phi[0] * (self.z[0] - x)

    def slope(self, x: Fraction, *, right: bool) -> Fraction:
        """φ just right or just left of x."""
        for k in range(1, len(self.z)):
            (a, b), (high, low) = self.z[k - 1 : k + 1], self.phi[k - 1 : k + 1]
            if a < b and (a <= x < b if right else a < x <= b):
                return low + (high - low) * (b - x) / (b - a)
        beyond = x >= self.z[-1] if right else x > self.z[-1]
        return Fraction(0) if beyond else self.phi[0]

    def covers(self, other: _State) -> bool:
        """Whether this function is nowhere below the other: then it is not needed."""
        points = sorted({*self.z, *other.z})
        if any(self.at(x) < other.at(x) for x in points):
            return False
        for a, b in pairwise(points):
            # half the derivative of the difference, linear on the interval
            start = other.slope(a, right=True) - self.slope(a, right=True)
            end = other.slope(b, right=False) - self.slope(b, right=False)
            if start < 0 < end:
                x = a + (b - a) * start / (start - end)
                if self.at(x) < other.at(x):
                    return False
        return True

    def moved(self, differs: bool) -> _State:
        """One part: z + 1 − φ where i and j differ, z − 1 − φ where they agree."""
        step = 1 if differs else -1
        z = tuple(z + step - phi for z, phi in zip(self.z, self.phi, strict=True))
        return _State(z, self.phi, self.value)

    def crossed(self) -> _State:
        """One edge: f + z², φ − z, clipped to [0, c]."""
        cap = self.phi[0]
        z, phi = list(self.z), list(self.phi)
        if z[0] > 0:
            z.insert(0, Fraction(0))
            phi.insert(0, cap)
        if z[-1] < 0:
            z.append(Fraction(0))
            phi.append(Fraction(0))
        value = self.value + z[-1] ** 2
        phi = [p - x for p, x in zip(phi, z, strict=True)]
        while len(z) > 1 and phi[-2] < 0:
            value += (phi[-1] + phi[-2]) * (z[-1] - z[-2])
            z.pop()
            phi.pop()
        if phi[-1] < 0 and len(z) > 1:
            back = phi[-1] * (z[-1] - z[-2]) / (phi[-1] - phi[-2])
            value += phi[-1] * back
            z[-1] -= back
            phi[-1] = Fraction(0)
        while len(z) > 1 and phi[1] > cap:
            z.pop(0)
            phi.pop(0)
        if phi[0] > cap and len(z) > 1:
            z[0] += (phi[0] - cap) * (z[1] - z[0]) / (phi[0] - phi[1])
            phi[0] = cap
        inner = [(x, p) for x, p in zip(z, phi, strict=True) if 0 < p < cap]
        corners = [(z[0], cap), *inner, (z[-1], Fraction(0))]
        return _State(tuple(x for x, _ in corners), tuple(p for _, p in corners), value)


def exact_chain_bounds(T: int, most: int, nu: float) -> list[Fraction]:
    """L_n(ν) for n = 0 … `most`, exactly: the least over all patterns with n agreeing parts."""
    cap, zero = min(Fraction(nu), Fraction(1)), Fraction(0)
    states: dict[int, list[_State]] = {0: [_State((zero, zero), (cap, zero), zero)]}
    for _ in range(T - 1):
        grown: dict[int, list[_State]] = {}
        for n, functions in states.items():
            for function in functions:
                for m, differs in ((n, True), (n + 1, False)):
                    if m > most:
                        continue
                    new, kept = function.moved(differs).crossed(), grown.setdefault(m, [])
                    if not any(new.covers(other) for other in kept):
                        kept[:] = [other for other in kept if not other.covers(new)] + [new]
        states = grown
    found: dict[int, Fraction] = {}
    for n, functions in states.items():
        for m, differs in ((n, True), (n + 1, False)):
            values = [function.moved(differs).at(zero) for function in functions]
            if m <= most:
                found[m] = min(values + ([found[m]] if m in found else []))
    return [found[n] for n in range(most + 1)]
