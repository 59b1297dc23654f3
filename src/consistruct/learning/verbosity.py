"""Messages of a fit, shown while it runs."""

from __future__ import annotations

import logging

__all__ = ["verbosity"]


class verbosity:  # noqa: N801 - used like a function
    """Show the package's messages while fitting: 1 for progress, 2 for details."""

    def __init__(self, verbose: int) -> None:
        self._level = (
            logging.NOTSET if not verbose else logging.INFO if verbose == 1 else logging.DEBUG
        )

    def __enter__(self) -> None:
        self._logger = logging.getLogger("consistruct")
        self._before = self._logger.level
        self._handler: logging.Handler | None = None
        if self._level != logging.NOTSET:
            self._logger.setLevel(self._level)
            if not self._logger.hasHandlers():
                self._handler = logging.StreamHandler()
                self._logger.addHandler(self._handler)

    def __exit__(self, *error: object) -> None:
        self._logger.setLevel(self._before)
        if self._handler is not None:
            self._logger.removeHandler(self._handler)
