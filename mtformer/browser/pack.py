"""A bundle as a web page holds it: a header, which is JSON, and the weights, which are bytes."""

import base64
import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from mtformer.browser.tokenizer import TEXT_ASSETS, describe_texts
from mtformer.bundle.format import Bundle
from mtformer.bundle.header import AlignmentHead, last_heads
from mtformer.model.architecture import ACTIVATIONS, Architecture
from mtformer.model.transformer import Transformer
from mtformer.model.weights import weights, with_weights
from mtformer.support.errors import UserError

Quantization = Literal["int8", "float32"]

# What assemble() takes, in order. Scripts of the page itself follow them, so that the worker does not run those.
_COMPUTING = ("kernels_wasm", "kernels", "model", "decoder", "search", "words", "translation", "worker", "engine")
ENGINE_ASSETS = [*TEXT_ASSETS, *(("mtformer.browser", f"{name}.js") for name in _COMPUTING)]

# What model.js can compute: classes and functions of torch, and kinds of positions.
_ACTIVATIONS = {"relu", "gelu", "silu"}
_POSITIONS = {"sinusoidal", "learned", "rotary", "none", "fairseq", "marian"}

_ALIGNMENT = 16  # bytes, of a tensor
_ROW_MULTIPLE = 8  # numbers that a kernel takes at once: rows are padded with zeros
_N_GOLDEN, _GOLDEN_LENGTH = 2, 12  # sentences, and their tokens
_GOLDEN_LOGITS = 32  # that are kept of each


@dataclass(frozen=True)
class PackedModel:
    """A model for a web page.

    Attributes:
        header: what can be JSON: the architecture, what texts need, where the tensors are, and golden vectors.
        data: the tensors, little-endian.
    """

    header: dict[str, Any]
    data: bytes


def pack(bundle: Bundle, *, quantization: Quantization = "int8") -> PackedModel:
    """Return a model as a page holds it, with all that texts need on their way to it and back.

    Raises:
        UserError: the page cannot run this model.
    """
    packed = pack_model(bundle.model, bundle.header.alignment_group, quantization)
    return PackedModel({**packed.header, "texts": describe_texts(bundle.header, bundle.tokenizer)}, packed.data)


def weights_element(packed: PackedModel) -> str:
    """Return the element of a page that contains the weights, which ``readWeights()`` in JavaScript reads."""
    text = base64.b64encode(gzip.compress(packed.data, mtime=0)).decode()
    return f'<script type="text/plain" id="weights">{text}</script>'


def pack_model(
    model: Transformer, alignment_heads: Sequence[AlignmentHead] = (), quantization: Quantization = "int8"
) -> PackedModel:
    """Return a Transformer as a page holds it.

    A matrix is stored row by row. With ``int8`` each row is 8-bit integers, to be multiplied by a scale of its own;
    the scales, in float32, follow the rows. Vectors and learned positions stay in float32.

    Raises:
        UserError: the page cannot run this model.
    """
    architecture = model.architecture
    _require_supported(architecture)
    stored: dict[str, dict[str, Any]] = {}
    computed: dict[str, Tensor] = {}  # what the page computes with
    data = bytearray()
    for name, tensor in weights(model).items():
        is_quantized = quantization == "int8" and tensor.dim() == 2 and "positions" not in name
        kind = "int8" if is_quantized else "float32"
        stored[name] = {"offset": len(data), "shape": list(tensor.shape), "type": kind}
        computed[name], parts = _quantized(tensor) if is_quantized else (tensor, [tensor])
        for part in parts:
            data += _padded(part)
            data += bytes(-len(data) % _ALIGNMENT)
    header = {
        "architecture": architecture.model_dump(),
        "activation": ACTIVATIONS[architecture.activation].function,
        "alignment_heads": [head.model_dump() for head in alignment_heads or last_heads(architecture)],
        "quantization": quantization,
        "tensors": stored,
        "n_bytes": len(data),
        "golden": _golden(architecture, computed),
    }
    return PackedModel(header, bytes(data))


def _require_supported(architecture: Architecture) -> None:
    kinds = [
        ("activation", architecture.activation, ACTIVATIONS[architecture.activation].function in _ACTIVATIONS),
        ("positions", architecture.positions, architecture.positions in _POSITIONS),
    ]
    refused = [f"{key} = {value}" for key, value, is_supported in kinds if not is_supported]
    if refused:
        raise UserError(f"a web page cannot run a model with {', '.join(refused)}")


def _quantized(matrix: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Round each row of a matrix to multiples of its scale, of which the largest is 127; return it, rows and scales."""
    scales = matrix.abs().amax(dim=1).clamp_(min=1e-12) / 127  # (out,)
    rows = (matrix / scales[:, None]).round_().to(torch.int8)
    return rows * scales[:, None], [rows, scales]


def _padded(tensor: Tensor) -> bytes:
    if tensor.dim() == 2:
        tensor = torch.nn.functional.pad(tensor, (0, -tensor.size(1) % _ROW_MULTIPLE))
    array = tensor.numpy()
    return array.astype(array.dtype.newbyteorder("<")).tobytes()


@torch.inference_mode()
def _golden(architecture: Architecture, tensors: Mapping[str, Tensor]) -> list[dict[str, Any]]:
    """Return some logits of sentences that are made up, which a page compares its own with."""
    model = with_weights(architecture, tensors)
    golden = []
    for number in range(_N_GOLDEN):
        src = [*_made_up(number, architecture.src_vocab_size), architecture.special_ids.eos]
        tgt_in = [architecture.special_ids.start, *_made_up(number, architecture.tgt_vocab_size)]
        ids = torch.tensor([src])
        hidden = model(ids, torch.ones_like(ids, dtype=torch.bool), torch.tensor([tgt_in]))[0, -1]
        logits = model.project(hidden)[:_GOLDEN_LOGITS].tolist()
        golden.append({"src": src, "tgt_in": tgt_in, "logits": logits})
    return golden


def _made_up(number: int, vocab_size: int) -> list[int]:
    return [(7919 * (place + 1) * (number + 1)) % vocab_size for place in range(_GOLDEN_LENGTH)]
