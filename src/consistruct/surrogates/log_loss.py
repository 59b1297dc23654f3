"""Log loss: the conditional random field over listed labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import scipy  # its submodules are imported on use
from numpy.typing import ArrayLike

from consistruct.losses.base import dense_target
from consistruct.protocols import FloatArray, IntArray
from consistruct.surrogates.base import EnumeratedSurrogate

__all__ = ["LogSurrogate"]


@dataclass(frozen=True, eq=False, repr=False)
class LogSurrogate(EnumeratedSurrogate):
    """Φ(θ, y) = log Σ_c e^{⟨F_c, θ⟩} − ⟨F_y, θ⟩: minus the log-likelihood of the true label.

    It estimates p(y | x), so decode with ``"bayes"``, argmin_c (Lp)_c, which is consistent for
    every loss under full scores; ``"argmax"`` predicts the most probable label whatever the loss.
    Truths must be predictions too (capability ``truth_as_prediction``).

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.losses import ZeroOne
    >>> value, gradient = LogSurrogate(ZeroOne(2)).value_and_gradient(np.zeros((1, 2)), [0])
    >>> value.round(4), gradient
    (array([0.6931]), array([[-0.5,  0.5]]))
    """

    name: ClassVar[str] = "log"

    def value_and_gradient(
        self, theta: FloatArray, true: ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        scores = theta @ self._embedding.T
        own = self.score_space.embed(self.loss.truth_as_prediction(true))
        values = scipy.special.logsumexp(scores, axis=1) - np.einsum("nw,nw->n", own, theta)
        return values, scipy.special.softmax(scores, axis=1) @ self._embedding - own

    @cached_property
    def _truths(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """Prediction index (m,), target (m, width) and offset (m,) of every truth."""
        every = self.loss.truths.enumerate()
        named = self.score_space.predictions.index(self.loss.truth_as_prediction(every))
        return named, dense_target(self.loss.target(every)), self.loss.offset(every)

    def probabilities(self, theta: FloatArray) -> FloatArray:
        """p(y | x) of every truth, (n, m); predictions that are no truth are left out."""
        named, _, _ = self._truths
        return np.asarray(scipy.special.softmax((theta @ self._embedding.T)[:, named], axis=1))

    def expected_target(self, theta: FloatArray) -> FloatArray:
        return self.probabilities(theta) @ self._truths[1]

    def expected_offset(self, theta: FloatArray) -> FloatArray:
        return np.asarray(self.probabilities(theta) @ self._truths[2])
