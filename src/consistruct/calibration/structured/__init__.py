"""Losses whose pairs fall into few orbits: exact curves at any number of labels."""

from consistruct.calibration.structured.closed_forms import ClosedForm, as_mixed, closed_form
from consistruct.calibration.structured.hamming import HammingFull, snapped

__all__ = ["ClosedForm", "HammingFull", "as_mixed", "closed_form", "snapped"]
