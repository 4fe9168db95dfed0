"""Texts and their translations, in parts that the model reads as it translates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cached_property
from itertools import accumulate, repeat
from typing import NamedTuple

from mtformer.search.engine import AlignRequest, ScoreRequest
from mtformer.text.cutting import cut, cut_alike
from mtformer.text.glossary import Term
from mtformer.text.pairs import SentencePair
from mtformer.text.slots import Slotted, pair_with_its_slots
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.words import Span
from mtformer.translate.preparation import standard_preparations
from mtformer.translate.replacement import Preparation, prepared
from mtformer.translate.terms import Terms


class Part(NamedTuple):
    """A part of a text that the model takes at once: its ids, EOS included, and the terms in it."""

    ids: list[int]
    terms: list[Term]


def parts_of(text: str, tokenizer: Tokenizer, terms: Terms | None, max_length: int) -> list[Part]:
    """Encode a text, and cut it into parts of at most ``max_length`` tokens with their terms."""
    prefix = tokenizer.prefixes.src
    [ids] = tokenizer.encode_src([text])
    if len(ids) == len(prefix) + 1:
        return []
    if terms is None:
        return [Part(part, []) for part in _cut(ids, tokenizer, max_length)]
    is_short = len(ids) + terms.n_added(text) <= max_length
    parts = _cut(ids, tokenizer, max_length if is_short else max(max_length // 2, len(prefix) + 2))
    texts = [text] if len(parts) == 1 else list(map(tokenizer.decode_src, parts))
    matches = [terms.find(of_part) for of_part in texts]
    annotated = map(terms.annotated, texts, matches, repeat(max_length))
    return [
        Part(soft or part, [match.term for match in of_part])
        for part, soft, of_part in zip(parts, annotated, matches, strict=True)
    ]


def _cut(ids: list[int], tokenizer: Tokenizer, max_length: int) -> list[list[int]]:
    """Cut ids into parts of at most ``max_length`` with prefix and EOS each, at the best places there are."""
    if len(ids) <= max_length:
        return [ids]
    prefix = tokenizer.prefixes.src
    body = ids[len(prefix) : -1]
    sizes = cut(tokenizer.src_tokens(body), max_length - len(prefix) - 1)
    return [[*prefix, *part, tokenizer.special_ids.eos] for part in _parts(body, sizes)]


@dataclass
class Pair:
    """A text and its translation, and the tokens of their parts.

    Attributes:
        sources: the ids of each part of the text, EOS last.
        targets: those of each part of the translation, without EOS.
        src_spans: where all source tokens but EOS stand in the text.
        tgt_spans: where all target tokens stand in the translation.
        is_cut: whether a part was too long for the model.
        contexts: the ids before each part of the text, of the previous sentence: for scores, not for alignments.
        forced: the ids before each part of the translation; see :class:`.Request`.
        slotted: for each part, the sentence that it is of, with its slots.
    """

    sources: list[Sequence[int]] = field(default_factory=list)
    targets: list[Sequence[int]] = field(default_factory=list)
    src_spans: list[Span] = field(default_factory=list)
    tgt_spans: list[Span] = field(default_factory=list)
    is_cut: bool = False
    contexts: list[Sequence[int]] = field(default_factory=list)
    forced: Sequence[int] = ()
    slotted: list[Slotted] = field(default_factory=list)

    def align_requests(self) -> list[AlignRequest]:
        """Return the requests that align the parts."""
        return list(map(AlignRequest, self.sources, self.targets, repeat(self.forced)))

    def score_requests(self) -> list[ScoreRequest]:
        """Return the requests that score the parts."""
        sources = ([*context, *source] for context, source in zip(self.contexts, self.sources, strict=True))
        return list(map(ScoreRequest, sources, self.targets, repeat(self.forced)))


class _Sentence(NamedTuple):
    """A sentence, its translation, and the sentence before it in the same line."""

    src: str
    tgt: str
    before: str = ""


@dataclass(frozen=True, eq=False)
class Pairing:
    """Divides texts into the parts that the translator would translate, and their translations to match.

    The text is prepared for the model. If that changes it, its translation is prepared too: ALL CAPS and emoji at the
    end are undone in both. Several sentences are paired if the translation has as many. Otherwise both stay
    as they are. What both sentences of a pair have gets slots, if the model has any. Parts that are too long are cut,
    the translation at about the same places.

    Attributes:
        tokenizer: of both languages.
        preparations: of texts.
        languages: that of the texts, and that of their translations.
        max_length: the most tokens of a part, EOS included. A translation may be half as long again.
        slots: whether sentences and their translations get slots.
    """

    tokenizer: Tokenizer
    preparations: Sequence[Preparation]
    languages: tuple[str, str]
    max_length: int
    slots: bool

    def __call__(self, src: str, tgt: str) -> Pair:
        """Return the parts of a text and its translation."""
        sentences = self._of_lines(src, tgt)
        pair = Pair(forced=self.tokenizer.prefixes.tgt)
        of_src, of_tgt = ([each.src for each in sentences], [each.tgt for each in sentences])
        for places in zip(sentences, _located(of_src, src), _located(of_tgt, tgt), strict=True):
            self._add(pair, *places)
        return pair

    def _of_lines(self, src: str, tgt: str) -> list[_Sentence]:
        """Return the sentences of both texts, line by line if they have as many lines."""
        lines = list(zip(src.split("\n"), tgt.split("\n"), strict=False))
        if not src.count("\n") == tgt.count("\n") > 0:
            return self._sentences(src, tgt)
        return [each for line in lines if any(map(str.strip, line)) for each in self._sentences(*line)]

    def _sentences(self, src: str, tgt: str) -> list[_Sentence]:
        """Return the sentences that the model reads, and the translation of each."""
        sources = list(prepared(src, self.preparations).leaves())
        if sources == [src] or not sources:
            return [_Sentence(src, tgt)]
        *before, casing = self._tgt_preparations
        targets = list(prepared(tgt, before).leaves())
        if len(sources) != len(targets):
            return [_Sentence(src, tgt)]
        recased = (next(prepared(target, [casing]).leaves()) for target in targets)
        usual = [
            given if source in src else each for source, given, each in zip(sources, targets, recased, strict=True)
        ]
        return list(map(_Sentence, sources, usual, ["", *sources]))

    @cached_property
    def _tgt_preparations(self) -> Sequence[Preparation]:
        """The preparations of the translation, if it was translated back."""
        tgt_model = self.tokenizer.tgt_model
        tokenizer = self.tokenizer if tgt_model is None else Tokenizer(tgt_model)
        _, tgt_lang = self.languages
        return standard_preparations(tokenizer, tgt_lang, tgt_lang)

    def _add(self, pair: Pair, sentence: _Sentence, src_places: Sequence[Span], tgt_places: Sequence[Span]) -> None:
        """Encode a sentence and its translation, cut them if they are too long, and add their parts to a pair.

        Args:
            pair: the pair.
            sentence: the sentence and its translation.
            src_places: where each character of the sentence comes from in the text of the pair.
            tgt_places: where those of the translation come from in the translation of the pair.
        """
        tokenizer, prefix = self.tokenizer, self.tokenizer.prefixes.src
        slotted, tgt_text = Slotted(sentence.src), sentence.tgt
        if self.slots:
            whole = SentencePair(sentence.src, sentence.tgt)
            slotted, tgt_text = pair_with_its_slots(whole, self.languages, tokenizer.n_src_tokens)
        src_ids = tokenizer.encode_src([slotted.text])[0][len(prefix) : -1]
        tgt_ids = tokenizer.encode_tgt([tgt_text])[0][:-1]
        src_tokens, tgt_tokens = tokenizer.src_tokens(src_ids), tokenizer.tgt_tokens(tgt_ids)
        src_sizes = cut(src_tokens, self.max_length - len(prefix) - 1)
        tgt_sizes = cut(tgt_tokens, self.max_length + self.max_length // 2)
        if len(tgt_sizes) > len(src_sizes):
            src_sizes = cut_alike(src_tokens, tgt_sizes)
        else:
            tgt_sizes = cut_alike(tgt_tokens, src_sizes)
        sources = [[*prefix, *part, tokenizer.special_ids.eos] for part in _parts(src_ids, src_sizes)]
        context = tokenizer.context(sentence.before)  # if it fits; see SentencePlanner.after
        has_context = len(sources) == 1 and len(context) + len(sources[0]) <= self.max_length
        pair.sources += sources
        pair.targets += _parts(tgt_ids, tgt_sizes)
        pair.contexts += [context] if has_context else [()] * len(sources)
        pair.slotted += [slotted] * len(sources)
        pair.is_cut |= len(sources) > 1
        src_spans = tokenizer.src.spans(slotted.text, [i for part in sources for i in part[:-1]])
        src_spans = _without_slots(src_spans, slotted.text, slotted.originals, sentence.src)
        tgt_spans = _without_slots(tokenizer.tgt.spans(tgt_text, tgt_ids), tgt_text, slotted.fillings, sentence.tgt)
        pair.src_spans += [_in_text(span, src_places) for span in src_spans]
        pair.tgt_spans += [_in_text(span, tgt_places) for span in tgt_spans]


def _parts(ids: Sequence[int], sizes: Sequence[int]) -> list[Sequence[int]]:
    return [ids[end - size : end] for size, end in zip(sizes, accumulate(sizes), strict=True)]


def _without_slots(spans: Sequence[Span], slotted: str, meanings: Mapping[str, str], text: str) -> list[Span]:
    """Return the spans of a text that those of the same text with slots come from."""
    if not meanings:
        return list(spans)
    written = [meanings.get(character, character) for character in slotted]
    ends = accumulate(map(len, written))
    places = [(end - len(each), end) for each, end in zip(written, ends, strict=True)]
    of_text = _places("".join(written), text, 0)  # whose spaces may have been changed
    return [_in_text(_in_text(span, places), of_text) for span in spans]


def _located(parts: Sequence[str], text: str) -> list[list[Span]]:
    """Return for each character of each part where it comes from in ``text``, whose parts follow each other."""
    of_parts, start = [], 0
    for part in parts:
        places = _places(part, text, start)
        of_parts.append(places)
        start = max([start, *(end for _, end in places)])
    return of_parts


def _places(part: str, text: str, start: int) -> list[Span]:
    at = text.find(part, start)
    if at >= 0:
        return _each(at, len(part))
    changed, given = part, text[start : start + 2 * len(part) + 20]  # it may have been changed from ALL CAPS
    if (len(changed.lower()), len(given.lower())) == (len(changed), len(given)):
        changed, given = changed.lower(), given.lower()
    at = given.find(changed)
    if at >= 0:
        return _each(start + at, len(part))
    places: list[Span] = []
    for _, a, b, c, d in SequenceMatcher(None, changed, given, autojunk=False).get_opcodes():
        places += _each(start + c, b - a) if b - a == d - c else [(start + c, start + d)] * (b - a)
    return places


def _each(start: int, n: int) -> list[Span]:
    """Return the span of each of ``n`` characters from ``start`` on."""
    return [(place, place + 1) for place in range(start, start + n)]


def _in_text(span: Span, places: Sequence[Span]) -> Span:
    """Return the span of a text that the characters ``span`` of a part come from."""
    start, end = span
    if start < end:
        return places[start][0], max(places[start][0], places[end - 1][1])
    at = places[start][0] if start < len(places) else (places[-1][1] if places else 0)
    return at, at
