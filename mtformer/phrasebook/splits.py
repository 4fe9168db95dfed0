"""Draw the splits of the phrasebook and keep them disjoint."""

import zlib
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from itertools import islice
from typing import NamedTuple

from mtformer.phrasebook import chinese, english, german
from mtformer.phrasebook.grammar import Grammar
from mtformer.phrasebook.lexicon import LEXICON, Entry, Noun, Phrase, Venue, is_ambiguous
from mtformer.phrasebook.meaning import Clause, Meaning, Mood, NounPhrase, Sentence, parts
from mtformer.phrasebook.phrases import nouns
from mtformer.phrasebook.typed import plain
from mtformer.support.progress import watched

LANGUAGES = {"en": english, "de": german, "zh": chinese}
HELD_OUT = ("valid", "test", "compositional", "ambiguous", "pronouns")
_HELD_OUT_SIZE = 1_000
_HELD_OUT_SHARE = 10  # one combination in this many is held out
_FEW = 5  # a word with fewer partners keeps them all
_WORDS = range(1, 31)


class Saying(NamedTuple):
    """A meaning and its sentence in each language."""

    meaning: Meaning
    en: str
    de: str
    zh: str

    def text(self, language: str) -> str:
        """Return the sentence in ``language``, one of :data:`LANGUAGES`."""
        return str(getattr(self, language))


def sentences(split: str, size: int, seed: int) -> tuple[Saying, ...]:
    """Return at most ``size`` sentences of a split; ``seed`` selects those of ``train``."""
    return train(size, seed) if split == "train" else held_out(split)[:size]


@lru_cache(maxsize=2)  # a run reads its training text three times
def train(size: int, seed: int) -> tuple[Saying, ...]:
    """Draw ``size`` sentences for training, the same ones for the same ``seed``."""
    taken = _texts(HELD_OUT)
    visitors = {plain(text) for text in LEXICON.visitors}
    new = _new(f"train {seed}", taken, fixed_phrases=True)
    fit = (saying for saying in new if _is_fixed(saying.meaning) or plain(saying.en) not in visitors)
    return tuple(watched(islice(fit, size), "drawing sentences", "sentences", size))


@cache
def held_out(split: str) -> tuple[Saying, ...]:
    """Return the 1,000 sentences of a split other than ``train``; they are always the same."""
    taken = _texts(HELD_OUT[: HELD_OUT.index(split)])
    return tuple(islice(_new(split, taken), _HELD_OUT_SIZE))


def _texts(splits: Iterable[str]) -> set[str]:
    """Return the sentences of splits other than ``train`` in all languages."""
    return {text for split in splits for saying in held_out(split) for text in saying[1:]}


def _new(split: str, taken: set[str], *, fixed_phrases: bool = False) -> Iterator[Saying]:
    """Draw sentences that fit ``split`` and whose text in no language is in ``taken``; only fixed ones recur."""
    grammar = Grammar(split)
    seen = set()
    while True:
        meaning = grammar.draw()
        if not (fixed_phrases if _is_fixed(meaning) else _fits(split, meaning)):
            continue
        saying = Saying(meaning, *(language.sentence(meaning) for language in LANGUAGES.values()))
        is_new = saying.en not in seen or _is_fixed(meaning)
        if len(saying.en.split()) in _WORDS and is_new and taken.isdisjoint(saying[1:]):
            seen.add(saying.en)
            yield saying


def _is_fixed(meaning: Meaning) -> bool:
    """Return whether a split other than ``train`` has no such sentence: there are few, and many translate alike."""
    return isinstance(meaning, Phrase) or meaning.mood is Mood.ANSWER


def _fits(split: str, meaning: Meaning) -> bool:
    assert isinstance(meaning, Sentence)
    if split == "ambiguous" and not any(is_ambiguous(entry) for entry in entries(meaning)):
        return False
    if split == "pronouns" and antecedent(meaning) is None:
        return False
    return any(map(is_held_out, combinations(meaning))) == (split == "compositional")


