"""Which method answers for which surrogate, decoding and scores."""

from __future__ import annotations

import math
from typing import Any, Literal, cast

import numpy as np

from consistruct.calibration.methods.base import Method
from consistruct.calibration.nonquadratic.ab import ABFamily, ABSurrogate, exponential, logistic
from consistruct.calibration.nonquadratic.ab_solver import ABSolver
from consistruct.calibration.nonquadratic.closed import closed_form
from consistruct.calibration.nonquadratic.laws import LawSolver
from consistruct.calibration.nonquadratic.loose import LooseMethod, excess_at_zero
from consistruct.calibration.nonquadratic.pairs import PairsMethod, PairSolver
from consistruct.calibration.nonquadratic.polyhedral import HingeSolver, MaxMinSolver
from consistruct.exceptions import CapabilityError, ConsistructError
from consistruct.losses.base import Loss
from consistruct.losses.hamming import Hamming
from consistruct.protocols import FloatArray
from consistruct.scores import Full, Separable
from consistruct.scores.base import BaseScoreSpace

__all__ = ["SURROGATES", "ab_surrogate", "check_surrogate", "choose", "default_scores"]

SURROGATES = (
    "quadratic",
    "logistic",
    "exponential",
    "log",
    "sparsemax",
    "hinge",
    "max-min-margin",
)
NAMES_TRUTHS = ("log", "sparsemax", "hinge", "max-min-margin")  # score the true label itself
LIMITS = {"logistic": 32, "exponential": 12, "log": 40, "sparsemax": 40, "hinge": 6}
OTHER_LIMIT = 12  # (a, b) pairs given as functions
MAX_MIN_LIMIT = 7


def check_surrogate(surrogate: str | ABSurrogate, decoding: str) -> str:
    """The surrogate's name; one clear line if it or the decoding is not known."""
    if isinstance(surrogate, ABSurrogate):
        name = surrogate.name
    elif isinstance(surrogate, str):
        name = surrogate.replace("_", "-")
        if name not in SURROGATES:
            raise ValueError(
                f"surrogate must be one of {', '.join(SURROGATES)} or an ABSurrogate, "
                f"got {surrogate!r}"
            )
    else:
        raise TypeError(
            f"surrogate must be a name or an ABSurrogate, got {type(surrogate).__name__}"
        )
    if decoding not in ("argmax", "bayes"):
        raise ValueError(f"decoding must be 'argmax' or 'bayes', got {decoding!r}")
    if decoding == "bayes" and name not in ("log", "sparsemax"):
        raise ValueError(
            f"decoding must be 'argmax' for the surrogate {name!r}, got 'bayes'; "
            f"only 'log' and 'sparsemax' estimate a law that the Bayes rule could use"
        )
    return name


def default_scores(loss: Loss, surrogate: str) -> BaseScoreSpace:
    """What the surrogate is trained with: one score per label, per part for log on Hamming."""
    if surrogate == "log" and isinstance(loss, Hamming):
        return loss.score_space
    return Full(loss)


def ab_surrogate(surrogate: str | ABSurrogate, l_max: float) -> ABSurrogate | None:
    """The functions behind a name of the (a, b) family, None for other surrogates."""
    if isinstance(surrogate, ABSurrogate):
        return surrogate
    makers = {"logistic": logistic, "exponential": exponential}
    return makers[surrogate](l_max or 1.0) if surrogate in makers else None


def choose(
    loss: Loss, space: BaseScoreSpace, surrogate: str | ABSurrogate, decoding: str
) -> tuple[Method, tuple[str, ...]]:
    """The method that answers, and why the better ones did not."""
    name = check_surrogate(surrogate, decoding)
    _require_named_truths(loss, name, decoding)
    form = closed_form(loss, space, name) if isinstance(surrogate, str) else None
    if form is not None:
        return form, ()
    refusals = ["closed form: none is known for this loss, surrogate and scores"]
    reason = _why_not_listed(loss, space, name, decoding)
    if reason is None:
        try:
            return PairsMethod(loss, _solver(loss, surrogate, name, decoding)), tuple(refusals)
        except ConsistructError as error:
            if name != "hinge":
                raise
            reason = str(error)
    refusals.append(f"listed pairs: {reason}")
    return _loose(loss, space, surrogate, name, decoding, reason), tuple(refusals)


