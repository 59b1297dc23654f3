"""Check certificate files: python -m consistruct.certificates FILE ...

Exit code 0: all are proved; 1: one is refused; 2: one is no certificate.
"""

from __future__ import annotations

import sys
from pathlib import Path

from consistruct.certificates import MALFORMED, NotACertificate, read, sentence, verify

LARGEST = 256 * 2**20  # bytes of a file: many times the largest certificate that is made


def verdict(path: Path) -> tuple[int, list[str]]:
    """Return the exit code of one file and the lines to print."""
    try:
        if not path.is_file():  # devices and pipes have no end
            raise NotACertificate("not a plain file")
        if path.stat().st_size > LARGEST:
            raise NotACertificate(f"larger than {LARGEST // 2**20} MiB")
        document = read(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as reason:  # among them NotACertificate and wrong encodings
        return 2, [f"{path}: {reason}"]
    try:
        verify(document)
        first, *details = sentence(document)
    except MALFORMED as reason:  # Refused among them
        return 1, [f"{path}: refused: this certificate proves nothing: {reason}"]
    return 0, [f"{path}: proved: {first}", *details]


def main(arguments: list[str]) -> int:
    """Check every file and return the largest exit code."""
    if not arguments or {"-h", "--help"} & set(arguments):
        print(__doc__)
        return 0 if arguments else 2
    codes = []
    for name in arguments:
        code, lines = verdict(Path(name))
        print("\n".join(lines))
        codes.append(code)
    return max(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
