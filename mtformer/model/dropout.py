"""Dropout (section 5.4 of the paper) with masks that are cheap to draw on a CPU."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Dropout(nn.Module):
    """Set each value to zero with probability ``p`` in training, and scale the others so that the mean stays.

    On a CPU torch draws its masks on one core with the Mersenne Twister, a tenth of a training step; a random byte a
    value from NumPy's SFC64 costs a fifth of that. ``p`` is then rounded to 1/256. The seed of each mask comes from
    torch, so that ``torch.manual_seed`` and torch's random state govern these masks too.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"a dropout probability is at least 0 and less than 1, not {p}")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Map a tensor of any shape to one of that shape."""
        if not self.training or self.p == 0:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.p)
        n_dropped = min(round(256 * self.p), 255)  # of the 256 values of a byte
        seed = int(torch.randint(2**62, ()))
        random_bytes = np.random.Generator(np.random.SFC64(seed)).bytes(x.numel())
        keep = torch.from_numpy(np.frombuffer(random_bytes, dtype=np.uint8) >= n_dropped).view(x.shape)
        return x * keep.to(x.dtype).mul_(256 / (256 - n_dropped))

    def extra_repr(self) -> str:
        """Show ``p`` in the printed model."""
        return f"p={self.p}"
