"""Margins rescaled by the loss: the true label must beat every other one by what that one costs.

The max-min margin is the hinge of an adversary who chooses the distribution of the true label.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy  # its submodules are imported on use
from numpy.typing import ArrayLike

from consistruct.exceptions import ConsistructError
from consistruct.protocols import FloatArray
from consistruct.surrogates.base import EnumeratedSurrogate, ExcessForm, ValueAndGradient

__all__ = ["HingeSurrogate", "MaxMinMarginSurrogate", "SoftmaxMarginSurrogate"]

# examples that share one linear program: a call of HiGHS costs more than one small game
ROWS_AT_ONCE = 128


@dataclass(frozen=True, eq=False, repr=False)
class HingeSurrogate(EnumeratedSurrogate):
    """Let the true label lead by what others cost: Φ(θ, y) = max_c [L(c, y) + f_c] − f_y, f = Fθ.

    Crammer–Singer, the structured support vector machine with margin rescaling.

    An upper bound of the loss of the label with the highest score. Its scores rank the labels and
    tell no expected loss. Ask `calibration_function` for its consistency level first: it is not
    consistent for most losses (0-1 over three or more labels, for one). Piecewise linear, so the
    gradient is a subgradient: the first label that attains the maximum less the true one.

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.losses import ZeroOne
    >>> HingeSurrogate(ZeroOne(3)).value_and_gradient(np.array([[0.0, 0.5, 0.0]]), [0])
    (array([1.5]), array([[-1.,  1.,  0.]]))

    References
    ----------
    Tsochantaridis, Joachims, Hofmann and Altun, *Large margin methods for structured and
    interdependent output variables*, 2005.
    """

    name: ClassVar[str] = "hinge"
    smooth: ClassVar[bool] = False
    excess: ClassVar[ExcessForm | None] = "hinge"

    def value_and_gradient(self, theta: FloatArray, true: ArrayLike) -> ValueAndGradient:
        true_rows = self._embedding[self._true_labels(true)]
        raised = self._losses(true) + theta @ self._embedding.T
        # loss-augmented decoding over listed labels; Φ ≥ L(ĉ, y) at ĉ = argmax f, as f_ĉ ≥ f_y
        worst = raised.argmax(axis=1)
        values = raised[np.arange(len(raised)), worst] - np.einsum("nw,nw->n", true_rows, theta)
        return values, self._embedding[worst] - true_rows


@dataclass(frozen=True, eq=False, repr=False)
class SoftmaxMarginSurrogate(EnumeratedSurrogate):
    """Smooth the hinge by a log-sum-exp: Φ(θ, y) = log Σ_c e^(L(c, y) + f_c) − f_y, f = Fθ.

    An upper bound of the hinge, so of the loss of the label with the highest score. Its scores
    rank the labels; like the hinge it is not consistent in general.

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.losses import ZeroOne
    >>> value, _ = SoftmaxMarginSurrogate(ZeroOne(2)).value_and_gradient(np.zeros((1, 2)), [0])
    >>> bool(np.allclose(value, np.log(1 + np.e)))
    True

    References
    ----------
    Gimpel and Smith, *Softmax-margin CRFs*, 2010.
    """

    name: ClassVar[str] = "softmax-margin"

    def value_and_gradient(self, theta: FloatArray, true: ArrayLike) -> ValueAndGradient:
        true_rows = self._embedding[self._true_labels(true)]
        raised = self._losses(true) + theta @ self._embedding.T
        # the log loss of scores that errors have a head start in: the gradient is E_p[F_c] − F_y
        # with p raised by the costs, so that expensive errors are pushed down first
        values = scipy.special.logsumexp(raised, axis=1) - np.einsum("nw,nw->n", true_rows, theta)
        return values, scipy.special.softmax(raised, axis=1) @ self._embedding - true_rows


@dataclass(frozen=True, eq=False, repr=False)
class MaxMinMarginSurrogate(EnumeratedSurrogate):
    """Play against the distribution of y: Φ(θ, y) = max_p [min_c (Lp)_c + ⟨f, p⟩] − f_y, f = Fθ.

    Consistent for more losses than the hinge (0-1 at any number of labels, for one). A subgradient
    is p − e_y at the best p, one linear program with an unknown per label and example: for tens of
    labels and thousands of examples, not more. Its scores rank the labels and tell no expected
    loss. Reference: Nowak-Vila, Bach, Rudi, "Consistent structured prediction with max-min margin
    Markov networks", 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.losses import ZeroOne
    >>> value, _ = MaxMinMarginSurrogate(ZeroOne(2)).value_and_gradient(np.zeros((1, 2)), [0])
    >>> value          # the value of the game: either label, at even odds
    array([0.5])
    """

    name: ClassVar[str] = "max-min-margin"
    smooth: ClassVar[bool] = False
    excess: ClassVar[ExcessForm | None] = "max-min"

    @cached_property
    def _matrix(self) -> FloatArray:
        """Return L, (k, m)."""
        return self.loss.matrix()

    def value_and_gradient(self, theta: FloatArray, true: ArrayLike) -> ValueAndGradient:
        true_rows = self._embedding[self._true_labels(true)]
        named = self._all_true_labels[0]
        scores = (theta @ self._embedding.T)[:, named]
        values, distributions = np.empty(len(theta)), np.empty_like(scores)
        for start in range(0, len(theta), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            values[part], distributions[part] = self._games(scores[part])
        values = values - np.einsum("nw,nw->n", true_rows, theta)
        return values, distributions @ self._embedding[named] - true_rows

    def _games(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return max_p [min_c (Lp)_c + ⟨f, p⟩] of each row, (n,), and the best p, (n, m)."""
        k, m = self._matrix.shape
        n = len(scores)
        # variables (p, r) of each row with r ≤ (Lp)_c, Σp = 1
        game = np.hstack([-self._matrix, np.ones((k, 1))])
        total = np.append(np.ones(m), 0.0)[None]
        solve: Any = scipy.optimize.linprog  # its stubs know no sparse matrices
        solution = solve(
            -np.hstack([scores, np.ones((n, 1))]).ravel(),
            A_ub=scipy.sparse.kron(scipy.sparse.eye_array(n), game, format="csr"),
            b_ub=np.zeros(n * k),
            A_eq=scipy.sparse.kron(scipy.sparse.eye_array(n), total, format="csr"),
            b_eq=np.ones(n),
            bounds=([(0.0, None)] * m + [(None, None)]) * n,
            method="highs",
        )
        if solution.status != 0:
            raise ConsistructError(
                f"the linear program of the max-min margin was not solved: {solution.message}; "
                f"scores must be finite and of moderate size"
            )
        distributions = np.maximum(solution.x.reshape(n, m + 1)[:, :m], 0.0)
        # HiGHS keeps Σp = 1 up to 1e-7: normalized, and the value computed again from p, so that
        # value and subgradient belong together
        distributions /= distributions.sum(axis=1, keepdims=True)
        values = (distributions @ self._matrix.T).min(axis=1) + np.einsum(
            "nm,nm->n", scores, distributions
        )
        return values, distributions
