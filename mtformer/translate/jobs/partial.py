"""Output files that grow window by window, so that a job can resume after it was interrupted or killed.

While a job writes ``FILE``, its output is in ``FILE.part``, and ``FILE.part.json``, the journal, records how much of it
is valid. The rules of ownership:

- A nonempty ``.part`` without a journal is somebody else's, and is left alone.
- A ``.part`` with a journal belongs to the process that has locked ``FILE.part.lock``. Only that process writes,
  truncates or removes it.
- Work recorded in the journal is never removed; a job that has recorded none leaves no files behind.
"""

import errno
import gzip
import json
import logging
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from mtformer.support.errors import UserError
from mtformer.support.files import disk_errors, sync, write_text
from mtformer.support.files import replace as replace_file
from mtformer.support.locks import lock

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Done:
    """The progress of a job.

    Attributes:
        settings: the settings that the output depends on, besides the input and the engine.
        engine: the engines that compute, their versions and their precisions.
        n_units: the number of lines, paragraphs or pairs done.
        n_bytes: the length of their output in bytes.
        n_lines: the number of lines of their output.
        digest: a hash of the input read so far.
        tallies: the tallies by name; see :class:`mtformer.translate.jobs.core.Tally`.
    """

    settings: Mapping[str, str] = field(default_factory=dict)
    engine: str = ""
    n_units: int = 0
    n_bytes: int = 0
    n_lines: int = 0
    digest: str = ""
    tallies: Mapping[str, Any] = field(default_factory=dict)


