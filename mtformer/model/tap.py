"""The attention tap: record the weights of every attention of a model. Legend of shapes: see :mod:`mtformer.model`."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident

from torch import Tensor, nn

from mtformer.model.attention import MultiHeadAttention


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
