"""Files that are there in full or not at all."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

fcntl: Any
try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None

__all__ = ["atomic_write", "sweep"]

YOUNG, OLD = 60.0, 86_400.0  # seconds; an old file is abandoned even where there are no locks


@contextlib.contextmanager
def atomic_write(path: str | Path) -> Iterator[BinaryIO]:
    """Write a file under another name in the same folder and rename it when all is on disk.

    Whoever reads `path`, even after a crash or a loss of power, sees the old content or the new
    one. If the body raises, the old file is untouched and nothing is left behind; what a process
    that was killed left behind goes with the next write of the same file.

    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "answer"
    >>> with atomic_write(file) as stream:
    ...     _ = stream.write(b"42")
    >>> file.read_bytes()
    b'42'
    """
    # a link is followed: the file that it names is replaced, not the link
    final = Path(os.path.realpath(path))
    sweep(final)
    temporary = final.with_name(f".{final.name}.{secrets.token_hex(8)}.tmp")
    # O_EXCL: never someone else's file; mode 0o666 lets the user's umask decide
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            _lock(stream)
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


def sweep(final: Path) -> None:
    """Delete unfinished copies of a file whose writers have ended without tidying up.

    A writer holds a lock on its copy; young ones are left alone, because the lock comes a moment
    after the file.
    """
    pattern = re.compile(rf"\.{re.escape(final.name)}\.[0-9a-f]{{16}}\.tmp")
    with contextlib.suppress(OSError), os.scandir(final.parent) as entries:
        found = [entry.path for entry in entries if pattern.fullmatch(entry.name)]
        for path in found:
            with contextlib.suppress(OSError):
                _sweep_one(Path(path))


def _sweep_one(path: Path) -> None:
    age = time.time() - path.lstat().st_mtime
    if age < YOUNG or (fcntl is None and age < OLD):
        return
    if fcntl is not None:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while it is written
        finally:
            os.close(descriptor)
    path.unlink()


def _lock(stream: BinaryIO) -> None:
    if fcntl is not None:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable where the system can (POSIX)."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
