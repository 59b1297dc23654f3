"""What a sample size is computed from: ε, and D, M and the rate of averaged SGD.

ε is requested, or a share of what knowing nothing costs. D and M are the paper's or the sharp ones,
for the quadratic surrogate.

The averaged iterate of N steps has an expected excess surrogate risk of at most factor·D·M/√N if
‖W*‖_HS ≤ D and the expected squared norm of the stochastic gradient is at most M²; the step is
factor·D/(M√N). The paper projects on a ball of radius D and has factor 2; from W = 0 it is 1, since
‖W₀ − W*‖ ≤ D and not 2D.

The sharp ones rest on B² = max_y ‖u_y‖², how long the targets are. In a basis of the scores that is
orthonormal under the reference measure μ, the quadratic surrogate is ½‖θ + u_y‖² with
‖u_y‖² = E_c (P_F L)(c, y)². Where the scores contain the constant, the part of u_y along it changes
no decision and no excess; without it ‖u_y‖² is the *variance* over a random prediction,
Var_c (P_F L)(c, y). That is what has to be learned: 1/k for the 0-1 loss, 1/4T for Hamming, however
large Lmax.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from consistruct.calibration.bounds import expresses
from consistruct.calibration.envelope import Envelope
from consistruct.calibration.proofs.base import short_text
from consistruct.exceptions import ConsistructError
from consistruct.losses.algebra import Combination
from consistruct.losses.base import Loss, dense_target
from consistruct.protocols import FloatArray, LabelArray
from consistruct.structures import Orthonormalized, Structure
from consistruct.structures.base import ENUMERATION_LIMIT

__all__ = [
    "Accuracy",
    "Constants",
    "DataConstants",
    "TargetNorm",
    "default_accuracy",
    "exp",
    "log_gram_range",
    "paper_constants",
    "samples_gap",
    "sharp_constants",
    "squared_target_norms",
    "target_norm",
]

OVERFLOW = 709.0  # e^709 is the last power below the largest float
SHARE = 0.1
LISTED = 1024  # labels whose loss matrix is averaged; beyond, true labels are drawn
DRAWN = 2048  # true labels to choose the constant prediction, and as many to price it
TRIED = 64  # predictions to choose from where there is no decoder


# --- D, M and the rate ---


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


def paper_constants(loss: Loss, space: Structure, *, radius: float, q_bound: float) -> Constants:
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
    loss: Loss, space: Structure, *, radius: float, q_bound: float, data: DataConstants
) -> Constants:
    """D = B·Q, M = D·R² + B·R in an orthonormal centered basis, from W = 0.

    ‖W*‖ = ‖Σ_c u_c ⊗ q_c‖ ≤ Σ_c ‖u_c‖‖q_c‖ ≤ B·Q needs no √r, an orthonormal basis has κ = 1, and
    centering leaves the variance of the loss over predictions instead of Lmax².
    """
    norm = target_norm(loss, space)
    log_D = norm.log + math.log(q_bound)
    d_text = f"B·Q bounds ‖W*‖ in an orthonormal basis; {norm.reason}"
    if data.optimum_norm is not None:
        log_D = math.log(data.optimum_norm) if data.optimum_norm > 0 else -math.inf
        d_text = f"given: ‖W*‖ = {data.optimum_norm:g} in the orthonormal centered basis"
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
    centered = (
        "constants are divided out: the scores contain the constant"
        if space.contains_constant
        else "not centered: these scores do not contain the constant"
    )
    bound = f"Σ_c ‖q_c‖ ≤ {q_bound:g}" if data.optimum_norm is None else "not used, D is given"
    return Constants(
        log_D,
        log_M,
        1.0,
        (
            ("D", f"{d_text}; {centered}"),
            ("M", m_text),
            ("Q", f"each q_c(x) lies in the RKHS: well specified; {bound}"),
            ("R", f"‖φ(x)‖ ≤ {radius:g}{data.radius_text}"),
            ("N", "from W = 0, step D/(M√N) and DM/√N ≤ Ȟ(ε), Ȟ convex below H; fresh examples"),
        ),
    )


def samples_gap(envelope: Envelope, eps: ArrayLike) -> Any:
    """N* goes as 1/Ȟ²: what a gap in Ȟ means for it."""
    return (1 + envelope.gap(eps)) ** 2 - 1


def log_gram_range(space: Structure) -> tuple[float, float]:
    """log of the smallest non-zero and of the largest eigenvalue of Ḡ."""
    if space.one_per_label and space.measure == "uniform":
        log_share = -math.log(space.width)
        return log_share, log_share
    if space.partition is not None and space.measure == "uniform":
        sizes, log_k = space.partition.block_sizes, math.log(space.partition.n_labels)
        return math.log(min(sizes)) - log_k, math.log(max(sizes)) - log_k
    with np.errstate(over="ignore", invalid="ignore"):
        values, _ = space.gram().eigenvalues()
    # squares of scores beyond 1e154 are infinite, those below 1e-162 are zero
    if not len(values) or not 0 < values[-1] <= values[0] < math.inf:
        raise ConsistructError(
            "the squares of these scores are beyond all floats, so that the constants of "
            "stochastic gradient descent are not known; scale the columns of F to about 1"
        )
    return math.log(values[-1]), math.log(values[0])


def _paper_basis(loss: Loss, space: Structure) -> tuple[float, float, str]:
    """log λ_min, log λ_max and a word on the basis F that the paper uses for these scores."""
    if loss.hamming_shape is not None and space.separate_states == 2:
        # F = [½·1, h^(1) … h^(T)]: 4Ḡ has λ_min·λ_max = 1 and λ_min + λ_max = T + 2
        T = space.rank - 1
        log_high = math.log((T + 2 + math.sqrt(T * (T + 4))) / 2)
        return -log_high - math.log(4), log_high - math.log(4), "the paper's basis [½, bits]"
    return *log_gram_range(space), "the basis of the score space"


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


# --- how long the targets are ---


@dataclass(frozen=True)
class TargetNorm:
    """B as the logarithm of its square, and where it comes from."""

    log_square: float
    exact: bool  # False: an upper bound
    reason: str

    @property
    def log(self) -> float:
        return self.log_square / 2


def target_norm(loss: Loss, space: Structure) -> TargetNorm:
    """B = max_y ‖u_y‖ in the centered orthonormal basis of the scores.

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
    sizes = (loss.n_labels, loss.true_labels.size)
    if all(size is not None and size <= ENUMERATION_LIMIT for size in sizes):
        largest = float(_listed(loss, space).max())
        log_square = math.log(largest) if largest > 0 else -math.inf
        moment = "Var_c" if space.contains_constant else "E_c"
        return TargetNorm(log_square, True, f"B² = max_y {moment} of the projected loss, listed")
    if loss.solver is not None:  # costs of at most 1 in size: ‖c‖² ≤ d, in the metric Ḡ
        largest = float(space.gram().eigenvalues()[0][0])
        log_square = math.log(space.width * largest)
        return TargetNorm(log_square, False, "B² ≤ λ_max(Ḡ)·d for costs of at most 1 in size")
    top = loss.max_value
    share = 0.25 if space.contains_constant else 1.0
    log_square = math.log(share) + 2 * math.log(top) if top > 0 else -math.inf
    return TargetNorm(log_square, False, f"B² ≤ {share:g}·Lmax², too many labels to list")


