"""Text to tokens and back, with SentencePiece (Kudo and Richardson 2018)."""

import re
import unicodedata
from collections.abc import Sequence
from copy import copy
from functools import cached_property
from typing import NamedTuple

from sentencepiece import SentencePieceProcessor, set_random_generator_seed

from mtformer.errors import UserError
from mtformer.text.spans import Span, token_spans

PAD_ID, UNK_ID, BOS_ID, EOS_ID = 0, 1, 2, 3
MARKERS = ("<term>", "<is>", "</term>")  # around an annotated term, before its translation, and after that

# A protobuf field that, appended to a model, makes SentencePiece not put a space before the text.
_NO_DUMMY_PREFIX = b"\x1a\x02\x18\x00"  # normalizer_spec { add_dummy_prefix: false }
_BYTE = re.compile("<0x([0-9A-F]{2})>")
_CONTROL_CHARACTERS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")  # line breaks and tabs among them


class Sampling(NamedTuple):
    """How to sample one of the many ways to segment a text.

    Attributes:
        alpha: unigram: the exponent on the probability of a segmentation (Kudo 2018), where smaller gives more variety;
            BPE: the probability of skipping a merge (Provilkov et al. 2020), where larger gives more.
        seed: the seed of the sample.
    """

    alpha: float
    seed: int


def normalize(text: str) -> str:
    """Return ``text`` in composed Unicode (NFC) with single spaces.

    Compatibility mapping (NFKC) would turn the full-width punctuation of Chinese into ASCII, in the output too.
    """
    return " ".join(unicodedata.normalize("NFC", text).split())


def on_one_line(text: str) -> str:
    """Return ``text`` with a space for each run of control characters, line breaks among them."""
    return _CONTROL_CHARACTERS.sub(" ", text)


def byte_of(token: str) -> int | None:
    """Return the byte that ``token`` stands for, one of those that spell a character without a token of its own."""
    found = _BYTE.fullmatch(token)
    return int(found[1], 16) if found else None


class Tokenizer:
    """Text to token ids and back, for a source and a target language that may share one vocabulary.

    User text never becomes a special token: ``<s>`` or ``<0x41>`` in a text is encoded like any other characters.

    Attributes:
        src_model: the serialized SentencePiece model of the source, or of both languages.
        tgt_model: that of the target; None if it is the same.
        src_prefix: the ids of the control tokens that :meth:`toward` puts in front of source texts.
    """

    def __init__(self, src_model: bytes, tgt_model: bytes | None = None) -> None:
        """Load serialized SentencePiece models; without ``tgt_model``, ``src_model`` serves both languages.

        Raises:
            UserError: the bytes are not a SentencePiece model.
        """
        self.src_model = src_model
        self.tgt_model = tgt_model
        self._src = _load(src_model)
        self._tgt = self._src if tgt_model is None else _load(tgt_model)
        self.src_prefix: tuple[int, ...] = ()

    def toward(self, tags: Sequence[str]) -> "Tokenizer":
        """Return a view of this tokenizer that puts control tokens, such as ``<2de>``, in front of each source text.

        Raises:
            UserError: the source vocabulary has no such control token.
        """
        view = copy(self)
        view.src_prefix = self.tag_ids(tags)
        return view

    def tag_ids(self, tags: Sequence[str]) -> tuple[int, ...]:
        """Return the ids of control tokens of the source vocabulary.

        Raises:
            UserError: it has no such control token.
        """
        ids = tuple(self._src.piece_to_id(list(tags)))
        for tag, i in zip(tags, ids, strict=True):
            if not self._src.is_control(i):
                raise UserError(f"the model's vocabulary has no control token {tag}")
        return ids

    @property
    def control_symbols(self) -> list[str]:
        """The control tokens of the source vocabulary, special tokens and :data:`MARKERS` excluded."""
        ids = filter(self._src.is_control, range(EOS_ID + 1, self.src_vocab_size))
        return [token for token in self.src_tokens(list(ids)) if token not in MARKERS]

    @property
    def joint(self) -> bool:
        """Whether both languages share one vocabulary."""
        return self._tgt is self._src

    @property
    def src_vocab_size(self) -> int:
        """The number of source tokens."""
        return self._src.vocab_size()

    @property
    def tgt_vocab_size(self) -> int:
        """The number of target tokens."""
        return self._tgt.vocab_size()

    def encode_src(self, texts: Sequence[str], sampling: Sampling | None = None) -> list[list[int]]:
        """Turn source texts into ids, each beginning with ``src_prefix`` and ending in EOS."""
        rows = _encode(self._src, texts, sampling)
        return [[*self.src_prefix, *row] for row in rows] if self.src_prefix else rows

    def encode_tgt(self, texts: Sequence[str], sampling: Sampling | None = None) -> list[list[int]]:
        """Turn target texts into ids, each ending in EOS; batching prepends BOS."""
        return _encode(self._tgt, texts, sampling)

    def encode_tgt_inside(self, text: str, sampling: Sampling | None = None) -> list[int]:
        """Turn target text that follows other text without a space into ids, without EOS."""
        return _encode(self._tgt_inside, [text], sampling)[0][:-1]

    @cached_property
    def markers(self) -> tuple[int, ...] | None:
        """The ids of :data:`MARKERS` in a joint vocabulary; None if it has none."""
        ids = tuple(self._src.piece_to_id(list(MARKERS)))
        return ids if self.joint and all(map(self._src.is_control, ids)) else None

    @cached_property
    def _tgt_inside(self) -> SentencePieceProcessor:
        return _load((self.tgt_model or self.src_model) + _NO_DUMMY_PREFIX)

    def src_characters(self) -> frozenset[str]:
        """Return the characters that the source vocabulary has tokens for; others are spelled as bytes."""
        return self._src_characters

    def tgt_characters(self) -> frozenset[str]:
        """Return the characters that the target vocabulary has tokens for; others are spelled as bytes."""
        return self._src_characters if self.joint else _characters(self._tgt)

    @cached_property
    def _src_characters(self) -> frozenset[str]:
        return _characters(self._src)

    def n_src_tokens(self, text: str) -> int:
        """Return how many tokens a source text has, without prefix and EOS."""
        return len(self._src.encode(normalize(text)))

    def src_vocabulary(self) -> list[str]:
        """Return all source tokens, in order of their ids."""
        return self.src_tokens(range(self.src_vocab_size))

    def src_tokens(self, ids: Sequence[int]) -> list[str]:
        """Return the tokens that source ids stand for."""
        return self._src.id_to_piece(list(ids))

    def tgt_tokens(self, ids: Sequence[int]) -> list[str]:
        """Return the tokens that target ids stand for."""
        return self._tgt.id_to_piece(list(ids))

    def src_spans(self, text: str, ids: Sequence[int]) -> list[Span]:
        """Return where the tokens ``ids`` of the source text ``text``, without EOS, stand in it."""
        return _spans(self._src, text, ids)

    def tgt_spans(self, text: str, ids: Sequence[int]) -> list[Span]:
        """Return where the tokens ``ids`` of the target text ``text``, without EOS, stand in it."""
        return _spans(self._tgt, text, ids)

    def tgt_ids(self, tokens: Sequence[str]) -> list[int]:
        """Return the ids of target tokens; the inverse of :meth:`tgt_tokens`."""
        return self._tgt.piece_to_id(list(tokens))

    def decode(self, ids: Sequence[int]) -> str:
        """Turn target ids into text on a single line; special ids are skipped."""
        return _decode(self._tgt, ids)

    def decode_src(self, ids: Sequence[int]) -> str:
        """Turn source ids into text on a single line; special ids and those of the prefix are skipped."""
        return _decode(self._src, [i for i in ids if i not in self.src_prefix])


