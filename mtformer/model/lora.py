"""Low-rank adapters (LoRA, Hu et al. 2021): W + B·A instead of W, where W stays fixed and A and B are small.

An adapter's parameters are named after the layer whose matrix they change: ``encoder_layers.0.feed_forward.linear1``
has ``….linear1.adapter.down``, A, and ``….linear1.adapter.up``, B. Functions that take weights take them by name.
"""

import copy
from collections.abc import Iterator, Mapping
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

M = TypeVar("M", bound=nn.Module)

_DOWN, _UP = ".adapter.down", ".adapter.up"


class LowRank(nn.Module):
    """x·Aᵀ·Bᵀ, which a layer adds to its output; one A and one B for each matrix that the layer stacks.

    Attributes:
        down: A, (n·rank, in) for n matrices.
        up: B, (n·out, rank).
    """

    def __init__(self, down: Tensor, up: Tensor, n_matrices: int = 1) -> None:
        """Take the values of A and B for ``n_matrices`` matrices."""
        super().__init__()
        self.n_matrices = n_matrices
        self.down, self.up = nn.Parameter(down), nn.Parameter(up)

    def forward(self, x: Tensor, first: int = 0, last: int | None = None) -> Tensor:
        """Map (…, in) to (…, out), or to the outputs of the matrices from ``first`` to before ``last``."""
        rank = self.up.size(1)
        down = self.down.unflatten(0, (self.n_matrices, rank))[first:last]
        up = self.up.unflatten(0, (self.n_matrices, -1))[first:last]
        narrow = F.linear(x, down.flatten(0, 1)).split(rank, dim=-1)
        outputs = [F.linear(each, matrix) for each, matrix in zip(narrow, up, strict=True)]
        return torch.cat(outputs, dim=-1) if len(outputs) > 1 else outputs[0]

    def stacked(self, first: int = 0, last: int | None = None) -> tuple[Tensor, Tensor]:
        """Return one A (k·rank, in) and one B (k·out, k·rank) equivalent to the k matrices of :meth:`forward`."""
        down = self.down.unflatten(0, (self.n_matrices, -1))[first:last]
        up = self.up.unflatten(0, (self.n_matrices, -1))[first:last]
        return down.flatten(0, 1), torch.block_diag(*up)


class Linear(nn.Linear):
    """A linear layer that may have an adapter."""

    n_matrices = 1

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__(in_features, out_features)
        self.adapter: LowRank | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Map (…, in) to (…, out)."""
        y = F.linear(x, self.weight, self.bias)
        return y if self.adapter is None else y + self.adapter(x)


class StackedLinear(Linear):
    """Several linear layers of one input in one product: their matrices are stacked in ``weight``.

    Initialization, Muon and adapters treat each matrix as the one it is.
    """

    def __init__(self, in_features: int, out_features: int, n_matrices: int) -> None:
        """Set up fresh weights for ``n_matrices`` layers with ``out_features`` outputs each."""
        super().__init__(in_features, n_matrices * out_features)
        self.n_matrices = n_matrices

    def part(self, x: Tensor, first: int, last: int) -> Tensor:
        """Return the outputs of the layers from ``first`` to before ``last``, side by side."""
        size = self.out_features // self.n_matrices
        rows = slice(first * size, last * size)
        y = F.linear(x, self.weight[rows], self.bias[rows])
        return y if self.adapter is None else y + self.adapter(x, first, last)


def stacked_matrices(model: nn.Module) -> dict[str, int]:
    """Return the number of matrices in each weight of ``model`` that stacks several, by the weight's name."""
    stacking = [(name, module) for name, module in model.named_modules() if isinstance(module, StackedLinear | LowRank)]
    return {
        f"{name}.{weight}": module.n_matrices
        for name, module in stacking
        for weight, _ in module.named_parameters(recurse=False)
        if weight != "bias"
    }


def adapt(model: nn.Module, rank: int) -> None:
    """Give all linear layers inside the encoder's and decoder's layers a fresh adapter; train nothing else.

    B is zero, so that training starts from the outputs without it.
    """
    model.requires_grad_(False)
    for module in model.modules():
        if isinstance(module, Linear):
            width = module.in_features
            down = torch.empty(module.n_matrices * rank, width).uniform_(-1, 1) * width**-0.5
            adapter = LowRank(down, torch.zeros(module.out_features, rank), module.n_matrices)
            module.adapter = adapter.to(module.weight.device)


def trained_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters of the adapter of ``model``; without one, all of them."""
    parameters = dict(model.named_parameters())
    return {name: each for name, each in parameters.items() if name.endswith((_DOWN, _UP))} or parameters


def adapter_shapes(model: nn.Module, rank: int) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the names and shapes of the parameters that :func:`adapt` would give ``model``."""
    for name, module in model.named_modules():
        if isinstance(module, Linear):
            yield name + _DOWN, (module.n_matrices * rank, module.in_features)
            yield name + _UP, (module.out_features, rank)


@torch.no_grad()
def changed_weights(weights: Mapping[str, Tensor], adapter: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return W + B·A for each matrix W of ``weights`` that ``adapter`` changes, by its name."""
    changed = {}
    for name in adapter:
        if name.endswith(_DOWN):
            layer = name.removesuffix(_DOWN)
            down, up = adapter[name], adapter[layer + _UP]
            rank = up.size(1)
            n_matrices = len(down) // rank
            products = up.unflatten(0, (n_matrices, -1)) @ down.unflatten(0, (n_matrices, rank))
            changed[f"{layer}.weight"] = weights[f"{layer}.weight"] + products.flatten(0, 1)
    return changed


def merged(model: M, adapter: Mapping[str, Tensor] | None = None) -> M:
    """Return a model without an adapter that computes the same as ``model`` with one, and shares all other weights.

    Args:
        model: stays as it is.
        adapter: the parameters of an adapter; when not given, the model's own; without one, ``model`` is returned.
    """
    weights = dict(model.named_parameters())
    adapter = adapter or {name: weight for name, weight in weights.items() if name.endswith((_DOWN, _UP))}
    if not adapter:
        return model
    changed = changed_weights(weights, adapter)
    result = _twin(model)
    for name, module in result.named_modules():
        if isinstance(module, Linear):
            module.adapter = None
            module.weight = nn.Parameter(changed[f"{name}.weight"])
    return result


def adapted(model: M, adapter: Mapping[str, Tensor]) -> M:
    """Return ``model`` with an adapter; it shares all weights but the adapter's."""
    result = _twin(model)
    for name, module in result.named_modules():
        if isinstance(module, Linear):
            down, up = (adapter[name + which].to(module.weight.device) for which in (_DOWN, _UP))
            module.adapter = LowRank(down, up, module.n_matrices)
    return result


def _twin(model: M) -> M:
    """Return a model of its own modules that shares all tensors with ``model``."""
    return copy.deepcopy(model, {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())})
