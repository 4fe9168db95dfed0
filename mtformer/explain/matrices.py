"""Every matrix of a forward pass over one sentence, as the model itself computes it.

Hooks take what goes into the model's modules and comes out of them; nothing of the model is computed a second time
but the steps inside its attention, between the projections and the weights.
Shapes: H heads, S source tokens, T target tokens, D ``d_model``, Dh = D / H.
"""

import math
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from mtformer.explain.trace import Attention, Block, Kind
from mtformer.model.architecture import ACTIVATIONS
from mtformer.model.attention import MultiHeadAttention, causal_mask, record_attention
from mtformer.model.layers import FeedForward, GatedFeedForward, Residual
from mtformer.model.transformer import Transformer

Side = Literal["source", "target"]
_SUBLAYERS: dict[str, tuple[Literal["self_attention", "cross_attention", "feed_forward"], ...]] = {
    "encoder": ("self_attention", "feed_forward"),
    "decoder": ("self_attention", "cross_attention", "feed_forward"),
}


_SIDES: dict[Kind, tuple[Side, Side]] = {
    "encoder": ("source", "source"),
    "decoder": ("target", "target"),
    "cross": ("target", "source"),
}  # of queries and keys


@dataclass(frozen=True)
class ForwardPass:
    """What a model computed for one sentence.

    Attributes:
        attentions: the weights of all attentions: encoder, decoder, cross, by layer.
        blocks: every matrix, in order of computation, up to the logits.
        logits: (T, V).
    """

    attentions: tuple[Attention, ...]
    blocks: tuple[Block, ...]
    logits: Tensor


@torch.inference_mode()
def record_pass(model: Transformer, src: Tensor, tgt_in: Tensor, n_forced: int = 0) -> ForwardPass:
    """Run a model in evaluation mode on a source (1, S) and the decoder's input (1, T) and keep all it computes.

    The model must not be used by another thread meanwhile.

    Args:
        model: the model.
        src: source ids.
        tgt_in: the decoder's input.
        n_forced: how many ids at its start are left out; what rows of attention lack to 1 went to them.
    """
    with record_attention(model) as weights, _record_calls(model) as calls:
        logits = model.project(model(src, torch.ones_like(src, dtype=torch.bool), tgt_in))[0]
    recorder = _Blocks(model, calls, {name: recorded[0] for name, recorded in weights.items()}, n_forced)
    return ForwardPass(tuple(_attentions(weights, n_forced)), tuple(recorder.all()), logits[n_forced:])


@torch.inference_mode()
def record_attentions(model: Transformer, src: Tensor, tgt_in: Tensor, n_forced: int = 0) -> tuple[Attention, ...]:
    """Run a model like :func:`record_pass`, and keep only the weights of its attentions."""
    with record_attention(model) as weights:
        model(src, torch.ones_like(src, dtype=torch.bool), tgt_in)
    return tuple(_attentions(weights, n_forced))


