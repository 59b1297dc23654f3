"""The proof of one pair of a surrogate that estimates a law, in plain arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy  # its submodules are imported on use

from consistruct.calibration.nonquadratic.pairs import PairProof
from consistruct.protocols import FloatArray

__all__ = ["FEASIBLE", "ROUNDING", "Divergence", "LawProof"]

Divergence = Literal["KL", "squares"]
ROUNDING = 2e-14
FEASIBLE = 1e-10  # allowed violation of A p ≤ 0 and of the gap, relative to the scale of the loss


@dataclass(eq=False)
class LawProof(PairProof):
    """Laws q and p from above; w, ν and the free point (X or z) from below."""

    divergence: Divergence
    order: FloatArray  # (c, m) A
    gap: FloatArray  # (m,)
    eps: float
    law: FloatArray  # (m,) q
    estimate: FloatArray  # (m,) p
    w: FloatArray  # (c,)
    nu: float
    free: FloatArray  # X of shape (1,), or z of shape (m,)

    def __post_init__(self) -> None:
        self.lower, self.upper = self.recompute()

    def recompute(self) -> tuple[float, float]:
        return self._dual(), self._primal()

    def _primal(self) -> float:
        q, p = self.law, self.estimate
        scale = max(1.0, float(np.abs(self.gap).max()), float(np.abs(self.order).max(initial=0.0)))
        laws = (q >= 0).all() and (p >= 0).all() and max(abs(q.sum() - 1), abs(p.sum() - 1)) < 1e-12
        decoded = bool((self.order @ p <= FEASIBLE * scale).all())
        if not (laws and decoded and float(self.gap @ q) >= self.eps - FEASIBLE * scale):
            return math.inf
        if self.divergence == "KL":
            # q log(q/p) − q + p ≥ 0 term by term: no cancellation between the terms
            return float(scipy.special.kl_div(q, p).sum()) * (1 + ROUNDING)
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
