"""What solvers share: the score map, the result, the check of what they need."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from consistruct._members import Member
from consistruct._validation import is_sparse
from consistruct.exceptions import CapabilityError
from consistruct.learning.models.features.feature_maps import FeatureMap, LinearFeatures
from consistruct.protocols import FloatArray
from consistruct.surrogates import BaseSurrogate

__all__ = ["BaseSolver", "ScoreMap", "SolverResult", "require"]

CHUNK_BYTES = 32 * 2**20


class ScoreMap:
    """θ = W φ(x) + b: the linear map from weights on the features of a feature map to scores.

    Weights have shape (n_weights, width): one row per feature and, with an intercept, a last one
    for the constant feature 1.

    Parameters
    ----------
    features : FeatureMap
    fit_intercept : bool
        Whether to add the constant feature; it is never penalised.
    """

    def __init__(self, features: FeatureMap, *, fit_intercept: bool = True) -> None:
        self.features = features
        self.fit_intercept = fit_intercept

    @property
    def n_weights(self) -> int:
        return self.features.n_outputs + int(self.fit_intercept)

    def apply(self, weights: FloatArray, inputs: Any) -> FloatArray:
        """-> θ, (n, width), in chunks of inputs."""
        theta = np.empty((inputs.shape[0], weights.shape[1]))
        coef, intercept = self.split(weights)
        for part in self.chunks(inputs):
            theta[part] = self.features.transform(inputs[part]) @ coef
        theta += intercept
        return theta

    def adjoint(self, grad_theta: FloatArray, inputs: Any) -> FloatArray:
        """Σ_i φ(x_i) g_iᵀ, of the shape of the weights."""
        total = np.zeros((self.n_weights, grad_theta.shape[1]))
        size = self.features.n_outputs
        for part in self.chunks(inputs):
            total[:size] += self.features.transform(inputs[part]).T @ grad_theta[part]
        if self.fit_intercept:
            total[size] = grad_theta.sum(axis=0)
        return total

    def split(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights of the features (m, width) and the intercept (width,)."""
        if self.fit_intercept:
            return weights[:-1], weights[-1]
        return weights, np.zeros(weights.shape[1])

    def chunks(self, inputs: Any, itemsize: int = 8) -> Iterator[slice]:
        """Slices of inputs whose features, of `itemsize` bytes each, take about `CHUNK_BYTES`.

        Sparse inputs stay sparse under linear features: what counts are their entries.
        """
        width = float(self.features.n_outputs)
        if is_sparse(inputs) and isinstance(self.features, LinearFeatures):
            width = min(width, 2.0 * inputs.nnz / max(inputs.shape[0], 1))
        rows = max(1, int(CHUNK_BYTES / (itemsize * max(1.0, width))))
        for start in range(0, inputs.shape[0], rows):
            yield slice(start, min(start + rows, inputs.shape[0]))


@dataclass(frozen=True, eq=False)
class SolverResult:
    """Weights of a score map, and how they were found.

    Attributes
    ----------
    weights : (n_weights, width) array
        One row per feature and, with an intercept, a last one for the constant.
    alpha : float
        Penalty that was used.
    n_iter : int
        Epochs or iterations; 1 for the closed form.
    path : dict
        What was tried: arrays by name, for example the leave-one-out risks of every penalty.
    contrast : float
        c of scores θ̄ + c(θ − θ̄), which the weights already hold.
    centre : (width,) array or None
        θ̄; None for solvers that do not know it, whose contrast is 1.
    """

    weights: FloatArray
    alpha: float
    n_iter: int = 1
    path: dict[str, FloatArray] = field(default_factory=dict)
    contrast: float = 1.0
    centre: FloatArray | None = None


class BaseSolver(Member, ABC):
    """A solver is an immutable value; what it needs of a surrogate stands in `requires`."""

    @property
    def requires(self) -> tuple[type, ...]:
        return (BaseSurrogate,)

    @abstractmethod
    def solve(
        self,
        objective: Any,
        score_map: ScoreMap,
        inputs: Any,
        true: Any,
        *,
        alpha: Any = "auto",
        sample_weight: FloatArray | None = None,
        rng: np.random.Generator,
    ) -> SolverResult:
        """Minimise (1/N) Σ w_i Φ_i + (α/2)‖W‖² over the weights of the score map.

        Parameters
        ----------
        objective : Statistic or BaseSurrogate
            A statistic is fitted by least squares: θ(x) estimates E[τ(y) | x].
        score_map : ScoreMap
        inputs : (n, d) array or CSR
        true : (n, …) array
        alpha : "auto" or float
            α; N is the total weight.
        sample_weight : (n,) array, optional
        rng : numpy Generator
        """


def require(solver: BaseSolver, surrogate: object, instead: str) -> None:
    """Raise before any work if the surrogate lacks what the solver needs, and name it."""
    for needed in solver.requires:
        if not isinstance(surrogate, needed):
            raise CapabilityError(surrogate, needed.__name__, f"{type(solver).__name__}", instead)
