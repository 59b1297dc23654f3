"""Share what all surrogates have: a loss, a score space, and how scores become decisions.

A surrogate states about itself what others need to know: whether it is smooth (L-BFGS) or has kinks
(subgradients), whether its minimizer tells the expected target (`has_link`), which scores it is
trained with, and which form its excess risk has, so that `calibration` can analyze it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from consistruct._members import Member
from consistruct._validation import check_choice
from consistruct.exceptions import CapabilityError, ConsistructError
from consistruct.losses.base import Loss, dense_target
from consistruct.protocols import FloatArray, IntArray, LabelArray
from consistruct.structures import Full, Structure
from consistruct.structures.base import ENUMERATION_LIMIT

__all__ = ["DECODINGS", "BaseSurrogate", "EnumeratedSurrogate", "ExcessForm", "ValueAndGradient"]

# the highest score, or the least expected loss under what the minimizer of the surrogate estimates
DECODINGS = ("argmax", "bayes")

# Φ(θ, y) of each example, (n,), and its gradient (a subgradient at kinks) in θ, (n, width)
ValueAndGradient = tuple[FloatArray, FloatArray]


# What the excess risk of a surrogate looks like, and with it how its calibration function is found:
# a square in the metric of the scores, a Bregman divergence per label, a divergence between the
# distribution of the true label and an estimated one, one of two polyhedral forms, or a square plus
# the excess of a mixed decision.
ExcessForm = Literal["square", "bregman", "distribution", "hinge", "max-min", "mixed-decision"]


@dataclass(frozen=True, eq=False, repr=False)
class BaseSurrogate(Member, ABC):
    """Stand for a task loss by a convex function Φ(θ, y) of score parameters θ.

    **Must be written**

    * `value_and_gradient(theta, true)`: Φ of each example, (n,), and ∂Φ/∂θ, (n, width).

    **May be written**

    * `expected_target(theta)`: E[u_y | x] as the minimizer of E[Φ(θ, y) | x] reveals it; then
      ``decoding="bayes"`` works, for any loss;
    * `smooth = False`: the gradient jumps, so that subgradients train it and not L-BFGS;
    * `excess`, with what its form asks for: then `calibration_function` can analyze it;
    * `default_scores(loss)`: the scores that make it consistent;
    * `sampled_value_and_gradient`: unbiased estimates from one label drawn from μ.

    Parameters
    ----------
    loss : Loss
        The task loss that the surrogate stands for.
    scores : ScoreSpace, optional
        Where θ lives; `default_scores` if not given.

    Examples
    --------
    The shortest surrogate: a squared hinge on the score of the true label.

    >>> import numpy as np
    >>> from consistruct.losses import ZeroOne
    >>> from consistruct.surrogates import BaseSurrogate
    >>> class OwnScore(BaseSurrogate):
    ...     def value_and_gradient(self, theta, true):
    ...         own = self.score_space.embed(true)
    ...         missing = np.maximum(1.0 - (own * theta).sum(axis=1), 0.0)
    ...         return missing**2, -2.0 * missing[:, None] * own
    >>> OwnScore(ZeroOne(2)).value_and_gradient(np.zeros((1, 2)), [1])
    (array([1.]), array([[-0., -2.]]))
    """

    loss: Loss
    scores: Structure | None = None

    name: ClassVar[str]
    smooth: ClassVar[bool] = True  # whether the gradient is continuous, as L-BFGS needs
    # D(q, p), the excess risk under q, where the surrogate estimates a distribution p of true
    # labels
    divergence: ClassVar[Literal["KL", "squares"] | None] = None
    excess: ClassVar[ExcessForm | None] = None  # None: not analyzed

    @property
    def kappa(self) -> float | None:
        """Return κ, the price of leaving the simplex, where scores are a mixed decision."""
        return None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" not in vars(cls):  # a class of one's own needs no more than its own name
            cls.name = cls.__name__

    def __post_init__(self) -> None:
        if not isinstance(self.loss, Loss):
            raise TypeError(f"loss must be a Loss, got {type(self.loss).__name__}")
        if self.scores is None:
            return
        if not isinstance(self.scores, Structure):
            raise TypeError(f"scores must be a ScoreSpace or None, got {self.scores!r}")
        if self.scores.n_labels != self.loss.n_labels:
            raise ValueError(
                f"scores must cover the {self.loss.n_labels} predictions of {self.loss!r}, "
                f"got {self.scores!r} over {self.scores.n_labels}"
            )

    @property
    def score_space(self) -> Structure:
        """Return the scores that θ parametrizes: those given, or `default_scores`."""
        return self._default_space if self.scores is None else self.scores

    @cached_property
    def _default_space(self) -> Structure:
        return self.default_scores(self.loss)

    @abstractmethod
    def value_and_gradient(self, theta: FloatArray, true: ArrayLike) -> ValueAndGradient:
        """Return values (n,) and gradients in θ (n, width); a subgradient where there is a kink."""

    # --- with a default ---

    @classmethod
    def default_scores(cls, loss: Loss) -> Structure:
        """Return the scores it is trained with if none are given: those that make it consistent."""
        return loss.score_space

    @property
    def has_link(self) -> bool:
        """Tell whether `expected_target` exists, and with it ``decoding="bayes"``."""
        return type(self).expected_target is not BaseSurrogate.expected_target

    def sampled_value_and_gradient(
        self, theta: FloatArray, true: ArrayLike, rng: np.random.Generator
    ) -> ValueAndGradient:
        """Return unbiased estimates of values (n,) and gradients (n, width) from one label each."""
        raise ConsistructError(
            f"{type(self).__name__} has no estimate from one sampled label; use the exact sum"
        )

    def decode(self, theta: FloatArray, decoding: str = "argmax") -> LabelArray:
        """Return predictions (n, *shape): the highest score, or the least expected loss."""
        check_choice(decoding, "decoding", DECODINGS)
        if decoding == "argmax":
            return self.score_space.decode(theta)
        # argmin_ŷ ⟨F_ŷ, E[u_y | x]⟩ by the decoder of the loss, which maximizes; offsets do not
        # decide
        return self.loss.score_space.decode(-self.expected_target(theta))

    def expected_target(self, theta: FloatArray) -> FloatArray:
        """Return E[u_y | x] in the loss's own coordinates, as the minimizer θ reveals it."""
        raise CapabilityError(
            self,
            "expected_target",
            "an expected loss or decoding='bayes'",
            "its scores only rank the labels: use decoding='argmax', or 'quadratic' or 'log'",
        )

    def expected_offset(self, theta: FloatArray) -> FloatArray:
        """Return E[o_y | x], (n,)."""
        return np.full(len(theta), self._constant_offset)

    def expected_loss(self, theta: FloatArray, pred: LabelArray) -> FloatArray:
        """Return estimates of E[L(ŷ, y) | x] of the predictions, (n,)."""
        embedded = self.loss.score_space.embed(pred)
        expected = np.einsum("nw,nw->n", embedded, self.expected_target(theta))
        return np.asarray(expected + self.expected_offset(theta))

    @cached_property
    def _constant_offset(self) -> float:
        # sampled, because true labels may be too many to list: an offset that varies (an empty set
        # in F-beta, a query without relevant items) may be missed where such labels are rarer than
        # 1 in 256
        true_labels = self.loss.true_labels.sample(256, np.random.default_rng(0))
        offsets = self.loss.offset(true_labels)
        if np.ptp(offsets) > 0:
            raise ConsistructError(
                f"the offset of {self.loss!r} depends on the true label, so scores alone do not "
                "determine its expected loss; compare predictions by score_parameters instead"
            )
        return float(offsets[0])


