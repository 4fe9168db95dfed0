"""Which texts are surely not in the language that they should be in.

A language identifier is often wrong on a few words, so a text is only refused when it is long enough and when another
language is far more probable than the expected one.
"""

import logging
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from mtformer.data.clean.identifier import identifier
from mtformer.text.languages import base_language, is_written_with_spaces, letters_of

log = logging.getLogger(__name__)

_ODDS = 10.0  # how many times more probable than the expected language another one must be
_FEWEST_LETTERS = 10  # in a text that is refused
_FEWEST_TEXTS = 20  # most of which must be in another language for a warning
N_TEXTS = 200  # at the beginning of a text, which :func:`language_warning` looks at
_KANA = re.compile("[\u3040-\u30ff]")
_SAME = (
    {"no", "nn", "da"},
    {"zh", "yue", "wuu"},
    {"bs", "hr", "sr"},
    {"id", "ms"},
    {"en", "pcm"},
    {"ar", "ary", "arz"},
)
_LABELS = {"nb": "no", "fil": "tl", "iw": "he", "in": "id"}  # codes for which the identifier has another


def language_warning(name: str, sides: Mapping[str, Sequence[str]]) -> str | None:
    """Return a warning if most texts of a side are surely in another language, as when the sides are swapped.

    Args:
        name: what the message calls the text.
        sides: the first :data:`N_TEXTS` of it in each language, by the code of the language.
    """
    wrong = [code for code, texts in sides.items() if _most_are_wrong(texts, code)]
    if not wrong:
        return None
    return (
        f"{name}: most of the first {len(sides[wrong[0]])} texts do not seem to be in {' and '.join(wrong)}; "
        "check which language is the source and which the target"
    )


def _most_are_wrong(texts: Sequence[str], code: str) -> bool:
    test = LanguageTest(code)
    return len(texts) >= _FEWEST_TEXTS and test.is_possible and 2 * sum(test.wrong(texts)) > len(texts)


class LanguageTest:
    """Finds texts that are in another language than the expected one."""

    def __init__(self, code: str) -> None:
        """Expect the language ``code``."""
        self._language = _LABELS.get(base_language(code), base_language(code))
        self._own_letters = None if is_written_with_spaces(code) else re.compile(f"[{letters_of(code) or ''}]")

    @property
    def is_possible(self) -> bool:
        """Whether the identifier knows the language; else, all texts pass."""
        return self._language in identifier().labels

    @cached_property
    def _is_known(self) -> bool:
        """Whether the identifier knows the language; pickled, so that other processes do not warn again."""
        return _knows(self._language)

    def wrong(self, texts: Sequence[str]) -> list[bool]:
        """Return for each text whether it is surely in another language."""
        wrong = [False] * len(texts)
        judged = [number for number, text in enumerate(texts) if len(text) >= _FEWEST_LETTERS and self._is_open(text)]
        if judged and self._is_known:
            for number in np.array(judged)[self._is_improbable([texts[number] for number in judged])].tolist():
                # Names are the same in many languages.
                wrong[number] = _n_letters(texts[number]) >= _FEWEST_LETTERS and not texts[number].istitle()
        return wrong

    def _is_improbable(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """Tell for which texts another language is far more probable."""
        scores, n_bytes = identifier().scores(texts)
        is_expected = np.isin(identifier().labels, list(_same(self._language)))
        lead = scores[:, ~is_expected].max(axis=1) - scores[:, is_expected].max(axis=1)
        # The scores are log likelihoods of overlapping n-grams; divided by this root, they are calibrated.
        return lead / np.sqrt(n_bytes) > math.log(_ODDS)

    def _is_open(self, text: str) -> bool:
        """Tell whether a text may be in another language by its letters; some languages have letters of their own."""
        if not self._own_letters or (self._language == "zh" and _KANA.search(text)):
            return True
        return 2 * len(self._own_letters.findall(text)) < _n_letters(text)


def _n_letters(text: str) -> int:
    return sum(map(str.isalpha, text))


def _same(language: str) -> set[str]:
    """Return the languages that are not told apart from ``language``."""
    return next((group for group in _SAME if language in group), {language})


@cache
def _knows(language: str) -> bool:
    """Tell whether the identifier knows a language; warn the first time if it does not."""
    is_known = language in identifier().labels
    if not is_known:
        log.warning("the language identifier does not know %s: the rule language lets all text in it pass", language)
    return is_known
