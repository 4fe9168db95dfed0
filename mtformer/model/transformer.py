"""The encoder-decoder Transformer (figure 1 of the paper). Legend of shapes: see :mod:`mtformer.model`."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from mtformer.config import ModelConfig
from mtformer.model.dropout import Dropout
from mtformer.model.layers import DecoderLayer, EncoderLayer, LayerCache, make_norm
from mtformer.model.positions import LearnedPositions, NoPositions, SinusoidalPositions


@dataclass
class DecoderCache:
    """The decoder's state between steps, for N rows (sentences, or sentences times beams).

    Attributes:
        layers: one cache per decoder layer.
        src_mask: (N, 1, 1, S), True at real source pieces.
        length: the number of positions decoded so far.
    """

    layers: list[LayerCache]
    src_mask: Tensor
    length: int = 0

    def select(self, rows: Tensor) -> "DecoderCache":
        """Return the state of the given rows, which may repeat and leave out."""
        return DecoderCache([layer.select(rows) for layer in self.layers], self.src_mask[rows], self.length)


class Transformer(nn.Module):
    """Encoder, decoder, and embeddings that they share with the output projection (section 3.4)."""

    def __init__(
        self, config: ModelConfig, *, src_vocab_size: int, tgt_vocab_size: int, joint: bool, max_length: int
    ) -> None:
        """Build the model with fresh weights.

        Args:
            config: the sizes.
            src_vocab_size: pieces of the source language.
            tgt_vocab_size: pieces of the target language.
            joint: whether both languages have the same pieces; then tied embeddings are tied three ways.
            max_length: positions that learned position encodings are made for.
        """
        super().__init__()
        self.d_model = d_model = config.d_model
        self.d_ff = config.d_ff
        self.tgt_embedding = nn.Embedding(tgt_vocab_size, d_model)
        tied = config.tie_embeddings
        self.src_embedding = self.tgt_embedding if tied and joint else nn.Embedding(src_vocab_size, d_model)
        self.output = nn.Linear(d_model, tgt_vocab_size, bias=False)
        if tied:
            self.output.weight = self.tgt_embedding.weight
        if config.positions == "learned":
            self.src_positions: nn.Module = LearnedPositions(d_model=d_model, n_positions=max_length)
            self.tgt_positions: nn.Module = LearnedPositions(d_model=d_model, n_positions=max_length)
        elif config.positions == "rotary":
            self.src_positions = self.tgt_positions = NoPositions()
        else:
            self.src_positions = self.tgt_positions = SinusoidalPositions(d_model=d_model)
        self.layer_drop = config.layer_drop
        self.dropout = Dropout(config.dropout)
        self.encoder_layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.n_encoder_layers))
        self.decoder_layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.n_decoder_layers))
        # With post-norm, as in the paper, each layer ends in a normalization; pre-norm needs one for each stack.
        self.encoder_norm = make_norm(config) if config.norm == "pre" else nn.Identity()
        self.decoder_norm = make_norm(config) if config.norm == "pre" else nn.Identity()
        self._init_weights()

    def forward(self, src: Tensor, src_mask: Tensor, tgt_in: Tensor) -> Tensor:
        """Predict every target piece from those before it (teacher forcing).

        Args:
            src: (B, S) ids.
            src_mask: (B, S), True at real pieces.
            tgt_in: (B, T) ids, shifted right: BOS first.

        Returns:
            (B, T, D), the decoder's output; :meth:`project` turns it into logits.
        """
        return self.decode(tgt_in, self.encode(src, src_mask), src_mask)

    def encode(self, src: Tensor, src_mask: Tensor) -> Tensor:
        """Turn source ids (B, S) into the memory (B, S, D)."""
        x = self._embed(src, self.src_embedding, self.src_positions, 0)
        mask = src_mask[:, None, None, :]  # (B, 1, 1, S): for all heads and queries
        for layer in self._kept(self.encoder_layers):
            x = layer(x, mask)
        return self.encoder_norm(x)

    def decode(self, tgt_in: Tensor, memory: Tensor, src_mask: Tensor) -> Tensor:
        """Turn target ids (B, T) and the memory (B, S, D) into the decoder's output (B, T, D)."""
        x = self._embed(tgt_in, self.tgt_embedding, self.tgt_positions, 0)
        mask = src_mask[:, None, None, :]
        for layer in self._kept(self.decoder_layers):
            x = layer(x, memory, mask)
        return self.decoder_norm(x)

    def project(self, hidden: Tensor) -> Tensor:
        """Turn the decoder's output (…, D) into logits (…, V)."""
        return self.output(hidden)

    def start_cache(self, memory: Tensor, src_mask: Tensor) -> DecoderCache:
        """Prepare step-by-step decoding from the memory (N, S, D) and the source's mask (N, S)."""
        layers = [layer.start_cache(memory) for layer in self._decoder_stack]
        return DecoderCache(layers, src_mask[:, None, None, :])

    def step(self, tokens: Tensor, cache: DecoderCache) -> Tensor:
        """Decode one more position.

        Args:
            tokens: (N,) the ids chosen last; BOS at first.
            cache: the state, which is brought up to date.

        Returns:
            (N, V), the logits of the next id: what :meth:`forward` and :meth:`project` give for this position.
        """
        x = self._embed(tokens[:, None], self.tgt_embedding, self.tgt_positions, cache.length)
        for layer, layer_cache in zip(self._decoder_stack, cache.layers, strict=True):
            x = layer.step(x, layer_cache, cache.src_mask)
        cache.length += 1
        return self.project(self.decoder_norm(x)[:, 0])

    @property
    def _decoder_stack(self) -> Iterable[DecoderLayer]:
        return cast(Iterable[DecoderLayer], self.decoder_layers)  # nn.ModuleList does not tell what it holds

    def _kept(self, layers: nn.ModuleList) -> Iterable[nn.Module]:
        """Leave out, in training, each layer with probability ``layer_drop`` (Fan et al. 2020), but never all."""
        if not self.training or not self.layer_drop:
            return layers
        return [layer for layer in layers if torch.rand(()).item() >= self.layer_drop] or [layers[-1]]

    def _embed(self, ids: Tensor, embedding: nn.Module, positions: nn.Module, start: int) -> Tensor:
        x = embedding(ids) * math.sqrt(self.d_model)
        return self.dropout(x + positions(start, ids.size(1)))

    def _init_weights(self) -> None:
        """Glorot and Bengio 2010 for projections; embeddings such that √D times them has unit variance."""
        for name, parameter in self.named_parameters():
            if "embedding" in name or "positions" in name or name == "output.weight":
                nn.init.normal_(parameter, std=self.d_model**-0.5)
            elif name.endswith("qkv_proj.weight"):
                for matrix in parameter.chunk(3):  # W^Q, W^K and W^V are three matrices, and drawn as such
                    nn.init.xavier_uniform_(matrix)
            elif name.endswith("feed_forward.linear1.weight"):  # as are W1 and V, of the gated network
                for matrix in parameter.split(self.d_ff):
                    nn.init.xavier_uniform_(matrix)
            elif parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)
