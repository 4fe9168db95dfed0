"""The optimizer and the learning rate's schedule (section 5.3 of the paper)."""

import math

import torch
from torch import nn

from mtformer.config import TrainingConfig

_BETAS, _EPS = (0.9, 0.98), 1e-9  # the paper's


def make_optimizer(model: nn.Module, config: TrainingConfig) -> torch.optim.Optimizer:
    """Make the optimizer; weight decay pulls on matrices, not on biases and LayerNorms."""
    matrices = [parameter for parameter in model.parameters() if parameter.dim() > 1]
    vectors = [parameter for parameter in model.parameters() if parameter.dim() <= 1]
    if config.optimizer == "adam":
        return torch.optim.Adam(matrices + vectors, lr=0.0, betas=_BETAS, eps=_EPS, fused=True)
    groups = [
        {"params": matrices, "weight_decay": config.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=0.0, betas=_BETAS, eps=_EPS, fused=True)


def learning_rate(step: int, progress: float, *, schedule: str, peak: float, warmup_steps: int) -> float:
    """Return the learning rate of an update.

    Args:
        step: the number of the update, from 1.
        progress: how much of the run is over before it, from 0 to 1.
        schedule: ``linear`` or ``cosine``, which reach zero at the end of the run, or ``inverse_sqrt``, equation 3 of
            the paper (d_model^-½ · min(step^-½, step · warmup_steps^-3⁄2)) written with its peak.
        peak: the highest learning rate.
        warmup_steps: the updates in which it rises to the peak.
    """
    warmup = min(1.0, step / warmup_steps) if warmup_steps else 1.0
    if schedule == "inverse_sqrt":
        return peak * warmup * math.sqrt(max(1, warmup_steps) / max(step, warmup_steps, 1))
    if schedule == "cosine":
        return peak * warmup * 0.5 * (1.0 + math.cos(math.pi * min(1.0, progress)))
    return peak * warmup * max(0.0, 1.0 - progress)
