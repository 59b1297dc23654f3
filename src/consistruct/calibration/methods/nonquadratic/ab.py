"""What the analysis needs of an (a, b) surrogate, Φ(f, y) = (1/k) Σ_c L(c, y) a(f_c) + b(f_c).

With u = a(f) and β(u) = b(f) — convex exactly where b'/a' increases — a label of expected loss ℓ
contributes ℓu + β(u), least at f*(ℓ) with −b'/a' = ℓ, and G(ℓ) = −min_f [ℓ a(f) + b(f)] is convex.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from consistruct.exceptions import ConsistructError
from consistruct.protocols import FloatArray
from consistruct.surrogates import ABSurrogate

__all__ = ["ABFamily"]

Function = Callable[[FloatArray], FloatArray]
BISECTIONS = 80
LARGEST = 1e7  # scores beyond it serve no tangent
NEGLIGIBLE = 1e-12  # what the surrogate may still gain beyond its window


@dataclass(frozen=True, eq=False)
class ABFamily:
    """An (a, b) surrogate with inverses and conjugates, by bisection where it has no formula."""

    surrogate: ABSurrogate

    def __post_init__(self) -> None:
        s, (low, high) = self.surrogate, self._ends
        if self.has("entropy"):
            return
        # beyond a window's end the surrogate could still fall by about |derivative|·distance
        for end, ell in ((low, self.l_max), (high, 0.0)):
            if end not in s.window:
                continue
            f = np.array([end])
            slope = float((ell * s.a(f)[1] + s.b(f)[1])[0])
            if not abs(slope) * (1 + abs(end)) <= NEGLIGIBLE * max(1.0, self.l_max):
                raise ConsistructError(
                    f"the surrogate {s.name!r} still falls at the end {end:g} of its window for "
                    f"the expected loss {ell:g}; widen `window` or check the conditions on (a, b)"
                )

    @property
    def l_max(self) -> float:
        return self.surrogate.l_max

    def has(self, formula: str) -> bool:
        """Whether the surrogate gives this optional formula."""
        return getattr(type(self.surrogate), formula) is not getattr(ABSurrogate, formula)

    def a(self, f: FloatArray) -> FloatArray:
        return self.surrogate.a(f)[0]

    def b(self, f: FloatArray) -> FloatArray:
        return self.surrogate.b(f)[0]

    @cached_property
    def _ends(self) -> tuple[float, float]:
        """f*(l_max) and f*(0) within the window."""
        ends = self._raw(np.array([self.l_max, 0.0]))
        return float(ends[0]), float(ends[1])

    def _raw(self, ell: FloatArray) -> FloatArray:
        low, high = self.surrogate.window
        found = self.surrogate.minimizer(ell)
        if found is not None:
            return np.clip(found, low, high)
        return _bisect(lambda f: -self.level(f), -ell, low, high)

    def best_score(self, ell: FloatArray) -> FloatArray:
        """f*(ℓ), which decreases in ℓ."""
        return np.clip(self._raw(np.clip(ell, 0.0, self.l_max)), *self._ends)

    def level(self, f: FloatArray) -> FloatArray:
        """−b'/a': the expected loss at which f is optimal."""
        return self.surrogate.loss_of_score(f)

    def level_of(self, u: FloatArray) -> FloatArray:
        """The expected loss at which u = a(f) is optimal, within [0, l_max]."""
        return np.clip(self.level(self._score_of(u)), 0.0, self.l_max)

    def entropy(self, ell: FloatArray) -> FloatArray:
        """G(ℓ)."""
        found = self.surrogate.entropy(ell)
        if found is not None:
            return found
        f = self.best_score(ell)
        return -(ell * self.a(f) + self.b(f))

    def curvature(self, ell: FloatArray) -> FloatArray:
        """G''(ℓ) by differences of G' = −a(f*)."""
        step = np.maximum(1e-4 * np.minimum(ell, self.l_max - ell), 1e-9 * self.l_max)
        low, high = np.maximum(ell - step, 0.0), np.minimum(ell + step, self.l_max)
        fall = self.a(self.best_score(low)) - self.a(self.best_score(high))
        return np.asarray(np.maximum(fall, 0.0) / (high - low))

    def excess(self, ell: FloatArray, f: FloatArray) -> FloatArray:
        """ℓ a(f) + b(f) + G(ℓ) ≥ 0."""
        return np.maximum(ell * self.a(f) + self.b(f) + self.entropy(ell), 0.0)

    def beta(self, u: FloatArray) -> FloatArray:
        """β(u), an upper bound on the conjugate of G on [0, l_max]; constant beyond f*(0).

        For u up to a(f*(l_max)) only: the terms that use it raise u.
        """
        return self.b(self._score_of(u))

    def beta_reflected(self, u: FloatArray) -> FloatArray:
        """β(u) + l_max·u, the conjugate in l_max − ℓ; constant below f*(l_max).

        The difference of two large numbers is rounded up.
        """
        f = self._score_of(u)
        found = self.surrogate.reflected(f)
        if found is not None:
            return found
        b, a = self.b(f), self.l_max * self.a(f)
        return b + a + 4e-16 * (np.abs(b) + np.abs(a))

    def _score_of(self, u: FloatArray) -> FloatArray:
        """The score with a(f) = u, within the ends."""
        low, high = self._ends
        inside = np.clip(u, *self.a(np.array([low, high])))
        found = self.surrogate.inverse(inside)
        if found is not None:
            return np.clip(found, low, high)
        return _bisect(self.a, inside, low, high)

    @cached_property
    def tangent_range(self) -> tuple[float, float]:
        """Scores whose u is small enough for tangents to be summed without loss of digits."""
        low, high = self._ends
        if self.has("reflected"):
            return low, high
        f = np.linspace(low, high, 2001)
        with np.errstate(over="ignore"):
            size = self.l_max * np.abs(self.a(f)) + np.abs(self.b(f))
        moderate = f[size <= LARGEST * max(1.0, self.l_max)]
        return (float(moderate[0]), float(moderate[-1])) if len(moderate) else (low, high)


def _bisect(function: Function, value: FloatArray, low: float, high: float) -> FloatArray:
    """x in [low, high] with function(x) = value, function increasing; an end if there is none."""
    left, right = np.full_like(value, low), np.full_like(value, high)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(BISECTIONS):
            middle = 0.5 * (left + right)
            below = function(middle) < value
            left, right = np.where(below, middle, left), np.where(below, right, middle)
    return 0.5 * (left + right)
