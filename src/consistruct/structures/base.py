"""Say what a structure is: labels, their embedding F, and what follows from the two.

A score function assigns ⟨F_ŷ, θ⟩ to every prediction ŷ. From the rows F_ŷ alone follow the Gram
operator Ḡ = E_c[F_c F_cᵀ], the decoder argmax_ŷ ⟨F_ŷ, θ⟩, the labels that can win at all and the
effective number of classes. `Structure` computes each of them from a listed F, within a limit; the
families of this folder replace what they know in closed form, so that 2^1000 labels cost what a
width of 2,000 costs. Losses come later: nothing here knows of them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
import scipy  # its submodules are imported on use
from numpy.typing import ArrayLike

from consistruct._members import Member
from consistruct._validation import check_theta, integer_labels, refuse_all_forbidden
from consistruct.exceptions import CapabilityError, FamilyError, NotInSpanError, TooManyLabelsError
from consistruct.protocols import (
    CrossGram,
    FloatArray,
    Gram,
    IntArray,
    LabelArray,
    LabelSet,
    LinearMap,
    ScoreSpace,
    TaskLoss,
)
from consistruct.structures.operators import (
    DenseGram,
    FunctionMap,
    MatrixMap,
    column_scale,
    identity_map,
    predictable_rows,
    rank_tolerance,
)

if TYPE_CHECKING:
    from consistruct.structures.classes import Partition
    from consistruct.structures.ragged import Ragged

__all__ = [
    "ENUMERATION_LIMIT",
    "INT64_LIMIT",
    "SMALLEST_INDEX",
    "VECTOR_LIMIT",
    "EffectiveClasses",
    "FiniteLabels",
    "InfiniteLabels",
    "Predictable",
    "Structure",
    "draw_integers",
    "integer_array",
    "score_rows",
]

# Labels that may be listed as rows of F. At this size one decomposition takes about a second; above
# it a structure needs its own formulas, so listing raises rather than filling the memory.
ENUMERATION_LIMIT = 4096
# Labels for which arrays of one number per label are allowed: half a megabyte each.
VECTOR_LIMIT = 2**16
# Sizes up to here have int64 indices; above, indices are Python ints in object arrays.
INT64_LIMIT = 2**63
# Bytes of scores that `decode` holds for one chunk of examples.
CHUNK_BYTES = 64 * 2**20
# Largest residual, relative to the largest score, at which a score function counts as expressed: a
# thousand times what a decomposition of 4,096 rows loses, far below a residual that matters.
SPAN_TOLERANCE = 1e-9
SMALLEST_INDEX = "smallest index"


# --- sets of labels -------------------------------------------------------------------------------


class FiniteLabels(Member, ABC):
    """Keep a finite set of labels in a fixed order.

    Write `size`, `shape`, `check`, `index` and `unindex`. Everything else follows for the uniform
    reference measure; a set with another measure writes `measure`, `sample` and `weights` too.

    A family (sequences of every length) has ``size`` None and serves `check` and `at` only.
    """

    labels_as: ClassVar[str] = "codes"  # how users write them, see `Loss.labels_as`

    @property
    @abstractmethod
    def size(self) -> int | None:
        """Count the labels, exactly; a Python int."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Return the shape of one label: () for a class, (T,) for T parts."""

    @abstractmethod
    def check(self, labels: ArrayLike, name: str = "labels") -> LabelArray:
        """Return a batch of valid labels, (n, *shape), or raise with one clear line."""

    @abstractmethod
    def index(self, labels: ArrayLike) -> LabelArray:
        """Return the positions of labels in the order that ties refer to, (n,)."""

    @abstractmethod
    def unindex(self, indices: ArrayLike) -> LabelArray:
        """Return the labels at given positions, (n, *shape): the inverse of `index`."""

    @property
    def measure(self) -> str:
        """Name the reference measure μ, as reports print it."""
        return "uniform"

    def sample(self, n: int, rng: np.random.Generator) -> LabelArray:
        """Draw n labels from the reference measure, (n, *shape)."""
        return self.unindex(draw_integers(self._finite_size("be sampled"), n, rng))

    def enumerate(self, *, limit: int = ENUMERATION_LIMIT) -> LabelArray:
        """List all labels in order, (k, *shape)."""
        size = self._bounded_size(limit, "listing all labels")
        return self.unindex(np.arange(size))

    def weights(self, *, limit: int = ENUMERATION_LIMIT) -> FloatArray:
        """Return μ of every label, (k,)."""
        size = self._bounded_size(limit, "the measure of every label")
        return np.full(size, 1.0 / size)

    # --- for subclasses ---

    def _finite_size(self, action: str) -> int:
        """Return the size, or raise `FamilyError` naming what cannot be done without one."""
        if self.size is None:
            raise FamilyError(self, action)
        return self.size

    def _bounded_size(self, limit: int, what: str) -> int:
        """Return the size if it is at most `limit`, else raise `TooManyLabelsError`."""
        size = self._finite_size("be enumerated")
        if size > limit:
            raise TooManyLabelsError(
                size, limit, f"{what} of {self!r}", "use embed, gram and decode instead, or sample"
            )
        return size

    def _check_indices(self, indices: ArrayLike) -> LabelArray:
        """Return valid indices, as Python ints where the set is larger than 63 bits."""
        size = self._finite_size("be indexed")
        array = integer_labels(indices, (), "indices")
        outside = (array < 0) | (array >= size)
        if outside.any():
            raise ValueError(f"indices must be in 0..{size - 1}, got {array[outside][0]}")
        return integer_array(array, size)


