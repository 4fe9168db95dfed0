"""The Transformer prepared for translating: step-by-step decoding with a cache, in as few operations as possible.

It computes the same as :class:`mtformer.model.transformer.Transformer`; ``tests/test_inference.py`` compares them for
every architecture. Most of a small model's step is the time that Python and torch need to start operations; hence
packed weights, no dropout modules, rows instead of (B, T, D), and a cache that is never reordered.

Shapes: n sentences with K beams each, N = n·K rows, sentence by sentence; S source length, C places in the cache;
H heads, D ``d_model``, Dh = D / H, V vocabulary. Masks are numbers to add to the scores: 0, or -inf where a query may
not attend.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mtformer.config import SearchPrecision
from mtformer.model.attention import MultiHeadAttention, attention_weights
from mtformer.model.layers import DecoderLayer, EncoderLayer, FeedForward, Residual
from mtformer.model.packing import Linear, pack, pack_linear
from mtformer.model.positions import rotate
from mtformer.model.transformer import Transformer

_FIRST_PLACES = 16  # steps that a new cache has room for; it doubles when it is full


@dataclass
class Cache:
    """What decoding keeps between steps for n sentences.

    The keys and values of every beam stay where they were written. Beams that share a prefix share its places, and
    ``visible`` tells each beam which places are its own prefix; so choosing other beams moves nothing.

    Attributes:
        memory: for each layer the memory's keys and values, (n, S, 2, H, Dh); all beams of a sentence share them.
        places: for each layer the keys and values of the positions decoded so far, (n, C, 2, H, Dh), of which the first
            ``n_places`` are in use: K of each step.
        src_mask: (n, 1, 1, S); None if there is no padding.
        visible: (n, K, n_places), the mask of each beam; None as long as there is one beam, which sees all of them.
        n_sentences: n.
        n_beams: K.
        n_places: how many places are in use.
        length: the number of positions decoded so far.
    """

    memory: list[Tensor]
    places: list[Tensor]
    src_mask: Tensor | None
    n_sentences: int
    visible: Tensor | None = None
    n_beams: int = 1
    n_places: int = 0
    length: int = 0

    def select(self, sentences: Tensor, beams: Tensor) -> None:
        """Keep some sentences, and continue some of their beams.

        Args:
            sentences: (n',) which sentences to keep, and in which order. Those that keep their place are not copied.
            beams: (n', K') for each of them the beams, 0 to K - 1, that its new beams continue; beams may repeat.
        """
        n_beams = beams.size(1)
        if n_beams > 1 or self.visible is not None:
            visible = self.visible
            if visible is None:
                visible = beams.new_zeros(self.n_sentences, 1, self.n_places, dtype=self.memory[0].dtype)
            rows = (sentences[:, None] * self.n_beams + beams).flatten()  # (n'·K',)
            self.visible = visible.flatten(0, 1).index_select(0, rows).view(*beams.shape, self.n_places)
        self.n_beams = n_beams
        order = torch.arange(len(sentences), device=sentences.device)
        if len(order) < self.n_sentences or not torch.equal(sentences, order):
            self._move(sentences, (sentences != order).nonzero()[:, 0])

    def _move(self, sentences: Tensor, moved: Tensor) -> None:
        """Keep ``sentences`` (n',), copying those at the indices ``moved``, whose place changes."""
        n = self.n_sentences = len(sentences)
        for tensors in (self.memory, self.places):
            for i, tensor in enumerate(tensors):
                tensor[moved] = tensor[sentences[moved]]
                tensors[i] = tensor[:n]
        if self.src_mask is not None:
            self.src_mask = self.src_mask[sentences]

    def begin_step(self) -> None:
        """Make places for the next position, which every beam sees its own of."""
        n, k, start = self.n_sentences, self.n_beams, self.n_places
        self.n_places += k
        if self.n_places > self.places[0].size(1):
            self.places = [_grown(places[:, :start], 2 * self.n_places) for places in self.places]
        if self.visible is not None:
            own = self.visible.new_full((k, k), float("-inf")).fill_diagonal_(0.0)
            self.visible = torch.cat([self.visible, own.expand(n, k, k)], dim=2)


def _grown(places: Tensor, capacity: int) -> Tensor:
    grown = places.new_empty(len(places), capacity, *places.shape[2:])
    grown[:, : places.size(1)] = places
    return grown


class InferenceModel:
    """A Transformer without dropout, with weights packed for a precision; it does not follow later changes of them."""

    def __init__(self, model: Transformer, precision: SearchPrecision = "fp32") -> None:
        """Prepare ``model``, on the device that it is on."""
        self.model = model
        self.device = model.output.weight.device
        self._encoder_layers = [_EncoderLayer(cast(EncoderLayer, layer), precision) for layer in model.encoder_layers]
        self._decoder_layers = [_DecoderLayer(cast(DecoderLayer, layer), precision) for layer in model.decoder_layers]
        self._decoder_norm = _norm(model.decoder_norm)
        self._project = pack_linear(model.output, precision)

    def encode(self, src: Tensor, src_mask: Tensor) -> Tensor:
        """Turn source ids (n, S) and their mask, True at real tokens, into the memory (n, S, D)."""
        mask = _additive(src_mask)
        x = self.model.embed_src(src).flatten(0, 1)  # (n·S, D)
        for layer in self._encoder_layers:
            x = layer(x, len(src), mask)
        return self.model.encoder_norm(x).unflatten(0, src.shape)

    def start(self, src: Tensor, src_mask: Tensor, n_copies: int = 1) -> Cache:
        """Encode source ids (B, S), given their mask, and start ``n_copies`` sentences of each, with one beam."""
        memory = self.encode(src, src_mask)
        keys_and_values = [layer.cross_attention.project_memory(memory) for layer in self._decoder_layers]
        if n_copies > 1:
            keys_and_values = [tensor.repeat_interleave(n_copies, dim=0) for tensor in keys_and_values]
            src_mask = src_mask.repeat_interleave(n_copies, dim=0)
        shape = (len(src_mask), _FIRST_PLACES, *keys_and_values[0].shape[2:])
        places = [memory.new_empty(shape) for _ in self._decoder_layers]
        return Cache(keys_and_values, places, _additive(src_mask), len(src_mask))

    def step(self, tokens: Tensor, cache: Cache) -> Tensor:
        """Decode one more position.

        Args:
            tokens: (N,) the ids chosen last; BOS at first.
            cache: the state, which is updated.

        Returns:
            (N, V), the logits of the next id: what the model's ``forward`` and ``project`` give for this position.
        """
        cache.begin_step()
        x = self.model.embed_tgt(tokens[:, None], cache.length)[:, 0]  # (N, D)
        for number, layer in enumerate(self._decoder_layers):
            x = layer.step(x, cache, number)
        cache.length += 1
        return self._project(self._decoder_norm(x))


def _additive(mask: Tensor) -> Tensor | None:
    """Turn (n, S), True = may attend, into (n, 1, 1, S) to add to scores; None if all may."""
    if mask.all():
        return None
    return torch.zeros(mask.shape, device=mask.device).masked_fill_(~mask, float("-inf"))[:, None, None, :]


def _norm(norm: nn.Module) -> Linear:
    """Return a normalization without the overhead of calling a module."""
    if isinstance(norm, nn.LayerNorm):
        return partial(
            F.layer_norm, normalized_shape=norm.normalized_shape, weight=norm.weight, bias=norm.bias, eps=norm.eps
        )
    if isinstance(norm, nn.RMSNorm):
        return partial(F.rms_norm, normalized_shape=norm.normalized_shape, weight=norm.weight, eps=norm.eps)
    return norm


class _Residual:
    """:class:`mtformer.model.layers.Residual` without dropout; ``sublayer`` returns a new tensor, which is changed."""

    def __init__(self, residual: Residual) -> None:
        self._norm, self._norm_first = _norm(residual.norm), residual.norm_first

    def __call__(self, x: Tensor, sublayer: Callable[..., Tensor], *args: object) -> Tensor:
        if self._norm_first:
            return sublayer(self._norm(x), *args).add_(x)
        return self._norm(sublayer(x, *args).add_(x))


class _FeedForward:
    """:class:`FeedForward` with packed weights."""

    def __init__(self, module: FeedForward, precision: SearchPrecision) -> None:
        self._linear1, self._linear2 = pack_linear(module.linear1, precision), pack_linear(module.linear2, precision)
        self._activation = module.activation

    def __call__(self, x: Tensor) -> Tensor:
        return self._linear2(self._activation(self._linear1(x)))


class _Attention:
    """:meth:`MultiHeadAttention.attend` for rows. The tap of ``attention`` sees the weights here too."""

    def __init__(self, attention: MultiHeadAttention, precision: SearchPrecision) -> None:
        self._attention = attention
        self._heads = (attention.n_heads, attention.d_model // attention.n_heads)  # (H, Dh)
        self._out_proj = pack_linear(attention.out_proj, precision)

    def _attend(self, q: Tensor, kv: Tensor, mask: Tensor | None) -> Tensor:
        """Attend with queries (n, T, H, Dh) to keys and values (n, S, 2, H, Dh) and return rows (n·T, D)."""
        q, k, v = q.transpose(1, 2), kv[:, :, 0].transpose(1, 2), kv[:, :, 1].transpose(1, 2)
        if self._attention.observer is not None:
            self._attention.observer(self._weights(q, k, mask))
        heads = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)  # (n, H, T, Dh)
        return self._out_proj(heads.transpose(1, 2).reshape(-1, self._attention.d_model))

    def _weights(self, q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
        """Return what the tap records."""
        return attention_weights(q, k, None if mask is None else mask == 0)


class _SelfAttention(_Attention):
    """Attention of the encoder's positions to each other."""

    def __init__(self, attention: MultiHeadAttention, precision: SearchPrecision) -> None:
        super().__init__(attention, precision)
        self._qkv_proj = pack_linear(attention.qkv_proj, precision)

    def __call__(self, x: Tensor, n: int, mask: Tensor | None) -> Tensor:
        """Let the rows (n·S, D) of each sentence attend to each other."""
        qkv = self._qkv_proj(x).view(n, -1, 3, *self._heads)
        if self._attention.rotary:
            qkv = _rotated(qkv)
        return self._attend(qkv[:, :, 0], qkv[:, :, 1:], mask)


class _PrefixAttention(_SelfAttention):
    """Attention of the beams to their prefixes and themselves."""

    def step(self, x: Tensor, cache: Cache, number: int) -> Tensor:
        """Let rows (N, D) attend in layer ``number`` of ``cache``, which their keys and values are added to."""
        n, k = cache.n_sentences, cache.n_beams
        qkv = self._qkv_proj(x).view(n, k, 3, *self._heads)
        if self._attention.rotary:
            qkv = _rotated(qkv.view(n * k, 1, 3, *self._heads), cache.length).view_as(qkv)
        places = cache.places[number][:, : cache.n_places]  # (n, n_places, 2, H, Dh)
        places[:, -k:] = qkv[:, :, 1:]
        return self._attend(qkv[:, :, 0], places, None if cache.visible is None else cache.visible[:, None])

    def _weights(self, q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
        """Return (N, H, 1, t), the weights of each beam on its own prefix."""
        weights = super()._weights(q, k, mask).transpose(1, 2)  # (n, K, H, n_places)
        if mask is None:
            return weights.transpose(1, 2)
        own = (mask == 0).transpose(1, 2).expand_as(weights)
        return weights[own].view(-1, weights.size(2), 1, int(own[0, 0, 0].sum()))


def _rotated(qkv: Tensor, start: int = 0) -> Tensor:
    """Rotate the queries and keys in (n, T, 3, H, Dh), at positions from ``start`` on."""
    rotated = rotate(qkv[:, :, :2].movedim(1, 3), start).movedim(3, 1)  # (n, 2, H, T, Dh) and back
    return torch.cat([rotated, qkv[:, :, 2:]], dim=2)


class _CrossAttention(_Attention):
    """Attention of the beams to the memory of their sentence."""

    def __init__(self, attention: MultiHeadAttention, precision: SearchPrecision) -> None:
        super().__init__(attention, precision)
        d, weight, bias = attention.d_model, attention.qkv_proj.weight, attention.qkv_proj.bias
        self._q_proj = pack(weight[:d], bias[:d], precision)
        self._kv_proj = pack(weight[d:], bias[d:], precision)

    def project_memory(self, memory: Tensor) -> Tensor:
        """Turn the memory (n, S, D) into keys and values (n, S, 2, H, Dh)."""
        return self._kv_proj(memory.flatten(0, 1)).view(*memory.shape[:2], 2, *self._heads)

    def step(self, x: Tensor, cache: Cache, number: int) -> Tensor:
        """Let rows (N, D) attend to the memory in layer ``number``: a sentence's beams are its queries."""
        q = self._q_proj(x).view(cache.n_sentences, cache.n_beams, *self._heads)
        return self._attend(q, cache.memory[number], cache.src_mask)


class _EncoderLayer:
    """:class:`EncoderLayer` for rows."""

    def __init__(self, layer: EncoderLayer, precision: SearchPrecision) -> None:
        self._self_attention = _SelfAttention(layer.self_attention, precision)
        self._feed_forward = _FeedForward(layer.feed_forward, precision)
        self._residuals = [_Residual(cast(Residual, residual)) for residual in layer.residuals]

    def __call__(self, x: Tensor, n: int, mask: Tensor | None) -> Tensor:
        x = self._residuals[0](x, self._self_attention, n, mask)
        return self._residuals[1](x, self._feed_forward)


class _DecoderLayer:
    """:class:`DecoderLayer`, one position at a time."""

    def __init__(self, layer: DecoderLayer, precision: SearchPrecision) -> None:
        self._self_attention = _PrefixAttention(layer.self_attention, precision)
        self.cross_attention = _CrossAttention(layer.cross_attention, precision)
        self._feed_forward = _FeedForward(layer.feed_forward, precision)
        self._residuals = [_Residual(cast(Residual, residual)) for residual in layer.residuals]

    def step(self, x: Tensor, cache: Cache, number: int) -> Tensor:
        """Map rows (N, D), adding their keys and values to layer ``number`` of ``cache``."""
        x = self._residuals[0](x, self._self_attention.step, cache, number)
        x = self._residuals[1](x, self.cross_attention.step, cache, number)
        return self._residuals[2](x, self._feed_forward)
