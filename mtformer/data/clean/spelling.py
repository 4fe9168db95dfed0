"""Texts whose letters were changed as a whole: without their diacritics, or read in another 8-bit encoding.

A text without its diacritics ("fur die Gaste") has words that the corpus nearly always writes with them. A text that
was read in another encoding ("pøítel" for "přítel") has words that become words of the corpus when they are decoded
again. Both are learned from the corpus itself, which therefore must have them right in most of its texts.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice, permutations
from typing import NamedTuple

import ftfy.bad_codecs  # noqa: F401 (registers the encodings "sloppy-…", in which every byte is a character)

from mtformer.data.clean.diacritics import Diacritics
from mtformer.text.words import WORD

_FEWEST_TEXTS = 500  # that teach anything
_TOO_FEW = f"learning needs {_FEWEST_TEXTS} good pairs"
_ENCODINGS = "sloppy-windows-1250", "sloppy-windows-1252", "iso-8859-2", "mac-roman", "cp850", "sloppy-windows-1251"
_IN_PLACE = re.compile(r"(?=(.[^\x00-\x7f].))")  # a letter that may be misread, and its neighbours
_RATIO = 3  # how many times more frequent a word must be when it is decoded again
_MOST_TRIED = 5_000  # texts that all encodings are tried on
_FEWEST_MISREAD = 3  # of these, for an encoding to be tried on others


class _Misreading(NamedTuple):
    """How text is written in one encoding and read in another.

    Attributes:
        table: repairs it, by ``str.translate``.
        characters: those beyond ASCII that it may have.
    """

    table: dict[int, str]
    characters: frozenset[str]

    def decoded(self, text: str) -> str:
        """Return a text as it was written, or as it is if it has letters that no such text has."""
        if any(not each.isascii() and each.isalpha() and each not in self.characters for each in text):
            return text
        return text.translate(self.table)


def _misreadings() -> Iterator[_Misreading]:
    """Yield each pair of encodings."""
    for written, read in permutations(_ENCODINGS, 2):
        characters = bytes(range(128, 256))
        wrong, right = characters.decode(read, "replace"), characters.decode(written, "replace")
        table = {ord(a): b for a, b in zip(wrong, right, strict=True) if a != b}
        letters = {code: letter for code, letter in table.items() if letter.isalpha()}
        yield _Misreading(letters, frozenset(wrong))


class Misreadings:
    """Finds and repairs text that was read in the wrong encoding.

    A table of letters stands for each pair of encodings. Those that make words of the corpus of some of its texts are
    tried on others; one is applied where each letter that it changes fits its neighbours better then, as "ř" does
    between "p" and "í". A text with letters that the encoding lacks was not read in it.
    """

    def __init__(self, counts: Counter[str], texts: Sequence[str]) -> None:
        """Learn from texts and the counts of their words: which letters are usual between others, and the encodings."""
        self._counts = counts
        self._letters = Counter(
            letters for text in texts if not text.isascii() for letters in _IN_PLACE.findall(f" {text} ")
        )
        self._chosen = self._choose(list(islice((text for text in texts if not text.isascii()), _MOST_TRIED)))

    def decoded(self, text: str) -> str:
        """Return a text in the encoding that makes its letters usual, or as it is if that is its own."""
        if text.isascii():
            return text
        found = [text, *(misreading.decoded(text) for misreading in self._chosen)]
        return max(found, key=lambda one: self._gain(text, one))

    def _choose(self, tried: Sequence[str]) -> list[_Misreading]:
        """Return those that make better words of enough texts."""
        chosen, present = [], set("".join(tried))
        for misreading in _misreadings():
            if any(chr(code) in present and letter in present for code, letter in misreading.table.items()):
                decoded = ((text, misreading.decoded(text)) for text in tried)
                if sum(self._gain(*both) > 0 and self._has_better_words(*both) for both in decoded) >= _FEWEST_MISREAD:
                    chosen.append(misreading)
        return chosen

    def _gain(self, before: str, after: str) -> float:
        """Return the log odds of the letters that differ between their neighbours, negative if one is not better after.

        A text such as "Škoda", foreign and right, has such neighbours.
        """
        places = [slice(n, n + 3) for n, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
        before, after = f" {before} ", f" {after} "
        gains = [math.log((self._letters[after[at]] + 1) / (self._letters[before[at]] + 1)) for at in places]
        return sum(gains) if min(gains, default=0.0) > 0 else -1.0

    def _has_better_words(self, before: str, after: str) -> bool:
        """Tell whether most words that differ are far more frequent after a change."""
        pairs = list(zip(before.lower().split(), after.lower().split(), strict=False))
        changed = [pair for pair in pairs if pair[0] != pair[1]]
        n_better = sum(self._frequency(new) >= _RATIO * (self._frequency(old) + 1) for old, new in changed)
        return n_better > len(changed) / 2

    def _frequency(self, text: str) -> int:
        """Return how often the rarest word in some text occurs."""
        return min((self._counts[word] for word in WORD.findall(text)), default=0)


class Spelling:
    """Finds and repairs texts of one language whose letters were changed.

    Attributes:
        is_taught: whether the texts had letters with diacritics; if not, all texts pass.
        why_untaught: why they taught nothing, if they did not.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        """Learn from texts, most of which are right."""
        counts = Counter(word for text in texts for word in WORD.findall(text.lower()))
        self._diacritics = Diacritics(counts, texts)
        self.why_untaught = "its texts have no diacritics" if len(texts) >= _FEWEST_TEXTS else _TOO_FEW
        self.is_taught = len(texts) >= _FEWEST_TEXTS and self._diacritics.occur
        self._misreadings = Misreadings(counts, texts if self.is_taught else ())

    def is_wrong(self, text: str) -> bool:
        """Tell whether the letters of a text were probably changed."""
        return self.is_taught and (self._diacritics.are_lost(text) or self._misreadings.decoded(text) != text)

    def repair(self, text: str) -> str:
        """Return the text with its letters, or as it is if they are right or not certain."""
        if not self.is_taught:
            return text
        return self._diacritics.restored(text) if self._diacritics.are_lost(text) else self._misreadings.decoded(text)
