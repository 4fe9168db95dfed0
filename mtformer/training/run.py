"""A run: everything that happens between a config and a trained model, kept in one folder."""

import logging
import shutil
from collections.abc import Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Literal

import torch
import yaml

from mtformer.bundle import Bundle, load_bundle
from mtformer.config import Config, dump_config, sized_to_data
from mtformer.data.corpus import Corpus
from mtformer.data.training import TrainingData
from mtformer.errors import UserError
from mtformer.files import write_atomically
from mtformer.hardware import keep_freed_memory, pick_device, pick_precision
from mtformer.model.transformer import Transformer
from mtformer.model.weights import build_model
from mtformer.progress import watched
from mtformer.runs import RunFolder
from mtformer.text.sources import ParallelText, SentencePair, fingerprint
from mtformer.text.tokenizer import Tokenizer, train_tokenizer
from mtformer.training.checkpoint import list_checkpoints
from mtformer.training.finetune import freeze, initialize, tokenizer_of, with_settings_of
from mtformer.training.forecast import forecast
from mtformer.training.memory import largest_max_tokens
from mtformer.training.ranks import ALONE, Ranks, joined_ranks, local_device
from mtformer.training.sharding import is_sharded, shard
from mtformer.training.trainer import Trainer
from mtformer.training.validation import Validator
from mtformer.training.writers import make_writers, require_packages
from mtformer.versions import versions

log = logging.getLogger(__name__)

_MAY_DIFFER = ("preset", "train", "valid", "test")  # names; the sizes and the texts themselves are compared
_OF_TRAINING = ("optimizer", "freeze", "early_stopping_metric")  # what a checkpoint's moments and best scores are of


def has_checkpoint(config: Config) -> bool:
    """Tell whether the run has got so far that it can go on."""
    return bool(list_checkpoints(RunFolder.of(config).checkpoints))


def train(config: Config, *, fresh: bool = False) -> Path:
    """Train a model by ``config`` and return its bundle's path; a run that is there already goes on.

    Args:
        config: as loaded, with what the data decides left open.
        fresh: start over; what the run left behind before is removed once all that the config names has been read.

    Raises:
        UserError: the data cannot be used, or the run was begun by a config that does not agree with this one.
        MtformerError: training failed; the checkpoints stay.
    """
    with joined_ranks(pick_device(config.training.device)) as ranks:
        trainer = _prepare(config, ranks, fresh)
        folder = RunFolder.of(config)
        ranks.by_first(lambda: _take_folder(folder, trainer.config, trainer.tokenizer, fresh))
        if trainer.resume():
            log.info("going on from step %d", trainer.state.step)
        with ExitStack() as writers:
            if ranks.is_first:
                made = make_writers(trainer.config, folder, trainer.state.step + 1)
                trainer.writers = [writers.enter_context(closing(writer)) for writer in made]
            reason = trainer.fit()
        log.info("stopped at step %d after %.1f min: %s", trainer.state.step, trainer.state.seconds / 60, reason)
        return folder.bundle


def dry_run(config: Config, *, fresh: bool = False) -> str:
    """Do all that comes before training, measure a few updates, and describe the run in words; nothing is written.

    Raises:
        UserError: as :func:`train` would.
    """
    trainer = _prepare(config, ALONE, fresh)
    return forecast(trainer)


