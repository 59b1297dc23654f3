"""The paper's algorithm: projected averaged stochastic gradient descent, one example a step."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import check_count, check_number, single_alpha, to_dense
from consistruct.learning.models.features.feature_maps import (
    KernelFeatures,
    ScoreMap,
    squared_norms,
)
from consistruct.learning.models.solvers.base import BaseSolver, SolverResult, require
from consistruct.learning.statistics import TargetValues
from consistruct.protocols import FloatArray, LabelArray
from consistruct.surrogates import BaseSurrogate

__all__ = ["PaperSGD", "StepConstants", "step_constants"]


@dataclass(frozen=True)
class StepConstants:
    """D (radius of the ball), M (bound on the stochastic gradient) and the step 2D/(M√N)."""

    radius: float
    gradient_bound: float
    step: float


def step_constants(
    surrogate: BaseSurrogate,
    feature_radius: float,
    n_steps: int,
    *,
    radius: float | None = None,
    gradient_bound: float | None = None,
) -> StepConstants:
    """The paper's constants for the quadratic surrogate, with Q = 1.

    D = √r·L_max/√λ_min(Ḡ), M = λ_max(Ḡ)·D·R² + √λ_max(Ḡ)·L_max·R, over non-zero eigenvalues.

    Parameters
    ----------
    surrogate : BaseSurrogate
    feature_radius : float
        R with ‖φ(x)‖ ≤ R.
    n_steps : int
        N.
    radius, gradient_bound : float, optional
        D and M where they are known; M follows from D if only D is given.

    Examples
    --------
    >>> from consistruct.losses import ZeroOne
    >>> from consistruct.surrogates import QuadraticSurrogate
    >>> found = step_constants(QuadraticSurrogate(ZeroOne(4)), 1.0, 100)
    >>> found.radius, found.gradient_bound, round(found.step, 4)
    (4.0, 1.5, 0.5333)
    """
    space = surrogate.score_space
    values, _ = space.gram().eigenvalues()
    largest, smallest = float(values[0]), float(values[-1])
    bound = surrogate.loss.max_value
    if radius is None:
        radius = math.sqrt(space.rank) * bound / math.sqrt(smallest)
    if gradient_bound is None:
        gradient_bound = largest * radius * feature_radius**2
        gradient_bound += math.sqrt(largest) * bound * feature_radius
    step = 2.0 * radius / (gradient_bound * math.sqrt(n_steps)) if gradient_bound > 0 else 0.0
    return StepConstants(radius, gradient_bound, step)


@dataclass(frozen=True, eq=False, repr=False)
class PaperSGD(BaseSolver):
    """W ← Π_D[W − γ Fᵀ∇Φ φ(x)ᵀ], γ = 2D/(M√N), averaged over the points where gradients are taken.

    The algorithm of the paper's convergence theorem: from W = 0 the average of W^(0) … W^(N−1) has
    expected suboptimality below 2DM/√N for fresh examples. On kernel expansions it uses the kernel
    trick. It serves to check the theory; choose `AveragedSGD` to learn.

    Parameters
    ----------
    n_steps : int, optional
        N; one pass over the examples in random order if not given. Beyond one pass examples are
        drawn with replacement; sample weights are drawing probabilities and always replace.
    radius : float, optional
        D; the paper's bound with Q = 1 if not given (`step_constants`).
    gradient_bound : float, optional
        M; the paper's bound if not given. Surrogates other than the quadratic one need it.

    Examples
    --------
    >>> PaperSGD(n_steps=1000, radius=2.0)
    PaperSGD(n_steps=1000, radius=2.0)
    """

    n_steps: int | None = None
    radius: float | None = None
    gradient_bound: float | None = None

    def __post_init__(self) -> None:
        if self.n_steps is not None:
            self._set(n_steps=check_count(self.n_steps, "n_steps"))
        for name in ("radius", "gradient_bound"):
            if getattr(self, name) is not None:
                value = check_number(getattr(self, name), name, low=0.0, open_low=True)
                self._set(**{name: value})

    def solve(
        self,
        objective: Any,
        score_map: ScoreMap,
        inputs: Any,
        true: ArrayLike,
        *,
        alpha: Any = "auto",
        sample_weight: FloatArray | None = None,
        rng: np.random.Generator,
    ) -> SolverResult:
        """The averaged iterate; the constants stand in `path`.

        The objective is a surrogate, or the targets of a loss (`TargetValues`), which are minus
        the minimizer of its quadratic surrogate. A penalty is refused: the ball takes its place.
        """
        if single_alpha(alpha):
            raise ValueError(
                "the paper's algorithm has no penalty but a ball of radius D; omit alpha, or use "
                f"PaperSGD(radius=…), got alpha={alpha!r}"
            )
        if isinstance(objective, TargetValues) and objective.constant_offset is not None:
            found = self.solve(
                objective.surrogate,
                score_map,
                inputs,
                true,
                sample_weight=sample_weight,
                rng=rng,
            )
            return replace(found, weights=-found.weights)
        surrogate: BaseSurrogate = objective
        require(self, surrogate, "pass a surrogate, or TargetValues(loss)")
        if surrogate.name not in ("quadratic", "square") and self.gradient_bound is None:
            raise ValueError(
                "the paper bounds M for the quadratic surrogate only; pass gradient_bound for "
                f"{type(surrogate).__name__}"
            )
        labels = np.asarray(true)
        order = self._order(len(labels), sample_weight, rng)
        if score_map.features.expands:
            steps: _Steps = _KernelSteps(score_map, inputs, surrogate)
        else:
            steps = _ExplicitSteps(score_map, inputs, surrogate)
        constants = step_constants(
            surrogate,
            math.sqrt(steps.largest_square_norm()),
            len(order),
            radius=self.radius,
            gradient_bound=self.gradient_bound,
        )
        weights = steps.run(order, labels, constants)
        path = {
            "radius": np.array(constants.radius),
            "gradient_bound": np.array(constants.gradient_bound),
            "step": np.array(constants.step),
        }
        return SolverResult(weights, 0.0, len(order), path)

    def _order(self, n: int, weight: FloatArray | None, rng: np.random.Generator) -> LabelArray:
        n_steps = n if self.n_steps is None else self.n_steps
        if weight is not None and np.ptp(weight) > 0:
            return rng.choice(n, size=n_steps, p=weight / weight.sum())
        if n_steps <= n:
            return rng.permutation(n)[:n_steps]
        return rng.integers(n, size=n_steps)


class _Steps(ABC):
    """One pass of the algorithm over explicit features or kernel expansions."""

    def __init__(self, score_map: ScoreMap, inputs: Any, surrogate: BaseSurrogate) -> None:
        self.score_map = score_map
        self.inputs = inputs
        self.surrogate = surrogate

    def gradient(self, theta: FloatArray, label: LabelArray) -> FloatArray:
        """Fᵀ∇Φ at one example, (width,)."""
        return self.surrogate.value_and_gradient(theta[None], label)[1][0]

    @abstractmethod
    def largest_square_norm(self) -> float:
        """R², the largest ‖φ(x)‖² of the data."""

    @abstractmethod
    def run(self, order: LabelArray, labels: LabelArray, constants: StepConstants) -> FloatArray:
        """The averaged weights after visiting the examples in `order`."""


class _ExplicitSteps(_Steps):
    def _features(self, rows: Any) -> FloatArray:
        raw = self.score_map.features.transform(self.inputs[rows])
        dense = np.asarray(to_dense(raw), dtype=np.float64)
        if self.score_map.fit_intercept:  # the constant is a feature like any other here
            dense = np.column_stack([dense, np.ones(len(dense))])
        return dense

    def largest_square_norm(self) -> float:
        return max(
            float(squared_norms(self._features(part)).max())
            for part in self.score_map.chunks(self.inputs)
        )

    def run(self, order: LabelArray, labels: LabelArray, constants: StepConstants) -> FloatArray:
        width = self.surrogate.score_space.width
        weights = np.zeros((self.score_map.n_weights, width))
        average = np.zeros_like(weights)
        for step, row in enumerate(order):
            if step % 1024 == 0:
                block = self._features(order[step : step + 1024])
            features = block[step % 1024]
            average += (weights - average) / (step + 1)
            slope = self.gradient(features @ weights, labels[row : row + 1])
            weights -= constants.step * np.outer(features, slope)
            norm = float(np.linalg.norm(weights))
            if norm > constants.radius:
                weights *= constants.radius / norm
        return average


class _KernelSteps(_Steps):
    """W^(t) = s_t Σ_j φ(x_j) β_jᵀ: a projection changes the scale s only.

    The average of W^(0) … W^(N−1) gives example j, added at step t_j, the factor
    Σ_{t > t_j} s_t / N, the scales of the iterates that contain it.
    """

    def largest_square_norm(self) -> float:
        features = self.score_map.features
        assert isinstance(features, KernelFeatures)
        diagonal = features.kernel.diagonal(features.support)
        return float(diagonal.max()) + self.score_map.fit_intercept

    def run(self, order: LabelArray, labels: LabelArray, constants: StepConstants) -> FloatArray:
        features = self.score_map.features
        assert isinstance(features, KernelFeatures)
        width, n_steps = self.surrogate.score_space.width, len(order)
        constant = float(self.score_map.fit_intercept)
        betas = np.zeros((n_steps, width))
        scales = np.zeros(n_steps)
        scale, square_norm = 1.0, 0.0
        for step, row in enumerate(order):
            kernel_row = features.transform(self.inputs[row : row + 1])[0] + constant
            used = kernel_row[order[: step + 1]]
            theta = scale * (used[:step] @ betas[:step])
            scales[step] = scale
            slope = self.gradient(theta, labels[row : row + 1])
            change = -constants.step * slope
            square_norm += 2.0 * float(change @ theta) + float(change @ change) * used[step]
            betas[step] = change / scale
            norm = math.sqrt(max(square_norm, 0.0))
            if norm > constants.radius:
                scale *= constants.radius / norm
                square_norm = constants.radius**2
        after = np.append(np.cumsum(scales[::-1])[::-1], 0.0)[1:]  # Σ_{t > t_j} s_t
        average = np.zeros((features.n_outputs, width))
        np.add.at(average, order, betas * (after / n_steps)[:, None])
        if not self.score_map.fit_intercept:
            return average
        return np.vstack([average, average.sum(axis=0)])
