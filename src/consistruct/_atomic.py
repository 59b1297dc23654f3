"""Files that are there in full or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

__all__ = ["atomic_write"]


@contextlib.contextmanager
def atomic_write(path: str | Path) -> Iterator[BinaryIO]:
    """Write a file under another name in the same folder and rename it when all is on disk.

    Whoever reads `path`, even after a crash or a loss of power, sees the old content or the new
    one. If the body raises, the old file is untouched and nothing is left behind.

    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "answer"
    >>> with atomic_write(file) as stream:
    ...     _ = stream.write(b"42")
    >>> file.read_bytes()
    b'42'
    """
    # a link is followed: the file that it names is replaced, not the link
    final = Path(os.path.realpath(path))
    temporary = final.with_name(f".{final.name}.{secrets.token_hex(8)}.tmp")
    # O_EXCL: never someone else's file; mode 0o666 lets the user's umask decide
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            if final.exists():
                temporary.chmod(final.stat().st_mode & 0o7777)
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(final)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(final.parent)


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable where the system can (POSIX)."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
