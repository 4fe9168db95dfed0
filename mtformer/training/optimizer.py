"""Optimizers and learning rate schedules (section 5.3 of the paper)."""

import inspect
import math
from typing import Literal

import torch
from torch import nn

from mtformer.config import ResolvedTraining
from mtformer.model.lora import stacked_matrices
from mtformer.support.processes.threads import Threads
from mtformer.training.muon import Muon

_BETAS, _EPS = (0.9, 0.98), 1e-9  # the paper's

# The longest warm-up, as a share of the run, by `model.norm`. In short runs pre-norm learned the more the sooner the
# warm-up was over, and post-norm most with a third of the run (docs/performance.md).
WARMUP_SHARES: dict[Literal["pre", "post"], float] = {"pre": 0.1, "post": 1 / 3}


class _Adam(torch.optim.Adam):
    """Adam without torch's wrappers of its methods, which import the compiler and so delay each start by a second."""

    add_param_group = inspect.unwrap(torch.optim.Adam.add_param_group)
    zero_grad = inspect.unwrap(torch.optim.Adam.zero_grad)
    step = torch.no_grad()(inspect.unwrap(torch.optim.Adam.step))


class _AdamW(_Adam, torch.optim.AdamW):
    """AdamW with the same interface."""


def make_optimizers(
    model: nn.Module, config: ResolvedTraining, threads: Threads | None = None
) -> list[torch.optim.Optimizer]:
    """Return the optimizers, which divide the parameters among them; weight decay applies to matrices only.

    ``adam`` is the paper's. ``muon`` (Jordan et al. 2024) orthogonalizes the updates of the layers' matrices and scales
    them to the size of AdamW's (Liu et al. 2025), so that one learning rate fits both; AdamW updates the rest.
    """
    parameters = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    vectors = [parameter for parameter in parameters.values() if parameter.dim() <= 1]
    matrices = {name: parameter for name, parameter in parameters.items() if parameter.dim() > 1}
    if config.optimizer == "adam":
        return [_Adam([*matrices.values(), *vectors], lr=0.0, betas=_BETAS, eps=_EPS, fused=True)]
    hidden = {name: parameter for name, parameter in matrices.items() if "layers" in name}
    others = [parameter for name, parameter in matrices.items() if "layers" not in name]
    by_adamw = others if config.optimizer == "muon" else [*hidden.values(), *others]
    groups = [{"params": by_adamw, "weight_decay": config.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    adamw = _AdamW(groups, lr=0.0, betas=_BETAS, eps=_EPS, fused=True)
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
        schedule: ``linear`` or ``cosine``, which decay from the first step to zero at the end of the run; ``constant``;
            or ``inverse_sqrt``, equation 3 of the paper (d_model^-½ · min(step^-½, step · warmup_steps^-3⁄2)) written
            with its peak.
        peak: the learning rate that warm-up and decay multiply.
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
        "cosine": 0.5 * (1.0 - math.cos(math.pi * left)),
    }
    return peak * warmup * falls[schedule]
