"""A run: everything that happens between a config and a trained model, kept in one folder."""

import logging
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from mtformer.bundle.format import Bundle
from mtformer.config import Config, Facts, ResolvedConfig, dump_config, resolve
from mtformer.config.resolve import size_for
from mtformer.data.store import HeldOutPairs
from mtformer.data.tokens import Corpus
from mtformer.data.training import TrainingData
from mtformer.model.inference import require_same_logits
from mtformer.model.lora import adapt
from mtformer.model.transformer import Transformer
from mtformer.model.weights import count_parameters
from mtformer.runs.checkpoints import list_checkpoints, newest_checkpoint
from mtformer.runs.folder import RunFolder
from mtformer.support.errors import MtformerError
from mtformer.support.files import write_atomically, write_text
from mtformer.support.hardware import keep_freed_memory, pick_device, usable_cores
from mtformer.support.packages import require_package
from mtformer.support.processes.launch import is_restart, launch_id
from mtformer.support.processes.ranks import ALONE, Ranks, joined_ranks, local_device
from mtformer.support.processes.threads import choose_threads, one_core_per_operation
from mtformer.support.terminal import counted, fixed
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.training.checkpoint import TrainState
from mtformer.training.display import make_writers
from mtformer.training.facts import collect_facts
from mtformer.training.finetune import freeze, initialize, new_tags
from mtformer.training.forecast import Forecast, forecast, record_start, shortened_warmup
from mtformer.training.history import warn_of_changes, warn_without_effect
from mtformer.training.inputs import named_commits, read_inputs, require_apart, require_some
from mtformer.training.memory import largest_max_tokens
from mtformer.training.model import build_model
from mtformer.training.sharding import computes_in_threads, is_sharded, shard
from mtformer.training.trainer import Trainer
from mtformer.training.transfer import log_start
from mtformer.training.validation import Validator

log = logging.getLogger(__name__)

_FEW_PAIRS = 1_000  # with which a run is only good for trying things out
_FEWEST_STEPS = 100  # of a run that is meant to learn something


def train(
    config: Config,
    *,
    fresh: bool = False,
    show_samples: bool = False,
    on_scores: Callable[[RunFolder, bool], object] | None = None,
) -> Path:
    """Train a model and return its bundle's path; a run that exists is resumed.

    Args:
        config: as loaded; :func:`mtformer.config.resolve` fills in what it leaves open.
        fresh: start from scratch. What an earlier run left behind is removed once all that the config names has been
            read. After that, a restart by torchrun or Slurm resumes.
        show_samples: log sample translations at each validation.
        on_scores: called after each validation, and at the end, on the first rank, with the folder of the
            run and whether it is still training.

    Raises:
        UserError: the data cannot be used, the run was started with settings that do not agree with these, or one of
            its files is an input.
        MtformerError: training failed, and the checkpoints stay; or an earlier run cannot be removed.
        KeyboardInterrupt: Ctrl-C, SIGTERM or SIGHUP.
    """
    folder = RunFolder.of(config)
    notify = partial(on_scores, folder) if on_scores else lambda is_training: None
    with _resumable(folder, fresh), joined_ranks(pick_device(config.training.device)) as ranks, ExitStack() as stack:
        stack.enter_context(one_core_per_operation())
        device = local_device(pick_device(config.training.device), ranks)
        ranks.by_first(lambda: require_apart(folder, config))
        ranks.by_first(lambda: stack.enter_context(folder.lock()))
        if fresh:
            fresh = not ranks.by_first(lambda: is_cleared(folder))
        trainer = _prepare(config, device, ranks, fresh, show_samples, lambda: notify(True))
        if fresh:
            ranks.by_first(lambda: clear(folder))
        elif trainer.resume():
            _log_resumed(trainer)
        elif folder.starts.exists():
            log.info("%s has no checkpoint yet: it starts from the beginning", folder.path)
        is_complete = trainer.course.end() and not trainer.state.validation_due
        if not (is_complete and folder.config.exists()):  # else its settings stay those of its last step
            ranks.by_first(lambda: _write_beginning(folder, trainer.config, trainer.tokenizer, trainer.data.held_out))
        ranks.by_first(lambda: record_start(trainer))
        if not trainer.state.step:
            _log_warmup(trainer)
        first_step = trainer.state.step
        if ranks.is_first:
            stack.callback(notify, False)
        with ExitStack() as writers:
            if ranks.is_first:
                trainer.files.writers = make_writers(trainer.config, folder, trainer.state.step + 1, writers)
            reason = trainer.fit()
        trainer.data.end()
        if trainer.state.step > first_step:  # else the run was complete, as it has said
            log.info("stopped at step %d after %.1f min: %s", trainer.state.step, trainer.state.seconds / 60, reason)
            _warn_of_no_gain(trainer)
            _warn_of_no_quality(trainer)
            _warn_of_few_epochs(trainer)
        return folder.bundle


