"""What a model for the Hamming loss tells of every other sum over the same parts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from consistruct.decisions.statistics import Statistic
from consistruct.exceptions import ConsistructError
from consistruct.learning.statistics import TargetValues
from consistruct.losses import Hamming, LabelCosts
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray, Target

__all__ = ["PartProbabilities", "same_parts"]


@dataclass(frozen=True, eq=False, repr=False)
class PartProbabilities(Statistic):
    """τ(y) = target of the Hamming loss: E[τ | x] tells the probability of every state of a part.

    Whoever was fitted for the Hamming loss serves every other sum over the same parts with it.

    Parameters
    ----------
    loss : Loss
        A sum over parts, such as `LabelCosts`.

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.losses import LabelCosts
    >>> statistic = PartProbabilities(LabelCosts([3.0, 1.0], [1.0, 1.0]))
    >>> expected = statistic.from_probabilities(np.array([[0.3, 0.3]]))
    >>> statistic.decode(expected), statistic.probabilities(expected)
    (array([[1, 0]]), array([[0.3, 0.3]]))
    """

    loss: Loss

    @cached_property
    def _hamming(self) -> Hamming:
        return Hamming(self.loss.true_labels.shape[0], 2)

    @property
    def width(self) -> int:
        return 2 * self.loss.true_labels.shape[0]

    def values(self, true: ArrayLike) -> Target:
        return self._hamming.target(true)

    def probabilities(self, expected: FloatArray) -> FloatArray:
        """P(part is in state 1 | x), (n, T), within 0..1."""
        states = -expected.reshape(len(expected), -1, 2) * (self.width // 2)
        # least squares does not add up to one by itself
        return np.clip(0.5 * (1.0 + states[:, :, 1] - states[:, :, 0]), 0.0, 1.0)

    def from_probabilities(self, chances: FloatArray) -> FloatArray:
        """E[τ] of given probabilities, the inverse of `probabilities`."""
        states = np.stack([1.0 - chances, chances], axis=-1)
        return -states.reshape(len(chances), -1) / (self.width // 2)

    def project(self, expected: FloatArray) -> FloatArray:
        return self.from_probabilities(self.probabilities(expected))

    def target(self, expected: FloatArray) -> FloatArray:
        states = -expected.reshape(len(expected), -1, 2) * (self.width // 2)
        return self.loss.independent_target(states)[0]

    def offset(self, expected: FloatArray) -> FloatArray:
        return np.zeros(len(expected))

    def part_scores(self, expected: FloatArray) -> FloatArray | None:
        prices = self.target(self.project(expected)).reshape(len(expected), -1, 2)
        return np.asarray(prices[:, :, 0] - prices[:, :, 1])

    def with_loss(self, loss: Loss) -> Statistic:
        if loss == self._hamming:
            return TargetValues(loss)
        if not same_parts(self._hamming, loss):
            raise ConsistructError(
                f"{loss!r} is not a sum over the {self.loss.true_labels.shape[0]} labels that the "
                f"model was fitted on"
            )
        return type(self)(loss)


def same_parts(fitted: Loss, loss: Loss) -> bool:
    """Whether a model fitted for the first loss, a Hamming one, serves the second."""
    parts = fitted.hamming_shape
    of_labels = parts is not None and parts[1] == 2 and isinstance(loss, LabelCosts)
    return of_labels and fitted.true_labels == loss.true_labels
