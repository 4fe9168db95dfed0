"""What is recorded each time a run starts or resumes: the machine, the data and the model as they were found."""

import platform
from datetime import UTC, datetime
from pathlib import Path

import torch
from pydantic import JsonValue

from mtformer.runs.journal import Journal
from mtformer.support.reproducibility import versions
from mtformer.training.trainer import Trainer


def record_start(trainer: Trainer) -> None:
    """Add a line to ``starts.jsonl``; training has not begun, but ``trainer`` knows the step that it resumes from.

    Raises:
        MtformerError: the file cannot be written.
    """
    Journal(trainer.folder.starts).write(describe_start(trainer))


def describe_start(trainer: Trainer) -> dict[str, JsonValue]:
    """Return the line of ``starts.jsonl``: time, settings, machine, data and parameters of a start."""
    corpus, model = trainer.data.corpus, trainer.model
    parameters = list(model.parameters())
    return {
        "step": trainer.state.step,
        "seconds": round(trainer.state.seconds, 1),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": dict(versions()),
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
            "parameters": sum(parameter.numel() for parameter in parameters),
            "trained": sum(parameter.numel() for parameter in parameters if parameter.requires_grad),
            "src_vocab_size": trainer.tokenizer.src_vocab_size,
            "tgt_vocab_size": trainer.tokenizer.tgt_vocab_size,
        },
        "steps_per_epoch": trainer.steps_per_epoch,
        "total_steps": trainer.total_steps(),
    }


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
