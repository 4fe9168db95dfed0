"""Files with a JSON object on each line, which survive a crash in the middle of a line."""

import json
import logging
import math
import os
from functools import partial
from pathlib import Path
from typing import Any

from mtformer.support.errors import MtformerError, UserError
from mtformer.support.files import sync, write_atomically
from mtformer.support.logs import finite

log = logging.getLogger(__name__)


class Journal:
    """A file such as ``metrics.jsonl``: a JSON object with ``step`` on each line."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[dict[str, Any]]:
        """Return the intact lines; damaged ones are skipped with a warning.

        A last line without its end is still being written, or a crash has cut it off: it is skipped silently.

        Raises:
            UserError: the file cannot be read.
        """
        try:
            lines = self.path.read_bytes().splitlines(keepends=True)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise UserError(f"cannot read {self.path}: {error.strerror}") from error
        damaged = [n for n, line in enumerate(lines, 1) if line.endswith(b"\n") and not math.isfinite(_step_of(line))]
        if damaged:
            shown = ", ".join(map(str, damaged[:5])) + (", …" if len(damaged) > 5 else "")
            log.warning("%s is damaged, and read without line %s", self.path, shown)
        return [json.loads(line) for line in lines if math.isfinite(_step_of(line))]

    def write(self, values: dict[str, Any]) -> None:
        """Add a line; non-finite numbers become null, as JSON has none.

        Several processes may add lines at once. A last line that was cut off stays unreadable, and alone.

        Raises:
            MtformerError: the file cannot be written.
        """
        line = (json.dumps(finite(values), ensure_ascii=False) + "\n").encode()
        try:
            with self.path.open("a+b", buffering=0) as file:
                if file.tell():
                    file.seek(-1, os.SEEK_END)
                    line = line if file.read() == b"\n" else b"\n" + line
                while line:  # one call writes it all, unless the disk is full: no line of another process comes between
                    line = line[file.write(line) :]
        except OSError as error:
            raise MtformerError(f"cannot write {self.path}: {error.strerror}") from error

    def sync(self) -> None:
        """Wait until all lines are on disk."""
        if self.path.is_file():
            try:
                sync(self.path)
            except OSError as error:
                raise MtformerError(f"cannot write {self.path}: {error.strerror}") from error

    def has_validations(self) -> bool:
        """Return whether a line contains validation scores."""
        return self.path.is_file() and _has_scores(self.path.read_bytes())

    def cut(self, last_step: int, *, is_validated: bool = True) -> None:
        """Remove the lines of later steps, which will be repeated, and lines that a crash has cut off.

        Args:
            last_step: the last step that will not be repeated.
            is_validated: whether its validation will not be repeated either.
        """
        if self.path.is_file():
            lines = [line for line in self.path.read_bytes().splitlines(keepends=True) if _step_of(line) <= last_step]
            kept = b"".join(
                line for line in lines if is_validated or _step_of(line) < last_step or not _has_scores(line)
            )
            write_atomically(self.path, partial(Path.write_bytes, data=kept))


def _has_scores(text: bytes) -> bool:
    """Tell whether ``text`` comes from a validation."""
    return b'"valid_loss"' in text or b'"samples"' in text


def _step_of(line: bytes) -> float:
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return math.inf
