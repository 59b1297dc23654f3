"""``consistruct explore`` as a user runs it: one line when it cannot, a clean end when it ends."""

from __future__ import annotations

import re
import select
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from consistruct import cli
from consistruct.cli.commands import explore as command
from consistruct.exceptions import ConsistructError
from consistruct.explorer import serve
from consistruct.explorer.server import DEFAULT_PORT

linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")
COMMAND = [sys.executable, "-c", "from consistruct.cli import main; main()", "explore"]


@pytest.fixture
def server():
    """A running server: the process and its address."""
    process = subprocess.Popen(
        [*COMMAND, "--no-browser", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], 60)
        assert ready, "the server did not start"
        found = re.search(r"http://127\.0\.0\.1:\d+/", process.stdout.readline())
        assert found
        yield process, found.group()
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def children(pid):
    """Processes that this one started."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@linux
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_and_ends_cleanly(server, how):
    process, address = server
    with urllib.request.urlopen(address) as answer:
        assert b"consistruct explorer" in answer.read()
    end = time.monotonic() + 30
    while not (workers := children(process.pid)) and time.monotonic() < end:
        time.sleep(0.05)
    assert workers
    process.send_signal(how)
    out, err = process.communicate(timeout=20)
    assert err == ""
    if how == signal.SIGINT:
        assert process.returncode == 0
        assert out == "explorer ended\n"
    end = time.monotonic() + 10
    while any(alive(worker) for worker in workers) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(alive(worker) for worker in workers)


@linux
def test_workers_do_not_outlive_a_server_that_is_killed(server):
    process, _ = server
    end = time.monotonic() + 30
    while not (workers := children(process.pid)) and time.monotonic() < end:
        time.sleep(0.05)
    process.kill()
    process.wait(10)
    end = time.monotonic() + 30
    while any(alive(worker) for worker in workers) and time.monotonic() < end:
        time.sleep(0.1)
    assert workers
    assert not any(alive(worker) for worker in workers)


def alive(pid):
    """Whether the process runs; one that ended and waits for its parent does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rsplit(")", 1)[1].split()[0] != "Z"


@linux
def test_only_this_machine_is_served(server):
    _, address = server
    port = int(address.rsplit(":", 1)[1].strip("/"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.2", 0))  # loopback, but not ours
        probe.settimeout(2)
        with pytest.raises(OSError, match="refused"):
            probe.connect(("127.0.0.2", port))


def run(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["consistruct", "explore", *arguments])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    captured = capsys.readouterr()
    return stopped.value.code, captured.out, captured.err


def test_a_port_in_use_is_one_line(monkeypatch, capsys):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        code, out, err = run(monkeypatch, capsys, "--no-browser", "--port", str(port))
    assert (code, out) == (2, "")
    assert err.startswith(f"consistruct: port {port} cannot be used")
    assert "--port 0 for any free one" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("port", ["-1", "65536", "http"])
def test_ports_that_are_none(monkeypatch, capsys, port):
    code, _, err = run(monkeypatch, capsys, "--no-browser", f"--port={port}")
    assert code == 2
    assert err.count("\n") == 1


def test_bad_ports_in_python():
    with pytest.raises(ConsistructError, match="at most 65535, got 70000"):
        serve(port=70_000, browser=False)
    with pytest.raises(TypeError, match="port must be an integer"):
        serve(port="80", browser=False)


def test_without_the_extra_the_command_states_what_to_install(monkeypatch, capsys):
    for name in [name for name in sys.modules if name.startswith("consistruct.explorer")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    code, _, err = run(monkeypatch, capsys, "--no-browser")
    assert code == 2
    assert "pip install 'consistruct[explorer]'" in err
    assert "uvicorn" in err
    assert err.count("\n") == 1


def test_the_command_knows_the_default_port():
    assert command.PORT == DEFAULT_PORT
