"""Sharded training: each rank keeps only its share of the weights, gradients, moments and average, by torch's FSDP2.

The weights of a layer are brought together when it computes and let go afterwards. Bringing them together takes all
ranks, so each rank must do as many passes through the model as any other.
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
    """Keep of ``model`` only this rank's share, on ``device``; all ranks must hold the same weights.

    A parameter is divided by rows; as an attribute of the model it is whole (a tensor) while its layer computes, and
    this rank's share (a ``DTensor``) at other times. Gradients become sums over all ranks.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    if device.type == "cuda":
        torch.cuda.set_device(device)  # which is where FSDP puts the shares, layer by layer
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    for layer in (*model.encoder_layers, *model.decoder_layers):
        fully_shard(layer, mesh=mesh, reshard_after_forward=True)
    # The embeddings are the output projection too: the loss needs them right after the forward pass.
    fully_shard(model, mesh=mesh, reshard_after_forward=False)
    for module in _sharded_modules(model):
        module.set_gradient_divide_factor(1.0)
        module.set_force_sum_reduction_for_comms(True)  # gloo has no sum with a factor


def is_sharded(model: nn.Module) -> bool:
    """Tell whether :func:`shard` has divided ``model``."""
    return bool(_sharded_modules(model))


@contextmanager
def unsharded(model: nn.Module) -> Iterator[None]:
    """Inside, each rank has all weights of ``model``, for whatever use; a model that is not sharded always does."""
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
    """Return a tensor with the shares of all ranks, which must all ask for it; one that is whole as it is."""
    if not dist.is_initialized():
        return tensor
    from torch.distributed.tensor import DTensor

    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def as_kept(tensor: Tensor, parameter: nn.Parameter) -> Tensor:
    """Return what this rank keeps of a whole tensor that belongs to ``parameter``, where that is.

    Args:
        tensor: of the parameter's shape, as its moments are; or of another, as the count of its updates is, and whole.
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
