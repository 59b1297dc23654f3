"""``python -m consistruct`` is the command line."""

import _thread
import os
import signal
import sys
import threading

__all__ = ["main"]

PAUSE = 0.01  # seconds; by then the library that dropped an interrupt has returned


def main() -> None:
    """Entry point; Ctrl-C while the program is still being imported is told like any other."""
    sys.unraisablehook = _interrupt_again
    try:
        try:
            from consistruct.cli import main as program

            program()
        finally:  # all is done and told
            signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:
        sys.stderr.write("consistruct: interrupted\n")
        sys.stderr.flush()
        os._exit(130)  # at once: threads of libraries may not end


def _interrupt_again(dropped: "sys.UnraisableHookArgs") -> None:
    """Ctrl-C inside a callback of compiled code is dropped there with a traceback: repeat it."""
    if not issubclass(dropped.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(dropped)
        return
    again = threading.Timer(PAUSE, _thread.interrupt_main)
    again.daemon = True
    again.start()


if __name__ == "__main__":
    main()
