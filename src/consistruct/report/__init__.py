"""Results as data: one frozen model per question, rendered as JSON, text, tables, charts or a page.

Both reports have the same methods: `sections`, `charts`, `tables`, `to_html`, `to_text`, `as_dict`.
Plans, advice and forecasts have modules of their own (`report.guarantees`, `report.forecasts`), and
so have the parts of a report (`report.calibration.model`, `report.learning.entries`).
"""

from consistruct.report.calibration.analysis import calibration_report
from consistruct.report.calibration.model import CalibrationReport
from consistruct.report.learning.analysis import learning_report
from consistruct.report.learning.model import LearningReport
from consistruct.report.schema import report_schema

__all__ = [
    "CalibrationReport",
    "LearningReport",
    "calibration_report",
    "learning_report",
    "report_schema",
]


def __dir__() -> list[str]:
    return sorted(__all__)
