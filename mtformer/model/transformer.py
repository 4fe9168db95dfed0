"""The encoder-decoder Transformer (figure 1 of the paper). Legend of shapes: see :mod:`mtformer.model`."""

import math

import torch
from torch import Tensor, nn

from mtformer.model.architecture import Architecture
from mtformer.model.dropout import Dropout
from mtformer.model.layers import DecoderLayer, EncoderLayer, make_positions
from mtformer.model.lora import stacked_matrices
from mtformer.model.output import OutputHead


class Transformer(nn.Module):
    """Encoder, decoder, and embeddings that they share with the output projection (section 3.4)."""

    def __init__(self, architecture: Architecture) -> None:
        """Build the model with fresh weights."""
        super().__init__()
        self.architecture = architecture
        self.d_model = d_model = architecture.d_model
        tied = architecture.tie_embeddings
        self.tgt_embedding = nn.Embedding(architecture.tgt_vocab_size, d_model)
        self.src_embedding = (
            self.tgt_embedding
            if tied and architecture.joint_vocab
            else nn.Embedding(architecture.src_vocab_size, d_model)
        )
        self.output = OutputHead(d_model=d_model, vocab_size=architecture.tgt_vocab_size, bias=architecture.output_bias)
        if tied:
            self.output.weight = self.tgt_embedding.weight
        self.src_positions = make_positions(architecture)
        self.tgt_positions = make_positions(architecture)
        self.encoder_input_norm = nn.LayerNorm(d_model) if architecture.embedding_norm else nn.Identity()
        self.decoder_input_norm = nn.LayerNorm(d_model) if architecture.embedding_norm else nn.Identity()
        self.dropout = Dropout(architecture.dropout)
        self.encoder_layers = nn.ModuleList(EncoderLayer(architecture) for _ in range(architecture.n_encoder_layers))
        self.decoder_layers = nn.ModuleList(DecoderLayer(architecture) for _ in range(architecture.n_decoder_layers))
        # With post-norm, as in the paper, each layer ends in a normalization; with pre-norm each stack needs one.
        self.encoder_norm = nn.LayerNorm(d_model) if architecture.norm == "pre" else nn.Identity()
        self.decoder_norm = nn.LayerNorm(d_model) if architecture.norm == "pre" else nn.Identity()
        self._init_weights()

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self.tgt_embedding.weight.device

    def forward(self, src: Tensor, src_mask: Tensor, tgt_in: Tensor) -> Tensor:
        """Predict every target token from those before it (teacher forcing).

        Args:
            src: (B, S) ids.
            src_mask: (B, S), True at real tokens.
            tgt_in: (B, T) ids, shifted right: the id that starts decoding first.

        Returns:
            (B, T, D), the decoder's output; :meth:`project` turns it into logits.
        """
        return self.decode(tgt_in, self.encode(src, src_mask), src_mask)

    def encode(self, src: Tensor, src_mask: Tensor) -> Tensor:
        """Turn source ids (B, S) into the memory (B, S, D)."""
        x = self.embed_src(src)
        mask = src_mask[:, None, None, :]  # (B, 1, 1, S): for all heads and queries
        for layer in self.encoder_layers:
            x = layer(x, mask)
        return self.encoder_norm(x)

    def decode(self, tgt_in: Tensor, memory: Tensor, src_mask: Tensor) -> Tensor:
        """Turn target ids (B, T) and the memory (B, S, D) into the decoder's output (B, T, D)."""
        x = self.embed_tgt(tgt_in)
        mask = src_mask[:, None, None, :]
        for layer in self.decoder_layers:
            x = layer(x, memory, mask)
        return self.decoder_norm(x)

    def project(self, hidden: Tensor) -> Tensor:
        """Turn the decoder's output (…, D) into logits (…, V)."""
        return self.output.project(hidden)

    def embed_src(self, src: Tensor) -> Tensor:
        """Turn source ids (B, S) into the encoder's input (B, S, D)."""
        return self._embed(src, self.src_embedding, self.src_positions, self.encoder_input_norm, 0)

    def embed_tgt(self, tgt: Tensor, start: int | Tensor = 0) -> Tensor:
        """Turn target ids (B, T) at positions from ``start`` on into the decoder's input (B, T, D)."""
        return self._embed(tgt, self.tgt_embedding, self.tgt_positions, self.decoder_input_norm, start)

    def _embed(
        self, ids: Tensor, embedding: nn.Module, positions: nn.Module, norm: nn.Module, start: int | Tensor
    ) -> Tensor:
        x = embedding(ids) * math.sqrt(self.d_model)
        return self.dropout(norm(x + positions(start, ids.size(1))))

    def _init_weights(self) -> None:
        """Draw projections as in Glorot and Bengio 2010, and embeddings whose √D-fold has unit variance."""
        n_matrices = stacked_matrices(self)
        for name, parameter in self.named_parameters():
            if "embedding" in name or "positions" in name or name == "output.weight":
                nn.init.normal_(parameter, std=self.d_model**-0.5)
            elif parameter.dim() > 1:
                for matrix in parameter.chunk(n_matrices.get(name, 1)):
                    nn.init.xavier_uniform_(matrix)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)
