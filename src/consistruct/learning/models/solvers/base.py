"""What solvers share: the result, the check of what they need, penalties from the data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from consistruct._members import Member
from consistruct._validation import check_number
from consistruct.exceptions import CapabilityError
from consistruct.protocols import FloatArray
from consistruct.surrogates import BaseSurrogate

__all__ = ["BaseSolver", "SolverResult", "check_alpha", "require", "single_alpha"]


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
        score_map: Any,
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


def single_alpha(alpha: object) -> float | None:
    """A penalty of an iterative solver: None for "auto", or one number."""
    checked = check_alpha(alpha)
    if isinstance(checked, np.ndarray):
        raise ValueError(
            "alpha must be one number or 'auto' for iterative solvers; only the closed form "
            "chooses among several (use GridSearchCV for the others)"
        )
    return checked


def check_alpha(alpha: object) -> float | FloatArray | None:
    """A penalty: None for "auto", one number, or several to choose from."""
    if isinstance(alpha, str):
        if alpha != "auto":
            raise ValueError(
                f"alpha must be 'auto', a non-negative number or a list of them, got {alpha!r}"
            )
        return None
    if isinstance(alpha, list | tuple | np.ndarray):
        values = np.array([check_number(value, "alpha", low=0.0) for value in alpha])
        if len(values) == 0:
            raise ValueError("alpha must not be an empty list; pass numbers or 'auto'")
        return values
    return check_number(alpha, "alpha", low=0.0)
