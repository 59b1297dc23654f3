"""Bounds on the calibration function that need no optimization over scores.

Theorem 7 and Theorem 8 of the paper, and the bounds for scores that do not express the loss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from consistruct.calibration.lp import minimize, simplex_row
from consistruct.calibration.problem.listed import (
    ExplicitProblem,
    explicit_problem,
    expresses_listed,
)
from consistruct.calibration.problem.pair_bounds import hull_slope
from consistruct.exceptions import ConsistructError, NotInSpanError
from consistruct.losses.base import Loss, as_loss
from consistruct.structures import Structure
from consistruct.structures.base import ENUMERATION_LIMIT

__all__ = ["Bound", "expresses", "inconsistent_lower_bound", "lower_bound", "upper_bound"]


@dataclass(frozen=True)
class Bound:
    """A bound on H(ε): its value, its logarithm (finite where the value underflows), its reason."""

    eps: float
    value: float
    log: float
    side: Literal["lower", "upper"]
    reason: str


def lower_bound(loss: Loss | str, scores: Structure | None = None, *, eps: float) -> Bound:
    """Theorem 7: H(ε) ≥ ε²/(2 diam²) = ε²/(4 k_eff), for scores that express the loss.

    Restricted to predictable labels, under the reference measure of the scores.

    Examples
    --------
    >>> from consistruct.calibration import lower_bound
    >>> from consistruct.losses import Hamming
    >>> round(lower_bound(Hamming(100), eps=0.5).value, 9)   # ε²/8T
    0.0003125
    """
    loss = as_loss(loss)
    space = loss.score_space if scores is None else scores
    if not expresses(loss, space):
        raise ConsistructError(
            f"Theorem 7 needs scores that express the loss, which {space!r} does not do for "
            f"{loss!r}; use inconsistent_lower_bound"
        )
    _check_eps(eps)
    k_eff = space.effective_classes()
    log = 2 * math.log(eps) - math.log(4) - k_eff.log if eps > 0 else -math.inf
    return Bound(eps, math.exp(log) if log > -745 else 0.0, log, "lower", "Theorem 7")


def upper_bound(loss: Loss | str, *, eps: float) -> Bound:
    """Theorem 8: H(ε) ≤ ε²/(2k) for full scores, uniform measure and a pseudometric loss, ε ≤ Lmax.

    Raises
    ------
    ConsistructError
        If the loss is no pseudometric (zero on the diagonal, symmetric, triangle inequality), or
        if there are too many labels to check and its class is not known to be one.
    """
    loss = as_loss(loss)
    _check_eps(eps)
    reason = _not_pseudometric(loss)
    if reason is not None:
        raise ConsistructError(f"Theorem 8 needs a pseudometric loss, but {reason}")
    size = loss.n_labels
    assert size is not None
    if eps > loss.max_value:
        return Bound(eps, math.inf, math.inf, "upper", "ε above the largest loss")
    log = 2 * math.log(eps) - math.log(2) - math.log(size) if eps > 0 else -math.inf
    return Bound(eps, math.exp(log) if log > -745 else 0.0, log, "upper", "Theorem 8")


def inconsistent_lower_bound(
    loss: Loss | str,
    scores: Structure,
    *,
    eps: float,
    version: Literal["two-sided", "one-sided", "linear program"] = "linear program",
) -> Bound:
    """Lower bound for any scores, including those that do not express the loss.

    For each pair, with Δ = F̃_i − F̃_j, x = (L_j − L_i) and z = (P_j − P_i) over true labels:
    "two-sided" max_v (εv − max_y|v x − z|)₊² / 2‖Δ‖²; "one-sided" drops the absolute value, which
    makes it the solution with the order constraint of i alone; "linear program" also requires that
    i be optimal and bounds min z·q over such distributions q. Each is at least as tight as the one
    before.
    """
    _check_eps(eps)
    problem = explicit_problem(as_loss(loss), scores)
    if eps == 0:
        return Bound(0.0, 0.0, -math.inf, "lower", f"inconsistent scores, {version}")
    given, eps = eps, eps / problem.unit
    best = math.inf
    for i in range(problem.n_rows):
        for j in range(problem.n_rows):
            if i == j or eps > problem.pair_limits[i, j]:
                continue
            height = _height(problem, i, j, eps, version)
            best = min(best, max(height, 0.0) ** 2 / (2 * problem.distances[i, j]))
    if 0 < best < math.inf:
        log = math.log(best) + problem.log_scale
        value = best * math.exp(problem.log_scale)
    else:  # nothing is proved, or no pair is feasible
        log, value = math.copysign(math.inf, best - 1), best
    return Bound(given, value, log, "lower", f"inconsistent scores, {version}")


def _height(problem: ExplicitProblem, i: int, j: int, eps: float, version: str) -> float:
    """The least z·q that the version can prove for distributions with x·q ≥ ε."""
    x = problem.loss[j] - problem.loss[i]
    z = problem.projected[j] - problem.projected[i]
    if version == "two-sided":
        # max over v ≥ 0 of εv − max_y |v x_y − z_y|: a linear program in (v, ξ)
        ones = np.ones(len(x))
        rows = np.vstack([np.column_stack([x, -ones]), np.column_stack([-x, -ones])])
        return -minimize(np.array([-eps, 1.0]), A_ub=rows, b_ub=np.concatenate([z, -z])).value
    if version == "one-sided":
        slope = hull_slope(x, z, eps)
        return float(slope * eps + (z - slope * x).min())
    if version == "linear program":
        others = np.delete(problem.loss, i, axis=0)
        A_eq, b_eq = simplex_row(len(x))
        return minimize(  # +inf if no distribution makes i optimal and j worse by ε
            z,
            A_ub=np.vstack([-x, problem.loss[i] - others]),
            b_ub=np.append(-eps, np.zeros(len(others))),
            A_eq=A_eq,
            b_eq=b_eq,
        ).value
    raise ValueError(
        f"version must be 'two-sided', 'one-sided' or 'linear program', got {version!r}"
    )


def expresses(loss: Loss, space: Structure) -> bool:
    """Whether every column of the loss, up to a constant, is a score function of the space."""
    if space.one_per_label or space == loss.score_space:
        return True
    try:
        space.coordinates(loss.score_space)
    except NotInSpanError:
        # the loss's own space may hold a constant that the loss does not need
        sizes = (loss.n_labels, loss.true_labels.size)
        listed = all(size is not None and size <= ENUMERATION_LIMIT for size in sizes)
        return listed and expresses_listed(loss, space)
    return True


def _not_pseudometric(loss: Loss) -> str | None:
    """Why the loss is no pseudometric, or None if it is one."""
    if loss.block_mixture is not None or loss.hamming_shape is not None:
        return None  # averages of discrete pseudometrics
    if loss.n_labels is None or loss.n_labels > ENUMERATION_LIMIT:
        return f"{loss!r} has too many labels to check it"
    L = loss.matrix()
    if L.shape[0] != L.shape[1]:
        return f"{loss!r} has {L.shape[0]} predictions and {L.shape[1]} true labels"
    scale = 1e-12 * max(1.0, float(L.max()))
    if np.abs(np.diag(L)).max() > scale:
        return f"{loss!r} is not zero on the diagonal"
    if np.abs(L - L.T).max() > scale:
        return f"{loss!r} is not symmetric"
    for middle in range(len(L)):
        if (L[:, middle, None] + L[middle, None, :] + scale < L).any():
            return f"{loss!r} violates the triangle inequality through label {middle}"
    return None


def _check_eps(eps: float) -> None:
    if not (math.isfinite(eps) and eps >= 0):
        raise ValueError(f"eps must be a finite number of at least 0, got {eps}")
