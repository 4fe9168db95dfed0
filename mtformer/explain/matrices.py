"""Every matrix of a forward pass over one sentence, as the model itself computes it.

Hooks take what goes into the model's modules and comes out of them; nothing of the model is computed a second time
but the steps inside its attention, between the projections and the weights.
Shapes: H heads, S source tokens, T target tokens, D ``d_model``, Dh = D / H.
"""

import math
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from mtformer.explain.trace import Attention, Block, Kind
from mtformer.model.architecture import ACTIVATIONS
from mtformer.model.attention import MultiHeadAttention, causal_mask, record_attention
from mtformer.model.layers import FeedForward, Residual
from mtformer.model.transformer import Transformer

Side = Literal["source", "target"]
_SUBLAYERS = {
    "encoder": ("self_attention", "feed_forward"),
    "decoder": ("self_attention", "cross_attention", "feed_forward"),
}
# The stack and the sub-layer of each kind of attention, and whose tokens its queries and its keys are.
_KINDS: dict[Kind, tuple[str, str, Side, Side]] = {
    "encoder": ("encoder", "self_attention", "source", "source"),
    "decoder": ("decoder", "self_attention", "target", "target"),
    "cross": ("decoder", "cross_attention", "target", "source"),
}


class ForwardPass(NamedTuple):
    """The matrices that a model computed for one sentence.

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
    recorder = _Recorder(model, calls, {name: recorded[0] for name, recorded in weights.items()}, n_forced)
    return ForwardPass(tuple(_attentions(weights, n_forced)), tuple(recorder.blocks), logits[n_forced:])


@torch.inference_mode()
def record_attentions(model: Transformer, src: Tensor, tgt_in: Tensor, n_forced: int = 0) -> tuple[Attention, ...]:
    """Run a model like :func:`record_pass`, and keep only the weights of its attentions."""
    with record_attention(model) as weights:
        model(src, torch.ones_like(src, dtype=torch.bool), tgt_in)
    return tuple(_attentions(weights, n_forced))


class _Call(NamedTuple):
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
    for kind, (stack, sublayer, *sides) in _KINDS.items():
        for name, [recorded] in weights.items():
            if name.startswith(stack) and name.endswith(sublayer):
                rows, columns = (n_forced * (side == "target") for side in sides)
                layer = 1 + int(name.split(".")[1])
                yield Attention(kind, layer, name, recorded[0][:, rows:, columns:].float().cpu().numpy())


class _Recorder:
    """Puts the matrices of a forward pass in order, each with its formula."""

    def __init__(
        self, model: Transformer, calls: dict[nn.Module, list[_Call]], weights: dict[str, Tensor], n_forced: int
    ) -> None:
        self.blocks: list[Block] = []
        self._model, self._calls, self._weights, self._n_forced = model, calls, weights, n_forced
        self._side: Side = "source"
        self._place: tuple[Any, Any, Any, Any]  # the stack, the side, the layer and the sub-layer of the blocks to come
        self._stack("encoder", "source", model.src_embedding, model.src_positions)
        self._stack("decoder", "target", model.tgt_embedding, model.tgt_positions)

    def _enter(self, stack: str, layer: int | None = None, sublayer: str | None = None) -> None:
        """Begin another part of the model."""
        self._place = stack, self._side, layer, sublayer

    def _add(
        self,
        name: str,
        formula: str,
        values: Tensor,
        *,
        rows: Side | None = None,
        columns: Literal["source", "target", "features"] = "features",
    ) -> None:
        """Add the values of one sentence, without the target's forced tokens; ``rows`` are by default this side's."""
        rows = rows or self._side
        values = values[..., self._n_forced * (rows == "target") :, self._n_forced * (columns == "target") :]
        array: np.ndarray = values.int().cpu().numpy() if values.dtype == torch.bool else values.float().cpu().numpy()
        self.blocks.append(Block(*self._place, name, formula, array.shape, rows, columns, array))

    def _stack(self, stack: str, side: Side, embedding: nn.Module, positions: nn.Module) -> None:
        """Add the embeddings of one side, and the layers of its stack."""
        self._side = side
        layers, norm = getattr(self._model, f"{stack}_layers"), getattr(self._model, f"{stack}_norm")
        self._embedding(stack, embedding, positions, layers[0])
        for number, layer in enumerate(layers, 1):
            for residual, sublayer in zip(layer.residuals, _SUBLAYERS[stack], strict=True):
                self._enter(stack, number, sublayer)
                self._residual(residual, getattr(layer, sublayer), f"{stack}_layers.{number - 1}.{sublayer}")
        if not isinstance(norm, nn.Identity):
            self._enter(stack, None, "norm")
            self._add(f"{stack} output", f"{type(norm).__name__} of the last layer", self._output(norm))

    def _embedding(self, stack: str, embedding: nn.Module, positions: nn.Module, first_layer: nn.Module) -> None:
        """Add the embeddings; modules that both sides share are called for the source first."""
        self._enter("embedding")
        place = 0 if self._side == "source" else -1
        embedded = self._output(embedding, place)
        added = self._calls[positions][place].output  # (T, D), or 0.0 for none
        self._add("embeddings", "E[ids]", embedded)
        self._add("scaled embeddings", "E[ids]·√d_model", embedded * math.sqrt(self._model.d_model))
        if isinstance(added, Tensor):
            self._add("positions", "PE[0 … n−1]", added)
            norm = getattr(self._model, f"{stack}_input_norm")
            normalized = "" if isinstance(norm, nn.Identity) else f", {type(norm).__name__}"
            self._add("x", f"E[ids]·√d_model + PE{normalized}", self._input(first_layer))

    def _residual(self, residual: Residual, sublayer: Any, name: str) -> None:
        """Add a sub-layer with the normalization before or after it, and the residual sum."""
        formula = type(residual.norm).__name__
        if residual.norm_first:
            self._add("norm", f"{formula} of x", self._output(residual.norm))
        read = "norm" if residual.norm_first else "x"
        if isinstance(sublayer, MultiHeadAttention):
            self._attention(sublayer, self._weights[name], read)
        else:
            self._feed_forward(sublayer, read)
        if residual.norm_first:
            self._add("residual", "x + Sublayer(Norm(x))", self._output(residual))
        else:
            self._add("residual", "x + Sublayer(x)", self._input(residual.norm))
            self._add("norm", f"{formula} of the residual sum", self._output(residual.norm))

    def _attention(self, attention: MultiHeadAttention, weights: Tensor, read: str) -> None:
        """Add one attention, from the projections by the module's own functions to its output.

        Args:
            attention: the sub-layer.
            weights: its attention weights.
            read: the name of the block that it reads.
        """
        call = self._calls[attention][0]
        query, memory = call.args[:2]
        if query is memory:
            q, k, v = attention.project_qkv(query)
            keys, keys_input = self._side, read
        else:
            q, k, v = attention.project_q(query), *attention.project_kv(memory)
            keys, keys_input = "source", "memory"
        rotated = ", rotated by position" if attention.rotary else ""
        self._add("Q", f"{read}·W^Q + b{rotated}", q[0])
        self._add("K", f"{keys_input}·W^K + b{rotated}", k[0], rows=keys)
        self._add("V", f"{keys_input}·W^V + b", v[0], rows=keys)
        products = q[0] @ k[0].transpose(-2, -1)  # (H, T, S)
        scores = products / math.sqrt(q.size(-1))
        self._add("scores", "Q·Kᵀ", products, columns=keys)
        self._add("scaled scores", "Q·Kᵀ / √d_head", scores, columns=keys)
        if call.kwargs.get("causal"):
            mask = causal_mask(q.size(2), q.device)
            self._add("mask", "1 = may attend: position t to positions ≤ t", mask, columns=keys)
            masked = scores.masked_fill(~mask, float("-inf"))
            self._add("masked scores", "−∞ where the mask is 0", masked, columns=keys)
        self._add("weights", "softmax of each row", weights[0], columns=keys)
        self._add("heads", "weights·V", weights[0] @ v[0])
        self._add("concatenation", "heads side by side", self._input(attention.out_proj))
        self._add("output", "concatenation·W^O + b", self._output(attention.out_proj))

    def _feed_forward(self, network: FeedForward, read: str) -> None:
        """Add one feed-forward network that reads the block ``read``."""
        first, activation = self._output(network.linear1), self._input(network.linear2)
        formula = ACTIVATIONS[self._model.architecture.activation].formula
        self._add("linear1", f"{read}·W1 + b1", first)
        self._add("activation", formula.format("linear1"), activation)
        self._add("linear2", "activation·W2 + b2", self._output(network.linear2))

    def _input(self, module: nn.Module) -> Tensor:
        """Return the input of a module, without the batch's dimension."""
        value: Tensor = self._calls[module][0].args[0][0]
        return value

    def _output(self, module: nn.Module, place: int = 0) -> Tensor:
        """Return the output of a module at one of its calls, without the batch's dimension."""
        value: Tensor = self._calls[module][place].output[0]
        return value
