"""Optimizers, Muon included, learning rate schedules (section 5.3 of the paper) and the average of the weights."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from mtformer.config import TrainingConfig
from mtformer.model.attention import stacked_matrices
from mtformer.support.processes.threads import Threads
from mtformer.training.sharding import as_kept, whole

_BETAS, _EPS = (0.9, 0.98), 1e-9  # the paper's

# The longest warm-up, as a share of the run, by `model.norm`. In short runs pre-norm learned the more the sooner the
# warm-up was over, and post-norm most with a third of the run (docs/performance.md).
WARMUP_SHARES: dict[Literal["pre", "post"], float] = {"pre": 0.1, "post": 1 / 3}
_DECAY_SHARE = 0.2  # of the run, at its end (Hägele et al. 2024)
_MAX_ELEMENTS = 1 << 24  # of the matrices that Muon orthogonalizes together: more need memory and save no time


def make_optimizers(
    model: nn.Module, config: TrainingConfig, threads: Threads | None = None
) -> list[torch.optim.Optimizer]:
    """Return the optimizers, which divide the parameters among them; weight decay applies to matrices only.

    ``adam`` is the paper's. ``muon`` (Jordan et al. 2024) orthogonalizes the updates of the layers' matrices and scales
    them to the size of AdamW's (Liu et al. 2025), so that one learning rate fits both; AdamW updates the rest.
    """
    parameters = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    vectors = [parameter for parameter in parameters.values() if parameter.dim() <= 1]
    matrices = {name: parameter for name, parameter in parameters.items() if parameter.dim() > 1}
    if config.optimizer == "adam":
        return [torch.optim.Adam([*matrices.values(), *vectors], lr=0.0, betas=_BETAS, eps=_EPS, fused=True)]
    hidden = {name: parameter for name, parameter in matrices.items() if "layers" in name}
    others = [parameter for name, parameter in matrices.items() if "layers" not in name]
    by_adamw = others if config.optimizer == "muon" else [*hidden.values(), *others]
    groups = [
        {"params": by_adamw, "weight_decay": config.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    adamw = torch.optim.AdamW(groups, lr=0.0, betas=_BETAS, eps=_EPS, fused=True)
    if config.optimizer != "muon" or not hidden:
        return [adamw]
    n_matrices = stacked_matrices(model)
    muon = Muon(
        {parameter: n_matrices.get(name, 1) for name, parameter in hidden.items()},
        weight_decay=config.weight_decay,
        dtype=torch.bfloat16 if config.precision == "bf16" else torch.float32,
        threads=threads,
    )
    return [adamw, muon]


def learning_rate(
    step: int, progress: float, *, schedule: str, peak: float, warmup_steps: int, warmup_share: float
) -> float:
    """Return the learning rate of an update.

    Args:
        step: the number of the update, starting at 1.
        progress: the completed fraction of the run, from 0 to 1.
        schedule: ``linear`` or ``cosine``, which reach zero at the end of the run; ``wsd`` (warm-up, stable, decay; Hu
            et al. 2024), which decays to zero in the last fifth of the run; ``constant``; or ``inverse_sqrt``, equation
            3 of the paper (d_model^-½ · min(step^-½, step · warmup_steps^-3⁄2)) written with its peak.
        peak: the highest learning rate.
        warmup_steps: the number of updates over which the learning rate rises to the peak.
        warmup_share: the progress at which it reaches the peak if it has not done so before.
    """
    warmup = min(1.0, max(step / warmup_steps, progress / warmup_share)) if warmup_steps else 1.0
    if schedule == "inverse_sqrt":
        return peak * warmup * math.sqrt(max(1, warmup_steps) / max(step, warmup_steps, 1))
    left = max(0.0, 1.0 - progress)
    falls = {
        "constant": 1.0,
        "linear": left,
        "wsd": min(1.0, left / _DECAY_SHARE),
        "cosine": 0.5 * (1.0 - math.cos(math.pi * left)),
    }
    return peak * warmup * falls[schedule]


class Muon(torch.optim.Muon):
    """Muon with updates as large as AdamW's (Liu et al. 2025), so that the learning rate of the one fits the other.

    Its settings and its state are those of :class:`torch.optim.Muon`, which always multiplies in bfloat16: processors
    that emulate it take 5 to 80 times as long for a step. Besides, this class orthogonalizes all matrices of a shape
    together, each of those that a weight stacks on its own, and each matrix of a sharded model as a whole.
    """

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
            parameter.mul_(decay).add_(as_kept(update.flatten(0, 1), parameter), alpha=-rate)

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
