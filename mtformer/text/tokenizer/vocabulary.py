"""The vocabulary of a language: text to tokens and back, with SentencePiece (Kudo and Richardson 2018)."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import zip_longest
from typing import get_args

from sentencepiece import SentencePieceProcessor

from mtformer.config import Normalization, TokenizerType
from mtformer.model.architecture import SpecialIds
from mtformer.support.errors import UserError
from mtformer.text.tokenizer.sentencepiece_file import (
    BPE,
    CHARACTERS,
    SPECIAL_TOKENS,
    UNIGRAM,
    Kind,
    Settings,
    read_settings,
    read_tokens,
    without_dummy_prefix,
)
from mtformer.text.words import Span, token_spans

_TYPES: dict[int, TokenizerType] = {UNIGRAM: "unigram", BPE: "bpe"}
_BYTE = re.compile("<0x([0-9A-F]{2})>")
_TERMINAL_ESCAPE = re.compile("\x1b\\[[0-9;]*[A-Za-z]")  # colours
CONTROL_CHARACTERS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")  # line breaks and tabs among them

# The name of the rule in a model whose texts are to have a form. SentencePiece itself has no rule with such a name.
RULES: dict[Normalization, str] = {form: f"mtformer-{form}" for form in get_args(Normalization)}


def normalize(text: str, form: Normalization = "nfc") -> str:
    """Return ``text`` in a Unicode form with single spaces, or as it is, but on one line.

    The form is composed Unicode (NFC) unless another one is given. Compatibility mapping (NFKC) turns the full-width
    punctuation of Chinese into ASCII, in the output too.
    """
    if form == "identity":
        return on_one_line(text)
    return " ".join(unicodedata.normalize("NFC" if form == "nfc" else "NFKC", text).split())


def form_of(rule: str) -> Normalization:
    """Return the form that texts are to have for a model with a rule of this name."""
    return next((form for form, name in RULES.items() if name == rule), "nfc")


def on_one_line(text: str) -> str:
    """Return ``text`` with a space for each run of control characters, line breaks among them, and without colours."""
    return CONTROL_CHARACTERS.sub(" ", _TERMINAL_ESCAPE.sub("", text))


def byte_of(token: str) -> int | None:
    """Return the byte that ``token`` stands for, one of those that spell a character without a token of its own."""
    match = _BYTE.fullmatch(token)
    return int(match[1], 16) if match else None


class Vocabulary:
    """The tokens of a language, in a SentencePiece model.

    The ids of SentencePiece are those of the Transformer: where a Transformer has its tokens in another order, its
    SentencePiece model gets that order too, so that no table stands between. A Transformer from elsewhere may lack
    some of SentencePiece's tokens, and have others; :func:`.in_order` says how.

    Attributes:
        type: the algorithm.
        form: how texts are normalized.
        special_ids: the ids that stand for no text; BOS counts as the one that starts decoding.
    """

    def __init__(self, data: bytes) -> None:
        """Load a serialized SentencePiece model.

        Raises:
            UserError: the bytes are none, or it lacks a special token.
        """
        self._data = data
        self._processor, self._settings, self.type = _load(data)
        self.special_ids = _special_ids(self._processor)
        self.form = form_of(self._settings.rule)
        self._no_text = frozenset(self.special_ids.model_dump().values())

    @cached_property
    def _inside(self) -> SentencePieceProcessor:
        """The same model, for text that follows other text without a space."""
        return SentencePieceProcessor(model_proto=without_dummy_prefix(self._data))

    @property
    def vocab_size(self) -> int:
        """The number of tokens."""
        return self._settings.n_known or self._processor.vocab_size()

    @property
    def user_symbols(self) -> list[str]:
        """The tokens that a user has defined, which are never split."""
        return [token.text for token in read_tokens(self._data) if token.kind == Kind.USER_DEFINED]

    @cached_property
    def characters(self) -> frozenset[str] | None:
        """The characters that have tokens, others being spelled in bytes; None if all are."""
        if self.type == "byte":
            return None
        return frozenset(token.replace("▁", " ") for token in self.tokens(range(self.vocab_size)) if len(token) == 1)

    @property
    def control_symbols(self) -> list[str]:
        """The control tokens, special ones excluded."""
        control = filter(self._processor.is_control, range(self.vocab_size))
        return self.tokens([i for i in control if i not in self.special_ids])

    def is_control(self, i: int) -> bool:
        """Tell whether no text contains a token."""
        return self._processor.is_control(i)

    def is_unused(self, i: int) -> bool:
        """Tell whether only texts of the other language have a token."""
        return self._processor.is_unused(i)

    def control_ids(self, tokens: Sequence[str]) -> tuple[int, ...]:
        """Return the ids of control tokens; raises UserError if there is no such one."""
        ids = tuple(self.ids(tokens))
        for token, i in zip(tokens, ids, strict=True):
            if not self.is_control(i):
                raise UserError(f"the model's vocabulary has no control token {token}")
        return ids

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Return the tokens that ids stand for."""
        return self._processor.id_to_piece(list(ids))

    def ids(self, tokens: Sequence[str]) -> list[int]:
        """Return the ids of tokens."""
        return self._processor.piece_to_id(list(tokens))

    def encode(self, texts: Sequence[str], *, inside: bool = False) -> list[list[int]]:
        """Turn texts into ids, each ending in EOS; ``inside`` those that follow other text without a space."""
        processor = self._inside if inside else self._processor
        texts = [normalize(text, self.form) for text in texts]
        if len(texts) == 1:  # a list starts threads, which take 20 times as long
            rows = [processor.encode(texts[0], add_eos=True)]
        else:
            rows = processor.encode(texts, add_eos=True, num_threads=1)  # more threads take twice the CPU time
        if self._settings.n_known is None:
            return rows
        spells = [partial(processor.encode, text, out_type=str) for text in texts]
        return list(map(self._known, rows, spells))

    def _known(self, ids: list[int], spell: Callable[[], list[str]]) -> list[int]:
        """Return ids with those that the Transformer knows for the tokens that it or SentencePiece does not know."""
        n_known, unk = self._settings.n_known, self.special_ids.unk
        if n_known is None or (unk not in ids and max(ids, default=0) < n_known):
            return ids
        return [
            i if i < n_known and i != unk else self._unused.get(token or "", unk)
            for i, token in zip_longest(ids, spell()[: len(ids)])
        ]

    @cached_property
    def _unused(self) -> dict[str, int]:
        """The ids that the Transformer has for tokens that SentencePiece does not know: those of the other language."""
        ids = list(filter(self._processor.is_unused, range(self.vocab_size)))
        return dict(zip(self.tokens(ids), ids, strict=True))

    def decode(self, ids: Sequence[int]) -> str:
        """Turn ids into text on a single line; special ids are skipped."""
        return on_one_line(self._processor.decode([i for i in ids if i not in self._no_text]))

    def normalize(self, text: str) -> str:
        """Return a text as encoding and decoding it would."""
        text = normalize(text, self.form)
        if not self._settings.character_map:
            return text
        return self._processor.normalize(text).removeprefix("▁").replace("▁", " ")

    def spans(self, text: str, ids: Sequence[int]) -> list[Span]:
        """Return the spans of the tokens of a text."""
        tokens = ["" if self.is_control(i) else token for i, token in zip(ids, self.tokens(ids), strict=True)]
        spelled = [token if (byte := byte_of(token)) is None else bytes([byte]) for token in tokens]
        return token_spans(text, spelled, self.normalize)


