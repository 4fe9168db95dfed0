"""The tokenizers of Hugging Face's transformers as SentencePiece models in the order of a model's ids."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mtformer.export.fast_tokenizer import read_fast_tokenizer
from mtformer.export.imported import MAX_VOCABULARY, Tokens, read_json
from mtformer.support.errors import UserError
from mtformer.support.files import read_errors
from mtformer.text.tokenizer.adopt import require_usable
from mtformer.text.tokenizer.sentencepiece_file import SPECIAL_TOKENS, in_order, read_tokens, with_rule
from mtformer.text.tokenizer.vocabulary import RULES

_TARGET = re.compile(r">>(\w+)<<")
_LANGUAGE_TOKEN = re.compile(r"__([a-z]{2,3}(?:_[A-Za-z]{2,4})?)__|([a-z]{2,3}_[A-Z][A-Za-z]{1,3})")
SENTENCEPIECE = ("sentencepiece.bpe.model", "spiece.model")
_PEGASUS_OFFSET = 103
_M2M_LANGUAGES = {  # in the order of their tokens, which the files of a tokenizer may leave out
    "m2m100": (
        "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht hu "
        "hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt "
        "ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu"
    ),
    "wmt21": "en ha is ja cs ru zh de",
}


def read_tokenizer_files(folder: Path, config: Mapping[str, Any]) -> Tokens:
    """Read the tokenizer of a model, whichever of its files there are."""
    if (folder / "source.spm").is_file():
        return _read_marian(folder)
    path = next((path for path in map(folder.joinpath, SENTENCEPIECE) if path.is_file()), None)
    model = _read_sentencepiece(path) if path else None
    special = _special_tokens(folder)
    if (folder / "tokenizer.json").is_file():
        fast, by_id, added = read_fast_tokenizer(folder / "tokenizer.json")
        model, special = model or fast, [*special, *added]
    elif model is None:
        raise UserError(f"{folder} contains no tokenizer: neither {', '.join(SENTENCEPIECE)} nor tokenizer.json")
    else:
        by_id = _ids(folder, model, special, config)
    size = config["vocab_size"]
    if type(size) is not int or size > MAX_VOCABULARY:
        raise UserError(f"vocab_size = {size} is not a size of a vocabulary that can be imported")
    vocabulary = [by_id.get(i, f"<unused_{i}>") for i in range(size)]
    languages = {}
    if config["model_type"] in ("m2m_100", "mbart"):
        known = set(vocabulary)
        matches = filter(None, map(_LANGUAGE_TOKEN.fullmatch, special))
        languages = {match[1] or match[2]: match[0] for match in matches if match[0] in known}
    return Tokens((_in_order(model, vocabulary, special),), languages)


def _ids(folder: Path, model: bytes, special: Sequence[str], config: Mapping[str, Any]) -> dict[int, str]:
    """Return the tokens by id where only a SentencePiece model and perhaps a vocabulary say them."""
    texts = [token.text for token in read_tokens(model)]
    if (folder / "vocab.json").is_file():
        by_id = _read_vocabulary(folder / "vocab.json")
    elif config["model_type"] == "pegasus":
        reserved = ["<pad>", "</s>", "<mask_1>", "<mask_2>", *(f"<unk_{i}>" for i in range(2, _PEGASUS_OFFSET))]
        by_id = dict(enumerate([*reserved, *texts[2:]]))
    else:  # the order of fairseq
        by_id = dict(enumerate(["<s>", "<pad>", "</s>", "<unk>", *texts[3:]]))
    known = set(by_id.values())
    return by_id | dict(enumerate((text for text in special if text not in known), max(by_id) + 1))


def _read_vocabulary(path: Path) -> dict[int, str]:
    """Return the tokens by id of a file that has the ids by token."""
    ids = read_json(path)
    if not ids or not all(type(i) is int and 0 <= i < MAX_VOCABULARY for i in ids.values()):
        raise UserError(f"{path} is not a vocabulary: tokens with their ids")
    return {i: text for text, i in ids.items()}


def _special_tokens(folder: Path) -> list[str]:
    """Return the special tokens that the settings of a tokenizer list: languages in order, then the mask."""
    settings = read_json(folder / "special_tokens_map.json", {}) | read_json(folder / "tokenizer_config.json", {})
    added = settings.get("added_tokens_decoder", {})
    listed = [added[i] for i in sorted(added, key=int)]
    for name in ("extra_special_tokens", "additional_special_tokens"):
        tokens = settings.get(name) or []
        listed += tokens.values() if isinstance(tokens, dict) else tokens  # newer files name a role for each
    listed.append(settings.get("mask_token") or SPECIAL_TOKENS[0])
    texts: list[Any] = [token.get("content") if isinstance(token, dict) else token for token in listed]
    special = [token for token in dict.fromkeys(texts) if token not in SPECIAL_TOKENS]
    if (folder / "vocab.json").is_file() and not any(map(_LANGUAGE_TOKEN.fullmatch, special)):
        codes = _M2M_LANGUAGES.get(settings.get("language_codes") or "m2m100", "")
        special += [f"__{code}__" for code in codes.split()]
    return special


def _read_marian(folder: Path) -> Tokens:
    """Read two SentencePiece models and the vocabulary, or both, that give their tokens other ids."""
    files = [folder / "vocab.json", folder / "target_vocab.json"]
    vocabularies = [_read_vocabulary(path) for path in files if path.is_file()]
    if not vocabularies:
        raise UserError(f"{folder} lacks vocab.json")
    targets = targets_in(vocabularies[0].values())
    models = []
    for name, by_id in zip(("source.spm", "target.spm"), vocabularies * 2, strict=False):
        texts = [by_id.get(i, f"<unused_{i}>") for i in range(max(by_id) + 1)]
        models.append(_in_order(_read_sentencepiece(folder / name), texts, [f">>{lang}<<" for lang in targets]))
    return Tokens(tuple(models), targets=targets)


def _read_sentencepiece(path: Path) -> bytes:
    """Read a SentencePiece model of a kind that we support."""
    with read_errors(path):
        model = path.read_bytes()
    try:
        require_usable(model)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    return model


def targets_in(vocabulary: Iterable[str]) -> list[str]:
    """Return the languages that tokens of a vocabulary such as ``>>deu<<`` ask for."""
    return [match[1] for text in vocabulary if (match := _TARGET.fullmatch(text))]


def _in_order(model: bytes, vocabulary: Sequence[str], special: Sequence[str]) -> bytes:
    """Return a SentencePiece model with the ids of a vocabulary, to which texts go as they are."""
    return with_rule(in_order(model, vocabulary, set(special)), RULES["identity"])
