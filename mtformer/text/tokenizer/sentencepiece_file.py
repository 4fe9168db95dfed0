"""The file of a SentencePiece model, which is a protocol buffer, read and written without a library for those.

The fields are those of ``sentencepiece_model.proto`` in SentencePiece's sources; for the wire format, see
https://protobuf.dev/programming-guides/encoding/. A message may be continued by appending to it: of a number or a text
that it then has twice, the last one counts, and messages in the same field are merged.
"""

import struct
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

UNIGRAM, BPE, WORDS, CHARACTERS = 1, 2, 3, 4
SPECIAL_TOKENS = ("<pad>", "<unk>", "<s>", "</s>")

# Numbers of fields: of the model, of a token, of the trainer's settings and of the normalizer's.
_TOKEN, _TRAINER, _NORMALIZER = 1, 2, 3
_N_KNOWN = 200  # the first of the fields that SentencePiece leaves to others
_TEXT, _SCORE, _KIND = 1, 2, 3
_ALGORITHM, _BYTE_FALLBACK, _SUFFIX = 3, 35, 24
_SPECIAL_NAMES = (48, 45, 46, 47)  # in the order of SPECIAL_TOKENS
_RULE, _CHARACTER_MAP, _DUMMY_PREFIX, _EXTRA_SPACES, _ESCAPED_SPACES = 1, 2, 3, 4, 5
_VARINT, _BYTES_8, _LENGTH, _BYTES_4 = 0, 1, 2, 5  # types on the wire


