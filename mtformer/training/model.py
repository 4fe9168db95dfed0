"""The model that a config describes, and the header of its bundle."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from mtformer.bundle.header import AlignmentHead, Header, SearchDefaults
from mtformer.config import Config, ResolvedConfig
from mtformer.model.architecture import Architecture
from mtformer.model.transformer import Transformer
from mtformer.text.tokenizer.tokenizer import Tokenizer


def build_model(config: Config, tokenizer: Tokenizer, base: Architecture | None = None) -> Transformer:
    """Build the Transformer of ``config`` for the vocabularies of ``tokenizer``, with fresh weights.

    What no config can say is as in ``base``.
    """
    architecture = config.model.architecture(
        src_vocab_size=tokenizer.src_vocab_size,
        tgt_vocab_size=tokenizer.tgt_vocab_size,
        joint=tokenizer.joint if base is None else base.joint_vocab,
        max_length=config.data.max_length,
        special_ids=tokenizer.special_ids,
    )
    if base is not None:
        kept = base.model_dump(include={"output_bias", "embedding_norm"})
        architecture = architecture.model_copy(update=kept)
    return Transformer(architecture)


def make_header(
    config: ResolvedConfig,
    model: Transformer,
    tokenizer: Tokenizer,
    scores: Mapping[str, float] | None = None,
    alignment_heads: Sequence[AlignmentHead] = (),
    known_words: Iterable[str] = (),
) -> Header:
    """Return the header of the bundle of a model that was trained as ``config`` says."""
    data = config.data
    return Header(
        src_lang=data.src_lang,
        tgt_lang=data.tgt_lang,
        directions=tuple(data.directions) if len(data.directions) > 1 else (),
        architecture=model.architecture,
        tokenizer_type=tokenizer.src.type,
        normalization=tokenizer.src.form,
        search=SearchDefaults(**config.search.model_dump()),
        scores=dict(scores or {}),
        bleu_tokenize=config.eval.bleu_tokenize,
        alignment_heads=tuple(alignment_heads),
        prefixes=data.prefixes,
        known_words=tuple(sorted(known_words)),
        provenance=_without_folders(
            config.provenance.model_dump() | {"config": config.model_dump(exclude={"provenance", "run"})}
        ),
    )


def _without_folders(value: Any) -> Any:
    """Replace each path inside ``value`` by the file's name: a bundle does not reveal the folders of its maker."""
    if isinstance(value, dict):
        return {key: _without_folders(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_folders(item) for item in value]
    is_path = isinstance(value, str) and (value.startswith(("/", "~")) or PurePath(value).is_absolute())
    return PurePath(value).name if is_path or isinstance(value, PurePath) else value
