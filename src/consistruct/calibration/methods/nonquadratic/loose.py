"""Where H is not computed: bounds with a reason, never a number that looks exact.

With scores that do not reach every vector the surrogate's optimum moves with the distribution in a
way that no convex program here describes. The excess against all score vectors is an upper bound on
the excess within the space, so scores f = 0 (which every space has, and which tie all labels) bound
H from above. From below there is nothing better than 0 then.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, singledispatch

import numpy as np

from consistruct.calibration.curve import CurvePoint, Method, Progress, at_each
from consistruct.calibration.methods.nonquadratic.ab import ABFamily
from consistruct.calibration.proofs import Certificate
from consistruct.exceptions import ConsistructError
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray
from consistruct.structures import Structure
from consistruct.surrogates import (
    ABSurrogate,
    BaseSurrogate,
    DistributionSurrogate,
    LinearRegretSurrogate,
)

__all__ = ["LooseMethod", "excess_at_zero"]

LISTED = 64  # labels up to which an upper bound is looked for

Excess = Callable[[FloatArray, FloatArray], float]  # (L, q) -> excess at f = 0, or more

TIE = 1e-12


@dataclass(eq=False)
class LooseMethod(Method):
    """Bounds and the reason why there is no more."""

    loss: Loss
    space: Structure
    reason: str
    quadratic: float  # H ≥ quadratic·ε²·exp(log_scale)
    upper: Excess | None
    log_scale: float = 0.0
    bayes: bool = False  # decoding by the least expected loss under the estimated distribution
    linear: float = 0.0  # H ≥ linear·ε + quadratic·ε², times exp(log_scale)

    def __post_init__(self) -> None:
        self.name = f"bounds: {self.reason}"

    @property
    def max_eps(self) -> float:
        if self._matrix is None:
            return self.loss.max_value
        return float(np.ptp(self._matrix, axis=0).max())

    @property
    def consistency_level(self) -> float:
        """0 where the lower bound is positive, NaN where nothing is known."""
        return 0.0 if self.quadratic > 0 else math.nan

    @property
    def level_interval(self) -> tuple[float, float]:
        return 0.0, 0.0 if self.quadratic > 0 else self.max_eps

    @property
    def level_reason(self) -> str | None:
        return None if self.quadratic > 0 else self.reason

    @property
    def approximation_error(self) -> float:
        return 0.0 if self.quadratic > 0 else math.nan

    @cached_property
    def _matrix(self) -> FloatArray | None:
        for labels in (self.loss.predictions, self.loss.true_labels):
            if labels.size is None or labels.size > LISTED:
                return None
        return self.loss.matrix()

    def points(self, eps: FloatArray, progress: Progress | None = None) -> list[CurvePoint]:
        def point(value: float) -> CurvePoint:
            lower = self.linear * value + self.quadratic * value**2
            return CurvePoint(value, lower, self._upper(value), self.log_scale, self.name, "bounds")

        return at_each(eps, point, progress)

    def _upper(self, eps: float) -> float:
        L = self._matrix
        if L is None or self.upper is None:
            return math.inf
        kept = self.space.predictable().indices
        predictable = np.arange(len(L)) if kept is None else np.asarray(kept, dtype=np.int64)
        # at f = 0 all labels tie for argmax; the Bayes rule acts on the uniform distribution
        means = L.mean(axis=1)
        winners = np.flatnonzero(means <= means.min() + TIE) if self.bayes else predictable
        best = math.inf
        for j in winners.tolist():
            for i in predictable.tolist():
                gap = L[j] - L[i]
                if i != j and gap.max() >= eps:
                    best = min(best, self.upper(L, _tilted(gap, eps)))
        return max(best, 0.0) * math.exp(-self.log_scale)

    def certificate(self, eps: float) -> Certificate:
        raise ConsistructError(f"only bounds are known here ({self.reason}); see interval(eps)")


def _tilted(gap: FloatArray, eps: float) -> FloatArray:
    """The distribution closest to uniform (in KL) with gap·q ≥ ε: q ∝ exp(ν gap)."""
    low, high = 0.0, 1.0

    def distribution(nu: float) -> FloatArray:
        weights = np.exp(nu * (gap - gap.max()))
        return np.asarray(weights / weights.sum())

    if gap.mean() >= eps:
        return distribution(0.0)
    while gap @ distribution(high) < eps and high < 1e12:
        high *= 2
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if gap @ distribution(middle) >= eps else (middle, high)
    q = distribution(high)
    if gap @ q >= eps:
        return q
    q = (gap == gap.max()).astype(np.float64)  # ε is the largest gap itself
    return q / q.sum()


@singledispatch
def excess_at_zero(surrogate: BaseSurrogate) -> Excess:
    """Upper bound on the excess of scores f = 0 under a distribution."""
    if surrogate.excess == "hinge":
        # Φ_q(0) − ⟨L, q ⊗ q⟩, a coupling of q with itself
        return lambda L, q: float(q @ L.max(axis=0) - q @ L @ q)
    # max-min margin: max_p min_c (Lp)_c − min_c (Lq)_c, the first at most the least column maximum
    return lambda L, q: float(L.max(axis=1).min() - (L @ q).min())


@excess_at_zero.register(ABSurrogate)
def _(surrogate: ABSurrogate) -> Excess:
    family = ABFamily(surrogate)

    def excess(L: FloatArray, q: FloatArray) -> float:
        ell = L @ q
        return float(family.excess(ell, np.zeros(len(ell))).mean())

    return excess


@excess_at_zero.register(DistributionSurrogate)
def _(surrogate: DistributionSurrogate) -> Excess:
    if surrogate.divergence == "KL":
        return lambda L, q: math.log(len(q)) + float((q[q > 0] * np.log(q[q > 0])).sum())
    return lambda L, q: 0.5 * float(((q - 1 / len(q)) ** 2).sum())


@excess_at_zero.register(LinearRegretSurrogate)
def _(surrogate: LinearRegretSurrogate) -> Excess:
    kappa = surrogate.kappa

    def excess(L: FloatArray, q: FloatArray) -> float:
        # at f = 0 the mixed decision is uniform and every estimate is κ/k
        ell = L @ q
        square = float(((ell - kappa / len(ell)) ** 2).sum()) / (2 * kappa)
        return square + float(ell.mean() - ell.min())

    return excess
