"""One line per surrogate: what names, tests and docs know them by."""

from __future__ import annotations

from consistruct.losses.base import Loss
from consistruct.scores.base import BaseScoreSpace
from consistruct.surrogates.ab_family import (
    ExponentialSurrogate,
    LogisticSurrogate,
    SquareSurrogate,
)
from consistruct.surrogates.base import BaseSurrogate
from consistruct.surrogates.log_loss import LogSurrogate
from consistruct.surrogates.quadratic import QuadraticSurrogate

__all__ = ["SURROGATES", "make_surrogate"]

SURROGATES: dict[str, type[BaseSurrogate]] = {
    "quadratic": QuadraticSurrogate,
    "logistic": LogisticSurrogate,
    "exponential": ExponentialSurrogate,
    "square": SquareSurrogate,
    "log": LogSurrogate,
}


def make_surrogate(
    surrogate: str | type[BaseSurrogate], loss: Loss, scores: BaseScoreSpace | None = None
) -> BaseSurrogate:
    """Build a surrogate by name, or from a class of one's own.

    Examples
    --------
    >>> from consistruct.losses import ZeroOne
    >>> make_surrogate("log", ZeroOne(3))
    LogSurrogate(ZeroOne(3))
    """
    if isinstance(surrogate, type) and issubclass(surrogate, BaseSurrogate):
        return surrogate(loss, scores)
    if isinstance(surrogate, str) and surrogate in SURROGATES:
        return SURROGATES[surrogate](loss, scores)
    raise ValueError(
        f"surrogate must be one of {', '.join(sorted(SURROGATES))} or a surrogate class, "
        f"got {surrogate!r}"
    )
