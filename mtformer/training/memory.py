"""How much memory there is, how much is used, and the largest batch that fits."""

import copy
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

import numpy as np
import psutil
import torch

from mtformer.config import ResolvedTraining
from mtformer.data.batches import Batch, make_batch
from mtformer.data.tokens import Corpus
from mtformer.model.transformer import Transformer
from mtformer.support.errors import MtformerError, UserError
from mtformer.support.processes.ranks import ALONE, Ranks
from mtformer.training.update import Updater

_LEAST_TOKENS = 64
_FEWEST_UPDATES = 100  # of an epoch: larger batches would leave too few for learning a small corpus


def peak_memory(device: torch.device) -> int:
    """Return the peak memory in bytes: the GPU's for ``cuda``, the driver's now for ``mps``, or the resident memory."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    if device.type == "mps":
        return torch.mps.driver_allocated_memory()
    if sys.platform == "win32":
        memory = psutil.Process().memory_info()
        return getattr(memory, "peak_wset", memory.rss)
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def used_memory(device: torch.device) -> int:
    """Return the bytes in use now: of the GPU's memory, or the resident memory of this process."""
    if device.type == "cuda":
        return torch.cuda.memory_allocated(device)
    return torch.mps.current_allocated_memory() if device.type == "mps" else psutil.Process().memory_info().rss


def largest_max_tokens(model: Transformer, settings: ResolvedTraining, corpus: Corpus, ranks: Ranks = ALONE) -> int:
    """Return the largest ``max_tokens`` whose batches fit into the memory of all ranks, found by trial to an eighth.

    Each trial batch repeats the longest pair, since attention needs most memory there. An epoch keeps at least a
    hundred updates.

    Raises:
        MtformerError: not even the smallest fits.
    """
    updater = Updater(copy.deepcopy(model), settings)
    lengths = np.maximum(corpus.src.lengths, corpus.tgt.lengths)
    longest = int(lengths.argmax())
    length = int(lengths[longest])
    n_tokens = int(max(corpus.src.lengths.sum(), corpus.tgt.lengths.sum()))
    most = max(_LEAST_TOKENS, n_tokens // (_FEWEST_UPDATES * settings.grad_accum_steps * ranks.size))

    def batch_of(max_tokens: int) -> Batch:
        return make_batch(corpus, [longest] * max(1, max_tokens // length)).to(updater.device)

    with nullcontext() if updater.device.type == "cuda" else _limited_memory(ranks):
        updater.update([batch_of(_LEAST_TOKENS)], 1, 0.0)  # allocates the moments of the optimizer
        largest = _largest(lambda max_tokens: updater.fits(batch_of(max_tokens)), most)
    largest = min(ranks.collect([largest]))
    if largest < _LEAST_TOKENS:
        raise MtformerError("out of memory: not even the smallest batch fits beside this model")
    return largest * ranks.size


def _largest(fits: Callable[[int], bool], most: int) -> int:
    """Return the largest number up to ``most`` that fits, to an eighth, by doubling and then by bisection."""
    low, high = 0, min(1_024, most)
    while fits(high):
        if high == most:
            return most
        low, high = high, min(2 * high, most)
    while high - low > max(1, low // 8):
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


@contextmanager
def _limited_memory(ranks: Ranks = ALONE) -> Iterator[None]:
    """Inside, running out of memory raises an error instead of making Linux kill the process.

    The ranks of a machine share the available memory.
    """
    if sys.platform != "linux":  # no other system limits it
        raise UserError("training.max_tokens: auto works on the device cuda and on Linux only: set a number")
    process = psutil.Process()
    available = psutil.virtual_memory().available
    ranks.wait()  # until all have read what is available, before any allocates
    soft, hard = process.rlimit(psutil.RLIMIT_DATA)
    limit = process.memory_info().data + int(0.8 * available / int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
    process.rlimit(psutil.RLIMIT_DATA, (limit if hard == -1 else min(limit, hard), hard))
    try:
        yield
    finally:
        process.rlimit(psutil.RLIMIT_DATA, (soft, hard))
