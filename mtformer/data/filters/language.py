"""Which texts are surely not in the language that they should be in.

A language identifier is often wrong on a few words, so a text is only refused when it is long enough and when another
language is far more probable than the expected one. Identifying a text takes some 50 microseconds; adding up the scores
of its words, which a table keeps, takes 7 and settles most texts.
"""

import math
import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from mtformer.text.languages import base_language, is_written_with_spaces, letters_of

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

_ODDS = 10.0  # how many times more probable than the expected language another one must be
_FEWEST_LETTERS = 10  # in a text that is refused
_TEXTS_AT_ONCE = 1_000
_MOST_WORDS = 2**15  # in the table, which then has 18 MB
_SAME = (
    {"no", "nn", "da"},
    {"zh", "yue", "wuu"},
    {"bs", "hr", "sr"},
    {"id", "ms"},
    {"en", "pcm"},
    {"ar", "ary", "arz"},
)
_NO_FEATURES = -1e30  # what all languages score if a text says nothing about its language
_LABELS = {"nb": "no", "fil": "tl", "iw": "he", "in": "id"}  # codes for which the identifier has another


class LanguageTest:
    """Finds texts that are in another language than the expected one."""

    def __init__(self, code: str) -> None:
        """Expect the language ``code``."""
        self._language = _LABELS.get(base_language(code), base_language(code))
        self._is_spaced = is_written_with_spaces(code)
        self._own_letters = re.compile(f"[{letters_of(code) or ''}]") if not self._is_spaced else None
        self._words: _WordScores | None = None  # made on first use: it is large, and each process makes its own

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_words": None}

    @property
    def is_known(self) -> bool:
        """Whether the identifier knows the language."""
        return self._language in _identifier().labels

    def wrong(self, texts: Sequence[str]) -> list[bool]:
        """Tell of each text whether it is surely in another language."""
        if not self.is_known:
            return [False] * len(texts)
        in_doubt = self._in_doubt_by_words if self._is_spaced else self._in_doubt_by_letters
        found = [False] * len(texts)
        for first in range(0, len(texts), _TEXTS_AT_ONCE):
            for place in in_doubt(texts[first : first + _TEXTS_AT_ONCE]):
                found[first + place] = self._is_other(texts[first + place])
        return found

    def _in_doubt_by_words(self, texts: Sequence[str]) -> list[int]:
        """Return the places of texts whose words, taken together, do not speak for the expected language."""
        if self._words is None:
            self._words = _WordScores(self._language)
        rows = [[self._words[word] for word in text.split()] for text in texts]
        lengths = np.array([len(row) for row in rows])
        filled = np.flatnonzero(lengths)
        if not len(filled):
            return []
        starts = (np.cumsum(lengths) - lengths)[filled]
        scores = np.add.reduceat(self._words.table[[i for row in rows for i in row]], starts)
        return filled[scores[:, 0] <= scores[:, 1:].max(axis=1)].tolist()

    def _in_doubt_by_letters(self, texts: Sequence[str]) -> list[int]:
        """Return the places of texts that are mostly not in the letters of the expected language, which has its own."""
        assert self._own_letters
        return [
            place
            for place, text in enumerate(texts)
            if 2 * len(self._own_letters.findall(text)) < sum(map(str.isalpha, text))
            or (self._language == "zh" and any("\u3040" <= character <= "\u30ff" for character in text))  # kana
        ]

    def _is_other(self, text: str) -> bool:
        if sum(map(str.isalpha, text)) < _FEWEST_LETTERS or text.istitle():  # names are the same in many languages
            return False
        scores = dict(_identifier().rank(text))
        expected = max(scores.pop(label, -math.inf) for label in _same(self._language))
        # The scores are log likelihoods of overlapping n-grams; divided by this root, they are calibrated.
        return (max(scores.values()) - expected) / math.sqrt(len(text.encode())) > math.log(_ODDS)


class _WordScores(dict[str, int]):
    """The row of each word in ``table``, whose first column is the expected language; the others are all others.

    Row 0 is that of words without a row of their own: most words of a text occur in it only once.
    """

    def __init__(self, language: str) -> None:
        super().__init__()
        same = _same(language)
        self._first = [label for label in _identifier().labels if label in same]
        self._rest = [label for label in _identifier().labels if label not in same]
        self._once: set[str] = set()
        self.table = np.zeros((1_024, 1 + len(self._rest)), dtype=np.float32)

    def __missing__(self, word: str) -> int:
        if len(self) == _MOST_WORDS:
            return 0
        if word not in self._once:
            self._once.add(word)
            return 0
        self._once.remove(word)
        row = self[word] = 1 + len(self)
        if row == len(self.table):
            self.table = np.concatenate([self.table, np.zeros_like(self.table)])
        scores = dict(_identifier().rank(word))
        if max(scores.values()) > _NO_FEATURES:  # else the row stays zero
            expected = max(scores[label] for label in self._first)
            self.table[row] = [expected, *(scores[label] for label in self._rest)]
        return row


def _same(language: str) -> set[str]:
    """Return the languages that are not told apart from ``language``."""
    return next((group for group in _SAME if language in group), {language})


@cache
def _identifier() -> "LanguageIdentifier":
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # reads its model of 5 MB

    return LanguageIdentifier.from_model_file(MODEL_FILE)
