"""What training writes down as it goes: ``metrics.jsonl``, and the running loss and speed between two of its lines."""

import json
import math
import time
from functools import partial
from pathlib import Path

from mtformer.errors import MtformerError
from mtformer.files import write_atomically
from mtformer.logs import finite


class Journal:
    """The file ``metrics.jsonl``: a JSON object with ``step`` on each line."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, values: dict[str, float]) -> None:
        """Add a line; numbers that JSON does not have become null.

        Raises:
            MtformerError: the file cannot be written.
        """
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(finite(values)) + "\n")
        except OSError as error:
            raise MtformerError(f"cannot write {self.path}: {error.strerror}") from error

    def cut(self, last_step: int) -> None:
        """Remove the lines of later steps, which will be done again, and what a crash left of a line."""
        if self.path.is_file():
            lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True)
            kept = "".join(line for line in lines if _step_of(line) <= last_step)
            write_atomically(self.path, partial(Path.write_text, data=kept, encoding="utf-8"))


def _step_of(line: str) -> float:
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return math.inf


class RunningLoss:
    """Loss and speed since the last line in the journal."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._loss = 0.0
        self._n_tokens = 0

    def add(self, loss: float, n_tokens: int) -> None:
        """Count an update with its summed loss."""
        self._loss += loss
        self._n_tokens += n_tokens

    def mean(self) -> float:
        """Return the loss per target piece, in nats."""
        return self._loss / max(1, self._n_tokens)

    def tokens_per_second(self) -> float:
        """Return the target pieces per second, padding not counted."""
        return self._n_tokens / max(1e-9, time.monotonic() - self._started)

    def note(self) -> str:
        """Return what the progress bar shows."""
        return f"loss {self.mean():.3f}, {self.tokens_per_second():,.0f} tokens/s"
