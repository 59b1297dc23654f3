"""The (a, b) family: a sum over labels of L(c, y)·a(f_c) + b(f_c)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy  # its submodules are imported on use
from numpy.typing import ArrayLike

from consistruct.protocols import FloatArray
from consistruct.surrogates.base import EnumeratedSurrogate

__all__ = ["ABSurrogate", "ExponentialSurrogate", "LogisticSurrogate", "SquareSurrogate"]


class ABSurrogate(EnumeratedSurrogate):
    """Φ(θ, y) = E_c[L(c, y)·a(f_c) + b(f_c)] with f = Fθ. Required: `a`, `b`, `loss_of_score`.

    Consistent for full scores where ℓ·a + b is convex for every ℓ in [0, L_max] and its minimiser
    decreases in ℓ. The expectation is a sum over listed labels, or one label drawn from μ
    (`sampled_value_and_gradient`), which any number of labels allows.
    """

    @abstractmethod
    def a(self, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Values and derivatives of a."""

    @abstractmethod
    def b(self, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Values and derivatives of b."""

    def loss_of_score(self, f: FloatArray) -> FloatArray:
        """ℓ = −b'(f)/a'(f), the expected loss that makes f the minimiser."""
        return np.asarray(-self.b(f)[1] / self.a(f)[1])

    @property
    def _scale(self) -> float:
        """L_max, or 1 for a loss that is always zero."""
        return self.loss.max_value or 1.0

    def value_and_gradient(
        self, theta: FloatArray, true: ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        losses = self._losses(true)
        scores = theta @ self._embedding.T
        (a, a_slope), (b, b_slope) = self.a(scores), self.b(scores)
        values = (losses * a + b) @ self._measure
        return values, ((losses * a_slope + b_slope) * self._measure) @ self._embedding

    def sampled_value_and_gradient(
        self, theta: FloatArray, true: ArrayLike, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        labels = self.score_space.predictions.sample(len(theta), rng)
        embedded = self.score_space.embed(labels)
        losses = self.loss(labels, true)
        scores = np.einsum("nw,nw->n", embedded, theta)
        (a, a_slope), (b, b_slope) = self.a(scores), self.b(scores)
        return losses * a + b, (losses * a_slope + b_slope)[:, None] * embedded

    def expected_target(self, theta: FloatArray) -> FloatArray:
        # ℓ̂_c for every label, then the closest E[u] in L²(μ): exact if the scores are
        losses = self.loss_of_score(theta @ self._embedding.T) - self._constant_offset
        moments = (losses * self._measure) @ self._loss_embedding
        return self.loss.score_space.gram().solve(moments)


@dataclass(frozen=True, eq=False, repr=False)
class LogisticSurrogate(ABSurrogate):
    """a(f) = f/L_max, b(f) = log(1 + e^{−f}): a logistic regression of the scaled loss per label.

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.losses import ZeroOne
    >>> LogisticSurrogate(ZeroOne(2)).value_and_gradient(np.zeros((1, 2)), [0])[1]
    array([[-0.25,  0.25]])
    """

    name: ClassVar[str] = "logistic"

    def a(self, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        return f / self._scale, np.full_like(f, 1.0 / self._scale)

    def b(self, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.logaddexp(0.0, -f), -scipy.special.expit(-f)


@dataclass(frozen=True, eq=False, repr=False)
class ExponentialSurrogate(ABSurrogate):
    """a(f) = (e^f − e^{−f})/L_max, b(f) = e^{−f}.

    ℓ·a + b is convex for every ℓ in [0, L_max] although a is not; f = ½ log(1/s − 1) with
    s = ℓ/L_max. Heavier tails than the logistic member: prefer that one unless you compare them.

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.losses import ZeroOne
    >>> ExponentialSurrogate(ZeroOne(2)).value_and_gradient(np.zeros((1, 2)), [0])[1]
    array([[-0.5,  0.5]])
    """

    name: ClassVar[str] = "exponential"

    def a(self, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        return 2.0 * np.sinh(f) / self._scale, 2.0 * np.cosh(f) / self._scale

    def b(self, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        decay = np.exp(-f)
        return decay, -decay


@dataclass(frozen=True, eq=False, repr=False)
class SquareSurrogate(ABSurrogate):
    """a(f) = f, b(f) = f²/2: the quadratic surrogate as a sum over listed labels.

    It differs from `QuadraticSurrogate` by a term free of θ and serves to try the sampled label.

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.losses import ZeroOne
    >>> SquareSurrogate(ZeroOne(2)).value_and_gradient(np.zeros((1, 2)), [0])[1]
    array([[0. , 0.5]])
    """

    name: ClassVar[str] = "square"

    def a(self, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        return f, np.ones_like(f)

    def b(self, f: FloatArray) -> tuple[FloatArray, FloatArray]:
        return 0.5 * f**2, f
