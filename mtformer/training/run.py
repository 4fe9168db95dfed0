"""A run: everything that happens between a config and a trained model, kept in one folder."""

import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TypeVar

import torch

from mtformer.bundle import Bundle, load_bundle
from mtformer.config import Config, Facts, LanguagePair, Precision, Provenance, ResolvedConfig, dump_config, resolve
from mtformer.data.augment import TokenizerText
from mtformer.data.contents import has_pipe
from mtformer.data.corpus import Corpus
from mtformer.data.filters import filters_of
from mtformer.data.store import StoredText, stored_text
from mtformer.data.training import TrainingData
from mtformer.errors import Problems, UserError
from mtformer.files import require_distinct, write_atomically
from mtformer.hardware import pick_device, pick_precision
from mtformer.memory import keep_freed_memory
from mtformer.model.transformer import Transformer
from mtformer.model.weights import build_model
from mtformer.report.writing import refresh_report
from mtformer.runs import RunFolder
from mtformer.text.given_tokenizer import GivenTokenizer, read_tokenizer
from mtformer.text.glossary import Glossary
from mtformer.text.languages import suit_joint_vocabulary
from mtformer.text.sources import ParallelText, SentencePair, fingerprint, require_readable, source_name
from mtformer.text.sources.hub import pinned
from mtformer.text.tags import all_tags
from mtformer.text.tokenizer import MARKERS, Tokenizer
from mtformer.text.tokenizer_training import MAX_TRAINING_TEXTS, train_tokenizer
from mtformer.training.checkpoint import list_checkpoints
from mtformer.training.clearing import clear, is_cleared
from mtformer.training.finetune import freeze, inherit, initialize, tokenizer_of
from mtformer.training.forecast import forecast
from mtformer.training.history import (
    history,
    load_saved_run,
    require_same_run,
    warn_of_changes,
    warn_of_foreign_provenance,
)
from mtformer.training.memory import largest_max_tokens
from mtformer.training.ranks import ALONE, Ranks, joined_ranks, local_device
from mtformer.training.sharding import is_sharded, shard
from mtformer.training.starts import record_start
from mtformer.training.timing import seconds_per_update
from mtformer.training.trainer import Trainer
from mtformer.training.validation import Validator
from mtformer.training.writers import make_writers, require_packages
from mtformer.versions import versions

log = logging.getLogger(__name__)

Made = TypeVar("Made")


def has_checkpoint(config: Config) -> bool:
    """Tell whether the run has a checkpoint to resume from."""
    return bool(list_checkpoints(RunFolder.of(config).checkpoints))


def train(config: Config, *, fresh: bool = False, show_samples: bool = False) -> Path:
    """Train a model and return its bundle's path; a run that exists is resumed.

    Args:
        config: as loaded; :func:`mtformer.config.resolve` fills in what it leaves open.
        fresh: start from scratch. What an earlier run left behind is removed once all that the config names has been
            read. After that, a restart by torchrun or Slurm resumes.
        show_samples: log sample translations at each validation.

    Raises:
        UserError: the data cannot be used, the run was started with settings that do not agree with these, or its model
            is the one that training starts from.
        MtformerError: training failed, and the checkpoints stay; or an earlier run cannot be removed.
    """
    folder = RunFolder.of(config)
    with joined_ranks(pick_device(config.training.device)) as ranks, ExitStack() as stack:
        device = local_device(pick_device(config.training.device), ranks)
        ranks.by_first(lambda: require_distinct(folder.bundle, [config.training.init_from]))
        ranks.by_first(lambda: stack.enter_context(folder.lock()))
        fresh = fresh and not ranks.by_first(lambda: is_cleared(folder))
        trainer = _prepare(config, device, ranks, fresh, show_samples)
        if fresh:
            ranks.by_first(lambda: clear(folder))
        elif trainer.resume():
            log.info("resuming from step %d", trainer.state.step)
        ranks.by_first(lambda: _write_beginning(folder, trainer.config, trainer.tokenizer))
        ranks.by_first(lambda: record_start(trainer))
        if config.training.report and ranks.is_first:
            stack.callback(refresh_report, folder, is_training=False)
        with ExitStack() as writers:
            if ranks.is_first:
                made = make_writers(trainer.config, folder, trainer.state.step + 1)
                trainer.writers = [writers.enter_context(closing(writer)) for writer in made]
            reason = trainer.fit()
        trainer.data.end()
        log.info("stopped at step %d after %.1f min: %s", trainer.state.step, trainer.state.seconds / 60, reason)
        return folder.bundle


