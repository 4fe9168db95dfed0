"""Linear layers prepared for translating: weights are converted to a precision, and to a fast layout, only once."""

import platform
from collections.abc import Callable
from threading import Lock
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mtformer.model import lora

Precision = Literal["fp32", "bf16"]
Linear = Callable[[Tensor], Tensor]  # maps (N, in) to (N, out)

_MANY_OPERATIONS = 1 << 19  # a call of oneDNN takes 10 µs longer than one of MKL, which larger products make up for
_ROUNDING_BITS = 3


def pack(weight: Tensor, bias: Tensor | None, precision: Precision) -> Linear:
    """Return x·Wᵀ + b as a function from float32 (N, in) to float32 (N, out).

    Args:
        weight: W, (out, in).
        bias: b, (out,).
        precision: of the product. ``bf16`` rounds x and W.
    """
    weight, bias = weight.detach(), None if bias is None else bias.detach()
    if weight.device.type == "cpu" and _has_onednn(precision):
        return _OneDNNLinear(weight, bias, torch.bfloat16 if precision == "bf16" else torch.float32)
    if precision == "bf16":
        return _BFloat16Linear(weight, bias)
    return _PlainLinear(weight, bias)


class Packer:
    """Prepares layers for one precision, each weight once: models that share weights share the packed copies.

    It does not follow later changes of the weights.
    """

    def __init__(self, precision: Precision = "fp32") -> None:
        self._precision = precision
        self._packed: dict[tuple[int, int, int | None], tuple[Tensor, Linear]] = {}  # with the weights, by their ids
        self._packing = Lock()

    def __call__(self, linear: nn.Linear, first: int = 0, last: int | None = None) -> Linear:
        """Return the function of a layer, its adapter included.

        Args:
            linear: the layer.
            first: the first of the matrices that it stacks, if it is a :class:`.lora.StackedLinear`.
            last: the one after the last of them; None for all.
        """
        key = id(linear.weight), first, last
        with self._packing:
            if key not in self._packed:
                self._packed[key] = linear.weight, self._pack(linear, first, last)
            _, packed = self._packed[key]
        adapter = linear.adapter if isinstance(linear, lora.Linear) else None
        return packed if adapter is None else _AdaptedLinear(packed, *adapter.stacked(first, last))

    def _pack(self, linear: nn.Linear, first: int, last: int | None) -> Linear:
        size = len(linear.weight) // (linear.n_matrices if isinstance(linear, lora.Linear) else 1)
        rows = slice(first * size, None if last is None else last * size)
        bias: Tensor | None = linear.bias
        return pack(linear.weight[rows], None if bias is None else bias[rows], self._precision)


def _has_onednn(precision: Precision) -> bool:
    """Return whether torch can call oneDNN, which is more than twice as fast as MKL on AMD processors."""
    known = hasattr(torch.ops.mkldnn, "_linear_pointwise") and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
    if precision == "bf16" and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        return False
    return known and torch.backends.mkldnn.is_available() and platform.machine() in ("x86_64", "AMD64")


class _PlainLinear:
    """``F.linear`` without its detours."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self._weight, self._bias = weight.t(), bias

    def __call__(self, x: Tensor) -> Tensor:
        return torch.mm(x, self._weight) if self._bias is None else torch.addmm(self._bias, x, self._weight)


class _BFloat16Linear(_PlainLinear):
    """The same in bfloat16."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__(weight.bfloat16(), None if bias is None else bias.bfloat16())

    def __call__(self, x: Tensor) -> Tensor:
        return super().__call__(x.bfloat16()).float()


class _OneDNNLinear:
    """oneDNN's product with a weight in its own layout, through the operators that torch.compile also uses."""

    def __init__(self, weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> None:
        self._dtype = dtype
        self._packed = torch.ops.mkldnn._reorder_linear_weight(weight.to(dtype).contiguous(), None)
        self._bias = None if bias is None else bias.to(dtype)
        self._small = _PlainLinear(weight, bias)
        self._small_rows = _MANY_OPERATIONS // weight.numel() if dtype == torch.float32 else 0

    def __call__(self, x: Tensor) -> Tensor:
        n_rows = x.size(0)
        if n_rows <= self._small_rows:
            return self._small(x)
        n_more = rounded(n_rows) - n_rows
        if n_more:
            x = F.pad(x, (0, 0, 0, n_more))
        product = torch.ops.mkldnn._linear_pointwise(x.to(self._dtype), self._packed, self._bias, "none", [], "")
        return product[:n_rows].float()


def rounded(n_rows: int) -> int:
    """Round up to a number of 3 significant bits.

    oneDNN generates a kernel for each number of rows, which takes as long as several products and 0.6 MB. A search that
    drops sentences as they end would have hundreds of them.
    """
    step = 1 << max(0, (n_rows - 1).bit_length() - _ROUNDING_BITS)
    return -(-n_rows // step) * step


class _AdaptedLinear:
    """A product with an adapter beside it, in float32: x·Wᵀ + b + x·Aᵀ·Bᵀ."""

    def __init__(self, packed: Linear, down: Tensor, up: Tensor) -> None:
        """Take the product, A (rank, in) and B (out, rank)."""
        self._packed, self._down, self._up = packed, down.detach().t(), up.detach().t()

    def __call__(self, x: Tensor) -> Tensor:
        return self._packed(x).addmm_(torch.mm(x, self._down), self._up)