def _decode(model: SentencePieceProcessor, ids: Sequence[int]) -> str:
    return on_one_line(model.decode([i for i in ids if i > EOS_ID]))


def _characters(model: SentencePieceProcessor) -> frozenset[str]:
    tokens = model.id_to_piece(list(range(model.vocab_size())))
    return frozenset(token.replace("▁", " ") for token in tokens if len(token) == 1)


def _encode(model: SentencePieceProcessor, texts: Sequence[str], sampling: Sampling | None) -> list[list[int]]:
    texts = [normalize(text) for text in texts]
    if sampling is None:
        return model.encode(texts, add_eos=True)
    set_random_generator_seed(sampling.seed)  # of this thread only, hence num_threads=1
    return model.encode(texts, add_eos=True, enable_sampling=True, nbest_size=-1, alpha=sampling.alpha, num_threads=1)


def _spans(model: SentencePieceProcessor, text: str, ids: Sequence[int]) -> list[Span]:
    tokens = ["" if model.is_control(i) else model.id_to_piece(i) for i in ids]
    is_bytes = [model.is_byte(i) for i in ids]
    return token_spans(
        text, [bytes([int(t[1:-1], 16)]) if is_byte else t for t, is_byte in zip(tokens, is_bytes, strict=True)]
    )


def _load(model: bytes) -> SentencePieceProcessor:
    try:
        if model:  # SentencePiece takes empty bytes for a missing argument, without an error
            processor = SentencePieceProcessor(model_proto=model)
            _require_special_tokens(processor)
            return processor
    except RuntimeError:
        pass
    raise UserError("this is not a SentencePiece model")


def _require_special_tokens(model: SentencePieceProcessor) -> None:
    """Require ids 0 to 3 to be ours and of a type that SentencePiece never parses from text."""
    control = (PAD_ID, BOS_ID, EOS_ID)
    if not (
        model.vocab_size() > EOS_ID
        and [model.id_to_piece(i) for i in range(4)] == ["<pad>", "<unk>", "<s>", "</s>"]
        and all(map(model.is_control, control))
        and model.is_unknown(UNK_ID)
    ):
        raise UserError(
            "this SentencePiece model has other special tokens than <pad>, <unk>, <s>, </s> with ids 0 to 3"
        )
