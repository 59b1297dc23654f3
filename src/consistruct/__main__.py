"""``python -m consistruct`` is the command line."""

import os
import signal
import sys
from typing import Any

__all__ = ["main"]

PAUSE = 0.05  # seconds; by then the library that dropped an interrupt has returned
REPEATS = hasattr(signal, "setitimer")  # not on Windows


def main() -> None:
    """Entry point; Ctrl-C while the program is still being imported is reported like any other."""
    if REPEATS:
        sys.unraisablehook = _interrupt_again
        signal.signal(signal.SIGALRM, _interrupted)
    try:
        try:
            from consistruct.cli import main as program

            program()
        finally:  # all is done and reported
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            if REPEATS:
                signal.signal(signal.SIGALRM, signal.SIG_IGN)
    except KeyboardInterrupt:
        sys.stderr.write("consistruct: interrupted\n")
        sys.stderr.flush()
        os._exit(130)  # at once: threads of libraries may not end


def _interrupt_again(dropped: "sys.UnraisableHookArgs") -> None:
    """Ctrl-C inside a callback of compiled code is dropped there with a traceback: repeat it."""
    if issubclass(dropped.exc_type, KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, PAUSE, PAUSE)
    else:
        sys.__unraisablehook__(dropped)


def _interrupted(_: int, frame: Any) -> None:
    if frame is None or frame.f_code is not _interrupt_again.__code__:  # it would be dropped there
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        raise KeyboardInterrupt


if __name__ == "__main__":
    main()
