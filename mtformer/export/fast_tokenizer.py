"""Read the ``tokenizer.json`` of a fast tokenizer of Hugging Face as a SentencePiece model that splits texts alike."""

import base64
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mtformer.export.imported import MAX_VOCABULARY
from mtformer.support.errors import UserError
from mtformer.text.tokenizer.sentencepiece_file import BPE, UNIGRAM, Kind, Token, make_model
from mtformer.text.tokenizer.vocabulary import byte_of


def read_fast_tokenizer(path: Path) -> tuple[bytes, dict[int, str], list[str]]:
    """Return the SentencePiece model, all tokens by id, and those of them that no text contains.

    Raises:
        UserError: the tokenizer splits texts in a way that SentencePiece does not have.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        model, added = content["model"], {token["id"]: token["content"] for token in content["added_tokens"]}
        kind = model.get("type", "Unigram" if "unk_id" in model else "BPE")
        spaces = json.dumps([content.get("pre_tokenizer"), content.get("normalizer")], ensure_ascii=False)
        if kind not in ("Unigram", "BPE") or "▁" not in spaces:  # which a text gets before it and for its spaces
            raise UserError(f"{path}: a tokenizer of the kind {kind} without ▁ for spaces cannot be imported")
        tokens = _unigram(model) if kind == "Unigram" else _bpe(model)
        character_map = next(_character_maps(content["normalizer"]), b"")
        texts = dict(enumerate(token.text for token in tokens))
        special = set(added.values())
        own = [Token("<unk>", kind=Kind.UNKNOWN), Token("<s>", kind=Kind.CONTROL), Token("</s>", kind=Kind.CONTROL)]
        own += [token for token in tokens if token.text not in special]
        algorithm = UNIGRAM if kind == "Unigram" else BPE
        made = make_model(own, algorithm=algorithm, character_map=character_map, rule="")
    except (ValueError, LookupError, TypeError, AttributeError, struct.error) as error:
        raise UserError(f"{path}: this is not a fast tokenizer: {error}") from None
    return made, texts | added, [*added.values()]


def _unigram(model: dict[str, Any]) -> list[Token]:
    return [Token(text, score, _kind(text, model)) for text, score in model["vocab"]]


def _bpe(model: dict[str, Any]) -> list[Token]:
    """Give each token the rank of the first merge that makes it, and characters lower ones."""
    ranks: dict[str, int] = {}
    for rank, merge in enumerate(model["merges"]):
        ranks.setdefault("".join(merge.split(" ") if isinstance(merge, str) else merge), rank)
    by_id = {i: text for text, i in model["vocab"].items()}
    if max(by_id) >= MAX_VOCABULARY:
        raise ValueError(f"{max(by_id)} is no id of a token")
    texts = [by_id.get(i, f"<unused{i}>") for i in range(max(by_id) + 1)]
    return [Token(text, float(-ranks.get(text, len(ranks) + i)), _kind(text, model)) for i, text in enumerate(texts)]


def _kind(text: str, model: dict[str, Any]) -> Kind:
    return Kind.BYTE if model.get("byte_fallback") and byte_of(text) is not None else Kind.NORMAL


def _character_maps(normalizer: Any) -> Iterator[bytes]:
    if normalizer and normalizer["type"] == "Precompiled":
        yield base64.b64decode(normalizer["precompiled_charsmap"])
    elif normalizer and normalizer["type"] == "Sequence":
        for part in normalizer["normalizers"]:
            yield from _character_maps(part)
