"""The explorer in a browser: choose, move, compare, share, cancel, keyboard, phone, dark."""

from __future__ import annotations

import json
import re
import time
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.browser.conftest import PHONE

CONSISTENT = "Yes: with enough data, the task risk becomes as small as it can be."


def answer(page, key, panel=0):
    """The short answer of a section."""
    root = page.locator(".panel").nth(panel)
    return root.locator(f"[data-key={key}] .short").inner_text()


def wait_for_answer(page, key, text, panel=0):
    page.locator(".panel").nth(panel).locator(f"[data-key={key}] .short").filter(
        has_text=text
    ).wait_for()


def wait_for_worst_case(page, eps, panel=0):
    """The worst case is behind a fold, so that it need not be seen."""
    page.locator(".panel").nth(panel).locator("[data-key=sample_size]").filter(
        has_text=f"excess risk of {eps}"
    ).wait_for()


def worst_case(page):
    return page.locator("[data-key=sample_size] .fold").first.text_content()


def test_it_opens_offline_with_an_answer(explorer, keep):
    page = explorer()
    assert page.title() == "consistruct explorer"
    assert answer(page, "consistency") == CONSISTENT
    assert "20 classes" in answer(page, "hardness")
    # H with its band, envelope and bound; as pictures with words for those who do not see them
    legend = page.locator("[data-key=curve] .legendtext").all_text_contents()
    assert any("band" in entry for entry in legend)
    assert any("envelope" in entry for entry in legend)
    assert any("Theorem 7" in entry for entry in legend)
    assert "Calibration function" in page.get_attribute("[data-key=curve] .plot", "aria-label")
    keep(page, "explorer-light")


def test_choices_change_the_answer(explorer):
    page = explorer()
    page.locator("[name=kind]").select_option("zero-one")
    wait_for_answer(page, "hardness", "10 classes")
    page.locator(".fields input").fill("25")
    wait_for_answer(page, "hardness", "25 classes")
    assert page.locator("[name=spec]").input_value() == "zero-one:25"
    page.locator("[name=spec]").fill("mixed:3x2:0.2")
    wait_for_answer(page, "consistency", "Yes")
    assert page.locator("[name=kind]").input_value() == "mixed"
    assert page.locator(".fields input").first.input_value() == "3x2"
    page.locator("[name=scores]").select_option("blocks")
    page.locator("[name=blocks]").fill("3x2")
    wait_for_answer(page, "consistency", "Only up to level 0.1")
    page.locator("[name=scores]").select_option("own")
    wait_for_answer(page, "consistency", "Yes")
    page.locator("[name=spec]").fill("zero-one:3")
    page.locator("[name=surrogate]").select_option("hinge")
    wait_for_answer(page, "consistency", "Only up to level 0.5")
    page.locator("[name=surrogate]").select_option("log")
    page.locator("[name=decoding]").select_option("bayes")
    wait_for_answer(page, "consistency", "Yes")


def test_moving_epsilon_moves_the_answer(explorer):
    page = explorer("?loss=hamming:10x2&eps=0.5")
    wait_for_worst_case(page, "0.5")
    before = page.evaluate("performance.now()")
    page.locator("[name=slider]").fill("250")
    wait_for_worst_case(page, "0.25")
    # keystroke delay and drawing included; the machine may be busy with other tests
    assert page.evaluate("performance.now()") - before < 3000
    assert page.locator("[name=eps]").input_value() == "0.25"
    page.locator("[name=eps]").fill("7")
    page.locator(".error").filter(
        has_text="ε must be at most 1, the largest excess risk"
    ).wait_for()
    page.locator("[name=eps]").fill("0.125")
    wait_for_worst_case(page, "0.125")


BAD_SPECS = {
    "nonsense": "there is no loss 'nonsense'",
    "cost:/etc/passwd": "letters, digits and",
    "cost:costs.csv": "names a file, but the explorer does not read files",
    "hamming:99999999": "at most 100000",
    "zero-one:<img src=x onerror=alert(1)>": "letters, digits and",
}


def test_bad_specs_are_reported_and_mended(explorer):
    page = explorer()
    for spec, message in BAD_SPECS.items():
        page.locator("[name=spec]").fill(spec)
        page.locator(".error").filter(has_text=message).wait_for()
        assert page.locator(".result").is_hidden()
    page.locator("[name=spec]").fill("zero-one:3")
    wait_for_answer(page, "hardness", "3 classes")
    assert page.locator(".error").is_hidden()


