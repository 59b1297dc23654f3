"""Sparsemax: squares in place of logarithms, so that probabilities can be exactly zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from consistruct.protocols import FloatArray
from consistruct.surrogates.distribution import DistributionSurrogate

__all__ = ["SparsemaxSurrogate", "project_to_simplex"]


def project_to_simplex(scores: FloatArray) -> FloatArray:
    """The nearest probability distribution to each row, (n, m): max(f − τ, 0) with sum one.

    >>> import numpy as np
    >>> project_to_simplex(np.array([[0.5, 0.1, -3.0]]))
    array([[0.7, 0.3, 0. ]])
    """
    falling = -np.sort(-scores, axis=1)
    sums = np.cumsum(falling, axis=1) - 1.0
    sizes = np.arange(1, scores.shape[1] + 1)
    support = (falling * sizes > sums).sum(axis=1)  # τ of the largest set whose members exceed it
    threshold = sums[np.arange(len(scores)), support - 1] / support
    return np.asarray(np.maximum(scores - threshold[:, None], 0.0))


@dataclass(frozen=True, eq=False, repr=False)
class SparsemaxSurrogate(DistributionSurrogate):
    """Φ(θ, y) = ½ + max_p [⟨f, p⟩ − ½‖p‖²] − f_y over probability distributions p, f = Fθ.

    Its estimate p is the projection of the scores on the simplex, with exact zeros. Smooth, and
    zero once the true label leads by 1.

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.losses import ZeroOne
    >>> value, gradient = SparsemaxSurrogate(ZeroOne(2)).value_and_gradient(np.zeros((1, 2)), [0])
    >>> value, gradient
    (array([0.25]), array([[-0.5,  0.5]]))
    """

    name: ClassVar[str] = "sparsemax"
    divergence: ClassVar[Literal["KL", "squares"]] = "squares"

    def value_and_gradient(
        self, theta: FloatArray, true: ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        scores = theta @ self._embedding.T
        own = self.score_space.embed(self.loss.true_label_as_prediction(true))
        p = self.link(scores)
        best = np.einsum("nk,nk->n", scores, p) - 0.5 * np.einsum("nk,nk->n", p, p)
        values = 0.5 + best - np.einsum("nw,nw->n", own, theta)
        return values, p @ self._embedding - own

    def link(self, scores: FloatArray) -> FloatArray:
        return project_to_simplex(scores)
