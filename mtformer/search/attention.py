"""Soft alignments: where the decoder looks in the source while it writes and reads a translation that is given."""

from collections.abc import Iterator, Sequence
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mtformer.data.batches import pad
from mtformer.data.filling import fill_batches, longest_first
from mtformer.header import AlignmentHead
from mtformer.model.layers import DecoderLayer
from mtformer.model.tap import record_attention
from mtformer.model.transformer import Transformer
from mtformer.text.tokenizer import BOS_ID, PAD_ID

_BATCH_TOKENS = 4096


def all_heads(model: Transformer) -> list[AlignmentHead]:
    """Return every head, each with the step that predicts."""
    layers = cast(Sequence[DecoderLayer], model.decoder_layers)  # nn.ModuleList does not know the type of its items
    return [
        AlignmentHead(layer=number, head=head, reading=False)
        for number, layer in enumerate(layers)
        for head in range(layer.cross_attention.n_heads)
    ]


def soft_alignments(
    model: Transformer,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    heads: Sequence[AlignmentHead],
) -> list[NDArray[np.float32]]:
    """Return for each pair (T, S), the mean of the weights of ``heads``; see :meth:`mtformer.search.Engine.align`."""
    found: list[NDArray[np.float32]] = [np.empty((0, 0), np.float32)] * len(sources)
    for i, weights in cross_attention(model, sources, targets):
        found[i] = torch.stack([of_head(weights, head) for head in heads]).mean(dim=0).numpy()
    return found


def of_head(weights: Tensor, head: AlignmentHead) -> Tensor:
    """Return (T, S), the rows of a head in the weights (L, H, T + 1, S) of a pair."""
    rows = weights[head.layer, head.head]
    return rows[1:] if head.reading else rows[:-1]


@torch.inference_mode()
def cross_attention(
    model: Transformer, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> Iterator[tuple[int, Tensor]]:
    """Yield for each pair its index and the weights (L, H, T + 1, S) of all cross-attention, by teacher forcing.

    The first row is that of the step that reads BOS and predicts the first token; the last one reads the last token.

    Args:
        model: in evaluation mode.
        sources: ids, EOS last.
        targets: ids without EOS.
    """
    device = next(model.parameters()).device
    lengths = [max(len(src), len(tgt) + 1) for src, tgt in zip(sources, targets, strict=True)]
    for batch in fill_batches(longest_first(lengths), lengths, _BATCH_TOKENS):
        src = pad([sources[i] for i in batch]).to(device)  # (B, S)
        tgt_in = pad([[BOS_ID, *targets[i]] for i in batch]).to(device)  # (B, T + 1)
        with record_attention(model.decoder_layers) as recorded:
            model(src, src != PAD_ID, tgt_in)
        layers = [recorded[f"{layer}.cross_attention"][0] for layer in range(len(model.decoder_layers))]
        for row, i in enumerate(batch):
            n_rows, n_columns = len(targets[i]) + 1, len(sources[i])
            yield i, torch.stack([weights[row, :, :n_rows, :n_columns] for weights in layers]).float().cpu()
