"""Contrast of fitted scores: how far decisions undo what the penalty did to them.

Ridge regression pulls its predictions θ towards their mean θ̄, the more the less the data say. The
regression is right to do so, but decisions depend on where the scores lie between the constant one
and those of certainty: where every label is rare, shrunk scores say "no label" too often. Decisions
therefore use

    θ̄ + c (θ − θ̄),      c = 1 for the regression itself, θ̄ = 0 if it has no intercept,

with the c of a short list that has the least task loss on rows left out. Consistency is not lost:
c = 1 is on the list, and the best of finitely many rules by task loss is no worse in the limit.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from consistruct.learning.ridge_path import LOSS_SLACK, LeftOut, row_chunks, settled
from consistruct.protocols import FloatArray

__all__ = ["CONTRASTS", "Centre", "choose_contrast", "with_contrast", "without_contrast"]

logger = logging.getLogger(__name__)

CONTRASTS = (1.0, 1.25, 1.5, 2.0, 3.0, 5.0)


@dataclass(frozen=True, eq=False)
class Centre:
    """θ̄ of the fits without each of n rows.

    Attributes
    ----------
    mean : (width,) array
        θ̄ of the whole fit: the mean target, 0 without an intercept.
    total_weight : float
    left_out : (n,) array
        The weight that leaves with each row.
    fit_intercept : bool
    """

    mean: FloatArray
    total_weight: float
    left_out: FloatArray
    fit_intercept: bool

    def without(self, part: slice, y: FloatArray) -> FloatArray:
        """(Nθ̄ − w_i y_i)/(N − w_i) for a slice of the rows with targets y, (rows, width)."""
        if not self.fit_intercept:
            return np.zeros_like(y)
        left = self.left_out[part, None]
        rest = np.maximum(self.total_weight - left, np.finfo(np.float64).tiny)
        return np.asarray((self.total_weight * self.mean - left * y) / rest)


def choose_contrast(
    predict: Callable[[slice, FloatArray], FloatArray],
    centre: Centre,
    left: LeftOut,
    plain_loss: float,  # of contrast 1
) -> tuple[float, dict[str, FloatArray]]:
    """The contrast with the least task loss, the smallest of several; the losses of all.

    ``predict(part, y)`` gives (rows, width) for a slice of the examples with targets y.
    """
    surrogate, true, weight = left.surrogate, left.true, left.weight
    decoder, loss = surrogate.score_space.decoder(), surrogate.loss
    task, unweighted = np.zeros((2, len(CONTRASTS)))
    for part in row_chunks(len(weight), surrogate.score_space.width):
        y = left.target(part)
        theta, mean = settled(predict(part, y), y), centre.without(part, y)
        for position, contrast in enumerate(CONTRASTS[1:], 1):
            sharper = settled(with_contrast(theta, mean, contrast), y)
            losses = loss(decoder(sharper), true[part])
            task[position] += weight[part] @ losses
            unweighted[position] += losses.sum()
    task /= weight.sum()
    task[0] = plain_loss
    # relative to all rows alike: those with next to no weight decide nothing
    slack = LOSS_SLACK * unweighted.max() / len(weight)
    best = int(np.flatnonzero(task <= task.min() + slack)[0])
    logger.info(
        "closed form: contrast %g, leave-one-out task loss %.4f", CONTRASTS[best], task[best]
    )
    return CONTRASTS[best], {"contrasts": np.array(CONTRASTS), "contrast_loss": task}


def with_contrast(theta: FloatArray, centre: FloatArray, contrast: float) -> FloatArray:
    """θ̄ + c(θ − θ̄) of rows (n, width), or of weights that make them."""
    return theta if contrast == 1.0 else centre + contrast * (theta - centre)


def without_contrast(theta: FloatArray, centre: FloatArray, contrast: float) -> FloatArray:
    """What the regression said: θ from θ̄ + c(θ − θ̄)."""
    return with_contrast(theta, centre, 1.0 / contrast)
