"""D, M and the rate of averaged SGD on the quadratic surrogate: the paper's and the sharp ones.

The averaged iterate of N steps has an expected excess surrogate risk of at most factor·D·M/√N if
‖W*‖_HS ≤ D and the expected squared norm of the stochastic gradient is at most M²; the step is
factor·D/(M√N). The paper projects on a ball of radius D and has factor 2; from W = 0 it is 1, since
‖W₀ − W*‖ ≤ D and not 2D.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import check_number
from consistruct.calibration import Envelope
from consistruct.guarantees.target_norm import squared_target_norms, target_norm
from consistruct.losses.base import Loss
from consistruct.losses.hamming import Hamming
from consistruct.protocols import FloatArray
from consistruct.scores import Blocks, Full, Separable
from consistruct.scores.base import BaseScoreSpace

__all__ = [
    "Constants",
    "DataConstants",
    "exp",
    "log_gram_range",
    "optimum_norm",
    "paper_constants",
    "read_data_constants",
    "samples_gap",
    "sharp_constants",
]

OVERFLOW = 709.0  # e^709 is the last power below the largest float


@dataclass(frozen=True)
class Constants:
    """D and M as logarithms, the factor of the rate, and what each rests on."""

    log_D: float  # noqa: N815 - the paper's symbol
    log_M: float  # noqa: N815 - the paper's symbol
    factor: float
    assumptions: tuple[tuple[str, str], ...]  # (quantity, text)

    def log_iterations(self, log_H: float) -> float:
        """log of N* = (factor·D·M/Ȟ)²: 0 steps where Ȟ = +inf, +inf where Ȟ = 0."""
        if log_H == math.inf or self.log_D + self.log_M == -math.inf:
            return -math.inf
        return 2 * (math.log(self.factor) + self.log_D + self.log_M - log_H)

    def log_excess(self, n_steps: float) -> float:
        """log of factor·D·M/√N: the excess surrogate risk that N steps guarantee."""
        return math.log(self.factor) + self.log_D + self.log_M - 0.5 * math.log(n_steps)


@dataclass(frozen=True)
class DataConstants:
    """What data say about R, D and M, measured or given; None where the worst case stays."""

    radius: float | None = None
    optimum_norm: float | None = None
    gradient_second_moment: float | None = None
    # √λ_max(E‖φ‖²φφᵀ) and √E‖u_y‖²‖φ‖²: by Minkowski M ≤ D·first + second for ‖W‖ ≤ D
    sample: tuple[float, float] | None = None

    @property
    def radius_text(self) -> str:
        return "" if self.radius is None else ", the largest norm among the given features"


def paper_constants(
    loss: Loss, space: BaseScoreSpace, *, radius: float, q_bound: float
) -> Constants:
    """D = √r·Lmax·Q/√λ_min(Ḡ), M = λ_max(Ḡ)·D·R² + √λ_max(Ḡ)·Lmax·R, factor 2.

    λ_min is the smallest non-zero eigenvalue: the paper's σ_min²/k, of which it forgets "non-zero".
    """
    low, high, basis = _paper_basis(loss, space)
    log_top = math.log(loss.max_value) if loss.max_value > 0 else -math.inf
    log_D = 0.5 * math.log(space.rank) - 0.5 * low + log_top + math.log(q_bound)
    log_M = _log_sum(high + log_D + 2 * math.log(radius), 0.5 * high + log_top + math.log(radius))
    return Constants(
        log_D,
        log_M,
        2.0,
        (
            ("D", f"√r·√k·Lmax·Q/σ_min bounds ‖W*‖; σ_min is the smallest non-zero one; {basis}"),
            ("M", "λ_max·D·R² + √λ_max·Lmax·R bounds the stochastic gradient in the ball"),
            ("Q", f"each q_c(x) lies in the RKHS and Σ_c ‖q_c‖ ≤ {q_bound:g}: well specified"),
            ("R", f"‖φ(x)‖ ≤ {radius:g}"),
            ("N", "step 2D/(M√N) and 2DM/√N ≤ Ȟ(ε), Ȟ a convex function below H; fresh examples"),
        ),
    )


def sharp_constants(
    loss: Loss, space: BaseScoreSpace, *, radius: float, q_bound: float, data: DataConstants
) -> Constants:
    """D = B·Q, M = D·R² + B·R in an orthonormal centred basis, from W = 0.

    ‖W*‖ = ‖Σ_c u_c ⊗ q_c‖ ≤ Σ_c ‖u_c‖‖q_c‖ ≤ B·Q needs no √r, an orthonormal basis has κ = 1, and
    centring leaves the variance of the loss over predictions instead of Lmax².
    """
    norm = target_norm(loss, space)
    log_D = norm.log + math.log(q_bound)
    d_text = f"B·Q bounds ‖W*‖ in an orthonormal basis; {norm.reason}"
    if data.optimum_norm is not None:
        log_D = math.log(data.optimum_norm) if data.optimum_norm > 0 else -math.inf
        d_text = f"given: ‖W*‖ = {data.optimum_norm:g} in the orthonormal centred basis"
    log_M = _log_sum(log_D + 2 * math.log(radius), norm.log + math.log(radius))
    m_text = "D·R² + B·R bounds the stochastic gradient in the ball"
    if data.gradient_second_moment is not None:
        moment = data.gradient_second_moment
        log_M = 0.5 * math.log(moment) if moment > 0 else -math.inf
        m_text = f"given: E‖gradient‖² ≤ {moment:g} for every W in the ball of radius D"
    elif data.sample is not None:
        curvature, target = data.sample
        log_M = _log_sum(log_D + _log(curvature), _log(target))
        m_text = (
            "D·√λ_max(E‖φ‖²φφᵀ) + √E‖u_y‖²‖φ‖², averages over the given sample in place of "
            "expectations"
        )
    centred = (
        "constants are divided out: the scores contain the constant"
        if space.contains_constant
        else "not centred: these scores do not contain the constant"
    )
    bound = f"Σ_c ‖q_c‖ ≤ {q_bound:g}" if data.optimum_norm is None else "not used, D is given"
    return Constants(
        log_D,
        log_M,
        1.0,
        (
            ("D", f"{d_text}; {centred}"),
            ("M", m_text),
            ("Q", f"each q_c(x) lies in the RKHS: well specified; {bound}"),
            ("R", f"‖φ(x)‖ ≤ {radius:g}{data.radius_text}"),
            ("N", "from W = 0, step D/(M√N) and DM/√N ≤ Ȟ(ε), Ȟ convex below H; fresh examples"),
        ),
    )


def samples_gap(envelope: Envelope, eps: ArrayLike) -> Any:
    """N* goes as 1/Ȟ²: what a gap in Ȟ means for it."""
    return (1 + envelope.gap(eps)) ** 2 - 1


def log_gram_range(space: BaseScoreSpace) -> tuple[float, float]:
    """log of the smallest non-zero and of the largest eigenvalue of Ḡ."""
    if isinstance(space, Full) and space.measure == "uniform":
        log_share = -math.log(space.width)
        return log_share, log_share
    if isinstance(space, Blocks) and space.reference is None:
        sizes, log_k = space.partition.block_sizes, math.log(space.partition.n_labels)
        return math.log(min(sizes)) - log_k, math.log(max(sizes)) - log_k
    values, _ = space.gram().eigenvalues()
    return math.log(values[-1]), math.log(values[0])


def _paper_basis(loss: Loss, space: BaseScoreSpace) -> tuple[float, float, str]:
    """log λ_min, log λ_max and a word on the basis F that the paper uses for these scores."""
    if isinstance(loss, Hamming) and isinstance(space, Separable) and space.n_states == 2:
        # F = [½·1, h^(1) … h^(T)]: 4Ḡ has λ_min·λ_max = 1 and λ_min + λ_max = T + 2
        T = space.rank - 1
        log_high = math.log((T + 2 + math.sqrt(T * (T + 4))) / 2)
        return -log_high - math.log(4), log_high - math.log(4), "the paper's basis [½, bits]"
    return *log_gram_range(space), "the basis of the score space"


def read_data_constants(
    loss: Loss,
    space: BaseScoreSpace,
    *,
    features: ArrayLike | None,
    true: ArrayLike | None,
    optimum_norm: float | None,
    gradient_second_moment: float | None,
) -> DataConstants:
    """Check what was given and reduce features (n, d) and truths to a few numbers."""
    if optimum_norm is not None:
        optimum_norm = check_number(optimum_norm, "optimum_norm", low=0.0)
    if gradient_second_moment is not None:
        gradient_second_moment = check_number(
            gradient_second_moment, "gradient_second_moment", low=0.0
        )
    if features is None:
        if true is not None:
            raise ValueError("true was given without features; pass features=(n, d) as well")
        return DataConstants(None, optimum_norm, gradient_second_moment)
    phi = _check_matrix(features, "features")
    square = (phi**2).sum(axis=1)
    if not square.any():
        raise ValueError("features must not all be zero: their largest norm is the radius R")
    sample = None
    if true is not None:
        norms = squared_target_norms(loss, space, true)
        if len(norms) != len(phi):
            raise ValueError(
                f"features and true must have the same length, got {len(phi)} and {len(norms)}"
            )
        weighted = phi * np.sqrt(square / len(phi))[:, None]
        curvature = float(np.linalg.svd(weighted, compute_uv=False)[0])
        sample = (curvature, math.sqrt(float(np.mean(norms * square))))
    return DataConstants(math.sqrt(square.max()), optimum_norm, gradient_second_moment, sample)


def optimum_norm(space: BaseScoreSpace, weights: ArrayLike) -> float:
    """‖W‖_HS in the orthonormal centred basis of the scores: D of a fitted model.

    Parameters
    ----------
    space : ScoreSpace
        The scores that were learnt.
    weights : (d, width) array
        θ = φ(x) @ weights, a constant feature included in φ if there is an intercept.

    Examples
    --------
    >>> from consistruct.scores import Full
    >>> float(optimum_norm(Full(2), [[3.0, 1.0]]))   # constants count for nothing: ±1 is left
    1.0
    """
    W = _check_matrix(weights, "weights")
    if W.shape[1] != space.width:
        raise ValueError(
            f"weights must have one column per score parameter, {space.width}, got {W.shape[1]}"
        )
    square = float((W * space.gram().apply(W)).sum())
    if space.contains_constant:
        square -= float(((W @ space.mean_embedding()) ** 2).sum())
    return math.sqrt(max(square, 0.0))


def _check_matrix(values: ArrayLike, name: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or array.size == 0 or not np.isfinite(array).all():
        raise ValueError(
            f"{name} must be a non-empty matrix of finite numbers, got shape {array.shape}"
        )
    return array


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


def _log_sum(one: float, other: float) -> float:
    return float(np.logaddexp(one, other))


def exp(log: float) -> float:
    """e^log, +inf where that is above all floats.

    >>> exp(0.0), exp(1e6), exp(-math.inf)
    (1.0, inf, 0.0)
    """
    return math.exp(log) if log <= OVERFLOW else math.inf
