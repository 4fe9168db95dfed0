"""Sharded training with FSDP2: each rank keeps only its share of the weights, gradients, moments and average.

A layer's weights are gathered when it computes and freed afterwards. Gathering involves all ranks, so every rank must
run the same number of passes through the model.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from torch import Tensor, nn

from mtformer.model.transformer import Transformer

# FSDP and DTensor take half a second to import, so only processes of a group, the only ones that can shard, do it.
if TYPE_CHECKING:
    from torch.distributed.fsdp import FSDPModule


def shard(model: Transformer, device: torch.device) -> None:
    """Keep only this rank's share of ``model``, on ``device``; all ranks must have the same weights.

    Parameters are divided by rows. A parameter is a whole tensor while its layer computes and this rank's share (a
    ``DTensor``) at other times. Gradients become sums over all ranks.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    if device.type == "cuda":
        torch.cuda.set_device(device)  # FSDP puts the shares there
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    for layer in (*model.encoder_layers, *model.decoder_layers):
        fully_shard(layer, mesh=mesh, reshard_after_forward=True)
    # The embeddings are also the output projection, which the loss needs right after the forward pass.
    fully_shard(model, mesh=mesh, reshard_after_forward=False)
    for module in _sharded_modules(model):
        module.set_gradient_divide_factor(1.0)
        module.set_force_sum_reduction_for_comms(True)  # gloo cannot scale a sum


def is_sharded(model: nn.Module) -> bool:
    """Return whether :func:`shard` has been applied to ``model``."""
    return bool(_sharded_modules(model))


def computes_in_threads(model: Transformer) -> bool:
    """Return whether threads may compute with ``model`` side by side: on a CPU, with all weights at hand."""
    return model.device.type == "cpu" and not is_sharded(model)


@contextmanager
def unsharded(model: nn.Module) -> Iterator[None]:
    """Give each rank all weights of ``model`` inside the context; does nothing for a model that is not sharded."""
    modules = _sharded_modules(model)
    for module in modules:
        module.set_reshard_after_forward(False, recurse=False)
        module.unshard()
    try:
        yield
    finally:
        for module in modules:
            module.set_reshard_after_forward(not isinstance(module, Transformer), recurse=False)  # as in shard
            module.reshard()


def whole(tensor: Tensor) -> Tensor:
    """Gather a tensor from all ranks, which must all call this; a tensor that is not sharded is returned unchanged."""
    if not dist.is_initialized():
        return tensor
    from torch.distributed.tensor import DTensor

    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def as_kept(tensor: Tensor, parameter: nn.Parameter) -> Tensor:
    """Return this rank's share of a whole tensor that belongs to ``parameter``, on the device of the parameter.

    Args:
        tensor: of the parameter's shape, like its moments; or of another, like its step count, which is not sharded.
        parameter: sharded or not.
    """
    if dist.is_initialized():
        from torch.distributed.tensor import DTensor, distribute_tensor

        if isinstance(parameter, DTensor) and tensor.shape == parameter.shape:
            return distribute_tensor(tensor, parameter.device_mesh, parameter.placements, src_data_rank=None)
    return tensor.to(parameter.device)


def _sharded_modules(model: nn.Module) -> "list[FSDPModule]":
    if not dist.is_initialized():
        return []
    from torch.distributed.fsdp import FSDPModule

    return [module for module in model.modules() if isinstance(module, FSDPModule)]
