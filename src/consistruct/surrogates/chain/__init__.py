"""Surrogates on chains of any length: log loss (a CRF), hinge, softmax-margin, quadratic."""

from consistruct.surrogates.chain.members import (
    ChainGradient,
    ChainHinge,
    ChainLogLoss,
    ChainQuadratic,
    ChainSoftmaxMargin,
    ChainSurrogate,
)

__all__ = [
    "ChainGradient",
    "ChainHinge",
    "ChainLogLoss",
    "ChainQuadratic",
    "ChainSoftmaxMargin",
    "ChainSurrogate",
]
