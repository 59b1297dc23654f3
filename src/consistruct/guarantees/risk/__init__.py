"""Risk control after training: predictions whose expected task loss is guaranteed.

    estimator ─▶ policy ─▶ ladder of each row ─▶ threshold (calibration rows) ─▶ predictions

A policy states what safer predictions are; a ladder lists them for each row with what they cost;
the calibration rows say how far up every row has to climb.
"""

from consistruct.guarantees.risk.control import RiskControl
from consistruct.guarantees.risk.policies import Policy
from consistruct.learning.evaluation.evidence import rows_needed
from consistruct.learning.files.known_types import add_package as _add_package
from consistruct.learning.files.model_types import ModelType as _ModelType

__all__ = [
    "Policy",
    "RiskControl",
    "rows_needed",
]


def __dir__() -> list[str]:
    return sorted(__all__)


def _file_types() -> list[_ModelType]:
    """What model files may hold of this package."""
    from consistruct.guarantees.risk.guarantee import Guarantee, RiskReport
    from consistruct.guarantees.risk.thresholds import Threshold
    from consistruct.learning.evaluation.intervals import Interval
    from consistruct.learning.files.model_types import estimator_type, value_type

    values = [Guarantee, RiskReport, Threshold, Interval]
    found = [value_type(f"guarantees.{cls.__name__}", cls) for cls in values]
    return [*found, estimator_type("guarantees.RiskControl", RiskControl)]


_add_package(_file_types)
