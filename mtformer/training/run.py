"""A run: everything that happens between a config and a trained model, kept in one folder."""

import logging
import shutil
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import torch

from mtformer.bundle import build_model, versions
from mtformer.config import Config, Source, dump_config, load_config, sized_to_data
from mtformer.errors import UserError
from mtformer.files import write_atomically
from mtformer.text.corpus import Corpus, encode_corpus
from mtformer.text.sources import SentencePair, fingerprint, read_pairs
from mtformer.text.tokenizer import Tokenizer, train_tokenizer
from mtformer.training.hardware import pick_device, pick_precision
from mtformer.training.trainer import Trainer
from mtformer.training.validation import Validator

log = logging.getLogger(__name__)

_JOINT_TOKENIZER = "tokenizer.model"
_SEPARATE_TOKENIZERS = ("tokenizer.src.model", "tokenizer.tgt.model")
_FIXED_SECTIONS = ("data", "tokenizer", "model")  # what a run cannot change under way


def train(config: Config, *, fresh: bool = False) -> Path:
    """Train a model by ``config`` and return its bundle's path; a run that is there already goes on.

    Args:
        config: as loaded, with what the data decides left open.
        fresh: start over; what the run left behind before is removed once the data has been read.

    Raises:
        UserError: the data cannot be used, or the run was made by a config that does not agree with this one.
        MtformerError: training failed; the checkpoints stay.
    """
    folder = run_folder(config)
    data = config.data
    n_pairs, train_digest = _count(_read(config, data.train))
    if not n_pairs:
        raise UserError("the training sources hold no sentence pairs")
    valid_pairs = list(_read(config, data.valid))
    if not valid_pairs:
        raise UserError("the validation sources hold no sentence pairs")
    wants_vocab_size = config.tokenizer.vocab_size is not None
    config = sized_to_data(config, n_pairs)
    device = pick_device(config.training.device)
    precision = pick_precision(config.training.precision, device)
    config = config.model_copy(
        update={
            "training": config.training.model_copy(update={"precision": precision}),
            "provenance": {
                "versions": versions(),
                "fingerprints": {"train": train_digest, "valid": fingerprint(valid_pairs)},
            },
        }
    )
    if fresh:
        _clear(folder)
    tokenizer = _load_tokenizer(folder)
    if tokenizer is None:
        log.info("training the tokenizer on %s pairs", f"{n_pairs:,}")
        tokenizer = train_tokenizer(
            _read(config, data.train),
            config.tokenizer,
            data.src_lang,
            data.tgt_lang,
            seed=config.training.seed,
            adjust=not wants_vocab_size,
        )
    vocab_size = max(tokenizer.src_vocab_size, tokenizer.tgt_vocab_size)
    config = config.model_copy(update={"tokenizer": config.tokenizer.model_copy(update={"vocab_size": vocab_size})})
    _require_same_run(folder, config)
    corpus = encode_corpus(_read(config, data.train), tokenizer, max_length=data.max_length, max_ratio=data.max_ratio)
    _report_corpus(corpus, n_pairs)
    _save_beginning(folder, config, tokenizer)

    torch.manual_seed(config.training.seed)
    model = build_model(config, tokenizer).to(device)
    trainer = Trainer(config, model, tokenizer, corpus, Validator(config, tokenizer, valid_pairs), folder)
    n_parameters = sum(parameter.numel() for parameter in model.parameters())
    log.info(
        "%.1f million parameters, %s pieces, on %s in %s", n_parameters / 1e6, f"{vocab_size:,}", device, precision
    )
    if trainer.resume():
        log.info("going on from step %d", trainer.state.step)
    reason = trainer.fit()
    log.info("stopped at step %d after %.1f min: %s", trainer.state.step, trainer.state.seconds / 60, reason)
    return folder / "model.safetensors"


def run_folder(config: Config) -> Path:
    """Return the folder of the run."""
    return config.run.dir.expanduser() / (config.run.name or "run")


def _read(config: Config, sources: Iterable[Source]) -> Iterator[SentencePair]:
    return read_pairs(sources, config.data.src_lang, config.data.tgt_lang)


def _count(pairs: Iterable[SentencePair]) -> tuple[int, str]:
    """Count ``pairs`` and take their fingerprint in one reading."""
    n_pairs = 0

    def counted() -> Iterator[SentencePair]:
        nonlocal n_pairs
        for pair in pairs:
            n_pairs += 1
            yield pair

    digest = fingerprint(counted())
    return n_pairs, digest


def _report_corpus(corpus: Corpus, n_pairs: int) -> None:
    dropped = sum(corpus.dropped.values())
    log.info("%s training pairs, %s dropped", f"{len(corpus):,}", f"{dropped:,}")
    for reason, count in corpus.dropped.most_common():
        log.info("    %s: %s", f"{count:,}", reason)
    if not len(corpus):
        raise UserError(f"all {n_pairs:,} training pairs were dropped: {', '.join(corpus.dropped)}")


def _load_tokenizer(folder: Path) -> Tokenizer | None:
    joint, separate = folder / _JOINT_TOKENIZER, [folder / name for name in _SEPARATE_TOKENIZERS]
    if joint.is_file():
        return Tokenizer(joint.read_bytes())
    if all(path.is_file() for path in separate):
        return Tokenizer(*(path.read_bytes() for path in separate))
    return None


def _save_beginning(folder: Path, config: Config, tokenizer: Tokenizer) -> None:
    """Write what is known before the first step: the tokenizer and the config."""
    models = (tokenizer.src_model, tokenizer.tgt_model)
    names = (_JOINT_TOKENIZER,) if tokenizer.joint else _SEPARATE_TOKENIZERS
    for name, model in zip(names, models, strict=False):
        assert model is not None
        write_atomically(folder / name, partial(Path.write_bytes, data=model))
    write_atomically(folder / "config.yaml", partial(Path.write_text, data=dump_config(config), encoding="utf-8"))


def _require_same_run(folder: Path, config: Config) -> None:
    """Refuse to go on with a run that another config, or other data, has begun."""
    path = folder / "config.yaml"
    if not path.is_file():
        return
    begun = load_config(path)
    differences = []
    for section in _FIXED_SECTIONS:
        old, new = getattr(begun, section).model_dump(), getattr(config, section).model_dump()
        differences += [
            f"{section}.{key} was {old[key]}, now {new[key]}"
            for key in new
            if key not in ("preset", "test") and old[key] != new[key]
        ]
    old_prints, new_prints = begun.provenance.get("fingerprints", {}), config.provenance["fingerprints"]
    differences += [f"the text of data.{split} has changed" for split in new_prints if old_prints != new_prints]
    if differences:
        raise UserError(
            f"{folder} holds a run that was begun otherwise: {'; '.join(differences)}. "
            "Give it another name (--set run.name=…) or start over (--fresh)"
        )


def _clear(folder: Path) -> None:
    """Remove what a run leaves behind, and nothing else."""
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    for name in ("config.yaml", "metrics.jsonl", "model.safetensors", _JOINT_TOKENIZER, *_SEPARATE_TOKENIZERS):
        (folder / name).unlink(missing_ok=True)
