"""Surrogates that estimate the distribution of the true label, one score per label.

The log loss and sparsemax are two choices of one construction, a Fenchel–Young loss.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import scipy  # its submodules are imported on use
from numpy.typing import ArrayLike

from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray
from consistruct.structures import Structure
from consistruct.surrogates.base import EnumeratedSurrogate, ExcessForm, ValueAndGradient

__all__ = ["DistributionSurrogate", "LogSurrogate", "SparsemaxSurrogate", "project_to_simplex"]


class DistributionSurrogate(EnumeratedSurrogate):
    """Estimate the distribution of y: Φ(θ, y) = Ω*(f) − f_y, f = Fθ, a Fenchel–Young loss.

    Ω* is the convex conjugate of a regularizer Ω of distributions (minus the entropy for the log
    loss, ½‖p‖² for sparsemax). Required: `value_and_gradient`, `link`.

    The distribution p = ∇Ω*(f) estimates that of the true label, so ``decoding="bayes"``,
    argmin_c (Lp)_c, is consistent for every loss under full scores; ``"argmax"`` predicts the most
    probable label whatever the loss. True labels must be predictions too (capability
    ``true_label_as_prediction``).

    References
    ----------
    Blondel, Martins and Niculae, *Learning with Fenchel–Young losses*, 2020.
    """

    excess: ClassVar[ExcessForm | None] = "distribution"
    divergence: ClassVar[Literal["KL", "squares"]]  # D(q, p), the excess risk under q

    @classmethod
    def default_scores(cls, loss: Loss) -> Structure:
        """Return one score per label; for `Hamming` one per part and state, which is enough."""
        # Hamming decisions need marginals only, and in scores of parts the minimizer has the right
        # ones: the exponential family with matching moments. For other losses nothing is known
        return super().default_scores(loss) if loss.hamming_shape is None else loss.score_space

    @abstractmethod
    def link(self, scores: FloatArray) -> FloatArray:
        """Return ∇Ω* of the scores, (n, m) -> (n, m): each row a probability distribution."""

    def probabilities(self, theta: FloatArray) -> FloatArray:
        """Return p(y | x) of every true label, (n, m); other predictions are left out."""
        return self.link((theta @ self._embedding.T)[:, self._all_true_labels[0]])

    def expected_target(self, theta: FloatArray) -> FloatArray:
        return self.probabilities(theta) @ self._all_true_labels[1]

    def expected_offset(self, theta: FloatArray) -> FloatArray:
        return np.asarray(self.probabilities(theta) @ self._all_true_labels[2])


@dataclass(frozen=True, eq=False, repr=False)
class LogSurrogate(DistributionSurrogate):
    """Maximize the likelihood of the true label: Φ(θ, y) = log Σ_c e^f_c − f_y, f = Fθ.

    Choose it where probabilities are wanted, and decode with ``"bayes"``.

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.losses import ZeroOne
    >>> value, gradient = LogSurrogate(ZeroOne(2)).value_and_gradient(np.zeros((1, 2)), [0])
    >>> value.round(4), gradient
    (array([0.6931]), array([[-0.5,  0.5]]))
    """

    name: ClassVar[str] = "log"
    divergence: ClassVar[Literal["KL", "squares"]] = "KL"

    def value_and_gradient(self, theta: FloatArray, true: ArrayLike) -> ValueAndGradient:
        scores = theta @ self._embedding.T
        true_rows = self.score_space.embed(self.loss.true_label_as_prediction(true))
        values = scipy.special.logsumexp(scores, axis=1) - np.einsum("nw,nw->n", true_rows, theta)
        # ∂Φ/∂θ = E_p[F_c] − F_y: at the minimum the model's moments are those of the data
        return values, self.link(scores) @ self._embedding - true_rows

    def link(self, scores: FloatArray) -> FloatArray:
        return np.asarray(scipy.special.softmax(scores, axis=1))


def project_to_simplex(scores: FloatArray) -> FloatArray:
    """Return the nearest probability distribution to each row, (n, m): max(f − τ, 0), sum one.

    Sorting finds τ in O(m log m) a row (Held, Wolfe and Crowder, 1974).

    >>> import numpy as np
    >>> project_to_simplex(np.array([[0.5, 0.1, -3.0]]))
    array([[0.7, 0.3, 0. ]])
    """
    falling = -np.sort(-scores, axis=1)
    sums = np.cumsum(falling, axis=1) - 1.0
    sizes = np.arange(1, scores.shape[1] + 1)
    # the j largest entries share τ_j = (their sum − 1)/j; the support is the largest j whose
    # smallest entry still exceeds it, and there is one for any finite scores, since f_1 > f_1 − 1
    support = (falling * sizes > sums).sum(axis=1)
    threshold = sums[np.arange(len(scores)), support - 1] / support
    return np.asarray(np.maximum(scores - threshold[:, None], 0.0))


@dataclass(frozen=True, eq=False, repr=False)
class SparsemaxSurrogate(DistributionSurrogate):
    """Estimate y by the nearest distribution: Φ(θ, y) = ½ + max_p [⟨f, p⟩ − ½‖p‖²] − f_y.

    Its estimate p is the projection of the scores on the simplex, with exact zeros. Smooth, and
    zero once the true label leads by 1.

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.losses import ZeroOne
    >>> value, gradient = SparsemaxSurrogate(ZeroOne(2)).value_and_gradient(np.zeros((1, 2)), [0])
    >>> value, gradient
    (array([0.25]), array([[-0.5,  0.5]]))

    References
    ----------
    Martins and Astudillo, *From softmax to sparsemax*, 2016.
    """

    name: ClassVar[str] = "sparsemax"
    divergence: ClassVar[Literal["KL", "squares"]] = "squares"

    def value_and_gradient(self, theta: FloatArray, true: ArrayLike) -> ValueAndGradient:
        scores = theta @ self._embedding.T
        true_rows = self.score_space.embed(self.loss.true_label_as_prediction(true))
        p = self.link(scores)
        # the maximizing p is the projection of f: ⟨f, p⟩ − ½‖p‖² = ½‖f‖² − ½‖f − p‖². By the
        # envelope theorem it is the gradient in f as well; ½ = Ω(e_y) makes Φ zero at a right,
        # certain p
        best = np.einsum("nk,nk->n", scores, p) - 0.5 * np.einsum("nk,nk->n", p, p)
        values = 0.5 + best - np.einsum("nw,nw->n", true_rows, theta)
        return values, p @ self._embedding - true_rows

    def link(self, scores: FloatArray) -> FloatArray:
        return project_to_simplex(scores)
