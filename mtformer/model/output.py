"""The output projection, and the loss of its logits. Legend of shapes: see :mod:`mtformer.model`; N target tokens."""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_CHUNK_ROWS_OF_CPU, _CHUNK_ROWS_OF_GPU = 512, 8_192  # whose logits stay in a processor's cache, and fill a GPU
_ROW_MULTIPLE = 64  # divides them: matrix products of the last rows have few distinct shapes as well
_DIVERGENCE_ROWS = 32  # float32 copies of them stay in the cache of one core
_SMALLEST = torch.finfo(torch.float32).tiny  # keeps the logarithm of a probability of 0 finite


class Losses(NamedTuple):
    """Losses summed over target tokens, in nats.

    Attributes:
        smoothed: what training minimizes: the cross entropy with label smoothing and, if used, R-Drop's divergence.
        cross_entropy: without either, comparable with the validation loss. It has no gradient.
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

    def loss(
        self, hidden: Tensor, target: Tensor, label_smoothing: float, r_drop: float = 0.0, mask: Tensor | None = None
    ) -> Losses:
        """Return the summed losses of predicting tokens; see :func:`smoothed_cross_entropy`.

        Args:
            hidden: (N, D), the decoder's output; for R-Drop (2N, D).
            target: (N,) ids.
            label_smoothing: ε, from 0 to 1.
            r_drop: α, or 0.
            mask: (N,), False at targets that do not count; None if all do.
        """
        weight = self.weight
        if self.bias is not None:  # another column of W, for an input of 1
            hidden = torch.cat([hidden, hidden.new_ones(len(hidden), 1)], dim=1)
            weight = torch.cat([weight, self.bias[:, None]], dim=1)
        return smoothed_cross_entropy(hidden, weight, target, label_smoothing, r_drop, mask)


def smoothed_cross_entropy(
    hidden: Tensor,
    weight: Tensor,
    target: Tensor,
    label_smoothing: float,
    r_drop: float = 0.0,
    mask: Tensor | None = None,
) -> Losses:
    """Return the summed losses of the logits hidden·Wᵀ, which never exist all at once.

    Label smoothing (Szegedy et al. 2016) gives the target 1 - ε and spreads ε over the V tokens. With logits z that
    loss is logsumexp(z) - (1 - ε)·z[y] - ε·mean(z): the plain cross entropy and ε·(z[y] - mean(z)).

    R-Drop (Liang et al. 2021, equation 4) has two predictions p1 and p2 of each target. Its loss, halved to be one of a
    token as well, is the mean of both cross entropies and α/4 · (KL(p1 ‖ p2) + KL(p2 ‖ p1)).

    The products are in autocast's type or else in that of ``hidden``, the sums in the weights' own.

    Args:
        hidden: (N, D); for R-Drop (2N, D), the first predictions of all targets and then the second.
        weight: (V, D).
        target: (N,) ids.
        label_smoothing: ε, from 0 to 1.
        r_drop: α, or 0.
        mask: (N,), False at targets that do not count; None if all do.
    """
    if mask is not None:  # rows of zeros add nothing to the gradients
        hidden = hidden * mask.repeat(len(hidden) // len(mask))[:, None]
    device = hidden.device.type
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype
    with torch.autocast(device, enabled=False):
        hidden = hidden.to(weight.dtype)
        with_gradient = torch.is_grad_enabled()
        return Losses(
            *_ChunkedCrossEntropy.apply(hidden, weight, target, label_smoothing, r_drop, mask, dtype, with_gradient)  # type: ignore[no-untyped-call]
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
        r_drop: float,
        mask: Tensor | None,
        dtype: torch.dtype,
        with_gradient: bool,
    ) -> tuple[Tensor, Tensor]:
        k, n, v = 2 if r_drop else 1, len(target), len(weight)
        n_padded = -(-n // _ROW_MULTIPLE) * _ROW_MULTIPLE
        # Rows of zeros change neither the gradients nor the divergence, and the loss leaves them out.
        h = F.pad(hidden.to(dtype).unflatten(0, (k, n)), (0, 0, 0, n_padded - n))  # (K, N', D)
        y = F.pad(target, (0, n_padded - n))  # (N')
        w = weight.to(dtype)  # (V, D)
        cross_entropy, penalty = hidden.new_zeros(()), hidden.new_zeros(())
        d_hidden = torch.zeros_like(h)
        d_weight = torch.zeros_like(weight) if ctx.needs_input_grad[1] else None  # which adapters do not train
        chunk_rows = (_CHUNK_ROWS_OF_CPU if h.device.type == "cpu" else _CHUNK_ROWS_OF_GPU) // k
        chunk = h.new_empty(k * min(n_padded, chunk_rows), v)
        for start in range(0, n, chunk_rows):
            rows = slice(start, start + chunk_rows)
            h_rows, y_rows = h[:, rows].flatten(0, 1), y[rows, None].repeat(k, 1)  # (K·C, D), (K·C, 1)
            p = chunk[: len(h_rows)]  # (K·C, V)
            torch.mm(h_rows, w.t(), out=p)
            torch.softmax(p, dim=-1, out=p)
            p_target = p.gather(1, y_rows).unflatten(0, (k, -1))[:, : n - start]
            log_p = p_target.float().clamp_min(_SMALLEST).log()
            cross_entropy -= (log_p if mask is None else log_p * mask[rows, None]).sum()
            if r_drop:
                penalty += _divergence_(p, r_drop / 2)
            if with_gradient:
                d_hidden[:, rows] = (p @ w).unflatten(0, (k, -1))
                if d_weight is not None:
                    d_weight += p.t() @ h_rows
        # What is alike for all rows or all tokens, and the targets, need no pass over the logits.
        target = target.repeat(k)
        w_target, w_mean = F.embedding(target, weight), weight.mean(dim=0)  # (K·N, D), (D,)
        penalty += label_smoothing * (hidden * (w_target - w_mean)).sum()
        d_hidden = d_hidden[:, :n].flatten(0, 1).to(hidden.dtype)
        d_hidden = d_hidden - (1 - label_smoothing) * w_target - label_smoothing * w_mean
        if d_weight is not None:
            d_weight.index_add_(0, target, hidden, alpha=label_smoothing - 1)
            d_weight -= hidden.sum(dim=0) * (label_smoothing / v)
        ctx.save_for_backward(d_hidden, d_weight)
        ctx.k = k
        cross_entropy /= k
        ctx.mark_non_differentiable(cross_entropy)
        return cross_entropy + penalty / k, cross_entropy

    @staticmethod
    def backward(ctx: Any, d_smoothed: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        d_hidden, d_weight = ctx.saved_tensors
        d_sum = d_smoothed / ctx.k
        return d_sum * d_hidden, None if d_weight is None else d_sum * d_weight, None, None, None, None, None, None


def _divergence_(p: Tensor, factor: float) -> Tensor:
    """Return factor · (KL(p1 ‖ p2) + KL(p2 ‖ p1)), summed over C rows, and add its gradient for the logits to ``p``.

    Args:
        p: (2C, V), the probabilities p1 and below them p2.
        factor: of both.
    """
    rows = _DIVERGENCE_ROWS if p.device.type == "cpu" else len(p)
    divergence = p.new_zeros((), dtype=torch.float32)
    for first, second in zip(*(half.split(rows) for half in p.chunk(2)), strict=True):
        p1, p2 = first.float(), second.float()
        log_ratio = p1.clamp_min(_SMALLEST).log() - p2.clamp_min(_SMALLEST).log()
        kl_12, kl_21 = torch.linalg.vecdot(p1, log_ratio)[:, None], torch.linalg.vecdot(p2, -log_ratio)[:, None]
        d_first = p1 * (1 + log_ratio - kl_12) - p2
        d_second = p2 * (1 - log_ratio - kl_21) - p1
        first += factor * d_first
        second += factor * d_second
        divergence += (kl_12 + kl_21).sum()
    return factor * divergence
