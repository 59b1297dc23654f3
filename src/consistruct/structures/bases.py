"""Other bases of any structure: orthonormal, and centered (the quotient by constants)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import check_rows, check_theta
from consistruct.exceptions import NotInSpanError
from consistruct.protocols import (
    FloatArray,
    Gram,
    LabelArray,
    LabelSet,
    LinearMap,
    OrthonormalBasis,
    ScoreSpace,
)
from consistruct.structures.base import Predictable, Structure
from consistruct.structures.operators import (
    BaseGram,
    DenseGram,
    DiagonalGram,
    FunctionMap,
    MatrixMap,
    dense_limit,
    group_equal,
    identity_map,
)

__all__ = ["Centered", "Orthonormalized"]

# A difference below this share of its terms is the rounding error of a mean: some hundred units in
# the last place, which sums over 2^20 labels stay below.
CANCELLED = 2.0**-45


class _SameScores(Structure):
    """Share what does not depend on the basis: predictions and who can win.

    Write ``base``, the structure whose scores are expressed otherwise.
    """

    base: Structure

    @property
    def predictions(self) -> LabelSet:
        return self.base.predictions

    @property
    def decoding_is_exact(self) -> bool:
        return self.base.decoding_is_exact

    def predictable(self) -> Predictable:
        return self.base.predictable()


@dataclass(frozen=True, eq=False, repr=False)
class Orthonormalized(_SameScores):
    """Express the same scores in a basis with Ḡ = I; width = rank.

    θ = Bz for a map B with BᵀḠB = I, so ⟨F_c, θ⟩ = ⟨BᵀF_c, z⟩ and the quadratic surrogate becomes
    plain least squares. B is in closed form where the Gram operator knows one (parts, chains,
    orders, matchings, sets), from one dense decomposition otherwise. Predictions, ties and k_eff
    are those of the base.

    Parameters
    ----------
    base : Structure

    Examples
    --------
    >>> from consistruct.structures import Orthonormalized
    >>> from consistruct.structures import Separable
    >>> space = Orthonormalized(Separable(3))
    >>> space.width, space.gram().condition_number()
    (4, 1.0)
    >>> import numpy as np
    >>> bool(np.allclose(space.gram().dense(), np.eye(4)))
    True
    """

    base: Structure
    forbids: ClassVar[bool] = False  # coordinates do not belong to labels

    @property
    def width(self) -> int:
        return self.base.rank

    @property
    def rank(self) -> int:
        return self.base.rank

    @cached_property
    def basis(self) -> LinearMap:
        """Return B, from coordinates z here to θ of the base."""
        # the constant is taken out of an orthonormal basis of the uncentered space, which may be
        # in closed form while that of the centered one is not
        if isinstance(self.base, Centered):
            return _centered_basis(self.base.base)
        gram = self.base.gram()
        if isinstance(gram, OrthonormalBasis):
            return FunctionMap(gram.expand, gram.contract)
        if isinstance(gram, DiagonalGram):
            root = np.sqrt(gram.weights)
            return FunctionMap(lambda z: z / root, lambda theta: theta / root)
        # a factor is cheaper and more accurate to decompose than Ḡ, which is its square
        if isinstance(gram, DenseGram):
            return MatrixMap(gram.whitening())
        # the exact rank states how many eigenvalues are positive, so no tolerance has to
        values, vectors = np.linalg.eigh(gram.dense())
        kept = slice(len(values) - self.rank, None)
        return MatrixMap(vectors[:, kept] / np.sqrt(values[kept]))

    def embed(self, labels: ArrayLike) -> FloatArray:
        """Return BᵀF_c, (n, rank)."""
        return self.basis.transpose(self.base.embed(labels))

    def gram(self) -> Gram:
        """Return the identity."""
        return DiagonalGram(np.ones(self.width))

    @property
    def tie_rule(self) -> str:
        return f"{self.base.tie_rule}, after rounding in a change of basis"

    def decode(self, theta: ArrayLike) -> LabelArray:
        """Decode coordinates z by the base at θ = Bz; rounding in B may split exact ties."""
        z = check_theta(theta, self.width)
        if np.isneginf(z).any():
            raise ValueError(
                "theta contains −inf, which forbids labels, but orthonormal coordinates do not "
                "belong to labels; forbid them in the base space"
            )
        return self.base.decode(self.basis(z))

    def mean_embedding(self) -> FloatArray:
        """Return Bᵀ E_c F_c."""
        return self.basis.transpose(self.base.mean_embedding()[None])[0]

    @property
    def contains_constant(self) -> bool:
        return self.base.contains_constant

    def diameter_squared(self) -> Fraction | float:
        """Return that of the base: (F_i−F_j)ᵀḠ⁺(F_i−F_j) does not depend on the basis."""
        return self.base.diameter_squared()

    @property
    def diameter_is_exact(self) -> bool:
        return self.base.diameter_is_exact

    def coordinates(self, other: ScoreSpace) -> LinearMap:
        """Return θ ↦ BᵀḠθ behind the map of `other` into the base."""
        self._check_same_predictions(other)
        if other == self:
            return identity_map()
        # z = BᵀḠθ: the coefficients of Fθ in the orthonormal functions FB
        gram, into = self.base.gram(), self.base.coordinates(other)
        return FunctionMap(
            lambda theta: self.basis.transpose(gram.apply(into(theta))),
            lambda z: into.transpose(gram.apply(self.basis(z))),
        )

    def map_into(self, space: Structure) -> LinearMap:
        """Return z ↦ Bz, then the map of the base into `space`."""
        into = space.coordinates(self.base)
        return FunctionMap(
            lambda z: into(self.basis(z)), lambda theta: self.basis.transpose(into.transpose(theta))
        )


def _centered_basis(base: Structure) -> LinearMap:
    """Return B' with B'ᵀ(Ḡ − mmᵀ)B' = I, from B with BᵀḠB = I of the space that is centered.

    With e = Bᵀm it is Bᵀ(Ḡ − mmᵀ)B = I − eeᵀ, and ‖e‖ ≤ 1 is the length of the projected constant.
    Inside the span (‖e‖ = 1) the direction e is dropped: a Householder reflection takes the first
    axis to it and the first coordinate is left out. Outside, e is stretched by (1 − ‖e‖²)^(−½).
    """
    basis = Orthonormalized(base).basis
    e = basis.transpose(base.mean_embedding()[None])[0]
    length = float(np.linalg.norm(e))
    if not base.contains_constant:
        if length == 0.0:
            return basis
        unit = e / length
        stretch = 1.0 / np.sqrt(1.0 - length**2) - 1.0

        def stretched(z: FloatArray) -> FloatArray:
            return z + stretch * (z @ unit)[:, None] * unit

        return FunctionMap(
            lambda z: basis(stretched(z)), lambda theta: stretched(basis.transpose(theta))
        )
    normal = e / length
    normal[0] += 1.0 if normal[0] >= 0 else -1.0  # the sign without cancellation
    normal /= np.linalg.norm(normal)

    def reflected(z: FloatArray) -> FloatArray:
        return z - 2.0 * (z @ normal)[:, None] * normal

    return FunctionMap(
        lambda z: basis(reflected(np.pad(z, ((0, 0), (1, 0))))),
        lambda theta: reflected(basis.transpose(theta))[:, 1:],
    )


@dataclass(frozen=True, eq=False, repr=False)
class Centered(_SameScores):
    """Subtract the mean row, F_c − E_c F_c: constant scores are divided out.

    Every score function has mean zero under μ. Decisions and the calibration function do not change
    where the base contains the constant, because a constant moves all scores alike; the rank is
    one less. Choose it to remove the one direction that no decision depends on.

    Parameters
    ----------
    base : Structure

    Examples
    --------
    >>> from consistruct.structures import Centered
    >>> from consistruct.structures import Full
    >>> Centered(Full(3)).rank
    2
    """

    base: Structure
    forbids: ClassVar[bool] = False  # centered rows have entries for labels that are not hit

    @property
    def width(self) -> int:
        return self.base.width

    @property
    def rank(self) -> int:
        return self.base.rank - int(self.base.contains_constant)

    def embed(self, labels: ArrayLike) -> FloatArray:
        """Return F_c − E_c F_c, (n, width)."""
        rows, mean = self.base.embed(labels), self.base.mean_embedding()
        centered = rows - mean
        # a column of the same numbers leaves rounding errors, which are a direction of their own to
        # whoever does not look at the units of the columns
        centered[np.abs(centered) <= CANCELLED * np.maximum(np.abs(rows), np.abs(mean))] = 0.0
        return centered

    def gram(self) -> Gram:
        """Return Ḡ − m mᵀ with m = E_c F_c."""
        return CenteredGram(
            self.base.gram(), self.base.mean_embedding(), self.base.contains_constant
        )

    @property
    def tie_rule(self) -> str:
        return self.base.tie_rule

    def decode(self, theta: ArrayLike) -> LabelArray:
        """Decode as the base: the same score is taken from every label."""
        return self.base.decode(theta)  # the same score is taken from every label

    def mean_embedding(self) -> FloatArray:
        """Return zeros."""
        return np.zeros(self.width)

    @property
    def contains_constant(self) -> bool:
        return False

    def diameter_squared(self) -> Fraction | float:
        """Return that of the base where constants are divided out of it; else list the rows."""
        if self.base.contains_constant:
            return self.base.diameter_squared()  # the kernel only loses a constant
        return super().diameter_squared()

    @property
    def diameter_is_exact(self) -> bool:
        return self.base.diameter_is_exact or not self.base.contains_constant

    def coordinates(self, other: ScoreSpace) -> LinearMap:
        """Map what the base expresses, up to constants that centering removes."""
        self._check_same_predictions(other)
        if other == self:
            return identity_map()
        if isinstance(self.base, Centered):  # centering twice changes nothing
            return self.base.coordinates(other)
        if isinstance(other, Centered):
            if isinstance(other.base, Centered):
                return self.coordinates(other.base)
            # what the base expresses stays expressed; what it does not may be off by a constant
            with suppress(NotInSpanError):
                return self.base.coordinates(other.base)
        return super().coordinates(other)

    def map_into(self, space: Structure) -> LinearMap | None:
        """Map θ to the scores of the base less their mean, where `space` has the constant."""
        if isinstance(self.base, Centered):
            return space.coordinates(self.base)
        if not space.contains_constant:
            return None
        # the scores of the base less their mean ⟨m, θ⟩, which is a constant score of `space`
        into, constant = space.coordinates(self.base), space.constant_coordinates()
        mean = self.base.mean_embedding()
        return FunctionMap(
            lambda theta: into(theta) - (theta @ mean)[:, None] * constant,
            lambda theta: into.transpose(theta) - (theta @ constant)[:, None] * mean,
        )


class CenteredGram(BaseGram):
    """Multiply by Ḡ − m mᵀ with m = E_c F_c, a rank-one change of another Gram operator.

    Parameters
    ----------
    base : Gram
    mean : (width,) array
        m.
    contains_constant : bool
        Whether mᵀḠ⁺m = 1: then one eigenvalue falls to zero, and the inverse formula has a pole.
    """

    def __init__(self, base: Gram, mean: FloatArray, contains_constant: bool) -> None:
        self.base = base
        self.mean = mean
        self._constant = base.solve(mean[None])[0]  # a = Ḡ⁺m; Fa = P_F 1
        self._inside = contains_constant

    @property
    def width(self) -> int:
        return self.base.width

    def apply(self, theta: FloatArray) -> FloatArray:
        """Return Ḡθ − m ⟨m, θ⟩."""
        theta = check_rows(theta, self.width)
        return self.base.apply(theta) - (theta @ self.mean)[:, None] * self.mean

    def solve(self, theta: FloatArray) -> FloatArray:
        """Return (Ḡ − mmᵀ)⁺θ from solves with Ḡ alone."""
        theta = check_rows(theta, self.width)
        a, m = self._constant, self.mean
        if self._inside:
            # mᵀḠ⁺m = 1 and a spans the new kernel: (Ḡ − mmᵀ)⁺ = P Ḡ⁺ P, P projects off a
            unit = a / np.linalg.norm(a)
            projected = theta - (theta @ unit)[:, None] * unit
            solved = self.base.solve(projected)
            return solved - (solved @ unit)[:, None] * unit
        # Sherman–Morrison on the range of Ḡ
        solved = self.base.solve(theta)
        return solved + (theta @ a)[:, None] * a / (1.0 - m @ a)

    def eigenvalues(self) -> tuple[FloatArray, tuple[int, ...]]:
        """Return the spectrum, in closed form where m is an eigenfunction or Ḡ is diagonal."""
        # four cases: nothing is taken away; all is diagonal; m is an eigenfunction, which leaves
        # the spectrum but for one eigenvalue; anything else is decomposed
        a, m = self._constant, self.mean
        if not m.any():
            return self.base.eigenvalues()
        if isinstance(self.base, DiagonalGram) and np.array_equal(self.base.weights, m):
            return _centered_diagonal(self.base)
        removed = float(m @ m)
        # F m = F F* 1: where it is constant, 1 is an eigenfunction and leaves the spectrum alone
        # ‖Ḡ^½(m − ‖m‖²a)‖² measures how far F m is from a constant
        gap = (m - removed * a)[None]
        if self._inside and float((gap * self.base.apply(gap)).sum()) < 1e-20 * removed**2:
            values, counts = self.base.eigenvalues()
            at = int(np.argmin(np.abs(values - removed)))
            left = [count - (position == at) for position, count in enumerate(counts)]
            kept = [position for position, count in enumerate(left) if count]
            return values[kept], tuple(left[position] for position in kept)
        dense_limit(self.width, 4096, "the spectrum of a centered Gram matrix")
        values = np.asarray(np.linalg.eigvalsh(self.dense()), np.float64)
        tolerance = self.width * float(np.finfo(np.float64).eps) * float(values[-1])
        return group_equal(values[values > 10 * tolerance])


def _centered_diagonal(gram: DiagonalGram) -> tuple[FloatArray, tuple[int, ...]]:
    """Return the spectrum of diag(w) − wwᵀ with Σw = 1, at full relative precision.

    A weight that occurs p times stays p − 1 times. Between two neighboring distinct weights lies
    the one root of the secular equation Σ_i w_i/(w_i − λ) = 0, found by geometric bisection; the
    last root is λ = 0, the constant.
    """
    weights, counts = gram.eigenvalues()  # descending
    high, low = weights[:-1].copy(), weights[1:].copy()
    # Geometric means halve log(high/low), at most 2100·log 2 for doubles: the last bit is reached
    # after 64 of them, and rounding then keeps the interval as it is.
    for _ in range(200):
        middle = np.sqrt(high) * np.sqrt(low)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.array(counts) * weights / (weights - middle[:, None])
            above = terms.sum(axis=1) > 0  # increasing from −∞ to +∞ between the two weights
        high, low = np.where(above, middle, high), np.where(above, low, middle)
    listed = [(float(root), 1) for root in high]
    listed += [(float(w), p - 1) for w, p in zip(weights, counts, strict=True) if p > 1]
    listed.sort(reverse=True)
    return np.array([value for value, _ in listed]), tuple(count for _, count in listed)
