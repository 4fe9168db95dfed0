"""The tokens of a trace: those of a tokenizer by their ids, with the characters that bytes spell."""

from collections.abc import Sequence
from itertools import groupby

from mtformer.explain.trace import Token
from mtformer.model.architecture import SpecialIds
from mtformer.text.slots import readable
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.vocabulary import byte_of


def source_tokens(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[Token, ...]:
    """Return the tokens of source ids."""
    return _tokens(ids, list(map(readable, tokenizer.src_tokens(ids))), tokenizer.special_ids)


def target_tokens(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[Token, ...]:
    """Return the tokens of target ids."""
    return _tokens(ids, list(map(readable, tokenizer.tgt_tokens(ids))), tokenizer.special_ids)


def _tokens(ids: Sequence[int], texts: Sequence[str], special_ids: SpecialIds) -> tuple[Token, ...]:
    characters: list[str | None] = []
    for is_byte, run in groupby(texts, key=lambda text: byte_of(text) is not None):
        spelled = list(run)
        run_bytes = bytes(byte for text in spelled if (byte := byte_of(text)) is not None)
        characters += _characters(run_bytes) if is_byte else [None] * len(spelled)
    rows = zip(ids, texts, characters, strict=True)
    return tuple(
        Token(text, i, "special" if i in special_ids else "word" if byte_of(text) is None else "byte", character)
        for i, text, character in rows
    )


def _characters(run: bytes) -> list[str | None]:
    """Return for each byte the character that it is a part of; None where the bytes are not UTF-8."""
    result: list[str | None] = []
    while len(result) < len(run):
        left = run[len(result) :]
        for length in range(1, 5):
            try:
                result += [left[:length].decode()] * length
                break
            except UnicodeDecodeError:
                continue
        else:
            result.append(None)
    return result
