"""No page of the site is wider than the window; the home page as pictures."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "build" / "docs"
ARTEFACTS = ROOT / "test-artifacts"
PAGES = sorted(page for page in SITE.rglob("*.html") if "_static" not in page.parts)
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
# what is wider than its window, apart from what scrolls by itself
WIDE = """() => {
  const limit = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= limit) return [];
  const scrolls = (e) => e && (["auto", "scroll", "hidden"].includes(getComputedStyle(e).overflowX)
    || scrolls(e.parentElement));
  return [...document.querySelectorAll("main *")]
    .filter((e) => e.getBoundingClientRect().right > limit + 1 && !scrolls(e.parentElement))
    .slice(0, 3).map((e) => `${e.tagName}.${e.className} ${e.textContent.trim().slice(0, 60)}`)
    .concat(`${document.documentElement.scrollWidth} of ${limit}`);
}"""

pytestmark = pytest.mark.skipif(not PAGES, reason="run make docs")


@pytest.fixture(scope="module")
def chromium():
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        path = None
    if path is None:
        if os.environ.get("CONSISTRUCT_BROWSER") == "required":
            pytest.fail("chromium and playwright are needed")
        pytest.skip("chromium or playwright is not installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


def test_no_page_is_wider_than_the_window(chromium):
    # scripts change no width here, and without them a page is there at once
    page = chromium.new_page(viewport=DESK, java_script_enabled=False)
    wide = {}
    for path in PAGES:
        page.goto(path.as_uri(), wait_until="domcontentloaded")
        for size in (DESK, PHONE):
            page.set_viewport_size(size)
            found = page.evaluate(WIDE)
            if found:  # style sheets or pictures may still be on their way: the final page counts
                page.wait_for_load_state("load")
                page.wait_for_timeout(300)
                found = page.evaluate(WIDE)
            if found:
                wide[f"{path.relative_to(SITE)} at {size['width']}"] = found
    assert wide == {}


def test_the_check_sees_a_page_that_is_too_wide(chromium, tmp_path):
    (tmp_path / "wide.html").write_text(f"<main><p>{'x' * 1000}</p></main>", encoding="utf-8")
    page = chromium.new_page(viewport=PHONE)
    page.goto((tmp_path / "wide.html").as_uri())
    assert page.evaluate(WIDE)


@pytest.mark.parametrize(
    ("name", "size", "scheme"),
    [("light", DESK, "light"), ("dark", DESK, "dark"), ("phone", PHONE, "light")],
)
def test_the_home_page_is_kept_as_a_picture(chromium, name, size, scheme):
    page = chromium.new_page(viewport=size, color_scheme=scheme)
    page.goto((SITE / "index.html").as_uri())
    shown = page.locator("main").inner_text()
    assert "pip install" in shown
    assert ".fit(" in shown
    assert page.locator("main img").count() >= 1
    ARTEFACTS.mkdir(exist_ok=True)
    page.screenshot(path=ARTEFACTS / f"home-{name}.png", full_page=True)
