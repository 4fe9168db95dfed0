"""The tokenizer of Marian in Hugging Face's transformers: SentencePiece models, and a vocabulary beside them.

It suits Transformers that know other tokens than their SentencePiece models, which fast tokenizers cannot be told.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mtformer.bundle.format import Bundle
from mtformer.text.tokenizer.sentencepiece_file import BPE, Kind, read_settings, read_tokens
from mtformer.text.tokenizer.vocabulary import Vocabulary


def has_unknown_tokens(model: bytes) -> bool:
    """Tell whether a SentencePiece model has tokens that its Transformer lacks, or lacks some that texts may have.

    The latter are unused there. They do no harm if no text is split into them.
    """
    tokens, settings = read_tokens(model), read_settings(model)
    if settings.n_known not in (None, len(tokens)):
        return True
    normal = {token.text for token in tokens if token.kind == Kind.NORMAL}
    unused = [token.text for token in tokens if token.kind == Kind.UNUSED and not token.text.startswith("<")]
    if settings.algorithm == BPE:
        known = normal.union(unused)
        return any(text[:cut] in known and text[cut:] in known for text in unused for cut in range(1, len(text)))
    return any(character not in normal for text in unused for character in text)


def write_marian_tokenizer(folder: Path, bundle: Bundle, special: Sequence[str]) -> None:
    """Write the tokenizer of a model.

    Args:
        folder: where to.
        bundle: the model.
        special: the tokens of languages, which no text contains.
    """
    tokenizer = bundle.tokenizer
    (folder / "source.spm").write_bytes(tokenizer.src_model)
    (folder / "target.spm").write_bytes(tokenizer.tgt_model or tokenizer.src_model)
    _write_json(folder / "vocab.json", _ids(tokenizer.src))
    is_joint = bundle.header.architecture.joint_vocab
    if not is_joint:
        _write_json(folder / "target_vocab.json", _ids(tokenizer.tgt))
    settings = {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": bundle.header.src_lang,
        "target_lang": bundle.header.tgt_lang,
        "separate_vocabs": not is_joint,
        "model_max_length": bundle.header.architecture.max_length,
        "pad_token": "<pad>",
        "unk_token": "<unk>",
        "eos_token": "</s>",
        "extra_special_tokens": [*special],
    }
    _write_json(folder / "tokenizer_config.json", settings)


def _ids(vocabulary: Vocabulary) -> dict[str, int]:
    return {text: i for i, text in enumerate(vocabulary.tokens(range(vocabulary.vocab_size)))}


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