def _load(data: bytes) -> tuple[SentencePieceProcessor, Settings, TokenizerType]:
    try:
        if data:  # SentencePiece takes empty bytes for a missing argument, without an error
            processor = SentencePieceProcessor(model_proto=data)
            settings = read_settings(data)
            return processor, settings, _type_of(data, settings)
    except (RuntimeError, ValueError, KeyError):
        pass
    raise UserError("this is not a SentencePiece model")


def _type_of(data: bytes, settings: Settings) -> TokenizerType:
    if settings.algorithm != CHARACTERS:
        return _TYPES[settings.algorithm]
    texts = [token.text for token in read_tokens(data) if token.kind == Kind.NORMAL]
    return "byte" if texts == ["▁"] else "char"


def _special_ids(model: SentencePieceProcessor) -> SpecialIds:
    """Return the ids of the special tokens, which must have our names and never be parsed from text."""
    pad, unk, bos, eos = ids = (model.pad_id(), model.unk_id(), model.bos_id(), model.eos_id())
    if min(pad, unk, eos) < 0 or [model.id_to_piece(i) for i in ids if i >= 0] != [
        token for token, i in zip(SPECIAL_TOKENS, ids, strict=True) if i >= 0
    ]:
        raise UserError(f"this SentencePiece model has other special tokens than {', '.join(SPECIAL_TOKENS)}")
    bos = pad if bos < 0 else bos
    return SpecialIds(pad=pad, unk=unk, bos=bos, eos=eos, start=bos)
