"""Soft alignments: where the decoder looks in the source while it writes and reads a translation that is given."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mtformer.bundle.header import AlignmentHead, all_heads
from mtformer.data.batches import pad
from mtformer.model.attention import record_attention
from mtformer.model.transformer import Transformer
from mtformer.search.engine import AlignRequest, fill_batches, longest_first


def soft_alignments(
    model: Transformer, requests: Sequence[AlignRequest], heads: Sequence[AlignmentHead]
) -> list[NDArray[np.float32]]:
    """Return the mean weights of ``heads``, (T, S) for each pair; see :class:`.AlignRequest`."""
    return [
        torch.stack([of_head(weights, head) for head in heads]).mean(dim=0).numpy()
        for weights in cross_attention(model, requests)
    ]


def of_head(weights: Tensor, head: AlignmentHead) -> Tensor:
    """Return (T, S), the rows of a head in the weights (L, H, T + 1, S) of a pair."""
    rows = weights[head.layer, head.head]
    return rows[1:] if head.reading else rows[:-1]


@torch.inference_mode()
def cross_attention(model: Transformer, requests: Sequence[AlignRequest]) -> Iterator[Tensor]:
    """Yield for each pair of a batch the weights (L, H, T + 1, S) of all cross-attention, by teacher forcing.

    The first row is that of the step that predicts the first token; the last one reads the last token.

    Args:
        model: in evaluation mode.
        requests: the pairs, with the same forced ids, which have no row.
    """
    device, special_ids = model.device, model.architecture.special_ids
    first = len(requests[0].forced)
    start = [special_ids.start, *requests[0].forced]
    src = pad([request.src for request in requests], special_ids.pad).to(device)  # (B, S)
    tgt_in = pad([[*start, *request.tgt] for request in requests], special_ids.pad).to(device)  # (B, F + T + 1)
    with record_attention(model.decoder_layers) as recorded:
        model(src, src != special_ids.pad, tgt_in)
    layers = [recorded[f"{layer}.cross_attention"][0] for layer in range(len(model.decoder_layers))]
    for row, request in enumerate(requests):
        end, n_columns = first + len(request.tgt) + 1, len(request.src)
        yield torch.stack([weights[row, :, first:end, :n_columns] for weights in layers]).float().cpu()


_BATCH_TOKENS = 4096
_MAX_TOKENS = 10_000  # of the target: with fewer, the choice depends more on which they are
_MAX_SOURCE = 60  # tokens of a source
_LEAST_GAIN = 0.03  # nats; heads that add less align worse together


def choose_heads(model: Transformer, requests: Sequence[AlignRequest]) -> list[AlignmentHead]:
    """Choose the heads whose mean attention links words most consistently.

    The measure is the mutual information of the two tokens of a link, over all links from a target token to the source
    token that it attends to most: it is high if a word's translations are always linked to it, and 0 if links are
    arbitrary. The best head aligns alone, or with all others of its layer if that is clearly better. They align in the
    step that predicts a token, or all in the one that reads it. CTranslate2 can do that, and no other choice.

    Args:
        model: in evaluation mode.
        requests: the pairs.

    Returns:
        One head or more; none if no pair is of a usual length.
    """
    requests = _sample(requests)
    if not requests:
        return []
    src, tgt, weights, heads = _all_weights(model, requests)
    measures = [_information(src, tgt, of_one) for of_one in weights]
    best = int(np.argmax(measures))
    group = [i for i, head in enumerate(heads) if head.group == heads[best].group]
    is_alone = _information(src, tgt, weights[group].sum(axis=0)) < measures[best] + _LEAST_GAIN
    return [heads[best]] if is_alone else [heads[i] for i in group]


def _sample(requests: Sequence[AlignRequest]) -> list[AlignRequest]:
    """Return the first pairs of a usual length."""
    chosen, n_tokens = list[AlignRequest](), 0
    for request in requests:
        is_usual = 1 < len(request.src) <= _MAX_SOURCE and 0 < len(request.tgt) <= 2 * _MAX_SOURCE
        if is_usual and n_tokens < _MAX_TOKENS:
            chosen.append(request)
            n_tokens += len(request.tgt)
    return chosen


def _all_weights(
    model: Transformer, requests: Sequence[AlignRequest]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32], list[AlignmentHead]]:
    """Return source tokens (N, S), target tokens (N,), weights (C, N, S) and the C candidates, for N target tokens."""
    predicting = all_heads(model.architecture)
    heads = [*predicting, *(head.model_copy(update={"reading": True}) for head in predicting)]
    longest = max(len(request.src) for request in requests) - 1  # EOS says nothing about a word
    lengths = [max(len(request.src), len(request.tgt) + 1) for request in requests]
    src_parts, tgt_parts, parts = [], [], []
    for indices in fill_batches(longest_first(lengths), lengths, _BATCH_TOKENS):
        batch = [requests[i] for i in indices]
        for request, weights in zip(batch, cross_attention(model, batch), strict=True):
            src, tgt = np.array(request.src[:-1]), np.array(request.tgt)
            padding = (0, longest - len(src))
            src_parts.append(np.tile(np.pad(src, padding), (len(tgt), 1)))
            tgt_parts.append(tgt)
            rows = torch.stack([of_head(weights, head) for head in heads])[:, :, :-1].numpy()
            parts.append(np.pad(rows, ((0, 0), (0, 0), padding)))
    return np.concatenate(src_parts), np.concatenate(tgt_parts), np.concatenate(parts, axis=1), heads


def _information(src: NDArray[np.int64], tgt: NDArray[np.int64], weights: NDArray[np.float32]) -> float:
    """Return the mutual information in nats of target tokens (N,) and the source tokens with the most weight (N, S)."""
    linked = np.take_along_axis(src, weights.argmax(axis=1)[:, None], axis=1)[:, 0]
    both = linked * (tgt.max() + 1) + tgt
    return _entropy(linked) + _entropy(tgt) - _entropy(both)


def _entropy(values: NDArray[np.int64]) -> float:
    _, counts = np.unique(values, return_counts=True)
    shares = counts / len(values)
    return float(-(shares * np.log(shares)).sum())
