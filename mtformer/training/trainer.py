"""The loop: batches, updates, and when to validate, to save and to stop."""

import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from itertools import islice

from mtformer.config import ResolvedConfig
from mtformer.data.batches import Batch, BatchPlan, PlannedBatch, epoch_batches, make_batch
from mtformer.data.training import TrainingData
from mtformer.model.transformer import Transformer
from mtformer.runs.contents import LOWER_IS_BETTER, forgets
from mtformer.runs.folder import RunFolder
from mtformer.support.errors import MtformerError, UserError
from mtformer.support.processes.launch import Interrupt
from mtformer.support.processes.ranks import ALONE, Ranks
from mtformer.support.progress import Progress
from mtformer.support.terminal import counted
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.training.checkpoint import TrainState, ValidationScore
from mtformer.training.course import Course
from mtformer.training.display import Pace, ValidationTable, live_note
from mtformer.training.memory import used_memory
from mtformer.training.optimizer import WARMUP_SHARES
from mtformer.training.run_files import RunFiles
from mtformer.training.sharding import is_sharded, unsharded
from mtformer.training.update import RunningLoss, Update, Updater
from mtformer.training.validation import Validation, Validator

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
        self.table = ValidationTable(config.training.early_stopping_metric, with_samples=show_samples)
        self.pace = Pace()
        self.device = model.device
        self.ranks = ranks
        self.updater = Updater(model, config.training, self.ranks)
        self.files = RunFiles(folder, config, tokenizer, data, validator, self.updater)
        self.state = TrainState(validation_due=config.training.init_from is not None)  # to begin with its scores
        self.steps_per_epoch = math.ceil(len(self.plan(0)) / self.settings.grad_accum_steps)
        self.validate_every = self.settings.validate_every or min(max(self.steps_per_epoch, 100), 1_000)
        self.checkpoint_every = self.settings.checkpoint_every or self.validate_every
        self._on_scores = on_scores

    @property
    def course(self) -> Course:
        """The course of the run, seen from where it stands."""
        return Course(self.settings, self.warmup_share, self.state, self.steps_per_epoch)

    def resume(self) -> bool:
        """Restore the newest intact checkpoint and return True, or return False if there are no checkpoints.

        Raises:
            UserError: a checkpoint cannot be read, all are damaged, or the run has a model and no checkpoint.
        """
        state = self.files.restore()
        if state is None:
            self.ranks.by_first(lambda: self.files.remove_later(self.state))
            return False
        self.state = state
        return True

    def fit(self) -> str:
        """Train until a limit, early stopping or an interrupt ends the run; return the reason.

        Raises:
            MtformerError: a non-finite loss or gradient, before it reaches the weights; or a full disk.
            KeyboardInterrupt: Ctrl-C, SIGTERM or SIGHUP, after saving a checkpoint.
        """
        started, seconds_before = time.monotonic(), self.state.seconds

        def seconds() -> float:
            return seconds_before + time.monotonic() - started

        self._validate_if_overdue(seconds)
        if reason := self.course.end():
            return reason
        self.pace = Pace()
        progress = Progress("training", self.course.total_steps(), self.state.step, "steps", with_rate=False)
        with Interrupt() as interrupt, progress:
            for batches, rate in self._steps():
                update = self._update(batches, rate)
                interrupted = self._agree(interrupt, seconds())
                self._count(update, rate, progress)
                if not update.fault:
                    self.files.save_snapshot(self.state.step)
                reason = self.course.end()
                self.state.validation_due = bool(reason) or self._is_due(self.validate_every, update)
                if self.state.validation_due and not interrupted:  # an interrupt does not wait for a validation
                    progress.note("validating")
                    self._validate(seconds)
                    interrupted = self._agree(interrupt, seconds())
                    reason = reason or self.course.end()
                if interrupted or reason or self._is_due(self.checkpoint_every, update):
                    self.files.save(self.state)
                if interrupted:
                    self.ranks.wait()  # torchrun stops all ranks as soon as one ends
                    raise KeyboardInterrupt
                if reason:
                    return reason
        raise AssertionError("the epochs do not end by themselves")

    def _validate_if_overdue(self, seconds: Callable[[], float]) -> None:
        """Validate before the first step of fine-tuning, or if an interrupt or a limit has kept the run from it."""
        if self.state.validation_due or (self.course.end() and not self.state.best):
            self._validate(seconds)
            self.files.save(self.state)

    def _count(self, update: Update, rate: float, progress: Progress) -> None:
        """Add an update to the running losses, the live line and, every ``log_every`` steps, the metrics."""
        if not update.fault:
            self.state.running.add(update)
            self.state.since_validation.add(update)
            self.pace.count_step()
            progress.total = self.course.total_steps()  # other epochs had another number
            progress.advance(note=self._note())
        if self._is_due(self.settings.log_every, update):
            values = {"lr": rate, "memory_gib": used_memory(self.device) / 2**30}
            self.files.log(self.state, self.state.running.metrics() | values)
            self.state.running = RunningLoss()

    def _note(self) -> str:
        """Return the text of the live line beside the step."""
        state, limit = self.state, self.settings.max_minutes
        seconds_left = 60 * limit - state.seconds if limit else None
        eta = self.pace.eta(state.step, self.course.total_steps(), self.validate_every, seconds_left)
        best = abs(state.best.value) if state.best else None
        return live_note(state.running, self.settings.early_stopping_metric, best, eta)

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
                rate = self.course.learning_rate()
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

    def plan(self, epoch: int) -> BatchPlan:
        """Return the batches of an epoch."""
        corpus, order, settings = self.data.corpus, self.data.order(epoch), self.settings
        return epoch_batches(
            corpus, settings.max_tokens, seed=settings.seed, epoch=epoch, order=order, n_parts=settings.threads
        )

    def _require_plan_of_epoch(self, plan: BatchPlan) -> None:
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
        places = self.data.places(update.suspects)  # the same on all ranks, whose error is reported once
        shown = ", ".join(places[:6]) + (f" and {len(places) - 6} more" if len(places) > 6 else "")
        message = f"step {self.state.step + 1}: {update.fault}; the weights were not changed. It came from {shown}"
        if self.settings.on_fault == "stop":
            raise MtformerError(f"{message}. {_ADVICE}")
        if self.state.skipped_in_a_row == _MOST_SKIPPED_IN_A_ROW:
            raise MtformerError(f"{message}. So did {_MOST_SKIPPED_IN_A_ROW} steps before. {_ADVICE}")
        log.warning("%s (%s skipped)", message, counted(self.state.skipped + 1, "update"))

    def _validate(self, seconds: Callable[[], float]) -> None:
        """Score the model, with the average of its weights if one is kept; the best so far becomes the bundle."""
        self.files.save_first(self.state)
        self.state.validation_due = False
        average = self.updater.average.in_place() if self.updater.average else nullcontext()
        with self.pace.validation(), average, unsharded(self.model):
            result = self.validator.validate(self.model, self.ranks)
            self.state.seconds = self.ranks.by_first(seconds)  # of the validation as well, which may be what ends a run
            self._score(result)
        self.state.running, self.state.since_validation = RunningLoss(), RunningLoss()

    def _score(self, result: Validation) -> None:
        state, metric = self.state, self.settings.early_stopping_metric
        value = result.scores[metric] * (-1 if metric in LOWER_IS_BETTER else 1)
        general_bleu = result.general.get("bleu")
        if not state.step:
            state.general_bleu = general_bleu
        if forgets(self.settings, general_bleu, state.general_bleu):
            value = -math.inf
        is_best = state.record(ValidationScore(value, result.loss, state.step))
        scores = {f"valid_{name}": score for name, score in result.all_scores.items()}
        self.files.log(state, scores | {"valid_perplexity": result.perplexity})
        self.table.add(
            step=state.step,
            epoch=self.course.epochs,
            minutes=state.seconds / 60,
            training=state.since_validation,
            result=result,
            is_best=is_best,
        )
        if self.ranks.is_first:
            if result.samples:
                samples = [sample.to_dict() for sample in result.samples]
                self.files.samples.write({"step": state.step, "samples": samples})
            if is_best:
                self.files.save_bundle(self.model, result.all_scores, state.step)
            self._on_scores()
