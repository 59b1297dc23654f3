"""Losses whose pairs fall into few orbits: exact curves at any number of labels."""

from consistruct.calibration.structured.blocks import BlockOrbits, block_level_problem
from consistruct.calibration.structured.closed_forms import ClosedForm, closed_form
from consistruct.calibration.structured.hamming import HammingFull

__all__ = ["BlockOrbits", "ClosedForm", "HammingFull", "block_level_problem", "closed_form"]
