"""The likeliest continuations of the beams, faster than ``torch.topk`` finds them among many."""

import torch
import torch.nn.functional as F
from torch import Tensor

_BLOCK = 64  # tokens


def likeliest(log_probs: Tensor, totals: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the likeliest continuations of the K beams of each sentence, best first.

    The C likeliest are in the C blocks of tokens with the largest maxima, so that only those need to be searched.
    Maxima are cheap to compute, where ``torch.topk`` looks at each value on its own.

    Args:
        log_probs: (n, K, V) of the next token.
        totals: (n, K) what to add for each beam: the log probability of its prefix.
        count: C, at most K·V.

    Returns:
        The sums, the beams and the tokens, (n, C) each.
    """
    n, k, vocab_size = log_probs.shape
    if -vocab_size % _BLOCK:
        log_probs = F.pad(log_probs, (0, -vocab_size % _BLOCK), value=float("-inf"))
    blocks = log_probs.unflatten(2, (-1, _BLOCK))  # (n, K, M, 64)
    n_blocks = blocks.size(2)
    maxima = blocks.amax(dim=3).add_(totals[:, :, None]).flatten(1)  # (n, K·M)
    chosen = maxima.topk(min(count, k * n_blocks), sorted=False).indices  # (n, C), or all of them
    beams = chosen // n_blocks
    rows = torch.arange(n, device=log_probs.device)[:, None]
    sums = blocks.flatten(1, 2)[rows, chosen].add_(totals.gather(1, beams)[:, :, None])  # (n, C, 64)
    best, places = sums.flatten(1).topk(count)
    block = places // _BLOCK
    tokens = (chosen % n_blocks).gather(1, block) * _BLOCK + places % _BLOCK
    return best, beams.gather(1, block), tokens.clamp_(max=vocab_size - 1)  # padding if nothing else is possible