def test_two_settings_side_by_side(explorer, keep):
    page = explorer("?loss=mixed:3x2:0.2")
    page.get_by_role("button", name="Compare two settings").click()
    second = page.get_by_role("region", name="Setting B")
    # it opens with a setting that differs: scores of groups, for a loss of groups
    wait_for_answer(page, "consistency", "Only up to level 0.1", panel=1)
    assert second.locator("[name=scores]").input_value() == "blocks"
    assert second.locator("[name=blocks]").input_value() == "3x2"
    assert answer(page, "consistency", panel=0) == CONSISTENT
    shown = page.locator("#comparison .legendtext")
    shown.filter(has_text="B: mixed:3x2:0.2, blocks:3x2").first.wait_for()
    assert shown.filter(has_text="A: mixed:3x2:0.2").count() >= 1
    boxes = [panel.bounding_box() for panel in page.locator(".panel").all()]
    assert boxes[0]["y"] == boxes[1]["y"]
    # figures stay inside their columns, those behind folds too once these are open
    page.evaluate("document.querySelectorAll('details.fold').forEach((fold) => (fold.open = true))")
    page.wait_for_timeout(300)
    for panel, box in zip(page.locator(".panel").all(), boxes, strict=True):
        page.wait_for_timeout(200)
        for plot in panel.locator(".plot .main-svg").all():
            inner = plot.bounding_box()
            assert inner["x"] + inner["width"] <= box["x"] + box["width"] + 1
    keep(page, "explorer-compare")
    page.get_by_role("button", name="Back to one setting").click()
    assert page.locator(".panel").count() == 1
    assert page.locator("#comparison").is_hidden()
    assert "loss2" not in page.url


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("loss=hamming:6x2", {"loss2": "hamming:6x2", "scores2": "full"}),
        ("loss=hamming:6x2&scores=full", {"loss2": "hamming:6x2"}),
        ("loss=zero-one:5", {"loss2": "zero-one:5", "surrogate2": "logistic"}),
        ("loss=ordinal:4:1", {"loss2": "zero-one:4"}),
        ("loss=ndcg:4:4", {"loss2": "zero-one:24"}),
    ],
)
def test_the_second_setting_differs(explorer, first, second):
    page = explorer(f"?{first}")
    page.get_by_role("button", name="Compare two settings").click()
    page.locator("#comparison .main-svg").first.wait_for()
    query = parse_qs(urlsplit(page.url).query)
    assert {name: values[0] for name, values in query.items() if name.endswith("2")} == second


def test_an_address_opens_the_same_settings(explorer):
    page = explorer("?loss=zero-one:12&eps=0.5")
    page.get_by_role("button", name="Compare two settings").click()
    second = page.get_by_role("region", name="Setting B")
    second.locator("[name=spec]").fill("hamming:6x2")
    second.locator("[name=surrogate]").select_option("quadratic")
    second.locator("[name=scores]").select_option("full")
    wait_for_answer(page, "hardness", "64 classes", panel=1)
    query = parse_qs(urlsplit(page.url).query)
    assert query["loss"] == ["zero-one:12"]
    assert query["eps"] == ["0.5"]
    assert (query["loss2"], query["scores2"]) == (["hamming:6x2"], ["full"])
    again = explorer(f"?{urlsplit(page.url).query}")
    wait_for_answer(again, "hardness", "12 classes")
    wait_for_answer(again, "hardness", "64 classes", panel=1)
    assert worst_case(again) == worst_case(page)
    again.get_by_role("button", name="Copy the address").click()
    again.locator("#share-note").filter(has_text=re.compile("Cop")).wait_for()


@pytest.mark.parametrize(
    "query",
    [
        "?loss=%3Cscript%3Ealert(1)%3C/script%3E",
        "?scores=x&surrogate=y&eps=z&loss=zero-one:3",
        "#csv=%",
    ],
)
def test_hostile_addresses_do_no_harm(open_page, address, query):
    page = open_page(address + query)
    page.locator(".error:not([hidden]), .panel[data-shown]").first.wait_for()
    assert page.evaluate("document.querySelectorAll('script').length") == 2
    page.locator("[name=kind]").select_option("zero-one")
    wait_for_answer(page, "hardness", "10 classes")


