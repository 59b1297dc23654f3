"""Compute with θ and with listed rows: Gram operators, linear maps, the labels that can win.

The Gram operator Ḡ = E_c[F_c F_cᵀ] is what the quadratic surrogate, its calibration function and
k_eff need of a structure. A `BaseGram` multiplies by Ḡ and by its pseudo-inverse, storing neither:

* `DenseGram`: Ḡ = AᵀA for a listed factor A = diag(√μ) F; `SpectralGram` for a known spectrum;
* `DiagonalGram`: one-hot rows, each label hit with its own probability;
* `ItemGram`: items that can be renamed. θ holds n_blocks numbers for each of T items, then n_extra
  numbers of their own. If renaming the items changes nothing, Ḡ acts in two independent ways: on
  what differs between items, by one n_blocks × n_blocks matrix for every contrast of the items
  (multiplicity T − 1); and on the item means together with the extra columns. Both matrices come as
  square-root factors, so that nothing is squared before it is decomposed. O(T·n_blocks²) per row.

Families with more structure of their own have their operator beside them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy  # its submodules are imported on use

from consistruct._validation import check_rows
from consistruct.exceptions import TooManyLabelsError
from consistruct.protocols import FloatArray, IntArray

__all__ = [
    "BaseGram",
    "DenseGram",
    "DiagonalGram",
    "FunctionMap",
    "ItemGram",
    "MatrixMap",
    "SpectralGram",
    "column_scale",
    "dense_limit",
    "group_equal",
    "helmert_contrasts",
    "identity_map",
    "predictable_rows",
    "rank_tolerance",
]

# Margins below this are ties, for θ in the unit box and rows in it too; HiGHS solves to 1e-10.
MARGIN_TOLERANCE = 1e-8
# Random θ tried before linear programs decide who can win; each costs k products, a program ms.
N_RANDOM_DIRECTIONS = 256


class BaseGram(ABC):
    """Multiply by Ḡ = E_c[F_c F_cᵀ] and by its pseudo-inverse.

    Write `width`, `apply`, `solve` and `eigenvalues`. Where a basis B of the score functions with
    BᵀḠB = I is known, write `expand` (z ↦ Bz) and `contract` (θ ↦ Bᵀθ) too: without them
    `Orthonormalized` has to decompose a dense Ḡ.

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.structures import Separable
    >>> gram = Separable(1000).gram()  # a matrix would have 2000 × 2000 entries
    >>> theta = np.ones((1, gram.width))
    >>> bool(np.allclose(gram.solve(gram.apply(theta)), theta)), gram.eigenvalues()[1]
    (True, (1, 1000))
    """

    @property
    @abstractmethod
    def width(self) -> int:
        """Count the columns of F."""

    @abstractmethod
    def apply(self, theta: FloatArray) -> FloatArray:
        """Return Ḡθ for each row of θ, (n, width)."""

    @abstractmethod
    def solve(self, theta: FloatArray) -> FloatArray:
        """Return Ḡ⁺θ for each row of θ, (n, width)."""

    @abstractmethod
    def eigenvalues(self) -> tuple[FloatArray, tuple[int, ...]]:
        """Return the distinct positive eigenvalues, descending, and their multiplicities."""

    def condition_number(self) -> float:
        """Return the largest eigenvalue over the smallest positive one; 1 if Ḡ is zero."""
        values, _ = self.eigenvalues()
        return float(values[0] / values[-1]) if len(values) else 1.0

    def dense(self, *, limit: int = 4096) -> FloatArray:
        """Return Ḡ as a matrix, (width, width), up to `limit` columns."""
        dense_limit(self.width, limit, "a dense Gram matrix")
        return self.apply(np.eye(self.width))


class DenseGram(BaseGram):
    """Factor Ḡ = AᵀA with A = diag(√μ) F, (k, width).

    Everything goes through the singular values of A rather than the eigenvalues of AᵀA: squaring
    first would lose half of the digits of the small ones. Which directions count as zero does not
    depend on the units of the columns: `solve` and `whitening` decompose A D⁻¹, D = `column_scale`.
    """

    def __init__(self, factor: FloatArray) -> None:
        self.factor = factor  # (k, width)

    @property
    def width(self) -> int:
        return self.factor.shape[1]

    @cached_property
    def _svd(self) -> tuple[FloatArray, FloatArray]:
        """Return the non-zero singular values of A D⁻¹, and their right vectors times D⁻¹."""
        scale = column_scale(self.factor)
        _, singular, right = np.linalg.svd(self.factor / scale, full_matrices=False)
        kept = singular > rank_tolerance(self.factor.shape, singular)
        whitened = right[kept] / scale
        if len(whitened) < self.width:
            # D⁻¹ leads out of the range of Ḡ, where the pseudo-inverse lies; Ḡ does not see what
            # the projection onto its range removes
            basis, _ = np.linalg.qr((right[kept] * scale).T)
            whitened = whitened @ basis @ basis.T
        return singular[kept], whitened

    def apply(self, theta: FloatArray) -> FloatArray:
        return np.asarray((check_rows(theta, self.width) @ self.factor.T) @ self.factor)

    def solve(self, theta: FloatArray) -> FloatArray:
        """Return V diag(σ⁻²) Vᵀθ, (n, width)."""
        singular, right = self._svd
        return np.asarray((check_rows(theta, self.width) @ right.T) / singular**2 @ right)

    def whitening(self) -> FloatArray:
        """Return B = V diag(1/σ), (width, rank), with BᵀḠB = I."""
        singular, right = self._svd
        return right.T / singular

    def eigenvalues(self) -> tuple[FloatArray, tuple[int, ...]]:
        # `_svd` has scaled columns, which fix the rank; the eigenvalues are those of the unscaled Ḡ
        _, singular, _ = np.linalg.svd(self.factor, full_matrices=False)
        return group_equal(singular[: len(self._svd[0])] ** 2)


class SpectralGram(DenseGram):
    """Know Ḡ by its positive eigenvalues, ascending, and their vectors, (width, rank).

    For structures whose Ḡ is computed entry by entry and whose rank is known beforehand, so that no
    tolerance has to decide which eigenvalues are zero.
    """

    def __init__(self, values: FloatArray, vectors: FloatArray) -> None:
        super().__init__(np.sqrt(values)[:, None] * vectors.T)
        # the factor √λ vᵀ has singular values √λ and right vectors v: nothing to decompose again
        self._spectrum = np.sqrt(values[::-1]), vectors[:, ::-1].T

    @cached_property
    def _svd(self) -> tuple[FloatArray, FloatArray]:
        return self._spectrum

    def eigenvalues(self) -> tuple[FloatArray, tuple[int, ...]]:
        return group_equal(self._spectrum[0] ** 2)


def group_equal(
    values: FloatArray, tolerance: float = 1e-12, *, relative_to_largest: bool = True
) -> tuple[FloatArray, tuple[int, ...]]:
    """Return distinct values, descending, with multiplicities.

    Neighbors count as equal within `tolerance` times the largest value (rounding noise of a
    decomposition), or times their own magnitude.
    """
    ordered = np.sort(values)[::-1]
    if len(ordered) == 0:
        return ordered, ()
    scale = ordered[0] if relative_to_largest else ordered
    # a run of equal values starts where the step down from its neighbor exceeds the tolerance
    starts = np.flatnonzero(np.diff(ordered, prepend=np.inf) < -tolerance * scale)
    counts = np.diff(np.append(starts, len(ordered)))
    return ordered[starts], tuple(counts.tolist())


def dense_limit(
    size: int | None,
    limit: int,
    what: str,
    instead: str = "use the operators (apply, solve) or raise limit if it fits",
) -> None:
    """Raise unless a dense object over `size` columns is allowed."""
    if size is None or size > limit:
        raise TooManyLabelsError(size, limit, what, instead)


class DiagonalGram(BaseGram):
    """Multiply by diag(weights): one-hot rows, each hit with the probability of its label.

    Parameters
    ----------
    weights : (width,) array
        Positive.
    """

    def __init__(self, weights: FloatArray) -> None:
        self.weights = weights

    @property
    def width(self) -> int:
        return len(self.weights)

    def apply(self, theta: FloatArray) -> FloatArray:
        return check_rows(theta, self.width) * self.weights

    def solve(self, theta: FloatArray) -> FloatArray:
        """Return θ / weights: weights are positive."""
        return check_rows(theta, self.width) / self.weights

    def eigenvalues(self) -> tuple[FloatArray, tuple[int, ...]]:
        # exact numbers of any magnitude: 2^-250 differs from 2^-300
        return group_equal(self.weights, relative_to_largest=False)


def helmert_contrasts(n_states: int) -> FloatArray:
    """Return s − 1 orthonormal columns orthogonal to the constant, (s, s−1).

    Column j compares level j with the mean of those before it: (1, …, 1, −j, 0, …)/√(j(j+1)). They
    are a basis of "what differs" in closed form, so no orthogonalization is needed at any size.
    """
    columns = np.zeros((n_states, n_states - 1))
    for j in range(1, n_states):
        columns[:j, j - 1] = 1.0
        columns[j, j - 1] = -j
        columns[:, j - 1] /= np.sqrt(j * (j + 1))
    return columns


class ItemGram(BaseGram):
    """Multiply by AᵀA ⊗ (I − 11ᵀ/T) on contrasts of items and by MᵀM on what they share.

    What they share are the coordinates (√T · item means, extra columns); √T makes the map from
    blocks to means and deviations an isometry, so that spectra and pseudo-inverses carry over.

    Parameters
    ----------
    n_items : int
        T.
    contrast : (any, n_blocks) array
        A: the factor of what differs between items.
    common : (any, n_blocks + n_extra) array
        M: the factor of what they share.
    """

    def __init__(
        self,
        n_items: int,
        contrast: FloatArray,  # A, (any, n_blocks)
        common: FloatArray,  # M, (any, n_blocks + n_extra)
    ) -> None:
        self.n_items = n_items
        self.n_blocks = contrast.shape[1]
        self.n_extra = common.shape[1] - self.n_blocks
        self.contrast = contrast if n_items > 1 else contrast[:0]
        self.common = common

    @property
    def width(self) -> int:
        return self.n_blocks * self.n_items + self.n_extra

    @cached_property
    def _contrast_svd(self) -> tuple[FloatArray, FloatArray]:
        return _non_zero_svd(self.contrast)

    @cached_property
    def _common_svd(self) -> tuple[FloatArray, FloatArray]:
        return _non_zero_svd(self.common)

    @property
    def ranks(self) -> tuple[int, int]:
        """Return the numerical ranks of the contrast part (per contrast) and of the common part."""
        return len(self._contrast_svd[0]), len(self._common_svd[0])

    def split(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Split θ into deviations from item means (n, n_blocks, T) and common coordinates."""
        theta = check_rows(theta, self.width)
        n, T = len(theta), self.n_items
        blocks = theta[:, : self.n_blocks * T].reshape(n, self.n_blocks, T)
        mean = blocks.mean(axis=2)
        common = np.concatenate([np.sqrt(T) * mean, theta[:, self.n_blocks * T :]], axis=1)
        return blocks - mean[:, :, None], common

    def join(self, deviations: FloatArray, common: FloatArray) -> FloatArray:
        """Invert `split`."""
        blocks = deviations + common[:, : self.n_blocks, None] / np.sqrt(self.n_items)
        flat = blocks.reshape(len(blocks), self.n_blocks * self.n_items)
        return np.concatenate([flat, common[:, self.n_blocks :]], axis=1)

    def apply(self, theta: FloatArray) -> FloatArray:
        """Multiply deviations and common coordinates by their own small matrices."""
        deviations, common = self.split(theta)
        return self.join(
            (self.contrast.T @ self.contrast) @ deviations, (common @ self.common.T) @ self.common
        )

    def solve(self, theta: FloatArray) -> FloatArray:
        """Multiply them by the pseudo-inverses of those matrices."""
        deviations, common = self.split(theta)
        return self.join(
            _pseudo_inverse(*self._contrast_svd) @ deviations,
            common @ _pseudo_inverse(*self._common_svd),
        )

    def eigenvalues(self) -> tuple[FloatArray, tuple[int, ...]]:
        """Return those of AᵀA, each T − 1 times as often, and those of MᵀM."""
        # one copy of each singular value of A for every contrast of the T items
        repeated = np.repeat(self._contrast_svd[0] ** 2, self.n_items - 1)
        return group_equal(np.concatenate([repeated, self._common_svd[0] ** 2]))

    def expand(self, z: FloatArray) -> FloatArray:
        """Map orthonormal coordinates (n, rank) to θ (n, width)."""
        # T − 1 Helmert contrasts of the items for each singular vector of A, then those of M
        (singular, right), T = self._contrast_svd, self.n_items
        n_contrasts = len(singular) * (T - 1)
        contrasts = z[:, :n_contrasts].reshape(len(z), len(singular), T - 1)
        contrasts = contrasts @ helmert_contrasts(T).T
        deviations = (right.T / singular) @ contrasts
        common_singular, common_right = self._common_svd
        return self.join(deviations, (z[:, n_contrasts:] / common_singular) @ common_right)

    def contract(self, theta: FloatArray) -> FloatArray:
        """Apply the transpose of `expand`, (n, width) -> (n, rank)."""
        deviations, common = self.split(theta)
        singular, right = self._contrast_svd
        contrasts = (right / singular[:, None]) @ deviations @ helmert_contrasts(self.n_items)
        common_singular, common_right = self._common_svd
        flat = contrasts.reshape(len(contrasts), len(singular) * (self.n_items - 1))
        return np.concatenate([flat, (common @ common_right.T) / common_singular], axis=1)

    def kernel_parts(self, blocks: FloatArray, common: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (first, second) with F_aᵀḠ⁺F_b = ⟨x_a, x_b⟩·first[a, b] + second[a, b].

        For embeddings whose item blocks are x ⊗ blocks: x are centered indicators of items,
        `blocks` (k, n_blocks) what multiplies them, `common` (k, n_blocks + n_extra) the rest.
        """
        return (
            blocks @ _pseudo_inverse(*self._contrast_svd) @ blocks.T,
            common @ _pseudo_inverse(*self._common_svd) @ common.T,
        )


def _non_zero_svd(factor: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return singular values above the tolerance and their right vectors."""
    _, singular, right = np.linalg.svd(factor, full_matrices=False)
    kept = singular > rank_tolerance(factor.shape, singular) if len(singular) else singular > 0
    return singular[kept], right[kept]


def _pseudo_inverse(singular: FloatArray, right: FloatArray) -> FloatArray:
    """Return (AᵀA)⁺ = V diag(σ⁻²) Vᵀ from the singular values and right vectors of A."""
    scaled = right / singular[:, None]
    return np.asarray(scaled.T @ scaled)


def column_scale(matrix: FloatArray) -> FloatArray:
    """Return the power of two at or just below the largest magnitude of each column, 1 for zeros.

    Units of the columns say nothing of their span: diag(1e8, 1, 1e-8) is all of R³. Dividing by a
    power of two rounds nothing.
    """
    largest = np.abs(matrix).max(axis=0, initial=0.0)
    return np.where(largest > 0, np.ldexp(1.0, np.frexp(largest)[1] - 1), 1.0)


def rank_tolerance(shape: tuple[int, ...], singular: FloatArray) -> float:
    """Return max(m, n)·eps·σ_max: singular values at or below it count as zero.

    It is the size of rounding errors in a singular value decomposition, and NumPy's own choice.
    """
    largest = float(singular[0]) if len(singular) else 0.0
    return max(shape) * float(np.finfo(np.float64).eps) * largest


# --- linear maps between parameters ---------------------------------------------------------------


@dataclass(frozen=True)
class FunctionMap:
    """Give a linear map and its transpose by two functions on batches of rows."""

    forward: Callable[[FloatArray], FloatArray]
    backward: Callable[[FloatArray], FloatArray]

    def __call__(self, theta: FloatArray) -> FloatArray:
        return self.forward(theta)

    def transpose(self, theta: FloatArray) -> FloatArray:
        return self.backward(theta)


@dataclass(frozen=True, eq=False)
class MatrixMap:
    """Map θ ↦ θ Cᵀ for a dense C of shape (width_out, width_in)."""

    matrix: FloatArray

    def __call__(self, theta: FloatArray) -> FloatArray:
        return np.asarray(theta @ self.matrix.T)

    def transpose(self, theta: FloatArray) -> FloatArray:
        return np.asarray(theta @ self.matrix)


def identity_map() -> FunctionMap:
    """Return the map between equal spaces."""
    return FunctionMap(lambda theta: theta, lambda theta: theta)


# --- who can win, for a listed F ------------------------------------------------------------------


def predictable_rows(F: FloatArray) -> tuple[IntArray, bool]:
    """List the rows of F (k, width) that win for some θ when ties go to the smallest index.

    Row c wins iff some θ has ⟨F_c−F_d, θ⟩ > 0 for d < c and ≥ 0 for d > c. A row that some random θ
    scores clearly above all others needs no more than that; a linear program,
    which takes far longer, decides only the rest.

    Returns
    -------
    indices : (m,) int array, sorted
    order_matters : bool
        True if some label wins only thanks to its place in the order, or loses because of it.
    """
    _, first = np.unique(F, axis=0, return_index=True)
    first.sort()  # of equal rows only the first can win
    rows = F[first]
    merged = len(first) < len(F)
    # other units of θ: tolerances of margins then mean the same for every F
    rows = rows / column_scale(rows)

    strict = _random_winners(rows)
    winners = strict.copy()
    for c in np.flatnonzero(~strict).tolist():
        # With every other row strictly beaten the place in the order is irrelevant.
        strict[c] = _best_margin(rows, c, np.delete(np.arange(len(rows)), c)) > MARGIN_TOLERANCE
        winners[c] = strict[c] or _best_margin(rows, c, np.arange(c)) > MARGIN_TOLERANCE
    return first[winners].astype(np.int64), bool(merged or not strict.all())


def _random_winners(rows: FloatArray) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Mark rows that beat all others by a clear margin for one of some directions."""
    centered = rows - rows.mean(axis=0)
    directions = np.random.default_rng(0).standard_normal((N_RANDOM_DIRECTIONS, rows.shape[1]))
    directions = np.vstack([centered, directions])  # a vertex far out wins along itself
    won = np.zeros(len(rows), dtype=np.bool_)
    # 1,024 directions at a time: their scores are (1024, k) numbers at most
    if len(rows) == 1:
        return ~won
    for start in range(0, len(directions), 1024):
        scores = directions[start : start + 1024] @ rows.T
        top = np.argpartition(scores, -2, axis=1)[:, -2:]
        pair = np.take_along_axis(scores, top, axis=1)
        clear = np.abs(pair[:, 1] - pair[:, 0]) > 1e-6
        won[top[np.arange(len(top)), pair.argmax(axis=1)][clear]] = True
    return won


def _best_margin(rows: FloatArray, c: int, strict: IntArray) -> float:
    """Maximize δ ≤ 1 with ⟨F_c−F_d, θ⟩ ≥ δ for d in `strict`, ≥ 0 for all d, ‖θ‖_∞ ≤ 1."""
    if len(strict) == 0:
        return 1.0  # θ = 0 ties everything and the order decides
    # variables (θ, δ): maximize δ under ⟨F_d − F_c, θ⟩ + δ ≤ 0 for d in `strict`, ≤ 0 for the rest
    others = np.delete(np.arange(len(rows)), c)
    width = rows.shape[1]
    margin = np.isin(others, strict).astype(np.float64)
    result = scipy.optimize.linprog(
        np.append(np.zeros(width), -1.0),
        A_ub=np.column_stack([rows[others] - rows[c], margin]),
        b_ub=np.zeros(len(others)),
        bounds=[(-1.0, 1.0)] * width + [(0.0, 1.0)],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    # θ = 0, δ = 0 is feasible and δ ≤ 1: only a numerical failure ends without an optimum
    if result.status != 0 or result.fun is None:
        raise RuntimeError(f"the predictability of label {c} was not decided: {result.message}")
    return float(-result.fun)
