"""Reports as files to keep: the renderers are those of the command line."""

from __future__ import annotations

import json
import re

from consistruct.charts import chart_picture
from consistruct.explorer.settings import Setting
from consistruct.report import CalibrationReport

__all__ = ["FILES", "TITLES", "description", "file_name", "render"]

FILES = {
    "report.json": "application/json",
    "curve.csv": "text/csv; charset=utf-8",
    "figures.png": "image/png",
    "report.html": "text/html; charset=utf-8",
}
TITLES = {
    "report.json": "JSON",
    "curve.csv": "CSV",
    "figures.png": "PNG",
    "report.html": "HTML report",
}


def render(report: CalibrationReport, name: str) -> bytes:
    """The content of one of `FILES`."""
    if name == "report.json":
        return (json.dumps(report.as_dict(), indent=1, allow_nan=False) + "\n").encode()
    if name == "curve.csv":
        return report.tables()["curve"].encode()
    if name == "figures.png":
        return chart_picture(report.charts(), "png")
    if name == "report.html":
        return report.to_html().encode()
    raise ValueError(f"the available files are {', '.join(FILES)}, got {name!r}")


def description(setting: Setting) -> str:
    """A setting in a few words: the loss, and what is not as usual.

    >>> description(Setting(loss="hamming:10", scores="full"))
    'hamming:10, full'
    """
    return ", ".join(_words(setting))


def file_name(setting: Setting, name: str) -> str:
    """A file name that states what is inside, of letters that every system takes.

    >>> file_name(Setting(loss="mixed:4x25:0.4", scores="full"), "curve.csv")
    'mixed-4x25-0.4-full-curve.csv'
    """
    words = (re.sub(r"[^A-Za-z0-9.]+", "-", word) for word in _words(setting))
    return "-".join([*words, name])


def _words(setting: Setting) -> list[str]:
    choices = (setting.scores, setting.surrogate, setting.decoding)
    unusual = [choice for choice in choices if choice not in ("own", "quadratic", "argmax")]
    return [setting.loss or setting.metric or "cost matrix", *unusual]
