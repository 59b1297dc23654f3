"""The contracts of the package: loss(pred, true) = offset(true) + ⟨embed(pred), target(true)⟩.

A prediction has an embedding, a true label has a target, the score space has a Gram operator and
decodes. Everything else (surrogates, Bayes decisions, calibration, learning) is written against
these few methods and never sees a k × k matrix unless it requests one.

Required methods stand first. The protocols below the line "optional capabilities" have one or two
methods each; code that needs one checks for it with `isinstance` and raises
`consistruct.exceptions.CapabilityError`, which names it, before any work is done.

Shapes: n examples, k = ``n_labels`` predictions, ``width`` columns of F. Every sum over labels is
an expectation E_c under the reference measure μ of the label set, uniform unless stated.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "CrossGram",
    "Gram",
    "LabelSet",
    "LabelSetLoss",
    "LabelTreeLoss",
    "LinearMap",
    "ListLoss",
    "OrthonormalBasis",
    "ScoreSpace",
    "Surrogate",
    "TaskLoss",
]


def __dir__() -> list[str]:
    return sorted(__all__)


FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
LabelArray = NDArray[Any]  # int64, or Python ints in an object array beyond 63 bits
Target = Any  # (n, width): a float array or a scipy.sparse.csr_array


@runtime_checkable
class LabelSet(Protocol):
    """A finite set of labels in a fixed order, or a set that is not finite (cost vectors)."""

    @property
    def size(self) -> int | None:
        """Exact number of labels, a Python int; ``None`` where the set is not finite."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one label: () for a class, (T,) for T parts."""

    @property
    def measure(self) -> str:
        """Name of the reference measure μ, as reports print it."""

    def check(self, labels: ArrayLike, name: str = "labels") -> LabelArray:
        """Return a batch (n, *shape) of valid labels, or raise with one clear line."""

    def index(self, labels: ArrayLike) -> LabelArray:
        """Positions (n,) in the order that the tie rule refers to."""

    def unindex(self, indices: ArrayLike) -> LabelArray:
        """Labels (n, *shape) at the given positions: the inverse of `index`."""

    def sample(self, n: int, rng: np.random.Generator) -> LabelArray:
        """Draw n labels from the reference measure."""

    def enumerate(self, *, limit: int = 4096) -> LabelArray:
        """All labels in order, (k, *shape); raises TooManyLabelsError above `limit`."""

    def weights(self, *, limit: int = 4096) -> FloatArray:
        """Reference measure of every label, (k,); raises TooManyLabelsError above `limit`."""


class Gram(Protocol):
    """The operator Ḡ = E_c[F_c F_cᵀ] on score parameters, symmetric positive semi-definite."""

    @property
    def width(self) -> int: ...

    def apply(self, theta: FloatArray) -> FloatArray:
        """Ḡθ for each row of (n, width)."""

    def solve(self, theta: FloatArray) -> FloatArray:
        """Ḡ⁺θ (pseudo-inverse) for each row of (n, width)."""

    def eigenvalues(self) -> tuple[FloatArray, tuple[int, ...]]:
        """Distinct non-zero eigenvalues, descending, and their multiplicities."""

    def condition_number(self) -> float:
        """Largest over smallest non-zero eigenvalue."""

    def dense(self, *, limit: int = 4096) -> FloatArray:
        """(width, width), on request only; raises above `limit` columns."""


class LinearMap(Protocol):
    """A linear map between the parameters of two score spaces, and its transpose."""

    def __call__(self, theta: FloatArray) -> FloatArray:
        """(n, width_in) -> (n, width_out)."""

    def transpose(self, theta: FloatArray) -> FloatArray:
        """(n, width_out) -> (n, width_in)."""


CrossGram = LinearMap  # E_c[F_c F'_cᵀ], from θ' of the other space to this one


