"""What models of rows average where it is no class: the target of the loss."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from consistruct._validation import is_sparse
from consistruct.decisions.statistics import ClassProbabilities, Statistic
from consistruct.exceptions import CapabilityError
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray, LabelArray, Target
from consistruct.structures import Structure
from consistruct.structures.base import ENUMERATION_LIMIT
from consistruct.surrogates import QuadraticSurrogate

__all__ = [
    "TargetValues",
    "finest_statistic",
    "rounded_scores",
]


@dataclass(frozen=True, eq=False, repr=False)
class TargetValues(Statistic):
    """τ(y) = target(y), in the loss's own scores or in those of another score space.

    An offset that depends on the true label (precision, pairs) is one more column, so that expected
    losses can be reported and not only compared.

    Parameters
    ----------
    loss : Loss
    scores : ScoreSpace, optional
        Where the target is written: a larger space keeps the decisions, in a smaller one the
        target is projected and learning is in general inconsistent. The loss's own if None.

    Examples
    --------
    >>> from consistruct.losses import Hamming
    >>> statistic = TargetValues(Hamming(2))
    >>> statistic.width, statistic.decode(statistic.values([[0, 1]]).toarray()).tolist()
    (4, [[0, 1]])
    """

    loss: Loss
    scores: Structure | None = None

    @cached_property
    def surrogate(self) -> QuadraticSurrogate:
        """The quadratic surrogate whose minimizer is minus the mean of this statistic."""
        return QuadraticSurrogate(self.loss, self.scores)

    @property
    def score_space(self) -> Structure:
        return self.surrogate.score_space

    @cached_property
    def constant_offset(self) -> float | None:
        """The offset where it is the same for every true label, else None."""
        if self.loss.true_labels.size is None:
            offsets = np.zeros(1)  # cost vectors have none
        else:
            true_labels = self.loss.true_labels.sample(256, np.random.default_rng(0))
            offsets = self.loss.offset(true_labels)
        # means over candidates differ by rounding
        same = np.ptp(offsets) <= 1e-12 * np.abs(offsets).max(initial=0.0)
        return float(offsets[0]) if same else None

    @property
    def open_offset(self) -> bool:
        return self.constant_offset is None

    @property
    def width(self) -> int:
        return self.score_space.width + self.open_offset

    def values(self, true: Any) -> Target:
        target = self.surrogate.target(true)
        if self.constant_offset is not None:
            return target
        offset = self.loss.offset(true)[:, None]
        if is_sparse(target):
            return sp.csr_array(sp.hstack([target, sp.csr_array(offset)]))
        return np.hstack([target, offset])

    def scores_part(self, expected: FloatArray) -> FloatArray:
        """The columns that are coordinates of the score space, (n, width of the space)."""
        return expected[:, : self.score_space.width]

    def target(self, expected: FloatArray) -> FloatArray:
        part = self.scores_part(expected)
        return part if self.scores is None else self.surrogate.expected_target(-part)

    def offset(self, expected: FloatArray) -> FloatArray:
        if not self.loss.decodes_fast:
            raise CapabilityError(
                self,
                "offset",
                "an expected regret",
                "it would need the best value of every training row; the expected cost of "
                "decisions z is (z * model.expected_target(X)).sum(axis=1)",
            )
        if self.constant_offset is None:
            return np.asarray(expected[:, -1])
        return np.full(len(expected), self.constant_offset)

    def decode(self, expected: FloatArray) -> LabelArray:
        return self.score_space.decode(-self.scores_part(expected))

    def part_scores(self, expected: FloatArray) -> FloatArray | None:
        if self.score_space.separate_states != 2:
            return None
        parts = -self.scores_part(expected).reshape(len(expected), -1, 2)
        return np.asarray(parts[:, :, 1] - parts[:, :, 0])

    def squared_error(self, error: FloatArray) -> FloatArray:
        gap = self.scores_part(error)
        return 0.5 * np.einsum("nw,nw->n", gap, self.score_space.gram().apply(gap))

    def with_loss(self, loss: Loss) -> Statistic:
        if loss == self.loss:
            return self
        from consistruct.learning.part_statistics import PartProbabilities, same_parts

        if self.scores is None and same_parts(self.loss, loss):
            return PartProbabilities(loss)
        raise CapabilityError(
            self,
            "a statistic of the true labels",
            f"changing the loss to {loss!r} after fitting",
            f"the model was fitted on the targets of {self.loss!r}; fit again with the new loss",
        )


def finest_statistic(loss: Loss) -> Statistic:
    """The class itself where true labels are classes, else the target.

    >>> from consistruct.losses import Hamming, ZeroOne
    >>> finest_statistic(ZeroOne(3)), finest_statistic(Hamming(3))
    (ClassProbabilities(ZeroOne(3)), TargetValues(Hamming(3)))
    """
    size = loss.true_labels.size
    if loss.true_labels.shape == () and size is not None and size <= ENUMERATION_LIMIT:
        return ClassProbabilities(loss)
    return TargetValues(loss)


TIE = 2.0**-20  # of the largest target: scores of rows left out that are closer tie


def rounded_scores(theta: FloatArray, y: FloatArray) -> FloatArray:
    """Scores of rows left out, (n, width), as multiples of `TIE` times the largest target.

    In symmetric data, or between copies of a row, several labels tie exactly, and rounding (that of
    another number of threads, say) would decide which is predicted, and with it which penalty,
    kernel and contrast win. Rounded scores tie on every machine, and decoders break ties alike.
    The step is a power of two, so that the rounded scores are exact.
    """
    largest = float(np.abs(y).max(initial=0.0))
    if largest == 0.0:
        return theta
    step = TIE * 2.0 ** np.ceil(np.log2(largest))
    return np.asarray(np.rint(theta / step) * step)
