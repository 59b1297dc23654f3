"""What of a fit of chains ends within a time limit."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, replace

import numpy as np

from consistruct._clock import Deadline, duration
from consistruct.learning.models.chain.sgd import ChainSGD

__all__ = ["Plan", "plan_epochs"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Plan:
    """How many epochs a fit takes, and what comes before and after them.

    Attributes
    ----------
    epochs : int
    penalty : bool
        Whether the penalty is chosen.
    out_of_fold : bool
        Whether sequences are left out of fits that recalibrate probabilities.
    """

    epochs: int
    penalty: bool = True
    out_of_fold: bool = True


def plan_epochs(
    problem: ChainSGD, deadline: Deadline, most: int, *, searched: float, out_of_fold: float
) -> Plan:
    """The most that ends in time; one epoch there always is.

    Epochs over few sequences tell how long one takes. `searched` and `out_of_fold` are what the
    choice of the penalty and the fits that leave sequences out take, in epochs over all.
    """
    n = len(problem.data.tokens)
    rng = np.random.default_rng(0)

    def epoch(share: float) -> None:
        rows = np.sort(rng.choice(n, max(1, round(share * n)), replace=False))
        part = problem.data.take(rows)
        ChainSGD(problem.surrogate, part, problem.state.copy(), problem.steps).epoch(rng)

    time = duration(epoch, deadline)
    one = math.inf if time is None else time.of(1.0)
    for dropped, plan in (
        ("the recalibration of probabilities", Plan(most)),
        ("the choice of the penalty", Plan(most, out_of_fold=False)),
        ("epochs", Plan(most, penalty=False, out_of_fold=False)),
    ):
        if deadline.allows(one * (most + plan.penalty * searched + plan.out_of_fold * out_of_fold)):
            return plan
        logger.warning("time_limit of %g s leaves out %s", deadline.limit, dropped)
    return replace(plan, epochs=max(1, int(deadline.left / one)))
