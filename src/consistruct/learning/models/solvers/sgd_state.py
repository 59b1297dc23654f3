"""The state of averaged SGD: what a checkpoint keeps and what `partial_fit` carries on."""

from __future__ import annotations

from collections.abc import Sequence
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

    @staticmethod
    def shares(states: Sequence[SGDState]) -> FloatArray:
        """How much each of several runs counts: by the steps in its average, if all have one."""
        counts = np.array([state.scalars[N_AVERAGED] for state in states])
        return counts if counts.all() else np.ones(len(states))

    @classmethod
    def averaged(cls, states: Sequence[SGDState]) -> SGDState:
        """One state from runs that began alike: means of the iterates and of their averages."""
        first, shares = states[0], cls.shares(states)
        merged = cls(*first.V.shape, np.mean([state.intercept for state in states], axis=0))
        merged.V = np.mean([state.scalars[SCALE] * state.V for state in states], axis=0)
        if all(state.averaging for state in states):
            # weights() is (a·V − U)/n: with a = 0, U is −n times the average
            average = np.average([state.weights() for state in states], axis=0, weights=shares)
            merged.U = -shares.sum() * average[:-1]
            merged.intercept_sum = shares.sum() * average[-1]
            merged.scalars[:] = (1.0, 0.0, shares.sum())
        merged.epoch = max(state.epoch for state in states)
        merged.n_seen = max(state.n_seen for state in states)
        merged.step = min(state.step for state in states)
        merged.alpha = float(np.mean([state.alpha for state in states]))
        merged.shift = first.shift
        return merged

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
