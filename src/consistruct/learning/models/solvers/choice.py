"""Iterative solvers by name."""

from __future__ import annotations

from typing import Any

from consistruct.learning.models.solvers.averaged_sgd import AveragedSGD
from consistruct.learning.models.solvers.base import BaseSolver
from consistruct.learning.models.solvers.lbfgs import LBFGS
from consistruct.learning.models.solvers.paper_sgd import PaperSGD

__all__ = ["SOLVERS", "make_solver"]

SOLVERS: dict[str, type[BaseSolver]] = {
    "sgd": AveragedSGD,
    "paper_sgd": PaperSGD,
    "lbfgs": LBFGS,
}


def make_solver(solver: Any) -> BaseSolver:
    """A solver object as it is, or the one of that name with its defaults.

    >>> make_solver("lbfgs")
    LBFGS()
    """
    if isinstance(solver, BaseSolver):
        return solver
    if not isinstance(solver, str) or solver not in SOLVERS:
        raise ValueError(
            f"solver must be one of {', '.join(SOLVERS)} or a solver object, got {solver!r}"
        )
    return SOLVERS[solver]()