def dry_run(config: Config, *, fresh: bool = False) -> str:
    """Do all that comes before training, measure a few updates, and describe the run in words; nothing is written.

    Raises:
        UserError: as :func:`train` would.
    """
    trainer = _prepare(config, local_device(pick_device(config.training.device)), ALONE, fresh)
    return forecast(trainer)


def _prepare(config: Config, device: torch.device, ranks: Ranks, fresh: bool, show_samples: bool = False) -> Trainer:
    """Read the text, get the tokenizer, build the model and resolve the config; nothing is written."""
    require_packages(config)
    config = ranks.by_first(lambda: named_commits(config))
    data = config.data
    text, valid, test = (
        ParallelText(found, data.src_lang, data.tgt_lang) for found in (data.train, data.valid, data.test)
    )
    if ranks.size > 1 and (has_pipe(text) or has_pipe(valid)):
        raise UserError("several processes cannot read a pipe: write its text to a file first")
    ranks.by_first(lambda: require_readable((text, valid, test)))
    given = ranks.by_first(lambda: _given_tokenizer(config))
    train_text = _shared(ranks, lambda: stored_text(text, filters_of(data)))
    valid_pairs = _by_direction(valid)
    base = load_bundle(config.training.init_from) if config.training.init_from else None
    facts, tokenizer, is_resumed = ranks.by_first(
        lambda: _begin(config, train_text, valid_pairs, base, given, ranks, None if fresh else RunFolder.of(config))
    )
    trial = resolve(config, facts)
    training_data = _shared(ranks, lambda: TrainingData(trial, train_text, tokenizer))
    _report(training_data)
    keep_freed_memory()
    model = _build(trial, tokenizer, base, device, ranks)
    if not is_resumed:
        facts = _measure(config, facts, model, training_data.corpus, ranks)
    resolved = resolve(config, facts)
    _describe(resolved, model, tokenizer, ranks)
    validator = Validator(resolved, tokenizer, valid_pairs)
    folder = RunFolder.of(config)
    trainer = Trainer(resolved, model, tokenizer, training_data, validator, folder, ranks, show_samples=show_samples)
    _warn_of_long_warmup(trainer)
    return trainer


def named_commits(config: Config) -> Config:
    """Return ``config`` with the commits of data sets, which the config of the run records."""
    data = config.data
    sources = {key: pinned(getattr(data, key)) for key in ("train", "valid", "test")}
    return config.model_copy(update={"data": data.model_copy(update=sources)})


def _shared(ranks: Ranks, work: Callable[[], Made]) -> Made:
    """Let the first rank do ``work``, which leaves its result in the cache, before the others find it there."""
    made: list[Made] = []
    ranks.by_first(lambda: made.append(work()))
    return made[0] if made else work()


def _given_tokenizer(config: Config) -> GivenTokenizer | None:
    """Read the SentencePiece models that ``config`` names, if it does."""
    return read_tokenizer(config.tokenizer, _control_symbols(config)) if config.tokenizer.paths else None


def _control_symbols(config: Config) -> list[str]:
    """Return the source tokens that no text contains: what marks terms, languages and corpora."""
    return [*(MARKERS if config.data.terms else ()), *all_tags(config.data)]


def _by_direction(text: ParallelText) -> dict[LanguagePair, list[SentencePair]]:
    """Read the pairs of each direction."""
    found: dict[LanguagePair, list[SentencePair]] = {}
    problems = Problems()
    for part in text.parts():
        with problems.collected():
            found.setdefault(LanguagePair(part.src_lang, part.tgt_lang), []).extend(part)
    problems.raise_all()
    return found


