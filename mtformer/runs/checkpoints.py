"""Checkpoints as they are read: find them, check their digests, load their tensors.

A checkpoint is a folder ``step-000500`` with ``tensors.safetensors`` (weights, optimizer moments, average) and
``state.json`` (counters, and the digest of both).
"""

import hashlib
import json
import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from safetensors import SafetensorError

from mtformer.config import ResolvedConfig
from mtformer.runs.folder import RunFolder
from mtformer.support.errors import UserError
from mtformer.support.files import read_errors

if TYPE_CHECKING:
    from torch import Tensor

log = logging.getLogger(__name__)

TENSORS, STATE = "tensors.safetensors", "state.json"
_NAME = re.compile(r"step-(\d+)")


def list_checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints below ``folder``, newest first, without unfinished ones and those set aside as damaged.

    Raises:
        UserError: ``folder`` cannot be read.
    """
    with read_errors(folder):
        try:
            names = {entry.name for entry in folder.iterdir()}  # Path.glob takes a folder that cannot be read for empty
        except FileNotFoundError:
            return []
    return sorted((folder / name for name in names if _NAME.fullmatch(name)), key=step_of, reverse=True)


def step_of(checkpoint: Path) -> int:
    """Return the step at which a checkpoint was saved."""
    match = _NAME.search(checkpoint.name)
    assert match
    return int(match[1])


class Checkpoint(NamedTuple):
    """The contents of a checkpoint, as training wrote them; no tensors if only the state was asked for."""

    path: Path
    state: dict[str, Any]
    tensors: "dict[str, Tensor]"


class DamagedCheckpointError(UserError):
    """The contents of a checkpoint are not those that were written."""


def newest_checkpoint(folder: Path, *, with_tensors: bool = True) -> Checkpoint | None:
    """Read the newest intact checkpoint, or return None if there are no checkpoints.

    Newer ones that are damaged are skipped with a warning.

    Raises:
        UserError: all are damaged; or one cannot be read, which may be intact.
    """
    damaged: list[str] = []
    for path in list_checkpoints(folder):
        try:
            checkpoint = load_checkpoint(path, with_tensors=with_tensors)
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


def load_checkpoint(path: Path, *, with_tensors: bool = True) -> Checkpoint:
    """Read a checkpoint.

    Raises:
        DamagedCheckpointError: its files are missing, truncated or altered.
        UserError: it cannot be read, though it may be intact.
    """
    from safetensors.torch import load_file  # with torch, which listing checkpoints does not need

    try:
        state = json.loads((path / STATE).read_bytes())
        if not isinstance(state, dict) or state.pop("digest", None) != checkpoint_digest(state, path / TENSORS):
            raise ValueError("its contents are not those that were written")
        return Checkpoint(path, state, load_file(path / TENSORS) if with_tensors else {})
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:
        reason = f"{Path(error.filename).name} is missing" if isinstance(error, OSError) else error
        raise DamagedCheckpointError(f"the checkpoint {path} is damaged: {reason}") from error
    except (OSError, SafetensorError, MemoryError) as error:
        reason = getattr(error, "strerror", None) or str(error) or "out of memory"
        raise UserError(f"cannot read the checkpoint {path}: {reason}") from error


def saved_weights(path: Path) -> "dict[str, Tensor]":
    """Return the weights in a checkpoint, or their average, if one was kept; of LoRA, those of the adapter."""
    tensors = load_checkpoint(path).tensors
    return tensors_below("average", tensors) or tensors_below("model", tensors)


def model_weights(path: Path) -> "dict[str, Tensor]":
    """Return the weights in a checkpoint that translate; an adapter is merged into the model that it was trained on.

    Raises:
        UserError: that model is not where it was, or the checkpoint cannot be read.
    """
    from mtformer.bundle.format import load_bundle
    from mtformer.model.lora import changed_weights
    from mtformer.model.weights import weights

    saved, folder = saved_weights(path), RunFolder(path.parents[1])
    if not any(".adapter." in name for name in saved):
        return saved
    config = folder.read_config(ResolvedConfig)
    assert config.training.init_from is not None
    try:
        base = load_bundle(config.training.init_from)
    except UserError as error:
        raise UserError(f"{folder.path} needs the model that its adapter was trained on: {error}") from None
    if base.digest != config.provenance.fingerprints["init_from"]:
        raise UserError(f"{config.training.init_from} has changed since {folder.path} was trained on top of it")
    of_base = weights(base.model)
    return of_base | changed_weights(of_base, saved)


def tensors_below(prefix: str, tensors: "dict[str, Tensor]") -> "dict[str, Tensor]":
    """Return the tensors whose names start with ``prefix.``, without it."""
    return {k.removeprefix(f"{prefix}."): t for k, t in tensors.items() if k.startswith(f"{prefix}.")}


def checkpoint_digest(state: dict[str, Any], tensors: Path) -> str:
    """Return the digest of the state and of the file of tensors."""
    with tensors.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
    digest.update(json.dumps(state, sort_keys=True).encode())
    return digest.hexdigest()
