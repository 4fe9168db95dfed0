"""Rules on what a search may choose: functions of the prefixes and of the log probabilities of the next tokens."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from mtformer.errors import MtformerError
from mtformer.search.decoder import Decoder
from mtformer.search.hypothesis import PREDICTS_NAN


@dataclass(frozen=True)
class Prefixes:
    """What a search has chosen so far.

    Attributes:
        ids: (n, K, t), BOS first.
        sentences: (n,) the index in the batch of each sentence that has not ended.
    """

    ids: Tensor
    sentences: Tensor

    @property
    def length(self) -> int:
        """The number of tokens chosen, BOS not counted: t - 1."""
        return self.ids.size(2) - 1


class Processor(Protocol):
    """A rule on the next token."""

    def __call__(self, prefixes: Prefixes, log_probs: Tensor) -> Tensor:
        """Return log probabilities (n, K, V) instead of the given ones, which it may change in place.

        -inf forbids a token. The others are not normalized again: a hypothesis keeps the model's probabilities.
        """
        ...


class Penalty(ABC):
    """A processor that lowers the log probabilities that the search chooses by; hypotheses keep the model's.

    It must not raise any: beam search relies on no continuation being likelier than its prefix.
    """

    @abstractmethod
    def __call__(self, prefixes: Prefixes, log_probs: Tensor) -> Tensor:
        """Return log probabilities (n, K, V) instead of the given ones, which it may change in place."""


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
        self._longest = max(map(len, forced), default=0)
        padded = [[*ids, *[0] * (self._longest - len(ids))] for ids in forced]
        self._ids = torch.tensor(padded, dtype=torch.long, device=device)  # (B, longest)

    def __call__(self, prefixes: Prefixes, log_probs: Tensor) -> Tensor:
        """Forbid all tokens but the forced one to the sentences that have one for this step."""
        t = prefixes.length
        if t >= self._longest:
            return log_probs
        tokens = self._ids[prefixes.sentences, t]  # (n,)
        free = t >= self._lengths[prefixes.sentences]  # (n,) sentences whose forced tokens have all been chosen
        is_forced = torch.arange(log_probs.size(2), device=tokens.device) == tokens[:, None]  # (n, V)
        return log_probs.masked_fill_(~(is_forced | free[:, None])[:, None, :], float("-inf"))


def next_log_probs(decoder: Decoder, prefixes: Prefixes, processors: Sequence[Processor]) -> tuple[Tensor, Tensor]:
    """Advance ``decoder`` by one step and process the log probabilities of the next token.

    Returns:
        The processed log probabilities (n, K, V), to choose by, and the model's own. Without a :class:`Penalty` they
        are one tensor.

    Raises:
        MtformerError: the model predicts NaN.
    """
    log_probs = decoder.step(prefixes.ids[:, :, -1].flatten()).unflatten(0, prefixes.ids.shape[:2])
    refuse_nan(log_probs)
    own = log_probs.clone() if any(isinstance(process, Penalty) for process in processors) else None
    for process in processors:
        log_probs = process(prefixes, log_probs)
    return log_probs, log_probs if own is None else own


def refuse_nan(log_probs: Tensor) -> None:
    """Raise MtformerError if log probabilities (…, V) that a softmax has normalized are NaN anywhere."""
    if log_probs[..., 0].isnan().any():  # one NaN makes the sum NaN that all V of them are divided by
        raise MtformerError(PREDICTS_NAN)
