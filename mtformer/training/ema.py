"""A running average of the weights, which usually translates better than the weights of any single step."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class WeightAverage:
    """The exponential moving average of a model's weights (Polyak and Juditsky 1992; Morales-Brotons et al. 2024).

    Early in training, when weights change quickly, the decay is (1 + step) / (10 + step) if that is smaller.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        """Start from the current weights."""
        self._model = model
        self._decay = decay
        self.tensors: dict[str, Tensor] = {name: p.detach().clone() for name, p in model.named_parameters()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Add the weights after update number ``step``, starting at 1."""
        decay = min(self._decay, (1 + step) / (10 + step))
        weights = [parameter.detach() for parameter in self._model.parameters()]
        torch._foreach_lerp_(list(self.tensors.values()), weights, 1 - decay)

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Restore a saved average; the order of its tensors does not matter."""
        for name, tensor in self.tensors.items():
            tensor.copy_(tensors[name])

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Use the average as the weights of the model inside the context."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    @torch.no_grad()
    def _swap(self) -> None:
        for name, parameter in self._model.named_parameters():
            weight = parameter.detach().clone()
            parameter.copy_(self.tensors[name])  # in place: a sharded model sends its weights from this memory
            self.tensors[name].copy_(weight)
