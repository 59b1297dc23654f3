"""The state of averaged SGD: what a checkpoint keeps and what `partial_fit` carries on."""

from __future__ import annotations

from typing import Any

import numpy as np

from consistruct.learning.models.solvers.sgd_kernels import AVERAGED_SCALE, N_AVERAGED, SCALE
from consistruct.protocols import FloatArray

__all__ = ["SGDState"]


class SGDState:
    """W = s·V, the lazy sums of the average, the intercept, and counters."""

    def __init__(self, n_features: int, width: int, intercept: FloatArray) -> None:
        self.V = np.zeros((n_features, width))
        self.U = np.zeros((n_features, width))
        self.intercept = intercept.copy()
        self.intercept_sum = np.zeros(width)
        self.scalars = np.array([1.0, 0.0, 0.0])
        self.epoch = 0
        self.n_seen = 0.0
        self.step = 0.0
        self.alpha = 0.0
        self.shift = np.zeros(n_features)

    @property
    def averaging(self) -> bool:
        return bool(self.scalars[N_AVERAGED] > 0)

    def restart_average(self) -> None:
        """Forget the average and bring the scale back to one."""
        self.V *= self.scalars[SCALE]
        self.scalars[:] = (1.0, 0.0, 0.0)
        self.U[:] = 0.0
        self.intercept_sum[:] = 0.0

    def weights(self) -> FloatArray:
        """Averaged weights (m + 1, width), the last row the intercept; the last iterate if none."""
        if not self.averaging:
            return np.vstack([self.scalars[SCALE] * self.V, self.intercept])
        total = self.scalars[AVERAGED_SCALE] * self.V - self.U
        return np.vstack([total, self.intercept_sum]) / self.scalars[N_AVERAGED]

    def arrays(self) -> dict[str, Any]:
        names = ("V", "U", "intercept", "intercept_sum", "scalars", "shift")
        return {name: getattr(self, name) for name in names}

    def numbers(self) -> dict[str, Any]:
        return {
            "epoch": self.epoch,
            "n_seen": self.n_seen,
            "step": self.step,
            "alpha": self.alpha,
        }

    def restore(self, arrays: dict[str, Any], numbers: dict[str, Any]) -> None:
        for name, array in arrays.items():
            setattr(self, name, np.array(array))
        for name in self.numbers():
            setattr(self, name, numbers[name])