def _begin(
    config: Config,
    train_text: StoredText,
    valid_pairs: Mapping[LanguagePair, Sequence[SentencePair]],
    base: Bundle | None,
    given: GivenTokenizer | None,
    ranks: Ranks,
    folder: RunFolder | None,
) -> tuple[Facts, Tokenizer, bool]:
    """Collect the facts that need no model, and get the tokenizer: that of the run in ``folder``, if there is one.

    Returns:
        the facts, the tokenizer, and whether they are those of a run that is resumed.
    """
    facts = _facts_of_text(config, train_text, valid_pairs, base, ranks)
    facts = replace(facts, tokenizer=given.settings if given else None)
    saved = load_saved_run(folder) if folder else None
    if folder and saved:
        measured = saved.config.training
        facts = replace(
            facts,
            joint=saved.tokenizer.joint,
            vocab_size=_vocab_size(saved.tokenizer),
            precision=measured.precision,
            max_tokens=measured.max_tokens,
        )
        now = resolve(config, facts)
        require_same_run(folder, saved, now)
        changes = history(saved, now)
        warn_of_changes(changes, saved.step)
        provenance = Provenance(**dict(facts.provenance) | {"changes": changes})
        return replace(facts, provenance=provenance), saved.tokenizer, True
    warn_of_foreign_provenance(config.provenance, facts.provenance)
    settings = resolve(config, facts)
    text = _tokenizer_text(config, train_text)
    if base:
        tokenizer = tokenizer_of(base, settings, text)
    elif given:
        tokenizer = given.tokenizer
    else:
        log.info("training the tokenizer")
        tokenizer = train_tokenizer(
            text,
            settings.tokenizer,
            *zip(*config.data.language_pairs, strict=True),
            seed=config.training.seed,
            adjust=config.tokenizer.vocab_size is None,
            control_symbols=_control_symbols(config),
        )
    return replace(facts, vocab_size=_vocab_size(tokenizer)), tokenizer, False


def _tokenizer_text(config: Config, text: StoredText) -> Iterable[SentencePair]:
    """Return what the tokenizer is trained on: the text, or a part of it as epochs will vary it."""
    shares, seed = config.data.augment, config.training.seed
    if not shares:
        return text
    return TokenizerText(text.sampled(MAX_TRAINING_TEXTS, seed), shares, seed, config.data.language_pairs)


def _facts_of_text(
    config: Config,
    train_text: StoredText,
    valid_pairs: Mapping[LanguagePair, Sequence[SentencePair]],
    base: Bundle | None,
    ranks: Ranks,
) -> Facts:
    """Note what the result depends on."""
    valid_text = fingerprint(chain.from_iterable(valid_pairs.values()))
    for sources, n_pairs in ((config.data.train, sum(train_text.n_pairs)), (config.data.valid, valid_text.n_pairs)):
        if not n_pairs:
            raise UserError(f"there are no sentence pairs in {', '.join(dict.fromkeys(map(source_name, sources)))}")
    _require_some(len(train_text), sum((drops.counts for drops in train_text.drops), Counter()))
    fingerprints = {"train": train_text.digest, "valid": valid_text.digest}
    if config.data.terms:
        fingerprints["terms"] = fingerprint(
            SentencePair(*term) for term in Glossary.read(config.data.terms).terms
        ).digest
    if base:
        fingerprints["init_from"] = base.digest
    if config.tokenizer.paths:
        models = b"".join(path.read_bytes() for path in config.tokenizer.paths)
        fingerprints["tokenizer"] = hashlib.sha256(models).hexdigest()
    hardware = {"device": pick_device(config.training.device).type, "processes": str(ranks.size)}
    return Facts(
        n_pairs=len(train_text),
        base=inherit(config, base) if base else None,
        joint=base.tokenizer.joint if base else _share_tokens(config),
        provenance=Provenance(versions=versions(), hardware=hardware, fingerprints=fingerprints),
    )


def _share_tokens(config: Config) -> bool:
    """Whether there is one tokenizer for both languages, if the config leaves it open; annotated terms need one."""
    return config.data.terms is not None or suit_joint_vocabulary(*zip(*config.data.language_pairs, strict=True))


def _vocab_size(tokenizer: Tokenizer) -> int:
    return max(tokenizer.src_vocab_size, tokenizer.tgt_vocab_size)