def _prepare(config: Config, ranks: Ranks, fresh: bool) -> Trainer:
    """Read the text, get the tokenizer and build the model; nothing is written."""
    device = local_device(pick_device(config.training.device), ranks)
    require_packages(config)
    data = config.data
    train_pairs = ParallelText(data.train, data.src_lang, data.tgt_lang)
    valid_pairs = list(ParallelText(data.valid, data.src_lang, data.tgt_lang))
    base = load_bundle(config.training.init_from) if config.training.init_from else None
    if base:
        config = with_settings_of(config, base)
    config, tokenizer = ranks.by_first(lambda: _begin(config, train_pairs, valid_pairs, base, fresh))

    training_data = TrainingData(config, train_pairs, tokenizer)
    _report(training_data.corpus)
    keep_freed_memory()
    torch.manual_seed(config.training.seed)
    model = build_model(config, tokenizer)
    if base:
        initialize(model, tokenizer, base)
    freeze(model, config.training.freeze)
    if config.training.shard and ranks.size > 1:
        shard(model, device)
    else:
        model.to(device)
    _describe(config, model, device, ranks)
    if config.training.max_tokens == "auto":
        config = _with_largest_batches(config, model, training_data.corpus, ranks)
    validator = Validator(config, tokenizer, valid_pairs)
    return Trainer(config, model, tokenizer, training_data, validator, RunFolder.of(config), ranks)


def _begin(
    config: Config,
    train_pairs: ParallelText,
    valid_pairs: Sequence[SentencePair],
    base: Bundle | None,
    fresh: bool,
) -> tuple[Config, Tokenizer]:
    """Resolve the config and get the tokenizer, which is that of the run's folder if it holds this run already."""
    folder, data = RunFolder.of(config), config.data
    vocab_size_is_open = config.tokenizer.vocab_size is None
    config = _resolve(config, train_pairs, valid_pairs)
    begun = None if fresh else _load_beginning(folder)
    if begun:
        begun_config, tokenizer = begun
        if vocab_size_is_open:  # then it is what the text supported
            config = _with_vocab_size(config, tokenizer)
        _require_same_run(folder, begun_config, config)
        if config.training.max_tokens == "auto":  # found when the run began
            config = _with_max_tokens(config, begun_config.training.max_tokens)
    elif base:
        tokenizer = tokenizer_of(base, config, train_pairs)
    else:
        log.info("training the tokenizer")
        languages, seed = (data.src_lang, data.tgt_lang), config.training.seed
        tokenizer = train_tokenizer(train_pairs, config.tokenizer, *languages, seed=seed, adjust=vocab_size_is_open)
        config = _with_vocab_size(config, tokenizer)
    return config, tokenizer


def _describe(config: Config, model: Transformer, device: torch.device, ranks: Ranks) -> None:
    n_parameters = sum(parameter.numel() for parameter in model.parameters()) / 1e6
    n_pieces = f"{config.tokenizer.vocab_size:,}"
    where = f"{ranks.size} × {device.type}" if ranks.size > 1 else device.type
    if is_sharded(model):
        where += ", sharded"
    log.info("%.1f million parameters, %s pieces, %s on %s", n_parameters, n_pieces, config.training.precision, where)


def _resolve(config: Config, train_pairs: ParallelText, valid_pairs: Sequence[SentencePair]) -> Config:
    """Fill in what the data and the hardware decide, and note versions and fingerprints."""
    train_text = fingerprint(watched(train_pairs, "reading the text", "pairs"))
    valid_text = fingerprint(valid_pairs)
    for name, text in (("training", train_text), ("validation", valid_text)):
        if not text.n_pairs:
            raise UserError(f"the {name} sources hold no sentence pairs")
    config = sized_to_data(config, train_text.n_pairs)
    precision = pick_precision(config.training.precision, pick_device(config.training.device))
    provenance = {
        "versions": versions(),
        "fingerprints": {"train": train_text.digest, "valid": valid_text.digest},
    }
    training = config.training.model_copy(update={"precision": precision})
    return config.model_copy(update={"training": training, "provenance": provenance})


def _with_largest_batches(config: Config, model: Transformer, corpus: Corpus, ranks: Ranks) -> Config:
    """Let each batch be as large as the memory of all ranks together allows."""
    max_tokens = largest_max_tokens(model, config.training, corpus, ranks)
    log.info("batches of up to %s tokens", f"{max_tokens:,}")
    return _with_max_tokens(config, max_tokens)


def _with_max_tokens(config: Config, max_tokens: int | Literal["auto"] | None) -> Config:
    return config.model_copy(update={"training": config.training.model_copy(update={"max_tokens": max_tokens})})


