"""Texts of two languages to token ids and back, for each direction and with annotated terms."""

from collections.abc import Sequence
from copy import copy
from functools import cached_property
from typing import NamedTuple

from mtformer.support.errors import UserError
from mtformer.text.glossary import Match, Term
from mtformer.text.languages import is_written_with_spaces
from mtformer.text.slots import SLOTS
from mtformer.text.tokenizer.vocabulary import Vocabulary

MARKERS = ("<term>", "<is>", "</term>")  # around an annotated term, before its translation, and after that
CONTEXT = "<context>"  # after the previous sentence, which is read but not translated


class PrefixIds(NamedTuple):
    """The ids before the texts of a direction, on either side.

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
        src: the vocabulary of the source.
        tgt: that of the target.
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
        self.src = Vocabulary(src_model)
        self.tgt = self.src if tgt_model is None else Vocabulary(tgt_model)
        if self.src.special_ids != self.tgt.special_ids:
            raise UserError("the SentencePiece models of the two languages have different special ids")
        self.special_ids = self.src.special_ids
        self.prefixes = PrefixIds()

    @property
    def models(self) -> list[bytes]:
        """The serialized SentencePiece models, one or two."""
        return [self.src_model] if self.tgt_model is None else [self.src_model, self.tgt_model]

    def with_start(self, start: int) -> "Tokenizer":
        """Return a view of this tokenizer for a model whose decoding starts with another id than BOS."""
        view = copy(self)
        view.special_ids = self.special_ids.model_copy(update={"start": start})
        return view

    def with_prefixes(self, prefixes: PrefixIds) -> "Tokenizer":
        """Return a view of this tokenizer for the texts of another direction."""
        view = copy(self)
        view.prefixes = prefixes
        return view

    def prefixes_of(self, src_tags: Sequence[str], tgt_tags: Sequence[str] = ()) -> PrefixIds:
        """Return the prefixes that control tokens, such as ``<2de>``, make.

        Raises:
            UserError: a vocabulary has no such control token.
        """
        return PrefixIds(self.src.control_ids(src_tags), self.tgt.control_ids(tgt_tags))

    @property
    def control_symbols(self) -> list[str]:
        """The control tokens of the source vocabulary without special tokens, :data:`MARKERS` and :data:`CONTEXT`."""
        return [token for token in self.src.control_symbols if token not in (*MARKERS, CONTEXT)]

    @cached_property
    def has_slots(self) -> bool:
        """Whether both vocabularies have tokens for slots; see :mod:`mtformer.text.slots`."""
        return all(side.special_ids.unk not in side.ids(SLOTS) for side in (self.src, self.tgt))

    @cached_property
    def context_end(self) -> int | None:
        """The id of :data:`CONTEXT`; None for a model that reads sentences alone."""
        [i] = self.src.ids([CONTEXT])
        return i if self.src.is_control(i) else None

    def context(self, before: str) -> tuple[int, ...]:
        """Return the ids in front of a source that follows the source ``before``; none if the model reads no others."""
        if self.context_end is None or not before.strip():
            return ()
        return (*self.src.encode([before])[0][:-1], self.context_end)

    @property
    def joint(self) -> bool:
        """Whether both languages share one vocabulary."""
        return self.tgt is self.src

    @property
    def src_vocab_size(self) -> int:
        """The number of source tokens."""
        return self.src.vocab_size

    @property
    def tgt_vocab_size(self) -> int:
        """The number of target tokens."""
        return self.tgt.vocab_size

    @property
    def vocab_size(self) -> int:
        """The number of tokens; of two vocabularies, the larger one's."""
        return max(self.src_vocab_size, self.tgt_vocab_size)

    def encode_src(self, texts: Sequence[str]) -> list[list[int]]:
        """Turn source texts into ids, each beginning with the source prefix and ending in EOS."""
        rows = self.src.encode(texts)
        return [[*self.prefixes.src, *row] for row in rows] if self.prefixes.src else rows

    def encode_tgt(self, texts: Sequence[str]) -> list[list[int]]:
        """Turn target texts into ids, each ending in EOS; batching prepends the start."""
        return self.tgt.encode(texts)

    def encode_tgt_inside(self, text: str) -> list[int]:
        """Turn target text that follows other text without a space into ids, without EOS."""
        return self.tgt.encode([text], inside=True)[0][:-1]

    @cached_property
    def markers(self) -> tuple[int, ...] | None:
        """The ids of :data:`MARKERS` in a joint vocabulary; None if it has none."""
        ids = tuple(self.src.ids(MARKERS))
        return ids if self.joint and all(map(self.src.is_control, ids)) else None

    def n_src_tokens(self, text: str) -> int:
        """Return how many tokens a source text has, without prefix and EOS."""
        return len(self.src.encode([text])[0]) - 1

    def src_tokens(self, ids: Sequence[int]) -> list[str]:
        """Return the tokens that source ids stand for."""
        return self.src.tokens(ids)

    def tgt_tokens(self, ids: Sequence[int]) -> list[str]:
        """Return the tokens that target ids stand for."""
        return self.tgt.tokens(ids)

    def decode(self, ids: Sequence[int]) -> str:
        """Turn target ids into text on a single line; special ids are skipped."""
        return self.tgt.decode(ids)

    def decode_src(self, ids: Sequence[int]) -> str:
        """Turn source ids, which begin with the prefix, into text on a single line without it and special ids."""
        return self.src.decode(ids[len(self.prefixes.src) :])


