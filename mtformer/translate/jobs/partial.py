"""Output files that grow window by window, so that a job can continue after it was interrupted or killed."""

import contextlib
import errno
import fcntl
import gzip
import json
import logging
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from mtformer.support.errors import MtformerError, UserError
from mtformer.support.files import sync, write_atomically

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Done:
    """How far a job is.

    Attributes:
        settings: what the translations depend on, besides the input.
        n_units: the lines or paragraphs that have been translated.
        n_bytes: the length of their translations in the file.
        n_lines: the lines of them.
        digest: a hash of the lines or paragraphs.
        flags: the doubtful ones among them, as the attributes of a :class:`mtformer.translate.guard.flags.FlagCounter`.
    """

    settings: Mapping[str, str]
    n_units: int = 0
    n_bytes: int = 0
    n_lines: int = 0
    digest: str = ""
    flags: Mapping[str, Any] = field(default_factory=dict)


class PartialFile:
    """A file that is written as ``FILE.part`` and takes its own name once it is complete.

    Beside it, ``FILE.part.json`` says how far it is. A window is on disk before it is counted there, and what a crash
    leaves after the last one that counts is cut off. In a ``.gz`` file each window is a gzip member.

    Attributes:
        path: the file, as it was named.
        part: the file while it is being written.
        done: how far it is.
    """

    def __init__(self, path: Path, settings: Mapping[str, str]) -> None:
        """Name the file and what its contents depend on."""
        target = path.resolve()
        self.part = target.with_name(f"{target.name}.part")
        self.done = Done(settings)
        self.path, self._target = path, target
        self._journal = target.with_name(f"{target.name}.part.json")
        self._file: BinaryIO

    @contextmanager
    def opened(self, *, resume: bool) -> Iterator[None]:
        """Open the file. If the block raises an error, the windows that have been written stay, if there are any.

        Args:
            resume: continue an unfinished file if there is one.

        Raises:
            UserError: the file cannot be written; there is an unfinished one and ``resume`` is false, or it was
                started with other settings; or another process is writing it.
        """
        with ExitStack() as stack:
            try:
                self._file = stack.enter_context(self._open())
                self._lock()
                self._start(resume)
            except OSError as error:
                reason = "it is a folder, not a file" if isinstance(error, IsADirectoryError) else error.strerror
                raise UserError(f"cannot write {self.path}: {reason}") from error
            n_before = self.done.n_units
            try:
                yield
            except BaseException as error:
                if not self.done.n_units:
                    self.discard()
                    if isinstance(error, KeyboardInterrupt | SystemExit):
                        log.warning("nothing was finished yet: there is nothing to resume")
                elif self.done.n_units > n_before or not isinstance(error, UserError):  # else --resume was refused
                    log.warning("%s contains what is done so far: continue with --resume", self.part)
                raise
            if not self.done.n_units:
                self._add("")

    def write(self, text: str, n_units: int, digest: str, flags: Mapping[str, Any]) -> None:
        """Add the translations of a window, and wait until they are on disk.

        Args:
            text: the translations.
            n_units: how many lines or paragraphs they are.
            digest: a hash of all lines or paragraphs so far.
            flags: the doubtful ones so far.

        Raises:
            MtformerError: they cannot be written.
        """
        done = self.done
        n_bytes, n_lines = done.n_bytes + self._add(text), done.n_lines + text.count("\n")
        self.done = Done(done.settings, done.n_units + n_units, n_bytes, n_lines, digest, flags)
        self._write_journal()

    def _add(self, text: str) -> int:
        """Write text, and return how many bytes it takes."""
        raw = gzip.compress(text.encode(), mtime=0) if self.path.suffix == ".gz" else text.encode()
        try:
            self._file.write(raw)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise MtformerError(f"cannot write {self.path}: {error.strerror}") from error
        return len(raw)

    def finish(self) -> None:
        """Give the file its own name.

        Raises:
            MtformerError: this is not possible.
        """
        try:
            if self._target.exists():
                shutil.copymode(self._target, self.part)
            sync(self.part)
            self.part.replace(self._target)
            sync(self._target.parent)
            self._journal.unlink(missing_ok=True)
        except OSError as error:
            raise MtformerError(f"cannot write {self.path}: {error.strerror}") from error

    def discard(self) -> None:
        """Remove the unfinished file."""
        with contextlib.suppress(OSError):
            self.part.unlink(missing_ok=True)
            self._journal.unlink(missing_ok=True)

    def _open(self) -> BinaryIO:
        if self._target.is_dir():
            raise IsADirectoryError
        if self._target.exists() and not os.access(self._target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        self.part.touch()
        return self.part.open("r+b")

    def _lock(self) -> None:
        """Keep other processes from writing the file; the kernel releases it when this one ends, however it ends."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_ours = os.path.samestat(os.fstat(self._file.fileno()), self.part.stat())
        except (BlockingIOError, FileNotFoundError):
            is_ours = False  # or another process has just finished or discarded it
        except OSError:
            is_ours = True  # this file system has no locks
        if not is_ours:
            raise UserError(f"another process is writing {self.path}")

    def _start(self, resume: bool) -> None:
        """Continue where the journal says, or from scratch."""
        done = self._read_journal()
        if done is None and self._size():
            raise UserError(f"{self.part} is in the way and is not an unfinished output: move or delete it")
        if done is None or done.n_bytes > self._size():
            done = Done({})
        if done.n_units and not resume:
            raise UserError(
                f"{self.part} is an unfinished output: continue it with --resume, or delete it to start over"
            )
        if done.n_units:
            self._require_same(done.settings)
            self.done = replace(done, settings=self.done.settings)
        else:
            self._write_journal()  # before the file grows: the journal makes it ours
        self._file.truncate(self.done.n_bytes)
        self._file.seek(self.done.n_bytes)

    def _size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def _write_journal(self) -> None:
        write_atomically(self._journal, lambda path: path.write_text(json.dumps(asdict(self.done)), encoding="utf-8"))

    def _read_journal(self) -> Done | None:
        try:
            return Done(**json.loads(self._journal.read_bytes()))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as error:
            raise UserError(f"cannot read {self._journal}: delete it and {self.part.name} to start over") from error

    def _require_same(self, earlier: Mapping[str, str]) -> None:
        now = self.done.settings
        changes = [f"{key} was {old}, is now {now.get(key)}" for key, old in earlier.items() if now.get(key) != old]
        if changes:
            raise UserError(
                f"{self.part} was started with different settings: {'; '.join(changes)}. Repeat the old ones, or "
                "delete the file to start over"
            )
