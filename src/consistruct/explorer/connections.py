"""Connections that come to nothing: whoever opens one must say something within a while.

uvicorn waits for ever for the first request of a connection, for the rest of a request, and for a
reader who does not read. Each holds a socket and memory, so each has a deadline here.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["timed_protocol"]


def timed_protocol(seconds: float) -> type[H11Protocol]:
    """uvicorn's protocol with a deadline for requests (head and body) and for stuck readers."""

    class TimedProtocol(H11Protocol):
        _awaiting: asyncio.TimerHandle | None = None
        _reading: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._awaiting = self.loop.call_later(seconds, self._give_up)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            # a byte now and then does not move the deadline: it is for the whole request
            if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
                self._forget("_awaiting")
            elif self._awaiting is None:
                self._awaiting = self.loop.call_later(seconds, self._give_up)

        def pause_writing(self) -> None:
            super().pause_writing()
            self._reading = self.loop.call_later(seconds, self._give_up)

        def resume_writing(self) -> None:
            self._forget("_reading")
            super().resume_writing()

        def connection_lost(self, exc: Exception | None) -> None:
            self._forget("_awaiting", "_reading")
            super().connection_lost(exc)

        def _give_up(self) -> None:
            self._forget("_awaiting", "_reading")
            self.transport.abort()

        def _forget(self, *timers: str) -> None:
            for name in timers:
                timer: asyncio.TimerHandle | None = getattr(self, name)
                if timer is not None:
                    timer.cancel()
                setattr(self, name, None)

    return TimedProtocol
