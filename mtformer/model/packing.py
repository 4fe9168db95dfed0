"""Linear layers prepared for translating: weights are converted to a precision, and to a fast layout, only once."""

import platform
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mtformer.config import SearchPrecision

Linear = Callable[[Tensor], Tensor]  # maps (N, in) to (N, out)

_MANY_OPERATIONS = 1 << 19  # a call of oneDNN takes 10 µs longer than one of MKL, and larger products repay that


def pack(weight: Tensor, bias: Tensor | None, precision: SearchPrecision) -> Linear:
    """Return x·Wᵀ + b as a function from float32 (N, in) to float32 (N, out).

    Args:
        weight: W, (out, in).
        bias: b, (out,).
        precision: of the product. ``bf16`` rounds x and W; ``int8`` quantizes each row of both.
    """
    if precision == "int8":
        return _Int8Linear(weight, bias)
    if weight.device.type == "cpu" and _has_onednn():
        return _OneDNNLinear(weight, bias, torch.bfloat16 if precision == "bf16" else torch.float32)
    if precision == "bf16":
        return _BFloat16Linear(weight, bias)
    return _PlainLinear(weight, bias)


def pack_linear(linear: nn.Linear, precision: SearchPrecision) -> Linear:
    """Prepare a module."""
    return pack(linear.weight, linear.bias, precision)


def _has_onednn() -> bool:
    """Return whether torch can call oneDNN for float32, which is more than twice as fast as MKL on AMD processors."""
    known = hasattr(torch.ops.mkldnn, "_linear_pointwise") and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
    return known and torch.backends.mkldnn.is_available() and platform.machine() in ("x86_64", "AMD64")


class _PlainLinear:
    """``F.linear``."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self._weight, self._bias = weight, bias

    def __call__(self, x: Tensor) -> Tensor:
        return F.linear(x, self._weight, self._bias)


class _BFloat16Linear:
    """``F.linear`` in bfloat16."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self._weight, self._bias = weight.bfloat16(), None if bias is None else bias.bfloat16()

    def __call__(self, x: Tensor) -> Tensor:
        return F.linear(x.bfloat16(), self._weight, self._bias).float()


class _OneDNNLinear:
    """oneDNN's product with a weight in its own layout, through the operators that torch.compile uses as well."""

    def __init__(self, weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> None:
        self._dtype, self._weight, self._bias = dtype, weight, bias
        # Without gradients, even if the model is being trained: the layout is opaque to autograd.
        self._packed = torch.ops.mkldnn._reorder_linear_weight(weight.detach().to(dtype).contiguous(), None)
        self._packed_bias = None if bias is None else bias.detach().to(dtype)

    def __call__(self, x: Tensor) -> Tensor:
        if self._dtype == torch.float32:
            if len(x) * self._weight.numel() < _MANY_OPERATIONS:
                return F.linear(x, self._weight, self._bias)
            return torch.ops.mkldnn._linear_pointwise(x, self._packed, self._packed_bias, "none", [], "")
        product = torch.ops.mkldnn._linear_pointwise(x.to(self._dtype), self._packed, self._packed_bias, "none", [], "")
        return product.float()


class _Int8Linear:
    """A product of 8-bit integers: each row of x and of W is scaled so that its largest magnitude becomes 127.

    The rows of x are quantized as they come ("dynamic quantization"), so no calibration data are needed.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        weight = weight.detach()
        self._scale = weight.abs().amax(dim=1).clamp_(min=1e-12) / 127  # (out,)
        self._weight = (weight / self._scale[:, None]).round_().to(torch.int8).t()  # (in, out)
        self._bias = None if bias is None else bias.detach()

    def __call__(self, x: Tensor) -> Tensor:
        scale = x.abs().amax(dim=1, keepdim=True).clamp_(min=1e-12) / 127  # (N, 1)
        product = torch._int_mm((x / scale).round_().to(torch.int8), self._weight) * scale
        product = product.mul_(self._scale)
        return product if self._bias is None else product.add_(self._bias)