class Kind(IntEnum):
    """The kind of a token."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


_KINDS: dict[int | bytes, Kind] = {kind.value: kind for kind in Kind}


class Token(NamedTuple):
    """A token of a model.

    Attributes:
        text: its spelling, with ``▁`` for a space.
        score: its log probability, or for BPE the negative rank of the merge that makes it.
        kind: its kind.
    """

    text: str
    score: float = 0.0
    kind: Kind = Kind.NORMAL


class Settings(NamedTuple):
    """The settings of a model, of its trainer and its normalizer.

    Attributes:
        algorithm: :data:`UNIGRAM`, :data:`BPE`, :data:`WORDS` or :data:`CHARACTERS`.
        rule: the name of the rule of normalization, which nothing depends on.
        character_map: the replacements of characters by the model itself; empty for none.
        adds_dummy_prefix: whether a text begins with ``▁``, as if there was a space before it.
        removes_extra_spaces: whether only single spaces inside a text stay.
        escapes_spaces: whether spaces become ``▁``.
        has_suffixes: whether the ``▁`` of a space ends a token instead of beginning one.
        special_names: of padding, of what is unknown, of the beginning and of the end of a text.
        n_known: the tokens that the Transformer knows, which come first; None: all.
    """

    algorithm: int
    rule: str
    character_map: bytes
    adds_dummy_prefix: bool
    removes_extra_spaces: bool
    escapes_spaces: bool
    has_suffixes: bool
    special_names: tuple[str, str, str, str]
    n_known: int | None = None


def read_settings(model: bytes) -> Settings:
    """Read the settings of a serialized model.

    Raises:
        ValueError: it is damaged.
    """
    trainer: dict[int, int | bytes] = {}
    normalizer: dict[int, int | bytes] = {}
    n_known = None
    for field, value in _fields(model, _end_of_tokens(model)):
        if isinstance(value, bytes) and field in (_TRAINER, _NORMALIZER):
            (trainer if field == _TRAINER else normalizer).update(_fields(value))
        elif isinstance(value, int) and field == _N_KNOWN:
            n_known = value
    names = zip(_SPECIAL_NAMES, SPECIAL_TOKENS, strict=True)
    pad, unk, bos, eos = (_text(trainer.get(field, name.encode())) for field, name in names)
    return Settings(
        algorithm=int(trainer.get(_ALGORITHM, UNIGRAM)),
        rule=_text(normalizer.get(_RULE, b"")),
        character_map=_bytes(normalizer.get(_CHARACTER_MAP, b"")),
        adds_dummy_prefix=bool(normalizer.get(_DUMMY_PREFIX, 1)),
        removes_extra_spaces=bool(normalizer.get(_EXTRA_SPACES, 1)),
        escapes_spaces=bool(normalizer.get(_ESCAPED_SPACES, 1)),
        has_suffixes=bool(trainer.get(_SUFFIX, 0)),
        special_names=(pad, unk, bos, eos),
        n_known=n_known,
    )


def read_tokens(model: bytes) -> list[Token]:
    """Read the tokens of a serialized model, in order of their ids.

    Raises:
        ValueError: it is damaged.
    """
    return [_token(value) for field, value in _fields(model) if field == _TOKEN]


def with_tokens(model: bytes, tokens: Iterable[Token]) -> bytes:
    """Return a serialized model with other tokens, by id: :data:`SPECIAL_TOKENS` and all bytes are among them."""
    settings = (_field(field, value) for field, value in _fields(model) if field != _TOKEN)
    return append_tokens(b"", tokens) + b"".join(settings) + _field(_TRAINER, _special() + _field(_BYTE_FALLBACK, 1))


def in_order(model: bytes, vocabulary: Sequence[str], control: Collection[str]) -> bytes:
    """Return a serialized model whose ids are those of a Transformer that was trained with a vocabulary of its own.

    Texts are split as before. What the model does not know stays unused, and what the vocabulary lacks comes after it.

    Args:
        model: the model.
        vocabulary: the Transformer's tokens by id, :data:`SPECIAL_TOKENS` among them; ``<s>`` may be missing.
        control: those that no text contains.
    """
    own = {token.text: token for token in read_tokens(model) if token.kind not in (Kind.CONTROL, Kind.UNKNOWN)}
    tokens = [
        Token(text, kind=Kind.UNKNOWN if text == "<unk>" else Kind.CONTROL)
        if text in SPECIAL_TOKENS or text in control
        else own.pop(text, Token(text, kind=Kind.UNUSED))
        for text in vocabulary
    ]
    return replace_tokens(model, [*tokens, *own.values()], n_known=len(vocabulary)) + _field(_TRAINER, _special())


def replace_tokens(model: bytes, tokens: Iterable[Token], *, n_known: int) -> bytes:
    """Return a serialized model with other tokens, of which a Transformer knows the first ``n_known``."""
    settings = (_field(field, value) for field, value in _fields(model) if field not in (_TOKEN, _N_KNOWN))
    return append_tokens(b"", tokens) + b"".join(settings) + _field(_N_KNOWN, n_known)


def make_model(tokens: Iterable[Token], *, algorithm: int, character_map: bytes, rule: str) -> bytes:
    """Return a serialized model of tokens, as SentencePiece itself would have trained it.

    Args:
        tokens: all tokens, by id.
        algorithm: :data:`UNIGRAM` or :data:`BPE`.
        character_map: the replacements of characters by the model itself; empty for none.
        rule: the name of the rule of normalization.
    """
    tokens = list(tokens)
    has_bytes = any(token.kind == Kind.BYTE for token in tokens)
    trainer = _special() + _field(_ALGORITHM, algorithm) + _field(_BYTE_FALLBACK, has_bytes)
    normalizer = _field(_RULE, rule.encode()) + _field(_CHARACTER_MAP, character_map)
    return append_tokens(b"", tokens) + _field(_TRAINER, trainer) + _field(_NORMALIZER, normalizer)


def add_tokens(model: bytes, tokens: Sequence[Token]) -> bytes:
    """Return a serialized model with more tokens, which come after those that the Transformer knows.

    Of those that SentencePiece had already, only without the Transformer knowing them, it keeps the scores.
    """
    n_known = read_settings(model).n_known
    if n_known is None:
        return append_tokens(model, tokens)
    own = read_tokens(model)
    rest = {token.text: token for token in own[n_known:]}
    added = []
    for token in tokens:
        had = rest.pop(token.text, token)
        added.append(token._replace(score=had.score, kind=had.kind if token.kind == Kind.UNUSED else token.kind))
    return replace_tokens(model, [*own[:n_known], *added, *rest.values()], n_known=n_known + len(added))


def append_tokens(model: bytes, tokens: Iterable[Token]) -> bytes:
    """Return a serialized model with more tokens after its own."""
    return model + b"".join(
        _field(
            _TOKEN,
            _field(_TEXT, token.text.encode())
            + _varint(_SCORE << 3 | _BYTES_4)
            + struct.pack("<f", token.score)
            + _field(_KIND, token.kind),
        )
        for token in tokens
    )


def with_rule(model: bytes, rule: str) -> bytes:
    """Return a serialized model with another name of its rule of normalization, which changes nothing else."""
    return model + _field(_NORMALIZER, _field(_RULE, rule.encode()))


def without_dummy_prefix(model: bytes) -> bytes:
    """Return a serialized model that does not put a space before a text."""
    return model + _field(_NORMALIZER, _field(_DUMMY_PREFIX, 0))


def _token(message: int | bytes) -> Token:
    if not isinstance(message, bytes):
        raise ValueError("a token is not a message")
    fields = dict(_fields(message))
    score = fields.get(_SCORE, b"\0\0\0\0")
    if not isinstance(score, bytes) or len(score) != 4:
        raise ValueError("a score is not a number")
    [number] = struct.unpack("<f", score)
    return Token(_text(fields.get(_TEXT, b"")), number, _KINDS.get(fields.get(_KIND, Kind.NORMAL), Kind.NORMAL))


def _text(value: int | bytes) -> str:
    return _bytes(value).decode()


def _bytes(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("a field is a number")
    return value


def _end_of_tokens(model: bytes) -> int:
    """Return the end of the tokens at the start of a model; this takes most of the time of reading its settings."""
    at, n = 0, len(model)
    while at + 1 < n and model[at] == _TOKEN << 3 | _LENGTH and model[at + 1] < 128:
        at += 2 + model[at + 1]
    return at


def _fields(message: bytes, start: int = 0) -> Iterator[tuple[int, int | bytes]]:
    """Yield the numbers and the values of the fields of a message.

    Raises:
        ValueError: it is damaged.
    """
    at = start
    while at < len(message):
        key, at = _read_varint(message, at)
        field, wire_type = key >> 3, key & 7
        if wire_type == _VARINT:
            value, at = _read_varint(message, at)
            yield field, value
            continue
        if wire_type == _LENGTH:
            size, at = _read_varint(message, at)
        elif wire_type in (_BYTES_4, _BYTES_8):
            size = 4 if wire_type == _BYTES_4 else 8
        else:
            raise ValueError(f"a field has the unknown type {wire_type}")
        if at + size > len(message):
            raise ValueError("a field is cut off")
        yield field, message[at : at + size]
        at += size


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    """Read a number, seven bits per byte, lowest first; return it and where it ends."""
    number = shift = 0
    while at < len(message) and shift < 64:
        byte = message[at]
        number |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return number, at
    raise ValueError("a number is cut off")


def _special() -> bytes:
    """Return the fields with the names of special tokens."""
    names = zip(_SPECIAL_NAMES, SPECIAL_TOKENS, strict=True)
    return b"".join(_field(field, name.encode()) for field, name in names)


def _field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, bytes):
        return _varint(number << 3 | _LENGTH) + _varint(len(value)) + value
    return _varint(number << 3 | _VARINT) + _varint(value)


def _varint(number: int) -> bytes:
    high, low = divmod(number, 128)
    return bytes([low + 128]) + _varint(high) if high else bytes([low])
