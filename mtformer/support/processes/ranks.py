"""Data-parallel training: several processes, started by torchrun, share every batch and keep the same weights.

Each rank computes the gradients of its rows of a batch; they are summed over all ranks before the update. The sums are
those of the whole batch, so a config means the same for any number of ranks; only dropout draws other masks.
"""

import hashlib
import logging
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from mtformer.support.errors import MtformerError, UserError

Item = TypeVar("Item")


class Ranks:
    """One of the processes that train together.

    Attributes:
        rank: the number of this process, from 0.
        size: how many there are; with one, all methods return their arguments.
    """

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank, self.size = rank, size

    @property
    def is_first(self) -> bool:
        """Whether this process is the one that writes files and prints."""
        return self.rank == 0

    def share(self, items: Sequence[Item]) -> Sequence[Item]:
        """Return this rank's share, every ``size``-th item; some ranks get none if there are few."""
        return items[self.rank :: self.size]

    def unshare(self, items: Sequence[Item]) -> list[Item]:
        """Undo :meth:`share`: gather the shares of all ranks, in order."""
        shares = self._gather(items)
        return [shares[i % self.size][i // self.size] for i in range(sum(map(len, shares)))]

    def collect(self, items: Sequence[Item]) -> list[Item]:
        """Gather the items of all ranks, however many each has, without duplicates."""
        return list(dict.fromkeys(item for gathered in self._gather(items) for item in gathered))

    def _gather(self, items: Sequence[Item]) -> list[Sequence[Item]]:
        if self.size == 1:
            return [items]
        gathered: list[Sequence[Item]] = [[]] * self.size
        dist.all_gather_object(gathered, list(items))
        return gathered

    def sum(self, *numbers: float) -> list[float]:
        """Sum numbers over all ranks."""
        if self.size == 1:
            return list(numbers)
        total = torch.tensor(numbers, dtype=torch.float64)
        dist.all_reduce(total)
        return total.tolist()

    def wait(self) -> None:
        """Wait until all ranks have called this."""
        self.sum(0.0)

    def sum_in_place(self, tensors: Sequence[Tensor]) -> None:
        """Sum tensors over all ranks, in one message."""
        if self.size == 1:
            return
        message = torch.cat([tensor.flatten() for tensor in tensors])
        dist.all_reduce(message)
        for tensor, part in zip(tensors, message.split([tensor.numel() for tensor in tensors]), strict=True):
            tensor.copy_(part.view_as(tensor))

    def by_first(self, work: Callable[[], Item]) -> Item:
        """Let the first rank alone do some work and return its result to all; if it fails, the others exit silently."""
        if self.size == 1:
            return work()
        outcome: list[Any] = [None, None]
        if self.is_first:
            try:
                outcome[0] = work()
            except BaseException as error:
                outcome[1] = 2 if isinstance(error, UserError) else 1
                dist.broadcast_object_list(outcome, src=0)
                raise
        dist.broadcast_object_list(outcome, src=0)
        if outcome[1]:
            raise SystemExit(outcome[1])
        return cast(Item, outcome[0])

    def after_first(self, work: Callable[[], Item]) -> Item:
        """Do work on the first rank alone, and then on the others, which find its results in the cache."""
        done: list[Item] = []
        self.by_first(lambda: done.append(work()))
        return done[0] if done else work()


ALONE = Ranks()


@contextmanager
def joined_ranks(
    device: torch.device, advice: str = "rerun the command to resume from the last checkpoint"
) -> Iterator[Ranks]:
    """Join the other processes that torchrun has started, if any.

    Args:
        device: what the ranks compute on.
        advice: what to do when contact to another rank was lost.

    Raises:
        MtformerError: contact to another rank was lost.
    """
    if os.environ.get("WORLD_SIZE", "1") == "1":
        yield ALONE
        return
    store, rank, size = next(rendezvous("env://"))
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        # The store outlives a restart, with the addresses of processes that are gone (pytorch#135712).
        store = PrefixStore(os.environ["TORCHELASTIC_RESTART_COUNT"], store)
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    # The first rank reads the text and trains the tokenizer while the others wait; a lost rank is noticed at once.
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=timedelta(hours=6))
    ranks = Ranks(rank, size)
    if not ranks.is_first:
        logging.getLogger("mtformer").setLevel(logging.ERROR)
    try:
        yield ranks
        ranks.wait()
    except RuntimeError as error:
        if not _is_lost_contact(error):
            raise
        raise MtformerError(
            f"rank {ranks.rank} has lost another rank and stops; {advice} ({str(error).splitlines()[0][:200]})"
        ) from error
    finally:
        dist.destroy_process_group()


def is_first_to_report(message: str) -> bool:
    """Return whether no other process of this machine has asked the same about an error; several may have the same."""
    try:
        store, _, _ = next(rendezvous("env://", timeout=timedelta(seconds=10)))
        place = [os.environ.get(name, "0") for name in ("GROUP_RANK", "TORCHELASTIC_RESTART_COUNT")]
        digest = hashlib.sha256(message.encode(errors="surrogateescape")).hexdigest()
        return store.add("/".join(["reported", *place, digest]), 1) == 1
    except (RuntimeError, ValueError):  # no contact: better reported twice than never
        return True


def local_device(device: torch.device, ranks: Ranks = ALONE) -> torch.device:
    """Return the device of this rank: the CPU, or its GPU among those of its machine.

    Raises:
        UserError: some ranks have a GPU and others do not, or a machine has fewer GPUs than ranks; all ranks of all
            machines raise it.
    """
    lacking = _lacking_gpus(device, int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
    # Ranks without a GPU take part as well: the others would wait for them forever.
    reports = ranks.collect([(socket.gethostname(), device.type, message) for message in lacking or [""]])
    if len({device_type for _, device_type, _ in reports}) > 1:
        places = ", ".join(sorted({f"{device_type} on {host}" for host, device_type, _ in reports}))
        raise UserError(
            f"all ranks must train on the same type of device, but found {places}: make a GPU visible to every rank, "
            "or train on the CPU (training.device=cpu)"
        )
    if messages := [message for _, _, message in reports if message]:
        raise UserError("; ".join(messages))
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if device.type == "cuda" else device


def require_gpus(device: torch.device, n_processes: int) -> None:
    """Require a GPU of this machine for each of ``n_processes``, if ``device`` is a GPU.

    Raises:
        UserError: there are fewer.
    """
    if lacking := _lacking_gpus(device, n_processes):
        raise UserError(lacking[0])


def _lacking_gpus(device: torch.device, n_processes: int) -> list[str]:
    """Return a message if the device is a GPU and this machine has too few of them."""
    n_gpus = torch.cuda.device_count() if device.type == "cuda" else 1
    if device.type == "cpu" or n_processes <= n_gpus:
        return []
    gpus = "1 GPU" if n_gpus == 1 else f"{n_gpus} GPUs"
    return [
        f"{socket.gethostname()} has {gpus} for {n_processes} processes: start one process for each GPU, or train on "
        "the CPU (training.device=cpu)"
    ]


def _is_lost_contact(error: RuntimeError) -> bool:
    """Return whether a collective operation has failed; gloo has no exception class for that."""
    return isinstance(error, dist.DistError) or "gloo" in str(error).lower() or "onnection" in str(error)
