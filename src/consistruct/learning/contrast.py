"""Contrast of fitted scores: how far decisions undo what the penalty did to them.

Ridge regression pulls its predictions θ towards their mean θ̄, the more the less the data say. The
regression is right to do so, but decisions depend on where the scores lie between the constant one
and those of certainty: where every label is rare, shrunk scores say "no label" too often. Decisions
therefore use

    θ̄ + c (θ − θ̄),      c = 1 for the regression itself,

with the c of a short list that has the least task loss on rows left out. Consistency is not lost:
c = 1 is on the list, and the best of finitely many rules by task loss is no worse in the limit.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np

from consistruct.learning.ridge_path import LOSS_SLACK, row_chunks
from consistruct.losses.base import dense_target
from consistruct.protocols import FloatArray, LabelArray
from consistruct.surrogates.quadratic import QuadraticSurrogate

__all__ = ["CONTRASTS", "choose_contrast", "with_contrast", "without_contrast"]

logger = logging.getLogger(__name__)

CONTRASTS = (1.0, 1.25, 1.5, 2.0, 3.0, 5.0)


def choose_contrast(
    left_out: Callable[[slice, FloatArray], FloatArray],
    centre: FloatArray,  # (width,): θ̄
    weight: FloatArray,  # (n,)
    surrogate: QuadraticSurrogate,
    true: LabelArray,  # (n, …)
) -> tuple[float, dict[str, FloatArray]]:
    """The contrast with the least task loss, the smallest of several; the losses of all.

    ``left_out(part, y)`` predicts (rows, width) for a slice of the rows with targets y.
    """
    decoder, loss = surrogate.score_space.decoder(), surrogate.loss
    losses = np.zeros(len(CONTRASTS))
    for part in row_chunks(len(weight), surrogate.score_space.width):
        theta = left_out(part, -dense_target(surrogate.target(true[part])))
        for position, contrast in enumerate(CONTRASTS):
            decided = decoder(with_contrast(theta, centre, contrast))
            losses[position] += weight[part] @ loss(decided, true[part])
    losses /= weight.sum()
    best = int(np.flatnonzero(losses <= losses.min() + LOSS_SLACK * losses.max())[0])
    logger.info(
        "closed form: contrast %g, leave-one-out task loss %.4f", CONTRASTS[best], losses[best]
    )
    return CONTRASTS[best], {"contrasts": np.array(CONTRASTS), "contrast_loss": losses}


def with_contrast(theta: FloatArray, centre: FloatArray, contrast: float) -> FloatArray:
    """θ̄ + c(θ − θ̄) of rows (n, width), or of weights that make them."""
    return theta if contrast == 1.0 else centre + contrast * (theta - centre)


def without_contrast(theta: FloatArray, centre: FloatArray, contrast: float) -> FloatArray:
    """What the regression said: θ from θ̄ + c(θ − θ̄)."""
    return with_contrast(theta, centre, 1.0 / contrast)
