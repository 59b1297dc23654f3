"""The (a, b) family Φ(f, y) = (1/k) Σ_c L(c, y) a(f_c) + b(f_c) and what its analysis needs.

With u = a(f) and β(u) = b(f) — convex exactly where b'/a' increases — a label of expected loss ℓ
contributes ℓu + β(u), least at f*(ℓ) with −b'/a' = ℓ, and G(ℓ) = −min_f [ℓ a(f) + b(f)] is convex.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy  # its submodules are imported on use

from consistruct.exceptions import ConsistructError
from consistruct.protocols import FloatArray

__all__ = ["ABFamily", "ABSurrogate", "exponential", "logistic", "quadratic"]

Function = Callable[[FloatArray], FloatArray]
BISECTIONS = 80
LARGEST = 1e7  # scores beyond it serve no tangent
NEGLIGIBLE = 1e-12  # what the surrogate may still gain beyond its window


@dataclass(frozen=True, eq=False)
class ABSurrogate:
    """Functions a, b of a score and their derivatives, elementwise on NumPy arrays.

    Asked of them: a and b'/a' strictly increasing, ℓa + b bounded below for ℓ in [0, Lmax];
    `check_conditions` proves or refutes this.

    Parameters
    ----------
    a, b, da, db : callable
        The functions and their derivatives.
    name : str
    minimiser : callable, optional
        f*(ℓ); found by bisection on −b'/a' = ℓ if not given.
    inverse : callable, optional
        The inverse of a; found by bisection if not given.
    entropy : callable, optional
        G(ℓ) = −min_f [ℓ a(f) + b(f)]; from f* if not given.
    reflected : callable, optional
        b + Lmax·a where the sum cancels; for bounds at large negative scores.
    variance : callable, optional
        1/G''(ℓ), which must rise up to Lmax/2 and fall after it; makes the search faster.
    jointly_convex : bool
        Whether 1/G'' is concave, a claim that the caller answers for: then one tangent plane
        proves the lower bound and no search is needed.
    window : (float, float)
        Scores that are looked at. The surrogate must have reached its infimum there up to rounding
        for every ℓ in [0, Lmax], which is checked.

    Examples
    --------
    >>> import numpy as np, consistruct as cs
    >>> from consistruct.calibration import ABSurrogate
    >>> square = ABSurrogate(
    ...     lambda f: f, lambda f: f**2 / 2, np.ones_like, lambda f: f, "sq", jointly_convex=True
    ... )
    >>> H = cs.calibration_function(cs.losses.ZeroOne(3), surrogate=square)
    >>> round(H(0.6), 7)     # the quadratic surrogate: ε²/4k
    0.03
    """

    a: Function
    b: Function
    da: Function
    db: Function
    name: str
    minimiser: Function | None = None
    inverse: Function | None = None
    entropy: Function | None = None
    reflected: Function | None = None
    variance: Function | None = None
    jointly_convex: bool = False
    window: tuple[float, float] = (-200.0, 200.0)


def logistic(l_max: float) -> ABSurrogate:
    """a = f/Lmax, b = log(1 + e^−f); f* = log((1 − p)/p), p = ℓ/Lmax."""
    return ABSurrogate(
        lambda f: f / l_max,
        lambda f: np.logaddexp(0.0, -f),
        lambda f: np.full_like(f, 1 / l_max),
        lambda f: -1 / (1 + np.exp(f)),
        "logistic",
        lambda ell: _log_odds(ell / l_max),
        lambda u: u * l_max,
        lambda ell: -(scipy.special.entr(ell / l_max) + scipy.special.entr(1 - ell / l_max)),
        lambda f: np.logaddexp(0.0, f),
        jointly_convex=True,  # 1/G'' = ℓ(Lmax − ℓ)
        window=(-40.0, 40.0),
    )


def exponential(l_max: float) -> ABSurrogate:
    """a = (e^f − e^−f)/Lmax, b = e^−f; f* = ½ log((1 − p)/p), p = ℓ/Lmax."""
    return ABSurrogate(
        lambda f: 2 * np.sinh(f) / l_max,
        lambda f: np.exp(-f),
        lambda f: 2 * np.cosh(f) / l_max,
        lambda f: -np.exp(-f),
        "exponential",
        lambda ell: 0.5 * _log_odds(ell / l_max),
        lambda u: np.arcsinh(u * l_max / 2),
        lambda ell: -2 * np.sqrt(np.clip(ell / l_max * (1 - ell / l_max), 0.0, None)),
        np.exp,
        lambda ell: 2 * l_max**2 * np.clip(ell / l_max * (1 - ell / l_max), 0.0, None) ** 1.5,
        window=(-28.0, 28.0),
    )


def quadratic(l_max: float) -> ABSurrogate:
    """a = f, b = f²/2; f* = −ℓ."""
    return ABSurrogate(
        lambda f: f, lambda f: f**2 / 2, np.ones_like, lambda f: f, "quadratic (a, b)",
        lambda ell: -ell, lambda u: u, lambda ell: ell**2 / 2,
        jointly_convex=True, window=(-2 * l_max - 1, 1.0),
    )  # fmt: skip


def _log_odds(p: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.log1p(-np.clip(p, 0.0, 1.0)) - np.log(np.clip(p, 0.0, 1.0))


@dataclass(frozen=True, eq=False)
class ABFamily:
    """An (a, b) surrogate for losses in [0, l_max]."""

    surrogate: ABSurrogate
    l_max: float

    def __post_init__(self) -> None:
        s, (low, high) = self.surrogate, self._ends
        if s.entropy is not None:
            return
        # beyond a window's end the surrogate could still fall by about |derivative|·distance
        for end, ell in ((low, self.l_max), (high, 0.0)):
            if end not in s.window:
                continue
            f = np.array([end])
            slope = float((ell * s.da(f) + s.db(f))[0])
            if not abs(slope) * (1 + abs(end)) <= NEGLIGIBLE * max(1.0, self.l_max):
                raise ConsistructError(
                    f"the surrogate {s.name!r} still falls at the end {end:g} of its window for "
                    f"the expected loss {ell:g}; widen `window` or check the conditions on (a, b)"
                )

    @cached_property
    def _ends(self) -> tuple[float, float]:
        """f*(l_max) and f*(0) within the window."""
        ends = self._raw(np.array([self.l_max, 0.0]))
        return float(ends[0]), float(ends[1])

    def _raw(self, ell: FloatArray) -> FloatArray:
        low, high = self.surrogate.window
        if self.surrogate.minimiser is not None:
            return np.clip(self.surrogate.minimiser(ell), low, high)
        return _bisect(lambda f: -self.level(f), -ell, low, high)

    def best_score(self, ell: FloatArray) -> FloatArray:
        """f*(ℓ), which decreases in ℓ."""
        return np.clip(self._raw(np.clip(ell, 0.0, self.l_max)), *self._ends)

    def level(self, f: FloatArray) -> FloatArray:
        """−b'/a': the expected loss at which f is optimal."""
        return -self.surrogate.db(f) / self.surrogate.da(f)

    def level_of(self, u: FloatArray) -> FloatArray:
        """The expected loss at which u = a(f) is optimal, within [0, l_max]."""
        return np.clip(self.level(self._score_of(u)), 0.0, self.l_max)

    def entropy(self, ell: FloatArray) -> FloatArray:
        """G(ℓ)."""
        if self.surrogate.entropy is not None:
            return self.surrogate.entropy(ell)
        f = self.best_score(ell)
        return -(ell * self.surrogate.a(f) + self.surrogate.b(f))

    def curvature(self, ell: FloatArray) -> FloatArray:
        """G''(ℓ) by differences of G' = −a(f*)."""
        step = np.maximum(1e-4 * np.minimum(ell, self.l_max - ell), 1e-9 * self.l_max)
        low, high = np.maximum(ell - step, 0.0), np.minimum(ell + step, self.l_max)
        fall = self.surrogate.a(self.best_score(low)) - self.surrogate.a(self.best_score(high))
        return np.asarray(np.maximum(fall, 0.0) / (high - low))

    def excess(self, ell: FloatArray, f: FloatArray) -> FloatArray:
        """ℓ a(f) + b(f) + G(ℓ) ≥ 0."""
        s = self.surrogate
        return np.maximum(ell * s.a(f) + s.b(f) + self.entropy(ell), 0.0)

    def beta(self, u: FloatArray) -> FloatArray:
        """β(u), an upper bound on the conjugate of G on [0, l_max]; constant beyond f*(0).

        For u up to a(f*(l_max)) only: the terms that use it raise u.
        """
        return self.surrogate.b(self._score_of(u))

    def beta_reflected(self, u: FloatArray) -> FloatArray:
        """β(u) + l_max·u, the conjugate in l_max − ℓ; constant below f*(l_max).

        The difference of two large numbers is rounded up.
        """
        f, s = self._score_of(u), self.surrogate
        if s.reflected is not None:
            return s.reflected(f)
        b, a = s.b(f), self.l_max * s.a(f)
        return b + a + 4e-16 * (np.abs(b) + np.abs(a))

    def _score_of(self, u: FloatArray) -> FloatArray:
        """The score with a(f) = u, within the ends."""
        low, high = self._ends
        inside = np.clip(u, *self.surrogate.a(np.array([low, high])))
        if self.surrogate.inverse is not None:
            return np.clip(self.surrogate.inverse(inside), low, high)
        return _bisect(self.surrogate.a, inside, low, high)

    @cached_property
    def tangent_range(self) -> tuple[float, float]:
        """Scores whose u is small enough for tangents to be summed without loss of digits."""
        low, high = self._ends
        if self.surrogate.reflected is not None:
            return low, high
        f = np.linspace(low, high, 2001)
        with np.errstate(over="ignore"):
            size = self.l_max * np.abs(self.surrogate.a(f)) + np.abs(self.surrogate.b(f))
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
