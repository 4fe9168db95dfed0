"""A run: everything that happens between a config and a trained model, kept in one folder."""

import logging
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch
import yaml

from mtformer.bundle import build_model, versions
from mtformer.config import Config, dump_config, sized_to_data
from mtformer.errors import UserError
from mtformer.files import write_atomically
from mtformer.hardware import keep_freed_memory, pick_device, pick_precision
from mtformer.model.transformer import Transformer
from mtformer.progress import watched
from mtformer.text.corpus import Corpus, encode_corpus
from mtformer.text.sources import ParallelText, SentencePair, fingerprint
from mtformer.text.tokenizer import Tokenizer, train_tokenizer
from mtformer.training.checkpoint import list_checkpoints
from mtformer.training.ranks import Ranks, joined_ranks, local_device
from mtformer.training.trainer import Trainer
from mtformer.training.validation import Validator

log = logging.getLogger(__name__)

_JOINT_TOKENIZER = "tokenizer.model"
_SEPARATE_TOKENIZERS = ("tokenizer.src.model", "tokenizer.tgt.model")
_CONFIG = "config.yaml"
_MAY_DIFFER = ("preset", "train", "valid", "test")  # names; the sizes and the texts themselves are compared


def run_folder(config: Config) -> Path:
    """Return the folder of the run."""
    return config.run.dir.expanduser() / (config.run.name or "run")


def has_checkpoint(config: Config) -> bool:
    """Tell whether the run has got so far that it can go on."""
    return bool(list_checkpoints(run_folder(config) / "checkpoints"))


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
        data = config.data
        train_pairs = ParallelText(data.train, data.src_lang, data.tgt_lang)
        valid_pairs = list(ParallelText(data.valid, data.src_lang, data.tgt_lang))
        config, tokenizer = ranks.by_first(lambda: _begin(config, train_pairs, valid_pairs, fresh))
        pairs = watched(train_pairs, "encoding the text", "pairs")
        corpus = encode_corpus(pairs, tokenizer, max_length=data.max_length, max_ratio=data.max_ratio)
        _report(corpus)
        ranks.by_first(lambda: _take_folder(run_folder(config), config, tokenizer, fresh))
        keep_freed_memory()
        torch.manual_seed(config.training.seed)
        device = local_device(pick_device(config.training.device))
        model = build_model(config, tokenizer).to(device)
        _describe(config, model, device, ranks)
        validator = Validator(config, tokenizer, valid_pairs)
        folder = run_folder(config)
        trainer = Trainer(config, model, tokenizer, corpus, validator, folder, train_pairs.places, ranks)
        if trainer.resume():
            log.info("going on from step %d", trainer.state.step)
        reason = trainer.fit()
        log.info("stopped at step %d after %.1f min: %s", trainer.state.step, trainer.state.seconds / 60, reason)
        return folder / "model.safetensors"


def _begin(
    config: Config, train_pairs: ParallelText, valid_pairs: Sequence[SentencePair], fresh: bool
) -> tuple[Config, Tokenizer]:
    """Resolve the config and get the tokenizer, which is that of the run's folder if it holds this run already."""
    folder, data = run_folder(config), config.data
    vocab_size_is_open = config.tokenizer.vocab_size is None
    config = _resolve(config, train_pairs, valid_pairs)
    begun = None if fresh else _load_beginning(folder)
    if begun:
        begun_config, tokenizer = begun
        if vocab_size_is_open:  # then it is what the text supported
            config = _with_vocab_size(config, tokenizer)
        _require_same_run(folder, begun_config, config)
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


def _load_beginning(folder: Path) -> tuple[Config, Tokenizer] | None:
    """Read what :func:`_take_folder` has written, if it has, wherever the texts of that config are now."""
    if not (folder / _CONFIG).is_file() and not list_checkpoints(folder / "checkpoints"):
        return None
    joint, separate = folder / _JOINT_TOKENIZER, [folder / name for name in _SEPARATE_TOKENIZERS]
    paths = [joint] if joint.is_file() else separate
    try:
        config = Config.model_validate(yaml.safe_load((folder / _CONFIG).read_text(encoding="utf-8")))
        return config, Tokenizer(*(path.read_bytes() for path in paths))
    except (OSError, ValueError, yaml.YAMLError, UserError):
        raise UserError(f"{folder} holds what is not an intact run of this version: start over with --fresh") from None


def _take_folder(folder: Path, config: Config, tokenizer: Tokenizer, fresh: bool) -> None:
    """Write what is known before the first step: the tokenizer and the config."""
    if fresh:
        _clear(folder)
    models = (tokenizer.src_model, tokenizer.tgt_model)
    names = (_JOINT_TOKENIZER,) if tokenizer.joint else _SEPARATE_TOKENIZERS
    for name, model in zip(names, models, strict=False):
        assert model is not None
        write_atomically(folder / name, partial(Path.write_bytes, data=model))
    write_atomically(folder / _CONFIG, partial(Path.write_text, data=dump_config(config), encoding="utf-8"))


def _require_same_run(folder: Path, begun: Config, config: Config) -> None:
    """Refuse to go on with a run that another config, or other data, has begun."""
    differences = []
    for section in ("data", "tokenizer", "model"):  # what a run cannot change under way
        old, new = getattr(begun, section).model_dump(), getattr(config, section).model_dump()
        differences += [
            f"{section}.{key} was {old[key]}, now {new[key]}"
            for key in new
            if key not in _MAY_DIFFER and old[key] != new[key]
        ]
    old_text, new_text = begun.provenance.get("fingerprints", {}), config.provenance["fingerprints"]
    differences += [f"the text of data.{key} has changed" for key in new_text if old_text.get(key) != new_text[key]]
    if differences:
        raise UserError(
            f"{folder} holds a run that was begun otherwise: {'; '.join(differences)}. "
            "Give the new one another name (--set run.name=…) or start over (--fresh)"
        )


def _clear(folder: Path) -> None:
    """Remove what a run leaves behind, and nothing else."""
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    for name in (_CONFIG, "metrics.jsonl", "model.safetensors", _JOINT_TOKENIZER, *_SEPARATE_TOKENIZERS):
        (folder / name).unlink(missing_ok=True)