def _log_resumed(trainer: Trainer) -> None:
    """Log where a run resumes, or that it is complete and how to train on."""
    step = trainer.state.step
    if reason := trainer.course.end():
        log.info(
            "%s is complete: step %d after %.1f min, %s; to train on, raise that limit: %s; --fresh starts from "
            "scratch",
            trainer.folder.path,
            step,
            trainer.state.seconds / 60,
            reason,
            _training_on(trainer, reason),
        )
        changes = trainer.config.provenance.changes
        warn_without_effect(change for change in changes if change.step == step and change.key not in reason)
    else:
        log.info("resuming from step %d", step)
        warn_of_changes(trainer.config.provenance.changes, step)


def _training_on(trainer: Trainer, reason: str) -> str:
    """Return the command that trains a run on, beyond the limit that ``reason`` names."""
    [limit] = re.findall(r"training\.\w+", reason)
    return f"{trainer.folder.resume_command} --set {limit}=…"


def _warn_of_no_gain(trainer: Trainer) -> None:
    """Log that the model is the one that fine-tuning started from, if none was better."""
    state, limit = trainer.state, trainer.settings.max_forgetting
    if state.best and not state.best.step:
        is_limited = limit is not None and state.general_bleu is not None
        without = f" without losing more than {limit:g} BLEU on general text (training.max_forgetting)" * is_limited
        log.warning("no validation was better than the first%s: the model is that of training.init_from", without)


def _warn_of_no_quality(trainer: Trainer) -> None:
    """Log that no model of the run translates, by its best BLEU."""
    state, is_bleu = trainer.state, trainer.settings.early_stopping_metric == "bleu"
    if is_bleu and state.step >= _FEWEST_STEPS and state.best and state.best.value < 1:
        log.warning(
            "the model has hardly learned anything yet: its best BLEU on the validation set is %s; it needs more steps "
            "(training.max_steps) or more text",
            fixed(state.best.value, 2),
        )


def _warn_of_few_epochs(trainer: Trainer) -> None:
    """Log that a time limit has ended training long before its usual end."""
    usual, done = size_for(len(trainer.data.corpus)).max_epochs, trainer.course.epochs
    if trainer.settings.max_minutes and not trainer.settings.max_epochs and done < usual / 2:
        log.warning(
            "%.1f epochs are few: without training.max_minutes, this text has %d by default; to train on, raise it: %s",
            done,
            usual,
            _training_on(trainer, "training.max_minutes"),
        )


def dry_run(config: Config, *, fresh: bool = False) -> Forecast:
    """Prepare training, measure a few updates, and describe the run, without writing anything.

    Raises:
        UserError: as :func:`train` would.
    """
    folder = RunFolder.of(config)
    require_apart(folder, config)
    with one_core_per_operation():
        trainer = _prepare(config, local_device(pick_device(config.training.device)), ALONE, fresh)
        if saved := None if fresh else newest_checkpoint(folder.checkpoints, with_tensors=False):
            state = TrainState.load(saved)
            reason = trainer.course._replace(state=state).end()
            stands = f"is complete: step {state.step:,}, {reason}" if reason else f"resumes at step {state.step:,}"
            log.info("the forecast is for the whole run; %s %s", folder.path, stands)
        return forecast(trainer)


