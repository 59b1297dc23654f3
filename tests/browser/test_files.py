"""Files in and out: good and hostile uploads, downloads."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MARKUP = "<img src=x onerror=window.harmed=1>"
NAMES = re.compile("answering .?(normal|probe|attack).? costs")
GOOD = "pred,normal,probe,attack\nnormal,0,1,4\nprobe,1,0,2\nattack,2,2,0\n"


def matrix_page(explorer, **options):
    page = explorer(**options)
    page.locator("[name=kind]").select_option("matrix")
    return page


def give(page, content, name="costs.csv"):
    content = content.encode() if isinstance(content, str) else content
    page.locator("[name=file]").set_input_files(
        {"name": name, "mimeType": "text/csv", "buffer": content}
    )


def test_a_cost_matrix_is_analyzed_in_its_names(explorer, keep):
    page = matrix_page(explorer)
    give(page, GOOD)
    note = page.locator("[data-part=upload-note]").filter(has_text="3 predictions × 3 true labels")
    note.wait_for()
    assert "normal, probe, attack" in note.inner_text()
    worst = page.locator("[data-key=worst_case]")
    worst.filter(has_text=NAMES).wait_for()
    # the tick labels of the bar chart are the names too
    ticks = worst.locator(".ytick").all_text_contents()
    assert set(ticks) & {"normal", "probe", "attack"}
    keep(page, "explorer-matrix")


def test_rows_are_requested_and_never_guessed(explorer):
    page = matrix_page(explorer)
    give(page, "0,1\n10,0")
    page.locator(".error").filter(has_text="“Its rows are”").wait_for()
    page.locator("[name=rows]").select_option("true")
    page.locator("[data-part=upload-note]").filter(has_text="2 predictions").wait_for()
    page.wait_for_selector("[data-key=worst_case]")
    assert page.locator(".error").is_hidden()


def test_a_metric_is_analyzed_at_a_confusion_that_is_typed(explorer, keep):
    page = explorer()
    page.locator("[name=kind]").select_option("metric")
    page.locator("[name=metric]").select_option("g-mean")
    page.locator("[name=typed]").fill("pred,no,yes\nno,80,6\nyes,4,10\n")
    page.locator("[name=typed]").blur()
    page.locator("[data-key=worst_case]").filter(
        has_text=re.compile("answering .?(no|yes)")
    ).wait_for()
    assert "metric=g-mean" in page.url
    assert (
        "2 predictions × 2 true labels: no, yes"
        in page.locator("[data-part=upload-note]").inner_text()
    )
    keep(page, "explorer-metric")
    again = explorer(page.url.partition("/?")[2].join(["?", ""]))
    again.locator("[data-key=worst_case]").filter(has_text=re.compile("(no|yes)")).wait_for()
    assert again.locator("[name=metric]").input_value() == "g-mean"


def test_a_file_is_dropped(explorer):
    page = matrix_page(explorer)
    transfer = page.evaluate_handle(
        """text => { const transfer = new DataTransfer();
        transfer.items.add(new File([text], 'costs.csv', {type: 'text/csv'})); return transfer }""",
        GOOD,
    )
    page.dispatch_event(".drop", "drop", {"dataTransfer": transfer})
    page.locator("[data-part=upload-note]").filter(has_text="3 predictions").wait_for()


def test_the_matrix_is_shared_by_the_address(explorer, open_page):
    page = matrix_page(explorer)
    give(page, GOOD)
    page.locator("[data-key=worst_case]").filter(has_text=NAMES).wait_for()
    page.wait_for_function("location.hash.startsWith('#csv=')")
    again = open_page(page.url)
    again.locator("[data-key=worst_case]").filter(has_text=NAMES).wait_for()
    one, other = (
        window.locator("[data-key=sample_size] .fold").text_content() for window in (page, again)
    )
    assert one == other


def test_a_large_matrix_is_shared_while_the_server_runs(explorer, open_page):
    page = matrix_page(explorer)
    k = 25
    lines = [",".join("0" if i == j else "1.00000000" for j in range(k)) for i in range(k)]
    give(page, "\n".join(lines))
    page.locator("[data-part=upload-note]").filter(
        has_text="while this server is running"
    ).wait_for()
    page.locator("[data-key=hardness]").filter(has_text="25 classes").wait_for()
    assert "csv=" not in page.url
    again = open_page(page.url)
    again.locator("[data-key=hardness]").filter(has_text="25 classes").wait_for()
    gone = open_page(page.url.replace("matrix=", "matrix=0")[:-1])
    gone.locator(".error").filter(has_text="drop the CSV file again").wait_for()


HOSTILE = {
    "a megabyte": (b"0,1\n" * 262_144, "accepts at most 500000"),
    "one cell of 400 kB": (b'0,"' + b"x" * 400_000 + b'"', "could not be read as a CSV file"),
    "a long word": (b"x" * 400_000, "is not a table: its first line has one cell"),
    "100,000 lines": (
        b"0\n" * 100_000,
        "has 100000 rows, but the explorer accepts at most 200 labels",
    ),
    "10,000 columns": (b"0," * 9_999 + b"0", "has 10000 columns"),
    "NaN": (b"0,nan\n1,0", "got NaN"),
    "negative": (b"0,-1\n1,0", "got a negative cost"),
    "a picture": (b"\x89PNG\r\n\x1a\n\0\0", "is a picture"),
    "a sheet": (b"PK\x03\x04\0\0", "is a spreadsheet"),
    "examples": (b"age,kind\n" + b"3,a\n" * 50, "looks like a table of examples"),
    "no number": (b",a,b\na,0,one\nb,1,0", "'one' is not a number"),
    "formula": (b",a,b\na,0,=1+1\nb,1,0", "'=1+1' is not a number"),
    "markup as a number": (f",a,b\na,0,{MARKUP}\nb,1,0".encode(), f"{MARKUP}' is not"),
    "empty": (b"", "is empty"),
    "binary": (bytes(range(256)) * 100, "not UTF-8 text"),
    "ragged": (b"0,1\n1", "cells, but the first line has 2"),
}


def test_hostile_files_are_reported_and_the_server_goes_on(explorer, keep):
    page = matrix_page(explorer)
    error = page.locator(".error")
    for name, (content, message) in HOSTILE.items():
        # otherwise the message about the file before would be taken for this one's
        assert error.filter(has_text=message).count() == 0, name
        give(page, content, f"{name}.csv")
        error.filter(has_text=message).wait_for()
        assert page.locator(".result").is_hidden(), name
    keep(page, "explorer-hostile")
    give(page, GOOD)
    page.locator("[data-key=worst_case]").filter(has_text=NAMES).wait_for()
    assert page.locator(".error").is_hidden()


def held_uploads(page, number):
    """The requests of uploads, which wait until they are continued."""
    held = []
    page.route("**/api/matrices*", lambda route: held.append(route))

    def wait():
        for _ in range(200):
            if len(held) >= number:
                return sorted(held, key=lambda route: "normal" in route.request.post_data)
            page.wait_for_timeout(50)
        raise AssertionError(f"{len(held)} of {number} uploads were sent")

    return wait


@pytest.mark.parametrize("earlier", ["0,nan\n1,0", "0,3\n3,0"], ids=["refused", "good"])
def test_an_answer_that_comes_late_does_not_replace_a_newer_one(explorer, earlier):
    page = matrix_page(explorer)
    uploads = held_uploads(page, 2)
    give(page, earlier, "first.csv")
    give(page, GOOD, "second.csv")
    first, second = uploads()
    second.continue_()
    worst = page.locator("[data-key=worst_case]").filter(has_text=NAMES)
    worst.wait_for()
    with page.expect_response("**/api/matrices*"):
        first.continue_()
    page.wait_for_timeout(500)
    assert page.locator(".error").is_hidden()
    assert worst.is_visible()
    assert "3 predictions" in page.locator("[data-part=upload-note]").inner_text()


def test_a_comparison_waits_for_the_file_of_the_first_setting(explorer):
    page = matrix_page(explorer)
    uploads = held_uploads(page, 2)
    give(page, GOOD)
    page.locator("#compare").click()
    for upload in uploads():
        upload.continue_()
    page.locator("[data-key=worst_case]").filter(has_text=NAMES).first.wait_for()
    second = page.get_by_role("region", name="Setting B")
    second.locator("[data-part=upload-note]").filter(has_text="3 predictions").wait_for()
    assert second.locator("[name=surrogate]").input_value() == "logistic"  # and differs


def test_names_with_markup_are_shown_as_text(explorer, keep):
    page = matrix_page(explorer)
    name = "<b>R&D</b>"
    give(page, f"pred,{MARKUP},{name}\n{MARKUP},0,1\n{name},1,0\n")
    worst = page.locator("[data-key=worst_case]")
    worst.filter(has_text="<img src=x").wait_for()
    assert name in worst.inner_text()
    assert page.locator("main img").count() == 0
    assert page.evaluate("window.harmed") is None
    ticks = "".join(worst.locator(".ytick").all_text_contents())
    assert "<b>R&D</b>" in ticks
    page.hover("[data-key=curve] .nsewdrag", force=True)
    page.wait_for_timeout(300)
    assert page.locator("main img").count() == 0
    keep(page, "explorer-markup")


def test_a_file_that_misses_its_place_does_not_replace_the_page(explorer):
    page = explorer()
    prevented = page.evaluate(
        """() => { const event = new DragEvent('drop', {bubbles: true, cancelable: true});
        document.body.dispatchEvent(event); return event.defaultPrevented }"""
    )
    assert prevented


def test_downloads(explorer, tmp_path):
    page = explorer("?loss=ordinal:4:1&scores=full")
    found = {}
    for title in ("JSON", "CSV", "PNG", "HTML report"):
        with page.expect_download() as started:
            page.locator(".files a").filter(has_text=title).click()
        started.value.save_as(tmp_path / "download")
        found[started.value.suggested_filename] = (tmp_path / "download").read_bytes()
    report = json.loads(found["ordinal-4-1-full-report.json"])
    assert (report["loss"], report["consistency_level"]) == ("Ordinal(4)", 0)
    header, *rows = found["ordinal-4-1-full-curve.csv"].decode().splitlines()
    assert header.startswith("eps,lower,upper")
    assert len(rows) == len(report["curve"])
    # and the picture that Plotly makes of one figure
    with page.expect_download() as started:
        page.locator("[data-key=curve] [data-title*=PNG]").click()
    started.value.save_as(tmp_path / "download")
    assert (tmp_path / "download").read_bytes().startswith(b"\x89PNG")
    assert found["ordinal-4-1-full-figures.png"].startswith(b"\x89PNG")
    assert found["ordinal-4-1-full-report.html"].startswith(b"<!DOCTYPE html>")
