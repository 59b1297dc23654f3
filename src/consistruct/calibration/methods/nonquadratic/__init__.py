"""Calibration functions of the surrogates that are not quadratic.

By the form of their excess risk: (a, b) family (logistic, exponential, any functions),
distributions (log loss, sparsemax), hinge and max-min margin.
"""

from consistruct.calibration.methods.nonquadratic.choice import choose

__all__ = ["choose"]
