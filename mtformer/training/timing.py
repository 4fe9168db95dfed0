"""How long an update of a model takes on this machine, in each precision."""

import copy
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from mtformer.config import Precision, ResolvedTraining
from mtformer.data.batches import Batch, Plan, epoch_batches, make_batch
from mtformer.data.tokens import Corpus
from mtformer.model.transformer import Transformer
from mtformer.training.update import Updater

log = logging.getLogger(__name__)

Item = TypeVar("Item")

_MAX_TOKENS = 1_024  # enough to find the faster precision, and quick even for a larger model
_N_BATCHES = 3
_N_CACHED_SHAPES = 50  # a shape takes about 20 of the 1,024 kernels that oneDNN caches


def seconds_per_update(
    model: Transformer, trials: Mapping[Precision, ResolvedTraining], corpus: Corpus
) -> dict[Precision, float]:
    """Return the mean time of an update of a copy of ``model`` with the settings of each trial.

    The trials take turns in two passes over a short, a medium and a long batch. In bfloat16, the first pass creates
    oneDNN's kernels for these shapes and the second reuses them. The mean weights the passes by the shares of an
    epoch's batches that create and reuse kernels.
    """
    copied = copy.deepcopy(model)
    updaters = {precision: Updater(copied, settings) for precision, settings in trials.items()}
    device = next(model.parameters()).device
    plan = epoch_batches(corpus, _MAX_TOKENS, seed=0, epoch=0)
    batches = [batch.to(device) for batch in _short_to_long(corpus, plan)]
    for updater in updaters.values():  # the optimizer's state is allocated only once
        updater.update([make_batch(corpus, [0]).to(device)], 1, 0.0)
    created = share_of_new_shapes(plan)
    means = dict.fromkeys(trials, 0.0)
    for first_step, share in ((2, created), (2 + _N_BATCHES, 1 - created)):
        for step, batch in enumerate(batches, first_step):
            for precision, updater in updaters.items():
                started = time.perf_counter()
                updater.update([batch], step, 0.0)
                means[precision] += share * (time.perf_counter() - started) / _N_BATCHES
    n_tokens = sum(batch.n_tokens for batch in batches) / _N_BATCHES
    shown = " and ".join(f"{mean:.3f} s in {precision}" for precision, mean in means.items())
    log.info("an update of %.0f tokens takes %s", n_tokens, shown)
    return means


def share_of_new_shapes(plan: Plan) -> float:
    """Return the share of an epoch's batches that kernels are created for.

    They are created for the first batch of each shape. If the shapes are too many for the cache, their kernels have
    often been evicted when the next batch of the same shape comes.
    """
    n_shapes = len(np.unique(plan.lengths, axis=0))
    return max(n_shapes / len(plan), 1 - _N_CACHED_SHAPES / n_shapes)


def expected_seconds(
    batches: Sequence[Item], work: Callable[[Item], object], size: Callable[[Item], float], n_measured: int
) -> float:
    """Return how long ``work`` on all batches takes, from the time that it takes on some of them.

    Args:
        batches: what there is to do.
        work: does it for a batch; it is called twice for each batch that is measured, and the second time counts, when
            kernels have been generated and memory has been allocated.
        size: what the time is proportional to.
        n_measured: about how many batches to measure; they are spread over all sizes.
    """
    by_size = sorted(batches, key=size)
    step = max(1, len(by_size) // n_measured)
    chosen = by_size[step // 2 :: step]
    for batch in chosen:
        work(batch)
    started = time.monotonic()
    for batch in chosen:
        work(batch)
    return (time.monotonic() - started) * sum(map(size, batches)) / sum(map(size, chosen))


def _short_to_long(corpus: Corpus, plan: Plan) -> list[Batch]:
    """Return batches from the middle of each third of an epoch, sorted by length."""
    by_length = np.lexsort((plan.order[plan.bounds[:, 0]], plan.lengths.sum(axis=1)))
    middles = [(2 * i + 1) * len(plan) // (2 * _N_BATCHES) for i in range(_N_BATCHES)]
    return [make_batch(corpus, *planned) for planned in plan.arranged(by_length[middles])]
