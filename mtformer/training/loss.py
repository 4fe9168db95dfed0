"""The loss: cross entropy with label smoothing, summed over the pieces that are to be predicted."""

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import LinearCrossEntropyOptions

from mtformer.model.transformer import Transformer
from mtformer.text.batching import Batch

_CHUNKED = LinearCrossEntropyOptions(batch_chunk_size=512)  # rows whose logits stay in the cache


def summed_loss(model: Transformer, batch: Batch, label_smoothing: float) -> Tensor:
    """Return the cross entropy in nats, summed over the batch's target pieces; padding takes no part.

    The sum is not yet divided, so that several batches can be added up and divided once, by the pieces of them all:
    then (8 pairs × 1 batch) and (2 pairs × 4 batches) give the same gradient.
    """
    hidden = model(batch.src, batch.src_mask, batch.tgt_in)  # (B, T, D)
    mask = batch.tgt_mask
    return smoothed_cross_entropy(hidden[mask], model.output.weight, batch.tgt_out[mask], label_smoothing)


def smoothed_cross_entropy(hidden: Tensor, weight: Tensor, target: Tensor, label_smoothing: float) -> Tensor:
    """Return the summed cross entropy of the logits hidden·Wᵀ, which never exist all at once.

    Label smoothing (Szegedy et al. 2016) gives the target 1 - ε and spreads ε over the V pieces. With logits z that
    loss is logsumexp(z) - (1 - ε)·z[y] - ε·mean(z), that is the plain cross entropy and ε·(z[y] - mean(z)), and
    mean(z) = hidden·mean(W): so the chunked plain cross entropy of torch serves, which knows no smoothing.

    Args:
        hidden: (N, D).
        weight: (V, D).
        target: (N,) ids.
        label_smoothing: ε, from 0 to 1.
    """
    device = hidden.device.type
    if device == "cuda" and torch.is_autocast_enabled(device):  # a CPU computes logits in float32
        hidden = hidden.to(torch.get_autocast_dtype(device))
    with torch.autocast(device, enabled=False):
        loss = F.linear_cross_entropy(hidden, weight.to(hidden.dtype), target, reduction="sum", options=_CHUNKED)
        if not label_smoothing:
            return loss.float()
        towards_target = F.embedding(target, weight) - weight.mean(dim=0)  # (N, D)
        return loss.float() + label_smoothing * (hidden.float() * towards_target).sum()
