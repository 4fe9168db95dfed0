"""Greedy search: the likeliest piece at each step, until EOS."""

from collections.abc import Sequence

import torch

from mtformer.search.decoder import Decoder
from mtformer.search.hypothesis import Hypothesis, length_penalty
from mtformer.text.tokenizer import BOS_ID, EOS_ID


def greedy_search(
    decoder: Decoder, max_lengths: Sequence[int], *, alpha: float = 0.0, device: torch.device | None = None
) -> list[Hypothesis]:
    """Decode B sentences side by side; a sentence that has ended takes no more part.

    Args:
        decoder: at its start, with B rows.
        max_lengths: the most pieces, EOS not counted, each sentence may get; then it is ended by EOS.
        alpha: the exponent of the length penalty, for the scores.
        device: where the decoder computes.

    Returns:
        One hypothesis a sentence.
    """
    active = torch.arange(len(max_lengths), device=device)  # (N,) the sentence of each row
    limits = torch.tensor(max_lengths, device=device)  # (N,)
    tokens = torch.full_like(active, BOS_ID)  # (N,)
    log_probs = torch.zeros(len(max_lengths), device=device)  # (B,)
    ids: list[list[int]] = [[] for _ in max_lengths]
    length = 0
    while len(active):
        step_log_probs = decoder.step(tokens)  # (N, V)
        best, tokens = step_log_probs.max(dim=-1)  # (N,), (N,)
        at_limit = length >= limits
        tokens = tokens.masked_fill(at_limit, EOS_ID)
        log_probs[active] += torch.where(at_limit, step_log_probs[:, EOS_ID], best)
        going_on = tokens != EOS_ID
        if not going_on.all():
            rows = going_on.nonzero()[:, 0]
            decoder.select(rows)
            active, limits, tokens = active[rows], limits[rows], tokens[rows]
        for sentence, token in zip(active.tolist(), tokens.tolist(), strict=True):
            ids[sentence].append(token)
        length += 1
    return [
        Hypothesis(pieces, log_prob, log_prob / length_penalty(len(pieces) + 1, alpha))
        for pieces, log_prob in zip(ids, log_probs.tolist(), strict=True)
    ]