class InfiniteLabels(Member, ABC):
    """Keep a set of labels that cannot be listed: cost vectors, decisions of an oracle.

    Write `shape`, `measure`, `check` and `sample`, and say in `noun` what the labels are and in
    `instead` what to do where somebody wants a list of them.
    """

    noun: ClassVar[str]
    instead: ClassVar[str]

    @property
    def size(self) -> None:
        """Return None: there is no number of labels."""
        return None

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]: ...

    @property
    @abstractmethod
    def measure(self) -> str: ...

    @abstractmethod
    def check(self, labels: ArrayLike, name: str = "labels") -> FloatArray: ...

    @abstractmethod
    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n labels for checks and simulations, (n, *shape)."""

    def index(self, labels: ArrayLike) -> LabelArray:
        raise self._unlisted(f"an index of {self.noun}s")

    def unindex(self, indices: ArrayLike) -> LabelArray:
        raise self._unlisted(f"an index of {self.noun}s")

    def enumerate(self, *, limit: int = ENUMERATION_LIMIT) -> LabelArray:
        raise self._unlisted(f"listing all {self.noun}s")

    def weights(self, *, limit: int = ENUMERATION_LIMIT) -> FloatArray:
        raise self._unlisted(f"the measure of every {self.noun}")

    def _unlisted(self, what: str) -> TooManyLabelsError:
        return TooManyLabelsError(None, ENUMERATION_LIMIT, what, self.instead)


def integer_array(values: LabelArray, size: int) -> LabelArray:
    """Return int64 while every value below `size` fits, Python ints in an object array above."""
    if size <= INT64_LIMIT:
        return values.astype(np.int64)
    # astype(object) of an integer array yields Python ints already; NumPy scalars would overflow.
    return np.array([int(value) for value in values.ravel()], dtype=object).reshape(values.shape)


def draw_integers(size: int, n: int, rng: np.random.Generator) -> LabelArray:
    """Draw n integers uniform on 0..size−1, exact for any Python int."""
    if size <= INT64_LIMIT:
        return rng.integers(size, size=n, dtype=np.int64)
    # Whole bytes, cut to the bits of `size`, then rejection: a modulus would prefer small numbers.
    # At least half of the candidates are below `size`, so two tries suffice on average.
    n_bytes = (size.bit_length() + 7) // 8
    mask = (1 << size.bit_length()) - 1
    drawn: list[int] = []
    while len(drawn) < n:
        candidate = int.from_bytes(rng.bytes(n_bytes), "little") & mask
        if candidate < size:
            drawn.append(candidate)
    result = np.empty(n, dtype=object)
    result[:] = drawn
    return result


# --- structures -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Predictable:
    """Hold pred(F): the labels that win for some θ when ties go to the smallest index.

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
    """Measure hardness by k_eff = diam²/2, diam² = max (F_i−F_j)ᵀḠ⁺(F_i−F_j), predictable i ≠ j.

    The quadratic surrogate is at least as hard as ε²/(4 k_eff) (Theorem 7): "as the 0-1 loss over
    k_eff classes". It depends on span F and on the reference measure only, and is not a sample
    size.

    Attributes
    ----------
    exact : bool
        False for an upper bound on k_eff, which still gives a valid lower bound on hardness.
    measure : str
        Name of the reference measure.
    log : float
        log k_eff, finite where the float overflows.
    """

    exact: bool
    measure: str
    log: float

    def __new__(cls, value: Fraction | float, *, exact: bool, measure: str) -> Self:
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        # subclassing float lets callers compute with k_eff and print it like any number
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
        """Pickle and copy with the attributes, which `float` knows nothing of."""
        return (float(self),), {"exact": self.exact, "measure": self.measure}


