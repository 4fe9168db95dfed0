"""Copy the weights of a model out and in; compare their shapes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from mtformer.model.architecture import Architecture
from mtformer.model.transformer import Transformer


class _SkipInitialization(TorchFunctionMode):
    """Builds modules without drawing their weights, for models on the meta device, and those that get others.

    On the meta device, drawing numbers would import torch's compiler, which takes as long as importing torch.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call ``func``, unless it initializes a tensor."""
        kwargs = kwargs or {}
        if getattr(func, "__module__", None) == "torch.nn.init" or func in (Tensor.normal_, Tensor.uniform_):
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


def without_weights(architecture: Architecture) -> Transformer:
    """Build a model on the meta device: it has the names and shapes of its parameters, and takes no memory."""
    with torch.device("meta"), _SkipInitialization():
        return Transformer(architecture)


def with_weights(architecture: Architecture, tensors: Mapping[str, Tensor]) -> Transformer:
    """Build a model with given weights, in evaluation mode, without drawing others first.

    Raises:
        ValueError: names or shapes differ from the model's.
    """
    with _SkipInitialization():
        model = Transformer(architecture)
    load_weights(model, tensors)
    return model.eval()


def weights(model: torch.nn.Module) -> dict[str, Tensor]:
    """Return a copy of each parameter on the CPU; a shared one appears once, under its first name."""
    # Copies: numpy(), which a digest needs, would keep the storage of a sharded model's weights from being freed.
    return {name: parameter.detach().to("cpu", copy=True).contiguous() for name, parameter in model.named_parameters()}


def count_parameters(model: torch.nn.Module, *, trained_only: bool = False) -> int:
    """Return the number of a model's weights, or of those that training changes; tied ones count once."""
    return sum(each.numel() for each in model.parameters() if each.requires_grad or not trained_only)


Parameters = Mapping[str, torch.nn.Parameter]


def require_shapes(model: torch.nn.Module | Parameters, shapes: Mapping[str, Sequence[int]]) -> None:
    """Compare names and shapes of weights with those of ``model``, which may be on the meta device.

    Raises:
        ValueError: they differ.
    """
    parameters = _parameters(model)
    missing, extra = sorted(parameters.keys() - shapes.keys()), sorted(shapes.keys() - parameters.keys())
    if missing:
        raise ValueError(f"the weights lack {missing[0]}")
    if extra:
        raise ValueError(f"the weights contain {extra[0]}, which the model does not have")
    for name, parameter in parameters.items():
        if tuple(parameter.shape) != tuple(shapes[name]):
            raise ValueError(f"{name} has shape {tuple(shapes[name])}, not {tuple(parameter.shape)}")


@torch.no_grad()
def load_weights(model: torch.nn.Module | Parameters, tensors: Mapping[str, Tensor]) -> None:
    """Copy the weights that :func:`weights` returned into ``model``, or into some of its parameters.

    Raises:
        ValueError: names or shapes differ from the model's.
    """
    require_shapes(model, {name: tensor.shape for name, tensor in tensors.items()})
    for name, parameter in _parameters(model).items():
        parameter.copy_(tensors[name])


def _parameters(model: torch.nn.Module | Parameters) -> Parameters:
    return dict(model.named_parameters()) if isinstance(model, torch.nn.Module) else model
