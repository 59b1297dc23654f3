"""The optimality conditions of a pair of distributions, solved to forty digits.

Interior-point solvers give distributions to about six digits, which bounds the value to twelve from
above but only to six from below, and nothing at all where ε² is below rounding. With the entries of
p and q that are not zero and the active order constraints W held fixed, the conditions are smooth:
Newton steps with residuals in decimal arithmetic and a Jacobian in floats gain digits at every
step. A wrong guess of what is active does no harm, because the bounds are recomputed from the
points, and is revised by the signs that come out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from consistruct.protocols import FloatArray, IntArray

__all__ = ["Conditions", "KLConditions", "SquaredConditions", "Stationary"]

STEPS = 14
ARITHMETIC = Context(prec=50)
SOLVED = Decimal("1e-40")
VIOLATED = 1e-15
LARGEST = 300.0
BITS = 200  # multipliers are integers over 2^200

Numbers = list[Decimal]


@dataclass(frozen=True, eq=False)
class Stationary:
    """Distributions and multipliers at which the conditions hold."""

    distribution: FloatArray  # (m,)
    estimate: FloatArray  # (m,)
    w: FloatArray  # (c,)
    nu: float
    free: FloatArray  # X of shape (1,), or z of shape (m,)
    exact: dict[str, Any]  # nu, w as [row, weight], X or z: rationals
    next: Conditions | None = None  # a better guess of what is active, if the signs request one


@dataclass(frozen=True, eq=False)
class Conditions(ABC):
    """One guess of what is active: smooth equations in as many unknowns."""

    order: FloatArray  # (c, m)
    gap: FloatArray  # (m,)
    eps: float
    active: IntArray  # rows of `order` that hold with equality

    @abstractmethod
    def start(self) -> FloatArray:
        """The unknowns, nearly."""

    @abstractmethod
    def residual(self, x: Numbers) -> Numbers: ...

    @abstractmethod
    def jacobian(self, x: FloatArray) -> FloatArray: ...

    @abstractmethod
    def plausible(self, x: FloatArray) -> bool:
        """False where a step has led to numbers that are no probabilities by far."""

    @abstractmethod
    def read(self, x: Numbers) -> Stationary: ...

    @abstractmethod
    def revised(self, x: FloatArray) -> Conditions:
        """Without what came out negative, with what is violated."""

    def solve(self) -> Stationary | None:
        """None where the iteration runs away."""
        with localcontext(ARITHMETIC):
            return self._solve()

    def _solve(self) -> Stationary | None:
        x = _decimals(self.start())
        last = Decimal("Infinity")
        for _ in range(STEPS):
            point = np.array([float(value) for value in x])
            if not np.isfinite(point).all() or not self.plausible(point):
                return None
            left = self.residual(x)
            size = max((abs(value) for value in left), default=Decimal(0))
            if not size.is_finite() or size <= SOLVED or size > 100 * last:
                break
            last = size
            scaled = np.array([float(value / size) for value in left])
            step = np.linalg.lstsq(self.jacobian(point), -scaled, rcond=1e-13)[0]
            if not np.isfinite(step).all():
                return None
            x = [a + size * Decimal(b) for a, b in zip(x, step.tolist(), strict=True)]
        return replace(self.read(x), next=self._next(np.array([float(value) for value in x])))

    def _next(self, x: FloatArray) -> Conditions | None:
        other = self.revised(x)
        return None if other.guess() == self.guess() else other

    @abstractmethod
    def guess(self) -> tuple[tuple[int, ...], ...]:
        """What is taken for active."""

    def _combined(self, w: Numbers, columns: IntArray) -> Numbers:
        """wᵀA on some columns."""
        rows = self.order[np.ix_(self.active, columns)].T.tolist()
        return [_dot(w, _decimals(row)) for row in rows]

    def _multipliers(self, w: Numbers) -> tuple[FloatArray, list[list[Any]]]:
        full = np.zeros(len(self.order))
        full[self.active] = [max(float(value), 0.0) for value in w]
        pairs = zip(self.active.tolist(), w, strict=True)
        return full, [[row, _rational(value)] for row, value in pairs if value > 0]


@dataclass(frozen=True, eq=False)
class KLConditions(Conditions):
    """Unknowns p_S, w_W, ν, x and λ; r_y = exp(ν(gap_y − ε) − x):

    wᵀA_y − r_y + λ = 0 (y in S),   A_W p = 0,   Σp = 1,   p·r = 1,   p·(r (gap − ε)) = 0.
    """

    p: FloatArray
    support: IntArray  # S
    w: FloatArray
    nu: float
    x: float
    nu_free: bool

    def start(self) -> FloatArray:
        d = self.gap[self.support] - self.eps
        with np.errstate(over="ignore"):
            r = np.exp(np.clip(self.nu * d - self.x, -700.0, 700.0))
        rest = r - self.w[self.active] @ self.order[np.ix_(self.active, self.support)]
        last = [self.nu, self.x, float(np.mean(rest))]
        return np.concatenate([self.p[self.support], self.w[self.active], last])

    def _parts(self, x: Numbers) -> tuple[Numbers, Numbers, Decimal, Decimal, Decimal]:
        n, c = len(self.support), len(self.active)
        return x[:n], x[n : n + c], x[-3], x[-2], x[-1]

    def _excess(self) -> Numbers:
        eps = Decimal(self.eps)
        return [Decimal(d) - eps for d in self.gap[self.support].tolist()]

    def residual(self, x: Numbers) -> Numbers:
        p, w, nu, log_x, lam = self._parts(x)
        d = self._excess()
        r = [ARITHMETIC.exp(min(nu * a - log_x, Decimal(700))) for a in d]
        moved = [a - b + lam for a, b in zip(self._combined(w, self.support), r, strict=True)]
        rows = self.order[np.ix_(self.active, self.support)].tolist()
        ties = [_dot(p, _decimals(row)) for row in rows]
        tilted = [a * b for a, b in zip(p, r, strict=True)]
        slope = _dot(tilted, d) if self.nu_free else Decimal(0)
        return [*moved, *ties, sum(p) - 1, sum(tilted) - 1, slope]  # type: ignore[list-item]

    def plausible(self, x: FloatArray) -> bool:
        exponents = x[-3] * (self.gap - self.eps) - x[-2]
        largest = np.abs(x[: len(self.support)]).max(initial=0.0)
        return bool(largest < LARGEST and np.abs(exponents).max() < LARGEST)

    def jacobian(self, x: FloatArray) -> FloatArray:
        n, c = len(self.support), len(self.active)
        A, d = self.order[np.ix_(self.active, self.support)], self.gap[self.support] - self.eps
        p, nu, log_x = x[:n], x[-3], x[-2]
        r = np.exp(np.minimum(nu * d - log_x, 700.0))
        J = np.zeros((n + c + 3, n + c + 3))
        J[:n, n : n + c] = A.T
        J[:n, -3], J[:n, -2], J[:n, -1] = -r * d, r, 1.0  # ν, x, λ
        J[n : n + c, :n] = A
        J[-3, :n], J[-2, :n], J[-1, :n] = 1.0, r, r * d
        J[-2, -3], J[-2, -2] = p @ (r * d), -(p @ r)
        J[-1, -3], J[-1, -2] = p @ (r * d * d), -(p @ (r * d))
        if not self.nu_free:
            J[-1], J[:, -3] = 0.0, 0.0
        return J

    def guess(self) -> tuple[tuple[int, ...], ...]:
        return tuple(self.active.tolist()), tuple(self.support.tolist())

    def revised(self, x: FloatArray) -> KLConditions:
        n, c = len(self.support), len(self.active)
        p, w = np.zeros(len(self.gap)), np.zeros(len(self.order))
        p[self.support], w[self.active] = x[:n], x[n : n + c]
        nu, log_x, lam = x[-3:]
        r = np.exp(np.clip(nu * (self.gap - self.eps) - log_x, -700.0, 700.0))
        support = _updated(self.support, p, w @ self.order - r + lam)
        active = _updated(self.active, w, -(self.order @ p))
        p, w = np.maximum(p, 0.0), np.maximum(w, 0.0)
        return replace(self, p=p, w=w, nu=float(nu), x=float(log_x), support=support, active=active)

    def read(self, x: Numbers) -> Stationary:
        p, w, nu, log_x, _ = self._parts(x)
        distribution = np.zeros(len(self.gap))
        distribution[self.support] = [max(float(value), 0.0) for value in p]
        full, shares = self._multipliers(w)
        tilt = np.exp(np.clip(float(nu) * (self.gap - self.eps) - float(log_x), -700.0, 700.0))
        X = ARITHMETIC.exp(max(min(log_x, Decimal(700)), Decimal(-700)))
        exact = {"nu": _rational(max(nu, Decimal(0))), "w": shares, "X": _rational(X)}
        free = np.array([float(X)])
        return Stationary(distribution * tilt, distribution, full, max(float(nu), 0.0), free, exact)


@dataclass(frozen=True, eq=False)
class SquaredConditions(Conditions):
    """Unknowns q_S, p_R, w_W, ν, λ and μ, with z = q − p; a linear system:

    z − ν gap = λ on S,   wᵀA − z = μ on R,   A_W p = 0,   gap·q = ε,   Σq = 1,   Σp = 1.
    """

    q: FloatArray
    p: FloatArray
    of_q: IntArray  # S
    of_p: IntArray  # R
    w: FloatArray
    nu: float

    def start(self) -> FloatArray:
        parts = (self.q[self.of_q], self.p[self.of_p], self.w[self.active], [self.nu, 0.0, 0.0])
        return np.concatenate(parts)

    def _parts(self, x: Numbers) -> tuple[dict[int, Decimal], dict[int, Decimal], Numbers]:
        n, m = len(self.of_q), len(self.of_p)
        q = dict(zip(self.of_q.tolist(), x[:n], strict=True))
        p = dict(zip(self.of_p.tolist(), x[n : n + m], strict=True))
        return q, p, x[n + m : -3]

    def residual(self, x: Numbers) -> Numbers:
        q, p, w = self._parts(x)
        nu, lam, mu = x[-3:]
        none = Decimal(0)
        first = [a - p.get(y, none) - nu * Decimal(float(self.gap[y])) - lam for y, a in q.items()]
        a = self._combined(w, self.of_p)
        second = [
            a_y - q.get(y, none) + p_y - mu for a_y, (y, p_y) in zip(a, p.items(), strict=True)
        ]
        rows = self.order[np.ix_(self.active, self.of_p)].tolist()
        ties = [_dot(list(p.values()), _decimals(row)) for row in rows]
        reached = _dot(list(q.values()), _decimals(self.gap[self.of_q])) - Decimal(self.eps)
        sums = [sum(q.values(), none) - 1, sum(p.values(), none) - 1]
        return [*first, *second, *ties, reached, *sums]

    def plausible(self, x: FloatArray) -> bool:
        return bool(np.abs(x[: len(self.of_q) + len(self.of_p)]).max(initial=0.0) < LARGEST)

    def jacobian(self, x: FloatArray) -> FloatArray:
        n, m, c = len(self.of_q), len(self.of_p), len(self.active)
        A = self.order[np.ix_(self.active, self.of_p)]
        both = (self.of_q[:, None] == self.of_p).astype(float)  # (n, m)
        J = np.zeros((n + m + c + 3, n + m + c + 3))
        J[:n, :n], J[:n, n : n + m] = np.eye(n), -both
        J[:n, -3], J[:n, -2] = -self.gap[self.of_q], -1.0
        J[n : n + m, :n], J[n : n + m, n : n + m] = -both.T, np.eye(m)
        J[n : n + m, n + m : n + m + c], J[n : n + m, -1] = A.T, -1.0
        J[n + m : n + m + c, n : n + m] = A
        J[-3, :n], J[-2, :n], J[-1, n : n + m] = self.gap[self.of_q], 1.0, 1.0
        return J

    def guess(self) -> tuple[tuple[int, ...], ...]:
        return tuple(self.active.tolist()), tuple(self.of_q.tolist()), tuple(self.of_p.tolist())

    def revised(self, x: FloatArray) -> SquaredConditions:
        n, m = len(self.of_q), len(self.of_p)
        q, p = np.zeros(len(self.gap)), np.zeros(len(self.gap))
        w = np.zeros(len(self.order))
        q[self.of_q], p[self.of_p], w[self.active] = x[:n], x[n : n + m], x[n + m : -3]
        nu, lam, mu = x[-3:]
        of_q = _updated(self.of_q, q, q - p - nu * self.gap - lam)
        of_p = _updated(self.of_p, p, w @ self.order - (q - p) - mu)
        active = _updated(self.active, w, -(self.order @ p))
        q, p, w = np.maximum(q, 0.0), np.maximum(p, 0.0), np.maximum(w, 0.0)
        return replace(self, q=q, p=p, w=w, nu=float(nu), of_q=of_q, of_p=of_p, active=active)

    def read(self, x: Numbers) -> Stationary:
        q, p, w = self._parts(x)
        none, every = Decimal(0), range(len(self.gap))
        full, shares = self._multipliers(w)
        z = [q.get(y, none) - p.get(y, none) for y in every]
        nu = max(x[-3], none)
        exact = {"nu": _rational(nu), "w": shares, "z": [_rational(value) for value in z]}
        distribution, estimate = (
            np.array([max(float(part.get(y, none)), 0.0) for y in every]) for part in (q, p)
        )
        free = np.array([float(value) for value in z])
        return Stationary(distribution, estimate, full, float(nu), free, exact)


def _updated(chosen: IntArray, value: FloatArray, slack: FloatArray) -> IntArray:
    """Those chosen whose value is positive, and others whose slack is negative."""
    kept = np.zeros(len(value), dtype=bool)
    kept[chosen] = value[chosen] > 0
    others = np.ones(len(value), dtype=bool)
    others[chosen] = False
    return np.flatnonzero(kept | (others & (slack < -VIOLATED)))


def _decimals(values: Any) -> Numbers:
    return [Decimal(value) for value in np.asarray(values, dtype=np.float64).tolist()]


def _dot(a: Numbers, b: Numbers) -> Decimal:
    return sum((x * y for x, y in zip(a, b, strict=True)), Decimal(0))


def _rational(value: Decimal) -> Fraction:
    """Rounded to an integer over 2^BITS."""
    return Fraction(round(Fraction(value) * 2**BITS), 2**BITS)
