"""Surrogates: convex functions of the scores whose minimiser decodes to the Bayes decision."""

from consistruct.surrogates.ab_family import (
    ABSurrogate,
    ExponentialSurrogate,
    LogisticSurrogate,
    SquareSurrogate,
)
from consistruct.surrogates.base import BaseSurrogate, EnumeratedSurrogate
from consistruct.surrogates.log_loss import LogSurrogate
from consistruct.surrogates.quadratic import QuadraticSurrogate
from consistruct.surrogates.registry import SURROGATES, make_surrogate

__all__ = [
    "SURROGATES",
    "ABSurrogate",
    "BaseSurrogate",
    "EnumeratedSurrogate",
    "ExponentialSurrogate",
    "LogSurrogate",
    "LogisticSurrogate",
    "QuadraticSurrogate",
    "SquareSurrogate",
    "make_surrogate",
]
