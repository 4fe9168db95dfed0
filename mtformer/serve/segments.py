"""Translations as the translator's page shows them: sentence by sentence, with the words that correspond.

The page takes what :func:`segment` returns, as JSON. Places are in UTF-16 code units, those of JavaScript.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from mtformer.text.languages import separator_of
from mtformer.text.marks import places_of_texts
from mtformer.text.sentences import split_sentences
from mtformer.text.tokenizer.vocabulary import on_one_line
from mtformer.text.words import Span, word_spans
from mtformer.translate.alignment import Alignment
from mtformer.translate.guard import with_languages_noted
from mtformer.translate.plan import Plan, together
from mtformer.translate.translation import Translation
from mtformer.translate.translator import Translator

_LINE_END = re.compile(r"\r?\n")
_N_NEXT, _N_ALTERNATIVES = 10, 5  # tokens that alternatives begin with, and those that are shown
_LEAST_SHARE = 0.5  # of the attention to the first source word of a word, for it to have another


@dataclass(frozen=True)
class Place:
    """A sentence in a text.

    Attributes:
        text: the sentence.
        start: where it stands in the text, in characters.
        joiner: what comes before its translation.
        before: the sentence before it in its line.
    """

    text: str
    start: int
    joiner: str
    before: str


def sentences(text: str, src_lang: str, tgt_lang: str) -> tuple[list[Place], str]:
    """Return the sentences of a text, line by line, and the text after the last.

    The signs that a line starts with and the bars of tables are in no sentence.
    """
    places: list[Place] = []
    at, joiner = 0, ""
    for line, end in zip(_LINE_END.split(text), [*_LINE_END.findall(text), ""], strict=True):
        done = 0
        for start, stop in places_of_texts(line, src_lang):
            joiner += on_one_line(line[done:start])
            place, last = at + start, ""
            for sentence in split_sentences(line[start:stop], src_lang):
                place = text.index(sentence, place)
                places.append(Place(sentence, place, separator_of(tgt_lang) if last else joiner, last))
                place, joiner, last = place + len(sentence), "", sentence
            done = stop
        joiner += on_one_line(line[done:]) + end
        at += len(line) + len(end)
    return places, joiner


def plan_segments(translator: Translator, text: str) -> Plan[dict[str, Any]]:
    """Translate a text, and return it with its segments."""
    places, end = sentences(text, translator.src_lang, translator.tgt_lang)
    found = yield from together(translator.after(place.before, place.text).plan(place.text) for place in places)
    found = with_languages_noted([place.text for place in places], found, translator.src_lang)
    best = [translations[0] for translations in found]
    alignments = yield from together(
        translator.plan_alignment(place.text, each.text) for place, each in zip(places, best, strict=True)
    )
    whole, segments, notes = "", [], dict[str, None]()
    for place, translation, alignment in zip(places, best, alignments, strict=True):
        whole += place.joiner
        segments.append(segment(translation, alignment, _units(text[: place.start]), _units(whole)))
        whole += translation.text
        notes |= dict.fromkeys(translation.notes)
    return {"text": whole + end, "notes": list(notes), "segments": segments}


def plan_beginning(translator: Translator, text: str, start: str) -> Plan[dict[str, Any] | None]:
    """Return the best translation of a sentence that begins in a given way, as a segment; None if there is none."""
    segments = yield from _plan_continued(translator, text, start, 0)
    return segments[0][1] if segments else None


def plan_alternatives(translator: Translator, text: str, start: str) -> Plan[list[dict[str, Any]]]:
    """Return translations of a sentence with a given beginning and different next words, best first."""
    start = start.strip()
    segments = yield from _plan_continued(translator, text, start, _N_NEXT)
    segments.sort(key=lambda each: -each[0].score)
    alternatives: dict[str, dict[str, Any]] = {}
    for translation, shown in segments:
        spans = [span for span in word_spans(translation.text) if span[0] >= len(start)]
        if not spans or not translation.text.startswith(start):
            continue
        word, tokens = translation.text[slice(*spans[0])], approximate_spans(translation.text, translation.tokens)
        probability = next(iter(_probabilities(translation, tokens, spans[0])), 0.0)  # of its first token
        facts = {"word": word, "probability": probability, "text": translation.text, "score": translation.score}
        alternatives.setdefault(word, facts | {"segment": shown})
    return list(alternatives.values())[:_N_ALTERNATIVES]


def _plan_continued(
    translator: Translator, text: str, start: str, n_next: int
) -> Plan[list[tuple[Translation, dict[str, Any]]]]:
    found = yield from translator.plan_continued(text, start, n_next)
    alignments = yield from together(translator.plan_alignment(text, each.text) for each in found)
    return [(each, segment(each, of_each, 0, 0)) for each, of_each in zip(found, alignments, strict=True)]


def segment(translation: Translation, alignment: Alignment, start: int, tgt_start: int) -> dict[str, Any]:
    """Return a sentence and its translation, which start at these places in the whole texts."""
    src, tgt = alignment.src, alignment.tgt
    weights: dict[int, list[tuple[float, int]]] = {}  # of each word of the translation, those of its source
    for src_word, tgt_word, weight in alignment.word_weights():
        weights.setdefault(tgt_word, []).append((-weight, src_word))
    tokens = approximate_spans(translation.text, translation.tokens)
    words = [
        {
            **_moved(tgt, span, tgt_start),
            "confidence": _confidence(translation, tokens, span),
            "sources": _sources(weights.get(number, [])),
        }
        for number, span in enumerate(word_spans(tgt))
    ]
    return {
        "src": src,
        "tgt": tgt,
        "start": start,
        "end": start + _units(src),
        "tgtStart": tgt_start,
        "tgtEnd": tgt_start + _units(tgt),
        "notes": translation.notes,
        "words": words,
        "sources": [_moved(src, span, start) for span in word_spans(src)],
    }


def _sources(weights: Sequence[tuple[float, int]]) -> list[int]:
    """Return the words that a word attends to almost as much as to any, most first, given negative weights."""
    least = min((weight for weight, _ in weights), default=0.0) * _LEAST_SHARE
    return [word for weight, word in sorted(weights) if weight <= least]


def approximate_spans(text: str, tokens: Sequence[str]) -> list[Span]:
    """Return where the tokens of a translation stand in its text, in proportion where they do not spell it."""
    sizes = [0 if token == "</s>" else len(token.replace("▁", " ")) for token in tokens]
    scale = len(text) / max(1, sum(sizes) - 1)
    ends = [max(0, end - 1) * scale for end in accumulate(sizes)]  # the first token starts with a space
    return [(round(start), round(end)) for start, end in zip([0.0, *ends], ends, strict=False)]


def _confidence(translation: Translation, tokens: Sequence[Span], word: Span) -> float:
    """Return the mean probability of the tokens in a word."""
    probabilities = _probabilities(translation, tokens, word)
    return sum(probabilities) / len(probabilities) if probabilities else translation.confidence


def _probabilities(translation: Translation, tokens: Sequence[Span], word: Span) -> list[float]:
    """Return the probabilities of the tokens in a word."""
    return [
        math.exp(log_prob)
        for (start, end), log_prob in zip(tokens, translation.token_log_probs, strict=False)
        if start < word[1] and word[0] < end
    ]


def _moved(text: str, span: Span, offset: int) -> dict[str, int]:
    """Return where a span of a sentence stands in the whole text, in which the sentence starts at ``offset``."""
    start, end = (offset + _units(text[:place]) for place in span)
    return {"start": start, "end": end}


def _units(text: str) -> int:
    """Return the length of a text in UTF-16 code units."""
    return len(text) + sum(character > "\uffff" for character in text)
