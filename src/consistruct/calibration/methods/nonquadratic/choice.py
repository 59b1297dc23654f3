"""Which method is used for which surrogate, decoding and scores."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any, Literal

import numpy as np

from consistruct.calibration.curve import Method
from consistruct.calibration.methods.nonquadratic.ab_solver import ABSolver
from consistruct.calibration.methods.nonquadratic.closed import closed_form
from consistruct.calibration.methods.nonquadratic.divergence import DivergenceSolver
from consistruct.calibration.methods.nonquadratic.loose import LooseMethod, excess_at_zero
from consistruct.calibration.methods.nonquadratic.mixed_decision import MixedDecisionSolver
from consistruct.calibration.methods.nonquadratic.pairs import PairsMethod, PairSolver
from consistruct.calibration.methods.nonquadratic.polyhedral import Hinge, MaxMin, PolyhedralMethod
from consistruct.exceptions import CapabilityError, ConsistructError
from consistruct.protocols import FloatArray
from consistruct.surrogates import (
    ABSurrogate,
    BaseSurrogate,
    DistributionSurrogate,
    LinearRegretSurrogate,
)

__all__ = ["choose"]

SCORES_TRUE_LABELS = ("distribution", "hinge", "max-min")  # forms that score the true label itself
# labels up to which pairs are solved, by name, else by form
LIMITS = {
    "logistic": 32,
    "square": 32,
    "bregman": 12,
    "distribution": 100,
    "hinge": 12,
    "max-min": 12,
}
LIMITS["mixed-decision"] = 40  # and few sets of tied labels, up to symmetry


def choose(surrogate: BaseSurrogate, decoding: str) -> tuple[Method, tuple[str, ...]]:
    """The method that is used, and why the better ones did not."""
    _require_named_true_labels(surrogate, decoding)
    form = closed_form(surrogate)
    if form is not None:
        return form, ()
    refusals = ["closed form: none is known for this loss, surrogate and scores"]
    reason = _why_not_listed(surrogate, decoding)
    if reason is None:
        if surrogate.excess in ("hinge", "max-min"):
            model = Hinge if surrogate.excess == "hinge" else MaxMin
            return PolyhedralMethod(surrogate.loss, model), tuple(refusals)
        try:
            return PairsMethod(surrogate.loss, _solver(surrogate, decoding)), tuple(refusals)
        except ConsistructError as error:
            if surrogate.excess != "mixed-decision":
                raise
            reason = str(error)
    refusals.append(f"listed pairs: {reason}")
    return _loose(surrogate, decoding, reason), tuple(refusals)


def _require_named_true_labels(surrogate: BaseSurrogate, decoding: str) -> None:
    loss = surrogate.loss
    if surrogate.excess not in SCORES_TRUE_LABELS or decoding == "bayes":
        return
    if loss.true_labels.size != loss.n_labels:
        raise CapabilityError(
            loss,
            "true_label_as_prediction",
            f"the surrogate {surrogate.name!r} with argmax decoding",
            "use decoding='bayes' with 'log' or 'sparsemax', or a surrogate of predictions",
        )


def _why_not_listed(surrogate: BaseSurrogate, decoding: str) -> str | None:
    loss, space = surrogate.loss, surrogate.score_space
    if decoding == "bayes" and not (space.one_per_label or space.separate_states):
        raise ValueError(
            "scores must be None or 'full' with Bayes decoding, which models the distribution of "
            f"the true label and not the predictions, got {space!r}"
        )
    assert loss.n_labels is not None
    assert surrogate.excess is not None
    if decoding == "argmax" and space.rank < loss.n_labels:
        return "scores that do not reach every vector are solved only for the quadratic surrogate"
    if space.measure != "uniform" and surrogate.excess != "mixed-decision":
        return "the reference measure is not uniform"
    limit = LIMITS.get(surrogate.name, LIMITS[surrogate.excess])
    if loss.n_labels > limit:
        return f"more than {limit} labels"
    if loss.true_labels.size is None or loss.true_labels.size > 200:
        return "more than 200 true labels"
    return None


@singledispatch
def _solver(surrogate: BaseSurrogate, decoding: str) -> PairSolver[Any]:
    raise AssertionError(f"no solver of pairs for {surrogate.name}")


@_solver.register(ABSurrogate)
def _(surrogate: ABSurrogate, decoding: str) -> PairSolver[Any]:
    return ABSolver(_matrix(surrogate), surrogate)


@_solver.register(DistributionSurrogate)
def _(surrogate: DistributionSurrogate, decoding: Literal["argmax", "bayes"]) -> PairSolver[Any]:
    return DivergenceSolver(_matrix(surrogate), surrogate.divergence, decoding)


@_solver.register(LinearRegretSurrogate)
def _(surrogate: LinearRegretSurrogate, decoding: str) -> PairSolver[Any]:
    mixed = MixedDecisionSolver(_matrix(surrogate), surrogate.kappa)
    mixed.require_few_sets()
    return mixed


def _matrix(surrogate: BaseSurrogate) -> FloatArray:
    return np.asarray(surrogate.loss.matrix(), dtype=np.float64)


def _loose(surrogate: BaseSurrogate, decoding: str, reason: str) -> LooseMethod:
    loss, space = surrogate.loss, surrogate.score_space
    upper = excess_at_zero(surrogate)
    l_max = loss.max_value or 1.0
    assert loss.n_labels is not None
    free = space.rank == loss.n_labels
    reaches_all = free and space.measure == "uniform"
    divergence = surrogate.divergence
    if decoding == "bayes" and divergence == "KL":
        # Pinsker: total variation at least ε/2Lmax
        return LooseMethod(loss, space, reason, 0.5 / l_max**2, upper, bayes=True)
    if decoding == "bayes" and loss.true_labels.size is not None:
        # ½‖q − p‖² with (L_j − L_i)(q − p) ≥ ε and ‖L_j − L_i‖² ≤ m Lmax²
        scale = -math.log(loss.true_labels.size)
        return LooseMethod(loss, space, reason, 0.5 / l_max**2, upper, scale, bayes=True)
    if surrogate.kappa is not None and free:  # no measure enters it
        rate = 0.25 / surrogate.kappa
        return LooseMethod(loss, space, reason, rate, upper, linear=1 / loss.n_labels)
    if surrogate.name in ("logistic", "exponential") and reaches_all:
        # G'' ≥ 4/Lmax², and (2/Lmax²)(x² + (ε − x)²) is least at ε²/Lmax²
        return LooseMethod(loss, space, reason, 1 / l_max**2, upper, -math.log(loss.n_labels))
    return LooseMethod(loss, space, reason, 0.0, upper, bayes=decoding == "bayes")
