"""What solvers share: the result, and the check of what they need."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from consistruct._members import Member
from consistruct.exceptions import CapabilityError
from consistruct.learning.models.features.feature_maps import ScoreMap
from consistruct.protocols import FloatArray
from consistruct.surrogates import BaseSurrogate

__all__ = ["BaseSolver", "SolverResult", "require"]


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
    center : (width,) array or None
        θ̄; None for solvers that do not know it, whose contrast is 1.
    """

    weights: FloatArray
    alpha: float
    n_iter: int = 1
    path: dict[str, FloatArray] = field(default_factory=dict)
    contrast: float = 1.0
    center: FloatArray | None = None


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
        """Minimize (1/N) Σ w_i Φ_i + (α/2)‖W‖² over the weights of the score map.

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
