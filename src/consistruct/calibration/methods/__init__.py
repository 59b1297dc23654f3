"""The ways to compute H: each says whether it accepts a loss and scores, or why not."""

from consistruct.calibration.methods.base import Method, Progress
from consistruct.calibration.methods.choice import METHODS, choose_method, restricted_method

__all__ = ["METHODS", "Method", "Progress", "choose_method", "restricted_method"]
