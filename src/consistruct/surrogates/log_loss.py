"""Log loss: the conditional random field over listed labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import scipy  # its submodules are imported on use
from numpy.typing import ArrayLike

from consistruct.protocols import FloatArray
from consistruct.surrogates.distribution import DistributionSurrogate

__all__ = ["LogSurrogate"]


@dataclass(frozen=True, eq=False, repr=False)
class LogSurrogate(DistributionSurrogate):
    """Φ(θ, y) = log Σ_c e^{⟨F_c, θ⟩} − ⟨F_y, θ⟩: minus the log-likelihood of the true label.

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

    def value_and_gradient(
        self, theta: FloatArray, true: ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        scores = theta @ self._embedding.T
        own = self.score_space.embed(self.loss.true_label_as_prediction(true))
        values = scipy.special.logsumexp(scores, axis=1) - np.einsum("nw,nw->n", own, theta)
        return values, self.link(scores) @ self._embedding - own

    def link(self, scores: FloatArray) -> FloatArray:
        return np.asarray(scipy.special.softmax(scores, axis=1))