Combination = tuple[str, str, str]


def combinations(meaning: Sentence) -> Iterator[Combination]:
    """Yield the combinations in a sentence: verb and object, adjective and noun, the two candidates for *it*."""
    for clause in clauses_of(meaning):
        if clause.verb:
            for phrase in parts(clause.object):
                if isinstance(phrase.head, Noun):
                    yield "verb, object", clause.verb.id, phrase.head.id
        if clause.quality and not clause.quality.years:
            for phrase in parts(clause.subject):
                noun = phrase.antecedent or phrase.head
                if isinstance(noun, Noun):
                    yield "adjective, noun", clause.quality.adjective.id, noun.id
        for phrase in phrases_of(clause):
            if isinstance(phrase.head, Noun):
                if phrase.adjective:
                    yield "adjective, noun", phrase.adjective.id, phrase.head.id
                if phrase.relative and phrase.relative.verb and phrase.relative_role == "object":
                    yield "verb, object", phrase.relative.verb.id, phrase.head.id
    if antecedent(meaning):
        subject, obj = (phrase.head for phrase in phrases_of(meaning.main) if isinstance(phrase.head, Noun))
        yield "nouns of it", subject.id, obj.id


@cache
def is_held_out(combination: Combination) -> bool:
    """Return whether only the compositional split may contain ``combination``.

    Ambiguous words and words with few partners keep all their combinations, because they need examples.
    """
    kind, first, second = combination
    noun = LEXICON.nouns[second]
    partner: Entry
    if kind == "verb, object":
        partner = LEXICON.verbs[first]
        n_partners = len(nouns(partner.object)), _n_verbs(noun)
    elif kind == "adjective, noun":
        partner = adjective = LEXICON.adjectives[first]
        n_partners = len(nouns(adjective.kinds)), _n_adjectives(noun)
    else:
        partner, n_partners = LEXICON.nouns[first], (_FEW, _FEW)
    if is_ambiguous(noun) or is_ambiguous(partner) or min(n_partners) < _FEW:
        return False
    return zlib.crc32("|".join(combination).encode()) % _HELD_OUT_SHARE == 0


@cache
def _n_verbs(noun: Noun) -> int:
    return sum(noun in nouns(verb.object) for verb in LEXICON.verbs.values())


@cache
def _n_adjectives(noun: Noun) -> int:
    return sum(adjective.describes(noun) for adjective in LEXICON.adjectives.values())


def entries(meaning: Sentence) -> Iterator[Entry]:
    """Yield the verbs, nouns and adjectives of a sentence."""
    for clause in clauses_of(meaning):
        if clause.verb:
            yield clause.verb
        if clause.quality and not clause.quality.years:
            yield clause.quality.adjective
        if clause.profession:
            yield clause.profession
        for phrase in phrases_of(clause):
            if isinstance(phrase.head, Noun):
                yield phrase.head
            if phrase.adjective:
                yield phrase.adjective
        if clause.place and isinstance(clause.place.where, Venue):
            yield clause.place.where.noun


def clauses_of(meaning: Sentence) -> Iterator[Clause]:
    """Yield the clauses of a sentence, relative ones included."""
    for clause in (meaning.main, meaning.second):
        if clause:
            yield clause
            yield from (phrase.relative for phrase in phrases_of(clause) if phrase.relative)


def phrases_of(clause: Clause) -> Iterator[NounPhrase]:
    """Yield the noun phrases of a clause."""
    for phrasal in (clause.subject, clause.recipient, clause.object):
        yield from parts(phrasal)
    if clause.place and isinstance(clause.place.where, NounPhrase):
        yield clause.place.where


def antecedent(meaning: Sentence) -> NounPhrase | None:
    """Return the *it* with an antecedent in a sentence, or None."""
    subject = meaning.second.subject if meaning.second else None
    return subject if isinstance(subject, NounPhrase) and subject.antecedent else None
