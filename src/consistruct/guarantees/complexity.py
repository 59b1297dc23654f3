"""How many examples a target accuracy takes, before any training."""

from __future__ import annotations

import math
from dataclasses import dataclass

from numpy.typing import ArrayLike

from consistruct._validation import check_number
from consistruct.calibration import CalibrationFunction, calibration_function
from consistruct.guarantees.constants import (
    Constants,
    default_accuracy,
    exp,
    paper_constants,
    samples_gap,
    sharp_constants,
)
from consistruct.guarantees.data_constants import read_data_constants
from consistruct.losses.base import Loss, as_loss
from consistruct.structures import Structure

__all__ = [
    "GuaranteeColumn",
    "SampleComplexity",
    "envelope_at",
    "sample_complexity",
]


@dataclass(frozen=True)
class GuaranteeColumn:
    """D, M and N* of one analysis. The logarithms stay finite where the numbers do not.

    Attributes
    ----------
    assumptions : tuple of (quantity, text)
        What D, M, Q, R and N rest on.
    """

    log_D: float  # noqa: N815 - the paper's symbol
    log_M: float  # noqa: N815 - the paper's symbol
    log_iterations: float
    factor: float
    assumptions: tuple[tuple[str, str], ...]

    @property
    def D(self) -> float:  # noqa: N802 - the paper's symbol
        """Bound on the norm of the optimum."""
        return exp(self.log_D)

    @property
    def M(self) -> float:  # noqa: N802 - the paper's symbol
        """Bound on the root of the expected squared gradient."""
        return exp(self.log_M)

    @property
    def DM(self) -> float:  # noqa: N802 - the paper's symbol
        """The constant of the rate factor·DM/√N."""
        return exp(self.log_D + self.log_M)

    @property
    def iterations(self) -> float:
        """N*: examples, each used once. 0 if any predictor will do, +inf if no number suffices."""
        return exp(self.log_iterations)

    @property
    def log10_iterations(self) -> float:
        """log₁₀ N*, finite where N* overflows."""
        return self.log_iterations / math.log(10)

    def excess_after(self, n_steps: float) -> float:
        """factor·D·M/√N: the expected excess *surrogate* risk that N fresh examples guarantee."""
        n_steps = check_number(n_steps, "n_steps", low=0.0, open_low=True)
        return exp(math.log(self.factor) + self.log_D + self.log_M - 0.5 * math.log(n_steps))

    @property
    def step(self) -> float:
        """Step size factor·D/(M√N) at N = N*; NaN if no step is needed."""
        if self.log_iterations == -math.inf:
            return math.nan
        return exp(math.log(self.factor) + self.log_D - self.log_M - self.log_iterations / 2)


@dataclass(frozen=True)
class SampleComplexity:
    """The result of `sample_complexity`: two columns and what they were computed from.

    Attributes
    ----------
    eps_reason : str
        Where ε comes from.
    log_envelope : float
        log Ȟ(ε) of the convex function below H that both columns use.
    gap : float
        By which share N* may be too large because H is known by values only: 0 where its pieces
        are known, NaN where H is known from below only (Theorem 7).
    consistency_level : float
        At or below it no number of examples suffices.
    approximation_error : float
        What comes on top of ε because the scores can predict some labels only.
    """

    loss: Loss
    scores: Structure
    eps: float
    eps_reason: str
    radius: float
    q_bound: float
    log_envelope: float
    gap: float
    consistency_level: float
    approximation_error: float
    max_eps: float
    method: str
    paper: GuaranteeColumn
    sharp: GuaranteeColumn


