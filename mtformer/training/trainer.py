"""The loop: batches, updates, validations, checkpoints, and when to stop."""

import copy
import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from itertools import islice
from pathlib import Path

from mtformer.bundle.adapter import Adapter, save_adapter
from mtformer.bundle.format import Bundle, load_bundle, save_bundle
from mtformer.config import ResolvedConfig
from mtformer.data.batches import Batch, Plan, PlannedBatch, epoch_batches, make_batch
from mtformer.data.training import TrainingData
from mtformer.model.lora import merged, trained_parameters
from mtformer.model.transformer import Transformer
from mtformer.model.weights import load_weights
from mtformer.runs.checkpoints import Checkpoint, list_checkpoints, newest_checkpoint, saved_weights, step_of
from mtformer.runs.contents import LOWER_IS_BETTER, forgets, limit_reached, out_of_patience
from mtformer.runs.folder import Journal, RunFolder
from mtformer.support.errors import MtformerError, UserError
from mtformer.support.processes.launch import Interrupt
from mtformer.support.processes.ranks import ALONE, Ranks
from mtformer.support.progress import Progress
from mtformer.support.terminal import counted
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.training.checkpoint import (
    Score,
    TrainState,
    is_snapshot_step,
    remove_later_snapshots,
    remove_others,
    restore,
    save_checkpoint,
    save_snapshot,
    set_aside_damaged,
)
from mtformer.training.display import Pace, ValidationTable, Writer, live_note
from mtformer.training.memory import used_memory
from mtformer.training.model import describe_model
from mtformer.training.optimizer import WARMUP_SHARES, learning_rate
from mtformer.training.sharding import is_sharded, unsharded
from mtformer.training.update import RunningLoss, Update, Updater
from mtformer.training.validation import Validator

log = logging.getLogger(__name__)

_ADVICE = "A smaller training.learning_rate or more training.warmup_steps usually help"
_MOST_SKIPPED_IN_A_ROW = 20  # more are no accident of the data


