"""Greedy search: choose the likeliest token at each step, until EOS."""

from collections.abc import Sequence

import torch
from torch import Tensor

from mtformer.search.decoder import Decoder
from mtformer.search.hypothesis import NO_HYPOTHESIS, Hypothesis
from mtformer.search.observer import Candidates, SearchObserver, SearchStep
from mtformer.search.processors import Prefixes, Processor
from mtformer.search.rows import decode_rows
from mtformer.search.topk import likeliest
from mtformer.support.errors import MtformerError

_N_OBSERVED = 10  # candidates of a step, of which the search takes the first


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
