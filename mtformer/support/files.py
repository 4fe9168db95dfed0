"""Files: written so that a crash, a full disk or ``kill -9`` leaves the old one or the new one; digests of them.

Every system replaces a file in one step, and gives a new folder its name in one. What has been written survives a power
failure, but Windows alone decides when a new name reaches the disk. It replaces no file, and no folder with a file,
that a program has open: then writing fails after a moment.
"""

import contextlib
import errno
import glob
import hashlib
import json
import logging
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from pydantic import JsonValue

from mtformer.support.errors import MtformerError, UserError

log = logging.getLogger(__name__)

_PROCESS = secrets.token_hex(4)  # in the names of temporary files: each process has its own
_STDIN, _STDOUT = Path("/dev/stdin"), Path("/dev/stdout")  # links to the files that they are redirected to, if any


def shown_path(path: Path) -> str:
    """Return a path as messages show it: from the current folder, if it is below that."""
    is_below = path.is_absolute() and path.is_relative_to(Path.cwd())
    return str(path.relative_to(Path.cwd()) if is_below else path)


def short_names(paths: Sequence[Path]) -> list[str]:
    """Return the shortest ends of paths that tell them apart; the whole paths if they are of the same file."""
    places = [Path(os.path.abspath(path)).parts for path in paths]  # noqa: PTH100 (resolve() follows links)
    for n in range(1, max(map(len, places))):
        names = ["/".join(parts[-n:]) for parts in places]
        if len(set(names)) == len(names):
            return names
    return list(map(str, paths))