def test_long_work_shows_progress_and_is_cancelled(explorer, keep):
    page = explorer()
    page.locator("[name=spec]").fill("map:5")
    stage = page.locator("[data-part=stage]")
    stage.filter(has_text=re.compile(r"calibration function, [1-9]\d* of \d+")).wait_for()
    assert page.locator("progress").get_attribute("value") is not None
    keep(page, "explorer-progress")
    start = time.monotonic()
    page.get_by_role("button", name="Cancel").click()
    stage.filter(has_text="Cancelled.").wait_for()
    assert time.monotonic() - start < 5
    page.locator("[name=spec]").fill("zero-one:8")
    wait_for_answer(page, "hardness", "8 classes")
    assert page.locator("[data-part=work]").is_hidden()


def test_cancelled_work_can_be_started_again(explorer):
    page = explorer()
    page.locator("[name=spec]").fill("map:5")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Compute again").click()
    page.locator("[data-part=stage]").filter(has_text="Computing").wait_for()
    page.get_by_role("button", name="Cancel").click()
    page.locator("[data-part=stage]").filter(has_text="Cancelled.").wait_for()


def test_it_is_used_with_the_keyboard_alone(explorer):
    page = explorer("?loss=zero-one:10")
    focused = "document.activeElement.name || document.activeElement.id"

    def tab_to(name):
        for _ in range(30):
            page.keyboard.press("Tab")
            if page.evaluate(focused) == name:
                return
        raise AssertionError(f"{name} is not reached by Tab")

    order = ["skip", "compare", "share", "kind", "spec", "scores", "surrogate", "eps", "slider"]
    seen = []
    for _ in range(14):
        page.keyboard.press("Tab")
        seen.append(page.evaluate(focused))
    assert [name for name in seen if name in order] == order
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    page.keyboard.press("Shift+Tab")
    assert page.evaluate(outline) == "solid"
    # every control has a name
    for control in page.locator("main input:visible, main select:visible, button:visible").all():
        named = "e => Boolean(e.labels?.length || e.ariaLabel || e.textContent.trim())"
        assert control.evaluate(named), control.evaluate("e => e.outerHTML")
    page.locator("#compare").focus()
    tab_to("spec")
    page.keyboard.press("Control+A")
    page.keyboard.type("zero-one:7")
    wait_for_answer(page, "hardness", "7 classes")
    tab_to("slider")
    start = int(page.locator("[name=slider]").input_value())
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    # one step of the slider is a thousandth of the range
    wait_for_worst_case(page, f"{(start + 3) / 1000:g}")
    page.locator("#skip").focus()
    tab_to("compare")
    page.keyboard.press("Enter")
    page.get_by_role("region", name="Setting B").wait_for()
    assert page.evaluate(focused) == "scores"


def test_the_skip_link_keeps_the_address(explorer):
    page = explorer("?loss=zero-one:3")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.dataset.part") == "result"
    assert page.url.endswith("?loss=zero-one%3A3")


def test_it_is_read_on_a_phone(explorer, keep):
    page = explorer("?loss=mixed:4x5:0.4", viewport=PHONE, is_mobile=True, has_touch=True)
    for query in (None, "compare"):
        if query:
            page.get_by_role("button", name="Compare two settings").tap()
            page.locator("#comparison .main-svg").first.wait_for()
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= PHONE["width"], f"the page is {width} wide"
        for plot in page.locator(".plot .main-svg").all():
            box = plot.bounding_box()
            assert box["x"] + box["width"] <= PHONE["width"] + 1
        # large enough for a finger and for eyes
        for control in page.locator("button:visible, select:visible").all():
            assert control.bounding_box()["height"] >= 36
        assert (
            page.locator("input[name=spec]").first.evaluate(
                "e => parseFloat(getComputedStyle(e).fontSize)"
            )
            >= 16
        )  # below that phones zoom in
        keep(page, f"explorer-phone{'-compare' if query else ''}")


def test_light_and_dark(explorer, keep):
    page = explorer(color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    ink = "getComputedStyle(document.querySelector('[data-key=curve] .xtitle')).fill"
    assert contrast(page.evaluate(ground), page.evaluate(ink)) > 7
    dark = page.evaluate(ground)
    keep(page, "explorer-dark")
    page.emulate_media(color_scheme="light")
    page.wait_for_function(f"{ground} !== {json.dumps(dark)}")
    page.wait_for_timeout(500)  # the figures are drawn again
    assert contrast(page.evaluate(ground), page.evaluate(ink)) > 7
    keep(page, "explorer-light")


def contrast(one, other):
    """Contrast ratio of two colors, as WCAG 2 defines it."""

    def luminance(color):
        values = [int(value) / 255 for value in re.findall(r"\d+", color)[:3]]
        linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
