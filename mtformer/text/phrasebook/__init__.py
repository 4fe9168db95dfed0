"""The corpus that ships with the package: one meaning, said in English, German and Chinese.

A seeded grammar draws meanings (:mod:`.grammar`) from a lexicon (:mod:`.lexicon`), and :mod:`.english`, :mod:`.german`
and :mod:`.chinese` say them. The grammar can say far more than 10^7 sentences; :func:`sentences` draws a split of it.

    train           any number of sentences
    valid, test     sentences that do not occur in train
    compositional   each with a combination (verb and object, adjective and noun, the two nouns that *it* may mean) that
                    train, valid and test never have, though they have its parts
    ambiguous       with a word that has several meanings, such as *chips*; otherwise like test
    pronouns        with an *it* that may mean either of two nouns; otherwise like test
"""

import zlib
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import islice
from typing import NamedTuple

from mtformer.errors import UserError
from mtformer.progress import Progress
from mtformer.text.phrasebook import chinese, english, german
from mtformer.text.phrasebook.grammar import Grammar
from mtformer.text.phrasebook.lexicon import Entry, Noun, lexicon
from mtformer.text.phrasebook.meaning import Clause, Meaning, NounPhrase, Pair, Phrasal, Sentence
from mtformer.text.phrasebook.phrases import nouns

LANGUAGES = {"en": english, "de": german, "zh": chinese}
TRAIN_SIZE = 60_000
HELD_OUT_SIZES = {"valid": 1_000, "test": 1_000, "compositional": 1_000, "ambiguous": 1_000, "pronouns": 1_000}
_HELD_OUT_SHARE = 10  # one combination in so many
_FEW = 5
_WORDS = range(2, 31)


class Saying(NamedTuple):
    """A meaning and how it is said."""

    meaning: Meaning
    en: str
    de: str
    zh: str

    def text(self, language: str) -> str:
        """Return the sentence in ``language``, one of :data:`LANGUAGES`."""
        return str(getattr(self, language))


def sentences(split: str, *, size: int | None = None, seed: int = 1) -> tuple[Saying, ...]:
    """Draw the sentences of a split; the same ones each time. Only ``train`` depends on ``seed``.

    Raises:
        UserError: ``size`` is more than the split has; ``train`` has any number.
    """
    if split == "train":
        return _train(size or TRAIN_SIZE, seed)
    available = HELD_OUT_SIZES[split]
    if size is not None and size > available:
        raise UserError(f"the phrasebook's split {split} has {available:,} sentences, not {size:,}")
    return _held_out()[split][:size]


@lru_cache(maxsize=2)  # a run reads its training text three times
def _train(size: int, seed: int) -> tuple[Saying, ...]:
    taken = {text for split in _held_out().values() for saying in split for text in saying[1:]}
    drawn = []
    with Progress("drawing sentences", size, unit="sentences") as progress:
        for saying in islice(_new(f"train {seed}", taken, fixed_phrases=True), size):
            drawn.append(saying)
            progress.advance(1)
    return tuple(drawn)


@cache
def _held_out() -> dict[str, tuple[Saying, ...]]:
    taken: set[str] = set()
    splits = {}
    for split, size in HELD_OUT_SIZES.items():
        splits[split] = tuple(islice(_new(split, taken), size))
        taken |= {text for saying in splits[split] for text in saying[1:]}
    return splits


def _new(split: str, taken: set[str], *, fixed_phrases: bool = False) -> Iterator[Saying]:
    """Draw sentences that fit ``split``, none twice and none that shares its text in any language with ``taken``."""
    grammar = Grammar(split)
    seen = set()
    while True:
        meaning = grammar.draw()
        if not (_fits(split, meaning) if isinstance(meaning, Sentence) else fixed_phrases):
            continue
        saying = Saying(meaning, *(language.sentence(meaning) for language in LANGUAGES.values()))
        if len(saying.en.split()) in _WORDS and saying.en not in seen and taken.isdisjoint(saying[1:]):
            seen.add(saying.en)
            yield saying


def _fits(split: str, meaning: Sentence) -> bool:
    if split == "ambiguous" and not any(len(lexicon().senses(entry)) > 1 for entry in entries(meaning)):
        return False
    if split == "pronouns" and antecedent(meaning) is None:
        return False
    return any(map(is_held_out, combinations(meaning))) == (split == "compositional")


Combination = tuple[str, str, str]


def combinations(meaning: Sentence) -> Iterator[Combination]:
    """What stands together in a sentence: verb and object, adjective and noun, the two nouns that *it* may mean."""
    for clause in _clauses(meaning):
        if clause.verb:
            for phrase in _parts(clause.object):
                if isinstance(phrase.head, Noun):
                    yield "verb, object", clause.verb.id, phrase.head.id
        if clause.quality:
            for phrase in _parts(clause.subject):
                noun = phrase.antecedent or phrase.head
                if isinstance(noun, Noun):
                    yield "adjective, noun", clause.quality.adjective.id, noun.id
        for phrase in _phrases(clause):
            if phrase.adjective and isinstance(phrase.head, Noun):
                yield "adjective, noun", phrase.adjective.id, phrase.head.id
    if antecedent(meaning):
        nouns = [phrase.head.id for phrase in _phrases(meaning.main) if isinstance(phrase.head, Noun)]
        yield "nouns of it", nouns[0], nouns[1]


@cache
def is_held_out(combination: Combination) -> bool:
    """Tell whether only the compositional split has it.

    Never so for words of several meanings, and for those that stand with few others: they need examples.
    """
    kind, first, second = combination
    if "." in first + second:
        return False
    if kind == "verb, object":
        verbs = [verb for verb in lexicon().verbs.values() if lexicon().nouns[second] in nouns(verb.object)]
        if min(len(nouns(lexicon().verbs[first].object)), len(verbs)) < _FEW:
            return False
    if kind == "adjective, noun":
        adjectives = [one for one in lexicon().adjectives.values() if one.describes(lexicon().nouns[second])]
        described = [noun for noun in lexicon().nouns.values() if lexicon().adjectives[first].describes(noun)]
        if min(len(adjectives), len(described)) < _FEW:
            return False
    return zlib.crc32("|".join(combination).encode()) % _HELD_OUT_SHARE == 0


def entries(meaning: Sentence) -> Iterator[Entry]:
    """The verbs, nouns and adjectives of a sentence."""
    for clause in _clauses(meaning):
        if clause.verb:
            yield clause.verb
        if clause.quality:
            yield clause.quality.adjective
        for phrase in _phrases(clause):
            if isinstance(phrase.head, Noun):
                yield phrase.head
            if phrase.adjective:
                yield phrase.adjective


def _clauses(meaning: Sentence) -> Iterator[Clause]:
    for clause in (meaning.main, meaning.second):
        if clause:
            yield clause
            yield from (phrase.relative for phrase in _phrases(clause) if phrase.relative)


def _phrases(clause: Clause) -> Iterator[NounPhrase]:
    for phrasal in (clause.subject, clause.recipient, clause.object):
        yield from _parts(phrasal)
    if clause.place and isinstance(clause.place.where, NounPhrase):
        yield clause.place.where


def _parts(phrasal: Phrasal | None) -> tuple[NounPhrase, ...]:
    if phrasal is None:
        return ()
    return (phrasal.first, phrasal.second) if isinstance(phrasal, Pair) else (phrasal,)


def antecedent(meaning: Sentence) -> NounPhrase | None:
    """The *it* of a sentence that has one with an antecedent."""
    subject = meaning.second.subject if meaning.second else None
    return subject if isinstance(subject, NounPhrase) and subject.antecedent else None