class Structure(Member, ABC):
    """Score the predictions of a label set: f(ŷ) = ⟨F_ŷ, θ⟩, with all that follows from F.

    A structure is a frozen value: a dataclass with ``frozen=True, eq=False, repr=False``.

    **Must be written**

    * `predictions`: the labels, in the order in which ties are broken;
    * `width`: the number of columns of F;
    * `embed(labels)`: rows of F, (n, width) float64.

    That is enough for up to 4,096 labels, because all else has a default that lists them. Beyond,
    a default raises `TooManyLabelsError`, and the structure must know in closed form

    * `rank`: the exact rank of F;
    * `gram()`: the operator Ḡ = E_c[F_c F_cᵀ] under the measure μ, see `operators.BaseGram`;
    * `decode(theta)`: argmax_ŷ ⟨F_ŷ, θ⟩ for each row of θ;
    * `decoding_is_exact`: False if that may miss the maximum;
    * `tie_rule`: what happens to ties, if they do not go to the smallest index.

    **May be written**

    * `mean_embedding`, `contains_constant`, `constant_coordinates`: E_c F_c and the constant score;
    * `predictable`, `diameter_squared`, `diameter_is_exact`: who can win, and how far apart;
    * `coordinates`, `map_into`: linear maps from and to other structures on the same labels;
    * `separate_states`, `linked_states`, `partition`, `one_per_label`: F has a known shape;
    * `from_spec`: how a string such as ``blocks:3,5,2`` names it, see `registry`;
    * `at(size)` and `decode_packed`: a family of all sizes, and batches of different lengths;
    * `log_partition`, `marginals` and `sample`: the distribution p(ŷ) ∝ exp ⟨F_ŷ, θ⟩.

    What is written is checked against a listed F by `consistruct.testing.check_structure`.

    Examples
    --------
    The shortest structure: hours of the day, scored on a circle.

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from consistruct.structures import Classes, Structure
    >>> @dataclass(frozen=True, eq=False, repr=False)
    ... class Hours(Structure):
    ...     n: int = 24
    ...
    ...     @property
    ...     def predictions(self):
    ...         return Classes(self.n)
    ...
    ...     @property
    ...     def width(self):
    ...         return 3
    ...
    ...     def embed(self, labels):
    ...         angle = 2 * np.pi * self.predictions.check(labels) / self.n
    ...         return np.column_stack([np.ones(len(angle)), np.cos(angle), np.sin(angle)])
    >>> day = Hours()
    >>> day.rank, day.decode([[0.0, 0.0, 1.0]]), round(day.effective_classes(), 9)
    (3, array([6]), 4.0)

    References
    ----------
    Osokin, Bach and Lacoste-Julien, *On structured prediction theory with calibrated convex
    surrogate losses*, 2017: F is their score matrix, span F their set of scores.
    """

    @property
    @abstractmethod
    def predictions(self) -> LabelSet:
        """Return the labels that can be predicted, in the order in which ties are broken."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Count the columns of F, the length of θ."""

    @abstractmethod
    def embed(self, labels: ArrayLike) -> FloatArray:
        """Return the rows F_ŷ of a batch of labels, (n, *label_shape) -> (n, width)."""

    # --- from a listed F unless known in closed form ---

    def matrix(self, *, limit: int = ENUMERATION_LIMIT) -> FloatArray:
        """List F, (k, width); raises TooManyLabelsError above `limit` labels."""
        return self.embed(self.predictions.enumerate(limit=limit))

    def orthonormal(self, *, limit: int = ENUMERATION_LIMIT) -> FloatArray:
        """List F in a basis with Ḡ = I, (k, rank); raises above `limit` labels."""
        from consistruct.structures.bases import Orthonormalized  # which is a structure itself

        return Orthonormalized(self).matrix(limit=limit)

    @cached_property
    def _singular(self) -> FloatArray:
        """Return singular values of F with its columns on one scale."""
        F = self.matrix()
        return np.asarray(np.linalg.svd(F / column_scale(F), compute_uv=False), np.float64)

    @cached_property
    def _rank_in_floats(self) -> int:
        shape = (self.n_labels or 0, self.width)
        return int((self._singular > rank_tolerance(shape, self._singular)).sum())

    @property
    def rank(self) -> int:
        """Return the rank of F, at most `width`; by singular values unless it is known."""
        return self._rank_in_floats

    @cached_property
    def _dense_gram(self) -> DenseGram:
        F = self.matrix()
        weights = self.predictions.weights(limit=len(F))
        return DenseGram(np.sqrt(weights)[:, None] * F)

    def gram(self) -> Gram:
        """Return the operator Ḡ = E_c[F_c F_cᵀ] = Fᵀ diag(μ) F."""
        return self._dense_gram

    @cached_property
    def _distinct_rows(self) -> tuple[FloatArray, IntArray]:
        """Return distinct rows of F in order of first appearance, and the index of each."""
        F = self.matrix()
        _, first = np.unique(F, axis=0, return_index=True)
        first.sort()
        return F[first], first

    def decode(self, theta: ArrayLike) -> LabelArray:
        """Return the label of largest score for each row of θ, (n, width) -> (n, *label_shape).

        −inf in θ forbids the labels whose row has a positive entry there; NaN and +inf raise.
        """
        scores = check_theta(theta, self.width)
        # Equal rows are scored once: the rounding of a matrix product may differ between equal rows
        # and would then break their tie at random instead of by index.
        rows, labels = self._distinct_rows
        best = np.empty(len(scores), dtype=np.int64)
        chunk = max(1, CHUNK_BYTES // (8 * len(rows)))
        for start in range(0, len(scores), chunk):
            part = slice(start, start + chunk)
            values = score_rows(scores[part], rows)
            best[part] = values.argmax(axis=1)
            refuse_all_forbidden(values[np.arange(len(values)), best[part]])
        return self.predictions.unindex(labels[best])

    @property
    def decoding_is_exact(self) -> bool:
        """Say whether `decode` always attains the maximum; heuristics return False."""
        return True

    @property
    def tie_rule(self) -> str:
        """Say how `decode` breaks ties: "smallest index", or what the algorithm does instead."""
        return SMALLEST_INDEX

    # whether −inf in θ forbids labels; a structure that differs states in `decode` what it does
    forbids: ClassVar[bool] = True

    @classmethod
    def from_spec(cls, argument: str, loss: TaskLoss) -> Structure | None:
        """Build the structure that ``name:argument`` names over the predictions of a loss.

        Those are `loss.score_space.predictions`. None where the argument is not understood, or
        where the structure comes with its loss only.
        """
        return None

    def decode_packed(self, theta: Ragged) -> Ragged:
        """Decode a packed batch of different lengths, where this is a family of all lengths."""
        raise CapabilityError(
            self, "decode_packed", "decoding packed batches", "decode each length by itself"
        )

    # --- the distribution p(ŷ) ∝ exp ⟨F_ŷ, θ⟩ over the labels, each counted once ---

    def log_partition(self, theta: ArrayLike) -> FloatArray:
        """Return log Σ_ŷ exp ⟨F_ŷ, θ⟩ for each row of θ, (n,)."""
        scores = score_rows(check_theta(theta, self.width), self.matrix())
        return np.asarray(scipy.special.logsumexp(scores, axis=1))

    def marginals(self, theta: ArrayLike) -> FloatArray:
        """Return E_p[F_ŷ], the gradient of `log_partition`, for each row of θ, (n, width)."""
        F = self.matrix()
        scores = score_rows(check_theta(theta, self.width), F)
        return np.asarray(scipy.special.softmax(scores, axis=1) @ F)

    def sample(self, theta: ArrayLike, rng: np.random.Generator) -> LabelArray:
        """Draw one label from p for each row of θ, (n, *label_shape)."""
        scores = score_rows(check_theta(theta, self.width), self.matrix())
        # the maximum of independent Gumbel variables shifted by the scores is distributed like p
        drawn = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
        return self.predictions.unindex(drawn)

    # --- shapes for which formulas are known ---

    # whether there is one free score per label (F = I)
    one_per_label: ClassVar[bool] = False

    @property
    def separate_states(self) -> int | None:
        """Count the states of each part, where every part is scored on its own; else None."""
        return None

    @property
    def linked_states(self) -> int | None:
        """Count the states of each part, where neighbors are scored together too; else None."""
        return None

    @property
    def partition(self) -> Partition | None:
        """Return the blocks of labels that share a score, where scores are one per block."""
        return None

    # --- the reference measure, and the constant score ---

    @property
    def n_labels(self) -> int | None:
        """Count the predictions, exactly; None for a family or an infinite set."""
        return self.predictions.size

    @property
    def measure(self) -> str:
        """Name the reference measure."""
        return self.predictions.measure

    def mean_embedding(self) -> FloatArray:
        """Return E_c F_c, (width,)."""
        F = self.matrix()
        return np.asarray(self.predictions.weights(limit=len(F)) @ F)

    @property
    def contains_constant(self) -> bool:
        """Say whether equal scores for all labels can be expressed."""
        mean = self.mean_embedding()
        # ‖1 − P_F 1‖² = 1 − mᵀḠ⁺m in L²(μ)
        return bool(1.0 - mean @ self.gram().solve(mean[None])[0] < SPAN_TOLERANCE)

    def constant_coordinates(self) -> FloatArray:
        """Return θ with score 1 for every label, (width,); raises NotInSpanError without one."""
        if not self.contains_constant:
            raise NotInSpanError(f"{self!r} does not contain the constant score")
        return self.gram().solve(self.mean_embedding()[None])[0]  # Ḡ⁺ E_c[F_c · 1]

    # --- how hard it is ---

    def predictable(self) -> Predictable:
        """Return pred(F), by linear programming over the listed rows."""
        indices, order_matters = predictable_rows(self.matrix())
        if len(indices) == self.n_labels:
            return Predictable(len(indices), None, order_matters)
        return Predictable(len(indices), indices, order_matters)

    def diameter_squared(self) -> Fraction | float:
        """Return max (F_i−F_j)ᵀḠ⁺(F_i−F_j), predictable i ≠ j; 0 if only one label can win."""
        predictable = self.predictable()
        rows = self.matrix()
        if predictable.indices is not None:
            rows = rows[predictable.indices]
        kernel = rows @ self.gram().solve(rows).T
        # ‖F_i − F_j‖² in the norm of Ḡ⁺ is K_ii + K_jj − 2 K_ij: no k² rows are formed
        leverage = np.diag(kernel)
        return float(np.max(leverage[:, None] + leverage[None, :] - 2 * kernel))

    @property
    def diameter_is_exact(self) -> bool:
        """Say whether `diameter_squared` is attained; False for a certified upper bound."""
        return True

    def effective_classes(self) -> EffectiveClasses:
        """Return k_eff of this structure, see `EffectiveClasses`."""
        diameter = self.diameter_squared()
        return EffectiveClasses(diameter / 2, exact=self.diameter_is_exact, measure=self.measure)

    # --- other structures over the same labels ---

    def coordinates(self, other: ScoreSpace) -> LinearMap:
        """Return the linear map from θ of `other` to θ here with equal scores for every label.

        Labels are identified by their index.

        Raises
        ------
        NotInSpanError
            If some score function of `other` cannot be expressed here.
        """
        self._check_same_predictions(other)
        if other == self:
            return identity_map()
        # either side may know the map by its structure; only then is nothing listed
        structural = other.map_into(self) if isinstance(other, Structure) else None
        if structural is not None:
            return structural
        try:
            return MatrixMap(self._dense_coordinates(other))
        except TooManyLabelsError as error:
            raise NotInSpanError(
                f"no structural map from {other!r} to {self!r} is known, and there are too many "
                f"labels to look for one densely ({error})"
            ) from None

    def map_into(self, space: Structure) -> LinearMap | None:
        """Return the map from θ here to θ of `space`, where this structure knows it."""
        return None

    def cross_gram(self, other: ScoreSpace) -> CrossGram:
        """Return E_c[F_c F'_cᵀ], from θ' of `other` to θ here; structural where it can be."""
        self._check_same_predictions(other)
        self._check_same_measure(other)
        try:
            into = self.coordinates(other)
        except NotInSpanError:
            pass
        else:  # F' = F C, hence E[F F'ᵀ] = Ḡ C
            gram = self.gram()
            return FunctionMap(
                lambda theta: gram.apply(into(theta)),
                lambda theta: into.transpose(gram.apply(theta)),
            )
        if isinstance(other, Structure):
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
        # neither spans the other: the definition, over listed labels
        weights = self.predictions.weights()
        here = self.embed(self.predictions.enumerate())
        there = other.embed(other.predictions.enumerate())
        return MatrixMap((here * weights[:, None]).T @ there)

    # --- for subclasses ---

    def _check_same_predictions(self, other: ScoreSpace) -> None:
        """Raise unless both structures score equally many predictions."""
        if self.predictions.size != other.predictions.size:
            raise ValueError(
                f"score spaces must share their predictions, got {self.predictions!r} "
                f"and {other.predictions!r}"
            )

    def _check_same_measure(self, other: ScoreSpace) -> None:
        """Raise unless expectations over labels mean the same for both."""
        # "uniform" means the same for any two sets of labels in the same order, whatever their type
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
        """Solve F C = F' by least squares, (width, other width), and refuse any residual."""
        here = self.embed(self.predictions.enumerate())
        there = other.embed(other.predictions.enumerate())
        scale = column_scale(here)
        left, singular, right = np.linalg.svd(here / scale, full_matrices=False)
        kept = singular > rank_tolerance(here.shape, singular)
        solution = (right[kept].T / singular[kept]) @ (left[:, kept].T @ there) / scale[:, None]
        residual = np.abs(here @ solution - there).max(axis=0, initial=0.0)
        # relative to each column: one of tiny scores is not expressed by leaving it out
        if (residual > SPAN_TOLERANCE * np.abs(there).max(axis=0, initial=0.0)).any():
            raise NotInSpanError(
                f"scores of {other!r} are not in the span of {self!r}: "
                f"some label is off by {residual.max():.3g}; use a larger score space"
            )
        return np.asarray(solution)


def score_rows(theta: FloatArray, rows: FloatArray) -> FloatArray:
    """Return ⟨F_c, θ⟩ for listed rows of F, (n, width) and (k, width) -> (n, k).

    A label whose row has a positive entry where θ is −inf scores −inf: it is forbidden.
    """
    forbidden = np.isneginf(theta)
    if not forbidden.any():
        return np.asarray(theta @ rows.T)
    # −inf · 0 is NaN in a matrix product, so the finite part is multiplied and rows that touch a
    # forbidden coordinate are overwritten. A negative entry would mean a score of +inf.
    if (forbidden @ (rows < 0).T.astype(np.float64) > 0).any():
        raise ValueError(
            "theta contains −inf where an embedding is negative, a score of +inf; forbid "
            "labels only in coordinates that are non-negative"
        )
    values = np.where(forbidden, 0.0, theta) @ rows.T
    values[forbidden @ (rows > 0).T.astype(np.float64) > 0] = -np.inf
    return np.asarray(values)
