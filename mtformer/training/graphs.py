"""Updates as graphs, for a GPU: see :mod:`mtformer.model.graphs`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mtformer.data.batches import Batch
from mtformer.model.graphs import Graph, captured

_MOST_SHAPES = 128  # that have a graph: batches of pairs left over have many, but are few


@dataclass
class _Static:
    """The tensors that a graph reads and writes.

    Attributes:
        batch: the last one, in tensors that stay.
        n_tokens: (), the target tokens of the update.
        losses: (2,), the sums of a batch.
        graph: None before it is captured, or if it cannot be.
    """

    batch: Batch
    n_tokens: Tensor
    losses: Tensor
    graph: Graph | None = None


class UpdateGraphs:
    """A graph for the gradients of each shape of batches, and one for the optimizers.

    Everything is computed once without a graph, then captured: the first time, optimizers make their moments, and
    libraries their workspaces.
    """

    def __init__(
        self,
        add_gradients: Callable[[Batch, Tensor], Tensor],
        optimizers: Sequence[torch.optim.Optimizer],
        device: torch.device,
    ) -> None:
        """Set up without graphs.

        Args:
            add_gradients: adds the gradients of a batch, given the tokens of the update, and returns losses (2,). What
                it does may depend on the shapes of the batch, but not on its values.
            optimizers: their learning rates become tensors.
            device: that of the model.
        """
        self._compute, self._optimizers, self._device = add_gradients, optimizers, device
        self._static: dict[tuple[torch.Size, torch.Size], _Static] = {}
        self._rate = torch.zeros((), device=device)
        self._stepping: Graph | None = None
        self._has_stepped = False
        for group in (group for optimizer in optimizers for group in optimizer.param_groups):
            group |= {"lr": self._rate, "capturable": True}

    def add_gradients(self, batch: Batch, n_tokens: float) -> Tensor:
        """Add the gradients of a batch to those of the weights; return losses (2,), which the next call overwrites."""
        shape = batch.src.shape, batch.tgt_in.shape
        static = self._static.get(shape)
        if static is None:
            own = batch.mapped(torch.clone, batch.positions)
            static = _Static(own, torch.zeros((), device=self._device), torch.zeros(2, device=self._device))
            if len(self._static) < _MOST_SHAPES:
                self._static[shape] = static
        else:
            for tensor, values in zip(static.batch.tensors, batch.tensors, strict=True):
                tensor.copy_(values)
            if static.graph is None:
                static.graph = captured(lambda: self._take(static), self._device)
        static.n_tokens.fill_(n_tokens)
        if static.graph is None:
            self._take(static)
        else:
            static.graph.replay()
        return static.losses

    def _take(self, static: _Static) -> None:
        static.losses.copy_(self._compute(static.batch, static.n_tokens))

    def step(self, rate: float) -> None:
        """Let the optimizers change the weights."""
        self._rate.fill_(rate)
        if self._has_stepped and self._stepping is None:
            self._stepping = captured(self._take_step, self._device)
        if self._stepping is None:
            self._take_step()
            self._has_stepped = True
        else:
            self._stepping.replay()

    def _take_step(self) -> None:
        for optimizer in self._optimizers:
            optimizer.step()
