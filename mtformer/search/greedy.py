"""Greedy search, and its loop, which sampling shares: one hypothesis for each row, token by token, until EOS."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mtformer.search.candidates import Candidates, SearchObserver, SearchStep, likeliest
from mtformer.search.decoder import Decoder
from mtformer.search.hypothesis import NO_HYPOTHESIS, PREDICTS_NAN, Hypothesis
from mtformer.search.processors import Prefixes, Processor, next_log_probs
from mtformer.support.errors import MtformerError

Choose = Callable[[Prefixes, Tensor, Tensor], Tensor]

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
        _, _, tokens = likeliest(log_probs[:, None], log_probs.new_zeros(len(log_probs), 1), 1)  # (n, 1)
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

    The processor waits for a GPU once in each step, to learn which rows end; what they hold is read at the end.

    Args:
        decoder: at its start, with N sentences.
        n_rows: N.
        processors: applied to each step in order; they must see to it that every row ends.
        choose: returns the next token (n, 1) of each row, given the prefixes, the log probabilities (n, t - 1) of their
            tokens, and those of the next token (n, V). A row whose token has no finite one ends with an error.

    Returns:
        One hypothesis for each row.

    Raises:
        MtformerError: the model predicts NaN, or no hypothesis is possible.
    """
    numbers = list(range(n_rows))  # of the n rows that have not ended
    rows = torch.arange(n_rows, device=decoder.device)  # (n,), the same
    ids = torch.full((n_rows, 1, 1), decoder.special_ids.start, device=decoder.device)  # (n, 1, t)
    token_log_probs = torch.empty(n_rows, 0, device=decoder.device)  # (n, t - 1)
    penalties = torch.zeros(n_rows, device=decoder.device)  # (n,)
    ended: list[_Ended] = []
    while numbers:
        prefixes = Prefixes(ids, rows)
        processed, own = next_log_probs(decoder, prefixes, processors)  # (n, 1, V)
        tokens = choose(prefixes, token_log_probs, processed[:, 0])  # (n, 1)
        chosen_by = chosen = processed[:, 0].gather(1, tokens)  # (n, 1)
        if own is not processed:
            chosen = own[:, 0].gather(1, tokens)
            penalties = penalties + (chosen - chosen_by)[:, 0]
        ids = torch.cat([ids, tokens[:, :, None]], dim=2)
        token_log_probs = torch.cat([token_log_probs, chosen], dim=1)
        ends = ((tokens == decoder.special_ids.eos) | ~chosen_by.isfinite())[:, 0]
        is_end: list[bool] = ends.tolist()
        if any(is_end):
            order = ends.byte().argsort(stable=True)  # needs no other wait to be divided
            kept, gone = order.split([len(numbers) - sum(is_end), sum(is_end)])
            gone_numbers = [number for number, ends_now in zip(numbers, is_end, strict=True) if ends_now]
            ended.append(_Ended(gone_numbers, ids[gone, 0, 1:-1], token_log_probs[gone], penalties[gone]))
            numbers = [number for number, ends_now in zip(numbers, is_end, strict=True) if not ends_now]
            rows, ids, token_log_probs, penalties = rows[kept], ids[kept], token_log_probs[kept], penalties[kept]
            decoder.select(kept, torch.zeros_like(kept)[:, None])
    return _hypotheses(ended, n_rows)


class _Ended(NamedTuple):
    """The m rows that end in a step: their numbers, ids (m, t), log probabilities (m, t + 1) and penalties (m,)."""

    numbers: list[int]
    ids: Tensor
    token_log_probs: Tensor
    penalties: Tensor


def _hypotheses(ended: Sequence[_Ended], n_rows: int) -> list[Hypothesis]:
    """Return the hypotheses of all N rows in order, unless one is impossible."""
    hypotheses: list[Hypothesis] = [Hypothesis([], [])] * n_rows
    for numbers, *columns in ended:
        for number, *values in zip(numbers, *(column.tolist() for column in columns), strict=True):
            hypothesis = hypotheses[number] = Hypothesis(*values)
            if any(map(math.isnan, hypothesis.token_log_probs)):
                raise MtformerError(PREDICTS_NAN)
            if not math.isfinite(sum(hypothesis.token_log_probs) - hypothesis.penalty):
                raise MtformerError(NO_HYPOTHESIS)
    return hypotheses