def require_distinct(output: Path | None, inputs: Iterable[Path | None]) -> None:
    """Refuse an output that is also an input, under any name: writing it would destroy the input.

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


def require_new_folder(path: Path, option: str, *, kind: str = "folder") -> None:
    """Refuse a folder that exists or cannot be made, before the work whose results are to be written to it.

    Args:
        path: the folder.
        option: what gave it, which the message names.
        kind: what it is, if that is not a folder.

    Raises:
        UserError: it is refused.
    """
    if str(path) == "-":
        raise UserError(f"{option} -: standard output is not a {kind}; name a new one")
    if path.exists():
        raise UserError(f"{path} exists: name a new {kind} with {option}")
    parent = next(place for place in path.absolute().parents if place.exists())
    try:
        with tempfile.TemporaryFile(dir=parent):
            pass
    except OSError:
        message = f"cannot make {path}: {parent} is not a folder that can be written to; name another with {option}"
        raise UserError(message) from None


@contextlib.contextmanager
def open_atomically(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file beside ``path`` for writing; it takes the place of ``path`` when the block ends.

    If the block raises, Ctrl-C included, ``path`` stays as it was.

    Raises:
        OSError: the file cannot be opened, written or replaced.
    """
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    with _replacing(path, secrets.token_hex(4)) as temporary, temporary.open("wb") as file:
        yield file


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` write the file at a temporary path beside ``path``, and rename it to ``path`` once it is on disk.

    If several processes write the same file at once, it is that of one of them, and others may fail.

    Raises:
        UserError: a folder, a device or a pipe is at ``path``.
        MtformerError: it could not be written; what was at ``path`` before is still there.
    """
    if path.exists() and not path.is_file():
        raise UserError(f"cannot write {path}: it is not a regular file")
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with _replacing(path, _PROCESS) as temporary:
            write(temporary)
        _remove_unfinished(path)


def write_text(path: Path, text: str) -> None:
    """Write a file of text as :func:`write_atomically` does."""
    write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8", newline="\n"))


@contextlib.contextmanager
def _replacing(path: Path, token: str) -> Iterator[Path]:
    """Yield the path of an empty temporary file, named after ``token``; the file replaces ``path`` at the end.

    A file that is replaced keeps its permissions, and a symbolic link keeps pointing to the file that it names. If the
    block raises, the temporary file is removed.
    """
    target = path.resolve()
    temporary = _temporary(target, token)
    try:
        temporary.touch()
        mode = (target if target.exists() else temporary).stat().st_mode  # a new file's is set by the umask
        yield temporary
        temporary.chmod(stat.S_IMODE(mode))  # safetensors writes files that only their owner can read
        sync(temporary)
        replace(temporary, target)
        sync(target.parent)
    finally:
        with contextlib.suppress(OSError):  # fails as well if the disk is read-only
            temporary.unlink(missing_ok=True)


def write_new_folder(path: Path, write: Callable[[Path], object], option: str) -> Path:
    """Let ``write`` fill a folder that a user has named, which appears when it is complete. Nothing is replaced.

    Returns:
        ``path``; or the folder beside it that has the files, numbered, because something else is at ``path`` by now.

    Raises:
        UserError: there is something at ``path``, or no folder can be made there; the message names ``option``.
        MtformerError: the files cannot be written.
    """
    require_new_folder(path, option)
    with disk_errors(path), _new_folder(path) as temporary:
        try:
            write(temporary)
        except MtformerError as error:
            raise type(error)(str(error).replace(str(temporary), str(path))) from error
        _finish(temporary)
        for place in (path, *(path.with_name(f"{path.name}-{n}") for n in range(2, 100))):
            if _rename_if_free(temporary, place):
                sync(place.parent)
                if place != path:
                    log.warning("something else is at %s by now: the files are in %s", path, place)
                return place
        raise FileExistsError(errno.EEXIST, "something else is there by now")


def _rename_if_free(folder: Path, place: Path) -> bool:
    """Rename a folder, unless a file or a folder with contents is in the place; an empty folder may give way."""
    try:
        folder.rename(place)  # not Path.replace, which on Windows replaces files
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
            return False
        raise
    return True


def write_folder_atomically(path: Path, write: Callable[[Path], object], *, durable: bool = True) -> None:
    """Let ``write`` fill a folder of our own, such as a checkpoint; what is at ``path``, which is damaged, is removed.

    Never use it for a folder that a user names: see :func:`write_new_folder`. Unless ``durable``, the files may not be
    on disk when the folder gets its name, so that a power failure may damage it.

    Raises:
        MtformerError: it could not be written; what was at ``path`` before is still there.
    """
    with disk_errors(path), _new_folder(path) as temporary:
        write(temporary)
        _finish(temporary, durable=durable)
        removed = _temporary(path, secrets.token_hex(4))
        if path.is_dir():
            replace(path, removed)
        try:
            replace(temporary, path)
        except OSError:
            if removed.is_dir():
                replace(removed, path)
            raise
        if durable:
            sync(path.parent)
        shutil.rmtree(removed, ignore_errors=True)
        _remove_unfinished(path)


@contextlib.contextmanager
def _new_folder(path: Path) -> Iterator[Path]:
    """Yield an empty temporary folder beside ``path``, which is removed if it is still there at the end."""
    temporary = _temporary(path, _PROCESS)
    try:
        _remove(temporary)
        temporary.mkdir(parents=True)
        yield temporary
    finally:
        with contextlib.suppress(OSError):
            _remove(temporary)


def _finish(folder: Path, *, durable: bool = True) -> None:
    """Give the files of a complete folder the usual permissions, and see them to the disk."""
    mode = stat.S_IMODE(folder.stat().st_mode) & 0o666  # by the umask: safetensors writes files for their owner alone
    for file in filter(Path.is_file, folder.iterdir()):
        file.chmod(mode)
        if durable:
            sync(file)
    if durable:
        sync(folder)


def _remove_unfinished(path: Path) -> None:
    """Remove the temporary files of killed processes beside ``path``, and let others that write it fail."""
    removed = _temporary(path, _PROCESS)
    names = glob.escape(removed.name).replace(_PROCESS, "[0-9a-f]" * 8)
    for unfinished in [removed, *path.parent.glob(names)]:
        with contextlib.suppress(OSError):
            unfinished.replace(removed)  # so that it cannot become ``path`` when only some of its files are left
        _remove(removed)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _temporary(path: Path, token: str) -> Path:
    """Return the temporary path beside ``path``; a long name is cut, as the token makes it longer."""
    return path.with_name(f".{path.name[:100]}.{token}.tmp")


def replace(path: Path, target: Path) -> None:
    """Rename a file or folder, replacing a file; on Windows, give programs that have one of them open a moment."""
    for pause in (0.1, 0.2, 0.4, 0.8) if os.name == "nt" else ():
        with contextlib.suppress(PermissionError):
            path.replace(target)
            return
        time.sleep(pause)
    path.replace(target)


def remove_folder(path: Path) -> None:
    """Remove a folder of our own, if it can be removed; one in use on Windows stays whole."""
    removed = _temporary(path, secrets.token_hex(4))
    with contextlib.suppress(OSError):
        path.replace(removed)
        shutil.rmtree(removed, ignore_errors=True)


def sync(path: Path) -> None:
    """Wait until the file or folder is on disk, so that a rename cannot overtake its contents."""
    on_windows = os.name == "nt"
    if on_windows and path.is_dir():  # it opens no folders
        return
    descriptor = os.open(path, os.O_RDWR if on_windows else os.O_RDONLY)  # Windows lets no reader ask for it
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL or not path.is_dir():  # some network file systems sync no folders
            raise
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn errors of the disk into a sentence about ``path``; leave those of the program and interrupts as they are.

    Raises:
        MtformerError: the operating system, or safetensors, which wraps its errors, could not write.
    """
    try:
        yield
    except Exception as error:
        if not isinstance(error, OSError) and "SafetensorError" not in type(error).__name__:
            raise
        reason = getattr(error, "strerror", None) or str(error).removeprefix("Error while serializing: I/O error: ")
        if isinstance(error, FileNotFoundError) and path.exists():
            reason = "another process has written it meanwhile"
        raise MtformerError(f"cannot write {path}: {reason}") from error


@contextlib.contextmanager
def read_errors(path: Path) -> Iterator[None]:
    """Turn errors of reading into a sentence about the file that they name, or else about ``path``.

    Raises:
        UserError: a file could not be read.
    """
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot read {error.filename or path}: {error.strerror}") from error


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's contents.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_of(values: JsonValue) -> str:
    """Return a digest of JSON values."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:32]