def squared_target_norms(loss: Loss, space: Structure, true: ArrayLike) -> FloatArray:
    """‖u_y‖² of given true labels, (n,): no enumeration where the scores express the loss."""
    if not expresses(loss, space):
        return _listed(loss, space)[loss.true_labels.index(true).astype(np.int64)]
    own = loss.score_space
    target = dense_target(loss.target(true))
    mean = target @ own.mean_embedding()
    square = (target * own.gram().apply(target)).sum(axis=1) - mean**2
    return np.asarray(np.maximum(square, 0.0), dtype=np.float64)


def _structured(loss: Loss, space: Structure) -> float | None:
    """log B² without listing anything, or None."""
    if isinstance(loss, Combination) and len(loss.terms) == 1:
        weight, inner = loss.terms[0]
        found = _structured(inner, space)
        if found is None or weight == 0:
            return found if found is None else -math.inf
        return found + 2 * math.log(weight)
    if space.measure != "uniform":
        return None
    if loss.hamming_shape is not None and loss.n_labels is not None and expresses(loss, space):
        # T independent parts, each wrong with probability 1 − 1/s
        T, s = loss.hamming_shape
        assert T is not None
        return _log_fraction(Fraction(s - 1, T * s**2))
    mixed = loss.block_mixture
    if mixed is None:
        return None
    partition, eta = mixed
    total, share = partition.n_labels, Fraction(eta)
    if space.partition == partition:
        # averaged over the block of y the agreement is (1−η) + η/s; elsewhere it is 0
        return _log_fraction(
            max(
                ((1 - share) + share / s) ** 2 * Fraction(s, total) * (1 - Fraction(s, total))
                for s in set(partition.block_sizes)
            )
        )
    if not (space.one_per_label or space == loss.score_space):
        return None

    def variance(s: int) -> Fraction:
        # 1 − L = η[same label] + (1−η)[same block], and the first implies the second
        label, block = Fraction(1, total), Fraction(s, total)
        mean = share * label + (1 - share) * block
        second = (share**2 + 2 * share * (1 - share)) * label + (1 - share) ** 2 * block
        return second - mean**2

    return _log_fraction(max(variance(s) for s in set(partition.block_sizes)))


