"""Results as data: one frozen model per question, rendered as JSON or text."""

from consistruct.report.analysis import calibration_report
from consistruct.report.calibration import (
    CalibrationReport,
    LawEntry,
    ReportPoint,
    SampleSize,
    SampleSizes,
    WorstCase,
)
from consistruct.report.calibration_charts import calibration_charts, comparison_charts
from consistruct.report.calibration_html import calibration_html
from consistruct.report.charts import Chart, HeatMap, Mark, Series
from consistruct.report.figures import figure_csv, figure_picture
from consistruct.report.forecasts import forecast_dict, forecast_text
from consistruct.report.guarantees import (
    advice_dict,
    advice_text,
    plan_dict,
    plan_table_dict,
    plan_table_text,
    plan_text,
)
from consistruct.report.learning import LearningReport
from consistruct.report.learning_analysis import learning_report
from consistruct.report.learning_charts import learning_charts
from consistruct.report.learning_entries import (
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
from consistruct.report.learning_output import learning_html, learning_tables, learning_text
from consistruct.report.learning_wording import learning_sections
from consistruct.report.pictures import chart_picture, picture_kind
from consistruct.report.plotly_figures import (
    PLOTLY_CONFIG,
    THEME_COLOURS,
    calibration_figures,
    comparison_figures,
    plotly_figure,
    themed,
)
from consistruct.report.restriction import Restriction
from consistruct.report.schema import (
    CALIBRATION_SCHEMA,
    LEARNING_SCHEMA,
    SCHEMA_VERSION,
    report_schema,
)
from consistruct.report.simulation import (
    hardness_dict,
    hardness_text,
    simulation_dict,
    simulation_text,
)
from consistruct.report.tables import calibration_tables, chart_csv
from consistruct.report.text import calibration_text
from consistruct.report.wording import Section, calibration_sections

__all__ = [
    "CALIBRATION_SCHEMA",
    "LEARNING_SCHEMA",
    "PLOTLY_CONFIG",
    "SCHEMA_VERSION",
    "THEME_COLOURS",
    "BandwidthPoint",
    "CalibrationReport",
    "Chart",
    "Confusion",
    "CurveFit",
    "CurveForecast",
    "ForecastPoint",
    "HeatMap",
    "LawEntry",
    "LearningReport",
    "LossBin",
    "Mark",
    "ModelScore",
    "PartErrors",
    "PathPoint",
    "ReportPoint",
    "Restriction",
    "SampleSize",
    "SampleSizes",
    "Section",
    "Series",
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
    "chart_csv",
    "chart_picture",
    "comparison_charts",
    "comparison_figures",
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
    "picture_kind",
    "plan_dict",
    "plan_table_dict",
    "plan_table_text",
    "plan_text",
    "plotly_figure",
    "report_schema",
    "simulation_dict",
    "simulation_text",
    "themed",
]
