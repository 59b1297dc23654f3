"""Results as data: one frozen model per question, rendered as JSON, text, tables, charts or a page.

The functions here are for reports; plans, advice and forecasts have modules of their own
(`report.guarantees`, `report.forecasts`), and so have the parts of a report
(`report.calibration.model`, `report.learning.entries`).
"""

from consistruct.report.calibration.analysis import calibration_report
from consistruct.report.calibration.charts import calibration_charts
from consistruct.report.calibration.model import CalibrationReport
from consistruct.report.calibration.output import (
    calibration_html,
    calibration_tables,
    calibration_text,
)
from consistruct.report.calibration.wording import calibration_sections
from consistruct.report.learning.analysis import learning_report
from consistruct.report.learning.charts import learning_charts
from consistruct.report.learning.model import LearningReport
from consistruct.report.learning.output import learning_html, learning_tables, learning_text
from consistruct.report.learning.wording import learning_sections
from consistruct.report.schema import report_schema
from consistruct.report.sections import Section

__all__ = [
    "CalibrationReport",
    "LearningReport",
    "Section",
    "calibration_charts",
    "calibration_html",
    "calibration_report",
    "calibration_sections",
    "calibration_tables",
    "calibration_text",
    "learning_charts",
    "learning_html",
    "learning_report",
    "learning_sections",
    "learning_tables",
    "learning_text",
    "report_schema",
]
