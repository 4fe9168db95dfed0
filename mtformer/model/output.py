"""The output projection, and the loss of its logits. Legend of shapes: see :mod:`mtformer.model`; N target tokens."""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_CHUNK_ROWS_OF_CPU, _CHUNK_ROWS_OF_GPU = 512, 8_192  # whose logits stay in a processor's cache, and fill a GPU
_ROW_MULTIPLE = 64  # divides them: matrix products of the last rows have few distinct shapes as well
_SMALLEST = torch.finfo(torch.float32).tiny  # keeps the logarithm of a probability of 0 finite


class Losses(NamedTuple):
    """Losses summed over target tokens, in nats.

    Attributes:
        smoothed: what training minimizes: the cross entropy with label smoothing.
        cross_entropy: without it, comparable with the validation loss. It has no gradient.
    """

    smoothed: Tensor
    cross_entropy: Tensor


class OutputHead(nn.Linear):
    """The last layer: hidden·Wᵀ + b are the logits of the next token, or the loss if one gives the token.

    Attributes:
        weight: W, (V, D); the target's embedding, if the two are tied (section 3.4).
        bias: b, (V,); None for none.
    """

    def __init__(self, *, d_model: int, vocab_size: int, bias: bool = False) -> None:
        super().__init__(d_model, vocab_size, bias=bias)

    def project(self, hidden: Tensor) -> Tensor:
        """Turn the decoder's output (…, D) into logits (…, V)."""
        logits: Tensor = self(hidden)
        return logits

    def loss(self, hidden: Tensor, target: Tensor, label_smoothing: float, mask: Tensor | None = None) -> Losses:
        """Return the summed losses of predicting tokens; see :func:`smoothed_cross_entropy`.

        Args:
            hidden: (N, D), the decoder's output.
            target: (N,) ids.
            label_smoothing: ε, from 0 to 1.
            mask: (N,), False at targets that do not count; None if all do.
        """
        weight = self.weight
        if self.bias is not None:  # another column of W, for an input of 1
            hidden = torch.cat([hidden, hidden.new_ones(len(hidden), 1)], dim=1)
            weight = torch.cat([weight, self.bias[:, None]], dim=1)
        return smoothed_cross_entropy(hidden, weight, target, label_smoothing, mask)


def smoothed_cross_entropy(
    hidden: Tensor, weight: Tensor, target: Tensor, label_smoothing: float, mask: Tensor | None = None
) -> Losses:
    """Return the summed losses of the logits hidden·Wᵀ, which never exist all at once.

    Their gradients are written out below: a term that is added there needs its own. A loss that torch derives by itself
    starts from ``head.project(hidden)``; its sum over the tokens that ``mask`` leaves is ``smoothed``.

    Label smoothing (Szegedy et al. 2016) gives the target 1 - ε and spreads ε over the V tokens. With logits z that
    loss is logsumexp(z) - (1 - ε)·z[y] - ε·mean(z): the plain cross entropy and ε·(z[y] - mean(z)).

    The products are in autocast's type or else in that of ``hidden``, the sums in the weights' own.

    Args:
        hidden: (N, D).
        weight: (V, D).
        target: (N,) ids.
        label_smoothing: ε, from 0 to 1.
        mask: (N,), False at targets that do not count; None if all do.
    """
    if mask is not None:  # rows of zeros add nothing to the gradients
        hidden = hidden * mask[:, None]
    device = hidden.device.type
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype
    with torch.autocast(device, enabled=False):
        hidden = hidden.to(weight.dtype)
        with_gradient = torch.is_grad_enabled()
        return Losses(
            *_ChunkedCrossEntropy.apply(hidden, weight, target, label_smoothing, mask, dtype, with_gradient)  # type: ignore[no-untyped-call]
        )


class _ChunkedCrossEntropy(torch.autograd.Function):
    """The loss and, while a chunk's logits are there, its gradient for them: softmax(z) - (1 - ε)·onehot(y) - ε/V.

    ``F.linear_cross_entropy`` takes twice the time for the same on a CPU (docs/performance.md).
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        target: Tensor,
        label_smoothing: float,
        mask: Tensor | None,
        dtype: torch.dtype,
        with_gradient: bool,
    ) -> tuple[Tensor, Tensor]:
        n, v = len(target), len(weight)
        n_padded = -(-n // _ROW_MULTIPLE) * _ROW_MULTIPLE
        h = F.pad(hidden.to(dtype), (0, 0, 0, n_padded - n))  # (N', D): rows of zeros do not change the gradients
        y = F.pad(target, (0, n_padded - n))[:, None]  # (N', 1)
        w = weight.to(dtype)  # (V, D)
        cross_entropy = hidden.new_zeros(())
        d_hidden = torch.zeros_like(h)
        d_weight = torch.zeros_like(weight) if ctx.needs_input_grad[1] else None  # which adapters do not train
        chunk_rows = _CHUNK_ROWS_OF_CPU if h.device.type == "cpu" else _CHUNK_ROWS_OF_GPU
        chunk = h.new_empty(min(n_padded, chunk_rows), v)
        for start in range(0, n, chunk_rows):
            rows = slice(start, start + chunk_rows)
            p = chunk[: len(h[rows])]  # (C, V)
            torch.mm(h[rows], w.t(), out=p)
            torch.softmax(p, dim=-1, out=p)
            log_p = p.gather(1, y[rows])[: n - start].float().clamp_min(_SMALLEST).log()
            cross_entropy -= (log_p if mask is None else log_p * mask[rows, None]).sum()
            if with_gradient:
                d_hidden[rows] = p @ w
                if d_weight is not None:
                    d_weight += p.t() @ h[rows]
        # What is alike for all rows or all tokens, and the targets, need no pass over the logits.
        w_target, w_mean = F.embedding(target, weight), weight.mean(dim=0)  # (N, D), (D,)
        smoothing = label_smoothing * (hidden * (w_target - w_mean)).sum()
        d_hidden = d_hidden[:n].to(hidden.dtype) - (1 - label_smoothing) * w_target - label_smoothing * w_mean
        if d_weight is not None:
            d_weight.index_add_(0, target, hidden, alpha=label_smoothing - 1)
            d_weight -= hidden.sum(dim=0) * (label_smoothing / v)
        ctx.save_for_backward(d_hidden, d_weight)
        ctx.mark_non_differentiable(cross_entropy)
        return cross_entropy + smoothing, cross_entropy

    @staticmethod
    def backward(ctx: Any, d_smoothed: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        d_hidden, d_weight = ctx.saved_tensors
        d_weight = None if d_weight is None else d_smoothed * d_weight
        return d_smoothed * d_hidden, d_weight, None, None, None, None, None
