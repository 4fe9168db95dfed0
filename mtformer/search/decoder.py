"""Decoders: the interface of a model to a search, and the Transformer as one."""

import math
from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor

from mtformer.model.architecture import SpecialIds
from mtformer.model.cache import Cache, StaticCache
from mtformer.model.inference import InferenceModel


class Decoder(Protocol):
    """N = n·K unfinished translations, the K beams of n sentences, sentence by sentence; at its start K is 1.

    Attributes:
        device: where its tensors are.
        special_ids: the ids that start and end a translation, and those that none contains.
    """

    device: torch.device
    special_ids: SpecialIds

    def step(self, tokens: Tensor) -> Tensor:
        """Take the tokens (N,) chosen last and return log probabilities (N, V) of the next, to be changed freely."""
        ...

    def select(self, sentences: Tensor, beams: Tensor) -> None:
        """Keep some sentences, and continue some of their beams.

        Args:
            sentences: (n',) which sentences to keep, and in which order.
            beams: (n', K') for each of them the beams, 0 to K - 1, that its new beams continue; beams may repeat.
        """
        ...


class TransformerDecoder:
    """A :class:`Decoder` for the Transformer, with its key/value cache."""

    def __init__(
        self, model: InferenceModel, src: Tensor, src_mask: Tensor, n_copies: int = 1, forced: Sequence[int] = ()
    ) -> None:
        """Encode the sources (B, S) once; every step then computes one position.

        The decoder has ``n_copies`` sentences in a row for each source. Between the id that starts decoding and the
        first token that is chosen, it reads the ids ``forced``, of which the search knows nothing.
        """
        self.device = src.device
        self.special_ids = model.special_ids
        self._model = model
        self._cache = model.start(src, src_mask, n_copies)
        self._forced = list(forced)  # those still to be read

    def step(self, tokens: Tensor) -> Tensor:
        """Decode one position of all rows."""
        return torch.log_softmax(self._after(self._model.step, tokens), dim=-1)

    def step_with_state(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Decode one position of all rows, and return its state (N, D) besides the result of :meth:`step`."""
        state = self._after(self._model.state, tokens)
        return state, torch.log_softmax(self._model.project(state), dim=-1)

    def _after(self, decode: Callable[[Tensor, Cache | StaticCache], Tensor], tokens: Tensor) -> Tensor:
        """Apply ``decode`` to the tokens (N,) chosen last, then to the remaining forced ones; return the result."""
        result = decode(tokens, self._cache)
        while self._forced:
            result = decode(torch.full_like(tokens, self._forced.pop(0)), self._cache)
        return result

    def select(self, sentences: Tensor, beams: Tensor) -> None:
        """Select in the cache."""
        self._cache.select(sentences, beams)


class EnsembleDecoder:
    """A :class:`Decoder` that averages the probabilities of others."""

    def __init__(self, decoders: Sequence[Decoder]) -> None:
        """Combine decoders of the same sentences, which share a vocabulary."""
        self.device, self.special_ids = decoders[0].device, decoders[0].special_ids
        self._decoders = decoders

    def step(self, tokens: Tensor) -> Tensor:
        """Take one step with each decoder."""
        return mean_log_probs(torch.stack([decoder.step(tokens) for decoder in self._decoders]))

    def select(self, sentences: Tensor, beams: Tensor) -> None:
        """Select in each decoder."""
        for decoder in self._decoders:
            decoder.select(sentences, beams)


def mean_log_probs(log_probs: Tensor) -> Tensor:
    """Return the logarithm of the mean probability, given the log probabilities (M, …) of M models."""
    return log_probs.logsumexp(dim=0) - math.log(len(log_probs))