class Annotator:
    """Encodes source texts with the translations of terms in them, as in ``I ate <term> chips <is> 薯片 </term>``.

    The model learns to copy these translations (Dinu et al. 2019).
    """

    def __init__(self, tokenizer: Tokenizer, tgt_lang: str) -> None:
        """Take a tokenizer that has the markers.

        Raises:
            UserError: it has none.
        """
        if tokenizer.markers is None:
            raise UserError(
                "soft terms need a model that was trained with annotated terms (data.terms), which this one was not: "
                "use hard ones (--terms-mode hard)"
            )
        self._tokenizer, self._markers = tokenizer, tokenizer.markers
        self._tgt_has_spaces = is_written_with_spaces(tgt_lang)

    def encode(self, text: str, matches: Sequence[Match]) -> list[int]:
        """Turn a normalized source text into ids, ended by EOS, with the translations of terms in it.

        Args:
            text: the text.
            matches: the terms in it, in order.
        """
        begin, middle, end = self._markers
        ids = list(self._tokenizer.prefixes.src)
        place = 0
        for match in matches:
            ids += [*self._part(text, place, match.start), begin]
            ids += [*self._part(text, match.start, match.end), middle]
            ids += [*self._translation(match.term.tgt), end]
            place = match.end
        return [*ids, *self._part(text, place, len(text)), self._tokenizer.special_ids.eos]

    def n_added(self, term: Term) -> int:
        """Return how many tokens the annotation of a term adds to a text."""
        return len(self._markers) + len(self._translation(term.tgt))

    def _part(self, text: str, start: int, end: int) -> list[int]:
        """Encode ``text[start:end]`` with the tokens that it has within the text, where they end at its ends."""
        part = text[start:end]
        follows_space = start == 0 or part.startswith(" ") or text[start - 1] == " "
        return self._encode(part.strip(), inside=not follows_space) if part.strip() else []

    def _translation(self, text: str) -> list[int]:
        return self._encode(text, inside=not self._tgt_has_spaces)

    def _encode(self, text: str, *, inside: bool) -> list[int]:
        if inside:  # both languages have the same tokens, and only texts of the source have a prefix
            return self._tokenizer.encode_tgt_inside(text)
        return self._tokenizer.encode_tgt([text])[0][:-1]
