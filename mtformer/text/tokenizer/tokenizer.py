"""Text to tokens and back, with SentencePiece (Kudo and Richardson 2018)."""

import re
import unicodedata
from collections.abc import Sequence
from copy import copy
from functools import cached_property
from typing import Literal, NamedTuple, get_args

from sentencepiece import SentencePieceProcessor

from mtformer.config import Normalization, TokenizerType
from mtformer.model.architecture import SpecialIds
from mtformer.support.errors import UserError
from mtformer.text.tokenizer.sampling import Sampler, Sampling
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

MARKERS = ("<term>", "<is>", "</term>")  # around an annotated term, before its translation, and after that

_TYPES: dict[int, TokenizerType] = {UNIGRAM: "unigram", BPE: "bpe"}
_BYTE = re.compile("<0x([0-9A-F]{2})>")
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
    """Return ``text`` with a space for each run of control characters, line breaks among them."""
    return CONTROL_CHARACTERS.sub(" ", text)


def byte_of(token: str) -> int | None:
    """Return the byte that ``token`` stands for, one of those that spell a character without a token of its own."""
    found = _BYTE.fullmatch(token)
    return int(found[1], 16) if found else None


class Prefixes(NamedTuple):
    """What stands before the texts of a direction, on either side.

    Attributes:
        src: the ids before each source: the tokens of a language and of a corpus.
        tgt: the ids that each translation is forced to start with, neither scored nor shown.
    """

    src: tuple[int, ...] = ()
    tgt: tuple[int, ...] = ()


class Tokenizer:
    """Text to token ids and back, for a source and a target language that may share one vocabulary.

    User text never becomes a special token: ``<s>`` or ``<0x41>`` in a text is encoded like any other characters.

    Attributes:
        src_model: the serialized SentencePiece model of the source, or of both languages.
        tgt_model: that of the target; None if it is the same.
        special_ids: the ids that stand for no text, the same in both languages.
        prefixes: what stands before the texts.
    """

    def __init__(self, src_model: bytes, tgt_model: bytes | None = None) -> None:
        """Load serialized SentencePiece models; without ``tgt_model``, ``src_model`` serves both languages.

        Raises:
            UserError: the bytes are not SentencePiece models, or the models have different special ids.
        """
        self.src_model = src_model
        self.tgt_model = tgt_model
        self._src = Vocabulary(src_model)
        self._tgt = self._src if tgt_model is None else Vocabulary(tgt_model)
        if self._src.special_ids != self._tgt.special_ids:
            raise UserError("the SentencePiece models of the two languages have different special ids")
        self.special_ids = self._src.special_ids
        self.prefixes = Prefixes()

    def vocabulary_of(self, side: Literal["src", "tgt"]) -> "Vocabulary":
        """Return the vocabulary of the source or the target."""
        return self._src if side == "src" else self._tgt

    def with_start(self, start: int) -> "Tokenizer":
        """Return a view of this tokenizer for a model whose decoding starts with another id than BOS."""
        view = copy(self)
        view.special_ids = self.special_ids.model_copy(update={"start": start})
        return view

    def with_prefixes(self, prefixes: Prefixes) -> "Tokenizer":
        """Return a view of this tokenizer for the texts of another direction."""
        view = copy(self)
        view.prefixes = prefixes
        return view

    def prefixes_of(self, src_tags: Sequence[str], tgt_tags: Sequence[str] = ()) -> Prefixes:
        """Return the prefixes that control tokens, such as ``<2de>``, make.

        Raises:
            UserError: a vocabulary has no such control token.
        """
        return Prefixes(self._src.control_ids(src_tags), self._tgt.control_ids(tgt_tags))

    @property
    def control_symbols(self) -> list[str]:
        """The control tokens of the source vocabulary, special tokens and :data:`MARKERS` excluded."""
        return [token for token in self._src.control_symbols if token not in MARKERS]

    @property
    def joint(self) -> bool:
        """Whether both languages share one vocabulary."""
        return self._tgt is self._src

    @property
    def type(self) -> TokenizerType:
        """The algorithm; if the source and the target have different ones, that of the source."""
        return self._src.type

    @property
    def normalization(self) -> Normalization:
        """The form that :func:`normalize` gives to texts before SentencePiece sees them."""
        return self._src.form

    @property
    def user_symbols(self) -> list[str]:
        """The tokens that a user has defined, which are never split."""
        return self._src.user_symbols

    @property
    def src_vocab_size(self) -> int:
        """The number of source tokens."""
        return self._src.vocab_size

    @property
    def tgt_vocab_size(self) -> int:
        """The number of target tokens."""
        return self._tgt.vocab_size

    @property
    def vocab_size(self) -> int:
        """The number of tokens, or that of the language with more of them."""
        return max(self.src_vocab_size, self.tgt_vocab_size)

    def encode_src(self, texts: Sequence[str], sampling: Sampling | None = None) -> list[list[int]]:
        """Turn source texts into ids, each beginning with the source prefix and ending in EOS."""
        rows = self._src.encode(texts, sampling)
        return [[*self.prefixes.src, *row] for row in rows] if self.prefixes.src else rows

    def encode_tgt(self, texts: Sequence[str], sampling: Sampling | None = None) -> list[list[int]]:
        """Turn target texts into ids, each ending in EOS; batching prepends the start."""
        return self._tgt.encode(texts, sampling)

    def encode_tgt_inside(self, text: str, sampling: Sampling | None = None) -> list[int]:
        """Turn target text that follows other text without a space into ids, without EOS."""
        return self._tgt.encode([text], sampling, inside=True)[0][:-1]

    @cached_property
    def markers(self) -> tuple[int, ...] | None:
        """The ids of :data:`MARKERS` in a joint vocabulary; None if it has none."""
        ids = tuple(self._src.ids(MARKERS))
        return ids if self.joint and all(map(self._src.is_control, ids)) else None

    def src_characters(self) -> frozenset[str] | None:
        """Return the characters that the source vocabulary has tokens for; others are spelled as bytes.

        None if all are.
        """
        return self._src.characters

    def tgt_characters(self) -> frozenset[str] | None:
        """Return the characters that the target vocabulary has tokens for, likewise."""
        return self._tgt.characters

    def n_src_tokens(self, text: str) -> int:
        """Return how many tokens a source text has, without prefix and EOS."""
        return len(self._src.encode([text])[0]) - 1

    def normalize_src(self, text: str) -> str:
        """Return a source text as encoding and decoding it would."""
        return self._src.normalize(text)

    def normalize_tgt(self, text: str) -> str:
        """Return a target text as encoding and decoding it would."""
        return self._tgt.normalize(text)

    def src_vocabulary(self) -> list[str]:
        """Return all source tokens, in order of their ids."""
        return self.src_tokens(range(self.src_vocab_size))

    def src_tokens(self, ids: Sequence[int]) -> list[str]:
        """Return the tokens that source ids stand for."""
        return self._src.tokens(ids)

    def tgt_tokens(self, ids: Sequence[int]) -> list[str]:
        """Return the tokens that target ids stand for."""
        return self._tgt.tokens(ids)

    def src_spans(self, text: str, ids: Sequence[int]) -> list[Span]:
        """Return where the tokens ``ids`` of the source text ``text``, without EOS, stand in it."""
        return self._src.spans(text, ids)

    def tgt_spans(self, text: str, ids: Sequence[int]) -> list[Span]:
        """Return where the tokens ``ids`` of the target text ``text``, without EOS, stand in it."""
        return self._tgt.spans(text, ids)

    def tgt_ids(self, tokens: Sequence[str]) -> list[int]:
        """Return the ids of target tokens; the inverse of :meth:`tgt_tokens`."""
        return self._tgt.ids(tokens)

    def decode(self, ids: Sequence[int]) -> str:
        """Turn target ids into text on a single line; special ids are skipped."""
        return self._tgt.decode(ids)

    def decode_src(self, ids: Sequence[int]) -> str:
        """Turn source ids into text on a single line; special ids and those of the prefix are skipped."""
        return self._src.decode([i for i in ids if i not in self.prefixes.src])


