"""Calibration functions of the surrogates that are not quadratic.

(a, b) family (logistic, exponential, any functions), log loss and sparsemax, hinge and max-min
margin.
"""

from consistruct.calibration.nonquadratic.ab import ABSurrogate
from consistruct.calibration.nonquadratic.choice import SURROGATES, check_surrogate, choose

__all__ = ["SURROGATES", "ABSurrogate", "check_surrogate", "choose"]
