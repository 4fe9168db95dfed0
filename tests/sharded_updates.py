"""The same updates sharded and by one process; prints as JSON how they differ, and the shares of the ranks."""

import json
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from conftest import BOS_ID, PAD_ID, training_settings
from torch import Tensor
from torch.distributed.tensor import DTensor

from mtformer.config.schema import ModelConfig
from mtformer.data.batches import Batch, pad
from mtformer.model.transformer import Transformer
from mtformer.support.errors import MtformerError
from mtformer.support.processes.ranks import Ranks
from mtformer.training.finetune import freeze
from mtformer.training.sharding import shard, unsharded, whole
from mtformer.training.update import Updater

SIZES = {"d_model": 16, "n_heads": 2, "d_ff": 32, "n_encoder_layers": 2, "n_decoder_layers": 2, "dropout": 0.0}
UPDATES = [[[0, 1, 2, 3], [4]], [[5, 6, 0], [2]], [[3, 6, 1], [5, 4]]]  # of two batches; some have but one row

OTHER_MODEL = {"tie_embeddings": False, "positions": "learned", "norm": "post"}
VARIANTS: dict[str, tuple[dict[str, Any], dict[str, Any], Sequence[str]]] = {
    "tied": ({}, {}, ()),
    "untied": (OTHER_MODEL, {}, ()),
    "rotary": ({"positions": "rotary"}, {}, ()),
    "frozen embeddings": ({}, {}, ["embeddings"]),
    "frozen stacks": ({}, {}, ["encoder", "decoder"]),
    "muon": ({}, {"optimizer": "muon"}, ()),
}


def make_model(frozen: Sequence[str], **sizes: Any) -> Transformer:
    torch.manual_seed(1)
    config = ModelConfig.model_validate(SIZES | sizes)
    model = Transformer(config.architecture(src_vocab_size=41, tgt_vocab_size=41, joint=True, max_length=20))
    freeze(model, frozen)
    return model


def make_updater(model: Transformer, ranks: Ranks, **settings: Any) -> Updater:
    training = {"max_grad_norm": 1e3, "ema_decay": 0.9} | settings
    updater = Updater(model, training_settings(**training), ranks)
    adamw, *muon = updater.optimizers
    trained = [parameter for group in adamw.param_groups for parameter in group["params"]]
    updater.optimizers = [torch.optim.SGD(trained, lr=0.0), *muon]  # SGD shows any difference in the gradients
    return updater


def make_batch(rows: Sequence[int]) -> Batch:
    random = torch.Generator().manual_seed(2)
    text = [torch.randint(4, 41, (n + 3,), generator=random).numpy() for n in range(14)]
    src, tgt_out = (pad([text[number] for number in side], PAD_ID) for side in (rows, [13 - row for row in rows]))
    tgt_in = torch.cat([torch.full((len(rows), 1), BOS_ID), tgt_out[:, :-1]], dim=1)
    return Batch(src, src != PAD_ID, tgt_in, tgt_out, tgt_out != PAD_ID, rows)


def share_of(rows: Sequence[int], ranks: Ranks) -> Batch:
    share = ranks.share(rows)
    return make_batch(share) if share else make_batch(rows[:1]).without_targets()


def difference(ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> float:
    return max((a - whole(b)).abs().max().item() for a, b in zip(ours, theirs, strict=True))


def compare(name: str, ranks: Ranks) -> dict[str, Any]:
    sizes, settings, frozen = VARIANTS[name]
    alone, sharded = make_model(frozen, **sizes), make_model(frozen, **sizes)
    begun = [parameter.detach().clone() for parameter in alone.parameters()]
    shard(sharded, torch.device("cpu"))
    one, two = make_updater(alone, Ranks(), **settings), make_updater(sharded, ranks, **settings)
    for step, batches in enumerate(UPDATES, 1):
        expected = one.update([make_batch(rows) for rows in batches], step, 0.05)
        update = two.update([share_of(rows, ranks) for rows in batches], step, 0.05)
        assert not expected.fault
        assert update.n_tokens == expected.n_tokens
    assert one.average
    assert two.average
    with unsharded(sharded):
        n_whole = sum(parameter.numel() for parameter in sharded.parameters() if not isinstance(parameter, DTensor))
        sharded(*(getattr(share_of([0, 1], ranks), name) for name in ("src", "src_mask", "tgt_in")))
        if ranks.is_first:  # the ranks need not do the same
            sharded.encode(make_batch([2]).src, make_batch([2]).src_mask)
    kept = [parameter.to_local().numel() for parameter in sharded.parameters() if isinstance(parameter, DTensor)]
    return {
        "moved": difference(begun, list(alone.parameters())),
        "loss": abs(update.loss / expected.loss - 1),
        "weights": difference(list(alone.parameters()), list(sharded.parameters())),
        "average": difference(list(one.average.tensors.values()), list(two.average.tensors.values())),
        "n_whole": n_whole,
        "n_kept": ranks.sum(*(sum(kept) * (ranks.rank == rank) for rank in range(ranks.size))),
        "n_parameters": sum(parameter.numel() for parameter in alone.parameters()),
    }


class Starved(Updater):
    """Never has enough memory."""

    def _gradients(self, parts: Sequence[Batch], step: int, n_tokens: float) -> list[Tensor]:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")


def starve(ranks: Ranks) -> str:
    model = make_model(())
    shard(model, torch.device("cpu"))
    try:
        Starved(model, training_settings(), ranks).update([make_batch([0, 1])], 1, 0.1)
    except MtformerError as error:
        return str(error)
    return ""


def main() -> None:
    """Compare as one of the ranks; the first one prints what they have found."""
    dist.init_process_group("gloo")
    ranks = Ranks(dist.get_rank(), dist.get_world_size())
    results: dict[str, Any] = {name: compare(name, ranks) for name in VARIANTS}
    results |= {"starved": starve(ranks), "collected": ranks.collect([0, 1, 2] if ranks.is_first else [2, 3])}
    if ranks.is_first:
        print(json.dumps(results))
    dist.destroy_process_group()