def require_resumable(config: Config) -> None:
    """Refuse what :func:`train` would refuse of a run that exists, without building the model.

    Raises:
        UserError: as :func:`train` would.
    """
    config = named_commits(config)
    collect_facts(config, read_inputs(config, ALONE), 1, RunFolder.of(config))


@contextmanager
def _resumable(folder: RunFolder, fresh: bool) -> Iterator[None]:
    """Log how to resume if an interrupt ends the block and there is a checkpoint."""
    try:
        yield
    except KeyboardInterrupt:
        if list_checkpoints(folder.checkpoints):
            without = " without --fresh" * fresh
            log.warning("stopped; rerun the same command%s to resume %s", without, folder.path)
        raise


def _prepare(
    config: Config,
    device: torch.device,
    ranks: Ranks,
    fresh: bool,
    show_samples: bool = False,
    on_scores: Callable[[], object] = lambda: None,
) -> Trainer:
    """Read the text, get the tokenizer, build the model and resolve the config; nothing is written."""
    for package in config.training.log_to:
        require_package(package, f"training.log_to = [{package}]", extra=package)
    config = ranks.by_first(lambda: named_commits(config))
    inputs = read_inputs(config, ranks)
    folder = RunFolder.of(config)
    facts, tokenizer, is_resumed = ranks.by_first(
        lambda: collect_facts(config, inputs, ranks.size, None if fresh else folder)
    )
    trial = resolve(config, facts)
    data = ranks.after_first(lambda: TrainingData(trial, inputs.text, tokenizer, inputs.glossary))
    _log_data(data)
    if len(data.corpus) < _FEW_PAIRS and not inputs.base:
        log.warning(
            "%s too few for a useful model, which takes some 10,000 at least; with few, fine-tune a model of the same "
            "languages (training.init_from)",
            f"{len(data.corpus):,} training pairs are" if len(data.corpus) > 1 else "1 training pair is",
        )
    if facts.slots is None and config.tokenizer.slots is None and not (trial.tokenizer.slots or inputs.base):
        log.info("numbers and names may get lost in translations: this model has no slots for them (tokenizer.slots)")
    keep_freed_memory()
    model = _build(trial, tokenizer, inputs.base, device, ranks)
    if not is_resumed:
        facts = _measure(config, facts, model, data.corpus, ranks)
    resolved = resolve(config, facts)
    _log_model(resolved, model, tokenizer, ranks)
    if inputs.base:
        log_start(config, resolved, inputs.base)
    validator = Validator(
        resolved, tokenizer, inputs.valid_pairs, inputs.general_pairs, in_threads=computes_in_threads(model)
    )
    return Trainer(
        resolved, model, tokenizer, data, validator, folder, ranks, show_samples=show_samples, on_scores=on_scores
    )


def _build(
    config: ResolvedConfig, tokenizer: Tokenizer, base: Bundle | None, device: torch.device, ranks: Ranks
) -> Transformer:
    """Build the model on ``device``, with the weights of ``base`` if there is one."""
    torch.manual_seed(config.training.seed)
    model = build_model(config, tokenizer, base.header.architecture if base else None)
    ranks.by_first(lambda: require_same_logits(model))
    if base:
        initialize(model, tokenizer, base, new_tags(config.training, base.header))
    freeze(model, config.training.freeze)
    if config.training.lora:
        adapt(model, config.training.lora.rank)
    if config.training.shard and ranks.size > 1:
        shard(model, device)
    else:
        model.to(device)
    return model


def _measure(config: Config, facts: Facts, model: Transformer, corpus: Corpus, ranks: Ranks) -> Facts:
    """Add the facts that ``auto`` leaves to this model on this machine."""
    n_cores = usable_cores() if computes_in_threads(model) else 1
    measured = replace(facts, threads=n_cores)
    if config.training.max_tokens == "auto":
        max_tokens = largest_max_tokens(model, resolve(config, measured).training, corpus, ranks)
        log.info("batches of up to %s tokens", f"{max_tokens:,}")
        measured = replace(measured, max_tokens=max_tokens)
    own_tokens = resolve(config, measured).training.max_tokens // ranks.size
    return replace(measured, threads=choose_threads(n_cores, own_tokens))