class Trainer:
    """Trains a model on a corpus, in a run's folder."""

    def __init__(
        self,
        config: ResolvedConfig,
        model: Transformer,
        tokenizer: Tokenizer,
        data: TrainingData,
        validator: Validator,
        folder: RunFolder,
        ranks: Ranks = ALONE,
        *,
        show_samples: bool = False,
        on_scores: Callable[[], object] = lambda: None,
    ) -> None:
        """Set up training.

        Args:
            config: the run's settings.
            model: on the device that it is to be trained on.
            tokenizer: goes into the bundle.
            data: the training pairs.
            validator: scores the model.
            folder: checkpoints, metrics and the bundle go there.
            ranks: those that train together; alone when not given.
            show_samples: log sample translations at each validation; they are recorded in any case.
            on_scores: called on the first rank after each validation, once its scores are recorded.
        """
        self.config = config
        self.settings = config.training
        self.warmup_share = WARMUP_SHARES[config.model.norm]
        self.model = model
        self.tokenizer = tokenizer
        self.data = data
        self.validator = validator
        self.folder = folder
        self.writers: Sequence[Writer] = ()
        self.journal = Journal(folder.metrics)
        self.samples = Journal(folder.samples)
        self.table = ValidationTable(config.training.early_stopping_metric, with_samples=show_samples)
        self.pace = Pace()
        self.device = next(model.parameters()).device
        self.ranks = ranks
        self.updater = Updater(model, config.training, self.ranks)
        self.state = TrainState(validation_due=config.training.init_from is not None)  # to begin with its scores
        self.steps_per_epoch = math.ceil(len(self.plan(0)) / self.settings.grad_accum_steps)
        self.validate_every = self.settings.validate_every or min(max(self.steps_per_epoch, 100), 1_000)
        self.checkpoint_every = self.settings.checkpoint_every or self.validate_every
        self._on_scores = on_scores
        self._running, self._since_validation = RunningLoss(), RunningLoss()
        self._saved_step = -1
        self._has_checkpoint = False

    def resume(self) -> bool:
        """Restore the newest intact checkpoint and return True, or return False if there are no checkpoints.

        Raises:
            UserError: a checkpoint cannot be read, all are damaged, or the run has a model and no checkpoint.
        """
        saved = self.ranks.by_first(self._newest_checkpoint)
        if saved is None:
            self.ranks.by_first(self._cut_journals)
            return False
        restore(self.updater, saved)
        try:
            self.state = TrainState.load(saved.state)
        except TypeError:
            raise UserError(
                f"{self.folder.checkpoints} is of another version of mtformer; start from scratch with --fresh"
            ) from None
        self.ranks.by_first(lambda: set_aside_damaged(saved))
        self.updater.n_parts = self.state.n_parts
        self.ranks.by_first(self._cut_journals)
        # A save that was killed may not have come to this.
        keep_last, keep_steps = self.settings.keep_last, self.state.best_steps
        self.ranks.by_first(lambda: remove_others(saved.path, keep_last=keep_last, keep_steps=keep_steps))
        self.ranks.by_first(lambda: remove_later_snapshots(self.folder.snapshots, self.state.step))
        self._saved_step = self.state.step
        self._has_checkpoint = True
        self.ranks.by_first(self._restore_bundle)
        return True

    def _restore_bundle(self) -> None:
        """Write the bundle again if it is missing or damaged: only a better model would replace it otherwise.

        The weights are those of the best validation's checkpoint if it is kept, or else of the newest one.
        """
        best, path = self.state.best, self.folder.bundle
        if best is None or (_is_intact(path) and (not self.settings.lora or self.folder.adapter.is_file())):
            return
        if path.exists():
            path.replace(path.with_name(f"{path.name}.damaged"))
        checkpoints = {step_of(path): path for path in list_checkpoints(self.folder.checkpoints)}
        step = best.step if best.step in checkpoints else max(checkpoints)
        model = copy.deepcopy(self.model) if self.settings.lora else Transformer(self.model.architecture)
        load_weights(trained_parameters(model), saved_weights(checkpoints[step]))
        lines = (line for line in self.journal.read() if line["step"] == step and "valid_loss" in line)
        scores = {
            name.removeprefix("valid_"): score
            for name, score in next(lines, {}).items()
            if name.startswith("valid_") and name != "valid_perplexity" and score is not None
        }
        self._save_bundle(model.eval(), scores, step)
        log.warning("%s was missing or damaged: written again from the checkpoint of step %d", path, step)

    def _cut_journals(self) -> None:
        """Remove the lines of steps that will be repeated."""
        for journal in (self.journal, self.samples):
            journal.cut(self.state.step, is_validated=not self.state.validation_due)

    def _newest_checkpoint(self) -> Checkpoint | None:
        """Read the newest intact checkpoint; None if the run has not reached one."""
        folder = self.folder
        newest = newest_checkpoint(folder.checkpoints)
        # A run saves a checkpoint before its first validation, so those of this one must have been lost.
        if newest is None and (folder.bundle.exists() or self.journal.has_validations()):
            raise UserError(
                f"{folder.path} contains a trained model, which training would overwrite, but no checkpoint to "
                "resume from: restore the checkpoints, choose another name (--set run.name=…), or start from scratch "
                "with --fresh, which deletes the model"
            )
        return newest

    def fit(self) -> str:
        """Train until a limit, early stopping or an interrupt ends the run; return the reason.

        Raises:
            MtformerError: a non-finite loss or gradient, before it reaches the weights; or a full disk.
            KeyboardInterrupt: Ctrl-C or SIGTERM, after saving a checkpoint.
        """
        started, seconds_before = time.monotonic(), self.state.seconds

        def seconds() -> float:
            return seconds_before + time.monotonic() - started

        self._validate_if_overdue(seconds)
        if reason := self.limit_reached():
            return reason
        self.pace = Pace()
        progress = Progress("training", self.total_steps(), self.state.step, "steps", with_rate=False)
        with Interrupt() as interrupt, progress:
            for batches, rate in self._steps():
                update = self._update(batches, rate)
                interrupted = self._agree(interrupt, seconds())
                self._count(update, rate, progress)
                self._save_snapshot(update)
                reason = self.limit_reached()
                self.state.validation_due = bool(reason) or self._is_due(self.validate_every, update)
                if self.state.validation_due and not interrupted:  # an interrupt does not wait for a validation
                    progress.note("validating")
                    self._validate()
                    interrupted = self._agree(interrupt, seconds())
                    reason = reason or out_of_patience(self.settings, self.state.stale)
                is_among_best = self.state.step in self.state.best_steps
                if interrupted or reason or self._is_due(self.checkpoint_every, update) or is_among_best:
                    self._save()
                if interrupted:
                    self.ranks.wait()  # torchrun stops all ranks as soon as one ends
                    raise KeyboardInterrupt
                if reason:
                    return reason
        raise AssertionError("the epochs do not end by themselves")

    def _validate_if_overdue(self, seconds: Callable[[], float]) -> None:
        """Validate before the first step of fine-tuning, or if an interrupt or a limit has kept the run from it."""
        if self.state.validation_due or (self.limit_reached() and not self.state.best):
            self._validate()
            self.state.seconds = self.ranks.by_first(seconds)
            self._save()

    def _count(self, update: Update, rate: float, progress: Progress) -> None:
        """Add an update to the running losses, the live line and, every ``log_every`` steps, the metrics."""
        if not update.fault:
            self._running.add(update)
            self._since_validation.add(update)
            self.pace.count_step()
            progress.advance(note=self._note(self._running))
        if self._is_due(self.settings.log_every, update):
            self._log(**self._running.metrics(), lr=rate, memory_gib=used_memory(self.device) / 2**30)
            self._running = RunningLoss()

    def _note(self, running: RunningLoss) -> str:
        """Return the text of the live line beside the step."""
        state, limit = self.state, self.settings.max_minutes
        seconds_left = 60 * limit - state.seconds if limit else None
        eta = self.pace.eta(state.step, self.total_steps(), self.validate_every, seconds_left)
        best = abs(state.best.value) if state.best else None
        return live_note(running, self.settings.early_stopping_metric, best, eta)

    def _agree(self, interrupt: Interrupt, seconds: float) -> bool:
        """Set all ranks to the first one's clock, and return whether an interrupt was requested on any rank."""
        n_requests, self.state.seconds = self.ranks.sum(interrupt.requested, seconds if self.ranks.is_first else 0.0)
        return n_requests > 0

    def _steps(self) -> Iterator[tuple[list[Batch], float]]:
        """Yield the batches and the learning rate of each update, from the current state on, epoch after epoch."""
        settings = self.settings
        while True:
            self.data.begin(self.state.epoch)
            plan = self.plan(self.state.epoch)
            assert len(plan), "without batches, the epochs would go by for ever"
            self.steps_per_epoch = math.ceil(len(plan) / settings.grad_accum_steps)
            self._require_plan_of_epoch(plan)
            remaining = iter(plan[self.state.batch :])
            while group := list(islice(remaining, settings.grad_accum_steps)):
                batches = [batch for planned in group if (batch := self._share_of(planned)) is not None]
                rate = self._learning_rate()
                self.state.batch += len(group)
                if self.state.batch >= len(plan):
                    self.state.epoch, self.state.batch = self.state.epoch + 1, 0
                yield batches, rate

    def _share_of(self, planned: PlannedBatch) -> Batch | None:
        """Return this rank's rows of a batch; if there are few, some get none, or one without targets if sharded."""
        indices, src_length, tgt_length = planned
        share = self.ranks.share(indices.tolist())
        if share:
            return make_batch(self.data.corpus, share, src_length, tgt_length).to(self.device)
        if is_sharded(self.model):  # each rank must take part in every pass
            return make_batch(self.data.corpus, indices[:1]).without_targets().to(self.device)
        return None

    def plan(self, epoch: int) -> Plan:
        """Return the batches of an epoch."""
        corpus, order, settings = self.data.corpus, self.data.order(epoch), self.settings
        return epoch_batches(
            corpus, settings.max_tokens, seed=settings.seed, epoch=epoch, order=order, n_parts=settings.threads
        )

    def _require_plan_of_epoch(self, plan: Plan) -> None:
        """Note the batches of an epoch that starts; refuse others in the middle of it."""
        if not self.state.batch:
            self.state.plan_digest = plan.checksum
        elif self.state.plan_digest != plan.checksum:
            raise UserError(
                f"epoch {self.state.epoch + 1} cannot be resumed: its batches have changed with the settings or the "
                "software, and the rest of it would repeat or skip pairs. Undo what provenance.changes in "
                f"{self.folder.config} lists, or start from scratch with --fresh"
            )

    def _is_due(self, every: int, update: Update) -> bool:
        return not update.fault and self.state.step % every == 0

    def _update(self, batches: Sequence[Batch], rate: float) -> Update:
        """Do one update on the batches together; a faulty one ends the run or is skipped, as configured."""
        state = self.state
        update = self.updater.update(batches, state.step + 1, rate, state.usual_loss)
        if update.fault:
            self._refuse(update)
            state.skipped += 1
            state.skipped_in_a_row += 1
        else:
            state.step += 1
            state.n_parts = self.updater.n_parts
            state.skipped_in_a_row = 0
            state.usual_loss = update.mean_loss + 0.95 * ((state.usual_loss or update.mean_loss) - update.mean_loss)
        return update

    def _refuse(self, update: Update) -> None:
        """Report a faulty update, which has not reached the weights; end the run if so configured."""
        places = self.data.places(update.suspects) if self.ranks.is_first else []
        shown = ", ".join(places[:6]) + (f" and {len(places) - 6} more" if len(places) > 6 else "")
        message = f"step {self.state.step + 1}: {update.fault}; the weights were not changed. It came from {shown}"
        if self.settings.on_fault == "stop":
            raise MtformerError(f"{message}. {_ADVICE}")
        if self.state.skipped_in_a_row == _MOST_SKIPPED_IN_A_ROW:
            raise MtformerError(f"{message}. So did {_MOST_SKIPPED_IN_A_ROW} steps before. {_ADVICE}")
        log.warning("%s (%s skipped)", message, counted(self.state.skipped + 1, "update"))

    def _learning_rate(self) -> float:
        settings = self.settings
        return learning_rate(
            self.state.step + 1,
            self._progress(),
            schedule=settings.schedule,
            peak=settings.learning_rate,
            warmup_steps=settings.warmup_steps,
            warmup_share=self.warmup_share,
        )

    def _progress(self) -> float:
        """How much of the run is over, from 0 to 1, by the limit that will be reached first."""
        settings, state = self.settings, self.state
        return max(
            state.step / settings.max_steps if settings.max_steps else 0.0,
            self._epochs() / settings.max_epochs if settings.max_epochs else 0.0,
            state.seconds / 60 / settings.max_minutes if settings.max_minutes else 0.0,
        )

    def _epochs(self) -> float:
        """Return the passes over the data, as a fraction."""
        return self._n_steps_of_epochs() / self.steps_per_epoch

    def _n_steps_of_epochs(self) -> int:
        """Return the steps up to here if all epochs were like this one.

        The steps done are others where updates were skipped, or had other batches before the run was resumed.
        """
        n_of_epoch = math.ceil(self.state.batch / self.settings.grad_accum_steps)
        return self.state.epoch * self.steps_per_epoch + n_of_epoch

    def limit_reached(self) -> str:
        """Return the limit, or the early stopping, that ends the run here; an empty string if none does."""
        state = self.state
        limit = limit_reached(self.settings, step=state.step, epoch=state.epoch, seconds=state.seconds)
        return limit or out_of_patience(self.settings, state.stale)

    def total_steps(self) -> int | None:
        """Return the updates from first to last, where the limits tell."""
        settings = self.settings
        steps = [settings.max_steps] if settings.max_steps else []
        if settings.max_epochs:
            steps.append(self.state.step + settings.max_epochs * self.steps_per_epoch - self._n_steps_of_epochs())
        return min(steps, default=None)

    def _validate(self) -> None:
        """Score the model, with the average of its weights if one is kept; the best so far becomes the bundle."""
        if not self._has_checkpoint:  # then a run that has a bundle also has a checkpoint
            self._save()
        self._saved_step = -1  # the checkpoint of this step does not know the score
        self.state.validation_due = False
        average = self.updater.average.in_place() if self.updater.average else nullcontext()
        with self.pace.validation(), average, unsharded(self.model):
            self._score()
        self._running, self._since_validation = RunningLoss(), RunningLoss()

    def _score(self) -> None:
        state, metric = self.state, self.settings.early_stopping_metric
        result = self.validator.validate(self.model, self.ranks)
        value = result.scores[metric] * (-1 if metric in LOWER_IS_BETTER else 1)
        general_bleu = result.general.get("bleu")
        if not state.step:
            state.general_bleu = general_bleu
        if forgets(self.settings, general_bleu, state.general_bleu):
            value = -math.inf
        is_best = state.record(Score(value, result.loss, state.step), self.settings.keep_best)
        scores = {f"valid_{name}": score for name, score in result.all_scores.items()}
        self._log(**scores, valid_perplexity=result.perplexity)
        self.table.add(
            step=state.step,
            epoch=self._epochs(),
            minutes=state.seconds / 60,
            training=self._since_validation,
            result=result,
            is_best=is_best,
        )
        if self.ranks.is_first:
            if result.samples:
                self.samples.write({"step": state.step, "samples": [sample.to_dict() for sample in result.samples]})
            if is_best:
                self._save_bundle(self.model, result.all_scores, state.step)
            self._on_scores()

    def _save_bundle(self, model: Transformer, scores: Mapping[str, float], step: int) -> None:
        whole = merged(model)
        heads = self.validator.alignment_heads(whole)
        words = self.data.known_words
        header = describe_model(self.config, model, self.tokenizer, {**scores, "step": float(step)}, heads, words)
        if self.settings.lora:
            adapter = {name: each.detach().cpu() for name, each in trained_parameters(model).items()}
            base = self.config.provenance.fingerprints["init_from"]
            save_adapter(self.folder.adapter, Adapter(adapter, header, base))
        save_bundle(self.folder.bundle, Bundle(whole, self.tokenizer, header))

    def _save(self) -> None:
        if self.ranks.is_first:
            for journal in (self.journal, self.samples):
                journal.sync()  # the lines of a step that is never repeated
        if self.state.step != self._saved_step and (self.ranks.is_first or is_sharded(self.model)):
            save_checkpoint(
                self.folder.checkpoints,
                self.state.step,
                self.updater,
                asdict(self.state),
                keep_last=self.settings.keep_last,
                keep_steps=self.state.best_steps,
            )
        self._saved_step = self.state.step
        self._has_checkpoint = True

    def _save_snapshot(self, update: Update) -> None:
        """Keep the model, if it is one of those that show how training went."""
        is_due = not update.fault and is_snapshot_step(self.state.step) and self.settings.keep_early
        if is_due and (self.ranks.is_first or is_sharded(self.model)):
            save_snapshot(self.folder.snapshots, self.state.step, self.updater, keep=self.settings.keep_early)

    def _log(self, **values: float) -> None:
        state = self.state
        if self.ranks.is_first:
            self.journal.write({"step": state.step, "epoch": state.epoch, "seconds": round(state.seconds, 1)} | values)
            for writer in self.writers:
                writer.write(state.step, values)


def _is_intact(bundle: Path) -> bool:
    try:
        load_bundle(bundle)
    except UserError:
        return False
    return True
