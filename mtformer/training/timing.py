"""How long an update of a model takes on this machine, in each precision."""

import copy
import logging
import time
from collections.abc import Mapping

from mtformer.config import Precision, ResolvedTraining
from mtformer.data.batches import epoch_batches, make_batch
from mtformer.data.corpus import Corpus
from mtformer.model.transformer import Transformer
from mtformer.training.update import Updater

log = logging.getLogger(__name__)

_MAX_TOKENS = 1_024  # as many tell the faster precision, and take a second or two even in a larger model
_N_MEASURED = 3  # the fastest counts: whatever else the machine does only adds to the time


def seconds_per_update(
    model: Transformer, trials: Mapping[Precision, ResolvedTraining], corpus: Corpus
) -> dict[Precision, float]:
    """Measure updates of a copy of ``model`` on a typical batch, with the settings of each trial in turn."""
    plan = epoch_batches(corpus, _MAX_TOKENS, seed=0, epoch=0)
    typical = sorted(plan, key=lambda batch: (len(batch.indices), batch.indices))[len(plan) // 2]
    copied = copy.deepcopy(model)
    updaters = {precision: Updater(copied, settings) for precision, settings in trials.items()}
    batch = make_batch(corpus, *typical).to(next(model.parameters()).device)
    seconds: dict[Precision, list[float]] = {precision: [] for precision in trials}
    for step in range(1 + _N_MEASURED):
        for precision, updater in updaters.items():
            started = time.perf_counter()
            updater.update([batch], step + 1, 0.0)
            seconds[precision].append(time.perf_counter() - started)
    fastest = {precision: min(times[1:]) for precision, times in seconds.items()}  # the first generates kernels
    shown = " and ".join(f"{time:.3f} s in {precision}" for precision, time in fastest.items())
    log.info("an update of %d tokens takes %s", batch.n_tokens, shown)
    return fastest
