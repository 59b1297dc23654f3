"""Files that are there in full or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

fcntl: Any
try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None

__all__ = ["atomic_write", "is_stream", "sweep", "try_write"]

YOUNG, OLD = 60.0, 86_400.0  # seconds; an old file is abandoned even where there are no locks
BLOCK = 4096  # bytes, what the smallest file takes on a disk: a trial never refuses what would fit
LINKS = 40  # symbolic links in a row, as many as Linux follows


@contextlib.contextmanager
def atomic_write(path: str | Path) -> Iterator[BinaryIO]:
    """Write a file under another name in the same folder and rename it when all is on disk.

    Whoever reads `path`, even after a crash or a loss of power, sees the old content or the new
    one. If the body raises, the old file is untouched and nothing is left behind; what a process
    that was killed left behind goes with the next write of the same file. Devices and pipes are
    written through: a rename would put a plain file in their place.

    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "answer"
    >>> with atomic_write(file) as stream:
    ...     _ = stream.write(b"42")
    >>> file.read_bytes()
    b'42'
    """
    if is_stream(path):
        number = _descriptor(path)
        with open(path if number is None else os.dup(number), "wb") as stream:  # noqa: PTH123
            yield stream
        return
    # a link is followed: the file that it names is replaced, not the link
    final = Path(os.path.realpath(path))
    sweep(final)
    temporary, descriptor = _new_file(final)
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


def _new_file(final: Path) -> tuple[Path, int]:
    """Open a file of another name in the folder of `final`."""
    temporary = final.with_name(f".{final.name}.{secrets.token_hex(8)}.tmp")
    # O_EXCL: never someone else's file; mode 0o666 lets the user's umask decide
    return temporary, os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)


def is_stream(path: str | Path) -> bool:
    """Whether a path is written through: a device, a pipe, or a file that is open already.

    A plain file behind /dev/stdout must not be renamed away from the shell that opened it.

    >>> is_stream("/dev/null"), is_stream("no such file"), is_stream(".")
    (True, False, False)
    """
    if _descriptor(path) is not None:
        return True
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _descriptor(path: str | Path) -> int | None:
    """The number of an open file by its name: 1 for /dev/stdout, 5 for /dev/fd/5, else None."""
    name = os.fspath(path)
    for _ in range(LINKS):
        folder, last = os.path.split(name)
        if last.isdecimal() and os.path.realpath(folder) in (f"/proc/{os.getpid()}/fd", "/dev/fd"):
            return int(last)
        if not os.path.islink(name):  # noqa: PTH114
            return None
        name = os.path.join(folder, os.readlink(name))  # noqa: PTH115, PTH118
    return None


def try_write(path: str | Path) -> None:
    """Raise OSError where `atomic_write` would: a folder without permission, a full disk.

    Writes one block beside the file, under no name (so nothing can be left behind). A large file
    may still not fit.
    """
    if _descriptor(path) is not None:
        return
    # a rename would replace even a file that its owner made read-only
    if Path(path).exists() and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))
    if is_stream(path):  # opening a pipe would wait for its reader
        return
    temporary, descriptor = _new_file(Path(os.path.realpath(path)))
    try:
        if os.name == "posix":
            temporary.unlink()
        os.write(descriptor, bytes(BLOCK))
    finally:
        os.close(descriptor)  # network file systems report a full disk here
        temporary.unlink(missing_ok=True)


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
