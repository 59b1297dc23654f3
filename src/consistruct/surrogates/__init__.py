"""Surrogates: convex functions of the scores whose minimizer decodes to the Bayes decision."""

from consistruct.surrogates.ab_family import (
    ABSurrogate,
    ExponentialSurrogate,
    LogisticSurrogate,
    SquareSurrogate,
)
from consistruct.surrogates.base import BaseSurrogate, EnumeratedSurrogate
from consistruct.surrogates.decisions import PerturbedFenchelYoungSurrogate, SPOPlusSurrogate
from consistruct.surrogates.distribution import (
    DistributionSurrogate,
    LogSurrogate,
    SparsemaxSurrogate,
)
from consistruct.surrogates.linear_regret import LinearRegretSurrogate
from consistruct.surrogates.margins import (
    HingeSurrogate,
    MaxMinMarginSurrogate,
    SoftmaxMarginSurrogate,
)
from consistruct.surrogates.quadratic import QuadraticSurrogate
from consistruct.surrogates.registry import SURROGATES, make_surrogate

__all__ = [
    "SURROGATES",
    "ABSurrogate",
    "BaseSurrogate",
    "DistributionSurrogate",
    "EnumeratedSurrogate",
    "ExponentialSurrogate",
    "HingeSurrogate",
    "LinearRegretSurrogate",
    "LogSurrogate",
    "LogisticSurrogate",
    "MaxMinMarginSurrogate",
    "PerturbedFenchelYoungSurrogate",
    "QuadraticSurrogate",
    "SPOPlusSurrogate",
    "SoftmaxMarginSurrogate",
    "SparsemaxSurrogate",
    "SquareSurrogate",
    "make_surrogate",
]


def __dir__() -> list[str]:
    return sorted(__all__)