class EnumeratedSurrogate(BaseSurrogate):
    """Sum or maximize over all predictions, listed once within `ENUMERATION_LIMIT`.

    A member finds what its formula needs: ``_embedding`` is F, (k, width), so that all scores are
    ``theta @ F.T``; ``_losses(true)`` are L(c, y), (n, k); ``_true_labels(true)`` are the rows of F
    that belong to the true labels, (n,); ``_measure`` is μ, (k,). CONTRIBUTING.md has an example.
    """

    @classmethod
    def default_scores(cls, loss: Loss) -> Structure:
        """Return one score per label while they can be listed, else the loss's own scores."""
        # these surrogates are consistent where every vector of scores can be reached; in the span
        # of the loss alone the minimizer may be out of reach
        size = loss.n_labels
        return Full(loss) if size is not None and size <= ENUMERATION_LIMIT else loss.score_space

    @cached_property
    def _embedding(self) -> FloatArray:
        """Return F, (k, width)."""
        return self.score_space.matrix(limit=ENUMERATION_LIMIT)

    @cached_property
    def _measure(self) -> FloatArray:
        """Return μ, (k,)."""
        return self.score_space.predictions.weights(limit=ENUMERATION_LIMIT)

    @cached_property
    def _loss_embedding(self) -> FloatArray:
        """Return F of the loss's own space, (k, width of the loss)."""
        return self.loss.score_space.matrix(limit=ENUMERATION_LIMIT)

    def _losses(self, true: ArrayLike) -> FloatArray:
        """Return L(c, y) of every prediction c, (n, k)."""
        # through offset + ⟨F_c, u_y⟩: n·k·width products, no n·k calls of the direct formula
        target = self.loss.target(true)
        values = dense_target(target @ self._loss_embedding.T)
        return values + self.loss.offset(true)[:, None]

    @cached_property
    def _all_true_labels(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return prediction index (m,), target (m, width) and offset (m,) of every true label."""
        labels = self.loss.true_labels.enumerate()
        named = self.score_space.predictions.index(self.loss.true_label_as_prediction(labels))
        return named, dense_target(self.loss.target(labels)), self.loss.offset(labels)

    def _true_labels(self, true: ArrayLike) -> IntArray:
        """Return the index of the prediction that names each true label, (n,)."""
        return self.score_space.predictions.index(self.loss.true_label_as_prediction(true))
