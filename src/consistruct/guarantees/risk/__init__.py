"""Risk control after training: predictions whose expected task loss is guaranteed.

    estimator ─▶ policy ─▶ ladder of each row ─▶ threshold (calibration rows) ─▶ predictions

A policy says what safer predictions are; a ladder lists them for each row with what they cost; the
calibration rows say how far up every row has to climb.
"""

from consistruct.guarantees.risk.control import RiskControl
from consistruct.guarantees.risk.guarantee import Guarantee, RiskReport
from consistruct.guarantees.risk.ladders import Ladder
from consistruct.guarantees.risk.policies import POLICIES, Policy
from consistruct.guarantees.risk.thresholds import Threshold, calibrate
from consistruct.learning.evaluation.evidence import rows_needed
from consistruct.learning.evaluation.intervals import Interval
from consistruct.learning.files.known_types import add_package
from consistruct.learning.files.model_types import ModelType, estimator_type, value_type

__all__ = [
    "POLICIES",
    "Guarantee",
    "Ladder",
    "Policy",
    "RiskControl",
    "RiskReport",
    "calibrate",
    "rows_needed",
]


def _file_types() -> list[ModelType]:
    """What model files may hold of this package."""
    values = [Guarantee, RiskReport, Threshold, Interval]
    found = [value_type(f"guarantees.{cls.__name__}", cls) for cls in values]
    return [*found, estimator_type("guarantees.RiskControl", RiskControl)]


add_package(_file_types)
