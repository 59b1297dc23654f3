"""The proof of one pair of a surrogate that estimates a distribution, in plain arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy  # its submodules are imported on use

from consistruct.calibration.methods.nonquadratic.pairs import PairProof
from consistruct.protocols import FloatArray

__all__ = ["FEASIBLE", "ROUNDING", "Divergence", "DivergenceProof"]

Divergence = Literal["KL", "squares"]
ROUNDING = 2e-14
NEAR = 1e-4  # relative: below, a series has more digits than the logarithm
FEASIBLE = 1e-10  # allowed violation of A p ≤ 0 and of the gap, relative to the scale of the loss


@dataclass(eq=False)
class DivergenceProof(PairProof):
    """Distributions q and p from above; w, ν and the free point (X or z) from below."""

    divergence: Divergence
    order: FloatArray  # (c, m) A
    gap: FloatArray  # (m,)
    eps: float
    distribution: FloatArray  # (m,) q
    estimate: FloatArray  # (m,) p
    w: FloatArray  # (c,)
    nu: float
    free: FloatArray  # X of shape (1,), or z of shape (m,)
    sharp: dict[str, Any] | None = None  # the multipliers with more digits, rationals

    def __post_init__(self) -> None:
        self.lower, self.upper = self.recompute()

    def recompute(self) -> tuple[float, float]:
        return self._dual(), self._primal()

    def _primal(self) -> float:
        q, p = self.distribution, self.estimate
        scale = max(1.0, float(np.abs(self.gap).max()), float(np.abs(self.order).max(initial=0.0)))
        distributions = (
            (q >= 0).all() and (p >= 0).all() and max(abs(q.sum() - 1), abs(p.sum() - 1)) < 1e-12
        )
        decoded = bool((self.order @ p <= FEASIBLE * scale).all())
        if not (distributions and decoded and float(self.gap @ q) >= self.eps - FEASIBLE * scale):
            return math.inf
        if self.divergence == "KL":
            return _divergence(q, p) * (1 + ROUNDING)
        return 0.5 * float((q - p) @ (q - p)) * (1 + ROUNDING)

    def _dual(self) -> float:
        w, nu = np.maximum(self.w, 0.0), max(self.nu, 0.0)
        a = w @ self.order
        slack = ROUNDING * (w @ np.abs(self.order))
        if self.divergence == "KL":
            X = float(self.free[0])
            if not X > 0:
                return 0.0
            tilted = np.exp(np.minimum(nu * (self.gap - self.eps), 700.0)) / X
            bound = 1 - math.log(X) + float((a - slack - tilted * (1 + ROUNDING)).min())
            return max(bound - ROUNDING * (1 + abs(math.log(X))), 0.0)
        z = self.free
        norm = float(z @ z)
        first = float((a - slack - z).min())
        height = nu * self.eps + first + float((z - nu * self.gap).min())
        height -= ROUNDING * (nu * float(np.abs(self.gap).max() + self.eps) + np.abs(z).max())
        if not (height > 0 and norm > 0):
            return 0.0
        return float(0.5 * height**2 / norm * (1 - ROUNDING))


def _divergence(q: FloatArray, p: FloatArray) -> float:
    """KL(q‖p) by terms q log(q/p) − q + p ≥ 0, which do not cancel, q near p or not.

    >>> import numpy as np
    >>> p = np.array([0.5, 0.5])
    >>> bool(np.isclose(_divergence(p + [1e-9, -1e-9], p), 2e-18, rtol=1e-9))
    True
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        d = (q - p) / p
    near = np.abs(d) < NEAR
    d = np.where(near, d, 0.0)
    series = p * d**2 * (1 / 2 - d / 6 + d**2 / 12)
    return float(np.where(near, series, scipy.special.kl_div(q, p)).sum())
