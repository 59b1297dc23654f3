"""Train chain scores on packed batches: log loss, hinge, softmax-margin and quadratic surrogate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from consistruct._members import Member
from consistruct._validation import check_choice, check_number
from consistruct.exceptions import CapabilityError
from consistruct.protocols import FloatArray, IntArray
from consistruct.structures import Ragged
from consistruct.structures.chains import ChainScores, chain_marginals, viterbi
from consistruct.surrogates import _chain_kernels as _kernels
from consistruct.surrogates.base import DECODINGS

__all__ = [
    "ChainGradient",
    "ChainHinge",
    "ChainLogLoss",
    "ChainQuadratic",
    "ChainSoftmaxMargin",
    "ChainSurrogate",
]


@dataclass(frozen=True, eq=False)
class ChainGradient:
    """Hold values and gradients of a chain surrogate on packed sequences.

    Parameters
    ----------
    values : (n,) array
        Value of each sequence, not weighted.
    unary : (N, s) array
        Gradient of Σ_i weight_i · value_i in the unary scores.
    edges : (s, s) or (N, s, s) array
        Gradient in the edge scores, of their shape.
    offsets : (n + 1,) int array
    """

    values: FloatArray
    unary: FloatArray
    edges: FloatArray
    offsets: IntArray

    @property
    def start(self) -> FloatArray:
        """Return the gradient in start scores, (s,): they are unary scores of first parts."""
        return self.unary[self.offsets[:-1][np.diff(self.offsets) > 0]].sum(axis=0)

    @property
    def end(self) -> FloatArray:
        """Return the gradient in end scores, (s,): they are unary scores of last parts."""
        return self.unary[self.offsets[1:][np.diff(self.offsets) > 0] - 1].sum(axis=0)


@dataclass(frozen=True, eq=False, repr=False)
class ChainSurrogate(Member):
    """Stand for the number of wrong parts by a convex function of chain scores f.

    Parameters
    ----------
    part_cost : float
        Cost κ of one wrong part. With κ = 1 and equal weights a sequence counts by its length, as
        the error per token does; weights 1/T give the mean of the Hamming losses.
    """

    part_cost: float = 1.0

    kind: ClassVar[int]
    name: ClassVar[str]
    smooth: ClassVar[bool] = True  # whether the gradient is continuous, as L-BFGS needs
    # whether exp(score) is a distribution of y at the minimum, so that marginals mean something
    probabilistic: ClassVar[bool] = False
    # whether gradients vanish on sequences that are fitted well, so that steps can be long
    flattens: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._set(part_cost=check_number(self.part_cost, "part_cost", low=0.0, open_low=True))

    def value_and_gradient(
        self, scores: ChainScores, true: Ragged, weights: ArrayLike | None = None
    ) -> ChainGradient:
        """Return the value of each sequence, and the gradient of their weighted sum.

        Sequences of all lengths are evaluated in one compiled loop, O(N·s²) for N parts in all.
        """
        if not np.array_equal(true.offsets, scores.offsets):
            raise ValueError("true must contain sequences of the same lengths as the scores")
        n_states = scores.unary.shape[1]
        states = np.ascontiguousarray(true.values, dtype=np.int64)
        outside = (states < 0) | (states >= n_states)
        if outside.any():
            position = int(np.argmax(outside))
            raise ValueError(
                f"true must contain states in 0..{n_states - 1}, got {states[position]} "
                f"in sequence {true.rows[position]}"
            )
        n = len(true)
        weights_array = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
        if weights_array.shape != (n,) or not np.isfinite(weights_array).all():
            raise ValueError(
                f"weights must contain one finite number per sequence, shape ({n},), "
                f"got shape {weights_array.shape}"
            )
        self._check_scores(scores)
        shared = scores.edges.ndim == 2
        edges = scores.edges[None] if shared else scores.edges
        values = np.empty(n)
        gradient = np.zeros_like(scores.unary)
        pairwise = np.zeros_like(edges)
        _kernels.gradients_packed(
            self.kind,
            self.part_cost,
            scores.unary,
            edges,
            shared,
            scores.offsets,
            states,
            np.ascontiguousarray(weights_array),
            values,
            gradient,
            pairwise,
        )
        refuse_forbidden_true_label(values)
        return ChainGradient(values, gradient, pairwise[0] if shared else pairwise, scores.offsets)

    def _check_scores(self, scores: ChainScores) -> None:
        """Refuse scores that this surrogate is not defined for."""

    @property
    def has_link(self) -> bool:
        """Tell whether `expected_target` exists, and with it ``decoding="bayes"``."""
        return type(self).expected_target is not ChainSurrogate.expected_target

    def decode(self, scores: ChainScores, decoding: str = "argmax") -> Ragged:
        """Return packed states: the best sequence, or part by part the least expected loss."""
        check_choice(decoding, "decoding", DECODINGS)
        if decoding == "argmax":
            return viterbi(scores)
        states = self.expected_target(scores).argmin(axis=1)  # ties: the smallest state
        return Ragged(states.astype(np.int64), scores.offsets)

    def expected_target(self, scores: ChainScores) -> FloatArray:
        """Return E[κ·1(y_t ≠ a) | x] of every part t and state a, (N, s), from the minimizer."""
        raise CapabilityError(
            self,
            "expected_target",
            "an expected loss or decoding='bayes'",
            "its scores only rank the sequences: use decoding='argmax', or 'log' or 'quadratic'",
        )


def refuse_forbidden_true_label(values: FloatArray) -> None:
    """Raise if some true sequence has the score −inf, where the surrogate is infinite."""
    infinite = ~np.isfinite(values)
    if infinite.any():
        raise ValueError(
            f"the true states of sequence {int(np.argmax(infinite))} are forbidden (score −inf); "
            "allow their states and transitions, or leave out the sequence"
        )


@dataclass(frozen=True, eq=False, repr=False)
class ChainLogLoss(ChainSurrogate):
    """Maximize the likelihood of the true states: log Σ_c exp f(c) − f(y), a CRF.

    Consistent, where the chain can express the distribution of y: f then is its logarithm, Viterbi
    gives the most probable sequence (the Bayes decision of the 0-1 loss on sequences) and the
    largest marginals give the Bayes decision of the Hamming loss. `part_cost` is for
    `expected_target`.

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.structures.chains import ChainScores
    >>> from consistruct.structures import Ragged
    >>> from consistruct.surrogates.chains import ChainLogLoss
    >>> scores = ChainScores(np.zeros((3, 2)), np.zeros((2, 2)), np.array([0, 3]))
    >>> result = ChainLogLoss().value_and_gradient(scores, Ragged.pack([[0, 1, 0]]))
    >>> np.exp(result.values).round(12)  # eight sequences, equally probable
    array([8.])
    """

    kind: ClassVar[int] = _kernels.LOG
    name: ClassVar[str] = "log"
    probabilistic: ClassVar[bool] = True

    def expected_target(self, scores: ChainScores) -> FloatArray:
        # P(y_t ≠ a) = 1 − marginal: at the minimum p(c) ∝ exp f(c) is the distribution of y
        return np.asarray(self.part_cost * (1.0 - chain_marginals(scores).unary))


@dataclass(frozen=True, eq=False, repr=False)
class ChainHinge(ChainSurrogate):
    """Let the true states lead by what others cost: max_c [f(c) + κ·#wrong(c)] − f(y).

    The structured support vector machine with margin rescaling.

    An upper bound of κ·#wrong of the Viterbi decoding. Not consistent in general: where no label
    has probability ½, the minimizer need not decode to the Bayes decision. Decoded by Viterbi.
    """

    kind: ClassVar[int] = _kernels.HINGE
    name: ClassVar[str] = "hinge"
    smooth: ClassVar[bool] = False


@dataclass(frozen=True, eq=False, repr=False)
class ChainSoftmaxMargin(ChainSurrogate):
    """Smooth the hinge by a log-sum-exp: log Σ_c exp[f(c) + κ·#wrong(c)] − f(y).

    A smooth upper bound of the hinge, so of κ·#wrong of the Viterbi decoding; like the hinge not
    consistent in general. Decoded by Viterbi.
    """

    kind: ClassVar[int] = _kernels.SOFTMAX_MARGIN
    name: ClassVar[str] = "softmax-margin"


@dataclass(frozen=True, eq=False, repr=False)
class ChainQuadratic(ChainSurrogate):
    """Fit minus the loss by least squares: (s/2)·Var_c[f(c) + κ·#wrong(c)] over uniform c.

    The quadratic surrogate on centered scores.

    The scores f regress on minus the loss; constants (the mean of f over c) are divided out, and
    the factor s makes the curvature in a unary score one, whatever the number of states.
    Consistent for the Hamming loss: at the minimum over all functions f is minus the expected
    loss, and Viterbi maximizes it. Scores must be finite (forbid transitions when decoding only).
    """

    kind: ClassVar[int] = _kernels.QUADRATIC
    name: ClassVar[str] = "quadratic"
    flattens: ClassVar[bool] = False

    def expected_target(self, scores: ChainScores) -> FloatArray:
        # minus the function of single parts closest to f over uniform c: the mean of f given
        # c_t = a, less its mean over a; the constant makes the states of a part sum to κ(s − 1)
        self._check_scores(scores)
        n_states = scores.unary.shape[1]
        effects = scores.unary.copy()
        lengths = np.diff(scores.offsets)
        last = scores.offsets[1:][lengths > 0] - 1
        first = scores.offsets[:-1][lengths > 0]
        leaves = np.ones(len(effects), dtype=bool)
        leaves[last] = False
        enters = np.ones(len(effects), dtype=bool)
        enters[first] = False
        if scores.edges.ndim == 2:
            effects[leaves] += scores.edges.mean(axis=1)
            effects[enters] += scores.edges.mean(axis=0)
        else:
            effects[leaves] += scores.edges[leaves].mean(axis=2)
            effects[enters] += scores.edges[leaves].mean(axis=1)  # edge t enters part t + 1
        centered = effects - effects.mean(axis=1, keepdims=True)
        return np.asarray(self.part_cost * (n_states - 1) / n_states - centered)

    def _check_scores(self, scores: ChainScores) -> None:
        if np.isneginf(scores.unary).any() or (
            scores.edges.ndim == 2 and np.isneginf(scores.edges).any()
        ):
            raise ValueError(
                "the quadratic surrogate needs finite scores, got −inf; forbid states and "
                "transitions only when decoding"
            )
