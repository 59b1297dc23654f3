"""Solvers by name, and which one "auto" is."""

from __future__ import annotations

from typing import Any

from consistruct.learning.averaged_sgd import AveragedSGD
from consistruct.learning.closed_form import ClosedForm
from consistruct.learning.feature_choice import EXACT_ROWS
from consistruct.learning.feature_options import DEFAULT_COMPONENTS
from consistruct.learning.lbfgs import LBFGS
from consistruct.learning.paper_sgd import PaperSGD
from consistruct.learning.solver import BaseSolver
from consistruct.surrogates import BaseSurrogate, QuadraticSurrogate

__all__ = ["SOLVERS", "make_solver", "takes_expansions"]

SOLVERS: dict[str, type[BaseSolver]] = {
    "closed_form": ClosedForm,
    "sgd": AveragedSGD,
    "paper_sgd": PaperSGD,
    "lbfgs": LBFGS,
}
FACTORISATION_LIMIT = 8192  # rows of the largest matrix that "auto" decomposes


def make_solver(
    solver: Any,
    surrogate: BaseSurrogate,
    shape: tuple[int, int],
    *,
    features: Any,
    n_components: int | None,
    alpha: Any,
    regularizer: str,
) -> BaseSolver:
    """The solver object that an estimator's arguments describe."""
    if isinstance(solver, BaseSolver):
        return solver
    if solver == "auto":
        solver = _automatic(surrogate, shape, features, n_components)
    if not isinstance(solver, str) or solver not in SOLVERS:
        raise ValueError(
            f"solver must be 'auto', one of {', '.join(SOLVERS)} or a solver object, got {solver!r}"
        )
    if solver == "closed_form":
        return ClosedForm(alpha=alpha, regularizer=regularizer)  # type: ignore[arg-type]
    if solver == "paper_sgd":
        return PaperSGD()
    return SOLVERS[solver](alpha=alpha)  # type: ignore[call-arg]


def _automatic(
    surrogate: BaseSurrogate, shape: tuple[int, int], features: Any, n_components: int | None
) -> str:
    if not isinstance(surrogate, QuadraticSurrogate):
        return "lbfgs" if surrogate.smooth else "sgd"
    n, n_features = shape
    if features in ("nystroem", "random"):
        size = min(n, n_components or DEFAULT_COMPONENTS)
    elif features in ("rbf", "laplace", "poly"):
        return "closed_form" if n <= EXACT_ROWS else "sgd"
    else:
        size = min(n, n_features)
    return "closed_form" if size <= FACTORISATION_LIMIT else "sgd"


def takes_expansions(solver: BaseSolver) -> bool:
    """Whether the solver works on kernel expansions over all examples."""
    return isinstance(solver, ClosedForm | PaperSGD)
