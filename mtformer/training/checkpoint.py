"""Checkpoints: all that training needs to go on, written so that an interrupted save can do no harm.

A checkpoint is a folder ``step-000500`` with ``tensors.safetensors`` (weights, optimizer moments, average) and
``state.json`` (counters, and the digest of both). It is written under another name and renamed when it is whole.
"""

import hashlib
import json
import logging
import re
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import Parameter

from mtformer.errors import UserError
from mtformer.files import write_folder_atomically
from mtformer.model.weights import load_weights
from mtformer.training.sharding import as_kept, whole
from mtformer.training.update import Updater

log = logging.getLogger(__name__)

_TENSORS, _STATE = "tensors.safetensors", "state.json"


def save_checkpoint(
    folder: Path,
    step: int,
    updater: Updater,
    state: dict[str, Any],
    *,
    keep_last: int,
    keep_steps: Collection[int] = (),
) -> Path:
    """Write a checkpoint of ``step`` below ``folder`` and remove all but the ``keep_last`` newest and ``keep_steps``.

    Of several ranks the first writes; the others must call it too where the model is sharded, to send their shares.

    Raises:
        MtformerError: the disk is full or cannot be written; earlier checkpoints are untouched.
    """
    path = folder / f"step-{step:06d}"
    tensors = _tensors_of(updater)
    if not updater.ranks.is_first:
        return path

    def write(temporary: Path) -> None:
        save_file(tensors, temporary / _TENSORS)
        text = json.dumps(state | {"digest": _digest(state, temporary / _TENSORS)}, indent=2)
        (temporary / _STATE).write_text(text, encoding="utf-8")

    write_folder_atomically(path, write)
    checkpoints = list_checkpoints(folder)
    place = checkpoints.index(path)  # those of later steps are damaged, or training would have gone on from them
    for other in checkpoints[:place] + checkpoints[place + keep_last :]:
        if step_of(other) not in keep_steps:
            shutil.rmtree(other, ignore_errors=True)
    for unfinished in folder.glob(".step-*.tmp"):  # of a save that was killed
        shutil.rmtree(unfinished, ignore_errors=True)
    return path


def list_checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints below ``folder``, newest first; unfinished ones have other names."""
    checkpoints = [path for path in folder.glob("step-*") if re.fullmatch(r"step-\d+", path.name)]
    return sorted(checkpoints, key=step_of, reverse=True)


def step_of(checkpoint: Path) -> int:
    """Return the step that a checkpoint is of."""
    return int(checkpoint.name.removeprefix("step-"))


class Checkpoint(NamedTuple):
    """What :func:`save_checkpoint` has written."""

    path: Path
    state: dict[str, Any]
    tensors: dict[str, Tensor]


def newest_checkpoint(folder: Path) -> Checkpoint | None:
    """Read the newest intact checkpoint, if there is one; damaged ones are passed over with a warning."""
    for path in list_checkpoints(folder):
        try:
            return load_checkpoint(path)
        except UserError as error:
            log.warning("%s; it is passed over", error)
    return None


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint.

    Raises:
        UserError: it is damaged.
    """
    try:
        state = json.loads((path / _STATE).read_text(encoding="utf-8"))
        if not isinstance(state, dict) or state.pop("digest", None) != _digest(state, path / _TENSORS):
            raise ValueError("its contents are not those that were written")
        return Checkpoint(path, state, load_file(path / _TENSORS))
    except (OSError, ValueError) as error:
        raise UserError(f"the checkpoint {path} is damaged: {error}") from error


def best_checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints of the best validations that are kept, the best first."""
    newest = newest_checkpoint(folder)
    steps = [step for _, _, step in newest.state["best_scores"]] if newest else []
    paths = {step_of(path): path for path in list_checkpoints(folder)}
    return [paths[step] for step in steps if step in paths]


def model_weights(path: Path) -> dict[str, Tensor]:
    """Return the weights in a checkpoint that translate: their average, where one was kept."""
    tensors = load_checkpoint(path).tensors
    return _below("average", tensors) or _below("model", tensors)


def restore(updater: Updater, checkpoint: Checkpoint) -> None:
    """Bring weights, moments and average to where they were.

    Raises:
        UserError: the checkpoint is of another model.
    """
    tensors = checkpoint.tensors
    parameters = dict(updater.model.named_parameters())
    try:
        load_weights(updater.model, _kept(_below("model", tensors), parameters))
    except ValueError as error:
        path = checkpoint.path
        raise UserError(f"the checkpoint {path} is of another model: {error}; start over with --fresh") from None
    owners = {p: o for o in updater.optimizers for group in o.param_groups for p in group["params"]}
    for key, tensor in _below("optimizer", tensors).items():
        moment, name = key.split(".", 1)
        parameter = parameters[name]
        owners[parameter].state[parameter][moment] = as_kept(tensor, parameter)
    if updater.average:  # of a run that was begun without one: it begins with the weights of now
        updater.average.load(_kept(_below("average", tensors) or _below("model", tensors), parameters))


def _kept(tensors: dict[str, Tensor], parameters: dict[str, Parameter]) -> dict[str, Tensor]:
    """Lay out tensors as the parameters of these names are; those of unknown names are left alone."""
    return {n: as_kept(tensor, parameters[n]) if n in parameters else tensor for n, tensor in tensors.items()}


def _tensors_of(updater: Updater) -> dict[str, Tensor]:
    """Return all tensors of a checkpoint, whole; none on ranks but the first."""
    tensors = {}
    for name, tensor in _named_tensors(updater):
        tensor = whole(tensor.detach())
        if updater.ranks.is_first:
            tensors[name] = tensor.cpu().contiguous()
    return tensors


def _named_tensors(updater: Updater) -> Iterator[tuple[str, Tensor]]:
    """Name the optimizers' moments, and the average, after the parameters that they belong to."""
    for name, parameter in updater.model.named_parameters():
        yield f"model.{name}", parameter
        for optimizer in updater.optimizers:
            for moment, tensor in optimizer.state.get(parameter, {}).items():
                yield f"optimizer.{moment}.{name}", tensor
    if updater.average:
        for name, tensor in updater.average.tensors.items():
            yield f"average.{name}", tensor


def _below(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {k.removeprefix(f"{prefix}."): t for k, t in tensors.items() if k.startswith(f"{prefix}.")}


def _digest(state: dict[str, Any], tensors: Path) -> str:
    with tensors.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
    digest.update(json.dumps(state, sort_keys=True).encode())
    return digest.hexdigest()
