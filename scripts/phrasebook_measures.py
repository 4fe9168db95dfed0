"""What the phrasebook measures: the senses of words, the nouns of pronouns, and which words of two sentences align."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from phrasebook_forms import forms, pronoun_forms

from mtformer.phrasebook.lexicon import LEXICON, Entry, Name, senses
from mtformer.phrasebook.meaning import NounPhrase, Pronoun, Sentence
from mtformer.phrasebook.numerals import form
from mtformer.phrasebook.splits import LANGUAGES, Saying, antecedent, clauses_of, entries, held_out, phrases_of

_Span = tuple[int, int]  # start and end, in characters


class Challenge(NamedTuple):
    """A sentence to translate.

    Attributes:
        src: the English sentence.
        tgt: the reference translation.
        expected: for each question, a set of words of which the translation must contain one.
    """

    src: str
    tgt: str
    expected: tuple[frozenset[str], ...]

    def is_met_by(self, hypothesis: str) -> bool:
        """Return whether ``hypothesis`` contains all expected words, whatever else may be wrong with it.

        A word must occur as often as in ``tgt``, because it can also be part of another word, as 老 is of 老虎.
        """
        return all(any(_count(word, hypothesis) >= _count(word, self.tgt) for word in words) for words in self.expected)


def ambiguous_words(tgt_lang: str) -> list[Challenge]:
    """Return the sentences of ``ambiguous`` with a word whose senses have different translations in ``tgt_lang``."""
    challenges = []
    for saying in held_out("ambiguous"):
        tgt = saying.text(tgt_lang)
        expected = tuple(_expected_words(saying, tgt, tgt_lang))
        if expected:
            challenges.append(Challenge(saying.en, tgt, expected))
    return challenges


def pronouns(tgt_lang: str) -> list[Challenge]:
    """Return the split ``pronouns``: German uses *er*, *sie* or *es*; Chinese 它 for animals, else the noun."""
    because = {"de": "weil ", "zh": "因为"}[tgt_lang]
    challenges = []
    for saying in held_out("pronouns"):
        tgt = saying.text(tgt_lang)
        it = antecedent(saying.meaning) if isinstance(saying.meaning, Sentence) else None
        if it:
            expected = because + LANGUAGES[tgt_lang].pronoun(it)
            challenges.append(Challenge(saying.en, tgt, (frozenset([expected]),)))
    return challenges


class Visitor(NamedTuple):
    """A sentence that a visitor types.

    Attributes:
        src: the English sentence.
        accepted: a pattern of its acceptable translations.
    """

    src: str
    accepted: re.Pattern[str]

    def is_met_by(self, hypothesis: str) -> bool:
        """Return whether ``hypothesis`` is one of the acceptable translations."""
        return self.accepted.fullmatch(hypothesis) is not None


def visitors(tgt_lang: str) -> list[Visitor]:
    """Return the sentences of ``visitors.tsv``, in which ``(a|b)`` stands for *a* or *b*."""
    column = {"de": "german", "zh": "chinese"}[tgt_lang]
    return [Visitor(src, _alternatives(row[column])) for src, row in LEXICON.visitors.items()]


def _alternatives(text: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"[^(|)]+", lambda part: re.escape(part[0]), text))


def _expected_words(saying: Saying, tgt: str, tgt_lang: str) -> Iterator[frozenset[str]]:
    for entry in entries(saying.meaning) if isinstance(saying.meaning, Sentence) else ():
        if _tells_senses_apart(entry, tgt_lang):
            words = frozenset(word for word in forms(entry, tgt_lang) if _count(word, tgt))
            if words:
                yield words


def _tells_senses_apart(entry: Entry, language: str) -> bool:
    """Return whether the language has different words for the senses of the English word."""
    return any(forms(entry, language).isdisjoint(forms(sense, language)) for sense in senses(entry))


def _count(word: str, text: str) -> int:
    """Count ``word``; only whole words in German, where *alt* is also part of *kalt*."""
    return len(re.findall(rf"(?<![a-zäöüß]){re.escape(word)}(?![a-zäöüß])", text, re.IGNORECASE))


class Concept(NamedTuple):
    """A part of a sentence's meaning, such as a noun or a time, and where each of two sentences expresses it."""

    src: _Span
    tgt: _Span


def concepts(saying: Saying, src_lang: str, tgt_lang: str) -> list[Concept]:
    """Return the nouns, verbs, adjectives, names, times, numbers and pronouns that both sentences express once.

    What one of the languages leaves out or says in separate words is missing, and so is a word that occurs twice.
    """
    if not isinstance(saying.meaning, Sentence):
        return []
    in_both = zip(_expressed(saying, src_lang), _expressed(saying, tgt_lang), strict=True)
    return sorted(Concept(src, tgt) for src, tgt in in_both if src and tgt)


def _expressed(saying: Saying, language: str) -> list[_Span | None]:
    """Return where the sentence in ``language`` expresses each part of the meaning."""
    assert isinstance(saying.meaning, Sentence)
    text = saying.text(language)
    parts = list(_forms(saying.meaning, language))
    places: list[_Span | None] = [None] * len(parts)
    for place in sorted(range(len(parts)), key=lambda place: -max(map(len, parts[place]), default=0)):
        matches = [match.span() for match in _pattern(parts[place], language).finditer(text)] if parts[place] else []
        places[place] = matches[0] if len(matches) == 1 else None
        for start, end in matches:  # a longer word first: 老 is also part of 老虎
            text = text[:start] + "\n" * (end - start) + text[end:]
    return places


def _pattern(words: set[str], language: str) -> re.Pattern[str]:
    alternatives = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
    return re.compile(alternatives if language == "zh" else rf"\b(?:{alternatives})\b", re.IGNORECASE)


def _forms(meaning: Sentence, language: str) -> Iterator[set[str]]:
    """Yield the forms that each part of the meaning may have, the same parts in every language."""
    for entry in entries(meaning):
        yield forms(entry, language)
    for clause in clauses_of(meaning):
        if clause.time:
            yield forms(clause.time, language)
        for phrase in phrases_of(clause):
            yield _head_forms(phrase, language)
            if phrase.count:
                yield {form(phrase.count, language, digits=phrase.digits)}
            if isinstance(phrase.owner, Pronoun):
                yield pronoun_forms(phrase.owner, language)


def _head_forms(phrase: NounPhrase, language: str) -> set[str]:
    """Return the forms of a name or pronoun; :func:`entries` has the nouns."""
    match phrase.head:
        case Name() as name:
            return forms(name, language)
        case Pronoun.IT:
            return {"it" if language == "en" else LANGUAGES[language].pronoun(phrase)} - {""}
        case Pronoun() as pronoun:
            return pronoun_forms(pronoun, language)
    return set()
