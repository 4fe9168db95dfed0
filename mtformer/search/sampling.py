"""Sampling: draw each token by its probability instead of choosing the best."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from mtformer.config import SearchOptions
from mtformer.errors import MtformerError
from mtformer.search.decoder import Decoder
from mtformer.search.engine import Request
from mtformer.search.hypothesis import NO_HYPOTHESIS, Hypothesis
from mtformer.search.processors import Prefixes, Processor, next_log_probs
from mtformer.text.tokenizer import BOS_ID, EOS_ID


def sample(
    decoder: Decoder,
    requests: Sequence[Request],
    limits: Sequence[int],
    options: SearchOptions,
    processors: Sequence[Processor],
) -> list[list[Hypothesis]]:
    """Draw K = ``options.n_best`` translations of each of B sentences, independently.

    The random numbers of a sentence depend on the seed and on its source alone, so that its samples are the same in
    any batch. The first samples of many are those of fewer.

    Args:
        decoder: at its start, with B sentences.
        requests: the B sentences.
        limits: the maximum length of each sentence's hypotheses in tokens, EOS not counted.
        options: the number of samples, and which tokens they are drawn from.
        processors: applied to each step in order; they must enforce ``limits``.

    Returns:
        For each sentence its samples, in the order of their numbers.

    Raises:
        MtformerError: the model predicts NaN, or no hypothesis is possible.
    """
    found: list[list[Hypothesis]] = [[Hypothesis([], [])] * options.n_best for _ in requests]
    uniforms = _uniforms(requests, limits, options).to(decoder.device)  # (B, K, L)
    rows = _start(decoder, len(requests), options.n_best)
    while len(rows.prefixes.sentences):
        processed, own = next_log_probs(decoder, rows.prefixes, processors)
        if (rows.unfinished & (processed.max(dim=2).values == float("-inf"))).any():
            raise MtformerError(NO_HYPOTHESIS)
        noise = uniforms[rows.prefixes.sentences[:, None], rows.numbers, rows.prefixes.length]  # (n, K)
        tokens = draw(token_probabilities(processed, options), noise)
        rows = _extended(rows, tokens, processed, own)
        ended = rows.unfinished & (tokens == EOS_ID)
        if ended.any():
            _collect(rows, ended, found)
            rows = _without(decoder, rows, ended)
    return found


def token_probabilities(log_probs: Tensor, options: SearchOptions) -> Tensor:
    """Return the probabilities (…, V) that tokens are drawn with, not normalized, for log probabilities (…, V).

    The temperature comes first; then ``top_k``, ``top_p`` (nucleus sampling, Holtzman et al. 2020, section 3.1) and
    ``epsilon`` (Hewitt et al. 2022, section 3.2) each remove tokens, of which the likeliest always stays. Tokens as
    likely as the last one that stays do, too.
    """
    probabilities = (log_probs / options.temperature).softmax(dim=-1)
    if 0 < options.top_k < probabilities.size(-1):
        last = probabilities.topk(options.top_k).values[..., -1:]
        probabilities = probabilities.masked_fill(probabilities < last, 0.0)
    if options.top_p < 1:
        ordered = probabilities.sort(dim=-1, descending=True).values
        before = ordered.cumsum(dim=-1) - ordered  # the probability of all tokens that are likelier
        in_nucleus = before < options.top_p * ordered.sum(dim=-1, keepdim=True)
        last = ordered.masked_fill(~in_nucleus, 1.0).min(dim=-1, keepdim=True).values
        probabilities = probabilities.masked_fill(probabilities < last, 0.0)
    if options.epsilon:
        likeliest = probabilities.max(dim=-1, keepdim=True).values
        probabilities = probabilities.masked_fill(probabilities < likeliest.clamp(max=options.epsilon), 0.0)
    return probabilities


def draw(probabilities: Tensor, uniforms: Tensor) -> Tensor:
    """Return tokens (n, K) drawn with probabilities (n, K, V), not normalized, by numbers (n, K) between 0 and 1."""
    totals = probabilities.cumsum(dim=-1)
    end = totals[..., -1:]
    places = torch.minimum(uniforms[..., None] * end, end.nextafter(torch.zeros_like(end)))  # below the end: rounding
    return torch.searchsorted(totals, places, right=True)[..., 0]


@dataclass(frozen=True)
class _Rows:
    """The samples of the n sentences that have not ended, and K the most that one of them has.

    Attributes:
        prefixes: what has been drawn.
        numbers: (n, K) the number of each sample among those of its sentence.
        unfinished: (n, K) whether the row is a sample; rows that are not fill up the sentences with fewer.
        token_log_probs: (n, K, t - 1) the model's, of the tokens after BOS.
        penalties: (n, K) what penalties have taken from their sum.
    """

    prefixes: Prefixes
    numbers: Tensor
    unfinished: Tensor
    token_log_probs: Tensor
    penalties: Tensor


def _start(decoder: Decoder, n_sentences: int, k: int) -> _Rows:
    """Begin K samples of each sentence."""
    sentences = torch.arange(n_sentences, device=decoder.device)
    decoder.select(sentences, sentences.new_zeros(n_sentences, k))
    return _Rows(
        Prefixes(sentences.new_full((n_sentences, k, 1), BOS_ID), sentences),
        torch.arange(k, device=decoder.device).expand(n_sentences, k),
        torch.ones(n_sentences, k, dtype=torch.bool, device=decoder.device),
        torch.empty(n_sentences, k, 0, device=decoder.device),
        torch.zeros(n_sentences, k, device=decoder.device),
    )


def _extended(rows: _Rows, tokens: Tensor, processed: Tensor, own: Tensor) -> _Rows:
    """Append tokens (n, K), given their log probabilities (n, K, V) with and without penalties."""
    chosen = own.gather(2, tokens[:, :, None])  # (n, K, 1)
    return replace(
        rows,
        prefixes=Prefixes(torch.cat([rows.prefixes.ids, tokens[:, :, None]], dim=2), rows.prefixes.sentences),
        token_log_probs=torch.cat([rows.token_log_probs, chosen], dim=2),
        penalties=rows.penalties + (chosen - processed.gather(2, tokens[:, :, None]))[:, :, 0],
    )


def _collect(rows: _Rows, ended: Tensor, found: list[list[Hypothesis]]) -> None:
    """Store the samples (n, K) that have ended under their numbers."""
    sentences = rows.prefixes.sentences[:, None].expand_as(ended)
    columns = sentences, rows.numbers, rows.prefixes.ids[:, :, 1:-1], rows.token_log_probs, rows.penalties
    for sentence, number, *hypothesis in zip(*(column[ended].tolist() for column in columns), strict=True):
        found[sentence][number] = Hypothesis(*hypothesis)


def _without(decoder: Decoder, rows: _Rows, ended: Tensor) -> _Rows:
    """Return the rows without the samples (n, K) that have ended, and without the sentences whose last one has."""
    unfinished = rows.unfinished & ~ended
    n_samples = unfinished.sum(dim=1)
    kept = n_samples.nonzero()[:, 0]  # (n',)
    order = unfinished[kept].byte().argsort(dim=1, descending=True, stable=True)  # the samples first
    beams = order[:, : int(n_samples.max())]  # (n', K')
    decoder.select(kept, beams)
    at = (kept[:, None], beams)
    return _Rows(
        Prefixes(rows.prefixes.ids[at], rows.prefixes.sentences[kept]),
        rows.numbers[at],
        unfinished[at],
        rows.token_log_probs[at],
        rows.penalties[at],
    )


def _uniforms(requests: Sequence[Request], limits: Sequence[int], options: SearchOptions) -> Tensor:
    """Return random numbers (B, K, L) between 0 and 1, one for each token of each sample."""
    uniforms = np.zeros((len(requests), options.n_best, max(limits, default=0) + 1), dtype=np.float32)
    for numbers, request, limit in zip(uniforms, requests, limits, strict=True):
        generator = np.random.default_rng([options.seed, *request.src])
        numbers[:, : limit + 1] = generator.random((options.n_best, limit + 1), dtype=np.float32)
    return torch.from_numpy(uniforms)