@runtime_checkable
class ScoreSpace(Protocol):
    """Scores f_ŷ = ⟨F_ŷ, θ⟩ over the predictions."""

    @property
    def predictions(self) -> LabelSet: ...

    @property
    def width(self) -> int:
        """Columns of F, the length of θ."""

    @property
    def rank(self) -> int:
        """Exact rank of F, at most `width`."""

    def embed(self, labels: ArrayLike) -> FloatArray:
        """(n, *label_shape) -> rows of F, (n, width)."""

    def gram(self) -> Gram:
        """The operator E_c[F_c F_cᵀ]."""

    def decode(self, theta: ArrayLike) -> LabelArray:
        """argmax_ŷ ⟨F_ŷ, θ⟩: (n, width) -> labels (n, *label_shape); −inf forbids, NaN raises."""

    @property
    def decoding_is_exact(self) -> bool:
        """Whether the maximum is always attained; heuristics say False."""

    @property
    def tie_rule(self) -> str:
        """How ties are broken: "smallest index" or what the algorithm does instead."""


@runtime_checkable
class TaskLoss(Protocol):
    """What a prediction is judged by; rows are predictions, columns are true labels."""

    @property
    def score_space(self) -> ScoreSpace:
        """Smallest score space that contains the constant and expresses the loss."""

    @property
    def true_labels(self) -> LabelSet: ...

    @property
    def max_value(self) -> float:
        """Largest value of the loss."""

    def __call__(self, pred: ArrayLike, true: ArrayLike) -> FloatArray:
        """Loss of each pair, (n,), by the direct formula."""

    def target(self, true: ArrayLike) -> Target:
        """u_y of each true label, (n, width), array or CSR."""

    def offset(self, true: ArrayLike) -> FloatArray:
        """o_y of each true label, (n,)."""


class Surrogate(Protocol):
    """A convex function of θ whose minimizer decodes to the Bayes decision of the loss."""

    @property
    def loss(self) -> TaskLoss: ...

    @property
    def score_space(self) -> ScoreSpace:
        """May be larger or smaller than the loss's own."""

    def value_and_gradient(
        self, theta: FloatArray, true: ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        """Values (n,) and gradients (n, width) in θ."""


# --- optional capabilities -----------------------------------------------------------------------


@runtime_checkable
class OrthonormalBasis(Protocol):
    """A structured basis B of the score functions with BᵀḠB = I, never stored as a matrix."""

    def expand(self, z: FloatArray) -> FloatArray:
        """B z: orthonormal coordinates (n, rank) -> θ (n, width)."""

    def contract(self, theta: FloatArray) -> FloatArray:
        """Bᵀθ: (n, width) -> (n, rank)."""


@runtime_checkable
class LabelSetLoss(Protocol):
    """Predictions are sets of labels, judged by how many they share with the true label."""

    def count_loss(self, shared: ArrayLike, predicted: ArrayLike, true: ArrayLike) -> FloatArray:
        """Loss from |ŷ ∩ y|, |ŷ| and |y|; falls with the first, rises with the second."""

    def label_probabilities(self, target: FloatArray) -> FloatArray:
        """P(label in the true label), (n, T), from expected targets (n, width)."""


@runtime_checkable
class LabelTreeLoss(Protocol):
    """Predictions are nodes of a tree whose leaves are the true labels."""

    @property
    def lineage(self) -> IntArray:
        """Node of each prediction and its ancestors, (predictions, depths); the last one holds all.

        The number of nodes stands for "any leaf"; a row ends by repeating it.
        """

    @property
    def least_below(self) -> FloatArray:
        """Least loss of a leaf below each node, (nodes + 1, true labels); last "any leaf"."""

    @property
    def leaves_below(self) -> IntArray:
        """How many leaves lie below each node, (nodes + 1,)."""


@runtime_checkable
class ListLoss(Protocol):
    """Predictions are orders that may be shown in part."""

    def prefix_losses(self, pred: ArrayLike, true: ArrayLike) -> FloatArray:
        """Loss if only the first 1, 2, …, n items are shown, (n queries, n); never increasing."""
