"""What iterative solvers minimize: a convex function of θ for every example of a table.

A `Statistic` is fitted by least squares, ½‖θ − τ(y)‖², so that θ(x) estimates E[τ(y) | x] itself; a
surrogate Φ(θ, y) is taken as it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from consistruct._validation import is_sparse
from consistruct.decisions.statistics import Statistic
from consistruct.exceptions import CapabilityError
from consistruct.learning.models.solvers.output_columns import OutputColumns
from consistruct.protocols import FloatArray, LabelArray
from consistruct.surrogates import BaseSurrogate

__all__ = ["LeastSquares", "Objective", "SurrogateRisk", "objective_of"]


class Objective(ABC):
    """Codes of n examples, and a function of the scores of each. Required: the abstract methods.

    `width` counts the columns of θ that are learned, `full_width` all of them.
    """

    codes: LabelArray
    width: int
    full_width: int

    def __len__(self) -> int:
        return len(self.codes)

    @abstractmethod
    def take(self, rows: Any) -> Objective:
        """The same for some of the examples."""

    @abstractmethod
    def value_and_gradient(self, theta: FloatArray, rows: Any) -> tuple[FloatArray, FloatArray]:
        """Values (b,) and gradients (b, width) of some examples."""

    @abstractmethod
    def task_losses(self, theta: FloatArray) -> FloatArray:
        """Task loss of the decision that θ (n, full width) leads to, (n,)."""

    # --- with a default ---

    def sampled_value_and_gradient(
        self, theta: FloatArray, rows: Any, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Unbiased estimates from one drawn label per example."""
        raise CapabilityError(
            self, "sampled_value_and_gradient", "label_sampling=True", "omit label_sampling"
        )

    def start(self, weight: FloatArray) -> FloatArray:
        """Intercept to begin at, (width,)."""
        return np.zeros(self.width)

    def expand(self, weights: FloatArray) -> FloatArray:
        """Learned weights (m + 1, width), the intercept last -> (m + 1, full width)."""
        return weights

    def restrict(self, theta: FloatArray) -> FloatArray:
        """The learned columns (n, width) of scores (n, full width)."""
        return theta

    @abstractmethod
    def curvature(self, rng: np.random.Generator) -> float:
        """About the largest second derivative in θ: it sets the step."""


class LeastSquares(Objective):
    """½‖θ − τ(y)‖². Columns of τ that follow from the others are not learned (`OutputColumns`)."""

    def __init__(self, statistic: Statistic, codes: LabelArray, *, fit_intercept: bool) -> None:
        self.statistic = statistic
        self.codes = codes
        self.columns = OutputColumns(statistic, fit_intercept=fit_intercept)
        self.values = self.columns.reduce(statistic.values(codes))  # CSR (n, width)
        self.full_width, self.width = self.columns.width, len(self.columns.kept)

    def take(self, rows: Any) -> LeastSquares:
        part = object.__new__(LeastSquares)
        part.__dict__.update(self.__dict__)
        part.codes, part.values = self.codes[rows], self.values[rows]
        return part

    def value_and_gradient(self, theta: FloatArray, rows: Any) -> tuple[FloatArray, FloatArray]:
        residual = subtract(theta, self.values[rows])
        return 0.5 * np.einsum("nw,nw->n", residual, residual), residual

    def task_losses(self, theta: FloatArray) -> FloatArray:
        return self.statistic.loss(self.statistic.decode(theta), self.codes)

    def start(self, weight: FloatArray) -> FloatArray:
        # at the mean of τ the dependent columns stay dependent
        return np.asarray(self.values.T @ weight).ravel() / weight.sum()

    def expand(self, weights: FloatArray) -> FloatArray:
        return self.columns.expand(weights)

    def restrict(self, theta: FloatArray) -> FloatArray:
        return theta[:, self.columns.kept]

    def curvature(self, rng: np.random.Generator) -> float:
        return 1.0


class SurrogateRisk(Objective):
    """Φ(θ, y) of a surrogate."""

    def __init__(self, surrogate: BaseSurrogate, codes: LabelArray) -> None:
        self.surrogate = surrogate
        self.codes = codes
        self.width = self.full_width = surrogate.score_space.width

    def take(self, rows: Any) -> SurrogateRisk:
        return SurrogateRisk(self.surrogate, self.codes[rows])

    def value_and_gradient(self, theta: FloatArray, rows: Any) -> tuple[FloatArray, FloatArray]:
        return self.surrogate.value_and_gradient(theta, self.codes[rows])

    def sampled_value_and_gradient(
        self, theta: FloatArray, rows: Any, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        return self.surrogate.sampled_value_and_gradient(theta, self.codes[rows], rng)

    def task_losses(self, theta: FloatArray) -> FloatArray:
        return self.surrogate.loss(self.surrogate.decode(theta), self.codes)

    def curvature(self, rng: np.random.Generator) -> float:
        """Largest second derivative of Φ(·, y) at θ = 0 over some examples, by power iteration."""
        chosen = rng.choice(len(self), size=min(64, len(self)), replace=False)
        if not self.surrogate.smooth:
            # ‖g‖² ≤ 2cΦ is what a curvature c means where Φ ≥ 0: a step that a fall to zero pays
            values, slopes = self.value_and_gradient(np.zeros((len(chosen), self.width)), chosen)
            ratios = (slopes**2).sum(axis=1) / (2.0 * np.maximum(values, 1e-300))
            return float(ratios[values > 0].max(initial=0.0)) or 1.0
        direction = rng.normal(size=(len(chosen), self.width))
        value = np.ones(len(chosen))
        for _ in range(20):
            direction /= np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-300)
            ahead = self.value_and_gradient(1e-4 * direction, chosen)[1]
            behind = self.value_and_gradient(-1e-4 * direction, chosen)[1]
            direction = (ahead - behind) / 2e-4
            value = np.linalg.norm(direction, axis=1)
        return float(value.max()) or 1.0


def objective_of(objective: Any, codes: Any, *, fit_intercept: bool) -> Objective:
    """Least squares for a `Statistic`, the surrogate's risk for a surrogate."""
    if isinstance(objective, Statistic):
        return LeastSquares(objective, np.asarray(codes), fit_intercept=fit_intercept)
    if isinstance(objective, BaseSurrogate):
        return SurrogateRisk(objective, np.asarray(codes))
    raise TypeError(
        f"a solver minimizes a Statistic (least squares) or a surrogate, "
        f"got {type(objective).__name__}"
    )


def subtract(theta: FloatArray, values: Any) -> FloatArray:
    """θ − τ, (n, width); a sparse τ is subtracted entry by entry."""
    if is_sparse(values):
        total = np.array(theta, dtype=np.float64)
        rows = np.repeat(np.arange(values.shape[0]), np.diff(values.indptr))
        np.subtract.at(total, (rows, values.indices), values.data)
        return total
    return np.asarray(theta - values)
