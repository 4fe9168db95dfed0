"""Checkpoints: all that training needs to go on, written so that an interrupted save can do no harm.

A checkpoint is a folder ``step-000500`` with ``tensors.safetensors`` (weights, optimizer moments, random state) and
``state.json`` (counters, and the digest of the tensors). It is written under another name and renamed when it is whole.
"""

import hashlib
import json
import logging
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from mtformer.bundle import load_weights, weights
from mtformer.files import write_folder_atomically

log = logging.getLogger(__name__)

_TENSORS, _STATE = "tensors.safetensors", "state.json"


def save_checkpoint(
    folder: Path, step: int, model: nn.Module, optimizer: torch.optim.Optimizer, state: dict[str, Any], keep_last: int
) -> Path:
    """Write a checkpoint of ``step`` below ``folder`` and remove all but the ``keep_last`` newest.

    Raises:
        MtformerError: the disk is full or cannot be written; earlier checkpoints are untouched.
    """
    path = folder / f"step-{step:06d}"
    tensors = {f"model.{name}": tensor for name, tensor in weights(model).items()}
    tensors |= _optimizer_tensors(model, optimizer)
    tensors["random.cpu"] = torch.get_rng_state()
    if torch.cuda.is_available():
        tensors["random.cuda"] = torch.cuda.get_rng_state()

    def write(temporary: Path) -> None:
        save_file(tensors, temporary / _TENSORS)
        text = json.dumps(state | {"digest": _digest(temporary / _TENSORS)}, indent=2)
        (temporary / _STATE).write_text(text, encoding="utf-8")

    write_folder_atomically(path, write)
    for old in list_checkpoints(folder)[keep_last:]:
        shutil.rmtree(old, ignore_errors=True)
    return path


def list_checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints below ``folder``, newest first; unfinished ones have other names."""
    return sorted(folder.glob("step-*"), key=lambda path: int(path.name.removeprefix("step-")), reverse=True)


def load_newest_checkpoint(folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any] | None:
    """Load the newest intact checkpoint into ``model`` and ``optimizer`` and return its state, or None without one.

    A damaged checkpoint is passed over with a warning.
    """
    for path in list_checkpoints(folder):
        try:
            state: dict[str, Any] = json.loads((path / _STATE).read_text(encoding="utf-8"))
            if state.pop("digest") != _digest(path / _TENSORS):
                raise ValueError("its tensors are not those that were written")
            tensors = load_file(path / _TENSORS)
        except (OSError, ValueError, KeyError) as error:
            log.warning("the checkpoint %s is damaged and passed over: %s", path, error)
            continue
        _restore(model, optimizer, tensors)
        return state
    return None


def _optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Name the optimizer's moments after the parameters that they belong to."""
    return {
        f"optimizer.{moment}.{name}": tensor.detach().cpu().contiguous()
        for name, parameter in model.named_parameters()
        for moment, tensor in optimizer.state.get(parameter, {}).items()
    }


def _restore(model: nn.Module, optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    load_weights(model, {k.removeprefix("model."): t for k, t in tensors.items() if k.startswith("model.")})
    parameters = dict(model.named_parameters())
    for key, tensor in tensors.items():
        if key.startswith("optimizer."):
            _, moment, name = key.split(".", 2)
            optimizer.state[parameters[name]][moment] = tensor.to(parameters[name].device)
    torch.set_rng_state(tensors["random.cpu"])
    if torch.cuda.is_available() and "random.cuda" in tensors:
        torch.cuda.set_rng_state(tensors["random.cuda"])


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
