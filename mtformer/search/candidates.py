"""The continuations that a step of a search considers, and the likeliest of all of them."""

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from mtformer.search.processors import Prefixes

_BLOCK = 64  # tokens


class Candidates(NamedTuple):
    """Continuations (n, C) of the beams of each sentence.

    Attributes:
        log_probs: of the whole prefix; -inf where a sentence has fewer candidates.
        beams: the beam that each continues.
        tokens: the token that each appends.
        token_log_probs: the log probability of that token.
    """

    log_probs: Tensor
    beams: Tensor
    tokens: Tensor
    token_log_probs: Tensor


class SearchStep(NamedTuple):
    """One step of a search.

    Attributes:
        prefixes: the beams that are continued.
        candidates: (n, C) the continuations that the search considers.
        chosen: (n, K) which candidates are the next beams.
        finished: (n, C) whether a candidate is a finished translation.
    """

    prefixes: Prefixes
    candidates: Candidates
    chosen: Tensor
    finished: Tensor


SearchObserver = Callable[[SearchStep], object]


def likeliest(log_probs: Tensor, totals: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the likeliest continuations of the K beams of each sentence, best first, faster than ``torch.topk``.

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
