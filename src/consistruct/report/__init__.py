"""Results as data: one frozen model per question, rendered as JSON or text."""

from consistruct.report.calibration import SCHEMA_VERSION, CalibrationReport, calibration_report
from consistruct.report.text import calibration_text

__all__ = ["SCHEMA_VERSION", "CalibrationReport", "calibration_report", "calibration_text"]
