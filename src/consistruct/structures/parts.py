"""Parts scored one by one: bit vectors, multi-label sets, states of T positions.

A label has T parts with s states each; `Separable` gives one score to every part and state, so that
sums and maxima over labels split into one per part. `PartScores` is what this family shares with
chains, where neighbors are scored together too (`chains.py`).

Under the uniform measure both are diagonalized by their ANOVA terms (`ProductGram`). A score
function f(y) = Σ_t α_t(y_t) + Σ_t β_t(y_t, y_{t+1}) splits into uncorrelated terms

    f = c + Σ_t m_t(y_t) + Σ_t p_t(y_t, y_{t+1}),   every m_t, p_t with zero mean in each argument.

These terms are the eigenspaces of F Fᵀ on functions: f ↦ Σ_t E[f|y_t]/s + Σ_t E[f|y_t, y_{t+1}]/s²
multiplies c by T/s + (T−1)/s², m_t by 1/s + deg(t)/s² (deg(t) the number of edges at t) and
p_t by 1/s². All products below cost O(width); nothing of size k or width² is ever built.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
import scipy  # its submodules are imported on use
from numpy.typing import ArrayLike

from consistruct._validation import (
    check_count,
    check_rows,
    check_theta,
    integer_labels,
    refuse_all_forbidden,
)
from consistruct.exceptions import FamilyError, LossSpecError
from consistruct.protocols import FloatArray, IntArray, LabelArray, LabelSet, TaskLoss
from consistruct.structures.base import FiniteLabels, Predictable, Structure, integer_array
from consistruct.structures.operators import (
    BaseGram,
    FunctionMap,
    group_equal,
    helmert_contrasts,
)
from consistruct.structures.ragged import Ragged

__all__ = ["PartScores", "Product", "ProductGram", "Separable"]


@dataclass(frozen=True, eq=False, repr=False)
class Product(FiniteLabels):
    """List all vectors in {0..s−1}^T, ordered lexicographically: the first part counts most.

    With ``n_parts`` None it is the family of all lengths, whose batches are packed (`Ragged`).

    Parameters
    ----------
    n_parts : int or None
        T.
    n_states : int
        s, at least 2.

    Examples
    --------
    >>> from consistruct.structures import Product
    >>> Product(3).index([[0, 1, 1], [1, 0, 0]])
    array([3, 4])
    >>> Product(1000).size == 2**1000
    True
    """

    labels_as: ClassVar[str] = "parts"

    n_parts: int | None
    n_states: int = 2

    def __post_init__(self) -> None:
        n_parts = None if self.n_parts is None else check_count(self.n_parts, "n_parts")
        self._set(n_parts=n_parts, n_states=check_count(self.n_states, "n_states", minimum=2))

    def at(self, size: int) -> Self:
        """Return the member of the family with `size` parts."""
        return type(self)(size, self.n_states)

    @property
    def size(self) -> int | None:
        """Count s^T vectors; None for the family."""
        return None if self.n_parts is None else self.n_states**self.n_parts

    @property
    def shape(self) -> tuple[int, ...]:
        if self.n_parts is None:
            raise FamilyError(self, "give the shape of a label")
        return (self.n_parts,)

    def check(self, labels: ArrayLike, name: str = "labels") -> LabelArray:
        """Return states in 0..s−1, (n, T)."""
        if self.n_parts is None:
            raise FamilyError(self, f"check {name} in a plain array (pack sequences with Ragged)")
        array = integer_labels(labels, self.shape, name)
        self._check_states(array, name)
        return array.astype(np.int64)

    def check_parts(self, values: ArrayLike, name: str = "labels") -> LabelArray:
        """Check packed states (N,) of sequences of any length."""
        array = integer_labels(values, (), name)
        self._check_states(array, name)
        return array.astype(np.int64)

    def _check_states(self, array: LabelArray, name: str) -> None:
        """Raise at the first state out of range, with its position."""
        outside = (array < 0) | (array >= self.n_states)
        if outside.any():
            where = tuple(int(position) for position in np.argwhere(outside)[0])
            raise ValueError(
                f"{name} must contain states in 0..{self.n_states - 1}, "
                f"got {array[where]} at position {where}"
            )

    def index(self, labels: ArrayLike) -> LabelArray:
        """Read labels as numbers in base s, exact, (n,)."""
        size = self._finite_size("be indexed")
        array = integer_array(self.check(labels), size)
        # Horner's rule, in Python ints where s^T exceeds 63 bits
        index = integer_array(np.zeros(len(array), dtype=np.int64), size)
        for part in range(array.shape[1]):
            index = index * self.n_states + array[:, part]
        return index

    def unindex(self, indices: ArrayLike) -> LabelArray:
        """Write numbers in base s, (n, T)."""
        remaining = self._check_indices(indices)
        (n_parts,) = self.shape
        labels = np.empty((len(remaining), n_parts), dtype=np.int64)
        for part in reversed(range(n_parts)):
            labels[:, part] = (remaining % self.n_states).astype(np.int64)
            remaining = remaining // self.n_states
        return labels

    def sample(self, n: int, rng: np.random.Generator) -> LabelArray:
        """Draw every state uniformly, (n, T)."""
        # part by part: uniform vectors have independent uniform parts, and no index is needed
        return rng.integers(self.n_states, size=(n, *self.shape), dtype=np.int64)


@dataclass(frozen=True)
class Terms:
    """Hold the ANOVA terms of a batch of score functions."""

    constant: FloatArray  # (n,)
    main: FloatArray  # (n, T, s)
    pair: FloatArray | None  # (n, T−1, s, s)


class ProductGram(BaseGram):
    """Multiply by Ḡ of one-hot parts, and of one-hot edges between neighbors if ``edges``.

    θ is laid out as the unary scores (T, s), then the edge scores (T−1, s, s). With F* the adjoint
    of θ ↦ Fθ in L²(μ), Ḡ = F*F and Ḡ⁺ = F*(FF*)⁻²F; FF* multiplies each ANOVA term by a number,
    see above, so that both cost O(width).

    Parameters
    ----------
    n_parts, n_states : int
        T and s.
    edges : bool
    """

    def __init__(self, n_parts: int, n_states: int, *, edges: bool) -> None:
        self.n_parts = n_parts
        self.n_states = n_states
        self.edges = edges
        T, s = n_parts, n_states
        degree = np.zeros(T)
        if edges:
            degree[:-1] += 1
            degree[1:] += 1
        self._main_eigenvalues = 1 / s + degree / s**2  # (T,)
        self._pair_eigenvalue = 1 / s**2
        self._constant_eigenvalue = T / s + (T - 1) / s**2 * edges

    @property
    def width(self) -> int:
        T, s = self.n_parts, self.n_states
        return T * s + (T - 1) * s * s * self.edges

    def split(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Split θ into unary (n, T, s) and edge (n, T−1, s, s) scores, the latter maybe empty."""
        theta = check_rows(theta, self.width)
        n, T, s = len(theta), self.n_parts, self.n_states
        unary = theta[:, : T * s].reshape(n, T, s)
        rest = theta[:, T * s :]
        return unary, rest.reshape(n, T - 1, s, s) if self.edges else np.zeros((n, 0, s, s))

    def terms(self, theta: FloatArray) -> Terms:
        """Return the ANOVA terms of the functions Fθ."""
        unary, edge = self.split(theta)
        unary_mean = unary.mean(axis=2, keepdims=True)
        main = unary - unary_mean
        constant = unary_mean.sum(axis=(1, 2))
        if not self.edges:
            return Terms(constant, main, None)
        # an edge score splits into its mean, two main effects and what is left after all three
        left = edge.mean(axis=3)  # given y_t
        right = edge.mean(axis=2)  # given y_{t+1}
        mean = edge.mean(axis=(2, 3))
        main[:, :-1] += left - mean[:, :, None]
        main[:, 1:] += right - mean[:, :, None]
        # inclusion and exclusion: the mean was subtracted twice
        pair = edge - left[:, :, :, None] - right[:, :, None, :] + mean[:, :, None, None]
        return Terms(constant + mean.sum(axis=1), main, pair)

    def adjoint(self, terms: Terms) -> FloatArray:
        """Return E_c[F_c f(c)] for functions f given by their terms, (n, width).

        Entry (t, a) is P(y_t = a) E[f | y_t = a] = (c + m_t(a))/s, since every other term has mean
        zero given y_t; entry (t, a, b) likewise.
        """
        s = self.n_states
        unary = (terms.constant[:, None, None] + terms.main) / s
        if terms.pair is None:
            return _rows(unary)
        edge = (
            terms.constant[:, None, None, None]
            + terms.main[:, :-1, :, None]
            + terms.main[:, 1:, None, :]
            + terms.pair
        ) / s**2
        return np.concatenate([_rows(unary), _rows(edge)], axis=1)

    def apply(self, theta: FloatArray) -> FloatArray:
        """Return F*Fθ, one pass to the ANOVA terms and one back."""
        return self.adjoint(self.terms(theta))

    def solve(self, theta: FloatArray) -> FloatArray:
        """Return F*(FF*)⁻²Fθ: each term divided by the square of its eigenvalue."""
        # Ḡ = F*F, hence Ḡ⁺ = F* (FF*)⁻² F, and FF* multiplies each term by its eigenvalue
        terms = self.terms(theta)
        return self.adjoint(
            Terms(
                terms.constant / self._constant_eigenvalue**2,
                terms.main / self._main_eigenvalues[:, None] ** 2,
                None if terms.pair is None else terms.pair / self._pair_eigenvalue**2,
            )
        )

    def eigenvalues(self) -> tuple[FloatArray, tuple[int, ...]]:
        """Return the eigenvalues of constant, parts and edges with their dimensions."""
        T, s = self.n_parts, self.n_states
        # degrees of freedom of the terms: the constant 1, a part s − 1, an edge (s − 1)²
        listed = [(self._constant_eigenvalue, 1)]
        listed += [(float(value), s - 1) for value in self._main_eigenvalues]
        if self.edges and T > 1:
            listed.append((self._pair_eigenvalue, (T - 1) * (s - 1) ** 2))
        # parts in the middle of a chain share one eigenvalue, its two ends another
        values = np.array([value for value, _ in listed])
        distinct, _ = group_equal(values)
        counts = [0] * len(distinct)
        for value, multiplicity in listed:
            counts[int(np.argmin(np.abs(distinct - value)))] += multiplicity
        return distinct, tuple(counts)

    # --- an orthonormal basis: constant, contrasts of each part, products of contrasts ---

    def expand(self, z: FloatArray) -> FloatArray:
        """Map orthonormal coordinates (n, rank) to θ (n, width).

        Under the uniform measure √s times a Helmert contrast of one part has variance one, and so
        has s times a product of two; different parts and products are uncorrelated.
        """
        n, T, s = len(z), self.n_parts, self.n_states
        # the constant is spread evenly over the parts, so that no part is special
        contrasts = helmert_contrasts(s)
        main = z[:, 1 : 1 + T * (s - 1)].reshape(n, T, s - 1)
        unary = np.sqrt(s) * main @ contrasts.T + z[:, 0, None, None] / T
        if not self.edges:
            return _rows(unary)
        pair = z[:, 1 + T * (s - 1) :].reshape(n, T - 1, s - 1, s - 1)
        edge = s * contrasts @ pair @ contrasts.T
        return np.concatenate([_rows(unary), _rows(edge)], axis=1)

    def contract(self, theta: FloatArray) -> FloatArray:
        """Apply the transpose of `expand`, (n, width) -> (n, rank)."""
        T, s = self.n_parts, self.n_states
        contrasts = helmert_contrasts(s)
        unary, edge = self.split(theta)
        parts = [
            unary.sum(axis=(1, 2))[:, None] / T,
            _rows(np.sqrt(s) * unary @ contrasts),
        ]
        if self.edges:
            parts.append(_rows(s * contrasts.T @ edge @ contrasts))
        return np.concatenate(parts, axis=1)


