"""Checkpoints: all that training needs to resume, written so that an interrupted save does no harm; and snapshots.

A checkpoint is a folder ``step-000500`` with ``tensors.safetensors`` (weights, optimizer moments, average) and
``state.json`` (counters, and the digest of both). It is written under another name and renamed when it is complete;
when a validation adds its score, the state alone is written again. A checkpoint that turns out to be damaged is renamed
to ``step-000500.damaged``, and never deleted.

A snapshot is a checkpoint with the weights alone, in bfloat16: it shows what the model could do after so many steps.
"""

import json
import logging
import math
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import Parameter

from mtformer.model.lora import trained_parameters
from mtformer.model.weights import load_weights
from mtformer.runs.checkpoints import (
    STATE,
    TENSORS,
    Checkpoint,
    checkpoint_digest,
    list_checkpoints,
    load_checkpoint,
    step_of,
    tensors_below,
)
from mtformer.support.errors import UserError
from mtformer.support.files import disk_errors, remove_folder, replace, write_folder_atomically, write_text
from mtformer.training.sharding import as_kept, whole
from mtformer.training.update import RunningLoss, Updater

log = logging.getLogger(__name__)

_FIRST_SNAPSHOT = 25  # of steps that double


class ValidationScore(NamedTuple):
    """How good the model was in one validation.

    Attributes:
        value: the early-stopping metric, negated if lower is better.
        loss: the validation loss.
        step: the step of the validation.
    """

    value: float
    loss: float
    step: int

    @property
    def rank(self) -> tuple[float, float]:
        """A key by which better scores compare greater: among equal values, the lower loss is better."""
        return self.value, -self.loss if math.isfinite(self.loss) else -math.inf


