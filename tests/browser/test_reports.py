"""Reports written by the command line, opened from disk without network."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from consistruct import cli
from tests.browser.conftest import PHONE
from tests.report.samples import write_learning_reports

MARKUP = "<img src=x onerror=window.harmed=1>"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """An HTML report of a cost matrix with a hostile label name."""
    folder = tmp_path_factory.mktemp("report")
    costs = folder / "costs.csv"
    costs.write_text(f"pred,{MARKUP},b,c\n{MARKUP},0,1,4\nb,1,0,2\nc,2,2,0\n", encoding="utf-8")
    report = folder / "report.html"
    result = CliRunner().invoke(cli.app, ["analyze", f"cost:{costs}", "--html", str(report)])
    assert result.exit_code == 0, result.output
    return report


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """Learning reports: classes with long names from a raw table, tags, a ranking."""
    folder = tmp_path_factory.mktemp("learning")
    return {path.stem: path for path in write_learning_reports(folder)}


LEARNED = ["table", "tags", "ranking"]


@pytest.mark.parametrize("name", LEARNED)
@pytest.mark.parametrize("look", ["light", "dark", "phone"])
def test_learning_reports_open_in_light_dark_and_on_a_phone(learned, open_page, keep, name, look):
    if look == "phone":
        page = open_page(learned[name].as_uri(), viewport=PHONE, is_mobile=True)
    else:
        page = open_page(learned[name].as_uri(), color_scheme=look)
    page.locator(".main-svg").first.wait_for()
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= page.viewport_size["width"]
    for plot in page.locator(".plot .main-svg").all():
        box = plot.bounding_box()
        assert box["x"] + box["width"] <= page.viewport_size["width"] + 1
    page.wait_for_timeout(300)
    keep(page, f"learning-{name}-{look}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_report_opens_without_network(written, open_page, keep, scheme):
    page = open_page(written.as_uri(), color_scheme=scheme)
    page.locator(".main-svg").first.wait_for()
    page.wait_for_timeout(500)  # whatever it might still request
    assert page.locator("main section").count() >= 6
    assert "<img src=x" in page.locator("main").inner_text()
    assert page.locator("main img").count() == 0
    assert page.evaluate("window.harmed") is None
    keep(page, f"report-{scheme}")


def test_a_report_is_read_on_a_phone(written, open_page, keep):
    page = open_page(written.as_uri(), viewport=PHONE, is_mobile=True)
    page.locator(".main-svg").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    keep(page, "report-phone")


def test_the_worst_case_is_drawn_when_its_fold_is_opened(written, open_page, keep):
    page = open_page(written.as_uri())
    page.locator(".main-svg").first.wait_for()
    plot = page.locator("#figure-sample_size")
    assert not plot.is_visible()
    page.get_by_text("Worst-case guarantee, over all distributions").click()
    plot.locator(".main-svg").first.wait_for()
    page.wait_for_function(
        "() => { const plot = document.getElementById('figure-sample_size');"
        " return Math.abs(plot.querySelector('.main-svg').clientWidth - plot.clientWidth) < 3; }"
    )
    keep(page, "report-worst-case")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_cards_are_readable_in_both_themes(open_page, keep, tmp_path, scheme):
    import consistruct as cs

    names = (MARKUP, "b")
    parts = [
        cs.losses.CostMatrix([[0, 5], [1, 0]], names, names, rows="pred")._repr_html_(),
        cs.calibration_function(cs.losses.Hamming(4))._repr_html_(),
    ]
    colors = {"light": "#fff;color:#111", "dark": "#111;color:#eee"}[scheme]
    file = tmp_path / "cards.html"
    text = f'<meta charset="utf-8"><body style="background:{colors}">{"".join(parts)}</body>'
    file.write_text(text, encoding="utf-8")
    page = open_page(file.as_uri())
    assert page.locator("img").count() == 0
    body = page.evaluate("getComputedStyle(document.body).color")
    for cell in page.locator("td, th, svg text").all():
        color = "e => getComputedStyle(e)[e.tagName === 'text' ? 'fill' : 'color']"
        assert cell.evaluate(color) == body
    assert page.locator("svg polyline").count() == 1
    keep(page, f"cards-{scheme}")
