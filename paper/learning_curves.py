"""The paper's algorithm on problems with known risks, beside the bounds of Theorems 5 and 6.

The scores of the descent may have any basis: with θ' = θA and back θ = θ'B for rows θ, Fθ = F'θ'
for all labels (up to a constant if centered). The descent commutes with rotations of θ', so every
basis is turned until its Gram matrix is diagonal; a step then costs O(m·rank).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import scipy  # its submodules are imported on use

from consistruct._compile import compiled
from consistruct._validation import check_count
from consistruct.calibration import calibration_function
from consistruct.guarantees import optimum_norm
from consistruct.guarantees.constants import (
    Constants,
    DataConstants,
    exp,
    paper_constants,
    sharp_constants,
)
from consistruct.protocols import FloatArray, IntArray, LabelArray
from consistruct.structures import Structure
from consistruct.structures.base import ENUMERATION_LIMIT
from paper.problems import SyntheticProblem

Variant = Literal["paper", "sharp", "known optimum"]
VARIANTS: tuple[Variant, ...] = ("paper", "sharp", "known optimum")
CONFIDENCE = 0.95
ZERO = 1e-12  # eigenvalues below this share of the largest
BATCH = 1 << 22  # entries of targets held at a time: 32 MB


# --- bases of the scores ---


@dataclass(frozen=True, eq=False)
class Coordinates:
    """A basis with Gram matrix diag(spectrum)."""

    forward: FloatArray  # A, (width, rank)
    back: FloatArray  # B, (rank, width)
    spectrum: FloatArray  # (rank,)


def paper_coordinates(space: Structure) -> Coordinates:
    """Take [½, bits] for binary parts, as in the paper; otherwise the basis of the scores."""
    basis = np.eye(space.width)
    if space.separate_states == 2:
        T = space.rank - 1
        basis = np.zeros((2 * T, T + 1))
        basis[:2, 0] = 0.5  # ½ = ½(first bit is 0) + ½(first bit is 1)
        basis[np.arange(T) * 2 + 1, np.arange(T) + 1] = 1.0
    return _rotated(space, basis)


def orthonormal_coordinates(space: Structure) -> Coordinates:
    """Make the Gram matrix I, without the constant where the scores contain it."""
    rotated = _rotated(space, np.eye(space.width))
    root = np.sqrt(rotated.spectrum)
    forward, back = rotated.forward * root, rotated.back / root[:, None]
    if space.contains_constant:
        # the constant is F'c with c = E F', a unit vector
        constant = back @ space.mean_embedding()
        forward = forward - np.outer(forward @ constant, constant)
    return Coordinates(forward, back, np.ones(len(root)))


def _rotated(space: Structure, basis: FloatArray) -> Coordinates:
    """Turn to F' = F·basis·V with VᵀG'V diagonal, over non-zero eigenvalues."""
    gram = space.gram().dense()
    within = basis.T @ gram @ basis
    if np.count_nonzero(within - np.diag(np.diag(within))):
        values, vectors = np.linalg.eigh(within)
    else:
        values, vectors = np.diag(within).copy(), np.eye(len(within))
    kept = values > ZERO * values.max()
    turned = basis @ vectors[:, kept]
    # θ' is the least-squares solution of F'θ' = Fθ under the measure
    return Coordinates(gram @ turned / values[kept], turned.T.copy(), values[kept])


# --- the descent ---


@compiled
def _descend(
    features: FloatArray,  # (inputs, m)
    rows: IntArray,  # (n,)
    targets: FloatArray,  # (t, rank)
    picks: IntArray,  # (n,)
    spectrum: FloatArray,  # (rank,)
    step: float,
    radius: float,
    weights: FloatArray,  # (m, rank), changed
    total: FloatArray,  # (m, rank), changed: the sum of the points visited
) -> None:
    n_features, width = weights.shape
    slope = np.empty(width)
    for i in range(len(rows)):
        phi, target = features[rows[i]], targets[picks[i]]
        slope[:] = target
        for j in range(n_features):
            total[j] += weights[j]
            if phi[j] != 0.0:
                slope += phi[j] * weights[j]
        slope *= spectrum  # Ḡ(θ + u_y)
        square = 0.0
        for j in range(n_features):
            change = step * phi[j]
            if change != 0.0:
                weights[j] -= change * slope
            for c in range(width):
                square += weights[j, c] ** 2
        if square > radius**2:
            weights *= radius / math.sqrt(square)


@dataclass(frozen=True, eq=False)
class Descent:
    """The paper's projected averaged SGD on one problem in one basis, as one compiled loop.

    Step by step what the solver `PaperSGD` does: average the point, take the gradient of one
    example there, step, project on the ball. `PaperSGD` takes any surrogate, features and kernels,
    at 100 µs a step; this loop takes only the quadratic surrogate in coordinates that make its Gram
    matrix diagonal, and is some hundred times faster. The tests run both on the same examples.
    """

    problem: SyntheticProblem
    basis: Coordinates

    @cached_property
    def _table(self) -> FloatArray | None:
        """u_y of every true label in the basis, (labels, rank); None if too many to list."""
        true_labels = self.problem.loss.true_labels
        if true_labels.size is None or true_labels.size > ENUMERATION_LIMIT:
            return None
        return self.problem.targets(true_labels.enumerate()) @ self.basis.forward

    def run(
        self, n_steps: int, *, step: float, radius: float, rng: np.random.Generator
    ) -> FloatArray:
        """Average W^(0) … W^(N−1) over N fresh examples, in coordinates of the scores."""
        batch = n_steps if self._table is not None else max(1, BATCH // self.problem.scores.width)
        batches = (
            self.problem.sample(min(batch, n_steps - start), rng)
            for start in range(0, n_steps, batch)
        )
        return self.follow(batches, step=step, radius=radius)

    def follow(
        self, batches: Iterable[tuple[IntArray, LabelArray]], *, step: float, radius: float
    ) -> FloatArray:
        """Do the same over given examples: batches of (rows of the features, true labels)."""
        problem, basis = self.problem, self.basis
        shape = (problem.anchors.n_anchors, len(basis.spectrum))
        weights, total, n_steps = np.zeros(shape), np.zeros(shape), 0
        for rows, true in batches:
            targets, picks = self._targets(true)
            _descend(
                problem.features, rows, targets, picks, basis.spectrum, step, radius, weights, total
            )
            n_steps += len(rows)
        return np.asarray(total / n_steps @ basis.back)

    def _targets(self, true: LabelArray) -> tuple[FloatArray, IntArray]:
        """Return targets in the basis and, for each example, which of them is its own."""
        if self._table is not None:
            return self._table, self.problem.loss.true_labels.index(true).astype(np.int64)
        return self.problem.targets(true) @ self.basis.forward, np.arange(len(true))


# --- measured beside guaranteed ---


@dataclass(frozen=True)
class LearningPoint:
    """What N fresh examples gave, over independent repeats, and what is guaranteed.

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
    """Measured and guaranteed excess risks against the number of examples.

    Attributes
    ----------
    variant : str
        Whose constants D, M and basis: see `learning_curve`.
    optimum_norm : float
        ‖W*‖ in the orthonormal centered basis.
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
        """Return N at which the mean excess task risk falls to ε for good, between points.

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
        orthonormal centered basis, D = B·Q, factor 1. "known optimum": the same with D = ‖W*‖,
        which a synthetic problem knows.
    repeats : int
        Independent runs, at least 2.
    random_state : int

    Examples
    --------
    >>> from consistruct.losses import Hamming
    >>> from paper.problems import synthetic_problem
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
    centered = variant != "paper"
    basis = (orthonormal_coordinates if centered else paper_coordinates)(problem.scores)
    descent = Descent(problem, basis)
    D, M = exp(constants.log_D), exp(constants.log_M)
    streams = np.random.SeedSequence(random_state).spawn(len(sizes) * repeats)
    measured = np.empty((len(sizes), repeats, 2))
    for index, stream in zip(np.ndindex(len(sizes), repeats), streams, strict=True):
        n = sizes[index[0]]
        weights = descent.run(
            n,
            step=constants.factor * D / (M * math.sqrt(n)),
            radius=D,
            rng=np.random.default_rng(stream),
        )
        measured[index] = (
            problem.surrogate_excess(weights, centered=centered),
            problem.task_excess(weights),
        )
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
        surrogate_start=problem.surrogate_excess(start, centered=centered),
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
    """Return one-sided limits of the means, Student's t; Bonferroni makes them hold together."""
    n_points, repeats = measured.shape[:2]
    quantile = scipy.special.stdtrit(repeats - 1, 1 - (1 - CONFIDENCE) / n_points)
    spread = measured.std(axis=1, ddof=1) / math.sqrt(repeats)
    return np.asarray(measured.mean(axis=1) + quantile * spread)
