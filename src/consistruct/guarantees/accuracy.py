"""Which ε to plan for when none is asked for: a share of what knowing nothing costs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from consistruct.exceptions import ConsistructError
from consistruct.losses.base import Loss, dense_target
from consistruct.protocols import LabelArray

__all__ = ["Accuracy", "default_accuracy"]

SHARE = 0.1
LISTED = 1024  # labels whose loss matrix is averaged; beyond, truths are drawn
DRAWN = 2048  # truths to choose the constant prediction, and as many to price it
TRIED = 64  # predictions to choose from where there is no decoder


@dataclass(frozen=True)
class Accuracy:
    """An excess task risk worth planning for, and in one sentence why this one."""

    eps: float
    reason: str


def default_accuracy(
    loss: Loss,
    *,
    true: ArrayLike | None = None,
    max_eps: float = math.inf,
    level: float = 0.0,
) -> Accuracy:
    """A tenth of what the best constant prediction loses, rounded to two digits.

    Such a prediction needs no features and hardly any data, so an excess of the same size says
    that nothing was learnt, and a tenth of it that most of what can be learnt was.

    Parameters
    ----------
    loss : Loss
    true : (n, *label shape) array, optional
        Observed truths; if not given all truths count as equally likely (those that cannot be
        listed are drawn).
    max_eps : float
        The largest possible excess, which caps the answer.
    level : float
        Consistency level of the scores: nothing is guaranteed below it, so it is added.

    Examples
    --------
    >>> from consistruct.losses import Hamming, ZeroOne
    >>> default_accuracy(ZeroOne(10)).eps, default_accuracy(Hamming(1000)).eps
    (0.09, 0.05)
    """
    if true is None:
        price, where = _uniform_price(loss)
    else:
        truths = np.asarray(true)
        price = _price(loss, truths, truths)
        where = f"on the {len(truths)} truths given"
    if price <= 0:
        eps = _two_digits(SHARE * max_eps) if math.isfinite(max_eps) else SHARE * loss.max_value
        reason = (
            f"a tenth of the largest excess risk, because {where} one prediction is always right"
        )
    else:
        eps = _two_digits(SHARE * price)
        reason = f"a tenth of {price:.3g}, what the best constant prediction loses {where}"
    if level > 0:
        eps += level
        reason += f", above the consistency level {level:g} of these scores"
    if eps > max_eps:
        return Accuracy(max_eps, "the largest possible excess risk")
    return Accuracy(eps, reason)


def _uniform_price(loss: Loss) -> tuple[float, str]:
    """What the best constant prediction loses when all truths are equally likely."""
    sizes = (loss.n_labels, loss.truths.size)
    if all(size is not None and size <= LISTED for size in sizes):
        return float(loss.matrix().mean(axis=1).min()), "when all truths are equally likely"
    drawn = loss.truths.sample(2 * DRAWN, np.random.default_rng(0))
    # priced on other truths than it was chosen by: no optimism
    return _price(loss, drawn[:DRAWN], drawn[DRAWN:]), f"on {DRAWN} truths drawn at random"


def _price(loss: Loss, chosen_by: LabelArray, priced_on: LabelArray) -> float:
    constant = _best_constant(loss, chosen_by)
    return float(loss(_repeated(constant, len(priced_on)), priced_on).mean())


def _best_constant(loss: Loss, truths: LabelArray) -> LabelArray:
    """decode(−mean target), or the best of some predictions where nothing decodes."""
    try:
        mean = dense_target(loss.target(truths)).mean(axis=0)
        return np.asarray(loss.score_space.decoder()(-mean[None])[0])
    except ConsistructError:  # more labels than can be listed, and no structure
        tried = loss.predictions.sample(TRIED, np.random.default_rng(1))
        prices = [loss(_repeated(one, len(truths)), truths).mean() for one in tried]
        return np.asarray(tried[int(np.argmin(prices))], dtype=tried.dtype)


def _repeated(label: LabelArray, n: int) -> LabelArray:
    return np.repeat(np.asarray(label)[None], n, axis=0)


def _two_digits(value: float) -> float:
    return float(f"{value:.1e}")
