"""Texts whose letters were changed as a whole: without their diacritics, or read in another 8-bit encoding.

A text without its diacritics ("fur die Gaste") has words that the corpus nearly always writes with them. A text that
was read in another encoding ("pøítel" for "přítel") has words that become words of the corpus when they are decoded
again. Both are learned from the corpus itself, which therefore must have them right in most of its texts.
"""

from collections import Counter
from collections.abc import Sequence

from mtformer.data.clean.diacritics import Diacritics
from mtformer.data.clean.misreadings import Misreadings
from mtformer.text.words import WORD

_FEWEST_TEXTS = 500  # that teach anything
_TOO_FEW = f"learning needs {_FEWEST_TEXTS} good pairs"


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
