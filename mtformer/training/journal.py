"""What training writes down as it goes: ``metrics.jsonl``, and the running loss and speed between two of its lines."""

import json
import math
import time
from functools import partial
from pathlib import Path

from mtformer.errors import MtformerError
from mtformer.files import write_atomically
from mtformer.logs import finite
from mtformer.training.update import Update


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
    """Losses and speed since the last line in the journal."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._smoothed = 0.0
        self._cross_entropy = 0.0
        self._n_tokens = 0

    def add(self, update: Update) -> None:
        """Count an update."""
        self._smoothed += update.loss
        self._cross_entropy += update.cross_entropy
        self._n_tokens += update.n_tokens

    def metrics(self) -> dict[str, float]:
        """Return the losses, in nats per target token, and the target tokens per second, padding not counted.

        ``train_loss`` is the cross entropy, as ``valid_loss`` is, but with dropout; ``train_loss_smoothed`` is what
        training minimizes, with label smoothing and R-Drop.
        """
        n_tokens = max(1, self._n_tokens)
        return {
            "train_loss": self._cross_entropy / n_tokens,
            "train_loss_smoothed": self._smoothed / n_tokens,
            "tokens_per_second": self._n_tokens / max(1e-9, time.monotonic() - self._started),
        }

    def note(self) -> str:
        """Return the text beside the progress bar."""
        metrics = self.metrics()
        return f"train loss {metrics['train_loss']:.3f}, {metrics['tokens_per_second']:,.0f} tokens/s"
