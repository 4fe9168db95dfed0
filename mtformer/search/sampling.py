"""Sampling: draw each token by its probability instead of choosing the best."""

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from mtformer.config import SearchOptions
from mtformer.search.decoder import Decoder
from mtformer.search.engine import SearchRequest
from mtformer.search.greedy import decode_rows
from mtformer.search.hypothesis import NO_HYPOTHESIS, PREDICTS_NAN, Hypothesis
from mtformer.search.processors import Prefixes, Processor
from mtformer.support.errors import MtformerError

_USUAL_NUCLEUS = 128  # tokens; finding these takes a fraction of sorting all
_BLOCK = 64  # tokens whose probabilities are summed first: summing is several times as fast as cumulative summing


def sample(
    decoder: Decoder, requests: Sequence[SearchRequest], processors: Sequence[Processor]
) -> list[list[Hypothesis]]:
    """Draw ``options.n_best`` translations of each of B sentences, independently.

    The random numbers of a sentence depend on the seed and on its source alone, so that its samples are the same in
    any batch. The first samples of many are those of fewer. Each sample leaves the batch when it ends.

    Args:
        decoder: at its start, with N sentences: each of the B sentences ``options.n_best`` times in a row.
        requests: the N sentences, with the same options.
        processors: for the N sentences, applied to each step in order; they must enforce the limits.

    Returns:
        For each of the B sentences its samples, in the order of their numbers.

    Raises:
        MtformerError: the model predicts NaN, or no hypothesis is possible.
    """
    options = requests[0].options
    uniforms = _uniforms(requests).to(decoder.device)  # (N, L)

    def choose(prefixes: Prefixes, _token_log_probs: Tensor, log_probs: Tensor) -> Tensor:
        probabilities = token_probabilities(log_probs, options)
        if probabilities[:, 0].isnan().any():  # every token has probability 0 or NaN
            raise MtformerError(PREDICTS_NAN if log_probs.isnan().any() else NO_HYPOTHESIS)
        return draw(probabilities, uniforms[prefixes.sentences, prefixes.length])[:, None]

    samples, n = decode_rows(decoder, len(requests), processors, choose), options.n_best
    return [samples[start : start + n] for start in range(0, len(samples), n)]


def token_probabilities(log_probs: Tensor, options: SearchOptions) -> Tensor:
    """Return the probabilities (…, V) that tokens are drawn with, not normalized, for log probabilities (…, V).

    The temperature comes first; then ``top_k`` and ``top_p`` (nucleus sampling, Holtzman et al. 2020, section 3.1) each
    remove tokens, of which the likeliest always stays. Tokens as likely as the last one that stays do, too.
    """
    likeliest = log_probs.max(dim=-1, keepdim=True).values  # is 0 below, lest a low temperature overflow
    tiny = torch.finfo(log_probs.dtype).tiny  # smaller numbers would be 0 there
    temperature, top_p = max(options.temperature, tiny), max(options.top_p, tiny)
    logits = log_probs if temperature == 1 else (log_probs - likeliest) / temperature
    probabilities = logits.softmax(dim=-1)
    if 0 < options.top_k < probabilities.size(-1):
        last = probabilities.topk(options.top_k).values[..., -1:]
        probabilities = probabilities.masked_fill(probabilities < last, 0.0)
    if top_p < 1:
        sizes = top_p * probabilities.sum(dim=-1, keepdim=True)
        last, is_found = _last_in_nucleus(probabilities.topk(min(_USUAL_NUCLEUS, probabilities.size(-1))).values, sizes)
        if not is_found.all():
            last, _ = _last_in_nucleus(probabilities.sort(dim=-1, descending=True).values, sizes)
        probabilities = probabilities.masked_fill(probabilities < last, 0.0)
    return probabilities


def _last_in_nucleus(ordered: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
    """Return the last of the likeliest probabilities (…, m) needed to reach ``sizes`` (…, 1), and whether m suffice."""
    totals = ordered.cumsum(dim=-1)
    in_nucleus = totals - ordered < sizes  # what is likelier does not reach the size
    last = ordered.masked_fill(~in_nucleus, 1.0).min(dim=-1, keepdim=True).values
    return last, totals[..., -1:] >= sizes


def draw(probabilities: Tensor, uniforms: Tensor) -> Tensor:
    """Return tokens (n,) drawn with probabilities (n, V), not normalized, by numbers (n,) between 0 and 1."""
    blocks = F.pad(probabilities, (0, -probabilities.size(-1) % _BLOCK)).unflatten(-1, (-1, _BLOCK))  # (n, V/b, b)
    sums = blocks.sum(dim=-1)  # (n, V/b)
    block, place = _find(sums, uniforms[:, None] * sums.sum(dim=-1, keepdim=True))  # (n, 1)
    inside, _ = _find(blocks.gather(1, block[:, :, None].expand(-1, -1, _BLOCK))[:, 0], place)
    return (block * _BLOCK + inside)[:, 0]


def _find(probabilities: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
    """Return the cell of cumulated ``probabilities`` (n, m) that each of ``places`` (n, 1) is in, and its offset."""
    ends = probabilities.cumsum(dim=-1)
    below = ends[..., -1:].nextafter(torch.zeros_like(places))  # rounding must not lead beyond the end
    interval = torch.searchsorted(ends, torch.minimum(places, below), right=True)
    return interval, (places - (ends - probabilities).gather(-1, interval)).clamp(min=0)


def _uniforms(requests: Sequence[SearchRequest]) -> Tensor:
    """Return random numbers (N, L) between 0 and 1, one for each token of each sample.

    Those of a sample do not depend on how many samples there are, nor on how long they may be.
    """
    lengths = [request.effective_limit + 1 for request in requests]
    uniforms = np.zeros((len(requests), max(lengths)), dtype=np.float32)
    for row, (request, length) in enumerate(zip(requests, lengths, strict=True)):
        generator = np.random.default_rng([request.options.seed, row % request.options.n_best, *request.src])
        uniforms[row, :length] = generator.random(length, dtype=np.float32)
    return torch.from_numpy(uniforms)
