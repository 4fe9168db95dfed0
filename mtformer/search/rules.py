"""The processors that options of the search ask for: lengths, repetition."""

import torch
from torch import Tensor

from mtformer.config import SearchOptions
from mtformer.search.processors import Penalty, Prefixes, Processor
from mtformer.text.tokenizer import EOS_ID


def rules_of(options: SearchOptions) -> list[Processor]:
    """Return the processors for ``options``.

    They belong after those that force tokens: where a rule would leave a prefix without any continuation, it does not
    apply.
    """
    rules: list[Processor] = []
    if options.repetition_penalty > 1:
        rules.append(RepetitionPenalty(options.repetition_penalty))
    if options.no_repeat_ngram_size:
        rules.append(NoRepeatedNgrams(options.no_repeat_ngram_size))
    if options.min_length:
        rules.append(MinLength(options.min_length))
    return rules


class RepetitionPenalty(Penalty):
    """Multiplies the log probabilities of the tokens of the prefix by a factor θ: a probability p counts as p^θ.

    Keskar et al. 2019, section 4.1, divide logits by θ; log probabilities have no sign that would matter, so that
    repetition always becomes less likely. Hugging Face's beam search does the same.
    """

    def __init__(self, factor: float) -> None:
        """Set θ, at least 1."""
        self._factor = factor

    def __call__(self, prefixes: Prefixes, log_probs: Tensor) -> Tensor:
        """Lower the log probabilities of the tokens in each prefix."""
        ids = prefixes.ids[:, :, 1:]  # (n, K, t - 1): without BOS
        return log_probs.scatter_(2, ids, log_probs.gather(2, ids) * self._factor)


class NoRepeatedNgrams:
    """Forbids the tokens that would repeat an n-gram of the prefix (Paulus et al. 2018, section 2.5)."""

    def __init__(self, size: int) -> None:
        """Set n, in tokens; 1 forbids every token that has been chosen."""
        self._size = size

    def __call__(self, prefixes: Prefixes, log_probs: Tensor) -> Tensor:
        """Forbid the last tokens of the n-grams that start with the last n - 1 tokens of a prefix."""
        ids, n = prefixes.ids[:, :, 1:], self._size  # (n, K, t - 1): without BOS
        if prefixes.length < n:
            return log_probs
        ngrams = ids.unfold(2, n, 1)  # (n, K, t - n, n): a view
        last = ids[:, :, None, prefixes.length - n + 1 :]  # (n, K, 1, n - 1)
        places = (ngrams[..., :-1] == last).all(dim=-1).nonzero(as_tuple=True)
        is_forbidden = torch.zeros_like(log_probs, dtype=torch.bool)
        is_forbidden[places[0], places[1], ngrams[..., -1][places]] = True
        return _forbid(log_probs, is_forbidden)


class MinLength:
    """Forbids EOS to translations that are too short."""

    def __init__(self, min_length: int) -> None:
        """Set the minimum length in tokens, EOS not counted."""
        self._min_length = min_length

    def __call__(self, prefixes: Prefixes, log_probs: Tensor) -> Tensor:
        """Forbid EOS before the minimum length."""
        if prefixes.length >= self._min_length:
            return log_probs
        return _forbid(log_probs, torch.arange(log_probs.size(2), device=log_probs.device) == EOS_ID)


def _forbid(log_probs: Tensor, is_forbidden: Tensor) -> Tensor:
    """Forbid tokens, given a mask that can be broadcast to (n, K, V), where that leaves others."""
    left = log_probs.masked_fill(is_forbidden, float("-inf"))
    return torch.where((left == float("-inf")).all(dim=2, keepdim=True), log_probs, left)