def _build(
    config: ResolvedConfig, tokenizer: Tokenizer, base: Bundle | None, device: torch.device, ranks: Ranks
) -> Transformer:
    """Build the model on ``device``, with the weights of ``base`` if there is one."""
    torch.manual_seed(config.training.seed)
    model = build_model(config, tokenizer)
    if base:
        initialize(model, tokenizer, base)
    freeze(model, config.training.freeze)
    if config.training.shard and ranks.size > 1:
        shard(model, device)
    else:
        model.to(device)
    return model


def _measure(config: Config, facts: Facts, model: Transformer, corpus: Corpus, ranks: Ranks) -> Facts:
    """Add the facts that ``auto`` leaves to this model on this machine."""
    device = next(model.parameters()).device

    def measure() -> Mapping[Precision, float]:
        if is_sharded(model):  # one rank alone has no whole model
            return {}
        precisions: tuple[Precision, ...] = ("bf16", "fp32")
        trials = {p: resolve(config, replace(facts, precision=p)).training for p in precisions}
        return seconds_per_update(model, trials, corpus)

    precision = ranks.by_first(lambda: pick_precision(config.training.precision, device, measure))
    measured = replace(facts, precision=precision)
    if config.training.max_tokens == "auto":
        max_tokens = largest_max_tokens(model, resolve(config, measured).training, corpus, ranks)
        log.info("batches of up to %s tokens", f"{max_tokens:,}")
        measured = replace(measured, max_tokens=max_tokens)
    return measured


def _describe(config: ResolvedConfig, model: Transformer, tokenizer: Tokenizer, ranks: Ranks) -> None:
    n_parameters = f"{sum(parameter.numel() for parameter in model.parameters()):,}"
    n_tokens = f"{_vocab_size(tokenizer):,}"
    device = next(model.parameters()).device.type
    where = f"{ranks.size} × {device}" if ranks.size > 1 else device
    if is_sharded(model):
        where += ", sharded"
    log.info(
        "%s parameters, vocabulary of %s tokens, %s on %s",
        n_parameters,
        n_tokens,
        config.training.precision,
        where,
    )
    if config.model.preset in ("base", "big") and config.model.norm == "post":
        log.info(
            "preset %s is the paper's, with post-norm: the learning rate peaks at %g (model.norm=pre changes both)",
            config.model.preset,
            config.training.learning_rate,
        )


def _warn_of_long_warmup(trainer: Trainer) -> None:
    """Say so if training ends before the learning rate has reached its peak."""
    n_steps, n_warmup = trainer.total_steps(), trainer.settings.warmup_steps
    if n_steps is not None and n_steps < n_warmup:
        log.warning(
            "training ends at step %s, and the learning rate rises until step %s: train for longer (training.%s), "
            "or set a smaller training.warmup_steps",
            f"{n_steps:,}",
            f"{n_warmup:,}",
            "max_steps" if n_steps == trainer.settings.max_steps else "max_epochs",
        )


def _report(data: TrainingData) -> None:
    """Log how many pairs are used and why others are not.

    Raises:
        UserError: none is used.
    """
    dropped = data.corpus.dropped
    log.info("%s training pairs, %s dropped", f"{len(data.corpus):,}", f"{dropped.total():,}")
    for reason, count in dropped.most_common():
        log.info("    %s: %s", f"{count:,}", reason)
    for warning in data.warnings():
        log.warning("%s", warning)
    _require_some(len(data.corpus), dropped)
    for line in data.mixture():
        log.info("    %s", line)


def _require_some(n_kept: int, dropped: Counter[str]) -> None:
    if not n_kept:
        raise UserError(f"all {dropped.total():,} training pairs were dropped: {'; '.join(dropped)}")


def _write_beginning(folder: RunFolder, config: ResolvedConfig, tokenizer: Tokenizer) -> None:
    """Write what is known before the first step: the tokenizer and the config."""
    models = (tokenizer.src_model, tokenizer.tgt_model)
    paths = (folder.joint_tokenizer,) if tokenizer.joint else folder.separate_tokenizers
    for path, model in zip(paths, models, strict=False):
        assert model is not None
        write_atomically(path, partial(Path.write_bytes, data=model))
    write_atomically(folder.config, partial(Path.write_text, data=dump_config(config), encoding="utf-8"))
