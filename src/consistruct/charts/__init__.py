"""One chart model for every picture: described as data, drawn by matplotlib or Plotly.

This room knows nothing of the rest of the package: reports and `H.plot` describe what
they show as a `Chart`, and the drawing is done here.
"""

from consistruct.charts.pictures import chart_picture, draw_chart
from consistruct.charts.plotly_figures import plotly_figure
from consistruct.charts.tables import chart_csv

__all__ = [
    "chart_csv",
    "chart_picture",
    "draw_chart",
    "plotly_figure",
]


def __dir__() -> list[str]:
    return sorted(__all__)
