"""What a search needs of a model, and the Transformer as such a model."""

from typing import Protocol

import torch
from torch import Tensor

from mtformer.model.transformer import DecoderCache, Transformer
from mtformer.text.tokenizer import EOS_ID


class Decoder(Protocol):
    """N rows of text under way, each of which can be asked for its next piece."""

    def step(self, tokens: Tensor) -> Tensor:
        """Take the ids (N,) chosen last and return the log probabilities (N, V) of the next ones."""
        ...

    def select(self, rows: Tensor) -> None:
        """Go on with the given rows (any number of them), which may repeat and leave out."""
        ...


class TransformerDecoder:
    """A :class:`Decoder` for the Transformer, with its key/value cache."""

    def __init__(self, model: Transformer, src: Tensor, src_mask: Tensor) -> None:
        """Encode the sources (B, S) once; every step then computes one position."""
        self._model = model
        self._cache: DecoderCache = model.start_cache(model.encode(src, src_mask), src_mask)

    def step(self, tokens: Tensor) -> Tensor:
        """Return log probabilities (N, V); padding, BOS and UNK are never chosen, whatever the model says."""
        logits = self._model.step(tokens, self._cache).float()
        logits[:, :EOS_ID] = float("-inf")  # EOS has the first id after them
        return torch.log_softmax(logits, dim=-1)

    def select(self, rows: Tensor) -> None:
        """Go on with the given rows."""
        self._cache = self._cache.select(rows)
