"""Encoder and decoder layers (sections 3.1 and 3.3 of the paper). Legend of shapes: see :mod:`mtformer.model`."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mtformer.config import ModelConfig
from mtformer.model.attention import MultiHeadAttention
from mtformer.model.dropout import Dropout


class FeedForward(nn.Module):
    """The position-wise network of equation 2: max(0, x·W1 + b1)·W2 + b2."""

    def __init__(self, *, d_model: int, d_ff: int, activation: Callable[[Tensor], Tensor] = F.relu) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, D) to (B, T, D)."""
        return self.linear2(self.activation(self.linear1(x)))


class GatedFeedForward(nn.Module):
    """SwiGLU (Shazeer 2020, equation 6): (Swish(x·W1) ⊗ x·V)·W2, with the biases of equation 2."""

    def __init__(self, *, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d_model, 2 * d_ff)  # W1 and V, one below the other
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, D) to (B, T, D)."""
        gate, value = self.linear1(x).chunk(2, dim=-1)
        return self.linear2(F.silu(gate) * value)


def feed_forward(config: ModelConfig) -> FeedForward | GatedFeedForward:
    """Make the network that ``config`` asks for."""
    if config.feed_forward == "swiglu":
        return GatedFeedForward(d_model=config.d_model, d_ff=config.d_ff)
    activation = F.gelu if config.feed_forward == "gelu" else F.relu
    return FeedForward(d_model=config.d_model, d_ff=config.d_ff, activation=activation)


def make_norm(config: ModelConfig) -> nn.Module:
    """Make the normalization that ``config`` asks for."""
    if config.norm_type == "rmsnorm":
        return nn.RMSNorm(config.d_model, eps=1e-6)
    return nn.LayerNorm(config.d_model)


def make_attention(config: ModelConfig, *, rotary: bool = False) -> MultiHeadAttention:
    """Make an attention of a layer; ``rotary`` lets that of a layer to itself see the order of the tokens."""
    return MultiHeadAttention(
        d_model=config.d_model, n_heads=config.n_heads, rotary=rotary, dropout=config.attention_dropout
    )


class Residual(nn.Module):
    """What surrounds each sub-layer: dropout, residual sum and normalization.

    Post-norm is the paper's Norm(x + Sublayer(x)); pre-norm is x + Sublayer(Norm(x)) (Xiong et al. 2020).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = make_norm(config)
        self.dropout = Dropout(config.dropout)
        self.norm_first = config.norm == "pre"

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Map (B, T, D) to (B, T, D)."""
        if self.norm_first:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = make_attention(config, rotary=config.positions == "rotary")
        self.feed_forward = feed_forward(config)
        self.residuals = nn.ModuleList(Residual(config) for _ in range(2))

    def forward(self, x: Tensor, src_mask: Tensor | None) -> Tensor:
        """Map (B, S, D) to (B, S, D); ``src_mask`` broadcasts to (B, H, S, S)."""
        x = self.residuals[0](x, lambda y: self.self_attention(y, y, src_mask))
        return self.residuals[1](x, self.feed_forward)


@dataclass
class LayerCache:
    """What a decoder layer keeps between decoding steps, so that each step computes one position only.

    It serves B sentences with K beams each, N = B·K rows in all, sentence by sentence.

    Attributes:
        memory_k, memory_v: (B, H, S, Dh), the memory's keys and values, which all beams of a sentence share.
        self_k, self_v: (N, H, t, Dh), those of the t positions decoded so far; None before the first.
    """

    memory_k: Tensor
    memory_v: Tensor
    self_k: Tensor | None = None
    self_v: Tensor | None = None

    @property
    def length(self) -> int:
        """The number of positions decoded so far."""
        return 0 if self.self_k is None else self.self_k.size(2)

    def extend(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Add the keys and values (N, H, 1, Dh) of a new position and return those of all."""
        if self.self_k is not None and self.self_v is not None:
            k, v = torch.cat([self.self_k, k], dim=2), torch.cat([self.self_v, v], dim=2)
        self.self_k, self.self_v = k, v
        return k, v

    def select(self, sentences: Tensor | None, rows: Tensor) -> "LayerCache":
        """Return the cache of the given sentences (B',), None meaning all, and of their rows (N',)."""
        self_k = None if self.self_k is None else self.self_k[rows]
        self_v = None if self.self_v is None else self.self_v[rows]
        if sentences is None:
            return LayerCache(self.memory_k, self.memory_v, self_k, self_v)
        return LayerCache(self.memory_k[sentences], self.memory_v[sentences], self_k, self_v)


class DecoderLayer(nn.Module):
    """Causal self-attention, attention to the memory, and feed-forward."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attention = make_attention(config, rotary=config.positions == "rotary")
        self.cross_attention = make_attention(config)
        self.feed_forward = feed_forward(config)
        self.residuals = nn.ModuleList(Residual(config) for _ in range(3))

    def forward(self, x: Tensor, memory: Tensor, src_mask: Tensor | None) -> Tensor:
        """Map (B, T, D) to (B, T, D), all positions at once, each seeing only itself and those before it.

        Args:
            x: (B, T, D).
            memory: (B, S, D), the encoder's output.
            src_mask: broadcast to (B, H, T, S), True = may attend.
        """
        x = self.residuals[0](x, lambda y: self.self_attention(y, y, causal=True))
        x = self.residuals[1](x, lambda y: self.cross_attention(y, memory, src_mask))
        return self.residuals[2](x, self.feed_forward)

    def start_cache(self, memory: Tensor) -> LayerCache:
        """Compute the memory's keys and values once for all steps, from the memory (B, S, D)."""
        return LayerCache(*self.cross_attention.project_kv(memory))

    def step(self, x: Tensor, cache: LayerCache, src_mask: Tensor | None) -> Tensor:
        """Map one new position (N, 1, D) to (N, 1, D), adding it to ``cache``; ``src_mask`` is (B, 1, 1, S)."""

        def attend_to_self(y: Tensor) -> Tensor:
            q, k, v = self.self_attention.project_qkv(y, start=cache.length)
            return self.self_attention.attend(q, *cache.extend(k, v))

        def attend_to_memory(y: Tensor) -> Tensor:
            beams = y.view(len(cache.memory_k), -1, y.size(-1))  # (B, K, D): a sentence's beams are its queries
            q = self.cross_attention.project_q(beams)  # (B, H, K, Dh)
            return self.cross_attention.attend(q, cache.memory_k, cache.memory_v, src_mask).view_as(y)

        x = self.residuals[0](x, attend_to_self)
        x = self.residuals[1](x, attend_to_memory)
        return self.residuals[2](x, self.feed_forward)
