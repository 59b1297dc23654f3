"""Calibration functions: how hard a loss is to learn, exactly and with proof.

pair problem as data → symmetry reduction → method → certified curve; bounds; envelope; levels.
"""

from consistruct.calibration.bounds import (
    Bound,
    inconsistent_lower_bound,
    lower_bound,
    upper_bound,
)
from consistruct.calibration.comparison import (
    SurrogateComparison,
    SurrogateCurve,
    compare_surrogates,
)
from consistruct.calibration.curve import CalibrationFunction, CurvePoint
from consistruct.calibration.engine import LabelOrderWarning, RankWarning, calibration_function
from consistruct.calibration.envelope import Envelope
from consistruct.calibration.problem.distributions import (
    Capped,
    Constrained,
    Distributions,
    Noisy,
    WithMargin,
)

__all__ = [
    "Bound",
    "CalibrationFunction",
    "Capped",
    "Constrained",
    "CurvePoint",
    "Distributions",
    "Envelope",
    "LabelOrderWarning",
    "Noisy",
    "RankWarning",
    "SurrogateComparison",
    "SurrogateCurve",
    "WithMargin",
    "calibration_function",
    "compare_surrogates",
    "inconsistent_lower_bound",
    "lower_bound",
    "upper_bound",
]
