"""``python -m consistruct`` is the command line."""

import os
import sys

__all__ = ["main"]


def main() -> None:
    """Entry point; Ctrl-C while the program is still being imported is told like any other."""
    try:
        from consistruct.cli import main as program

        program()
    except KeyboardInterrupt:
        sys.stderr.write("consistruct: interrupted\n")
        sys.stderr.flush()
        os._exit(130)  # at once: threads of libraries may not end


if __name__ == "__main__":
    main()