@dataclass(frozen=True)
class _Call:
    """The inputs and outputs of a module."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    output: Any


@contextmanager
def _record_calls(model: nn.Module) -> Iterator[dict[nn.Module, list[_Call]]]:
    """Record the calls of every module of ``model`` inside the block, in order."""
    calls: dict[nn.Module, list[_Call]] = defaultdict(list)

    def record(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        calls[module].append(_Call(args, kwargs, output))

    hooks = [module.register_forward_hook(record, with_kwargs=True) for module in model.modules()]
    try:
        yield calls
    finally:
        for hook in hooks:
            hook.remove()


def _attentions(weights: dict[str, list[Tensor]], n_forced: int) -> Iterator[Attention]:
    """Yield the weights of all attentions, encoder first, by their names such as decoder_layers.0.cross_attention."""
    kinds: dict[tuple[str, str], Kind] = {
        ("encoder_layers", "self_attention"): "encoder",
        ("decoder_layers", "self_attention"): "decoder",
        ("decoder_layers", "cross_attention"): "cross",
    }
    for module, kind in kinds.items():
        for name, [recorded] in weights.items():
            stack, number, sublayer = name.split(".")
            if (stack, sublayer) == module:
                rows, columns = (n_forced if side == "target" else 0 for side in _SIDES[kind])
                yield Attention(kind, int(number) + 1, name, recorded[0][:, rows:, columns:].float().cpu().numpy())


class _Blocks:
    """Puts the matrices of a forward pass in order, each with its formula."""

    def __init__(
        self, model: Transformer, calls: dict[nn.Module, list[_Call]], weights: dict[str, Tensor], n_forced: int
    ) -> None:
        self._model, self._calls, self._weights, self._n_forced = model, calls, weights, n_forced

    def all(self) -> Iterator[Block]:
        """Yield all blocks in order of computation."""
        stacks: tuple[tuple[Literal["encoder", "decoder"], Side], ...] = (("encoder", "source"), ("decoder", "target"))
        for stack, side in stacks:
            yield from self._embedding(side)
            layers = getattr(self._model, f"{stack}_layers")
            for number, layer in enumerate(layers, 1):
                for residual, sublayer in zip(layer.residuals, _SUBLAYERS[stack], strict=True):
                    make = _Maker(stack, side, number, sublayer, self._n_forced)
                    name = f"{stack}_layers.{number - 1}.{sublayer}"
                    yield from self._residual(make, residual, getattr(layer, sublayer), name)
            norm = getattr(self._model, f"{stack}_norm")
            if not isinstance(norm, nn.Identity):
                make = _Maker(stack, side, None, "norm", self._n_forced)
                yield make(f"{stack} output", f"{_norm_formula(norm)} of the last layer", self._output(norm))

    def _embedding(self, side: Side) -> Iterator[Block]:
        """Yield the embeddings; modules that both sides share are called for the source first."""
        make = _Maker("embedding", side, None, None, self._n_forced)
        prefix, layers = (
            ("src", self._model.encoder_layers) if side == "source" else ("tgt", self._model.decoder_layers)
        )
        place = 0 if side == "source" else -1
        embedded = self._output(getattr(self._model, f"{prefix}_embedding"), place)
        positions = self._calls[getattr(self._model, f"{prefix}_positions")][place].output  # (T, D), or 0.0 for none
        yield make("embeddings", "E[ids]", embedded)
        yield make("scaled embeddings", "E[ids]·√d_model", embedded * math.sqrt(self._model.d_model))
        if isinstance(positions, Tensor):
            yield make("positions", "PE[0 … n−1]", positions)
            yield make("x", "E[ids]·√d_model + PE", self._input(layers[0]))

    def _residual(self, make: "_Maker", residual: Residual, sublayer: Any, name: str) -> Iterator[Block]:
        """Yield a sub-layer with the normalization before or after it, and the residual sum."""
        formula = _norm_formula(residual.norm)
        read = "norm" if residual.norm_first else "x"
        if residual.norm_first:
            yield make("norm", f"{formula} of x", self._output(residual.norm))
        if isinstance(sublayer, MultiHeadAttention):
            yield from self._attention(make, sublayer, self._weights[name], read)
        else:
            yield from self._feed_forward(make, sublayer, read)
        if residual.norm_first:
            yield make("residual", "x + Sublayer(Norm(x))", self._output(residual))
        else:
            yield make("residual", "x + Sublayer(x)", self._input(residual.norm))
            yield make("norm", f"{formula} of the residual sum", self._output(residual.norm))

    def _attention(self, make: "_Maker", attention: MultiHeadAttention, weights: Tensor, read: str) -> Iterator[Block]:
        """Yield one attention, from the projections by the module's own functions to its output.

        Args:
            make: makes the blocks.
            attention: the sub-layer.
            weights: its attention weights.
            read: the name of the block that it reads.
        """
        call = self._calls[attention][0]
        query, memory = call.args[:2]
        is_self = query is memory
        q, k, v = (
            attention.project_qkv(query) if is_self else (attention.project_q(query), *attention.project_kv(memory))
        )
        keys: Side = make.side if is_self else "source"
        keys_input = read if is_self else "memory"
        rotated = ", rotated by position" if attention.rotary else ""
        yield make("Q", f"{read}·W^Q + b{rotated}", q[0])
        yield make("K", f"{keys_input}·W^K + b{rotated}", k[0], rows=keys)
        yield make("V", f"{keys_input}·W^V + b", v[0], rows=keys)
        products = q[0] @ k[0].transpose(-2, -1)  # (H, T, S)
        scores = products / math.sqrt(q.size(-1))
        yield make("scores", "Q·Kᵀ", products, columns=keys)
        yield make("scaled scores", "Q·Kᵀ / √d_head", scores, columns=keys)
        if call.kwargs.get("causal"):
            mask = causal_mask(q.size(2), q.device)
            yield make("mask", "1 = may attend: position t to positions ≤ t", mask, columns=keys)
            scores = scores.masked_fill(~mask, float("-inf"))
            yield make("masked scores", "−∞ where the mask is 0", scores, columns=keys)
        yield make("weights", "softmax of each row", weights[0], columns=keys)
        yield make("heads", "weights·V", weights[0] @ v[0])
        yield make("concatenation", "heads side by side", self._input(attention.out_proj))
        yield make("output", "concatenation·W^O + b", self._output(attention.out_proj))

    def _feed_forward(self, make: "_Maker", network: FeedForward | GatedFeedForward, read: str) -> Iterator[Block]:
        """Yield one feed-forward network that reads the block ``read``."""
        first, activation = self._output(network.linear1), self._input(network.linear2)
        formula = ACTIVATIONS[self._model.architecture.activation].formula
        if isinstance(network, GatedFeedForward):
            gate, value = first.chunk(2, dim=-1)
            yield make("gate", f"{read}·W1 + b1", gate)
            yield make("value", f"{read}·V + b", value)
            yield make("activation", f"{formula.format('gate')} ⊗ value", activation)
        else:
            yield make("linear1", f"{read}·W1 + b1", first)
            yield make("activation", formula.format("linear1"), activation)
        yield make("linear2", "activation·W2 + b2", self._output(network.linear2))

    def _input(self, module: nn.Module) -> Tensor:
        """Return the input of a module, without the batch's dimension."""
        value: Tensor = self._calls[module][0].args[0][0]
        return value

    def _output(self, module: nn.Module, place: int = 0) -> Tensor:
        """Return the output of a module at one of its calls, without the batch's dimension."""
        value: Tensor = self._calls[module][place].output[0]
        return value


@dataclass(frozen=True)
class _Maker:
    """Makes the blocks of one part of the model."""

    stack: Literal["embedding", "encoder", "decoder"]
    side: Side
    layer: int | None
    sublayer: Literal["self_attention", "cross_attention", "feed_forward", "norm"] | None
    n_forced: int  # rows and columns of the target that are left out

    def __call__(
        self,
        name: str,
        formula: str,
        values: Tensor,
        *,
        rows: Side | None = None,
        columns: Literal["source", "target", "features"] = "features",
    ) -> Block:
        """Make a block of the values of one sentence."""
        rows = rows or self.side
        values = values[..., self.n_forced if rows == "target" else 0 :, self.n_forced if columns == "target" else 0 :]
        array: np.ndarray = values.int().cpu().numpy() if values.dtype == torch.bool else values.float().cpu().numpy()
        return Block(
            self.stack,
            self.side,
            self.layer,
            self.sublayer,
            name,
            formula,
            array.shape,
            rows,
            columns,
            array,
        )


def _norm_formula(norm: nn.Module) -> str:
    return type(norm).__name__
