"""The training loss and the speed between two lines of ``metrics.jsonl``."""

import time

from mtformer.training.update import Update


class RunningLoss:
    """Losses and speed since the last line in ``metrics.jsonl``."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._smoothed = 0.0
        self._cross_entropy = 0.0
        self._n_tokens = 0
        self._grad_norm = 0.0
        self._n_updates = 0

    def add(self, update: Update) -> None:
        """Count an update."""
        self._smoothed += update.loss
        self._cross_entropy += update.cross_entropy
        self._n_tokens += update.n_tokens
        self._grad_norm += update.grad_norm
        self._n_updates += 1

    def metrics(self) -> dict[str, float]:
        """Return the losses, in nats per target token, and the target tokens per second, padding not counted.

        ``train_loss`` is the cross entropy, as ``valid_loss`` is, but with dropout; ``train_loss_smoothed`` is what
        training minimizes, with label smoothing and R-Drop. ``grad_norm`` is the mean norm of the gradient before it is
        clipped.
        """
        n_tokens = max(1, self._n_tokens)
        return {
            "train_loss": self._cross_entropy / n_tokens,
            "train_loss_smoothed": self._smoothed / n_tokens,
            "tokens_per_second": self._n_tokens / max(1e-9, time.monotonic() - self._started),
            "grad_norm": self._grad_norm / max(1, self._n_updates),
        }

    def note(self) -> str:
        """Return the text beside the progress bar."""
        metrics = self.metrics()
        return f"train loss {metrics['train_loss']:.3f}, {metrics['tokens_per_second']:,.0f} tokens/s"