class Vocabulary:
    """The tokens of a language, in a SentencePiece model.

    The ids of SentencePiece are those of the Transformer: where a Transformer has its tokens in another order, its
    SentencePiece model gets that order too (:mod:`mtformer.text.tokenizer.adopt`), so that no table stands between.

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

    @cached_property
    def _sampler(self) -> Sampler:
        return Sampler(read_tokens(self._data), self._settings.algorithm, self._processor, self._inside)

    @property
    def vocab_size(self) -> int:
        """The number of tokens."""
        return self._processor.vocab_size()

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

    def encode(
        self, texts: Sequence[str], sampling: Sampling | None = None, *, inside: bool = False
    ) -> list[list[int]]:
        """Turn texts into ids, each ending in EOS; ``inside`` those that follow other text without a space."""
        if sampling is not None:
            rows = self._sampler.encode([self.normalize(text) for text in texts], sampling, inside=inside)
            return [[*row, self.special_ids.eos] for row in rows]
        processor = self._inside if inside else self._processor
        texts = [normalize(text, self.form) for text in texts]
        if len(texts) == 1:  # a list starts threads, which take 20 times as long
            return [processor.encode(texts[0], add_eos=True)]
        return processor.encode(texts, add_eos=True, num_threads=1)  # more threads take twice the CPU time

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
        """Return where the tokens of a text stand in it."""
        tokens = ["" if self.is_control(i) else token for i, token in zip(ids, self.tokens(ids), strict=True)]
        is_bytes = map(self._processor.is_byte, ids)
        spelled = [bytes([int(t[1:-1], 16)]) if is_byte else t for t, is_byte in zip(tokens, is_bytes, strict=True)]
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
    ids = (model.pad_id(), model.unk_id(), model.bos_id(), model.eos_id())
    if min(ids) < 0 or model.id_to_piece(list(ids)) != list(SPECIAL_TOKENS):
        raise UserError(f"this SentencePiece model has other special tokens than {', '.join(SPECIAL_TOKENS)}")
    pad, unk, bos, eos = ids
    return SpecialIds(pad=pad, unk=unk, bos=bos, eos=eos, start=bos)
