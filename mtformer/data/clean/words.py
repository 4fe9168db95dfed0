"""Sentence pairs as numbers of words."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtformer.config import LanguagePair
from mtformer.data.clean.ibm_model_1 import EncodedPairs
from mtformer.text.languages import is_written_with_spaces
from mtformer.text.pairs import SentencePair

VOCAB_SIZE = 2**16  # the most frequent words have numbers of their own; all others share 0
_MOST_WORDS = 2_000  # of a text; longer ones may be whole files
_WORD, _CHARACTER = re.compile(r"\w+|[^\w\s]"), re.compile(r"[A-Za-z0-9]+|[^\sA-Za-z0-9]")


class _Numbers(dict[str, int]):
    """Numbers of words; 0 for any other word."""

    def __missing__(self, word: str) -> int:
        return 0


class Words:
    """Numbers for the most frequent words of a language, or characters where no spaces separate words.

    Attributes:
        is_spaced: whether spaces separate words.
    """

    def __init__(self, numbers: dict[str, int], *, is_spaced: bool) -> None:
        """Take what :meth:`learn` has learned."""
        self.is_spaced = is_spaced
        self._numbers = _Numbers(numbers)

    @classmethod
    def learn(cls, texts: Iterable[str], code: str) -> tuple["Words", NDArray[np.int64], NDArray[np.int64]]:
        """Count the words of ``texts`` in the language ``code``, and encode them."""
        is_spaced = is_written_with_spaces(code)
        found: defaultdict[str, int] = defaultdict(count().__next__)  # numbers in the order in which words occur
        words, lengths = _encoded(texts, is_spaced, found.__getitem__)
        by_frequency = np.argsort(-np.bincount(words), kind="stable")
        numbers = np.zeros(len(found), dtype=np.int64)
        by_frequency = by_frequency[: VOCAB_SIZE - 1]
        numbers[by_frequency] = np.arange(1, len(by_frequency) + 1)
        kept = {word: number for word, number in zip(found, numbers.tolist(), strict=True) if number}
        return cls(kept, is_spaced=is_spaced), numbers[words], lengths

    def encode(self, texts: Iterable[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the numbers of the words of all texts, and how many each text has: at least one, at most 2,000."""
        return _encoded(texts, self.is_spaced, self._numbers.__getitem__)


def _encoded(
    texts: Iterable[str], is_spaced: bool, number: Callable[[str], int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    pattern = _WORD if is_spaced else _CHARACTER
    lengths = []

    def rows() -> Iterator[list[str]]:
        for text in texts:
            words = pattern.findall(text.casefold())[:_MOST_WORDS] or [""]
            lengths.append(len(words))
            yield words

    return np.fromiter(map(number, chain.from_iterable(rows())), np.int64), np.array(lengths, dtype=np.int64)


class Encoder(NamedTuple):
    """Turns pairs into numbers of words."""

    src: Words
    tgt: Words

    @classmethod
    def learn(cls, pairs: Sequence[SentencePair], languages: LanguagePair) -> tuple["Encoder", EncodedPairs]:
        """Count the words of pairs, and encode these."""
        src_words, src, src_lengths = Words.learn((pair.src for pair in pairs), languages.src_lang)
        tgt_words, tgt, tgt_lengths = Words.learn((pair.tgt for pair in pairs), languages.tgt_lang)
        return cls(src_words, tgt_words), EncodedPairs(src, tgt, src_lengths, tgt_lengths)

    def encode(self, pairs: Sequence[SentencePair]) -> EncodedPairs:
        """Encode pairs."""
        src, src_lengths = self.src.encode(pair.src for pair in pairs)
        tgt, tgt_lengths = self.tgt.encode(pair.tgt for pair in pairs)
        return EncodedPairs(src, tgt, src_lengths, tgt_lengths)
