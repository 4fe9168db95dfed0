"""Challenge sets: does a translation from English pick the right sense of a word, and the right noun for *it*?"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from mtformer.phrasebook.lexicon import Entry, senses
from mtformer.phrasebook.meaning import Sentence
from mtformer.phrasebook.splits import LANGUAGES, Saying, antecedent, entries, held_out


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


def _expected_words(saying: Saying, tgt: str, tgt_lang: str) -> Iterator[frozenset[str]]:
    forms = LANGUAGES[tgt_lang].forms
    for entry in entries(saying.meaning) if isinstance(saying.meaning, Sentence) else ():
        if _tells_senses_apart(entry, tgt_lang):
            words = frozenset(word for word in forms(entry) if _count(word, tgt))
            if words:
                yield words


def _tells_senses_apart(entry: Entry, language: str) -> bool:
    """Return whether the language has different words for the senses of the English word."""
    forms = LANGUAGES[language].forms
    return any(forms(entry).isdisjoint(forms(other)) for other in senses(entry))


def _count(word: str, text: str) -> int:
    """Count ``word``; only whole words in German, where *alt* is also part of *kalt*."""
    return len(re.findall(rf"(?<![a-zäöüß]){re.escape(word)}(?![a-zäöüß])", text, re.IGNORECASE))