def _require_named_truths(loss: Loss, name: str, decoding: str) -> None:
    if name in NAMES_TRUTHS and decoding == "argmax" and loss.truths.size != loss.n_labels:
        raise CapabilityError(
            loss,
            "truth_as_prediction",
            f"the surrogate {name!r} with argmax decoding",
            "use decoding='bayes' with 'log' or 'sparsemax', or a surrogate of predictions",
        )


def _why_not_listed(loss: Loss, space: BaseScoreSpace, name: str, decoding: str) -> str | None:
    if decoding == "bayes" and not isinstance(space, Full | Separable):
        raise ValueError(
            f"scores must be None or 'full' with Bayes decoding, which models the law of the truth "
            f"and not the predictions, got {space!r}"
        )
    assert loss.n_labels is not None
    if decoding == "argmax" and space.rank < loss.n_labels:
        return "scores that do not reach every vector are solved for the quadratic surrogate only"
    if space.measure != "uniform":
        return "the reference measure is not uniform"
    limit = LIMITS.get(name, MAX_MIN_LIMIT if name == "max-min-margin" else OTHER_LIMIT)
    if loss.n_labels > limit:
        return f"more than {limit} labels"
    if loss.truths.size is None or loss.truths.size > 200:
        return "more than 200 truths"
    return None


def _solver(loss: Loss, surrogate: str | ABSurrogate, name: str, decoding: str) -> PairSolver:
    L: FloatArray = np.asarray(loss.matrix(), dtype=np.float64)
    functions = ab_surrogate(surrogate, loss.max_value)
    if functions is not None:
        return ABSolver(L, ABFamily(functions, loss.max_value or 1.0))
    if name in ("log", "sparsemax"):
        divergence: Any = "KL" if name == "log" else "squares"
        return LawSolver(L, divergence, cast(Literal["argmax", "bayes"], decoding))
    if name == "hinge":
        solver = HingeSolver(L)
        for j in range(len(L)):
            solver.vertices(j)
        return solver
    return MaxMinSolver(L)


def _loose(
    loss: Loss,
    space: BaseScoreSpace,
    surrogate: str | ABSurrogate,
    name: str,
    decoding: str,
    reason: str,
) -> LooseMethod:
    functions = ab_surrogate(surrogate, loss.max_value)
    family = None if functions is None else ABFamily(functions, loss.max_value or 1.0)
    upper = excess_at_zero(name, family)
    l_max = loss.max_value or 1.0
    assert loss.n_labels is not None
    reaches_all = space.rank == loss.n_labels and space.measure == "uniform"
    if decoding == "bayes" and name == "log":
        # Pinsker: total variation at least ε/2Lmax
        return LooseMethod(loss, space, reason, 0.5 / l_max**2, upper, bayes=True)
    if decoding == "bayes" and loss.truths.size is not None:
        # ½‖q − p‖² with (L_j − L_i)(q − p) ≥ ε and ‖L_j − L_i‖² ≤ m Lmax²
        scale = -math.log(loss.truths.size)
        return LooseMethod(loss, space, reason, 0.5 / l_max**2, upper, scale, bayes=True)
    if name in ("logistic", "exponential") and reaches_all:
        # G'' ≥ 4/Lmax², and (2/Lmax²)(x² + (ε − x)²) is least at ε²/Lmax²
        return LooseMethod(loss, space, reason, 1 / l_max**2, upper, -math.log(loss.n_labels))
    return LooseMethod(loss, space, reason, 0.0, upper, bayes=decoding == "bayes")
