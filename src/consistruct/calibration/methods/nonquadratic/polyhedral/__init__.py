"""Hinge and max-min margin: polytopes of distributions, cut until H is known, exactly."""

from consistruct.calibration.methods.nonquadratic.polyhedral.hinges import Hinge, MaxMin
from consistruct.calibration.methods.nonquadratic.polyhedral.method import PolyhedralMethod

__all__ = ["Hinge", "MaxMin", "PolyhedralMethod"]
