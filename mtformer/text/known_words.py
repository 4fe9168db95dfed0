"""The words of a training text, where words recur so much that one outside it is new to the model.

A text of some hundred words, such as the phrasebook, shows each of them often. In ordinary text new words never end,
and a model copes with them by the tokens of their parts. The share of words that occur once estimates how likely the
next word is a new one (Good 1953, "The Population Frequencies of Species and the Estimation of Population Parameters").
"""

import re
from collections import Counter
from collections.abc import Iterable
from itertools import islice

from mtformer.text.words import WORD

_WHOLE_WORD = re.compile(rf"{WORD.pattern}(?:['’]{WORD.pattern})*")  # didn't
_MOST_NEW = 0.01  # the share of words that occur once in a text whose words recur
_FEWEST_TEXTS = 10_000  # which tell; in ordinary ones, 2 to 7 % of the words occur once


def known_words(texts: Iterable[str]) -> frozenset[str]:
    """Return the words of ``texts`` in small letters; none if their words do not recur, or the texts are few."""
    remaining = iter(texts)
    first = list(islice(remaining, _FEWEST_TEXTS))
    counts = Counter(word for text in first for word in WORD.findall(text))
    n_once = sum(count == 1 for count in counts.values())
    if len(first) < _FEWEST_TEXTS or n_once > _MOST_NEW * counts.total():
        return frozenset()
    words = set(counts)
    for text in remaining:
        words.update(WORD.findall(text))
    return frozenset(map(str.lower, words))


def unknown_words(text: str, known: frozenset[str]) -> list[str]:
    """Return the words of ``text`` that are not among ``known``, as they are written."""
    words = dict.fromkeys(_WHOLE_WORD.findall(text))
    return [word for word in words if not known.issuperset(map(str.lower, WORD.findall(word)))]