def _rows(array: FloatArray) -> FloatArray:
    """Flatten all axes but the first; reshape(n, −1) cannot tell the width of an empty batch."""
    return np.asarray(array.reshape(len(array), math.prod(array.shape[1:])))


@dataclass(frozen=True, eq=False, repr=False)
class PartScores(Structure):
    """Score labels with T parts of n_states states each; T = None is the family of all T.

    What `Separable` and `Chain` share: their labels, and that a family refuses whatever needs one
    length.
    """

    T: int | None
    n_states: int

    def __post_init__(self) -> None:
        T = None if self.T is None else check_count(self.T, "T")
        self._set(T=T, n_states=check_count(self.n_states, "n_states", minimum=2))

    def at(self, size: int) -> Self:
        """Return the member of the family for labels of `size` parts."""
        return type(self)(size, self.n_states)

    def _length(self, action: str) -> int:
        """Return T, or raise `FamilyError` naming what cannot be done without it."""
        if self.T is None:
            raise FamilyError(self, action)
        return self.T

    @classmethod
    def from_spec(cls, argument: str, loss: TaskLoss) -> Self | None:
        """Take the sizes of the loss, whose predictions must be made of parts."""
        labels = loss.score_space.predictions
        if argument:
            return None
        if not isinstance(labels, Product):
            name = cls.__name__.lower()
            raise LossSpecError(f"{name} scores need labels made of parts, such as hamming:10x26")
        return cls(labels.n_parts, labels.n_states)

    @cached_property
    def predictions(self) -> LabelSet:
        return Product(self.T, self.n_states)


