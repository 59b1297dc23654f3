"""Surrogates on chains of any length: log loss (a CRF), hinge, softmax-margin, quadratic."""

from consistruct.surrogates.chain.members import (
    CHAIN_SURROGATES,
    ChainGradient,
    ChainHinge,
    ChainLogLoss,
    ChainQuadratic,
    ChainSoftmaxMargin,
    ChainSurrogate,
    chain_surrogate,
)

__all__ = [
    "CHAIN_SURROGATES",
    "ChainGradient",
    "ChainHinge",
    "ChainLogLoss",
    "ChainQuadratic",
    "ChainSoftmaxMargin",
    "ChainSurrogate",
    "chain_surrogate",
]