@dataclass
class TrainState:
    """Where training stands. Together with weights and optimizer, it is all that resuming needs.

    Attributes:
        step: completed updates.
        epoch: completed passes over the data.
        batch: completed batches of the current epoch.
        plan_digest: the checksum of all batches of the current epoch.
        seconds: time spent training, validations included, over all starts of the run.
        best: the score of the best model so far, which is in the bundle.
        stale: validations since then.
        general_bleu: of the model that fine-tuning started from, on general validation text.
        usual_loss: the moving average of the loss per target token.
        skipped: faulty updates that were skipped.
        skipped_in_a_row: those since the last sound one.
        n_parts: into how many parts each batch is split, since memory ran out.
        validation_due: the run was interrupted before the validation of this step.
        running: the losses since the last line of the metrics that has some.
        since_validation: those since the last validation.
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    plan_digest: int = 0
    seconds: float = 0.0
    best: ValidationScore | None = None
    stale: int = 0
    general_bleu: float | None = None
    usual_loss: float | None = None
    skipped: int = 0
    skipped_in_a_row: int = 0
    n_parts: int = 1
    validation_due: bool = False
    running: RunningLoss = field(default_factory=RunningLoss)
    since_validation: RunningLoss = field(default_factory=RunningLoss)

    def record(self, score: ValidationScore) -> bool:
        """Note the score of a validation; return whether its model is the best so far, as with NaN it never is."""
        is_best = math.isfinite(score.value) and (self.best is None or score.rank > self.best.rank)
        if is_best:
            self.best, self.stale = score, 0
        else:
            self.stale += 1
        return is_best

    @classmethod
    def load(cls, saved: Checkpoint) -> "TrainState":
        """Return the state that a checkpoint contains.

        Raises:
            UserError: it is the state of another version of mtformer.
        """
        try:
            running = {name: RunningLoss(**saved.state[name]) for name in ("running", "since_validation")}
            state = cls(**saved.state | running)
            state.best = ValidationScore(*state.best) if state.best else None
        except (LookupError, TypeError):
            raise UserError(
                f"{saved.path} is of another version of mtformer; start from scratch with --fresh"
            ) from None
        return state


def save_checkpoint(folder: Path, updater: Updater, state: dict[str, Any], *, keep_last: int) -> Path:
    """Write a checkpoint of a state below ``folder`` and remove all but the ``keep_last`` newest.

    Of several ranks the first one writes. If the model is sharded, the others must call it too, to send their shares.

    Raises:
        MtformerError: the disk is full or cannot be written; earlier checkpoints are untouched.
    """
    path = _checkpoint_path(folder, state["step"])
    tensors = _on_first_rank(updater, dict(_named_tensors(updater)))
    if updater.ranks.is_first:
        _write(path, tensors, state)
        remove_others(path, keep_last=keep_last)
    return path


def is_intact(folder: Path, step: int) -> bool:
    """Tell whether the checkpoint of a step is below ``folder`` as it was written."""
    try:
        load_checkpoint(_checkpoint_path(folder, step), with_tensors=False)
    except UserError:
        return False
    return True


def save_state(folder: Path, state: dict[str, Any], *, keep_last: int) -> None:
    """Write another state for the tensors in the checkpoint of its step, and remove others as the function above.

    Raises:
        MtformerError: the disk is full or cannot be written; the checkpoint is as it was.
    """
    path = _checkpoint_path(folder, state["step"])
    write_text(path / STATE, _state_json(path, state))
    remove_others(path, keep_last=keep_last)


def is_snapshot_step(step: int) -> bool:
    """Return whether a snapshot is made after so many steps: 25, 50, 100, 200, …."""
    times, remainder = divmod(step, _FIRST_SNAPSHOT)
    return not remainder and times.bit_count() == 1


def save_snapshot(folder: Path, step: int, updater: Updater, *, keep: int) -> None:
    """Write the weights that would translate after ``step`` below ``folder``, and keep ``keep`` snapshots.

    If there are more, the one nearest to its neighbours goes; see :func:`most_crowded`. Ranks take part as in
    :func:`save_checkpoint`.

    Raises:
        MtformerError: the disk is full or cannot be written.
    """
    average = updater.average.tensors if updater.average else trained_parameters(updater.model)
    tensors = _on_first_rank(updater, {f"model.{name}": tensor for name, tensor in average.items()})
    if updater.ranks.is_first:
        halves = {name: tensor.to(torch.bfloat16) for name, tensor in tensors.items()}
        _write(folder / f"step-{step:06d}", halves, {"step": step})
        kept = list_checkpoints(folder)[::-1]
        while len(kept) > keep:
            remove_folder(kept.pop(most_crowded([step_of(path) for path in kept])))


def most_crowded(steps: Sequence[int]) -> int:
    """Return the index of the step whose neighbours are the fewest times apart, but never the last one's.

    Of equal ones it is the earliest. The first step is the last to go, with the last step as its only neighbour.

    Args:
        steps: two or more, ascending.
    """
    times_apart = [after / before for before, after in zip(steps, steps[2:], strict=False)]
    return times_apart.index(min(times_apart)) + 1 if times_apart else 0


def remove_later_snapshots(folder: Path, step: int) -> None:
    """Remove the snapshots of steps that will be repeated."""
    for path in list_checkpoints(folder):
        if step_of(path) > step:
            remove_folder(path)


def _write(path: Path, tensors: Mapping[str, Tensor], state: dict[str, Any]) -> None:
    """Write the folder of a checkpoint, all or nothing."""

    def write(temporary: Path) -> None:
        save_file(dict(tensors), temporary / TENSORS)
        (temporary / STATE).write_text(_state_json(temporary, state), encoding="utf-8")

    write_folder_atomically(path, write)


def _checkpoint_path(folder: Path, step: int) -> Path:
    return folder / f"step-{step:06d}"


def _state_json(path: Path, state: dict[str, Any]) -> str:
    """Return the contents of ``state.json`` beside the tensors in a folder."""
    return json.dumps(state | {"digest": checkpoint_digest(state, path / TENSORS)}, indent=2)


def remove_others(path: Path, *, keep_last: int) -> None:
    """Remove the checkpoints beside ``path``, except for the ``keep_last`` newest."""
    for checkpoint in list_checkpoints(path.parent)[keep_last:]:
        if checkpoint != path:
            remove_folder(checkpoint)
    for unfinished in path.parent.glob(".step-*.tmp"):  # of a save that was killed
        shutil.rmtree(unfinished, ignore_errors=True)


def set_aside_damaged(newest: Checkpoint) -> None:
    """Rename the checkpoints that are newer than the ``newest`` intact one, so that later saves do not replace them.

    Raises:
        MtformerError: one cannot be renamed.
    """
    for path in list_checkpoints(newest.path.parent):
        if step_of(path) > step_of(newest.path):
            names = (path.with_name(f"step-{step_of(path):06d}.damaged{suffix}") for suffix in ("", *range(2, 100)))
            aside = next(name for name in names if not name.exists())
            with disk_errors(aside):
                replace(path, aside)
            log.warning("the damaged checkpoint is kept as %s", aside)


def restore(updater: Updater, checkpoint: Checkpoint) -> None:
    """Restore weights, moments and average.

    Raises:
        UserError: the checkpoint is of another model.
    """
    tensors = checkpoint.tensors
    parameters = trained_parameters(updater.model)
    try:
        load_weights(parameters, _kept(tensors_below("model", tensors), parameters))
    except ValueError as error:
        path = checkpoint.path
        raise UserError(
            f"the checkpoint {path} is of another model: {error}; start from scratch with --fresh"
        ) from None
    owners = {p: o for o in updater.optimizers for group in o.param_groups for p in group["params"]}
    for key, tensor in tensors_below("optimizer", tensors).items():
        moment, name = key.split(".", 1)
        parameter = parameters[name]
        # A copy: what is loaded on a CPU maps the file, which Windows then neither removes nor replaces.
        owners[parameter].state[parameter][moment] = as_kept(tensor, parameter).clone()
    if updater.average:  # a run that started without one: it starts with the current weights
        updater.average.load(_kept(tensors_below("average", tensors) or tensors_below("model", tensors), parameters))


def _kept(tensors: dict[str, Tensor], parameters: dict[str, Parameter]) -> dict[str, Tensor]:
    """Lay out tensors like the parameters of the same names; leave others as they are."""
    return {n: as_kept(tensor, parameters[n]) if n in parameters else tensor for n, tensor in tensors.items()}


def _on_first_rank(updater: Updater, shares: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors of all ranks, unsharded, on the first rank; none on the others."""
    tensors = {}
    for name, tensor in shares.items():
        tensor = whole(tensor.detach())
        if updater.ranks.is_first:
            tensors[name] = tensor.cpu().contiguous()
    return tensors


def _named_tensors(updater: Updater) -> Iterator[tuple[str, Tensor]]:
    """Yield weights, moments and average, named after their parameters; those of an adapter alone, if there is one."""
    for name, parameter in trained_parameters(updater.model).items():
        yield f"model.{name}", parameter
        for optimizer in updater.optimizers:
            for moment, tensor in optimizer.state.get(parameter, {}).items():
                yield f"optimizer.{moment}.{name}", tensor
    if updater.average:
        for name, tensor in updater.average.tensors.items():
            yield f"average.{name}", tensor