@dataclass(frozen=True, eq=False, repr=False)
class Separable(PartScores):
    """Score every part by itself: f(ŷ) = Σ_t θ_t(ŷ_t), one-hot parts, width T·s.

    The structure of the Hamming loss. Rank 1 + T(s−1): a constant can be moved from any part to any
    other. k_eff = T·s, linear in the number of parts where there are s^T labels.

    Parameters
    ----------
    T : int or None
        Number of parts; None is the family of all lengths, `at` gives a member.
    n_states : int
        States per part.

    Examples
    --------
    >>> from consistruct.structures import Separable
    >>> Separable(2).marginals([[0.0, 0.0, 3.0, 0.0]]).round(3)  # P(part is in state)
    array([[0.5  , 0.5  , 0.953, 0.047]])
    >>> space = Separable(1000)
    >>> space.width, space.rank, space.effective_classes()
    (2000, 1001, 2000.0)
    """

    n_states: int = 2
    contains_constant = True

    @property
    def separate_states(self) -> int:
        return self.n_states

    @property
    def width(self) -> int:
        return self._length("have a width") * self.n_states

    @property
    def rank(self) -> int:
        """Count 1 + T(s−1) dimensions: each part adds its contrasts to the constant."""
        return 1 + self._length("have a rank") * (self.n_states - 1)

    def embed(self, labels: ArrayLike) -> FloatArray:
        """Return one-hot states, part after part, (n, T) -> (n, T·s)."""
        T = self._length("embed")
        states = self.predictions.check(labels)
        rows = np.zeros((len(states), T, self.n_states))
        np.put_along_axis(rows, states[:, :, None], 1.0, axis=2)
        return rows.reshape(len(states), T * self.n_states)

    def gram(self) -> ProductGram:
        return ProductGram(self._length("have a Gram operator"), self.n_states, edges=False)

    def decode(self, theta: ArrayLike) -> LabelArray:
        """Return the first best state of each part, (n, T·s) -> (n, T)."""
        T = self._length("decode a plain array (decode_packed takes Ragged scores)")
        scores = check_theta(theta, self.width)
        return self._best_states(scores).reshape(len(scores), T)

    def decode_packed(self, theta: Ragged) -> Ragged:
        """Decode packed scores with values (N, s) to packed states (N,)."""
        return theta.with_values(self._best_states(check_theta(theta.values, self.n_states)))

    def _best_states(self, scores: FloatArray) -> IntArray:
        """Return the first best state of each part, (parts,)."""
        # the smallest state in every part is the lexicographically smallest label
        parts = scores.reshape(-1, self.n_states)
        best = parts.argmax(axis=1)
        refuse_all_forbidden(parts[np.arange(len(parts)), best])
        return np.asarray(best, dtype=np.int64)

    # p(ŷ) ∝ exp ⟨F_ŷ, θ⟩ is a product over parts: Σ_ŷ Π_t exp θ_t(ŷ_t) = Π_t Σ_a exp θ_t(a)

    def log_partition(self, theta: ArrayLike) -> FloatArray:
        """Return Σ_t log Σ_a exp θ_t(a), (n,)."""
        scores = self._by_part(theta)
        return np.asarray(scipy.special.logsumexp(scores, axis=2).sum(axis=1))

    def marginals(self, theta: ArrayLike) -> FloatArray:
        """Return P(ŷ_t = a) = exp θ_t(a) / Σ_b exp θ_t(b), (n, T·s)."""
        probabilities = scipy.special.softmax(self._by_part(theta), axis=2)
        return np.asarray(probabilities.reshape(len(probabilities), self.width))

    def sample(self, theta: ArrayLike, rng: np.random.Generator) -> LabelArray:
        """Draw every part by itself, (n, T)."""
        scores = self._by_part(theta)
        return np.asarray((scores + rng.gumbel(size=scores.shape)).argmax(axis=2))

    def _by_part(self, theta: ArrayLike) -> FloatArray:
        """Return θ as (n, T, s)."""
        T = self._length("have a distribution")
        return check_theta(theta, self.width).reshape(-1, T, self.n_states)

    def mean_embedding(self) -> FloatArray:
        """Return 1/s for every state of every part."""
        return np.full(self.width, 1.0 / self.n_states)

    def predictable(self) -> Predictable:
        return Predictable(self.n_states ** self._length("list predictable labels"))

    def diameter_squared(self) -> Fraction:
        """Return 2·s·T, the distance of two labels that differ in every part."""
        # F_iᵀḠ⁺F_j = 1 + Σ_t (s·[i_t = j_t] − 1): every part that differs adds 2s to the distance
        return Fraction(2 * self.n_states * self._length("have a diameter"))


def padding_map(n_unary: int, width: int) -> FunctionMap:
    """Map separable scores to scores of parts and pairs: no pair counts, the transpose cuts."""
    return FunctionMap(
        lambda theta: np.pad(theta, ((0, 0), (0, width - n_unary))),
        lambda theta: theta[:, :n_unary],
    )
