"""Train through calls of the decoder: SPO+ and the perturbed Fenchel–Young loss.

Both are written for decisions by optimization oracles, and hold for any loss with a decoder: scores
θ stand for minus the predicted costs, u_y for the costs that came true, and y* for the best
prediction of a true label.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import check_count, check_number
from consistruct.losses.base import dense_target
from consistruct.protocols import FloatArray
from consistruct.surrogates.base import BaseSurrogate, ValueAndGradient

__all__ = ["PerturbedFenchelYoungSurrogate", "SPOPlusSurrogate"]


class _DecodingSurrogate(BaseSurrogate):
    """Share scores of the loss's own space, and the best prediction of each true label."""

    def _target(self, true: ArrayLike) -> FloatArray:
        """Return u_y, (n, width), in the coordinates of the scores."""
        loss_space, space = self.loss.score_space, self.score_space
        target = dense_target(self.loss.target(true))
        return target if space == loss_space else space.coordinates(loss_space)(target)

    def _best(self, target: FloatArray) -> FloatArray:
        """Return F of the best prediction of each true label, (n, width)."""
        # −u_y scores every prediction by minus its loss: y* need not be the true label itself
        space = self.score_space
        return space.embed(space.decode(-target))


@dataclass(frozen=True, eq=False, repr=False)
class SPOPlusSurrogate(_DecodingSurrogate):
    """Bound the regret from above: Φ(θ, y) = max_c ⟨F_c, 2θ + u_y⟩ − ⟨F_y*, 2θ + u_y⟩, or SPO+.

    A convex upper bound of the regret: one call of the decoder for each value. With predicted costs
    ĉ = −θ it is max_z ⟨c − 2ĉ, z⟩ + 2⟨ĉ, z*⟩ − ⟨c, z*⟩. Its minimizer is the expected cost where
    the noise of the costs is symmetric and continuous, and then its decisions are the best ones;
    for other noise nothing is guaranteed (`Costs` and `Ridge` are consistent without).
    Piecewise linear: use SGD.

    Reference: Elmachtoub, Grigas, "Smart predict, then optimize", Management Science 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.losses import Decision
    >>> from consistruct.structures import TopK
    >>> surrogate = SPOPlusSurrogate(Decision(TopK(2, 1)))
    >>> surrogate.value_and_gradient(np.array([[0.0, 0.0]]), [[1.0, 3.0]])
    (array([2.]), array([[-2.,  2.]]))
    """

    name: ClassVar[str] = "spo-plus"
    smooth: ClassVar[bool] = False

    def value_and_gradient(self, theta: FloatArray, true: ArrayLike) -> ValueAndGradient:
        target = self._target(true)
        # the decoder is called at 2θ + u_y, twice the prediction less the truth: where θ = −u_y it
        # is −u_y, the best decision itself, and Φ is 0
        pushed = 2.0 * theta + target
        space = self.score_space
        gap = space.embed(space.decode(pushed)) - self._best(target)
        return np.einsum("nw,nw->n", gap, pushed), 2.0 * gap


@dataclass(frozen=True, eq=False, repr=False)
class PerturbedFenchelYoungSurrogate(_DecodingSurrogate):
    """Imitate best decisions: Φ(θ, y) = E max_c ⟨F_c, θ + σZ⟩ − ⟨F_y*, θ⟩ with Gaussian Z.

    The expectation is a mean over `n_samples` draws of Z, the same ones in every call, so that
    values and gradients belong to one convex function; the decoder is called for each. It imitates
    the best prediction of each true label and does not look at the costs themselves: no bound on
    the regret is known for it.

    Reference: Berthet, Blondel, Teboul, Cuturi, Vert, Bach, "Learning with differentiable perturbed
    optimizers", 2020.

    Parameters
    ----------
    loss : Loss
    scores : ScoreSpace, optional
    sigma : float
        σ, in units of the scores.
    n_samples : int

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.losses import Decision
    >>> from consistruct.structures import TopK
    >>> surrogate = PerturbedFenchelYoungSurrogate(Decision(TopK(2, 1)), n_samples=1000)
    >>> surrogate.value_and_gradient(np.zeros((1, 2)), [[1.0, 3.0]])[1].round(1)
    array([[-0.5,  0.5]])
    """

    sigma: float = 1.0
    n_samples: int = 10

    name: ClassVar[str] = "perturbed-fenchel-young"
    smooth: ClassVar[bool] = False  # a mean of finitely many maxima

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(
            sigma=check_number(self.sigma, "sigma", low=0.0, open_low=True),
            n_samples=check_count(self.n_samples, "n_samples"),
        )

    @cached_property
    def _noise(self) -> FloatArray:
        """Return σZ, (n_samples, width)."""
        # one fixed seed for all calls: fresh noise would make Φ another function at every step,
        # which line searches and stopping rules take for progress or for failure
        shape = (self.n_samples, self.score_space.width)
        return self.sigma * np.random.default_rng(0).standard_normal(shape)

    def value_and_gradient(self, theta: FloatArray, true: ArrayLike) -> ValueAndGradient:
        best, space = self._best(self._target(true)), self.score_space
        values, mean = -np.einsum("nw,nw->n", best, theta), np.zeros_like(best)
        for noise in self._noise:
            moved = theta + noise
            decided = space.embed(space.decode(moved))
            # ∂/∂θ E max = E F_argmax (Danskin): a mean of decisions, smooth in θ though each one
            # jumps
            values += np.einsum("nw,nw->n", decided, moved) / self.n_samples
            mean += decided / self.n_samples
        return values, mean - best
