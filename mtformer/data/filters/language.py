"""Which texts are surely not in the language that they should be in.

A language identifier is often wrong on a few words, so a text is only refused when it is long enough and when another
language is far more probable than the expected one. The identifier's best guess settles most texts; its scores of all
languages, which take three times as long, are computed for the rest.
"""

import logging
import math
import re
from collections.abc import Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING

from mtformer.text.languages import base_language, is_written_with_spaces, letters_of

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

log = logging.getLogger(__name__)

_ODDS = 10.0  # how many times more probable than the expected language another one must be
_FEWEST_LETTERS = 10  # in a text that is refused
_SAME = (
    {"no", "nn", "da"},
    {"zh", "yue", "wuu"},
    {"bs", "hr", "sr"},
    {"id", "ms"},
    {"en", "pcm"},
    {"ar", "ary", "arz"},
)
_LABELS = {"nb": "no", "fil": "tl", "iw": "he", "in": "id"}  # codes for which the identifier has another


class LanguageTest:
    """Finds texts that are in another language than the expected one."""

    def __init__(self, code: str) -> None:
        """Expect the language ``code``."""
        self._language = _LABELS.get(base_language(code), base_language(code))
        self._own_letters = None if is_written_with_spaces(code) else re.compile(f"[{letters_of(code) or ''}]")

    @cached_property
    def _is_known(self) -> bool:
        """Whether the identifier knows the language; pickled, so that other processes do not warn again."""
        return _knows(self._language)

    def wrong(self, texts: Sequence[str]) -> list[bool]:
        """Return for each text whether it is surely in another language."""
        return [self._is_known and self._is_other(text) for text in texts]

    def _is_other(self, text: str) -> bool:
        n_letters = sum(map(str.isalpha, text))
        if n_letters < _FEWEST_LETTERS or text.istitle():  # names are the same in many languages
            return False
        if self._own_letters and self._is_in_own_letters(text, n_letters):
            return False
        same = _same(self._language)
        if _identifier().classify(text)[0] in same:
            return False
        scores = dict(_identifier().rank(text))
        expected = max(scores.pop(label, -math.inf) for label in same)
        # The scores are log likelihoods of overlapping n-grams; divided by this root, they are calibrated.
        return (max(scores.values()) - expected) / math.sqrt(len(text.encode())) > math.log(_ODDS)

    def _is_in_own_letters(self, text: str, n_letters: int) -> bool:
        """Tell whether a text is mostly in the letters of its language, where no other has them."""
        assert self._own_letters
        if self._language == "zh" and any("\u3040" <= character <= "\u30ff" for character in text):  # kana
            return False
        return 2 * len(self._own_letters.findall(text)) >= n_letters


def _same(language: str) -> set[str]:
    """Return the languages that are not told apart from ``language``."""
    return next((group for group in _SAME if language in group), {language})


@cache
def _knows(language: str) -> bool:
    """Tell whether the identifier knows a language; warn the first time if it does not."""
    is_known = language in _identifier().labels
    if not is_known:
        log.warning("the language identifier does not know %s: the rule language lets all text in it pass", language)
    return is_known


@cache
def _identifier() -> "LanguageIdentifier":
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # reads its model of 5 MB

    return LanguageIdentifier.from_model_file(MODEL_FILE)
