"""Greedy search and sampling: one hypothesis a row, token by token, with the likeliest token or one that is drawn."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from mtformer.config import SearchOptions
from mtformer.search.candidates import Candidates, SearchObserver, SearchStep, likeliest
from mtformer.search.decoder import Decoder
from mtformer.search.engine import SearchRequest
from mtformer.search.hypothesis import NO_HYPOTHESIS, Hypothesis
from mtformer.search.processors import Prefixes, Processor, next_log_probs
from mtformer.support.errors import MtformerError

Choose = Callable[[Prefixes, Tensor, Tensor], Tensor]

_N_OBSERVED = 10  # candidates of a step, of which the search takes the first
_USUAL_NUCLEUS = 128  # tokens; finding these takes a fraction of sorting all
_BLOCK = 64  # tokens whose probabilities are summed first: summing is several times as fast as cumulative summing


def greedy_search(
    decoder: Decoder, n_sentences: int, processors: Sequence[Processor], observer: SearchObserver | None = None
) -> list[Hypothesis]:
    """Decode B sentences side by side; see :func:`decode_rows`.

    Args:
        decoder: at its start, with B sentences.
        n_sentences: B.
        processors: applied to each step in order; they must see to it that every sentence ends.
        observer: called with each step.

    Returns:
        One hypothesis for each sentence.

    Raises:
        MtformerError: the model predicts NaN, or no hypothesis is possible.
    """

    def choose(prefixes: Prefixes, token_log_probs: Tensor, log_probs: Tensor) -> Tensor:
        best, _, tokens = likeliest(log_probs[:, None], log_probs.new_zeros(len(log_probs), 1), 1)  # (n, 1)
        if best.isneginf().any():
            raise MtformerError(NO_HYPOTHESIS)
        if observer is not None:
            observer(_step(prefixes, token_log_probs, log_probs, decoder.special_ids.eos))
        return tokens

    return decode_rows(decoder, n_sentences, processors, choose)


def _step(prefixes: Prefixes, token_log_probs: Tensor, log_probs: Tensor, eos: int) -> SearchStep:
    """Describe a step by its likeliest candidates (n, C), given log probabilities (n, t - 1) before and (n, V) next."""
    best, tokens = log_probs.topk(min(_N_OBSERVED, log_probs.size(1)))
    candidates = Candidates(token_log_probs.sum(dim=1, keepdim=True) + best, torch.zeros_like(tokens), tokens, best)
    finished = (tokens == eos) & (torch.arange(tokens.size(1), device=tokens.device) == 0)
    return SearchStep(prefixes, candidates, torch.zeros_like(tokens[:, :1]), finished)


def decode_rows(decoder: Decoder, n_rows: int, processors: Sequence[Processor], choose: Choose) -> list[Hypothesis]:
    """Decode N rows side by side; each leaves the batch when it ends.

    Args:
        decoder: at its start, with N sentences.
        n_rows: N.
        processors: applied to each step in order; they must see to it that every row ends.
        choose: returns the next token (n, 1) of each row, given the prefixes, the log probabilities (n, t - 1) of their
            tokens, and those of the next token (n, V); raises MtformerError if none is possible.

    Returns:
        One hypothesis for each row.

    Raises:
        MtformerError: the model predicts NaN, or no hypothesis is possible.
    """
    hypotheses: list[Hypothesis] = [Hypothesis([], [])] * n_rows
    rows = torch.arange(n_rows, device=decoder.device)  # (n,): those that have not ended
    ids = torch.full((n_rows, 1, 1), decoder.special_ids.start, device=decoder.device)  # (n, 1, t)
    token_log_probs = torch.empty(n_rows, 0, device=decoder.device)  # (n, t - 1)
    penalties = torch.zeros(n_rows, device=decoder.device)  # (n,)
    while len(rows):
        prefixes = Prefixes(ids, rows)
        processed, own = next_log_probs(decoder, prefixes, processors)  # (n, 1, V)
        tokens = choose(prefixes, token_log_probs, processed[:, 0])  # (n, 1)
        chosen = own[:, 0].gather(1, tokens)  # (n, 1)
        if own is not processed:
            penalties = penalties + (chosen - processed[:, 0].gather(1, tokens))[:, 0]
        ids = torch.cat([ids, tokens[:, :, None]], dim=2)
        token_log_probs = torch.cat([token_log_probs, chosen], dim=1)
        is_eos = tokens[:, 0] == decoder.special_ids.eos
        if is_eos.any():
            columns = (rows, ids[:, 0, 1:-1], token_log_probs, penalties)
            for row, *values in zip(*(column[is_eos].tolist() for column in columns), strict=True):
                hypotheses[row] = Hypothesis(*values)
            kept = (~is_eos).nonzero()[:, 0]
            rows, ids, token_log_probs, penalties = rows[kept], ids[kept], token_log_probs[kept], penalties[kept]
            decoder.select(kept, torch.zeros_like(kept)[:, None])
    return hypotheses


def sample(
    decoder: Decoder,
    requests: Sequence[SearchRequest],
    limits: Sequence[int],
    options: SearchOptions,
    processors: Sequence[Processor],
) -> list[list[Hypothesis]]:
    """Draw ``options.n_best`` translations of each of B sentences, independently.

    The random numbers of a sentence depend on the seed and on its source alone, so that its samples are the same in
    any batch. The first samples of many are those of fewer. Each sample leaves the batch when it ends.

    Args:
        decoder: at its start, with N sentences: each of the B sentences ``options.n_best`` times in a row.
        requests: the N sentences.
        limits: the maximum length of each of their hypotheses in tokens, EOS not counted.
        options: the number of samples, and which tokens they are drawn from.
        processors: for the N sentences, applied to each step in order; they must enforce ``limits``.

    Returns:
        For each of the B sentences its samples, in the order of their numbers.

    Raises:
        MtformerError: the model predicts NaN, or no hypothesis is possible.
    """
    uniforms = _uniforms(requests, limits, options).to(decoder.device)  # (N, L)

    def choose(prefixes: Prefixes, _token_log_probs: Tensor, log_probs: Tensor) -> Tensor:
        probabilities = token_probabilities(log_probs, options)
        if probabilities[:, 0].isnan().any():  # every token has probability 0
            raise MtformerError(NO_HYPOTHESIS)
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
    """Return which of the ``probabilities`` (n, m), laid end to end, ``places`` (n, 1) lie in, and how far inside."""
    ends = probabilities.cumsum(dim=-1)
    below = ends[..., -1:].nextafter(torch.zeros_like(places))  # rounding must not lead beyond the end
    interval = torch.searchsorted(ends, torch.minimum(places, below), right=True)
    return interval, (places - (ends - probabilities).gather(-1, interval)).clamp(min=0)


def _uniforms(requests: Sequence[SearchRequest], limits: Sequence[int], options: SearchOptions) -> Tensor:
    """Return random numbers (N, L) between 0 and 1, one for each token of each sample.

    Those of a sample do not depend on how many samples there are, nor on how long they may be.
    """
    uniforms = np.zeros((len(requests), max(limits, default=0) + 1), dtype=np.float32)
    for row, (request, limit) in enumerate(zip(requests, limits, strict=True)):
        generator = np.random.default_rng([options.seed, row % options.n_best, *request.src])
        uniforms[row, : limit + 1] = generator.random(limit + 1, dtype=np.float32)
    return torch.from_numpy(uniforms)
