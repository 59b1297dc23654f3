"""One chart model for every picture: described as data, drawn by matplotlib or Plotly.

This room knows nothing of the rest of the package: reports and `H.plot` describe what
they show as a `Chart`, and the drawing is done here.
"""

from consistruct.charts.model import Chart, HeatMap, Mark, Series
from consistruct.charts.pictures import chart_picture, draw_chart, picture_kind
from consistruct.charts.plotly_figures import PLOTLY_CONFIG, THEME_COLOURS, plotly_figure, themed
from consistruct.charts.tables import chart_csv

__all__ = [
    "PLOTLY_CONFIG",
    "THEME_COLOURS",
    "Chart",
    "HeatMap",
    "Mark",
    "Series",
    "chart_csv",
    "chart_picture",
    "draw_chart",
    "picture_kind",
    "plotly_figure",
    "themed",
]
