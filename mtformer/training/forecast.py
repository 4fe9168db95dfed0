"""Descriptions of a run: a forecast of its size, speed, time and memory; and the record of each start."""

import copy
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import torch
from pydantic import JsonValue

from mtformer.data.batches import BatchPlan, PlannedBatch, make_batch
from mtformer.model.weights import count_parameters
from mtformer.runs.folder import Journal
from mtformer.support.progress import clock, expected_seconds
from mtformer.support.reproducibility import digest_of_code, versions
from mtformer.support.terminal import counted
from mtformer.training.memory import peak_memory
from mtformer.training.trainer import Trainer
from mtformer.training.update import Updater

_N_MEASURED = 8
_HARDLY_SHORTER = 0.9  # of its given length: such a warm-up is not reported as shortened


@dataclass(frozen=True)
class Forecast:
    """The forecast of a run.

    Attributes:
        rows: its description, by name.
        n_steps: its updates.
        seconds: its time, validations included.
        steps_per_epoch: the updates of a pass over the text.
    """

    rows: Mapping[str, str]
    n_steps: int
    seconds: float
    steps_per_epoch: int

    def __str__(self) -> str:
        return "\n".join(f"{name:<12}{value}" for name, value in self.rows.items())


def forecast(trainer: Trainer) -> Forecast:
    """Describe the run of ``trainer``, which does not change: a few updates are measured on a copy of its model.

    So is a part of a validation; see :meth:`.Validator.expected_seconds`. Early stopping may end the run before.
    """
    settings, corpus, model = trainer.settings, trainer.data.corpus, trainer.model
    plan, order = trainer.plan(0), trainer.data.order(0)
    n_src, n_tgt = int(corpus.src.lengths[order].sum()), int(corpus.tgt.lengths[order].sum())
    n_padded = sum(len(batch.indices) * batch.tgt_length for batch in plan)
    n_parameters, n_trained = count_parameters(model), count_parameters(model, trained_only=True)
    tokens_per_second = _measure(trainer, plan)
    per_step = n_tgt / trainer.steps_per_epoch / tokens_per_second
    per_validation = trainer.validator.expected_seconds(copy.deepcopy(model))
    n_steps, n_validations = _until_limit(trainer, per_step, per_validation)
    validating = n_validations * per_validation
    seconds = n_steps * per_step + validating
    rows = {
        "parameters": f"{n_parameters:,}" + (f", {n_trained:,} of them trained" if n_trained < n_parameters else ""),
        "vocabulary": f"{model.src_embedding.num_embeddings:,} source, {model.tgt_embedding.num_embeddings:,} target",
        "pairs": f"{len(corpus):,}, {sum(corpus.dropped.values()):,} dropped",
        "an epoch": f"{counted(trainer.steps_per_epoch, 'step')}, {n_src:,} source and {n_tgt:,} target tokens",
        "padding": (
            f"{100 - 100 * n_tgt / n_padded:.1f} % of the target side, batches of up to {settings.max_tokens:,} tokens"
        ),
        "steps": f"{n_steps:,}, {n_steps / trainer.steps_per_epoch:.1f} epochs",
        "optimizer": f"{settings.shown_optimizer}, learning rate up to {settings.learning_rate:g}",
        "warm-up": shortened_warmup(trainer, n_steps) or counted(settings.warmup_steps, "step"),
        "speed": f"{tokens_per_second:,.0f} target tokens/s, {settings.precision} on {_where(trainer)}",
        "time": f"{clock(seconds)}, {clock(validating)} of it for {counted(n_validations, 'validation')}",
        "memory": f"{peak_memory(trainer.device) / 2**30:.1f} GiB",
    }
    return Forecast(rows, n_steps, seconds, trainer.steps_per_epoch)


def _where(trainer: Trainer) -> str:
    n = trainer.updater.threads.n
    return trainer.device.type + (f" with {n} threads" if n > 1 else "")


def shortened_warmup(trainer: Trainer, n_steps: int) -> str:
    """Return the length of the warm-up if a run of ``n_steps`` shortens it noticeably, otherwise an empty string."""
    given, longest = trainer.settings.warmup_steps, round(trainer.warmup_share * n_steps)
    shortened = f"{counted(longest, 'step')} instead of {given:,}, {100 * trainer.warmup_share:.0f} % of the run"
    return shortened if longest < _HARDLY_SHORTER * given else ""


def _until_limit(trainer: Trainer, per_step: float, per_validation: float) -> tuple[int, int]:
    """Return the steps and the validations of the run, of which one follows the last step.

    Fine-tuning begins with one.
    """
    settings, every = trainer.settings, trainer.validate_every
    limits = [trainer.course.total_steps()]
    if settings.max_minutes:
        limits.append(max(1, int(60 * settings.max_minutes / (per_step + per_validation / every))))
    n_steps = min(steps for steps in limits if steps is not None)
    return n_steps, -(-n_steps // every) + (settings.init_from is not None)


def _measure(trainer: Trainer, plan: BatchPlan) -> float:
    """Return target tokens per second of updates from all over an epoch, after a warm-up with the largest batch."""
    updater = Updater(copy.deepcopy(trainer.model), trainer.settings)
    n_tokens = int(trainer.data.corpus.tgt.lengths[plan.order].sum())

    def size(planned: PlannedBatch) -> int:
        return len(planned.indices) * (planned.src_length + planned.tgt_length)

    def update(plan: Sequence[PlannedBatch]) -> None:
        for planned in plan:
            updater.update([make_batch(trainer.data.corpus, *planned).to(trainer.device)], 1, 0.0)

    update([max(plan, key=size)])
    return n_tokens / expected_seconds(plan, update, size, _N_MEASURED)


def record_start(trainer: Trainer) -> None:
    """Add a line to ``starts.jsonl``: time, code, settings, machine, data and parameters of a start.

    It is called before training begins, when ``trainer`` already knows the step that it resumes from.

    Raises:
        MtformerError: the file cannot be written.
    """
    corpus, model = trainer.data.corpus, trainer.model
    line: dict[str, JsonValue] = {
        "step": trainer.state.step,
        "seconds": round(trainer.state.seconds, 1),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": dict(versions()),
        "code": digest_of_code(),
        "config": trainer.config.model_dump(mode="json"),  # from which a lost config.yaml is written again
        "machine": _machine(trainer),
        "data": {
            "pairs": len(corpus),
            "pairs_by_source": list(trainer.data.n_pairs),
            "valid_pairs": trainer.validator.n_pairs,
            "dropped": dict(corpus.dropped),
            "src_tokens": int(corpus.src.lengths.sum()),
            "tgt_tokens": int(corpus.tgt.lengths.sum()),
        },
        "model": {
            "parameters": count_parameters(model),
            "trained": count_parameters(model, trained_only=True),
            "src_vocab_size": trainer.tokenizer.src_vocab_size,
            "tgt_vocab_size": trainer.tokenizer.tgt_vocab_size,
        },
        "steps_per_epoch": trainer.steps_per_epoch,
        "total_steps": trainer.course.total_steps(),
    }
    Journal(trainer.folder.starts).write(line)


def _machine(trainer: Trainer) -> dict[str, JsonValue]:
    device = trainer.device
    return {
        "system": platform.platform(terse=True),
        "processor": _processor(),
        "threads": trainer.updater.threads.n,
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "processes": trainer.ranks.size,
        "precision": trainer.settings.precision,
    }


def _processor() -> str:
    """Return the processor's name, as Linux tells it; elsewhere its kind."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
