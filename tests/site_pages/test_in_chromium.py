"""The site in a browser: no console error, no request that leaves the machine, readable widths."""

from __future__ import annotations

import functools
import http.server
import re
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

SITE = Path(__file__).resolve().parents[2] / "build" / "docs"
BROWSER = shutil.which("chromium")
PAGES = [
    "index.html",
    "tutorial.html",
    "concepts.html",
    "cheatsheet.html",
    "api.html",
    "generated/gallery/index.html",
    "generated/gallery/plot_cost_matrix.html",
    "generated/api/consistruct.learning.TaskLossClassifier.html",
    "generated/benchmarks/README.html",
    "search.html?q=hamming",
]

pytestmark = [
    pytest.mark.skipif(BROWSER is None, reason="chromium is not installed"),
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="run make docs"),
]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def address():
    handler = functools.partial(Quiet, directory=str(SITE))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def visit(url, folder, *options):
    """Console lines, addresses that were requested, and the page as the browser has it."""
    log = folder / "net.json"
    done = subprocess.run(
        [
            str(BROWSER),
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-default-apps",
            f"--user-data-dir={folder / 'profile'}",
            f"--log-net-log={log}",
            "--enable-logging=stderr",
            "--virtual-time-budget=4000",
            *options,
            url,
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    console = [line for line in done.stderr.splitlines() if ":CONSOLE:" in line]
    # one event per line; what the browser requests on its own account has no page as initiator
    requested = set()
    for line in log.read_text(encoding="utf-8").splitlines():
        url = re.search(r'"url":"((?:https?|wss?)://[^"]+)"', line)
        if url and '"initiator":"' in line and '"initiator":"not an origin"' not in line:
            requested.add(url[1])
    return console, requested, done.stdout


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("width", [1280, 390])
def test_page_opens_offline_without_errors(page, width, address, tmp_path):
    console, requested, shown = visit(
        f"{address}/{page}", tmp_path, f"--window-size={width},900", "--dump-dom"
    )
    errors = [line for line in console if "INFO:CONSOLE" not in line or "rror" in line]
    assert not errors
    assert requested, "the browser's log names no request"
    assert not {url for url in requested if not url.startswith(address)}
    assert "<h1" in shown


def test_the_check_sees_a_console_error_and_a_foreign_request(tmp_path):
    page = tmp_path / "bad.html"
    page.write_text(
        "<h1>x</h1><script>console.error('broken')</script>"
        "<img src='http://127.0.0.2:9/picture.png'>",
        encoding="utf-8",
    )
    console, requested, _ = visit(page.as_uri(), tmp_path, "--dump-dom")
    assert any("broken" in line for line in console)
    assert any("127.0.0.2" in url for url in requested)


def test_search_finds_a_loss(address, tmp_path):
    _, _, shown = visit(f"{address}/search.html?q=hamming", tmp_path, "--dump-dom")
    assert "Hamming" in shown.split('id="search-results"')[1]
