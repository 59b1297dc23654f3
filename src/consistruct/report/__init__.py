"""Results as data: one frozen model per question, rendered as JSON or text."""

from consistruct.report.calibration.analysis import calibration_report
from consistruct.report.calibration.charts import (
    calibration_charts,
    calibration_figures,
    comparison_charts,
    comparison_figures,
)
from consistruct.report.calibration.model import (
    CalibrationReport,
    LawEntry,
    ReportPoint,
    Restriction,
    SampleSize,
    SampleSizes,
    WorstCase,
)
from consistruct.report.calibration.output import (
    calibration_html,
    calibration_tables,
    calibration_text,
)
from consistruct.report.calibration.wording import calibration_sections
from consistruct.report.figures import figure_charts, figure_csv, figure_picture
from consistruct.report.forecasts import forecast_dict, forecast_text
from consistruct.report.guarantees import (
    advice_dict,
    advice_text,
    plan_dict,
    plan_table_dict,
    plan_table_text,
    plan_text,
)
from consistruct.report.learning.analysis import learning_report
from consistruct.report.learning.charts import learning_charts
from consistruct.report.learning.entries import (
    BandwidthPoint,
    Confusion,
    CurveFit,
    CurveForecast,
    ForecastPoint,
    LossBin,
    ModelScore,
    PartErrors,
    PathPoint,
)
from consistruct.report.learning.model import LearningReport
from consistruct.report.learning.output import learning_html, learning_tables, learning_text
from consistruct.report.learning.wording import learning_sections
from consistruct.report.schema import (
    CALIBRATION_SCHEMA,
    LEARNING_SCHEMA,
    SCHEMA_VERSION,
    report_schema,
)
from consistruct.report.sections import Section
from consistruct.report.simulation import (
    hardness_dict,
    hardness_text,
    simulation_dict,
    simulation_text,
)

__all__ = [
    "CALIBRATION_SCHEMA",
    "LEARNING_SCHEMA",
    "SCHEMA_VERSION",
    "BandwidthPoint",
    "CalibrationReport",
    "Confusion",
    "CurveFit",
    "CurveForecast",
    "ForecastPoint",
    "LawEntry",
    "LearningReport",
    "LossBin",
    "ModelScore",
    "PartErrors",
    "PathPoint",
    "ReportPoint",
    "Restriction",
    "SampleSize",
    "SampleSizes",
    "Section",
    "WorstCase",
    "advice_dict",
    "advice_text",
    "calibration_charts",
    "calibration_figures",
    "calibration_html",
    "calibration_report",
    "calibration_sections",
    "calibration_tables",
    "calibration_text",
    "comparison_charts",
    "comparison_figures",
    "figure_charts",
    "figure_csv",
    "figure_picture",
    "forecast_dict",
    "forecast_text",
    "hardness_dict",
    "hardness_text",
    "learning_charts",
    "learning_html",
    "learning_report",
    "learning_sections",
    "learning_tables",
    "learning_text",
    "plan_dict",
    "plan_table_dict",
    "plan_table_text",
    "plan_text",
    "report_schema",
    "simulation_dict",
    "simulation_text",
]
