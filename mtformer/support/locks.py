"""Locks between processes. The system releases one when its process ends, be it by ``kill -9``."""

import errno
import logging
import os
from contextlib import ExitStack, suppress
from pathlib import Path

log = logging.getLogger(__name__)

_CANNOT_LOCK = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL)  # of some network file systems


def lock(path: Path, *, seconds: float = 0.0, waiting: str = "", holder: str = "") -> ExitStack:
    """Take the lock at ``path``; leaving or closing the returned stack releases it and removes the file.

    Where the file system has no locks, there is a warning instead.

    Args:
        path: a file for the lock alone, beside what it guards, since Windows lets nobody else read a locked file. It is
            created in a folder that exists.
        seconds: how long to wait for another process that holds the lock.
        waiting: logged if there is one; then wait for as long as it takes.
        holder: for :func:`holder_of`.

    Raises:
        TimeoutError: another process holds the lock.
        OSError: the file cannot be written or locked.
    """
    from filelock import FileLock, Timeout

    def note_holder(descriptor: int) -> None:
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f" {holder}\n".encode())  # after the one byte that Windows locks

    path.touch()  # an error where that is not possible: filelock would make the folder, or wait for who holds the lock
    note = note_holder if holder else None
    file = FileLock(path, thread_local=False, fallback_to_soft=False, on_acquired=note)
    try:
        file.acquire(timeout=0.0 if waiting else seconds)
    except Timeout:
        if not waiting:
            raise
        log.info(waiting)
        file.acquire()
    except OSError as error:
        if error.errno not in _CANNOT_LOCK:
            raise
        log.warning("this file system cannot lock %s: let no other process write there", path)
    held = ExitStack()
    held.callback(file.release)
    held.callback(_remove, path)
    return held


def _remove(path: Path) -> None:
    with suppress(OSError):  # Windows removes no open file; there, filelock does it
        path.unlink()


def is_locked(path: Path) -> bool:
    """Tell whether a process holds the lock at ``path``; False where the file system cannot tell."""
    from filelock import lock_descriptor

    try:
        with path.open("r+b" if os.access(path, os.W_OK) else "rb") as file:
            return not lock_descriptor(file.fileno(), blocking=False)
    except OSError:
        return False


def holder_of(path: Path) -> str:
    """Return the note of the process that holds, or last held, the lock at ``path``; empty if unknown."""
    try:
        with path.open("rb", buffering=0) as file:
            file.seek(1)
            return file.read().decode(errors="replace").strip()
    except OSError:
        return ""
