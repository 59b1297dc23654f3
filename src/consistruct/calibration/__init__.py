"""Calibration functions: how hard a loss is to learn, exactly and with proof.

pair problem as data → symmetry reduction → method → certified curve; bounds; envelope; levels.
"""

from consistruct.calibration.bounds import inconsistent_lower_bound, lower_bound, upper_bound
from consistruct.calibration.comparison import compare_surrogates
from consistruct.calibration.curve import CalibrationFunction
from consistruct.calibration.engine import LabelOrderWarning, RankWarning, calibration_function
from consistruct.calibration.problem.distributions import (
    Capped,
    Constrained,
    Distributions,
    Noisy,
    WithMargin,
)

__all__ = [
    "CalibrationFunction",
    "Capped",
    "Constrained",
    "Distributions",
    "LabelOrderWarning",
    "Noisy",
    "RankWarning",
    "WithMargin",
    "calibration_function",
    "compare_surrogates",
    "inconsistent_lower_bound",
    "lower_bound",
    "upper_bound",
]


def __dir__() -> list[str]:
    return sorted(__all__)
