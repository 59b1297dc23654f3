"""A report as one HTML file: interactive figures, no network, nothing that a name could inject.

Everything is in the file, Plotly.js too. The content security policy allows the two scripts of this
package by their hashes and nothing else; data travel in a JSON block, and names are escaped text.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import resources
from typing import Any

from consistruct import __version__
from consistruct.charts.model import Chart, HeatMap
from consistruct.charts.plotly_figures import PLOTLY_CONFIG, THEME_COLORS, plotly_figure
from consistruct.report.sections import Section

__all__ = ["DataFile", "DataTable", "report_page"]


@dataclass(frozen=True)
class DataTable:
    """A table that a reader may unfold below a section."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class DataFile:
    """A file that the page offers to save."""

    name: str
    type: str
    text: str


def report_page(
    title: str,
    subtitle: Sequence[tuple[str, str]],
    sections: Sequence[Section],
    charts: Sequence[Chart | HeatMap],
    *,
    tables: Mapping[str, Sequence[DataTable]] | None = None,
    files: Sequence[DataFile] = (),
) -> str:
    """The page: a heading, one part per section with its charts, and files to save.

    Parameters
    ----------
    title : str
    subtitle : sequence of (name, value)
        What the report is about.
    sections : sequence of Section
        In order; each names the charts that belong to it.
    charts : sequence of Chart or HeatMap
    tables : dict of str to sequence of DataTable
        By key of the section.
    files : sequence of DataFile
    """
    by_key = {chart.key: chart for chart in charts}
    shown = [key for section in sections for key in section.charts if key in by_key]
    parts = [
        f"<header><h1>{escape(title)}</h1>{_facts(subtitle)}</header><main>",
        *(_section(section, by_key, (tables or {}).get(section.key, ())) for section in sections),
        "</main>",
        _file_buttons(files),
        f"<footer>consistruct {escape(__version__)}. This page needs no network.</footer>",
    ]
    drawing = {
        "figures": {key: plotly_figure(by_key[key]) for key in shown},
        "colors": THEME_COLORS,
        "config": PLOTLY_CONFIG,
    }
    saved = [{"name": f.name, "type": f.type, "text": f.text} for f in files]
    plotly, driver = _plotly_script(), _asset("report.js")
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"script-src {_hash(plotly)} {_hash(driver)}; "
        "style-src 'unsafe-inline'; "  # Plotly styles the elements it makes
        "img-src data: blob:"  # a figure saved as a picture
    )
    return "\n".join(
        [
            '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>{escape(title)}</title><style>{_asset('report.css')}</style></head><body>",
            *parts,
            f'<script type="application/json" id="figures">{_embedded(drawing)}</script>',
            f'<script type="application/json" id="files">{_embedded(saved)}</script>',
            f"<script>{plotly}</script>",
            f"<script>{driver}</script>",
            "</body></html>\n",
        ]
    )


def _section(
    section: Section, charts: Mapping[str, Chart | HeatMap], tables: Sequence[DataTable]
) -> str:
    inner = [
        *(_detail(detail) for detail in section.details),
        _facts(section.facts),
        *(_figure(charts[key]) for key in section.charts if key in charts),
        *(_table(table) for table in tables),
    ]
    if section.fold:
        inner = [f"<details><summary>{escape(section.fold)}</summary>", *inner, "</details>"]
    parts = [
        f'<section id="{escape(section.key)}"><h2>{escape(section.question)}</h2>',
        f'<p class="answer">{_prose(section.answer)}</p>',
        *inner,
        "</section>",
    ]
    return "".join(parts)


def _detail(text: str) -> str:
    """A paragraph; warnings stand out."""
    kind = ' class="warning"' if text.startswith("Warning:") else ""
    return f"<p{kind}>{_prose(text)}</p>"


def _prose(text: str) -> str:
    """Plain text whose `commands` are set as code."""
    parts = escape(text).split("`")
    if len(parts) % 2 == 0:  # a backtick alone, as in a label
        return escape(text)
    return "".join(f"<code>{p}</code>" if n % 2 else p for n, p in enumerate(parts))


def _facts(facts: Sequence[tuple[str, str]]) -> str:
    if not facts:
        return ""
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts)
    return f"<dl>{rows}</dl>"


def _figure(chart: Chart | HeatMap) -> str:
    label = escape(f"{chart.title}. {chart.caption}")
    height = plotly_figure(chart)["layout"]["height"]
    return (
        f"<figure><h3>{escape(chart.title)}</h3>"
        f'<div class="plot" id="figure-{escape(chart.key)}" role="img" aria-label="{label}" '
        f'style="min-height:{int(height)}px">'
        "<noscript>This figure needs JavaScript; its numbers are in the tables.</noscript></div>"
        f"<figcaption>{escape(chart.caption)}</figcaption></figure>"
    )


def _table(table: DataTable) -> str:
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in table.header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows
    )
    return (
        f'<details><summary>{escape(table.title)}</summary><div class="scroll" tabindex="0" '
        f'role="region" aria-label="{escape(table.title)}"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div></details>"
    )


def _file_buttons(files: Sequence[DataFile]) -> str:
    if not files:
        return ""
    buttons = "".join(
        f'<button type="button" data-file="{number}">Save {escape(file.name)}</button>'
        for number, file in enumerate(files)
    )
    return f'<section id="files-to-save"><h2>The data behind this page</h2>{buttons}</section>'


def _embedded(data: Any) -> str:
    """JSON inside a script element: no text in it can end the element or start a comment."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"'sha256-{digest}'"


@cache
def _asset(name: str) -> str:
    return (resources.files("consistruct.report") / "assets" / name).read_text("utf-8")


@cache
def _plotly_script() -> str:
    from plotly.offline import get_plotlyjs

    script: str = get_plotlyjs()
    if "</script" in script.lower():  # it would end the element that holds it
        raise AssertionError("this release of Plotly.js cannot be put into a page")
    return script.replace("\r\n", "\n").replace("\r", "\n")  # as a browser reads, and hashes, it
