"""Attention (section 3.2 of the paper), its masks, and a tap to record it; shapes as in :mod:`mtformer.model`."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mtformer.model.dropout import Dropout
from mtformer.model.lora import Linear, StackedLinear
from mtformer.model.positions import rotate


def causal_mask(length: int, device: torch.device | None = None) -> Tensor:
    """Return (T, T): position t may attend to positions up to t, so that it cannot see the token it predicts."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


def attention_weights(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    """Return softmax(q·kᵀ/√Dh), the weights of equation 1.

    Args:
        q: (B, H, T, Dh) queries.
        k: (B, H, S, Dh) keys.
        mask: broadcast to (B, H, T, S), True = may attend.

    Returns:
        (B, H, T, S), each row summing to 1.
    """
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(dim=-1)


class MultiHeadAttention(nn.Module):
    """Multi-head attention (section 3.2.2): H attentions side by side, each on its own projections of width Dh.

    Attributes:
        observer: called with the weights (B, H, T, S), before dropout, each time the module attends; None, the default,
            costs nothing. See :func:`record_attention`.
    """

    def __init__(self, *, d_model: int, n_heads: int, rotary: bool = False, dropout: float = 0.0) -> None:
        """Set up fresh weights.

        Args:
            d_model: D.
            n_heads: H.
            rotary: rotate the queries and keys of self-attention by their positions.
            dropout: the probability, in training, that a position is hidden from a query of a head.

        Raises:
            ValueError: ``n_heads`` does not divide ``d_model``, or ``dropout`` is not a probability below 1.
        """
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"n_heads ({n_heads}) does not divide d_model ({d_model})")
        self.d_model = d_model
        self.n_heads = n_heads
        self.rotary = rotary
        self.observer: Callable[[Tensor], object] | None = None
        self.qkv_proj = StackedLinear(d_model, d_model, 3)  # W^Q, W^K and W^V of all heads, one below the other
        self.out_proj = Linear(d_model, d_model)  # W^O
        self.dropout = Dropout(dropout)

    def project_qkv(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Project (B, T, D) to the queries, keys and values of self-attention, each (B, H, T, Dh), in one product."""
        heads = self.qkv_proj(x).unflatten(-1, (3 * self.n_heads, -1)).transpose(1, 2)  # (B, 3H, T, Dh)
        if self.rotary:  # queries and keys at once
            qk, v = heads.split([2 * self.n_heads, self.n_heads], dim=1)
            q, k = rotate(qk).chunk(2, dim=1)
        else:
            q, k, v = heads.chunk(3, dim=1)
        return q, k, v

    def project_q(self, x: Tensor) -> Tensor:
        """Project (B, T, D) to queries (B, H, T, Dh)."""
        return self._split_heads(self.qkv_proj.part(x, 0, 1))

    def project_kv(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Project (B, S, D) to keys and values, each (B, H, S, Dh)."""
        k, v = self.qkv_proj.part(memory, 1, 3).chunk(2, dim=-1)
        return self._split_heads(k), self._split_heads(v)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, causal: bool = False) -> Tensor:
        """Attend with projected heads (equation 1), concatenate them and project the result to the output.

        All attention in training and scoring passes through here; search has its own, in
        :mod:`mtformer.model.inference`, and CTranslate2 computes equation 1 only.

        Args:
            q: (B, H, T, Dh).
            k: (B, H, S, Dh).
            v: (B, H, S, Dh).
            mask: broadcast to (B, H, T, S), True = may attend.
            causal: apply :func:`causal_mask` without building it; instead of ``mask``.

        Returns:
            (B, T, D).

        Raises:
            TypeError: ``mask`` is not boolean. (Torch would add a mask of numbers to the scores.)
        """
        if mask is not None and mask.dtype != torch.bool:
            raise TypeError(f"an attention mask is boolean, True = may attend; this one has dtype {mask.dtype}")
        dropout_p = self.dropout.p if self.training else 0.0
        # On a CPU torch's fused attention has no dropout, and in bfloat16 it would take a fifth of a training step: its
        # backward pass is not vectorized.
        slow = q.device.type == "cpu" and (dropout_p > 0 or (q.dtype == torch.bfloat16 and torch.is_grad_enabled()))
        observer = self.observer  # which another thread may take away
        if observer is not None or slow:
            weights = attention_weights(q, k, causal_mask(q.size(2), q.device) if causal else mask)
            if observer is not None:
                observer(weights)
            heads = self.dropout(weights) @ v
        else:
            heads = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout_p, is_causal=causal)
        return self.out_proj(heads.transpose(1, 2).flatten(2))  # (B, H, T, Dh) → (B, T, D)

    def forward(self, query: Tensor, memory: Tensor, mask: Tensor | None = None, *, causal: bool = False) -> Tensor:
        """Let each position of ``query`` attend to ``memory``.

        Args:
            query: (B, T, D).
            memory: (B, S, D); the same tensor as ``query`` in self-attention.
            mask: broadcast to (B, H, T, S), True = may attend.
            causal: let each position attend to itself and those before it only; instead of ``mask``.

        Returns:
            (B, T, D).
        """
        q, k, v = self.project_qkv(query) if query is memory else (self.project_q(query), *self.project_kv(memory))
        return self.attend(q, k, v, mask, causal=causal)

    def _split_heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)  # (B, T, D) → (B, H, T, Dh)


@contextmanager
def record_attention(model: nn.Module) -> Iterator[dict[str, list[Tensor]]]:
    """Record the attention weights that ``model`` computes inside the ``with`` block.

    The dictionary has one entry for each attention that has run, by its name in the model, such as
    ``decoder_layers.0.cross_attention``: its weights, one tensor for each call, in order. A forward pass calls each
    attention once:

    - encoder self-attention: (B, H, S, S);
    - decoder self-attention: (B, H, T, T), or (N, H, 1, t) at step t of step-by-step decoding of N = B·K rows;
    - cross-attention: (B, H, T, S), or (B, H, K, S) at each step.

    Only calls of this thread are recorded; while they are, no other thread may record the same model.
    """
    thread = get_ident()
    recorded: dict[str, list[Tensor]] = defaultdict(list)
    attentions = {name: module for name, module in model.named_modules() if isinstance(module, MultiHeadAttention)}
    for name, attention in attentions.items():
        attention.observer = lambda weights, name=name: (
            recorded[name].append(weights.detach()) if get_ident() == thread else None
        )
    try:
        yield recorded
    finally:
        for attention in attentions.values():
            attention.observer = None
