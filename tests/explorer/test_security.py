"""Who may ask, how much, and what every answer states."""

from __future__ import annotations

import re

import pytest
from starlette.testclient import TestClient

from consistruct.explorer import create_app
from consistruct.explorer.security import HEADERS, POLICY
from tests.explorer.conftest import HOST

PAGES = [
    "/",
    "/plotly.min.js",
    "/static/main.js",
    "/api/options",
    "/no-such-page",
    "/api/jobs/none",
]


@pytest.mark.parametrize("path", PAGES)
def test_every_answer_carries_the_headers(visitor, path):
    headers = visitor.get(path).headers
    for name, value in HEADERS.items():
        if name == "cache-control" and path.endswith(".js"):
            assert headers[name] == "no-cache"  # requested again, not sent again
        else:
            assert headers[name] == value
    assert "access-control-allow-origin" not in headers
    assert "server" not in headers


def test_the_policy_allows_no_inline_code_and_no_other_host():
    rules = dict(rule.split(" ", 1) for rule in POLICY.split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == "'self'"
    assert rules["connect-src"] == "'self'"
    assert "unsafe-inline" not in POLICY
    assert "unsafe-eval" not in POLICY
    assert "http" not in POLICY
    assert "*" not in POLICY


def test_the_page_holds_no_inline_code(visitor):
    page = visitor.get("/").text
    assert not re.search(r"<script(?![^>]*\bsrc=)", page)
    assert not re.search(r"\son\w+=|\sstyle=|<style|javascript:|https?://", page)


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8765", "0.0.0.0:8765", ""],
)
@pytest.mark.parametrize("path", ["/", "/api/options"])
def test_other_host_names_are_refused(visitor, host, path):
    answer = visitor.get(path, headers={"host": host})
    assert answer.status_code == 400
    assert answer.headers["content-security-policy"] == POLICY


@pytest.mark.parametrize("host", ["localhost:8765", "127.0.0.1", "LOCALHOST"])
def test_names_of_this_machine_are_served(visitor, host):
    assert visitor.get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "null"},
        {"origin": "https://evil.example"},
        {"origin": f"https://{HOST}"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": f"http://{HOST}.evil.example"},
        {"origin": f"http://{HOST}", "sec-fetch-site": "cross-site"},
    ],
)
@pytest.mark.parametrize("path", ["/api/jobs", "/api/matrices", "/api/jobs/none/cancel"])
def test_requests_of_other_sites_are_refused(visitor, headers, path):
    answer = visitor.client.post(path, json={"loss": "zero-one:3"}, headers=headers)
    assert answer.status_code == 403
    assert "only pages of this server" in answer.json()["error"]


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(visitor, method):
    answer = visitor.client.request(method, "/api/jobs", headers={"origin": f"http://{HOST}"})
    assert answer.status_code == 405


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_content_types_that_forms_can_send_are_refused(visitor, kind):
    # a form of another site can send these without asking first
    content = b'{"loss": "zero-one:3"}'
    for path in ("/api/jobs", "/api/matrices"):
        answer = visitor.post(path, content=content, headers={"content-type": kind})
        assert answer.status_code == 415


@pytest.mark.parametrize(
    "path",
    ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static//etc/passwd"],
)
def test_files_outside_the_page_are_not_served(visitor, path):
    assert visitor.get(path).status_code == 404


def test_large_requests_are_refused_without_being_kept(visitor):
    answer = visitor.post(
        "/api/jobs", content=b" " * 20_001, headers={"content-type": "application/json"}
    )
    assert answer.status_code == 413
    assert answer.json()["error"] == "a setting has at most 20000 bytes"
    answer = visitor.upload("0," * 250_001)
    assert answer.status_code == 413
    assert "at most 500000 bytes" in answer.json()["error"]


def test_a_body_without_a_length_is_counted(visitor):
    def chunks():
        for _ in range(60):
            yield b"0," * 5_000

    answer = visitor.post("/api/matrices", content=chunks(), headers={"content-type": "text/csv"})
    assert answer.status_code == 413


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 10_000, b"1"])
def test_bodies_that_are_no_setting(visitor, content):
    answer = visitor.post(
        "/api/jobs", content=content, headers={"content-type": "application/json"}
    )
    assert answer.status_code == 400
    assert answer.json()["error"]


def test_unknown_computations(visitor):
    for path in ("/api/jobs/none", "/api/jobs/none/files/report.json", "/api/compare?a=x&b=y"):
        answer = visitor.get(path)
        assert answer.status_code == 404
        assert "start it again" in answer.json()["error"]
    assert visitor.post("/api/jobs/none/cancel").status_code == 404


def test_a_failure_of_the_server_is_reported_with_the_headers(monkeypatch):
    def fail(limits):
        raise RuntimeError("a bug")

    monkeypatch.setattr("consistruct.explorer.app.catalog", fail)
    # no lifespan: no workers are needed
    client = TestClient(create_app(), base_url=f"http://{HOST}", raise_server_exceptions=False)
    answer = client.get("/api/options")
    assert answer.status_code == 500
    assert answer.json() == {"error": "the server failed; see the terminal for the reason"}
    assert answer.headers["content-security-policy"] == POLICY
    assert "a bug" not in answer.text
