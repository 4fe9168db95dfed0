"""The forecast of a run: its size, speed, time and memory, before it starts."""

import copy
import time

from mtformer.data.batches import Plan, make_batch
from mtformer.progress import clock
from mtformer.training.memory import peak_memory
from mtformer.training.trainer import Trainer
from mtformer.training.update import Updater

_N_WARMUP, _N_MEASURED = 2, 8


def forecast(trainer: Trainer) -> str:
    """Describe the run of ``trainer``, which does not change: a few updates are measured on a copy of its model."""
    settings, corpus, model = trainer.settings, trainer.data.corpus, trainer.model
    plan, order = trainer.plan(0), trainer.data.order(0)
    n_src, n_tgt = int(corpus.src.lengths[order].sum()), int(corpus.tgt.lengths[order].sum())
    n_padded = sum(len(batch.indices) * batch.tgt_length for batch in plan)
    n_parameters = sum(parameter.numel() for parameter in model.parameters())
    n_trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    tokens_per_second = _measure(trainer, plan)
    seconds_per_step = n_tgt / trainer.steps_per_epoch / tokens_per_second
    in_time = max(1, int(60 * settings.max_minutes / seconds_per_step)) if settings.max_minutes else None
    n_steps = min(steps for steps in (trainer.total_steps(), in_time) if steps is not None)
    rows = {
        "parameters": f"{n_parameters:,}" + (f", {n_trained:,} of them trained" if n_trained < n_parameters else ""),
        "vocabulary": f"{model.src_embedding.num_embeddings:,} source, {model.tgt_embedding.num_embeddings:,} target",
        "pairs": f"{len(corpus):,}, {sum(corpus.dropped.values()):,} dropped",
        "an epoch": f"{trainer.steps_per_epoch:,} steps, {n_src:,} source and {n_tgt:,} target tokens",
        "padding": f"{1 - n_tgt / n_padded:.1%} of the target side, batches of up to {settings.max_tokens:,} tokens",
        "steps": f"{n_steps:,}, {n_steps / trainer.steps_per_epoch:.1f} epochs",
        "speed": f"{tokens_per_second:,.0f} target tokens/s, {settings.precision} on {trainer.device.type}",
        "time": f"{clock(n_steps * seconds_per_step)} and {n_steps // trainer.validate_every} validations",
        "memory": f"{peak_memory(trainer.device) / 2**30:.1f} GiB",
    }
    return "\n".join(f"{name:<12}{value}" for name, value in rows.items())


def _measure(trainer: Trainer, plan: Plan) -> float:
    """Return target tokens per second of updates from all over an epoch, after a warm-up with the largest batch."""
    updater = Updater(copy.deepcopy(trainer.model), trainer.settings)
    by_size = sorted(plan, key=lambda batch: len(batch.indices) * batch.tgt_length)
    chosen = [by_size[-1]] * _N_WARMUP + by_size[:: max(1, len(by_size) // _N_MEASURED)]
    batches = [make_batch(trainer.data.corpus, *planned).to(trainer.device) for planned in chosen]
    for batch in batches[:_N_WARMUP]:
        updater.update([batch], 1, 0.0)
    started = time.monotonic()
    n_tokens = sum(updater.update([batch], step, 0.0).n_tokens for step, batch in enumerate(batches[_N_WARMUP:], 1))
    return n_tokens / (time.monotonic() - started)
