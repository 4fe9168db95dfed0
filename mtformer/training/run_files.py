"""The files of a run: checkpoints, snapshots, bundle and journals, as training writes them and resumes from them."""

import copy
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mtformer.bundle.adapter import Adapter, save_adapter
from mtformer.bundle.format import Bundle, load_bundle, save_bundle
from mtformer.config import ResolvedConfig
from mtformer.data.training import TrainingData
from mtformer.model.lora import merged, trained_parameters
from mtformer.model.transformer import Transformer
from mtformer.model.weights import load_weights, with_weights
from mtformer.runs.checkpoints import (
    Checkpoint,
    DamagedCheckpointError,
    list_checkpoints,
    newest_checkpoint,
    saved_weights,
    step_of,
)
from mtformer.runs.folder import Journal, RunFolder
from mtformer.support.errors import UserError
from mtformer.support.files import disk_errors, replace
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.training import checkpoint
from mtformer.training.checkpoint import TrainState
from mtformer.training.display import Writer
from mtformer.training.model import make_header
from mtformer.training.sharding import is_sharded
from mtformer.training.update import Updater
from mtformer.training.validation import Validator

log = logging.getLogger(__name__)


class RunFiles:
    """The files of a run that is trained. Of several ranks, the first one writes them.

    Attributes:
        writers: get the metrics, too.
        samples: the journal of sample translations.
    """

    def __init__(
        self,
        folder: RunFolder,
        config: ResolvedConfig,
        tokenizer: Tokenizer,
        data: TrainingData,
        validator: Validator,
        updater: Updater,
    ) -> None:
        """Take where the files are, and all that goes into them but the state."""
        self.writers: Sequence[Writer] = ()
        self.samples = Journal(folder.samples)
        self._folder, self._config, self._settings = folder, config, config.training
        self._tokenizer, self._data, self._validator = tokenizer, data, validator
        self._updater, self._ranks = updater, updater.ranks
        self._journal = Journal(folder.metrics)
        self._saved: dict[str, Any] | None = None  # the state in the newest checkpoint

    def restore(self) -> TrainState | None:
        """Restore the newest intact checkpoint, and return where training stood; None if there are no checkpoints.

        Raises:
            UserError: a checkpoint cannot be read, all are damaged, or the run has a model and no checkpoint.
        """
        saved = self._ranks.by_first(self._newest_checkpoint)
        if saved is None:
            return None
        checkpoint.restore(self._updater, saved)
        state = TrainState.load(saved)
        self._updater.n_parts = state.n_parts
        self._ranks.by_first(lambda: self._clean_up(saved, state))
        self._saved = asdict(state)
        self._ranks.by_first(lambda: self._restore_bundle(state))
        return state

    def _newest_checkpoint(self) -> Checkpoint | None:
        """Read the newest intact checkpoint; None if the run has not reached one."""
        folder = self._folder
        newest = newest_checkpoint(folder.checkpoints)
        # A run saves a checkpoint before its first validation, so those of this one must have been lost.
        if newest is None and (folder.bundle.exists() or self._journal.has_validations()):
            raise UserError(
                f"{folder.path} contains a trained model, which training would overwrite, but no checkpoint to "
                "resume from: restore the checkpoints, choose another name (--set run.name=…), or start from scratch "
                "with --fresh, which deletes the model"
            )
        return newest

    def _clean_up(self, saved: Checkpoint, state: TrainState) -> None:
        """Set aside damaged checkpoints; remove those of steps to repeat, and the remains of a save that was killed."""
        checkpoint.set_aside_damaged(saved)
        self.remove_later(state)
        checkpoint.remove_others(saved.path, keep_last=self._settings.keep_last)

    def remove_later(self, state: TrainState) -> None:
        """Remove the lines and the snapshots of steps that will be repeated."""
        for journal in (self._journal, self.samples):
            journal.cut(state.step, is_validated=not state.validation_due)
        checkpoint.remove_later_snapshots(self._folder.snapshots, state.step)

    def _restore_bundle(self, state: TrainState) -> None:
        """Write the bundle again if it or its adapter is lost: only a better model would replace it otherwise.

        The weights are those of the best validation's checkpoint if it is kept and intact, or else of the newest one.
        """
        best, path, adapter, current = state.best, self._folder.bundle, self._folder.adapter, self._updater.model
        if best is None:
            return
        if not _is_intact(path):
            lost = path
            if path.exists():
                aside = path.with_name(f"{path.name}.damaged")
                with disk_errors(aside):
                    replace(path, aside)
        elif self._settings.lora and not adapter.is_file():
            lost = adapter
        else:
            return
        checkpoints = {step_of(path): path for path in list_checkpoints(self._folder.checkpoints)}
        try:
            step, tensors = best.step, saved_weights(checkpoints[best.step])
        except (KeyError, DamagedCheckpointError):
            step = max(checkpoints)
            tensors = saved_weights(checkpoints[step])
        if self._settings.lora:
            model = copy.deepcopy(current).eval()
            load_weights(trained_parameters(model), tensors)
        else:
            model = with_weights(current.architecture, tensors)
        lines = (line for line in self._journal.read() if line["step"] == step and "valid_loss" in line)
        scores = {
            name.removeprefix("valid_"): score
            for name, score in next(lines, {}).items()
            if name.startswith("valid_") and name != "valid_perplexity" and score is not None
        }
        self.save_bundle(model, scores, step)
        log.warning("%s was missing or damaged: written again from the checkpoint of step %d", lost, step)

    def save_bundle(self, model: Transformer, scores: Mapping[str, float], step: int) -> None:
        """Write the bundle of a model, and its adapter if it has one."""
        whole = merged(model)
        heads = self._validator.alignment_heads(whole)
        scores = {**scores, "step": float(step)}
        header = make_header(self._config, model, self._tokenizer, scores, heads, self._data.known_words)
        if self._settings.lora:
            adapter = {name: each.detach().cpu() for name, each in trained_parameters(model).items()}
            base = self._config.provenance.fingerprints["init_from"]
            save_adapter(self._folder.adapter, Adapter(adapter, header, base))
        save_bundle(self._folder.bundle, Bundle(whole, self._tokenizer, header))

    def save_first(self, state: TrainState) -> None:
        """Save a checkpoint if there is none: a run that has a bundle also has a checkpoint."""
        if self._saved is None:
            self.save(state)

    def save(self, state: TrainState) -> None:
        """Save a checkpoint, unless this state is saved already; if the tensors of its step are, the state alone."""
        if self._ranks.is_first:
            for journal in (self._journal, self.samples):
                journal.sync()  # the lines of a step that is never repeated
        values, shared = asdict(state), is_sharded(self._updater.model)
        if values != self._saved and (self._ranks.is_first or shared):
            folder, keep_last = self._folder.checkpoints, self._settings.keep_last
            has_tensors = self._saved is not None and self._saved["step"] == state.step and not shared
            if has_tensors and checkpoint.is_intact(folder, state.step):
                checkpoint.save_state(folder, values, keep_last=keep_last)
            else:
                checkpoint.save_checkpoint(folder, self._updater, values, keep_last=keep_last)
        self._saved = values

    def save_snapshot(self, step: int) -> None:
        """Keep the model, if it is one of those that show how training went."""
        keep = self._settings.keep_early
        if keep and checkpoint.is_snapshot_step(step) and (self._ranks.is_first or is_sharded(self._updater.model)):
            checkpoint.save_snapshot(self._folder.snapshots, step, self._updater, keep=keep)

    def log(self, state: TrainState, values: dict[str, float]) -> None:
        """Add a line to the metrics."""
        if self._ranks.is_first:
            step = {"step": state.step, "epoch": state.epoch, "seconds": round(state.seconds, 1)}
            self._journal.write(step | values)
            for write in self.writers:
                write(state.step, values)


def _is_intact(bundle: Path) -> bool:
    try:
        load_bundle(bundle)
    except UserError:
        return False
    return True
