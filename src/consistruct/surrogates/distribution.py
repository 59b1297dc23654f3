"""Surrogates that estimate the distribution of the true label, one score per label."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal

import numpy as np

from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray
from consistruct.structures import Structure
from consistruct.surrogates.base import EnumeratedSurrogate, ExcessForm

__all__ = ["DistributionSurrogate"]


class DistributionSurrogate(EnumeratedSurrogate):
    """Φ(θ, y) = Ω*(f) − f_y with f = Fθ: the gradient of Ω* is a probability distribution.

    Required: `value_and_gradient`, `link`. The distribution p = ∇Ω*(f) estimates that of the true
    label, so ``decoding="bayes"``, argmin_c (Lp)_c, is consistent for every loss under full scores;
    ``"argmax"`` predicts the most probable label whatever the loss. True labels must be predictions
    too (capability ``true_label_as_prediction``).
    """

    excess: ClassVar[ExcessForm | None] = "distribution"
    divergence: ClassVar[Literal["KL", "squares"]]  # D(q, p), the excess risk under q

    @classmethod
    def default_scores(cls, loss: Loss) -> Structure:
        """One score per label; for `Hamming` one per part and state, which is enough there."""
        return super().default_scores(loss) if loss.hamming_shape is None else loss.score_space

    @abstractmethod
    def link(self, scores: FloatArray) -> FloatArray:
        """∇Ω* of the scores, (n, m) -> (n, m): each row a probability distribution."""

    def probabilities(self, theta: FloatArray) -> FloatArray:
        """p(y | x) of every true label, (n, m); predictions that are no true label are left out."""
        return self.link((theta @ self._embedding.T)[:, self._all_true_labels[0]])

    def expected_target(self, theta: FloatArray) -> FloatArray:
        return self.probabilities(theta) @ self._all_true_labels[1]

    def expected_offset(self, theta: FloatArray) -> FloatArray:
        return np.asarray(self.probabilities(theta) @ self._all_true_labels[2])
