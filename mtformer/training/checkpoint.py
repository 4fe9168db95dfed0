"""Checkpoints: all that training needs to resume, written so that an interrupted save does no harm.

A checkpoint is a folder ``step-000500`` with ``tensors.safetensors`` (weights, optimizer moments, average) and
``state.json`` (counters, and the digest of both). It is written under another name and renamed when it is complete. A
checkpoint that turns out to be damaged is renamed to ``step-000500.damaged``, and never deleted.
"""

import hashlib
import json
import logging
import re
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import Parameter

from mtformer.errors import MtformerError, UserError
from mtformer.files import intact_folder, write_folder_atomically
from mtformer.model.weights import load_weights
from mtformer.training.sharding import as_kept, whole
from mtformer.training.update import Updater

log = logging.getLogger(__name__)

_TENSORS, _STATE = "tensors.safetensors", "state.json"
_NAME = re.compile(r"step-(\d+)")
_BEING_REPLACED = re.compile(r"^\.(step-\d+)\.old$")  # mtformer.files.intact_folder


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

    Of several ranks the first one writes. If the model is sharded, the others must call it too, to send their shares.

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
    remove_others(path, keep_last=keep_last, keep_steps=keep_steps)
    return path


def remove_others(path: Path, *, keep_last: int, keep_steps: Collection[int]) -> None:
    """Remove the checkpoints beside ``path``, except for the ``keep_last`` newest and those of ``keep_steps``."""
    for other in list_checkpoints(path.parent)[keep_last:]:
        if other != path and step_of(other) not in keep_steps:
            shutil.rmtree(other, ignore_errors=True)
    for unfinished in path.parent.glob(".step-*.tmp"):  # of a save that was killed
        shutil.rmtree(unfinished, ignore_errors=True)


def list_checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints below ``folder``, newest first, without unfinished ones and those set aside as damaged.

    Raises:
        UserError: ``folder`` cannot be read.
    """
    try:
        names = {entry.name for entry in folder.iterdir()}  # Path.glob takes a folder that cannot be read for empty
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UserError(f"cannot read {folder}: {error.strerror}") from error
    names = {_BEING_REPLACED.sub(r"\1", name) for name in names}
    checkpoints = [intact_folder(folder / name) for name in names if _NAME.fullmatch(name)]
    return sorted(checkpoints, key=step_of, reverse=True)


def step_of(checkpoint: Path) -> int:
    """Return the step at which a checkpoint was saved."""
    found = _NAME.search(checkpoint.name)
    assert found
    return int(found[1])


class Checkpoint(NamedTuple):
    """The contents of a checkpoint, as :func:`save_checkpoint` wrote them."""

    path: Path
    state: dict[str, Any]
    tensors: dict[str, Tensor]


class DamagedCheckpointError(UserError):
    """The contents of a checkpoint are not those that were written."""


def newest_checkpoint(folder: Path) -> Checkpoint | None:
    """Read the newest intact checkpoint, or return None if there are no checkpoints.

    Newer ones that are damaged are skipped with a warning.

    Raises:
        UserError: all are damaged; or one cannot be read, which may be intact.
    """
    damaged: list[str] = []
    for path in list_checkpoints(folder):
        try:
            checkpoint = load_checkpoint(path)
        except DamagedCheckpointError as error:
            damaged.append(str(error))
            continue
        except UserError as error:
            raise UserError(
                f"{error}. It may be intact: make it readable and rerun, move it elsewhere to resume from an older "
                "checkpoint, or start from scratch with --fresh, which deletes it"
            ) from error
        for message in damaged:
            log.warning("%s. Falling back to the checkpoint of step %d", message, step_of(path))
        return checkpoint
    if damaged:
        raise UserError(
            f"{'; '.join(damaged)}. There is no intact checkpoint to resume from: restore one from a backup, or start "
            "from scratch with --fresh, which deletes them"
        )
    return None


def set_aside_damaged(newest: Checkpoint) -> None:
    """Rename the checkpoints that are newer than the ``newest`` intact one, so that later saves do not replace them.

    Raises:
        MtformerError: one cannot be renamed.
    """
    for path in list_checkpoints(newest.path.parent):
        if step_of(path) > step_of(newest.path):
            names = (path.with_name(f"step-{step_of(path):06d}.damaged{suffix}") for suffix in ("", *range(2, 100)))
            aside = next(name for name in names if not name.exists())
            try:
                path.rename(aside)
            except OSError as error:
                raise MtformerError(f"cannot rename {path} to {aside.name}: {error.strerror}") from error
            log.warning("the damaged checkpoint is kept as %s", aside)


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint.

    Raises:
        DamagedCheckpointError: its files are missing, truncated or altered.
        UserError: it cannot be read, though it may be intact.
    """
    try:
        state = json.loads((path / _STATE).read_bytes())
        if not isinstance(state, dict) or state.pop("digest", None) != _digest(state, path / _TENSORS):
            raise ValueError("its contents are not those that were written")
        return Checkpoint(path, state, load_file(path / _TENSORS))
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:
        reason = f"{Path(error.filename).name} is missing" if isinstance(error, OSError) else error
        raise DamagedCheckpointError(f"the checkpoint {path} is damaged: {reason}") from error
    except (OSError, SafetensorError, MemoryError) as error:
        reason = getattr(error, "strerror", None) or str(error) or "out of memory"
        raise UserError(f"cannot read the checkpoint {path}: {reason}") from error


