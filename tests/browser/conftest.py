"""Headless Chromium against a running explorer; every page is watched for errors and requests."""

from __future__ import annotations

import os
import re
import select
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[2]
ARTEFACTS = ROOT / "test-artifacts"
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # no network: every name but that of this machine is unknown
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
REFUSED = re.compile(r"Failed to load resource: the server responded with a status of 4\d\d")
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


def missing(reason):
    """Skip, unless whoever runs the tests has installed what is missing."""
    if os.environ.get("CONSISTRUCT_BROWSER") == "required":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def chromium():
    """The browser of the system, with a profile of its own that is thrown away."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        missing("no chromium on the path; Debian: apt-get install chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright is not installed; pip install playwright")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def address(chromium):
    """Where the explorer runs."""
    command = [sys.executable, "-c", "from consistruct.cli import main; main()", "explore"]
    process = subprocess.Popen(
        [*command, "--no-browser", "--port", "0"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], 60)
        assert ready, "the explorer did not start"
        found = re.search(r"http://127\.0\.0\.1:\d+/", process.stdout.readline())
        assert found
        yield found.group()
    finally:
        process.terminate()
        process.communicate(timeout=20)


class Watch:
    """What a page must not do: log errors, throw, or talk to another machine."""

    def __init__(self):
        self.problems = []
        self.refusals = 0  # answers 4xx, which Chromium logs by itself

    def follow(self, page):
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.problems.append(f"thrown: {error}"))
        page.on("request", self._request)

    def _console(self, message):
        if REFUSED.match(message.text):
            self.refusals += 1
        elif message.type in ("error", "warning", "trace"):
            self.problems.append(f"console: {message.text}")

    def _request(self, request):
        parts = urlsplit(request.url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.hostname != "127.0.0.1":
            self.problems.append(f"request: {request.url}")


@pytest.fixture
def watch():
    """The watch over all pages of a test; it must have seen nothing."""
    found = Watch()
    yield found
    assert found.problems == []


@pytest.fixture
def open_page(chromium, watch):
    """Open an address in a new window of a given size, mode and device."""
    contexts = []

    def opened(url, *, viewport=DESK, **options):
        context = chromium.new_context(viewport=viewport, accept_downloads=True, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        watch.follow(page)
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture
def explorer(open_page, address):
    """The explorer with a setting in its query string, after the first answer."""

    def opened(query="", **options):
        page = open_page(address + query, **options)
        page.wait_for_selector(".panel[data-shown]")
        return page

    return opened


@pytest.fixture
def keep():
    """Keep a picture of the whole page."""
    ARTEFACTS.mkdir(exist_ok=True)

    def kept(page, name):
        page.screenshot(path=ARTEFACTS / f"{name}.png", full_page=True)

    return kept
