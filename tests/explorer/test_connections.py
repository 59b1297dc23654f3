"""Half-open connections are closed, and honest ones are not."""

from __future__ import annotations

import re
import select
import socket
import subprocess
import sys
import time

import pytest

pytest.importorskip("uvicorn", reason="the explorer needs the extra 'explorer'")

SECONDS = 1.0
SERVER = f"""
from consistruct.explorer import Limits, serve
limits = Limits(request_seconds={SECONDS}, connections=6, workers=1)
serve(port=0, browser=False, limits=limits, announce=lambda address: print(address, flush=True))
"""
HEAD = b"GET /api/options HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.fixture(scope="module")
def port():
    process = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], 60)
        assert ready, "the server did not start"
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", process.stdout.readline())
        assert found
        yield int(found[1])
    finally:
        process.kill()
        process.communicate()


def connection(port):
    client = socket.create_connection(("127.0.0.1", port), timeout=20)
    client.settimeout(20)
    return client


def seconds_until_closed(client, drip=b""):
    """How long the server waits for a client that sends a byte now and then, or nothing."""
    start = time.monotonic()
    while time.monotonic() - start < 15:
        try:
            if drip:
                client.sendall(drip)
            if select.select([client], [], [], 0.2)[0] and client.recv(4096) == b"":
                break
        except (ConnectionResetError, BrokenPipeError):
            break
    return time.monotonic() - start


def answer(client):
    client.sendall(HEAD + b"\r\n")
    text = b""
    while b"\r\n\r\n" not in text:
        text += client.recv(65536)
    return text.split(b" ", 2)[1]


@pytest.mark.parametrize(
    ("first", "drip"),
    [
        (b"", b""),  # carries no information
        (HEAD, b""),  # a request that does not end
        (HEAD, b"a"),  # one byte at a time
        (
            b"POST /api/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://127.0.0.1\r\n"
            b"Content-Type: application/json\r\nContent-Length: 10000\r\n\r\n{",
            b"",
        ),
    ],
    ids=["silent", "head", "drip", "body"],
)
def test_half_a_request_is_not_waited_for(port, first, drip):
    with connection(port) as client:
        client.sendall(first)
        assert seconds_until_closed(client, drip) < SECONDS + 8


def test_a_second_request_has_a_deadline_too(port):
    with connection(port) as client:
        assert answer(client) == b"200"
        client.recv(65536)
        client.sendall(b"GET / HT")
        assert seconds_until_closed(client) < SECONDS + 8


def test_honest_requests_are_answered_whatever_others_do(port):
    waiting = [connection(port) for _ in range(4)]
    with connection(port) as client:
        assert answer(client) == b"200"
    for other in waiting:
        assert seconds_until_closed(other) < SECONDS + 8
        other.close()


def test_connections_are_counted(port):
    waiting = [connection(port) for _ in range(6)]
    time.sleep(0.3)
    with connection(port) as client:
        assert answer(client) == b"503"
    for other in waiting:
        other.close()
    time.sleep(0.3)
    with connection(port) as client:
        assert answer(client) == b"200"
