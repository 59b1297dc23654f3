"""The built site (`make docs`): every public name has its page, nothing is loaded from afar."""

from __future__ import annotations

import re
import zlib
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.test_architecture import ROWS, looked_up

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "build" / "docs"
PAGES = sorted(page for page in SITE.rglob("*.html") if "_static" not in page.parts)

if not PAGES:
    pytest.skip("build/docs is empty: run make docs", allow_module_level=True)


def inventory():
    """Names that the site documents, from its objects.inv."""
    raw = (SITE / "objects.inv").read_bytes()
    head, body = raw.split(b"zlib.\n", 1)
    assert b"consistruct" in head
    lines = zlib.decompress(body).decode().splitlines()
    return {line.split()[0]: line.split()[3] for line in lines if line.split()[1].startswith("py:")}


class Reader(HTMLParser):
    """What a page loads, links to, marks with an id, and states."""

    LOADS = (
        ("script", "src"),
        ("img", "src"),
        ("link", "href"),
        ("iframe", "src"),
        ("source", "src"),
    )

    def __init__(self, text):
        super().__init__()
        self.loads, self.links, self.ids, self.words = [], [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids.add(found.get("id"))
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        for name, attribute in self.LOADS:
            # rel="author", "search" and the like are not loaded
            passive = tag == "link" and found.get("rel") not in ("stylesheet", "icon", "preload")
            if tag == name and found.get(attribute) and not passive:
                self.loads.append(found[attribute])

    def handle_data(self, data):
        self.words.append(data)


@pytest.mark.parametrize("row", ROWS)
def test_every_public_name_has_a_page_with_its_docstring(row):
    names, full = inventory(), f"consistruct.{row}"
    assert full in names, f"{full} is not on the site"
    page = SITE / names[full].split("#")[0]
    text = page.read_text(encoding="utf-8").replace("’", "'")
    words = " ".join(" ".join(Reader(text).words).split())
    found = looked_up(row)
    # not an alias or a constant
    if getattr(found, "__name__", "") == full.rpartition(".")[2] and found.__doc__:
        first = re.split(r"[`*|⟨(]", found.__doc__.strip())[0].split("\n")[0].strip()
        assert " ".join(first.split()[:6]) in words, f"{full}: its page lacks its docstring"


def test_nothing_is_loaded_from_elsewhere():
    for page in PAGES:
        for target in Reader(page.read_text(encoding="utf-8")).loads:
            assert not target.startswith(("http:", "https:", "//")), f"{page.name} loads {target}"
    for sheet in SITE.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        assert not re.search(r"(@import|url\()\s*['\"]?(https?:)?//", text), sheet.name


def test_links_and_anchors_exist():
    readers = {page: Reader(page.read_text(encoding="utf-8")) for page in PAGES}
    for page, reader in readers.items():
        for link in reader.links + reader.loads:
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / path.partition("?")[0]).resolve() if path else page
            assert target.exists(), f"{page.relative_to(SITE)} links to {link}"
            if anchor and target in readers:
                assert anchor in readers[target].ids, f"{page.relative_to(SITE)}: no #{anchor}"


def test_formulas_are_drawings_that_no_script_makes():
    text = (SITE / "concepts.html").read_text(encoding="utf-8")
    assert text.count('<svg class="formula"') >= 4
    assert "$$" not in text
    assert not [load for load in Reader(text).loads if "math" in load.lower()]


def test_every_example_is_in_the_gallery_with_a_picture():
    for example in (ROOT / "examples").glob("plot_*.py"):
        page = SITE / "generated" / "gallery" / f"{example.stem}.html"
        pictures = [
            load for load in Reader(page.read_text(encoding="utf-8")).loads if "sphx_glr" in load
        ]
        assert pictures, f"{example.name} shows no picture"
