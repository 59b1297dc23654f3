"""Forecasts: what a pilot data set states about the loss at more rows.

The refits are in `consistruct.learning.refits`; the power law of the curve and what is stated with
it here.
"""

from consistruct.guarantees.forecasts.forecast import (
    FACTORS,
    Forecast,
    RowsNeeded,
    curve_of_draws,
    forecast,
)
from consistruct.guarantees.forecasts.learning_curve import CurveData, PowerLaw

__all__ = [
    "FACTORS",
    "CurveData",
    "Forecast",
    "PowerLaw",
    "RowsNeeded",
    "curve_of_draws",
    "forecast",
]
