"""Results as data: one frozen model per question, rendered as JSON or text."""

from consistruct.report.calibration import SCHEMA_VERSION, CalibrationReport, calibration_report
from consistruct.report.figures import figure_csv, figure_picture
from consistruct.report.guarantees import (
    advice_dict,
    advice_text,
    plan_dict,
    plan_table_dict,
    plan_table_text,
    plan_text,
)
from consistruct.report.simulation import (
    hardness_dict,
    hardness_text,
    learning_dict,
    learning_text,
)
from consistruct.report.text import calibration_text

__all__ = [
    "SCHEMA_VERSION",
    "CalibrationReport",
    "advice_dict",
    "advice_text",
    "calibration_report",
    "calibration_text",
    "figure_csv",
    "figure_picture",
    "hardness_dict",
    "hardness_text",
    "learning_dict",
    "learning_text",
    "plan_dict",
    "plan_table_dict",
    "plan_table_text",
    "plan_text",
]
