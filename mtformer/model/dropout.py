"""Dropout (section 5.4 of the paper) with masks that are cheap to generate on a CPU."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class _OfThread(threading.local):
    """The generator that a thread draws from; None for torch's own, which all threads share."""

    generator: torch.Generator | None = None


_of_thread = _OfThread()


@contextmanager
def randomness_from(seed: int) -> Iterator[None]:
    """Inside, the randomness of models on a CPU follows from ``seed`` in this thread, whatever other threads draw."""
    before = _of_thread.generator
    _of_thread.generator = torch.Generator().manual_seed(seed)
    try:
        yield
    finally:
        _of_thread.generator = before


class Dropout(nn.Module):
    """In training, zero each value with probability ``p`` and scale the others to preserve the mean.

    On a CPU, torch generates masks on one core with the Mersenne Twister, which takes a tenth of a training step. One
    random byte per value from NumPy's SFC64 takes a fifth of that; ``p`` is rounded to 1/256. Each mask is seeded from
    torch, so ``torch.manual_seed`` or :func:`randomness_from` controls these masks too.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"dropout must be at least 0 and less than 1, not {p}")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Map a tensor of any shape to one of that shape."""
        if not self.training or self.p == 0:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.p)
        n_dropped = min(round(256 * self.p), 255)  # of the 256 values of a byte
        seed = int(torch.randint(2**62, (), generator=_of_thread.generator))
        random_bytes = np.random.Generator(np.random.SFC64(seed)).bytes(x.numel())
        keep = torch.from_numpy(np.frombuffer(random_bytes, dtype=np.uint8) >= n_dropped).view(x.shape)
        return x * keep.to(x.dtype).mul_(256 / (256 - n_dropped))

    def extra_repr(self) -> str:
        """Show ``p`` in the printed model."""
        return f"p={self.p}"
