"""The loss: cross entropy with label smoothing, summed over the pieces that are to be predicted."""

from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from mtformer.model.transformer import Transformer
from mtformer.text.batching import Batch

_CHUNK_ROWS = {"cpu": 512, "cuda": 8_192}  # rows whose logits stay in a processor's cache, and fill a GPU
_SMALLEST = torch.finfo(torch.float32).tiny  # keeps the logarithm of a probability of 0 finite


def summed_loss(model: Transformer, batch: Batch, label_smoothing: float, r_drop: float = 0.0) -> Tensor:
    """Return the cross entropy in nats, summed over the batch's target pieces; padding takes no part.

    The sum is not yet divided, so that several batches can be added up and divided once, by the pieces of them all:
    then (8 pairs × 1 batch) and (2 pairs × 4 batches) give the same gradient.

    With ``r_drop`` as its α it is the loss of R-Drop (Liang et al. 2021, equation 4), halved to be one of a piece as
    well: every sentence is taken twice, with other dropout, and the predictions p1 and p2 are to agree. The mean of
    both cross entropies and α/4 · (KL(p1 ‖ p2) + KL(p2 ‖ p1)).
    """
    n = 2 if r_drop else 1
    src, src_mask, tgt_in = (x.repeat(n, 1) for x in (batch.src, batch.src_mask, batch.tgt_in))
    mask = batch.tgt_mask.repeat(n, 1)
    hidden = model(src, src_mask, tgt_in)[mask]  # (N, D)
    weight, target = model.output.weight, batch.tgt_out.repeat(n, 1)[mask]
    loss = smoothed_cross_entropy(hidden, weight, target, label_smoothing) / n
    if not r_drop:
        return loss
    first, second = hidden.chunk(2)
    return loss + r_drop / 4 * divergence(first, second, weight)


def divergence(hidden1: Tensor, hidden2: Tensor, weight: Tensor) -> Tensor:
    """Return KL(p1 ‖ p2) + KL(p2 ‖ p1) of two predictions from (N, D) each, summed over the N rows.

    The logits are computed in chunks, and anew for the gradient, so that they never exist all at once.
    """
    chunk_rows = _CHUNK_ROWS.get(weight.device.type, len(hidden1))
    chunks = zip(hidden1.split(chunk_rows), hidden2.split(chunk_rows), strict=True)
    sums = [checkpoint(_divergence, one, two, weight, use_reentrant=False) for one, two in chunks]
    return torch.stack(sums).sum()


def _divergence(hidden1: Tensor, hidden2: Tensor, weight: Tensor) -> Tensor:
    log_p1, log_p2 = (F.linear(hidden, weight).float().log_softmax(dim=-1) for hidden in (hidden1, hidden2))
    # p1·(log p1 - log p2) + p2·(log p2 - log p1)
    return ((log_p1.exp() - log_p2.exp()) * (log_p1 - log_p2)).sum()


def smoothed_cross_entropy(hidden: Tensor, weight: Tensor, target: Tensor, label_smoothing: float) -> Tensor:
    """Return the summed cross entropy of the logits hidden·Wᵀ, which never exist all at once.

    Label smoothing (Szegedy et al. 2016) gives the target 1 - ε and spreads ε over the V pieces. With logits z that
    loss is logsumexp(z) - (1 - ε)·z[y] - ε·mean(z): the plain cross entropy and ε·(z[y] - mean(z)).

    The products are in autocast's type or else in that of ``hidden``, the sums in the weights' own.

    Args:
        hidden: (N, D).
        weight: (V, D).
        target: (N,) ids.
        label_smoothing: ε, from 0 to 1.
    """
    device = hidden.device.type
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype
    with torch.autocast(device, enabled=False):
        hidden = hidden.to(weight.dtype)
        with_gradient = torch.is_grad_enabled()
        loss = _ChunkedCrossEntropy.apply(hidden, weight, target, label_smoothing, dtype, with_gradient)  # type: ignore[no-untyped-call]
        return cast(Tensor, loss)


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
        dtype: torch.dtype,
        with_gradient: bool,
    ) -> Tensor:
        n, v = len(hidden), len(weight)
        h, w = hidden.to(dtype), weight.to(dtype)
        loss = hidden.new_zeros(())
        d_hidden, d_weight = torch.zeros_like(h), torch.zeros_like(weight)
        chunk_rows = _CHUNK_ROWS.get(h.device.type, n)
        chunk = h.new_empty(min(n, chunk_rows), v)
        for start in range(0, n, chunk_rows):
            rows = slice(start, start + chunk_rows)
            y = target[rows, None]  # (C, 1)
            p = chunk[: len(y)]  # (C, V)
            torch.mm(h[rows], w.t(), out=p)
            torch.softmax(p, dim=-1, out=p)
            loss -= p.gather(1, y).float().clamp_min(_SMALLEST).log().sum()
            if with_gradient:
                torch.mm(p, w, out=d_hidden[rows])
                d_weight += p.t() @ h[rows]
        # What is alike for all rows or all pieces, and the targets, need no pass over the logits.
        w_target, w_mean = F.embedding(target, weight), weight.mean(dim=0)  # (N, D), (D,)
        loss += label_smoothing * (hidden * (w_target - w_mean)).sum()
        d_hidden = d_hidden.to(hidden.dtype) - (1 - label_smoothing) * w_target - label_smoothing * w_mean
        d_weight.index_add_(0, target, hidden, alpha=label_smoothing - 1)
        d_weight -= hidden.sum(dim=0) * (label_smoothing / v)
        ctx.save_for_backward(d_hidden, d_weight)
        return loss

    @staticmethod
    def backward(ctx: Any, d_loss: Tensor) -> tuple[Tensor | None, ...]:
        d_hidden, d_weight = ctx.saved_tensors
        return d_loss * d_hidden, d_loss * d_weight, None, None, None, None
