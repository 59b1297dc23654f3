"""What all surrogates share: a loss, a score space, and how scores become decisions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from consistruct._members import Member
from consistruct.exceptions import ConsistructError
from consistruct.labels.base import ENUMERATION_LIMIT
from consistruct.losses.base import Loss, dense_target
from consistruct.protocols import FloatArray, LabelArray
from consistruct.scores.base import BaseScoreSpace

__all__ = ["BaseSurrogate", "EnumeratedSurrogate"]


@dataclass(frozen=True, eq=False, repr=False)
class BaseSurrogate(Member, ABC):
    """A convex function Φ(θ, y) of score parameters. Required: `value_and_gradient`.

    Parameters
    ----------
    loss : Loss
        The task loss that the surrogate stands for.
    scores : ScoreSpace, optional
        Where θ lives; the loss's own score space if not given.
    """

    loss: Loss
    scores: BaseScoreSpace | None = None

    name: ClassVar[str]

    def __post_init__(self) -> None:
        if not isinstance(self.loss, Loss):
            raise TypeError(f"loss must be a Loss, got {type(self.loss).__name__}")
        if self.scores is None:
            return
        if not isinstance(self.scores, BaseScoreSpace):
            raise TypeError(f"scores must be a ScoreSpace or None, got {self.scores!r}")
        if self.scores.n_labels != self.loss.n_labels:
            raise ValueError(
                f"scores must cover the {self.loss.n_labels} predictions of {self.loss!r}, "
                f"got {self.scores!r} over {self.scores.n_labels}"
            )

    @property
    def score_space(self) -> BaseScoreSpace:
        return self.loss.score_space if self.scores is None else self.scores

    @abstractmethod
    def value_and_gradient(
        self, theta: FloatArray, true: ArrayLike
    ) -> tuple[FloatArray, FloatArray]: ...

    # --- with a default ---

    def sampled_value_and_gradient(
        self, theta: FloatArray, true: ArrayLike, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Unbiased estimates of values (n,) and gradients (n, width) from one label c each."""
        raise ConsistructError(
            f"{type(self).__name__} has no estimate from one sampled label; use the exact sum"
        )

    def decode(self, theta: FloatArray, decoding: str = "argmax") -> LabelArray:
        """Predictions (n, *shape): the best scores, or the least expected loss ("bayes")."""
        if decoding == "argmax":
            return self.score_space.decoder()(theta)
        if decoding == "bayes":
            return self.loss.score_space.decoder()(-self.expected_target(theta))
        raise ValueError(f"decoding must be 'argmax' or 'bayes', got {decoding!r}")

    @abstractmethod
    def expected_target(self, theta: FloatArray) -> FloatArray:
        """E[u_y | x] in the loss's own coordinates, as the minimiser θ of the surrogate tells."""

    def expected_offset(self, theta: FloatArray) -> FloatArray:
        """E[o_y | x], (n,)."""
        return np.full(len(theta), self._constant_offset)

    def expected_loss(self, theta: FloatArray, pred: LabelArray) -> FloatArray:
        """Estimated E[L(ŷ, y) | x] of the predictions, (n,)."""
        embedded = self.loss.score_space.embed(pred)
        expected = np.einsum("nw,nw->n", embedded, self.expected_target(theta))
        return np.asarray(expected + self.expected_offset(theta))

    @cached_property
    def _constant_offset(self) -> float:
        truths = self.loss.truths.sample(256, np.random.default_rng(0))
        offsets = self.loss.offset(truths)
        if np.ptp(offsets) > 0:
            raise ConsistructError(
                f"the offset of {self.loss!r} depends on the truth, so scores alone do not tell "
                f"its expected loss; compare predictions by score_parameters instead"
            )
        return float(offsets[0])


class EnumeratedSurrogate(BaseSurrogate):
    """A surrogate that sums over all predictions, listed once within `ENUMERATION_LIMIT`."""

    @cached_property
    def _embedding(self) -> FloatArray:
        """F, (k, width)."""
        return self.score_space.matrix(limit=ENUMERATION_LIMIT)

    @cached_property
    def _measure(self) -> FloatArray:
        """μ, (k,)."""
        return self.score_space.predictions.weights(limit=ENUMERATION_LIMIT)

    @cached_property
    def _loss_embedding(self) -> FloatArray:
        """F of the loss's own space, (k, width of the loss)."""
        return self.loss.score_space.matrix(limit=ENUMERATION_LIMIT)

    def _losses(self, true: ArrayLike) -> FloatArray:
        """L(c, y) of every prediction c, (n, k)."""
        target = self.loss.target(true)
        values = dense_target(target @ self._loss_embedding.T)
        return values + self.loss.offset(true)[:, None]
