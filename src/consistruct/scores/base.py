"""What all score spaces share: dense fall-backs within limits, k_eff, coordinates, cross-gram."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from consistruct._members import Member
from consistruct.exceptions import NotInSpanError, TooManyLabelsError
from consistruct.labels.base import ENUMERATION_LIMIT
from consistruct.labels.partition import Partition
from consistruct.protocols import (
    CrossGram,
    Decoder,
    FloatArray,
    Gram,
    LabelArray,
    LabelSet,
    LinearMap,
    ScoreSpace,
)
from consistruct.scores.linear import FunctionMap, MatrixMap, identity_map
from consistruct.scores.predictable import predictable_rows

__all__ = ["BaseScoreSpace", "EffectiveClasses", "Predictable", "rank_tolerance"]

SPAN_TOLERANCE = 1e-9  # relative residual below which a score function counts as expressed


@dataclass(frozen=True, eq=False)
class Predictable:
    """pred(F): the labels that win for some θ when ties go to the smallest index.

    Attributes
    ----------
    size : int
        How many labels can be predicted, exact.
    indices : (size,) array or None
        Their indices in order; None means every label.
    order_matters : bool
        Whether another order of the labels would make other labels predictable (labels that F
        merges, or a row of F that is no vertex of conv F).
    """

    size: int
    indices: LabelArray | None = None
    order_matters: bool = False


class EffectiveClasses(float):
    """k_eff = diam²/2 with diam² = max (F_i−F_j)ᵀḠ⁺(F_i−F_j) over predictable i ≠ j.

    The quadratic surrogate is at least as hard as ε²/(4 k_eff) (Theorem 7): "as the 0-1 loss over
    k_eff classes". It depends on span F and on the reference measure only, and is not a sample
    size. A float with attributes; ``log`` stays finite where the float overflows.
    """

    exact: bool
    measure: str
    log: float

    def __new__(cls, value: Fraction | float, *, exact: bool, measure: str) -> Self:
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        self = super().__new__(cls, number)
        self.exact = exact
        self.measure = measure
        if isinstance(value, Fraction):  # math.log takes integers of any size
            positive = value > 0
            self.log = (
                math.log(value.numerator) - math.log(value.denominator) if positive else -math.inf
            )
        else:
            self.log = math.log(value) if value > 0 else -math.inf
        return self

    def __getnewargs_ex__(self) -> tuple[tuple[float], dict[str, object]]:
        return (float(self),), {"exact": self.exact, "measure": self.measure}


class BaseScoreSpace(Member, ABC):
    """Required: `predictions`, `width`, `rank`, `embed`, `gram`, `decoder`.

    Everything below the line has a default that enumerates the labels within a limit; a structured
    space replaces what it knows in closed form.
    """

    @property
    @abstractmethod
    def predictions(self) -> LabelSet: ...

    @property
    @abstractmethod
    def width(self) -> int: ...

    @property
    @abstractmethod
    def rank(self) -> int: ...

    @abstractmethod
    def embed(self, labels: ArrayLike) -> FloatArray: ...

    @abstractmethod
    def gram(self) -> Gram: ...

    @abstractmethod
    def decoder(self) -> Decoder: ...

    # --- with a default ---

    # whether there is one free score per label (F = I)
    one_per_label: ClassVar[bool] = False

    @property
    def separate_states(self) -> int | None:
        """States of each part, where every part is scored on its own; else None."""
        return None

    @property
    def linked_states(self) -> int | None:
        """States of each part, where neighbouring parts are scored together too; else None."""
        return None

    @property
    def partition(self) -> Partition | None:
        """The blocks of labels that share a score, where the scores are one per block."""
        return None

    @property
    def n_labels(self) -> int | None:
        return self.predictions.size

    @property
    def measure(self) -> str:
        """Name of the reference measure."""
        return self.predictions.measure

    def matrix(self, *, limit: int = ENUMERATION_LIMIT) -> FloatArray:
        """F as a dense array (k, width); raises TooManyLabelsError above `limit` labels."""
        return self.embed(self.predictions.enumerate(limit=limit))

    def mean_embedding(self) -> FloatArray:
        """E_c F_c, (width,)."""
        return np.asarray(self.predictions.weights() @ self.matrix())

    @property
    def contains_constant(self) -> bool:
        """Whether equal scores for all labels can be expressed."""
        mean = self.mean_embedding()
        # ‖1 − P_F 1‖² = 1 − mᵀḠ⁺m in L²(μ)
        return bool(1.0 - mean @ self.gram().solve(mean[None])[0] < SPAN_TOLERANCE)

    def predictable(self) -> Predictable:
        """pred(F), by linear programming over the listed rows unless the structure tells."""
        indices, order_matters = predictable_rows(self.matrix())
        if len(indices) == self.n_labels:
            return Predictable(len(indices), None, order_matters)
        return Predictable(len(indices), indices, order_matters)

    def diameter_squared(self) -> Fraction | float:
        """max over predictable i ≠ j of (F_i−F_j)ᵀḠ⁺(F_i−F_j); 0 if only one label can win."""
        predictable = self.predictable()
        rows = self.matrix()
        if predictable.indices is not None:
            rows = rows[predictable.indices]
        kernel = rows @ self.gram().solve(rows).T
        leverage = np.diag(kernel)
        return float(np.max(leverage[:, None] + leverage[None, :] - 2 * kernel))

    @property
    def diameter_is_exact(self) -> bool:
        """False where `diameter_squared` is a certified upper bound."""
        return True

    def effective_classes(self) -> EffectiveClasses:
        """k_eff of this space, see `EffectiveClasses`."""
        diameter = self.diameter_squared()
        return EffectiveClasses(diameter / 2, exact=self.diameter_is_exact, measure=self.measure)

    def coordinates(self, other: ScoreSpace) -> LinearMap:
        """The linear map taking θ of `other` to θ here with equal scores for every label.

        Labels are identified by their index.

        Raises
        ------
        NotInSpanError
            If some score function of `other` cannot be expressed here.
        """
        self._check_same_predictions(other)
        if other == self:
            return identity_map()
        structural = other.map_into(self) if isinstance(other, BaseScoreSpace) else None
        if structural is not None:
            return structural
        try:
            return MatrixMap(self._dense_coordinates(other))
        except TooManyLabelsError as error:
            raise NotInSpanError(
                f"no structural map from {other!r} to {self!r} is known, and there are too many "
                f"labels to look for one densely ({error})"
            ) from None

    def map_into(self, space: BaseScoreSpace) -> LinearMap | None:
        """The map from θ here to θ of `space`, where this space knows it by its structure."""
        return None

    def constant_coordinates(self) -> FloatArray:
        """θ with score 1 for every label, (width,); raises NotInSpanError if there is none."""
        if not self.contains_constant:
            raise NotInSpanError(f"{self!r} does not contain the constant score")
        return self.gram().solve(self.mean_embedding()[None])[0]  # Ḡ⁺ E_c[F_c · 1]

    def cross_gram(self, other: ScoreSpace) -> CrossGram:
        """E_c[F_c F'_cᵀ], from θ' of `other` to this space; structural if one spans the other."""
        self._check_same_predictions(other)
        self._check_same_measure(other)
        try:
            into = self.coordinates(other)
        except NotInSpanError:
            pass
        else:
            gram = self.gram()
            return FunctionMap(
                lambda theta: gram.apply(into(theta)),
                lambda theta: into.transpose(gram.apply(theta)),
            )
        if isinstance(other, BaseScoreSpace):
            try:
                back = other.coordinates(self)
            except NotInSpanError:
                pass
            else:  # F = F' C, hence E[F F'ᵀ] = Cᵀ Ḡ'
                other_gram = other.gram()
                return FunctionMap(
                    lambda theta: back.transpose(other_gram.apply(theta)),
                    lambda theta: other_gram.apply(back(theta)),
                )
        weights = self.predictions.weights()
        here = self.embed(self.predictions.enumerate())
        there = other.embed(other.predictions.enumerate())
        return MatrixMap((here * weights[:, None]).T @ there)

    # --- for subclasses ---

    def _check_same_predictions(self, other: ScoreSpace) -> None:
        if self.predictions.size != other.predictions.size:
            raise ValueError(
                f"score spaces must share their predictions, got {self.predictions!r} "
                f"and {other.predictions!r}"
            )

    def _check_same_measure(self, other: ScoreSpace) -> None:
        here, there = self.predictions, other.predictions
        if here == there or here.measure == there.measure == "uniform":
            return
        if here.measure == there.measure and np.allclose(
            here.weights(), there.weights(), rtol=1e-12, atol=0.0
        ):
            return
        raise ValueError(
            f"a cross-Gram needs one reference measure, got {here!r} and {there!r}; use the same "
            "one for both score spaces"
        )

    def _dense_coordinates(self, other: ScoreSpace) -> FloatArray:
        here = self.embed(self.predictions.enumerate())
        there = other.embed(other.predictions.enumerate())
        left, singular, right = np.linalg.svd(here, full_matrices=False)
        kept = singular > rank_tolerance(here.shape, singular)
        solution = (right[kept].T / singular[kept]) @ (left[:, kept].T @ there)
        residual = float(np.abs(here @ solution - there).max(initial=0.0))
        if residual > SPAN_TOLERANCE * max(1.0, float(np.abs(there).max(initial=0.0))):
            raise NotInSpanError(
                f"scores of {other!r} are not in the span of {self!r}: "
                f"some label is off by {residual:.3g}; use a larger score space"
            )
        return np.asarray(solution)


def rank_tolerance(shape: tuple[int, ...], singular: FloatArray) -> float:
    """Singular values at or below this count as zero: the usual max(m, n)·eps·σ_max."""
    largest = float(singular[0]) if len(singular) else 0.0
    return max(shape) * float(np.finfo(np.float64).eps) * largest
