"""Learning curves of the paper's algorithm on problems with known risks, and the bounds beside."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy  # its submodules are imported on use

from consistruct._validation import check_count
from consistruct.calibration import calibration_function
from consistruct.guarantees.constants import (
    Constants,
    DataConstants,
    exp,
    paper_constants,
    sharp_constants,
)
from consistruct.guarantees.data_constants import optimum_norm
from consistruct.guarantees.simulation.coordinates import (
    orthonormal_coordinates,
    paper_coordinates,
)
from consistruct.guarantees.simulation.descent import Descent
from consistruct.guarantees.simulation.problem import SyntheticProblem

__all__ = ["VARIANTS", "LearningCurve", "LearningPoint", "Variant", "learning_curve"]

Variant = Literal["paper", "sharp", "known optimum"]
VARIANTS: tuple[Variant, ...] = ("paper", "sharp", "known optimum")
CONFIDENCE = 0.95


@dataclass(frozen=True)
class LearningPoint:
    """What N fresh examples gave, over independent repeats, and what was promised.

    Attributes
    ----------
    surrogate, task : float
        Mean excess risks over the repeats. Each risk is exact; only the training draws vary. The
        surrogate's leaves out constants unless the variant is "paper".
    surrogate_upper, task_upper : float
        Upper confidence limits of their expectations, jointly at 95 % over the points of a curve.
    surrogate_bound : float
        Theorem 5: factor·D·M/√N.
    task_bound : float
        Theorem 6: the ε at which the convex function below H reaches `surrogate_bound`, at most the
        largest excess risk there is.
    task_from_surrogate : float
        The same with the *measured* surrogate excess: what the calibration function alone loses.
    """

    n_steps: int
    surrogate: float
    surrogate_upper: float
    surrogate_bound: float
    task: float
    task_upper: float
    task_bound: float
    task_from_surrogate: float


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """Measured and promised excess risks against the number of examples.

    Attributes
    ----------
    variant : str
        Whose constants D, M and basis: see `learning_curve`.
    optimum_norm : float
        ‖W*‖ in the orthonormal centred basis.
    effective_classes : float
        k_eff of the scores; NaN where they do not express the loss.
    surrogate_start, task_start : float
        Excess risks of W = 0, before learning.
    """

    problem: SyntheticProblem
    variant: Variant
    D: float
    M: float
    factor: float
    optimum_norm: float
    effective_classes: float
    surrogate_start: float
    task_start: float
    repeats: int
    points: tuple[LearningPoint, ...]

    @property
    def holds(self) -> bool:
        """Whether the upper confidence limits of both risks stay below their bounds at every N."""
        return all(
            point.surrogate_upper <= point.surrogate_bound and point.task_upper <= point.task_bound
            for point in self.points
        )

    def reached(self, eps: float) -> float:
        """N at which the mean excess task risk falls to ε for good, on the line between points.

        Interpolated in log N and log risk; NaN if it was not above ε before or is above it at the
        largest N.
        """
        above = [point.task > eps for point in self.points]
        if not any(above) or above[-1]:
            return math.nan
        last = max(i for i, over in enumerate(above) if over)
        one, two = self.points[last], self.points[last + 1]
        if two.task <= 0:
            return float(two.n_steps)
        share = math.log(one.task / eps) / math.log(one.task / two.task)
        return math.exp((1 - share) * math.log(one.n_steps) + share * math.log(two.n_steps))


def learning_curve(
    problem: SyntheticProblem,
    n_steps: Sequence[int] = (10, 32, 100, 316, 1000, 3162, 10_000),
    *,
    variant: Variant = "paper",
    repeats: int = 10,
    random_state: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> LearningCurve:
    """Run the paper's algorithm, N steps on N fresh examples, and measure both excess risks.

    Projected averaged SGD from W = 0 with the constant step factor·D/(M√N); a run of its own for
    every N, since the step depends on it.

    Parameters
    ----------
    problem : SyntheticProblem
        From `synthetic_problem`.
    n_steps : sequence of int
        Values of N.
    variant : "paper", "sharp" or "known optimum"
        "paper": the paper's basis and constants with this problem's R and Q, factor 2. "sharp":
        orthonormal centred basis, D = B·Q, factor 1. "known optimum": the same with D = ‖W*‖, which
        a synthetic problem knows.
    repeats : int
        Independent runs, at least 2.
    random_state : int
    progress : callable, optional
        Called with (done, total) after each run.

    Examples
    --------
    >>> from consistruct.guarantees import synthetic_problem
    >>> from consistruct.losses import Hamming
    >>> problem = synthetic_problem(Hamming(20))
    >>> curve = learning_curve(problem, (100, 1000), variant="sharp", repeats=5)
    >>> all(point.surrogate_upper < point.surrogate_bound for point in curve.points)
    True
    """
    if variant not in VARIANTS:
        raise ValueError(f"variant must be one of {', '.join(VARIANTS)}, got {variant!r}")
    repeats = check_count(repeats, "repeats", minimum=2)
    sizes = tuple(check_count(n, "n_steps") for n in n_steps)
    if not sizes:
        raise ValueError("n_steps must contain at least one number of examples, got none")
    norm = optimum_norm(problem.scores, problem.optimum)
    constants = _constants(problem, variant, norm)
    centred = variant != "paper"
    basis = (orthonormal_coordinates if centred else paper_coordinates)(problem.scores)
    descent = Descent(problem, basis)
    D, M = exp(constants.log_D), exp(constants.log_M)
    streams = np.random.SeedSequence(random_state).spawn(len(sizes) * repeats)
    measured = np.empty((len(sizes), repeats, 2))
    for done, (place, stream) in enumerate(
        zip(np.ndindex(len(sizes), repeats), streams, strict=True)
    ):
        n = sizes[place[0]]
        weights = descent.run(
            n,
            step=constants.factor * D / (M * math.sqrt(n)),
            radius=D,
            rng=np.random.default_rng(stream),
        )
        measured[place] = (
            problem.surrogate_excess(weights, centred=centred),
            problem.task_excess(weights),
        )
        if progress is not None:
            progress(done + 1, len(streams))
    curve = calibration_function(problem.loss, problem.scores)
    envelope = curve.envelope()
    means, upper = measured.mean(axis=1), _upper_limits(measured)
    points = []
    for row, n in enumerate(sizes):
        log_bound = constants.log_excess(n)
        points.append(
            LearningPoint(
                n_steps=n,
                surrogate=float(means[row, 0]),
                surrogate_upper=float(upper[row, 0]),
                surrogate_bound=exp(log_bound),
                task=float(means[row, 1]),
                task_upper=float(upper[row, 1]),
                task_bound=envelope.inverse_log(log_bound),
                task_from_surrogate=envelope.inverse(float(means[row, 0])),
            )
        )
    start = np.zeros_like(problem.optimum)
    classes = curve.effective_classes
    return LearningCurve(
        problem=problem,
        variant=variant,
        D=D,
        M=M,
        factor=constants.factor,
        optimum_norm=norm,
        effective_classes=math.nan if classes is None else float(classes),
        surrogate_start=problem.surrogate_excess(start, centred=centred),
        task_start=problem.task_excess(start),
        repeats=repeats,
        points=tuple(points),
    )


def _constants(problem: SyntheticProblem, variant: Variant, norm: float) -> Constants:
    loss, space = problem.loss, problem.scores
    if variant == "paper":
        return paper_constants(loss, space, radius=problem.radius, q_bound=problem.q_bound)
    data = DataConstants(optimum_norm=norm if variant == "known optimum" else None)
    return sharp_constants(loss, space, radius=problem.radius, q_bound=problem.q_bound, data=data)


def _upper_limits(measured: np.ndarray) -> np.ndarray:
    """One-sided limits of the means, Student's t; Bonferroni makes them hold together."""
    n_points, repeats = measured.shape[:2]
    quantile = scipy.special.stdtrit(repeats - 1, 1 - (1 - CONFIDENCE) / n_points)
    spread = measured.std(axis=1, ddof=1) / math.sqrt(repeats)
    return np.asarray(measured.mean(axis=1) + quantile * spread)
