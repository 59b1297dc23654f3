"""Linear maps between the parameters of two score spaces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from consistruct.protocols import FloatArray

__all__ = ["FunctionMap", "MatrixMap", "identity_map"]


@dataclass(frozen=True)
class FunctionMap:
    """A linear map given by two functions on row batches."""

    forward: Callable[[FloatArray], FloatArray]
    backward: Callable[[FloatArray], FloatArray]

    def __call__(self, theta: FloatArray) -> FloatArray:
        return self.forward(theta)

    def transpose(self, theta: FloatArray) -> FloatArray:
        return self.backward(theta)


@dataclass(frozen=True, eq=False)
class MatrixMap:
    """θ_out = θ_in Cᵀ for a dense C of shape (width_out, width_in)."""

    matrix: FloatArray

    def __call__(self, theta: FloatArray) -> FloatArray:
        return np.asarray(theta @ self.matrix.T)

    def transpose(self, theta: FloatArray) -> FloatArray:
        return np.asarray(theta @ self.matrix)


def identity_map() -> FunctionMap:
    """The map between equal spaces."""
    return FunctionMap(lambda theta: theta, lambda theta: theta)
