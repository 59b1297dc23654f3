"""The penalty of stochastic fits, chosen on rows that are held out for it."""

from __future__ import annotations

import copy
import logging
from typing import TYPE_CHECKING, Any

import numpy as np

from consistruct.learning.lbfgs import _single_alpha
from consistruct.learning.score_map import ScoreMap
from consistruct.learning.sgd_run import SGDRun
from consistruct.protocols import FloatArray, LabelArray
from consistruct.surrogates import BaseSurrogate

if TYPE_CHECKING:
    from consistruct.learning.averaged_sgd import AveragedSGD

__all__ = ["choose_alpha"]

logger = logging.getLogger(__name__)

SHARES = (1.0, 0.1, 0.01, 0.001)  # of E‖φ‖²/N, the largest first: it wins ties
FEWEST_ROWS = 256  # fewer rows rank nothing
SEARCH_ROWS = 4096
SEARCH_EPOCHS = 8  # the average then starts at epoch 4


def choose_alpha(
    solver: AveragedSGD,
    surrogate: BaseSurrogate,
    score_map: ScoreMap,
    inputs: Any,
    labels: LabelArray,
    weight: FloatArray,
    rng: np.random.Generator,
) -> float:
    """The solver's penalty; for "auto" the share of E‖φ‖²/N with the least held-out task loss.

    N·α, the weight of the penalty against a single example, is what carries over from a part of
    the rows to all of them.
    """
    given = _single_alpha(solver.alpha)
    if given is not None:
        return given
    n = len(labels)
    if n < FEWEST_ROWS:
        run = SGDRun(solver, surrogate, score_map, inputs, labels, weight, rng)
        return run.design.mean_square / n
    rows = rng.permutation(n)[:SEARCH_ROWS]
    held_out, used = np.sort(rows[: len(rows) // 4]), np.sort(rows[len(rows) // 4 :])
    run = SGDRun(solver, surrogate, score_map, inputs[used], labels[used], weight[used], rng)
    start, losses = run.state, []
    for share in SHARES:
        run.state = copy.deepcopy(start)
        run.state.alpha = share * run.design.mean_square / len(used)
        for _ in range(SEARCH_EPOCHS):
            run.epoch(rng)
        theta = score_map.apply(run.weights(), inputs[held_out])
        values = surrogate.loss(surrogate.decode(theta), labels[held_out])
        losses.append(float(np.average(values, weights=weight[held_out])))
    best = SHARES[int(np.argmin(losses))]
    alpha = best * run.design.mean_square / n
    logger.info("SGD: alpha %.3g, held-out task loss %.4f", alpha, min(losses))
    return alpha
