"""Muon: gradient descent with momentum whose updates are orthogonal matrices (Jordan et al. 2024)."""

import inspect
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from mtformer.support.processes.threads import Threads
from mtformer.training.sharding import as_kept, whole

_MAX_ELEMENTS = 1 << 24  # of the matrices that are orthogonalized together: more need memory and save no time


class Muon(torch.optim.Muon):
    """Muon with updates as large as AdamW's (Liu et al. 2025), so that the learning rate of the one fits the other.

    Its settings and its state are those of :class:`torch.optim.Muon`, which always multiplies in bfloat16: processors
    that emulate it take 5 to 80 times as long for a step. Besides, this class orthogonalizes all matrices of a shape
    together, each of those that a weight stacks on its own, and each matrix of a sharded model as a whole.
    """

    # Without torch's wrappers, which import the compiler.
    add_param_group = inspect.unwrap(torch.optim.Muon.add_param_group)
    zero_grad = inspect.unwrap(torch.optim.Muon.zero_grad)

    def __init__(
        self,
        matrices: Mapping[nn.Parameter, int],
        *,
        weight_decay: float,
        dtype: torch.dtype = torch.float32,
        threads: Threads | None = None,
    ) -> None:
        """Set up, with a learning rate of 0.

        Args:
            matrices: the weights, and how many matrices each of them stacks.
            weight_decay: decoupled, as in AdamW.
            dtype: of the products of the orthogonalization.
            threads: among which the matrices are divided; when not given, there is one.
        """
        super().__init__(list(matrices), lr=0.0, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw")
        self._n_matrices = dict(matrices)
        self._dtype = dtype
        self._threads = threads or Threads(1)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update the weights that have a gradient."""
        assert closure is None
        for group in self.param_groups:
            by_shape: dict[tuple[int, int], list[nn.Parameter]] = defaultdict(list)
            for parameter in group["params"]:
                if parameter.grad is not None:
                    n_rows, n_columns = parameter.shape
                    by_shape[n_rows // self._n_matrices[parameter], n_columns].append(parameter)
            update = partial(self._update, group)
            parts = [part for alike in by_shape.values() for part in self._parts(alike)]
            list(self._threads.map(update, parts))

    def _parts(self, parameters: Sequence[nn.Parameter]) -> Iterator[Sequence[nn.Parameter]]:
        """Divide the weights whose matrices have one shape among the threads, and further if they are large."""
        most = _MAX_ELEMENTS // max(parameter.numel() for parameter in parameters)
        n_together = max(1, min(most, math.ceil(len(parameters) / self._threads.n)))
        return (parameters[start : start + n_together] for start in range(0, len(parameters), n_together))

    @torch.no_grad()
    def _update(self, group: dict[str, Any], parameters: Sequence[nn.Parameter]) -> None:
        """Update weights whose matrices have one shape."""
        shape = parameters[0].size(0) // self._n_matrices[parameters[0]], parameters[0].size(1)
        moments = [whole(self._momentum(parameter, group)).unflatten(0, (-1, shape[0])) for parameter in parameters]
        updates = orthogonalize(torch.cat(moments).to(self._dtype), group["ns_coefficients"], group["ns_steps"])
        decay, rate = 1 - group["lr"] * group["weight_decay"], group["lr"] * 0.2 * math.sqrt(max(shape))
        for parameter, update in zip(parameters, updates.split([len(moment) for moment in moments]), strict=True):
            parameter.mul_(decay).sub_(as_kept(update.flatten(0, 1), parameter).to(parameter.dtype) * rate)

    def _momentum(self, parameter: nn.Parameter, group: dict[str, Any]) -> Tensor:
        """Add the gradient to the momentum and return Nesterov's look-ahead of it."""
        gradient, state = parameter.grad, self.state[parameter]
        assert gradient is not None
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(gradient)
        momentum = state["momentum_buffer"].lerp_(gradient, 1 - group["momentum"])
        return gradient.lerp(momentum, group["momentum"])


def orthogonalize(matrices: Tensor, coefficients: tuple[float, float, float], n_steps: int) -> Tensor:
    """Bring the singular values of matrices (N, rows, columns) near 1, by Newton–Schulz iterations.

    Each applies the polynomial a·σ + b·σ³ + c·σ⁵ to them. The coefficients of Jordan et al. raise small ones so quickly
    that after five iterations most lie between 0.7 and 1.2.
    """
    a, b, c = coefficients
    is_tall = matrices.size(1) > matrices.size(2)
    x = matrices.mT if is_tall else matrices  # so that x·xᵀ is the smaller of the two products
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)  # no singular value exceeds 1
    for _ in range(n_steps):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if is_tall else x
