"""Encoder and decoder layers (sections 3.1 and 3.3 of the paper). Legend of shapes: see :mod:`mtformer.model`."""

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from mtformer.model import positions
from mtformer.model.architecture import ACTIVATIONS, POSITIONS, Architecture
from mtformer.model.attention import MultiHeadAttention
from mtformer.model.dropout import Dropout
from mtformer.model.lora import Linear


class FeedForward(nn.Module):
    """The position-wise network of equation 2: max(0, x·W1 + b1)·W2 + b2, or with another activation than ReLU."""

    def __init__(self, *, d_model: int, d_ff: int, activation: Callable[[Tensor], Tensor] = F.relu) -> None:
        super().__init__()
        self.linear1 = Linear(d_model, d_ff)
        self.linear2 = Linear(d_ff, d_model)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, D) to (B, T, D)."""
        return self.linear2(self.activation(self.linear1(x)))


def make_feed_forward(architecture: Architecture) -> FeedForward:
    """Make the network of a layer."""
    activation = getattr(F, ACTIVATIONS[architecture.activation].function)
    return FeedForward(d_model=architecture.d_model, d_ff=architecture.d_ff, activation=activation)


def make_positions(architecture: Architecture) -> nn.Module:
    """Make the module whose encodings are added to the embeddings of a stack."""
    module = getattr(positions, POSITIONS[architecture.positions].module)
    encoding: nn.Module = module(d_model=architecture.d_model, n_positions=architecture.max_length)
    return encoding


def make_attention(architecture: Architecture, *, to_itself: bool) -> MultiHeadAttention:
    """Make an attention of a layer; one ``to_itself`` sees the order of the tokens if the positions are rotary."""
    return MultiHeadAttention(
        d_model=architecture.d_model,
        n_heads=architecture.n_heads,
        rotary=to_itself and POSITIONS[architecture.positions].is_rotary,
        dropout=architecture.attention_dropout,
    )


class Residual(nn.Module):
    """The frame of each sub-layer: dropout, residual sum and normalization.

    Post-norm is the paper's Norm(x + Sublayer(x)); pre-norm is x + Sublayer(Norm(x)) (Xiong et al. 2020).
    """

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(architecture.d_model)
        self.dropout = Dropout(architecture.dropout)
        self.norm_first = architecture.norm == "pre"

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Map (B, T, D) to (B, T, D)."""
        if self.norm_first:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.self_attention = make_attention(architecture, to_itself=True)
        self.feed_forward = make_feed_forward(architecture)
        self.residuals = nn.ModuleList(Residual(architecture) for _ in range(2))

    def forward(self, x: Tensor, src_mask: Tensor | None) -> Tensor:
        """Map (B, S, D) to (B, S, D); ``src_mask`` broadcasts to (B, H, S, S)."""
        x = self.residuals[0](x, lambda y: self.self_attention(y, y, src_mask))
        return self.residuals[1](x, self.feed_forward)


class DecoderLayer(nn.Module):
    """Causal self-attention, attention to the memory, and feed-forward."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.self_attention = make_attention(architecture, to_itself=True)
        self.cross_attention = make_attention(architecture, to_itself=False)
        self.feed_forward = make_feed_forward(architecture)
        self.residuals = nn.ModuleList(Residual(architecture) for _ in range(3))

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
