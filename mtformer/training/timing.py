"""How long an update of a model takes on this machine, in each precision."""

import copy
import logging
import time

from mtformer.config import Precision, ResolvedTraining
from mtformer.data.batches import epoch_batches, make_batch
from mtformer.data.corpus import Corpus
from mtformer.model.transformer import Transformer
from mtformer.training.update import Updater

log = logging.getLogger(__name__)

_MAX_TOKENS = 1_024  # as many tell the faster precision, and take a second or two even in a larger model
_N_MEASURED = 3  # the fastest counts: whatever else the machine does only adds to the time


def seconds_per_update(model: Transformer, settings: ResolvedTraining, corpus: Corpus) -> dict[Precision, float]:
    """Measure updates of a copy of ``model`` on a typical batch, in bfloat16 and float32 in turn."""
    plan = epoch_batches(corpus, _MAX_TOKENS, seed=settings.seed, epoch=0)
    typical = sorted(plan, key=lambda batch: (len(batch.indices), batch.indices))[len(plan) // 2]
    copied = copy.deepcopy(model)
    precisions: tuple[Precision, ...] = ("bf16", "fp32")
    updaters = {p: Updater(copied, settings.model_copy(update={"precision": p})) for p in precisions}
    batch = make_batch(corpus, *typical).to(next(model.parameters()).device)
    seconds: dict[Precision, list[float]] = {precision: [] for precision in precisions}
    for step in range(1 + _N_MEASURED):
        for precision, updater in updaters.items():
            started = time.perf_counter()
            updater.update([batch], step + 1, 0.0)
            seconds[precision].append(time.perf_counter() - started)
    fastest = {precision: min(times[1:]) for precision, times in seconds.items()}  # the first generates kernels
    log.info("an update of %d tokens takes %.3f s in bf16 and %.3f s in fp32", batch.n_tokens, *fastest.values())
    return fastest
