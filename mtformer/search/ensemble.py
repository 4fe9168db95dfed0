"""Several models that predict together."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from mtformer.search.decoder import Decoder


class EnsembleDecoder:
    """A :class:`Decoder` that averages the probabilities of others."""

    def __init__(self, decoders: Sequence[Decoder]) -> None:
        """Combine decoders of the same sentences, which share a vocabulary."""
        self.device = decoders[0].device
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
