"""Position encodings (section 3.5 of the paper)."""

import math

import torch
from torch import Tensor, nn

from mtformer.model.graphs import CAPTURES

_MOST_PREPARED = 512  # positions whose sinusoids are computed at once; a longer text has the table grow


def sinusoidal_table(n_positions: int, d_model: int) -> Tensor:
    """Return (n_positions, D): PE(pos, 2i) = sin(pos / 10000^(2i/D)), PE(pos, 2i+1) = cos of the same angle.

    Raises:
        ValueError: D is odd, so that a sine would lack its cosine.
    """
    if d_model % 2:
        raise ValueError(f"d_model ({d_model}) is odd: each sine has a cosine beside it")
    angles = _angles(n_positions, d_model // 2, d_model // 2)
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)


def marian_table(n_positions: int, d_model: int) -> Tensor:
    """Return (n_positions, D): the sinusoids of Tensor2Tensor, all sines before all cosines.

    Their rates are 10000^(-i / (D/2 - 1)).
    """
    angles = _angles(n_positions, d_model // 2, max(1, d_model // 2 - 1))
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def _angles(n_positions: int, n_rates: int, n_intervals: int) -> Tensor:
    """Return (n_positions, n_rates): pos · 10000^(-i / n_intervals)."""
    position = torch.arange(n_positions, dtype=torch.float32).unsqueeze(1)  # (n_positions, 1)
    return position * torch.exp(torch.arange(n_rates) * (-math.log(10_000.0) / n_intervals))


def fairseq_table(n_positions: int, d_model: int) -> Tensor:
    """Return (n_positions, D): the sinusoids of :func:`marian_table` from number 2 on, since number 1 is padding's."""
    return marian_table(n_positions + 2, d_model)[2:]


class SinusoidalPositions(nn.Module):
    """The paper's sinusoids. Every position has an encoding, so the table grows for longer texts."""

    table: Tensor
    make_table = staticmethod(sinusoidal_table)

    def __init__(self, *, d_model: int, n_positions: int) -> None:
        super().__init__()
        table = torch.empty(min(n_positions, _MOST_PREPARED), d_model)
        if not table.is_meta:  # computing shapes alone would import torch's compiler
            table = self.make_table(*table.shape)
        self.register_buffer("table", table, persistent=False)
        self._outgrown: list[Tensor] = []  # which graphs of a GPU may still read

    def forward(self, start: int | Tensor, length: int) -> Tensor:
        """Return (length, D), the encodings of positions ``start`` to ``start + length - 1``.

        The table does not grow for a start in a tensor, whose value nobody waits for.
        """
        table = self.table  # another thread may replace it meanwhile
        if isinstance(start, Tensor):
            return table[positions_from(start, length, table.device)]
        if start + length > len(table):
            with torch.inference_mode(False):  # so that a table built while translating can be used in training
                grown = self.make_table(2 * (start + length), table.size(1))
                self._outgrown += [table] * (table.device.type in CAPTURES)
                self.table = table = grown.to(table.device, table.dtype)
        return table[start : start + length]


class MarianPositions(SinusoidalPositions):
    """The sinusoids of models that Marian trained."""

    make_table = staticmethod(marian_table)


class FairseqPositions(SinusoidalPositions):
    """The sinusoids of models that fairseq trained, such as M2M-100 and NLLB."""

    make_table = staticmethod(fairseq_table)


def positions_from(start: int | Tensor, length: int, device: torch.device, dtype: torch.dtype = torch.long) -> Tensor:
    """Return (length,) numbers from ``start`` on, which may be in a tensor (1,) on the device."""
    if isinstance(start, Tensor):
        return (start + torch.arange(length, device=device)).to(dtype)
    return torch.arange(start, start + length, device=device, dtype=dtype)


def rotate(x: Tensor, start: int | Tensor = 0) -> Tensor:
    """Rotate each pair of features by an angle proportional to its position (RoPE; Su et al. 2021, equation 34).

    The product of a rotated query and a rotated key depends on the distance between them, not on where they are.

    Args:
        x: (B, H, T, Dh) queries or keys, at positions ``start`` to ``start + T - 1``.
        start: the first position, which may be in a tensor (1,).

    Returns:
        (B, H, T, Dh).
    """
    length, half = x.size(-2), x.size(-1) // 2
    position = positions_from(start, length, x.device, torch.float32).unsqueeze(1)  # (T, 1)
    rate = torch.exp(torch.arange(half, device=x.device) * (-math.log(10_000.0) / half))  # (Dh / 2)
    angle = torch.cat([position * rate] * 2, dim=1)  # (T, Dh): feature i is paired with feature i + Dh / 2
    sin = torch.sin(angle)
    sin[:, :half].neg_()  # a · cos - b · sin, and b · cos + a · sin
    return x * torch.cos(angle).to(x.dtype) + x.roll(half, -1) * sin.to(x.dtype)


class NoPositions(nn.Module):
    """Adds nothing to the embeddings.

    With rotary positions, attention encodes the order. With none, only the decoder's causal mask does: the encoder sees
    its tokens as a set.
    """

    def __init__(self, *, d_model: int, n_positions: int) -> None:
        super().__init__()

    def forward(self, start: int | Tensor, length: int) -> float:
        """Return zero."""
        return 0.0


class LearnedPositions(nn.Module):
    """A learned vector for each position (section 3.5 of the paper, after Gehring et al. 2017)."""

    def __init__(self, *, d_model: int, n_positions: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_positions, d_model))

    def forward(self, start: int | Tensor, length: int) -> Tensor:
        """Return (length, D); positions beyond the last learned one share its vector."""
        positions = positions_from(start, length, self.weight.device)
        return self.weight[positions.clamp(max=len(self.weight) - 1)]
