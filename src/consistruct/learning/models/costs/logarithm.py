"""Costs of one sign by their logarithms: multiplicative noise becomes additive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from consistruct.protocols import FloatArray

__all__ = ["Logarithm"]

BEYOND = 1.0  # how far, in logarithms, estimates may leave the costs that were seen


@dataclass(frozen=True, eq=False)
class Logarithm:
    """From estimates of E[log |c|] to estimates of E[c].

    Under multiplicative noise c = m(x)·e with e independent of x, E[c | x] is exp E[log c | x]
    times E[exp(log e − E log e)], one factor per entry: weighted costs over weighted exp(estimate)
    of rows left out (as the smearing estimate of Duan 1983, but few rows whose estimate is far too
    low do not decide it). Elsewhere it is an approximation, and out-of-fold
    regret states whether it is a good one.

    Attributes
    ----------
    factors : (d,) array
        With the sign of the costs.
    range : (2, d) array
        Logarithms are cut off below and above.
    """

    factors: FloatArray
    range: FloatArray

    @staticmethod
    def fits(costs: FloatArray) -> bool:
        """Whether all costs have one sign and none is 0."""
        return bool((costs > 0).all() or (costs < 0).all())

    @classmethod
    def of(cls, costs: FloatArray, estimates: FloatArray, weight: FloatArray) -> Self:
        """From costs (n, d), out-of-fold estimates of their logarithms and weights of the rows."""
        logs = np.log(np.abs(costs))
        span = np.array([logs.min(axis=0) - BEYOND, logs.max(axis=0) + BEYOND])
        factors = (weight @ costs) / (weight @ np.exp(np.clip(estimates, *span)))
        return cls(np.asarray(factors), span)

    def back(self, logs: FloatArray) -> FloatArray:
        """Expected costs (n, d) from estimated logarithms."""
        return np.asarray(self.factors * np.exp(np.clip(logs, *self.range)))
