"""Folders in the user's cache: written once, by one process at a time, and used by all of them."""

import logging
import os
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TypeVar

from mtformer.support.errors import MtformerError
from mtformer.support.files import remove_folder, write_folder_atomically
from mtformer.support.locks import lock

log = logging.getLogger(__name__)

Found = TypeVar("Found")

_ELSEWHERE = "name another folder with $XDG_CACHE_HOME"
_MOST_SECONDS = 86_400  # a folder that has not been completed after a day has been left behind


def cache_folder(kind: str) -> Path:
    """Return ``$XDG_CACHE_HOME/mtformer/kind``, by default in ``~/.cache``; it may be deleted at any time."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():  # to be ignored, as the XDG base directory specification says
        base = Path("~/.cache").expanduser()
    return base / "mtformer" / kind


def from_cache(
    folder: Path,
    read: Callable[[Path], Found | None],
    write: Callable[[Path], object],
    *,
    max_bytes: int,
    advice: str = "",
) -> Found:
    """Return the contents of ``folder``; write it first if it is missing or damaged.

    Of several processes that need it at once, one writes and the others wait; on file systems that lock only within a
    machine, one for each machine writes, and the folder of the first to finish is used. Afterwards, the folders beside
    it that were not used for longest are removed, until they fit.

    Args:
        folder: a folder in :func:`cache_folder`.
        read: reads it; None if it is missing or damaged.
        write: fills an empty folder.
        max_bytes: the size of all folders of this kind.
        advice: what a user can do besides naming another cache, if it cannot be written.

    Raises:
        MtformerError: the cache cannot be written.
    """
    if (contents := _read(folder, read)) is not None:
        return contents
    with _lock(folder, advice):
        if (contents := _read(folder, read)) is None:  # unless another process has written it meanwhile
            try:
                write_folder_atomically(folder, write, durable=False)
            except MtformerError as error:
                if not isinstance(error.__cause__, OSError):
                    raise
                if (contents := _read(folder, read)) is None:  # unless another machine has written it meanwhile
                    raise MtformerError(f"{error}; {_ELSEWHERE}{advice}") from error
                return contents
            with suppress(OSError):  # the whole cache may be deleted meanwhile
                _remove_oldest(folder, max_bytes)
            contents = _read(folder, read)
    if contents is None:
        raise MtformerError(f"cannot read {folder}, which has just been written; {_ELSEWHERE}{advice}")
    return contents


def checked_once(path: Path, digest: str, is_intact: Callable[[], bool]) -> bool:
    """Tell whether a file is intact, asking ``is_intact`` once, and again when the file has changed.

    The cache records the size and the times of an intact file under its digest, copies of it with a line each, so that
    large files are not read twice at each start.

    Raises:
        OSError: the file cannot be read.
    """
    stat = path.stat()
    stamp = f"{stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}\n"
    record = cache_folder("intact") / digest
    with suppress(OSError):  # there is no record
        if stamp in record.read_text(encoding="utf-8").splitlines(keepends=True):
            return True
    if not is_intact():
        return False
    with suppress(OSError):  # a cache that cannot be written: the next process compares again
        record.parent.mkdir(parents=True, exist_ok=True)
        with record.open("a", encoding="utf-8") as file:
            file.write(stamp)
    return True


def _read(folder: Path, read: Callable[[Path], Found | None]) -> Found | None:
    contents = read(folder)
    if contents is not None:
        with suppress(OSError):
            os.utime(folder)  # it is in use
    return contents


def _remove_oldest(kept: Path, max_bytes: int) -> None:
    """Remove the folders that were not used for longest, until ``kept`` and the others fit into the cache."""
    others = [path for path in kept.parent.iterdir() if path.is_dir() and path != kept and not _in_work(path)]
    n_bytes = 0
    for folder in [kept, *sorted(others, key=_last_use, reverse=True)]:
        with suppress(OSError):  # another process may be removing it
            size = _size(folder)
            if folder == kept or (n_bytes + size <= max_bytes and not folder.name.startswith(".")):
                n_bytes += size
            else:
                log.info("removing a folder from the cache: %s", folder)
                remove_folder(folder)


def _in_work(folder: Path) -> bool:
    """Tell whether another process is writing a folder, which has a temporary name until it is complete."""
    return folder.name.startswith(".") and time.time() - _last_use(folder) < _MOST_SECONDS


def _last_use(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:  # another process has removed it
        return 0.0


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())


def _lock(folder: Path, advice: str) -> ExitStack:
    """Let one process at a time write ``folder``."""
    path = folder.with_name(f".{folder.name}.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return lock(path, waiting=f"waiting for another process, which is writing {folder}")
    except OSError as error:
        message = f"cannot write the cache {path.parent}: {error.strerror}; {_ELSEWHERE}{advice}"
        raise MtformerError(message) from error
