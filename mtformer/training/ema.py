"""The average of weights that a run keeps as it goes; it translates better than the weights of any one step."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class WeightAverage:
    """The exponential moving average of a model's weights (Polyak and Juditsky 1992; Morales-Brotons et al. 2024).

    Early in training, when weights change fast, the decay is (1 + step) / (10 + step) if that is smaller.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        """Begin with the weights as they are."""
        self._model = model
        self._decay = decay
        self.tensors: dict[str, Tensor] = {name: p.detach().clone() for name, p in model.named_parameters()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the weights after update number ``step``, counted from 1."""
        decay = min(self._decay, (1 + step) / (10 + step))
        weights = [parameter.detach() for parameter in self._model.parameters()]
        torch._foreach_lerp_(list(self.tensors.values()), weights, 1 - decay)

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Go on with an average that was saved, in whatever order it comes."""
        for name, tensor in self.tensors.items():
            tensor.copy_(tensors[name])

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Inside, the model has the average as its weights; then its own again."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    @torch.no_grad()
    def _swap(self) -> None:
        for name, parameter in self._model.named_parameters():
            weight = parameter.detach().clone()
            parameter.copy_(self.tensors[name])  # in place: a sharded model sends its weights from where they are
            self.tensors[name].copy_(weight)