def best_checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints of the best validations that are kept, best first."""
    newest = newest_checkpoint(folder)
    steps = [step for _, _, step in newest.state["best_scores"]] if newest else []
    paths = {step_of(path): path for path in list_checkpoints(folder)}
    return [paths[step] for step in steps if step in paths]


def model_weights(path: Path) -> dict[str, Tensor]:
    """Return the weights in a checkpoint that translate: their average, if one was kept."""
    tensors = load_checkpoint(path).tensors
    return _below("average", tensors) or _below("model", tensors)


def restore(updater: Updater, checkpoint: Checkpoint) -> None:
    """Restore weights, moments and average.

    Raises:
        UserError: the checkpoint is of another model.
    """
    tensors = checkpoint.tensors
    parameters = dict(updater.model.named_parameters())
    try:
        load_weights(updater.model, _kept(_below("model", tensors), parameters))
    except ValueError as error:
        path = checkpoint.path
        raise UserError(
            f"the checkpoint {path} is of another model: {error}; start from scratch with --fresh"
        ) from None
    owners = {p: o for o in updater.optimizers for group in o.param_groups for p in group["params"]}
    for key, tensor in _below("optimizer", tensors).items():
        moment, name = key.split(".", 1)
        parameter = parameters[name]
        owners[parameter].state[parameter][moment] = as_kept(tensor, parameter)
    if updater.average:  # a run that started without one: it starts with the current weights
        updater.average.load(_kept(_below("average", tensors) or _below("model", tensors), parameters))


def _kept(tensors: dict[str, Tensor], parameters: dict[str, Parameter]) -> dict[str, Tensor]:
    """Lay out tensors like the parameters of the same names; leave others as they are."""
    return {n: as_kept(tensor, parameters[n]) if n in parameters else tensor for n, tensor in tensors.items()}


def _tensors_of(updater: Updater) -> dict[str, Tensor]:
    """Return all tensors of a checkpoint, unsharded, on the first rank; none on the others."""
    tensors = {}
    for name, tensor in _named_tensors(updater):
        tensor = whole(tensor.detach())
        if updater.ranks.is_first:
            tensors[name] = tensor.cpu().contiguous()
    return tensors


def _named_tensors(updater: Updater) -> Iterator[tuple[str, Tensor]]:
    """Yield weights, moments and average, named after their parameters."""
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
