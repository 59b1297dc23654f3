"""Losses whose pairs fall into few orbits: exact curves at any number of labels."""

from consistruct.calibration.methods.orbits.closed_forms import FORMS, ClosedForm, closed_form
from consistruct.calibration.methods.orbits.hamming import HammingFull, snapped

__all__ = ["FORMS", "ClosedForm", "HammingFull", "closed_form", "snapped"]