def _log_model(config: ResolvedConfig, model: Transformer, tokenizer: Tokenizer, ranks: Ranks) -> None:
    n_parameters = f"{count_parameters(model):,}"
    if config.training.lora:
        n_parameters = f"{count_parameters(model, trained_only=True):,} of {n_parameters}"
    n_tokens = f"{tokenizer.vocab_size:,}"
    where = f"{ranks.size} × {model.device.type}" if ranks.size > 1 else model.device.type
    if config.training.threads > 1 and computes_in_threads(model):
        where += f", {config.training.threads} threads"
    if is_sharded(model):
        where += ", sharded"
    log.info(
        "%s parameters, vocabulary of %s tokens, %s on %s", n_parameters, n_tokens, config.training.precision, where
    )
    if config.model.preset in ("base", "big") and config.model.norm == "post":
        log.info(
            "preset %s is the paper's, with post-norm: the learning rate peaks at %g (model.norm=pre changes both)",
            config.model.preset,
            config.training.learning_rate,
        )


def _log_warmup(trainer: Trainer) -> None:
    """Log the length of the warm-up if the end of the run shortens it, or may do so."""
    settings, n_steps = trainer.settings, trainer.course.total_steps()
    if n_steps is not None and (shortened := shortened_warmup(trainer, n_steps)):
        log.info("a warm-up of %s", shortened)
    elif settings.max_minutes and settings.warmup_steps:
        minutes = f"{trainer.warmup_share * settings.max_minutes:.2g}"
        log.info("a warm-up of %s or %s minutes, whichever ends first", counted(settings.warmup_steps, "step"), minutes)


def _log_data(data: TrainingData) -> None:
    """Log how many pairs are used and why others are not.

    Raises:
        UserError: none is used.
    """
    dropped = data.corpus.dropped
    log.info("%s, %s dropped", counted(len(data.corpus), "training pair"), f"{dropped.total():,}")
    for reason, count in dropped.most_common():
        log.info("    %s: %s", f"{count:,}", reason)
    for warning in data.warnings():
        log.warning("%s", warning)
    require_some(len(data.corpus), dropped)
    for line in data.mixture():
        log.info("    %s", line)


def _write_beginning(folder: RunFolder, config: ResolvedConfig, tokenizer: Tokenizer, held_out: HeldOutPairs) -> None:
    """Write the files that precede the first step: the tokenizer, the pairs that are held out, and the config."""
    paths = (folder.joint_tokenizer,) if tokenizer.joint else folder.separate_tokenizers
    for path, model in zip(paths, tokenizer.models, strict=True):
        write_atomically(path, partial(Path.write_bytes, data=model))
    for part, by_direction in held_out.items():
        for languages, pairs in by_direction.items():
            for path, texts in zip(folder.held_out_files(part, languages), zip(*pairs, strict=True), strict=False):
                write_text(path, "".join(f"{text}\n" for text in texts))
    write_text(folder.config, dump_config(config))


def is_cleared(folder: RunFolder) -> bool:
    """Tell whether this process is a restart and its launch has already cleared the folder.

    If it is none, remove the note of an earlier launch, which may have had the same id as that of this process.
    """
    if not is_restart():
        folder.cleared.unlink(missing_ok=True)
    return folder.cleared.is_file() and folder.cleared.read_text(encoding="utf-8") == launch_id()


def clear(folder: RunFolder) -> None:
    """Remove the files of a run, and nothing else; note the launch, whose restarts are to resume.

    Raises:
        MtformerError: something cannot be removed.
    """
    try:
        for path in folder.folders_left_behind:
            if path.exists():
                shutil.rmtree(path)
        for path in folder.files_left_behind:
            path.unlink(missing_ok=True)
    except OSError as error:
        # An error that rmtree itself raises has only a message, which str(error) leaves out if a file name is set.
        reason = error.strerror or " ".join(map(str, error.args))
        raise MtformerError(
            f"cannot remove {path}: {reason}; remove it, or choose another name (--set run.name=…)"
        ) from error
    if launch_id():
        write_text(folder.cleared, launch_id())
