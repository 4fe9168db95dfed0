"""Rules on the choices of a search: functions of the prefixes and of the log probabilities of the next tokens."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mtformer.config import SearchOptions
from mtformer.data.batches import pad
from mtformer.search.decoder import Decoder
from mtformer.search.hypothesis import PREDICTS_NAN
from mtformer.support.errors import MtformerError


@dataclass(frozen=True)
class Prefixes:
    """The tokens that a search has chosen so far.

    Attributes:
        ids: (n, K, t), the id that starts decoding first.
        sentences: (n,) the index in the batch of each sentence that has not ended.
    """

    ids: Tensor
    sentences: Tensor

    @property
    def length(self) -> int:
        """The number of tokens chosen: t - 1."""
        return self.ids.size(2) - 1


# A rule on the next token: returns log probabilities (n, K, V) instead of the given ones, which it may change in place.
# -inf forbids a token. The others are not normalized again: a hypothesis keeps the model's probabilities.
Processor = Callable[[Prefixes, Tensor], Tensor]


class NeverChoose:
    """Forbids some tokens."""

    def __init__(self, ids: Sequence[int], device: torch.device) -> None:
        self._ids = torch.tensor(ids, device=device)

    def __call__(self, prefixes: Prefixes, log_probs: Tensor) -> Tensor:
        """Forbid them."""
        return log_probs.index_fill_(2, self._ids, float("-inf"))


class EndAtLimits:
    """Allows only EOS where a translation has reached the maximum length of its sentence."""

    def __init__(self, limits: Sequence[int], eos: int, device: torch.device) -> None:
        """Set a limit, in tokens without EOS, for each of the B sentences."""
        self._shortest = min(limits, default=0)
        self._limits = torch.tensor(limits, device=device)
        self._eos = eos

    def __call__(self, prefixes: Prefixes, log_probs: Tensor) -> Tensor:
        """Forbid all tokens but EOS to the sentences at their limit."""
        if prefixes.length < self._shortest:
            return log_probs
        at_limit = prefixes.length >= self._limits[prefixes.sentences]  # (n,)
        eos = log_probs[:, :, self._eos].clone()
        log_probs.masked_fill_(at_limit[:, None, None], float("-inf"))[:, :, self._eos] = eos
        return log_probs


class ForcePrefixes:
    """Makes the translation of each sentence start with given tokens."""

    def __init__(self, forced: Sequence[Sequence[int]], device: torch.device) -> None:
        """Set the forced tokens, any number of them, of each of the B sentences."""
        self._lengths = torch.tensor([len(ids) for ids in forced], device=device)
        self._ids = pad(forced, 0).to(device)  # (B, longest)

    def __call__(self, prefixes: Prefixes, log_probs: Tensor) -> Tensor:
        """Forbid all tokens but the forced one to the sentences that have one for this step."""
        t = prefixes.length
        if t >= self._ids.size(1):
            return log_probs
        tokens = self._ids[prefixes.sentences, t]  # (n,)
        free = t >= self._lengths[prefixes.sentences]  # (n,) sentences whose forced tokens have all been chosen
        is_forced = torch.arange(log_probs.size(2), device=tokens.device) == tokens[:, None]  # (n, V)
        return log_probs.masked_fill_(~(is_forced | free[:, None])[:, None, :], float("-inf"))


def next_log_probs(decoder: Decoder, prefixes: Prefixes, processors: Sequence[Processor]) -> tuple[Tensor, Tensor]:
    """Advance ``decoder`` by one step and process the log probabilities of the next token.

    Returns:
        The processed log probabilities (n, K, V), to choose by, and the model's own. Without a
        :class:`RepetitionPenalty` they are one tensor. Where the model predicts NaN, every token that is not forbidden
        has NaN.
    """
    log_probs = decoder.step(prefixes.ids[:, :, -1].flatten()).unflatten(0, prefixes.ids.shape[:2])
    own = log_probs.clone() if any(isinstance(process, RepetitionPenalty) for process in processors) else None
    for process in processors:
        log_probs = process(prefixes, log_probs)
    return log_probs, log_probs if own is None else own


def refuse_nan(log_probs: Tensor) -> None:
    """Raise MtformerError if log probabilities (…, V) that a softmax has normalized are NaN anywhere."""
    if log_probs[..., 0].isnan().any():  # one NaN makes the sum NaN that all V of them are divided by
        raise MtformerError(PREDICTS_NAN)


def without_nan(prefixes: Prefixes, log_probs: Tensor) -> Tensor:
    """Refuse NaN, as the first processor of a search that has no other way to notice it."""
    refuse_nan(log_probs)
    return log_probs


def rules_of(options: SearchOptions, eos: int) -> list[Processor]:
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
        rules.append(MinLength(options.min_length, eos))
    return rules


class RepetitionPenalty:
    """Multiplies the log probabilities of the tokens of the prefix by a factor θ: a probability p counts as p^θ.

    Keskar et al. 2019, section 4.1, divide logits by θ; log probabilities have no sign that would matter, so that
    repetition always becomes less likely. Hugging Face's beam search does the same. The search chooses by these log
    probabilities, and hypotheses keep the model's. None may be raised: beam search relies on no continuation being
    likelier than its prefix.
    """

    def __init__(self, factor: float) -> None:
        """Set θ, at least 1."""
        self._factor = factor

    def __call__(self, prefixes: Prefixes, log_probs: Tensor) -> Tensor:
        """Lower the log probabilities of the tokens in each prefix."""
        ids = prefixes.ids[:, :, 1:]  # (n, K, t - 1): without the start
        return log_probs.scatter_(2, ids, log_probs.gather(2, ids) * self._factor)


class NoRepeatedNgrams:
    """Forbids the tokens that would repeat an n-gram of the prefix (Paulus et al. 2018, section 2.5)."""

    def __init__(self, size: int) -> None:
        """Set n, in tokens; 1 forbids every token that has been chosen."""
        self._size = size

    def __call__(self, prefixes: Prefixes, log_probs: Tensor) -> Tensor:
        """Forbid the last tokens of the n-grams that start with the last n - 1 tokens of a prefix."""
        ids, n = prefixes.ids[:, :, 1:], self._size  # (n, K, t - 1): without the start
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

    def __init__(self, min_length: int, eos: int) -> None:
        """Set the minimum length in tokens, EOS not counted."""
        self._min_length, self._eos = min_length, eos

    def __call__(self, prefixes: Prefixes, log_probs: Tensor) -> Tensor:
        """Forbid EOS before the minimum length."""
        if prefixes.length >= self._min_length:
            return log_probs
        return _forbid(log_probs, torch.arange(log_probs.size(2), device=log_probs.device) == self._eos)


def _forbid(log_probs: Tensor, is_forbidden: Tensor) -> Tensor:
    """Forbid tokens, given a mask that can be broadcast to (n, K, V), where that leaves others."""
    left = log_probs.masked_fill(is_forbidden, float("-inf"))
    return torch.where((left == float("-inf")).all(dim=2, keepdim=True), log_probs, left)
