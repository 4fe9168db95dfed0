"""Write files so that a crash, a full disk or ``kill -9`` leaves the old file or the new one, never half of one."""

import contextlib
import ctypes
import errno
import glob
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from mtformer.support.errors import MtformerError, UserError

_PROCESS = secrets.token_hex(4)  # in the names of temporary files: each process has its own
_STDIN, _STDOUT = Path("/dev/stdin"), Path("/dev/stdout")  # links to the files that they are redirected to, if any


def require_distinct(output: Path | None, inputs: Iterable[Path | None]) -> None:
    """Refuse an output that is also an input, under any name: writing it would destroy what is to be read.

    Args:
        output: the file to write, ``-`` for standard output; None for none. Devices can be both read and written.
        inputs: the files and folders of files to read, ``-`` for standard input; None where an option is not given.

    Raises:
        UserError: they are the same file, or the output would be in a folder that is read.
    """
    if output is None:
        return
    name, output = ("standard output", _STDOUT) if str(output) == "-" else (str(output), output)
    for path in (_STDIN if str(path) == "-" else path for path in inputs if path is not None):
        if path.is_dir() and output.resolve().is_relative_to(path.resolve()):
            raise UserError(f"{name} is in {path}, which is an input: name a file elsewhere for the output")
        for file in path.iterdir() if path.is_dir() else [path]:
            if file.is_file() and output.is_file() and file.samefile(output):
                raise UserError(f"{name} is both input and output: name another file for the output")


def require_new_folder(path: Path, option: str) -> None:
    """Refuse a folder that exists or cannot be made, before the work whose results are to be written to it.

    Raises:
        UserError: naming the ``option`` that gave it.
    """
    if path.exists():
        raise UserError(f"{path} exists: name a new folder with {option}")
    parent = next(place for place in path.absolute().parents if place.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise UserError(
            f"cannot make {path}: {parent} is not a folder that can be written to; name another with {option}"
        )


@contextlib.contextmanager
def open_atomically(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file beside ``path`` for writing; it takes the place of ``path`` when the block ends.

    If the block raises, Ctrl-C included, the temporary file is removed and ``path`` stays as it was. A file that is
    replaced keeps its permissions, and a symbolic link keeps pointing to the file that it names.

    Raises:
        OSError: the file cannot be opened, written or replaced.
    """
    target = path.resolve()
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    temporary = target.with_name(f".{target.name[:50]}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as file:
            if target.exists():
                shutil.copymode(target, temporary)
            yield file
        sync(temporary)
        temporary.replace(target)
        sync(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` write the file at a temporary path beside ``path``, and rename it to ``path`` once it is on disk.

    If several processes write the same file at once, it is that of one of them, and others may fail.

    Raises:
        UserError: a folder, a device or a pipe is at ``path``.
        MtformerError: it could not be written; what was at ``path`` before is still there.
    """
    if path.exists() and not path.is_file():
        raise UserError(f"cannot write {path}: it is not a regular file")
    temporary = _temporary(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.touch()
        mode = temporary.stat().st_mode  # by the umask: safetensors writes files that only their owner can read
        write(temporary)
        temporary.chmod(mode)
        sync(temporary)
        temporary.replace(path)
        sync(path.parent)
        _remove_unfinished(path)
    except (Exception, KeyboardInterrupt, SystemExit) as error:
        with contextlib.suppress(OSError):  # fails as well if the disk is read-only
            temporary.unlink(missing_ok=True)
        raise _cannot_write(path, error) from error


def write_folder_atomically(path: Path, write: Callable[[Path], object], *, durable: bool = True) -> None:
    """The same for a folder of files, which ``write`` fills; a folder that is at ``path`` is replaced.

    Read it at :func:`intact_folder`: where the file system cannot exchange two names, a crash while the folder is being
    replaced may leave the old one under another name. Unless ``durable``, the files may not be on disk when the folder
    gets its name, so that a power failure may damage it.
    """
    temporary, aside = _temporary(path), _beside(path, "old")
    try:
        _restore(path)
        _remove(temporary)
        temporary.mkdir(parents=True)
        write(temporary)
        if durable:
            for file in temporary.iterdir():
                sync(file)
            sync(temporary)
        if not path.is_dir():
            temporary.replace(path)
        elif not _exchange(temporary, path):
            path.replace(aside)
            temporary.replace(path)
        if durable:
            sync(path.parent)
        _remove_unfinished(path)
        shutil.rmtree(aside, ignore_errors=True)
    except (Exception, KeyboardInterrupt, SystemExit) as error:
        with contextlib.suppress(OSError):
            _restore(path)
            _remove(temporary)
        raise _cannot_write(path, error) from error


def intact_folder(path: Path) -> Path:
    """Return where the folder is that :func:`write_folder_atomically` wrote to ``path``."""
    aside = _beside(path, "old")
    return aside if aside.is_dir() and not path.exists() else path


def _restore(path: Path) -> None:
    """Give the folder that a crash has left under another name its own, and remove the one that it has replaced."""
    if (found := intact_folder(path)) != path:
        found.replace(path)
    shutil.rmtree(_beside(path, "old"), ignore_errors=True)


def _remove_unfinished(path: Path) -> None:
    """Remove what processes that were killed have left beside ``path``, and let others that write it fail."""
    removed = _temporary(path)
    for unfinished in [removed, *path.parent.glob(f".{glob.escape(path.name)}.{'[0-9a-f]' * 8}.tmp")]:
        with contextlib.suppress(OSError):
            unfinished.replace(removed)  # so that it cannot become ``path`` when only some of its files are left
        _remove(removed)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _exchange(path: Path, other: Path) -> bool:
    """Exchange two names atomically; return False where this fails, usually because the file system cannot do it."""
    at_fdcwd, rename_exchange = -100, 2  # fcntl.h, stdio.h
    try:
        renameat2 = ctypes.CDLL(None).renameat2  # Linux; Python has no function for it
    except (OSError, AttributeError):
        return False
    return bool(renameat2(at_fdcwd, os.fsencode(path), at_fdcwd, os.fsencode(other), rename_exchange) == 0)


def _temporary(path: Path) -> Path:
    """Return where this process writes what is to be at ``path``."""
    return _beside(path, f"{_PROCESS}.tmp")


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(f".{path.name}.{suffix}")


def sync(path: Path) -> None:
    """Wait until the file or folder is on disk, so that a rename cannot overtake its contents."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _cannot_write(path: Path, error: BaseException) -> BaseException:
    """Return what to raise: a message about the disk, or an error of the program or an interrupt as it is."""
    # safetensors wraps the operating system's errors.
    is_disk = isinstance(error, OSError) or "SafetensorError" in type(error).__name__
    reason = getattr(error, "strerror", None) or error
    if isinstance(error, FileNotFoundError) and path.exists():
        reason = "another process has written it meanwhile"
    return MtformerError(f"cannot write {path}: {reason}") if is_disk else error
