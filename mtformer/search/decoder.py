"""What a search needs from a model, and the Transformer as such a model."""

from typing import Protocol

import torch
from torch import Tensor

from mtformer.model.inference import InferenceModel


class Decoder(Protocol):
    """N = n·K unfinished translations, the K beams of n sentences, sentence by sentence; at its start K is 1.

    Attributes:
        device: where its tensors are.
    """

    device: torch.device

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

    def __init__(self, model: InferenceModel, src: Tensor, src_mask: Tensor, n_copies: int = 1) -> None:
        """Encode the sources (B, S) once; every step then computes one position.

        The decoder has ``n_copies`` sentences in a row for each source.
        """
        self.device = src.device
        self._model = model
        self._cache = model.start(src, src_mask, n_copies)

    def step(self, tokens: Tensor) -> Tensor:
        """Decode one position of all rows."""
        return torch.log_softmax(self._model.step(tokens, self._cache), dim=-1)

    def select(self, sentences: Tensor, beams: Tensor) -> None:
        """Select in the cache."""
        self._cache.select(sentences, beams)
