"""What an update and a decoding step cost: operations, bytes, and the least time that a machine takes for them.

A product of (n, a) with (a, b) takes 2·n·a·b floating-point operations. The times of arithmetic and of memory are added
up, because most operations are limited by one of them alone. Starting operations takes time as well, side by side with
computing them.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from torch.utils._python_dispatch import TorchDispatchMode

from mtformer.config import ModelConfig

# In seconds; about what one H100 beside an Intel Xeon took, in a virtual machine.
START = 25e-6  # of an operation from Python
NODE = 3e-6  # of a kernel in a graph
WAIT = 15e-6  # of the processor for the GPU
OUTSIDE = 30  # operations of a step or an update, besides those of the model


class Machine(NamedTuple):
    """What a device can do at best.

    Attributes:
        name: its name, or a part of it.
        flops: floating-point operations per second of dense products, in bfloat16 if it has it.
        bandwidth: of its memory, in bytes per second.
        has_graphs: whether a graph starts the operations of an update or a decoding step.
    """

    name: str
    flops: float
    bandwidth: float
    has_graphs: bool = True


# From the manufacturer's data sheets, without sparsity. The first that matches is taken.
MACHINES = (
    Machine("H100 PCIe", 756e12, 2.00e12),
    Machine("H100", 989e12, 3.35e12),
    Machine("A100", 312e12, 2.04e12),
    Machine("L4", 121e12, 0.30e12),
    Machine("T4", 8.1e12, 0.32e12),  # in float32
    Machine("RTX 4090", 165e12, 1.01e12),
)


def known(name: str) -> Machine | None:
    """Return the machine that a device's name contains; None if it is not known."""
    return next((machine for machine in MACHINES if re.search(rf"\b{machine.name}\b", name)), None)


class Shape(NamedTuple):
    """A model and its work.

    Attributes:
        name: its name in the tables.
        model: its sizes.
        vocab_size: V.
        max_tokens: target tokens of an update.
        length: tokens of every sentence.
    """

    name: str
    model: ModelConfig
    vocab_size: int
    max_tokens: int
    length: int = 32


SHAPES = (
    Shape("demo", ModelConfig.model_validate({"preset": "tiny", "positions": "sinusoidal"}), 4_000, 4_096),
    Shape("3+3×256", ModelConfig.model_validate({"preset": "small", "positions": "sinusoidal"}), 8_000, 16_384),
    Shape("6+6×512", ModelConfig.model_validate({"preset": "base"}), 32_000, 32_768),
)


class Cost(NamedTuple):
    """Floating-point operations, bytes of memory that are read or written, operations started, and seconds."""

    flops: float
    bytes: float
    n_operations: int
    seconds: float


def weights(shape: Shape) -> tuple[int, int, int]:
    """Return the weights of the encoder's layers, of the decoder's, and of the embedding, which is the output."""
    d, feed_forward = shape.model.d_model, 2 * shape.model.d_model * shape.model.d_ff
    encoder = shape.model.n_encoder_layers * (4 * d * d + feed_forward)
    return encoder, shape.model.n_decoder_layers * (8 * d * d + feed_forward), shape.vocab_size * d


def update_cost(shape: Shape, machine: Machine, n_operations: int) -> Cost:
    """Return the cost of an update on ``max_tokens`` target tokens and as many source tokens."""
    encoder, decoder, embedding = weights(shape)
    n, d, d_ff = shape.max_tokens, shape.model.d_model, shape.model.d_ff
    n_enc, n_dec = shape.model.n_encoder_layers, shape.model.n_decoder_layers
    scores = 2 * d * shape.length * (n_enc + 2 * n_dec)  # q·kᵀ and weights·v of each token
    flops = 3 * 2 * n * (encoder + decoder + embedding + scores)  # the backward pass takes twice the forward pass
    per_weight = 44  # casts, gradient, its norm, and what AdamW reads and writes of weight, gradient and two moments
    # Elements of a token that a layer reads or writes forward, at 4 bytes; three times as many with the backward pass.
    activations = 3 * 4 * n * (n_enc * (30 * d + 6 * d_ff) + n_dec * (50 * d + 6 * d_ff))
    logits = 24 * n * shape.vocab_size  # written, read for the softmax, and again in the backward pass
    n_bytes = per_weight * (encoder + decoder + embedding) + activations + logits
    on_device = flops / machine.flops + n_bytes / machine.bandwidth
    return Cost(flops, n_bytes, n_operations, _seconds(machine, on_device, n_operations))


def step_cost(shape: Shape, machine: Machine, n_operations: int, n: int, k: int, capacity: int) -> Cost:
    """Return the cost of a decoding step of n sentences with k beams, whose cache has room for ``capacity`` steps."""
    _, decoder, embedding = weights(shape)
    d, n_dec = shape.model.d_model, shape.model.n_decoder_layers
    read = decoder - 2 * n_dec * d * d + embedding  # keys and values of the memory are projected at the start
    scores = 2 * d * n_dec * (shape.length + capacity * k)
    flops = 2 * n * k * (read + scores)
    cache = 4 * 2 * n * n_dec * d * (shape.length + capacity * k)  # keys and values, in float32
    logits = 4 * 6 * n * k * shape.vocab_size  # written, gathered, normalized and searched
    n_bytes = 2 * read + cache + logits
    on_device = flops / machine.flops + n_bytes / machine.bandwidth
    return Cost(flops, n_bytes, n_operations, _seconds(machine, on_device, n_operations))


def _seconds(machine: Machine, on_device: float, n_operations: int) -> float:
    """Return the time of an update or a step, whose operations a graph starts if the machine has any."""
    starting = n_operations * (NODE if machine.has_graphs else START)
    return max(on_device, starting) + OUTSIDE * START + WAIT


class Operations(TorchDispatchMode):
    """Counts the operations that compute something: all but views.

    Attributes:
        n: how many.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.n = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        self.n += not any(result.alias_info and not result.alias_info.is_write for result in func._schema.returns)
        return func(*args, **(kwargs or {}))


def operations(compute: Callable[[], object]) -> int:
    """Return how many operations ``compute`` starts."""
    with Operations() as counted:
        compute()
    return counted.n
