"""Bound the excess task risk linearly in the excess risk of a smooth surrogate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import check_number
from consistruct.protocols import FloatArray, LabelArray
from consistruct.surrogates.base import EnumeratedSurrogate, ExcessForm, ValueAndGradient
from consistruct.surrogates.distribution import project_to_simplex

__all__ = ["LinearRegretSurrogate"]

TIE_BREAK = 1e-6  # share of κ by which estimated losses of tied labels are distinguished


@dataclass(frozen=True, eq=False, repr=False)
class LinearRegretSurrogate(EnumeratedSurrogate):
    """Charge a mixed decision: Φ(θ, y) = Σ_c f_c L(c, y) + (κ/2)·dist²(f, simplex), f = Fθ.

    The scores are a relaxed probability distribution over predictions: the first term is its
    expected loss, the second what it pays for leaving the simplex. With π the projection of f and
    ℓ̂ = κ(π − f), an estimate of all expected losses ℓ, the excess risk is

        ‖ℓ̂ − ℓ‖²/2κ + Σ_c π_c (ℓ_c − min ℓ),

    and π lives on the labels of least ℓ̂. The label of highest score has π_c ≥ 1/k, so the excess
    task risk is at most k times the excess surrogate risk: H(ε) ≥ ε/k + ε²/4κ, where smooth
    surrogates in use have ε². It is the infimal convolution of a square with the polyhedral loss
    (the negative Bayes risk); as κ grows the square vanishes, and with it the smoothness.

    Reference: Cao, Bao, Feng, An, "Establishing linear surrogate regret bounds for convex smooth
    losses via convolutional Fenchel–Young losses", 2025.

    Parameters
    ----------
    loss : Loss
    scores : ScoreSpace, optional
    stiffness : float, optional
        κ, in units of the loss and positive; the largest loss if not given.

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.losses import ZeroOne
    >>> surrogate = LinearRegretSurrogate(ZeroOne(2))
    >>> surrogate.value_and_gradient(np.array([[1.0, 0.0]]), [0])    # on the simplex: the loss
    (array([0.]), array([[0., 1.]]))
    """

    stiffness: float | None = None

    name: ClassVar[str] = "linear-regret"
    excess: ClassVar[ExcessForm | None] = "mixed-decision"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.stiffness is not None:
            value = check_number(self.stiffness, "stiffness", low=0.0, open_low=True)
            self._set(stiffness=value)

    @property
    def kappa(self) -> float:
        """Return κ: the stiffness given, else the largest loss, 1 where nothing costs."""
        return self.stiffness if self.stiffness is not None else self.loss.max_value or 1.0

    def value_and_gradient(self, theta: FloatArray, true: ArrayLike) -> ValueAndGradient:
        losses = self._losses(true)
        scores = theta @ self._embedding.T
        # ∇ ½dist²(f, simplex) = f − π(f): smooth, though the distance itself is not
        outside = scores - project_to_simplex(scores)
        values = np.einsum("nk,nk->n", losses, scores)
        values += 0.5 * self.kappa * np.einsum("nk,nk->n", outside, outside)
        return values, (losses + self.kappa * outside) @ self._embedding

    def decode(self, theta: FloatArray, decoding: str = "argmax") -> LabelArray:
        """Return the highest score; "bayes" is the same, as π sits on the labels of least ℓ̂."""
        return super().decode(theta, "argmax" if decoding == "bayes" else decoding)

    def expected_target(self, theta: FloatArray) -> FloatArray:
        scores = theta @ self._embedding.T
        mixed = project_to_simplex(scores)
        # ℓ̂ ties wherever π > 0; the larger π is the better decision, so it goes first
        losses = self.kappa * (mixed - scores) - TIE_BREAK * self.kappa * mixed
        moments = ((losses - self._constant_offset) * self._measure) @ self._loss_embedding
        return self.loss.score_space.gram().solve(moments)
