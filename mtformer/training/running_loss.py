"""The training loss and the speed over some updates."""

import time

from mtformer.training.update import Update


class RunningLoss:
    """Losses, gradients and speed, from its creation on.

    Attributes:
        n_tokens: the target tokens counted.
    """

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._smoothed = 0.0
        self._cross_entropy = 0.0
        self._grad_norm = 0.0
        self._n_updates = 0
        self.n_tokens = 0

    def add(self, update: Update) -> None:
        """Count an update."""
        self._smoothed += update.loss
        self._cross_entropy += update.cross_entropy
        self._grad_norm += update.grad_norm
        self._n_updates += 1
        self.n_tokens += update.n_tokens

    def metrics(self) -> dict[str, float]:
        """Return the losses, in nats per target token; the gradient's norm; and target tokens per second.

        ``train_loss`` is the cross entropy, as ``valid_loss`` is, but with dropout; ``train_loss_smoothed`` is what
        training minimizes, with label smoothing and R-Drop. ``grad_norm`` is the mean norm before clipping. Padding
        does not count as tokens.
        """
        n_tokens = max(1, self.n_tokens)
        return {
            "train_loss": self._cross_entropy / n_tokens,
            "train_loss_smoothed": self._smoothed / n_tokens,
            "grad_norm": self._grad_norm / max(1, self._n_updates),
            "tokens_per_second": self.n_tokens / max(1e-9, time.monotonic() - self._started),
        }