def _with_vocab_size(config: Config, tokenizer: Tokenizer) -> Config:
    vocab_size = max(tokenizer.src_vocab_size, tokenizer.tgt_vocab_size)
    return config.model_copy(update={"tokenizer": config.tokenizer.model_copy(update={"vocab_size": vocab_size})})


def _report(corpus: Corpus) -> None:
    n_dropped = sum(corpus.dropped.values())
    log.info("%s training pairs, %s dropped", f"{len(corpus):,}", f"{n_dropped:,}")
    for reason, count in corpus.dropped.most_common():
        log.info("    %s: %s", f"{count:,}", reason)
    if not len(corpus):
        raise UserError(f"all {n_dropped:,} training pairs were dropped: {'; '.join(corpus.dropped)}")


def _load_beginning(folder: RunFolder) -> tuple[Config, Tokenizer] | None:
    """Read what :func:`_take_folder` has written, if it has, wherever the texts of that config are now."""
    if not folder.config.is_file() and not list_checkpoints(folder.checkpoints):
        return None
    paths = [folder.joint_tokenizer] if folder.joint_tokenizer.is_file() else folder.separate_tokenizers
    try:
        config = Config.model_validate(yaml.safe_load(folder.config.read_text(encoding="utf-8")))
        return config, Tokenizer(*(path.read_bytes() for path in paths))
    except (OSError, ValueError, yaml.YAMLError, UserError):
        raise UserError(
            f"{folder.path} holds what is not an intact run of this version: start over with --fresh"
        ) from None


def _take_folder(folder: RunFolder, config: Config, tokenizer: Tokenizer, fresh: bool) -> None:
    """Write what is known before the first step: the tokenizer and the config."""
    if fresh:
        _clear(folder)
    models = (tokenizer.src_model, tokenizer.tgt_model)
    paths = (folder.joint_tokenizer,) if tokenizer.joint else folder.separate_tokenizers
    for path, model in zip(paths, models, strict=False):
        assert model is not None
        write_atomically(path, partial(Path.write_bytes, data=model))
    write_atomically(folder.config, partial(Path.write_text, data=dump_config(config), encoding="utf-8"))


def _require_same_run(folder: RunFolder, begun: Config, config: Config) -> None:
    """Refuse to go on with a run that another config, or other data, has begun."""
    differences = []
    for section in ("data", "tokenizer", "model"):  # what a run cannot change under way
        old, new = getattr(begun, section).model_dump(), getattr(config, section).model_dump()
        differences += [
            f"{section}.{key} was {old[key]}, now {new[key]}"
            for key in new
            if key not in _MAY_DIFFER and old[key] != new[key]
        ]
    old, new = begun.training, config.training
    differences += [
        f"training.{key} was {getattr(old, key)}, now {getattr(new, key)}"
        for key in _OF_TRAINING
        if getattr(old, key) != getattr(new, key)
    ]
    if (old.init_from is None) != (new.init_from is None):
        differences.append(f"training.init_from was {old.init_from}, now {new.init_from}")
    old_text, new_text = begun.provenance.get("fingerprints", {}), config.provenance["fingerprints"]
    differences += [f"the text of data.{key} has changed" for key in new_text if old_text.get(key) != new_text[key]]
    if differences:
        raise UserError(
            f"{folder.path} holds a run that was begun otherwise: {'; '.join(differences)}. "
            "Give the new one another name (--set run.name=…) or start over (--fresh)"
        )


def _clear(folder: RunFolder) -> None:
    """Remove what a run leaves behind, and nothing else."""
    for path in (folder.checkpoints, folder.tensorboard):
        shutil.rmtree(path, ignore_errors=True)
    tokenizers = (folder.joint_tokenizer, *folder.separate_tokenizers)
    for path in (folder.config, folder.metrics, folder.bundle, folder.wandb_id, *tokenizers):
        path.unlink(missing_ok=True)
