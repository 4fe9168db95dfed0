"""How much memory there is, how much is used, and the largest batch that fits."""

import copy
import os
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
import torch

from mtformer.config import ResolvedTraining
from mtformer.data.batches import Batch, make_batch
from mtformer.data.corpus import Corpus
from mtformer.model.transformer import Transformer
from mtformer.support.errors import MtformerError, UserError
from mtformer.support.processes.ranks import ALONE, Ranks
from mtformer.training.update import Updater

_LEAST_TOKENS = 64
_FEWEST_UPDATES = 100  # of an epoch: larger batches would leave too few for learning a small corpus


def peak_memory(device: torch.device) -> int:
    """Return the peak memory of this process in bytes: the GPU's memory for ``cuda``, else the resident set."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def used_memory(device: torch.device) -> int:
    """Return the bytes in use now: of the GPU's memory, or the resident memory of this process (its peak on macOS)."""
    if device.type == "cuda":
        return torch.cuda.memory_allocated(device)
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return peak_memory(device)


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

    with _limited_memory(ranks) if updater.device.type == "cpu" else nullcontext():
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
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        used = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()  # what RLIMIT_DATA counts
    except OSError:
        raise UserError("training.max_tokens: auto works on GPUs and on Linux only: set a number") from None
    [available] = [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable")]
    ranks.wait()  # until all have read what is available, before any allocates
    before = resource.getrlimit(resource.RLIMIT_DATA)
    limit = used + int(0.8 * available / int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
    resource.setrlimit(resource.RLIMIT_DATA, (limit if before[1] == -1 else min(limit, before[1]), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)
