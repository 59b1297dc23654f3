"""The HTML page: one file, no network, nothing injected."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest

from consistruct.report.calibration.charts import calibration_charts
from consistruct.report.calibration.output import calibration_html
from consistruct.report.calibration.wording import calibration_sections
from consistruct.report.page import DataFile, DataTable, report_page
from consistruct.report.sections import Section
from tests.report.settings import HOSTILE, SETTINGS, report_of

VOID = {"meta", "br", "img", "link", "input", "hr"}


class Page(HTMLParser):
    """Elements with their attributes, the text outside scripts, and each script."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.text, self.scripts, self.open = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append((dict(attributes), ""))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            attributes, before = self.scripts[-1]
            self.scripts[-1] = attributes, before + data
        elif not self.open or self.open[-1] != "style":
            self.text.append(data)


@pytest.mark.parametrize("name", SETTINGS)
def test_pages_are_whole_and_hold_no_reference(name):
    page = Page(calibration_html(report_of(name)))
    assert page.open == []  # every element is closed
    for tag, attributes in page.elements:
        assert tag not in ("link", "iframe", "object", "embed", "base", "form", "img"), tag
        assert not {"src", "href", "action"} & set(attributes), tag
        assert not [key for key in attributes if key.startswith("on")], attributes
    assert "http" not in " ".join(page.text)


def test_the_policy_allows_these_scripts_and_no_other():
    page = Page(calibration_html(report_of("named")))
    policy = next(a["content"] for tag, a in page.elements if a.get("http-equiv"))
    directives = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert directives["default-src"] == "'none'"
    assert "unsafe" not in directives["script-src"]
    assert (directives["base-uri"], directives["form-action"]) == ("'none'", "'none'")
    running = [text for attributes, text in page.scripts if "type" not in attributes]
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()) for text in running]
    expected = " ".join(f"'sha256-{digest.decode()}'" for digest in digests)
    assert directives["script-src"] == expected
    assert len(running) == 2


def test_names_with_markup_are_text():
    page = Page(calibration_html(report_of("hostile names")))
    tags = {tag for tag, _ in page.elements}
    assert not {"img", "b"} & tags
    assert len(page.scripts) == 4  # two of data, two of this package
    text = " ".join(page.text)
    assert HOSTILE[0] in text
    assert "</script><b>R&D</b>" in text
    data = next(text for attributes, text in page.scripts if attributes.get("id") == "files")
    assert "<" not in data
    report = json.loads(json.loads(data)[0]["text"])
    assert HOSTILE[0] in {entry["true_label"] for entry in report["worst_case"]["distribution"]}


def test_the_page_answers_in_order():
    report = report_of("inconsistent")
    page = Page(calibration_html(report, title="Judged by <blocks>"))
    text = " ".join(page.text)
    positions = [text.index(section.question) for section in calibration_sections(report)]
    assert positions == sorted(positions)
    assert "Judged by <blocks>" in text
    figures = next(text for a, text in page.scripts if a.get("id") == "figures")
    drawn = json.loads(figures)["figures"]
    assert set(drawn) == {chart.key for chart in calibration_charts(report)}
    boxes = {a["id"] for tag, a in page.elements if a.get("class") == "plot"}
    assert boxes == {f"figure-{key}" for key in drawn}


def test_every_figure_tells_its_content_without_seeing():
    page = Page(calibration_html(report_of("closed form")))
    plots = [a for tag, a in page.elements if a.get("class") == "plot"]
    assert plots
    assert all(a["role"] == "img" and len(a["aria-label"]) > 40 for a in plots)
    assert ("html", {"lang": "en"}) in page.elements
    assert any(a.get("name") == "viewport" for _, a in page.elements)


def test_an_empty_page_and_hostile_parts():
    section = Section('"><x>', "<q>", "<a>", ("<d>",), (("<n>", "<v>"),), ("missing",))
    table = DataTable("<t>", ("<h>",), (("<c>",),))
    page = Page(
        report_page(
            "<title>",
            [("<k>", "<v>")],
            [section],
            [],
            tables={section.key: [table, table]},
            files=[DataFile("<f>", "text/csv", "</script>")],
        )
    )
    assert {tag for tag, _ in page.elements} <= {
        "html", "head", "meta", "title", "style", "body", "header", "h1", "dl", "dt", "dd", "main",
        "section", "h2", "p", "details", "summary", "div", "table", "thead", "tr", "th", "tbody",
        "td", "button", "footer", "script",
    }  # fmt: skip
    assert not re.search(r"<(q|a|d|n|v|t|h|c|f|k)>", "".join(page.text).replace("<", "&lt;"))


def test_the_worst_case_is_behind_a_fold_that_states_what_it_is():
    report = report_of("named")
    section = next(s for s in calibration_sections(report) if s.key == "sample_size")
    assert section.fold == "Worst-case guarantee, over all distributions"
    assert section.answer.startswith("Ask your data: consistruct plan DATA")
    assert "guarantee" in section.details[0]
    page = calibration_html(report)
    start = page.index('<section id="sample_size">')
    part = page[start : page.index("</section>", start)]
    fold = part.index(f"<details><summary>{section.fold}</summary>")
    assert part.index(section.answer) < fold < part.index("N*, sharp constants")
    assert fold < part.index('id="figure-sample_size"')
    # and nothing of it is stated before
    assert "N*" not in page[page.index("<main>") : start + fold]
