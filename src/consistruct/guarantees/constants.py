"""D, M and the rate of averaged SGD on the quadratic surrogate: the paper's and the sharp ones.

The averaged iterate of N steps has an expected excess surrogate risk of at most factor·D·M/√N if
‖W*‖_HS ≤ D and the expected squared norm of the stochastic gradient is at most M²; the step is
factor·D/(M√N). The paper projects on a ball of radius D and has factor 2; from W = 0 it is 1, since
‖W₀ − W*‖ ≤ D and not 2D.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from consistruct.guarantees.data import DataConstants
from consistruct.guarantees.logarithms import log_sum
from consistruct.guarantees.target_norm import target_norm
from consistruct.losses.base import Loss
from consistruct.losses.hamming import Hamming
from consistruct.scores import Blocks, Full, Separable
from consistruct.scores.base import BaseScoreSpace

__all__ = ["Constants", "log_gram_range", "paper_constants", "sharp_constants"]


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


def paper_constants(
    loss: Loss, space: BaseScoreSpace, *, radius: float, q_bound: float
) -> Constants:
    """D = √r·Lmax·Q/√λ_min(Ḡ), M = λ_max(Ḡ)·D·R² + √λ_max(Ḡ)·Lmax·R, factor 2.

    λ_min is the smallest non-zero eigenvalue: the paper's σ_min²/k, of which it forgets "non-zero".
    """
    low, high, basis = _paper_basis(loss, space)
    log_top = math.log(loss.max_value) if loss.max_value > 0 else -math.inf
    log_D = 0.5 * math.log(space.rank) - 0.5 * low + log_top + math.log(q_bound)
    log_M = log_sum(high + log_D + 2 * math.log(radius), 0.5 * high + log_top + math.log(radius))
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
    log_M = log_sum(log_D + 2 * math.log(radius), norm.log + math.log(radius))
    m_text = "D·R² + B·R bounds the stochastic gradient in the ball"
    if data.gradient_second_moment is not None:
        moment = data.gradient_second_moment
        log_M = 0.5 * math.log(moment) if moment > 0 else -math.inf
        m_text = f"given: E‖gradient‖² ≤ {moment:g} for every W in the ball of radius D"
    elif data.sample is not None:
        curvature, target = data.sample
        log_M = log_sum(log_D + _log(curvature), _log(target))
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


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf
