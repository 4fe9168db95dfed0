"""The Transformer prepared for translating: step-by-step decoding with a cache, in as few operations as possible.

It computes the same as :class:`mtformer.model.transformer.Transformer`; ``tests/test_inference.py`` compares them for
every architecture, and each training does before it begins. Most of a small model's step is the time that Python and
torch need to start operations; hence packed weights, no dropout modules, rows instead of (B, T, D), and a cache that is
never reordered.

Shapes: n sentences with K beams each, N = n·K rows, sentence by sentence; S source length, C slots in the cache;
L layers, H heads, D ``d_model``, Dh = D / H, V vocabulary. Masks are numbers to add to the scores: 0, or -inf where a
query may not attend.
"""

from collections.abc import Callable
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mtformer.model.attention import MultiHeadAttention, attention_weights
from mtformer.model.cache import Cache, StaticCache, Step
from mtformer.model.graphs import CAPTURES
from mtformer.model.layers import DecoderLayer, EncoderLayer, FeedForward, Residual
from mtformer.model.packing import Packer
from mtformer.model.positions import rotate
from mtformer.model.transformer import Transformer
from mtformer.support.errors import MtformerError

_N_COMPARED = 40  # tokens of each sentence
_TOLERANCE = 0.01  # of the standard deviation of the logits; rounding differs by 0.00001


class InferenceModel:
    """A Transformer without dropout, with packed weights; it does not follow later changes of them."""

    def __init__(self, model: Transformer, pack: Packer | None = None) -> None:
        """Prepare ``model``, on the device that it is on.

        Args:
            model: with an adapter or without.
            pack: packs its weights, and has those that it shares with others packed already; None for float32.
        """
        pack = pack or Packer()
        self.model = model
        self.device = model.output.weight.device
        self.special_ids = model.architecture.special_ids
        self._encoder_layers = [_EncoderLayer(cast(EncoderLayer, layer), pack) for layer in model.encoder_layers]
        self._decoder_layers = [_DecoderLayer(cast(DecoderLayer, layer), pack) for layer in model.decoder_layers]
        self._decoder_norm = _norm(model.decoder_norm)
        self._project = pack(model.output)

    def encode(self, src: Tensor, src_mask: Tensor) -> Tensor:
        """Turn source ids (n, S) and their mask, True at real tokens, into the memory (n, S, D)."""
        mask = _additive(src_mask)
        x = self.model.embed_src(src).flatten(0, 1)  # (n·S, D)
        for layer in self._encoder_layers:
            x = layer(x, len(src), mask)
        return self.model.encoder_norm(x).unflatten(0, src.shape)

    def start(self, src: Tensor, src_mask: Tensor, n_copies: int = 1) -> Cache | StaticCache:
        """Encode source ids (B, S), given their mask, and start ``n_copies`` sentences of each, with one beam.

        What taps attention must do so before the start, since a graph would bypass it.
        """
        memory = self.encode(src, src_mask)
        memory_kv = torch.stack([layer.cross_attention.project_memory(memory) for layer in self._decoder_layers])
        if n_copies > 1:
            memory_kv = memory_kv.repeat_interleave(n_copies, dim=2)
            src_mask = src_mask.repeat_interleave(n_copies, dim=0)
        if self.device.type in CAPTURES and not any(layer.is_tapped for layer in self._decoder_layers):
            return StaticCache(memory_kv, _additive(src_mask), self.model.tgt_positions)
        return Cache.start(memory_kv, _additive(src_mask))

    def step(self, tokens: Tensor, cache: Cache | StaticCache) -> Tensor:
        """Decode one more position.

        Args:
            tokens: (N,) the ids chosen last; at first the one that starts decoding.
            cache: the state, which is updated.

        Returns:
            (N, V), the logits of the next id: what the model's ``forward`` and ``project`` give for this position.
        """
        return cache.advance(tokens, self._logits)

    def state(self, tokens: Tensor, cache: Cache | StaticCache) -> Tensor:
        """Decode one more position as :meth:`step` does, and return (N, D), which :meth:`project` turns into logits.

        All steps with a cache are of one kind: a graph that is replayed has either result.
        """
        return cache.advance(tokens, self._state)

    def project(self, state: Tensor) -> Tensor:
        """Turn states (N, D) into logits (N, V)."""
        return self._project(state)

    def _state(self, tokens: Tensor, step: Step) -> Tensor:
        """Turn the ids (N,) chosen last into the state (N, D) that predicts the next: the decoder's output."""
        x = self.model.embed_tgt(tokens[:, None], step.position)[:, 0]  # (N, D)
        for i, layer in enumerate(self._decoder_layers):
            x = layer.step(x, step, i)
        return self._decoder_norm(x)

    def _logits(self, tokens: Tensor, step: Step) -> Tensor:
        """Turn the ids (N,) chosen last into the logits (N, V) of the next."""
        return self._project(self._state(tokens, step))


@torch.inference_mode()
def require_same_logits(model: Transformer) -> None:
    """Refuse a model, changed here or there, that translates as another one than it trains and scores.

    Raises:
        MtformerError: for two sentences, :class:`InferenceModel` computes other logits.
    """
    architecture = model.architecture
    length = min(_N_COMPARED, architecture.max_length)
    ids = torch.arange(2 * length, device=model.device).view(2, length)
    src, tgt = ids % architecture.src_vocab_size, (ids + 1) % architecture.tgt_vocab_size
    src_mask = torch.ones_like(src, dtype=torch.bool)
    src_mask[1, length // 2 :] = False  # padding
    is_training = model.training
    model.eval()
    expected = model.project(model(src, src_mask, tgt))
    inference = InferenceModel(model)
    cache = inference.start(src, src_mask)
    found = torch.stack([inference.step(tokens, cache) for tokens in tgt.unbind(1)], dim=1)
    model.train(is_training)
    if not torch.allclose(found, expected, rtol=0, atol=_TOLERANCE * expected.std().item()):
        raise MtformerError(
            "step by step, the model computes other logits than at once, so it would not translate as it is trained: "
            "what has changed in mtformer/model/attention.py, layers.py or transformer.py has to change in inference.py"
        )


def _additive(mask: Tensor) -> Tensor | None:
    """Turn (n, S), True = may attend, into (n, 1, 1, S) to add to scores; None if all may on a CPU.

    The question would have the processor wait for a GPU.
    """
    if mask.device.type == "cpu" and mask.all():
        return None
    return torch.zeros(mask.shape, device=mask.device).masked_fill_(~mask, float("-inf"))[:, None, None, :]


def _norm(norm: nn.Module) -> Callable[[Tensor], Tensor]:
    """Return a normalization without the overhead of calling a module."""
    if isinstance(norm, nn.LayerNorm):
        shape, weight, bias, eps = list(norm.normalized_shape), norm.weight.detach(), norm.bias.detach(), norm.eps
        return lambda x: torch.layer_norm(x, shape, weight, bias, eps)
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

    def __init__(self, module: FeedForward, pack: Packer) -> None:
        self._linear1, self._linear2 = pack(module.linear1), pack(module.linear2)
        self._activation = module.activation

    def __call__(self, x: Tensor) -> Tensor:
        return self._linear2(self._activation(self._linear1(x)))


class _Attention:
    """:meth:`MultiHeadAttention.attend` for rows. The tap of ``attention`` sees the weights here too."""

    def __init__(self, attention: MultiHeadAttention, pack: Packer) -> None:
        self._attention, self._d_model, self._rotary = attention, attention.d_model, attention.rotary
        self._heads = (attention.n_heads, attention.d_model // attention.n_heads)  # (H, Dh)
        self._out_proj = pack(attention.out_proj)

    @property
    def is_tapped(self) -> bool:
        """Whether an observer wants the weights."""
        return self._attention.observer is not None

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, *, may_tap: bool = True) -> Tensor:
        """Attend with queries (n, H, T, Dh) to keys and values (n, H, S, Dh) and return rows (n·T, D)."""
        observer = self._attention.observer  # which another thread may take away
        if observer is not None and may_tap:
            observer(self._weights(q, k, mask))
        heads = F.scaled_dot_product_attention(q, k, v, mask)  # (n, H, T, Dh)
        return self._out_proj(heads.transpose(1, 2).reshape(-1, self._d_model))

    def _weights(self, q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
        """Return the weights for the tap."""
        return attention_weights(q, k, None if mask is None else mask == 0)


class _SelfAttention(_Attention):
    """Attention of the encoder's positions to each other."""

    def __init__(self, attention: MultiHeadAttention, pack: Packer) -> None:
        super().__init__(attention, pack)
        self._qkv_proj = pack(attention.qkv_proj)

    def __call__(self, x: Tensor, n: int, mask: Tensor | None) -> Tensor:
        """Let the rows (n·S, D) of each sentence attend to each other."""
        q, k, v = self._project(x, n).unbind()
        if self._rotary:
            q, k = rotate(q), rotate(k)
        return self._attend(q, k, v, mask)

    def _project(self, x: Tensor, n: int) -> Tensor:
        """Turn rows (n·T, D) into queries, keys and values (3, n, H, T, Dh)."""
        return self._qkv_proj(x).view(n, -1, 3, *self._heads).permute(2, 0, 3, 1, 4)


class _PrefixAttention(_SelfAttention):
    """Attention of the beams to their prefixes and themselves."""

    def step(self, x: Tensor, step: Step, i: int) -> Tensor:
        """Let rows (N, D) attend in layer ``i``, whose cache their keys and values are added to."""
        qkv = self._project(x, step.n_sentences)  # (3, n, H, K, Dh)
        if self._rotary:
            qkv = torch.cat([rotate(qkv[:2, ..., None, :], step.position)[..., 0, :], qkv[2:]])
        step.write(i, qkv.narrow(0, 1, 2))
        k, v = step.prefix_kv[i]
        return self._attend(qkv.select(0, 0), k, v, step.visible, may_tap=step.slots is None)

    def _weights(self, q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
        """Return (N, H, 1, t), the weights of each beam on its own prefix."""
        weights = super()._weights(q, k, mask)  # (n, H, K, n_slots)
        if mask is None:
            return weights
        own = (mask == 0).transpose(1, 2).expand(-1, -1, weights.size(1), -1)  # (n, K, H, n_slots)
        return weights.transpose(1, 2)[own].view(-1, weights.size(1), 1, int(own[0, 0, 0].sum()))


class _CrossAttention(_Attention):
    """Attention of the beams to the memory of their sentence."""

    def __init__(self, attention: MultiHeadAttention, pack: Packer) -> None:
        super().__init__(attention, pack)
        self._q_proj = pack(attention.qkv_proj, 0, 1)
        self._kv_proj = pack(attention.qkv_proj, 1)

    def project_memory(self, memory: Tensor) -> Tensor:
        """Turn the memory (n, S, D) into keys and values (2, n, H, S, Dh)."""
        return self._kv_proj(memory.flatten(0, 1)).view(*memory.shape[:2], 2, *self._heads).permute(2, 0, 3, 1, 4)

    def step(self, x: Tensor, step: Step, i: int) -> Tensor:
        """Let rows (N, D) attend to the memory in layer ``i``: a sentence's beams are its queries."""
        q = self._q_proj(x).view(step.n_sentences, step.n_beams, *self._heads).transpose(1, 2)
        k, v = step.memory_kv[i]
        return self._attend(q, k, v, step.src_mask, may_tap=step.slots is None)


class _EncoderLayer:
    """:class:`EncoderLayer` for rows."""

    def __init__(self, layer: EncoderLayer, pack: Packer) -> None:
        self._self_attention = _SelfAttention(layer.self_attention, pack)
        self._feed_forward = _FeedForward(layer.feed_forward, pack)
        self._residuals = [_Residual(cast(Residual, residual)) for residual in layer.residuals]

    def __call__(self, x: Tensor, n: int, mask: Tensor | None) -> Tensor:
        x = self._residuals[0](x, self._self_attention, n, mask)
        return self._residuals[1](x, self._feed_forward)


class _DecoderLayer:
    """:class:`DecoderLayer`, one position at a time."""

    def __init__(self, layer: DecoderLayer, pack: Packer) -> None:
        self._self_attention = _PrefixAttention(layer.self_attention, pack)
        self.cross_attention = _CrossAttention(layer.cross_attention, pack)
        self._feed_forward = _FeedForward(layer.feed_forward, pack)
        self._residuals = [_Residual(cast(Residual, residual)) for residual in layer.residuals]

    @property
    def is_tapped(self) -> bool:
        """Whether an observer wants the weights of an attention."""
        return self._self_attention.is_tapped or self.cross_attention.is_tapped

    def step(self, x: Tensor, step: Step, i: int) -> Tensor:
        """Map rows (N, D) in layer ``i``, whose cache their keys and values are added to."""
        x = self._residuals[0](x, self._self_attention.step, step, i)
        x = self._residuals[1](x, self.cross_attention.step, step, i)
        return self._residuals[2](x, self._feed_forward)
