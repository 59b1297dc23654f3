"""Serve the explorer on this machine until Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import webbrowser
from collections.abc import Callable
from types import FrameType

import uvicorn

from consistruct._validation import check_count
from consistruct.exceptions import ConsistructError
from consistruct.explorer.app import create_app
from consistruct.explorer.connections import timed_protocol
from consistruct.explorer.limits import Limits

__all__ = ["DEFAULT_PORT", "serve"]

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 8765
LARGEST_PORT = 65_535


def serve(
    *,
    port: int = DEFAULT_PORT,
    browser: bool = True,
    limits: Limits | None = None,
    announce: Callable[[str], None] | None = None,
) -> None:
    """Serve the page on the loopback interface until interrupted.

    Parameters
    ----------
    port : int
        0 takes any free port.
    browser : bool
        Open the page in the user's browser.
    limits : Limits, optional
    announce : callable, optional
        Called with the address once the page can be opened.

    Raises
    ------
    ConsistructError
        If the port is in use.
    """
    port = check_count(port, "port", minimum=0)
    if port > LARGEST_PORT:
        raise ConsistructError(f"port must be at most {LARGEST_PORT}, got {port}")
    listener = _listen(port)
    address = f"http://{LOOPBACK}:{listener.getsockname()[1]}/"
    bounds = limits or Limits()
    app = create_app(bounds)

    def ready() -> None:
        if announce is not None:
            announce(address)
        if browser:  # it may take its time, or not be there: the address has been announced
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    def leaving() -> None:
        jobs = getattr(app.state, "jobs", None)  # none before the start is complete
        if jobs is not None:
            jobs.stop_waiting()

    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=3,
        http=timed_protocol(bounds.request_seconds),
        limit_concurrency=bounds.connections,
    )
    with listener, contextlib.suppress(KeyboardInterrupt):  # uvicorn repeats it when it has ended
        _Server(config, ready, leaving).run(sockets=[listener])


def _listen(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if os.name == "posix":  # a port in its last minute after a server ended may be taken again
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((LOOPBACK, port))
        listener.listen(128)  # here already: only now is a port that another one holds refused
    except OSError as error:
        listener.close()
        raise ConsistructError(
            f"port {port} cannot be used ({error.strerror}); choose another with --port, or "
            "--port 0 for any free one"
        ) from None
    return listener


class _Server(uvicorn.Server):
    """States when it is ready, and lets waiting pages go before it ends."""

    def __init__(
        self, config: uvicorn.Config, ready: Callable[[], None], leaving: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._ready = ready
        self._leaving = leaving

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._leaving()
        super().handle_exit(sig, frame)
