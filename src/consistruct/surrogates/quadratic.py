"""Fit scores to minus the loss by least squares: the quadratic surrogate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import is_sparse
from consistruct.exceptions import NotInSpanError
from consistruct.losses.base import dense_target
from consistruct.protocols import FloatArray, Target
from consistruct.surrogates.base import BaseSurrogate, ExcessForm, ValueAndGradient

__all__ = ["QuadraticSurrogate"]


@dataclass(frozen=True, eq=False, repr=False)
class QuadraticSurrogate(BaseSurrogate):
    """Fit scores to minus the loss: Φ(θ, y) = ½ (θ + u_y)ᵀ Ḡ (θ + u_y).

    With Ḡ = E_c[F_c F_cᵀ] this is ½ E_c(⟨F_c, θ⟩ + L(c, y) − o_y)², without a sum over labels.

    Its minimizer is θ = −E[u_y | x], whose decoding is the Bayes decision of any loss that the
    scores express. Choose it first: the closed form needs no iterations and no k × k matrix.

    Parameters
    ----------
    loss : Loss
    scores : ScoreSpace, optional
        A larger space keeps the decisions; in a smaller one u_y is the projection
        Ḡ⁺E_c[F_c L(c, y)] and the surrogate is in general inconsistent.

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.losses import ZeroOne
    >>> surrogate = QuadraticSurrogate(ZeroOne(3))
    >>> value, gradient = surrogate.value_and_gradient(np.zeros((1, 3)), [1])
    >>> gradient.round(3) + 0.0
    array([[ 0.   , -0.333,  0.   ]])

    References
    ----------
    Osokin, Bach and Lacoste-Julien, *On structured prediction theory with calibrated convex
    surrogate losses*, 2017.
    """

    name: ClassVar[str] = "quadratic"
    excess: ClassVar[ExcessForm | None] = "square"

    def target(self, true: ArrayLike) -> Target:
        """Return u_y in coordinates of `score_space`, (n, width): array, or CSR as in the loss."""
        loss_space, space = self.loss.score_space, self.score_space
        target = self.loss.target(true)
        if space == loss_space:
            return target
        try:
            return space.coordinates(loss_space)(dense_target(target))
        except NotInSpanError:
            # the scores cannot express the loss: its projection Ḡ⁺E_c[F_c L(c, y)] is what least
            # squares finds. The offset drops out where the scores hold the constant
            moments = space.cross_gram(loss_space)(dense_target(target))
            if not space.contains_constant:
                moments += self.loss.offset(true)[:, None] * space.mean_embedding()
            return space.gram().solve(moments)

    def value_and_gradient(self, theta: FloatArray, true: ArrayLike) -> ValueAndGradient:
        residual = self.residual(theta, self.target(true))
        # one product with Ḡ serves both: Φ = ½ rᵀ(Ḡr), and ∂Φ/∂θ = Ḡr
        gradient = self.score_space.gram().apply(residual)
        return 0.5 * np.einsum("nw,nw->n", residual, gradient), gradient

    @staticmethod
    def residual(theta: FloatArray, target: Target) -> FloatArray:
        """Return θ + u_y, (n, width); a sparse target is added entry by entry."""
        if is_sparse(target):
            total = np.array(theta, dtype=np.float64)
            rows = np.repeat(np.arange(target.shape[0]), np.diff(target.indptr))
            np.add.at(total, (rows, target.indices), target.data)
            return total
        return np.asarray(theta + target)

    def expected_target(self, theta: FloatArray) -> FloatArray:
        loss_space, space = self.loss.score_space, self.score_space
        if space == loss_space:
            return -theta
        # the loss's own function closest to Fθ in L²(μ)
        return -loss_space.gram().solve(loss_space.cross_gram(space)(theta))
