"""How long the targets of a loss are: B² = max_y ‖u_y‖², the loss as a function of the prediction.

In a basis of the scores that is orthonormal under the reference measure μ, the quadratic surrogate
is ½‖θ + u_y‖² with ‖u_y‖² = E_c (P_F L)(c, y)². Where the scores contain the constant, the part of
u_y along it changes no decision and no excess; without it ‖u_y‖² is the *variance* over a random
prediction, Var_c (P_F L)(c, y). That is what has to be learnt: 1/k for the 0-1 loss, 1/4T for
Hamming, however large Lmax.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from consistruct.calibration.bounds import expresses
from consistruct.labels.base import ENUMERATION_LIMIT
from consistruct.losses import Decision
from consistruct.losses.algebra import Combination
from consistruct.losses.base import Loss, dense_target
from consistruct.losses.hamming import Hamming
from consistruct.protocols import FloatArray
from consistruct.scores import Blocks, Full, Orthonormalised
from consistruct.scores.base import BaseScoreSpace

__all__ = ["TargetNorm", "squared_target_norms", "target_norm"]


@dataclass(frozen=True)
class TargetNorm:
    """B as the logarithm of its square, and where it comes from."""

    log_square: float
    exact: bool  # False: an upper bound
    reason: str

    @property
    def log(self) -> float:
        return self.log_square / 2


def target_norm(loss: Loss, space: BaseScoreSpace) -> TargetNorm:
    """B = max_y ‖u_y‖ in the centred orthonormal basis of the scores.

    Exact for 0-1, block, mixed and Hamming losses of any size and for every listed loss; otherwise
    the bound Var ≤ Lmax²/4 of a variable in [0, Lmax].

    Examples
    --------
    >>> import math
    >>> from consistruct.losses import Hamming
    >>> found = target_norm(Hamming(1000), Hamming(1000).score_space)
    >>> round(math.exp(found.log_square) * 4000, 12), found.exact   # B² = 1/4T
    (1.0, True)
    """
    structured = _structured(loss, space)
    if structured is not None:
        return TargetNorm(structured, True, "B² = max_y Var_c L(c, y) in closed form")
    sizes = (loss.n_labels, loss.truths.size)
    if all(size is not None and size <= ENUMERATION_LIMIT for size in sizes):
        largest = float(_listed(loss, space).max())
        log_square = math.log(largest) if largest > 0 else -math.inf
        moment = "Var_c" if space.contains_constant else "E_c"
        return TargetNorm(log_square, True, f"B² = max_y {moment} of the projected loss, listed")
    if isinstance(loss, Decision):  # costs of at most 1 in size: ‖c‖² ≤ d, in the metric Ḡ
        largest = float(space.gram().eigenvalues()[0][0])
        log_square = math.log(space.width * largest)
        return TargetNorm(log_square, False, "B² ≤ λ_max(Ḡ)·d for costs of at most 1 in size")
    top = loss.max_value
    share = 0.25 if space.contains_constant else 1.0
    log_square = math.log(share) + 2 * math.log(top) if top > 0 else -math.inf
    return TargetNorm(log_square, False, f"B² ≤ {share:g}·Lmax², too many labels to list")


def squared_target_norms(loss: Loss, space: BaseScoreSpace, true: ArrayLike) -> FloatArray:
    """‖u_y‖² of given truths, (n,): no enumeration where the scores express the loss."""
    if not expresses(loss, space):
        return _listed(loss, space)[loss.truths.index(true).astype(np.int64)]
    own = loss.score_space
    target = dense_target(loss.target(true))
    mean = target @ own.mean_embedding()
    square = (target * own.gram().apply(target)).sum(axis=1) - mean**2
    return np.asarray(np.maximum(square, 0.0), dtype=np.float64)


def _structured(loss: Loss, space: BaseScoreSpace) -> float | None:
    """log B² without listing anything, or None."""
    if isinstance(loss, Combination) and len(loss.terms) == 1:
        weight, inner = loss.terms[0]
        found = _structured(inner, space)
        if found is None or weight == 0:
            return found if found is None else -math.inf
        return found + 2 * math.log(weight)
    if space.measure != "uniform":
        return None
    if isinstance(loss, Hamming) and loss.T is not None and expresses(loss, space):
        # T independent parts, each wrong with probability 1 − 1/s
        return _log_fraction(Fraction(loss.n_states - 1, loss.T * loss.n_states**2))
    mixed = loss.block_mixture
    if mixed is None:
        return None
    partition, eta = mixed
    total, share = partition.n_labels, Fraction(eta)
    if isinstance(space, Blocks) and space.partition == partition:
        # averaged over the block of y the agreement is (1−η) + η/s; elsewhere it is 0
        return _log_fraction(
            max(
                ((1 - share) + share / s) ** 2 * Fraction(s, total) * (1 - Fraction(s, total))
                for s in set(partition.block_sizes)
            )
        )
    if not (isinstance(space, Full) or space == loss.score_space):
        return None

    def variance(s: int) -> Fraction:
        # 1 − L = η[same label] + (1−η)[same block], and the first implies the second
        label, block = Fraction(1, total), Fraction(s, total)
        mean = share * label + (1 - share) * block
        second = (share**2 + 2 * share * (1 - share)) * label + (1 - share) ** 2 * block
        return second - mean**2

    return _log_fraction(max(variance(s) for s in set(partition.block_sizes)))


def _listed(loss: Loss, space: BaseScoreSpace) -> FloatArray:
    """‖u_y‖² of every truth, (m,), from the loss matrix."""
    L = loss.matrix()
    weights = space.predictions.weights()
    mean = weights @ L
    if isinstance(space, Full):
        return np.asarray(weights @ (L - mean) ** 2, dtype=np.float64)
    basis = Orthonormalised(space).matrix()
    if space.contains_constant:
        L = L - mean
    return np.asarray(((basis.T @ (weights[:, None] * L)) ** 2).sum(axis=0), dtype=np.float64)


def _log_fraction(value: Fraction) -> float:
    """log of an exact ratio of integers of any size; −inf at 0."""
    if value == 0:
        return -math.inf
    return math.log(value.numerator) - math.log(value.denominator)
