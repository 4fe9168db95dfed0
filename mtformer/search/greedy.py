"""Greedy search: choose the likeliest token at each step, until EOS."""

from collections.abc import Sequence

import torch
from torch import Tensor

from mtformer.errors import MtformerError
from mtformer.search.decoder import Decoder
from mtformer.search.hypothesis import NO_HYPOTHESIS, Hypothesis
from mtformer.search.observer import Candidates, SearchObserver, SearchStep
from mtformer.search.processors import Prefixes, Processor, next_log_probs
from mtformer.search.topk import likeliest
from mtformer.text.tokenizer import BOS_ID, EOS_ID

_N_OBSERVED = 10  # candidates of a step, of which the search takes the first


def greedy_search(
    decoder: Decoder, n_sentences: int, processors: Sequence[Processor], observer: SearchObserver | None = None
) -> list[Hypothesis]:
    """Decode B sentences side by side; each leaves the batch when it ends.

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
    found: list[Hypothesis] = [Hypothesis([], [])] * n_sentences
    sentences = torch.arange(n_sentences, device=decoder.device)  # (n,)
    ids = torch.full((n_sentences, 1, 1), BOS_ID, device=decoder.device)  # (n, 1, t)
    token_log_probs = torch.empty(n_sentences, 0, device=decoder.device)  # (n, t - 1)
    penalties = torch.zeros(n_sentences, device=decoder.device)  # (n,)
    while len(sentences):
        processed, own = next_log_probs(decoder, Prefixes(ids, sentences), processors)
        best, _, tokens = likeliest(processed, penalties.new_zeros(len(sentences), 1), 1)  # (n, 1)
        chosen = best if own is processed else own[:, 0].gather(1, tokens)  # (n, 1)
        if observer is not None:
            observer(_step(Prefixes(ids, sentences), token_log_probs, processed[:, 0]))
        ids = torch.cat([ids, tokens[:, :, None]], dim=2)
        token_log_probs = torch.cat([token_log_probs, chosen], dim=1)
        penalties = penalties + (chosen - best)[:, 0]
        is_eos = tokens[:, 0] == EOS_ID
        is_impossible = best[:, 0] == float("-inf")  # of a token that is not EOS, it would never end
        if (is_eos | is_impossible).any():
            if is_impossible.any():
                raise MtformerError(NO_HYPOTHESIS)
            ended = is_eos.nonzero()[:, 0]
            columns = (sentences, ids[:, 0, 1:-1], token_log_probs, penalties)
            for sentence, *hypothesis in zip(*(column[ended].tolist() for column in columns), strict=True):
                found[sentence] = Hypothesis(*hypothesis)
            kept = (~is_eos).nonzero()[:, 0]
            sentences, ids = sentences[kept], ids[kept]
            token_log_probs, penalties = token_log_probs[kept], penalties[kept]
            decoder.select(kept, torch.zeros_like(kept)[:, None])
    return found


def _step(prefixes: Prefixes, token_log_probs: Tensor, log_probs: Tensor) -> SearchStep:
    """Describe a step by its likeliest candidates (n, C), given log probabilities (n, t - 1) before and (n, V) next."""
    best, tokens = log_probs.topk(min(_N_OBSERVED, log_probs.size(1)))
    candidates = Candidates(token_log_probs.sum(dim=1, keepdim=True) + best, torch.zeros_like(tokens), tokens, best)
    finished = (tokens == EOS_ID) & (torch.arange(tokens.size(1), device=tokens.device) == 0)
    return SearchStep(prefixes, candidates, torch.zeros_like(tokens[:, :1]), finished)