class PartialFile:
    """A file that is written as ``FILE.part`` and renamed once it is complete.

    A window is on disk before the journal records it; output after the last recorded window, left by a crash, is
    truncated. In a ``.gz`` file each window is a gzip member.

    Attributes:
        path: the file, as errors name it.
        part: the file while it is being written.
        done: the recorded progress.
    """

    def __init__(self, path: Path, settings: Mapping[str, str] | None = None, name: Path | None = None) -> None:
        """Take the file, the settings that its contents depend on, and its name in errors, if that differs."""
        target = path.resolve()
        self.path, self._target = name or path, target
        self.part = target.with_name(f"{target.name}.part")
        self._journal = target.with_name(f"{target.name}.part.json")
        self._lock = target.with_name(f"{target.name}.part.lock")
        self.done = Done(settings or {})
        self._file: BinaryIO

    def unfinished_settings(self) -> Mapping[str, str] | None:
        """Return the settings of the unfinished file; None if there is no file with recorded work."""
        try:
            done = Done(**json.loads(self._journal.read_bytes()))
        except (OSError, ValueError, TypeError):
            return None
        return done.settings if self.part.is_file() and done.n_units > 0 else None

    def written(self) -> list[str]:
        """Return the lines of the recorded windows of an open file that is not compressed."""
        with self.part.open("rb") as file:
            return file.read(self.done.n_bytes).decode().split("\n")[:-1]

    @contextmanager
    def opened(self, *, resume: bool, end: Callable[[], object] = lambda: None) -> Iterator[None]:
        """Open the file. If the block raises an error, windows already written are kept.

        Args:
            resume: resume an unfinished file if there is one.
            end: called after the block, before another process can open the file, such as :meth:`finish`.

        Raises:
            UserError: the file cannot be written; it is unfinished and ``resume`` is false, or it was started with
                different settings; or another process is writing it.
        """
        with ExitStack() as stack:
            try:
                self._require_writable()
                stack.enter_context(lock(self._lock))
                self.part.touch()
                self._file = stack.enter_context(self.part.open("r+b"))
                self._start(self._unfinished(), resume=resume)
            except TimeoutError:
                raise UserError(f"another process is writing {self.path}") from None
            except OSError as error:
                reason = "it is a folder, not a file" if isinstance(error, IsADirectoryError) else error.strerror
                raise UserError(f"cannot write {self.path}: {reason}") from error
            n_before = self.done.n_units
            try:
                yield
                if not self.done.n_units:
                    self._append("")  # an empty .gz file has a member too
                with disk_errors(self.path):
                    self._file.close()  # which retries what could not be written
            except BaseException as error:
                with suppress(OSError):
                    self._file.close()
                self._leave(n_before, error, "rerun to resume" if resume else "continue with --resume")
                raise
            end()

    def require_engine(self, engine: str) -> None:
        """Record the engine, which is known once the model is loaded.

        Raises:
            UserError: another engine has computed the existing output.
        """
        if self.done.n_units:
            self._require_same({"the engine": self.done.engine}, {"the engine": engine})
        self.done = replace(self.done, engine=engine)

    def write(self, text: str, n_units: int, digest: str, tallies: Mapping[str, Any]) -> None:
        """Append the output of a window, and wait until it is on disk.

        Args:
            text: the output.
            n_units: the number of lines, paragraphs or pairs in the window.
            digest: a hash of the input read so far.
            tallies: the tallies so far.

        Raises:
            MtformerError: it cannot be written.
        """
        done = self.done
        self.done = replace(
            done,
            n_units=done.n_units + n_units,
            n_bytes=done.n_bytes + self._append(text),
            n_lines=done.n_lines + text.count("\n"),
            digest=digest,
            tallies=tallies,
        )
        self._write_journal()

    def finish(self) -> None:
        """Rename the complete file.

        Raises:
            MtformerError: it cannot be renamed.
        """
        with disk_errors(self.path):
            if self._target.exists():
                shutil.copymode(self._target, self.part)
            sync(self.part)
            replace_file(self.part, self._target)
            sync(self._target.parent)
            self._journal.unlink(missing_ok=True)

    def discard(self) -> None:
        """Remove the unfinished file."""
        with suppress(OSError):
            self.part.unlink(missing_ok=True)
            self._journal.unlink(missing_ok=True)

    def _require_writable(self) -> None:
        if self._target.is_dir():
            raise IsADirectoryError
        if self._target.exists() and not os.access(self._target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    def _unfinished(self) -> Done | None:
        """Return the progress of an existing unfinished file; None if it has no recorded work.

        Raises:
            UserError: the file is somebody else's, or its journal cannot be read.
        """
        n_bytes = os.fstat(self._file.fileno()).st_size
        try:
            done = Done(**json.loads(self._journal.read_bytes()))
        except FileNotFoundError:
            if not n_bytes:
                return None
            raise UserError(f"{self.part} is in the way and is not an unfinished output: move or delete it") from None
        except (OSError, ValueError, TypeError) as error:
            raise UserError(f"cannot read {self._journal}: delete it and {self.part.name} to start over") from error
        return done if done.n_units and done.n_bytes <= n_bytes else None

    def _start(self, unfinished: Done | None, *, resume: bool) -> None:
        """Resume an unfinished file, or start from scratch."""
        if unfinished is None:
            if resume and self._target.exists():
                log.info("%s has no unfinished output: it is written from scratch", self.path)
            self._write_journal()  # before the file grows: the journal makes it ours
        elif not resume:
            raise UserError(
                f"{self.part} is an unfinished output: continue it with --resume, or delete it to start over"
            )
        else:
            self._require_same(unfinished.settings, self.done.settings)
            self.done = unfinished
        self._file.truncate(self.done.n_bytes)
        self._file.seek(self.done.n_bytes)

    def _leave(self, n_before: int, error: BaseException, remedy: str) -> None:
        """Keep the written windows of a failed job, and log the remedy; ``n_before`` units were done before it."""
        if not self.done.n_units:
            self.discard()
            if isinstance(error, KeyboardInterrupt | SystemExit):
                log.warning("nothing was finished yet: there is nothing to resume")
        elif self.done.n_units > n_before or not isinstance(error, UserError):  # else --resume was refused
            log.warning("%s contains the output so far: %s", self.part, remedy)

    def _append(self, text: str) -> int:
        """Write text, and return its size in bytes."""
        raw = gzip.compress(text.encode(), mtime=0) if self._target.suffix == ".gz" else text.encode()
        with disk_errors(self.path):
            self._file.write(raw)
            self._file.flush()
            os.fsync(self._file.fileno())
        return len(raw)

    def _write_journal(self) -> None:
        write_text(self._journal, json.dumps(asdict(self.done)))

    def _require_same(self, earlier: Mapping[str, str], now: Mapping[str, str]) -> None:
        changes = [
            f"{key} was {value}, is now {now.get(key)}" for key, value in earlier.items() if now.get(key) != value
        ]
        if changes:
            raise UserError(
                f"{self.part} was started with different settings: {'; '.join(changes)}. Use the old ones, or "
                "delete the file to start over"
            )