def _listed(loss: Loss, space: Structure) -> FloatArray:
    """‖u_y‖² of every true label, (m,), from the loss matrix."""
    L = loss.matrix()
    weights = space.predictions.weights()
    mean = weights @ L
    if space.one_per_label:
        return np.asarray(weights @ (L - mean) ** 2, dtype=np.float64)
    basis = Orthonormalized(space).matrix()
    if space.contains_constant:
        L = L - mean
    return np.asarray(((basis.T @ (weights[:, None] * L)) ** 2).sum(axis=0), dtype=np.float64)


def _log_fraction(value: Fraction) -> float:
    """log of an exact ratio of integers of any size; −inf at 0."""
    if value == 0:
        return -math.inf
    return math.log(value.numerator) - math.log(value.denominator)


# --- ε where none is requested ---


@dataclass(frozen=True)
class Accuracy:
    """An excess task risk worth planning for, and in one sentence why this one."""

    eps: float
    reason: str


def default_accuracy(
    loss: Loss,
    *,
    true: ArrayLike | None = None,
    max_eps: float = math.inf,
    level: float = 0.0,
) -> Accuracy:
    """A tenth of what the best constant prediction loses, rounded to two digits.

    Such a prediction needs no features and hardly any data, so an excess of the same size states
    that nothing was learned, and a tenth of it that most of what can be learned was.

    Parameters
    ----------
    loss : Loss
    true : (n, *label shape) array, optional
        Observed true labels; if not given all true labels count as equally likely (those that
        cannot be listed are drawn).
    max_eps : float
        The largest possible excess, which caps the result.
    level : float
        Consistency level of the scores: nothing is guaranteed below it, so it is added.

    Examples
    --------
    >>> from consistruct.losses import Hamming, ZeroOne
    >>> default_accuracy(ZeroOne(10)).eps, default_accuracy(Hamming(1000)).eps
    (0.09, 0.05)
    """
    if true is None:
        price, where = _uniform_price(loss)
    else:
        true_labels = np.asarray(true)
        price = _price(loss, true_labels, true_labels)
        where = f"on the {len(true_labels)} true labels given"
    if price <= 0:
        eps = _two_digits(SHARE * max_eps) if math.isfinite(max_eps) else SHARE * loss.max_value
        reason = (
            f"a tenth of the largest excess risk, because {where} one prediction is always right"
        )
    else:
        eps = _two_digits(SHARE * price)
        reason = f"a tenth of {price:.3g}, what the best constant prediction loses {where}"
    if level > 0:
        eps += level
        reason += f", above the consistency level {short_text(level)} of these scores"
    if eps > max_eps:
        return Accuracy(max_eps, "the largest possible excess risk")
    return Accuracy(eps, reason)


def _uniform_price(loss: Loss) -> tuple[float, str]:
    """What the best constant prediction loses when all true labels are equally likely."""
    sizes = (loss.n_labels, loss.true_labels.size)
    if all(size is not None and size <= LISTED for size in sizes):
        return float(loss.matrix().mean(axis=1).min()), "when all true labels are equally likely"
    drawn = loss.true_labels.sample(2 * DRAWN, np.random.default_rng(0))
    # priced on other true labels than it was chosen by: no optimism
    return _price(loss, drawn[:DRAWN], drawn[DRAWN:]), f"on {DRAWN} true labels drawn at random"


def _price(loss: Loss, chosen_by: LabelArray, priced_on: LabelArray) -> float:
    constant = _best_constant(loss, chosen_by)
    return float(loss(_repeated(constant, len(priced_on)), priced_on).mean())


def _best_constant(loss: Loss, true_labels: LabelArray) -> LabelArray:
    """decode(−mean target), or the best of some predictions where nothing decodes."""
    try:
        mean = dense_target(loss.target(true_labels)).mean(axis=0)
        return np.asarray(loss.score_space.decode(-mean[None])[0])
    except ConsistructError:  # more labels than can be listed, and no structure
        tried = loss.predictions.sample(TRIED, np.random.default_rng(1))
        prices = [loss(_repeated(one, len(true_labels)), true_labels).mean() for one in tried]
        return np.asarray(tried[int(np.argmin(prices))], dtype=tried.dtype)


def _repeated(label: LabelArray, n: int) -> LabelArray:
    return np.repeat(np.asarray(label)[None], n, axis=0)


def _two_digits(value: float) -> float:
    return float(f"{value:.1e}")