def sample_complexity(
    loss: Loss | str,
    scores: Structure | str | ArrayLike | None = None,
    *,
    eps: float | None = None,
    radius: float = 1.0,
    q_bound: float = 1.0,
    features: ArrayLike | None = None,
    true: ArrayLike | None = None,
    optimum_norm: float | None = None,
    gradient_second_moment: float | None = None,
) -> SampleComplexity:
    """Examples after which averaged SGD has an expected excess task risk below ε.

    Theorem 6 of the paper: N* = (factor·D·M/Ȟ(ε))². D bounds the norm of the optimum, M the
    stochastic gradient, and Ȟ is a convex non-decreasing function below the calibration function
    (H itself is not convex, and Jensen's inequality needs that). Worst-case numbers: they compare
    losses and score families; a real data set usually needs far fewer examples.

    ``paper`` has the paper's constants. ``sharp`` drops what the proof does not need: √r, the
    condition number (orthonormal basis), the mean of the loss (centered), the factor 2 (start at
    0).

    Parameters
    ----------
    loss : Loss or spec
    scores : None, "full", ScoreSpace or (k, r) array
        As in `calibration_function`.
    eps : float, optional
        Excess task risk over the best prediction rule *with these scores*. If not given, a tenth
        of what the best constant prediction loses (`constants.default_accuracy`), on the true
        labels given or when all true labels are equally likely.
    radius : float
        R with ‖φ(x)‖ ≤ R.
    q_bound : float
        Q with Σ_c ‖q_c‖ ≤ Q for the conditional probabilities q_c(x) in the RKHS. It may itself
        grow with the number of labels: this is where much of the hardness hides.
    features : (n, d) array, optional
        R becomes the largest norm of a row.
    true : (n, *label shape) array, optional
        True labels of these rows; M of ``sharp`` is then computed from the sample.
    optimum_norm : float, optional
        D of ``sharp``: the norm of a fitted optimum (`guarantees.optimum_norm`) instead of B·Q.
    gradient_second_moment : float, optional
        M² of ``sharp``, valid for every W with ‖W‖ ≤ D.

    Examples
    --------
    >>> import consistruct as cs
    >>> found = cs.sample_complexity(cs.losses.Hamming(1000), eps=0.1)
    >>> round(found.sharp.iterations), round(found.paper.log10_iterations, 1)   # 4·ξ(1)²/ε⁴
    (160000, 30.4)
    """
    loss = as_loss(loss)
    if eps is not None:
        eps = check_number(eps, "eps", low=0.0, open_low=True)
    radius = check_number(radius, "radius", low=0.0, open_low=True)
    q_bound = check_number(q_bound, "q_bound", low=0.0, open_low=True)
    if features is not None and radius != 1.0:
        raise ValueError("pass either radius or features, whose largest norm is the radius")
    curve = calibration_function(loss, scores)
    space = curve.scores
    data = read_data_constants(
        loss,
        space,
        features=features,
        true=true,
        optimum_norm=optimum_norm,
        gradient_second_moment=gradient_second_moment,
    )
    radius = radius if data.radius is None else data.radius
    reason = "requested"
    if eps is None:
        chosen = default_accuracy(
            loss, true=true, max_eps=curve.max_eps, level=curve.consistency_level
        )
        eps, reason = chosen.eps, chosen.reason
    paper = paper_constants(loss, space, radius=radius, q_bound=q_bound)
    sharp = sharp_constants(loss, space, radius=radius, q_bound=q_bound, data=data)
    log_H, gap = envelope_at(curve, eps)
    return SampleComplexity(
        loss=curve.loss,
        scores=curve.scores,
        eps=eps,
        eps_reason=reason,
        radius=radius,
        q_bound=q_bound,
        log_envelope=log_H,
        gap=gap,
        consistency_level=curve.consistency_level,
        approximation_error=curve.approximation_error,
        max_eps=curve.max_eps,
        method=curve.method,
        paper=_column(paper, log_H),
        sharp=_column(sharp, log_H),
    )


def envelope_at(curve: CalibrationFunction, eps: float) -> tuple[float, float]:
    """log Ȟ(ε), and the share by which N* may be too large for not knowing H better."""
    if eps <= curve.consistency_level:  # H = 0, and so is the envelope
        return -math.inf, 0.0
    envelope = curve.envelope(eps)
    return float(envelope.log(eps)), float(samples_gap(envelope, eps))


def _column(constants: Constants, log_H: float) -> GuaranteeColumn:
    return GuaranteeColumn(
        constants.log_D,
        constants.log_M,
        constants.log_iterations(log_H),
        constants.factor,
        constants.assumptions,
    )
