"""How well the words of two sides explain each other, as numbers for each pair."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtformer.config import LanguagePair
from mtformer.text.ibm_model_1 import Cells, EncodedPairs, ibm_model_1_both_ways
from mtformer.text.languages import is_written_with_spaces
from mtformer.text.sources import SentencePair

Features = NDArray[np.float64]

N_FEATURES = 12
_MOST_WORDS = 2**16 - 1  # with numbers of their own; all others share 0
_LEAST_PROBABILITY = 1e-3  # of a word given another, in the table
_SLOTS = 3  # of the hash table for each of its entries, at least
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio
_UNEXPLAINED = 0.1  # weight of a word's own frequency against its translations
_EXPLAINED = 0.1  # mean probability, from which on a word has a translation on the other side
_WORD, _CHARACTER = re.compile(r"\w+|[^\w\s]"), re.compile(r"[A-Za-z0-9]+|[^\sA-Za-z0-9]")


class _Numbers(dict[str, int]):
    """Numbers of words; 0 for any other word."""

    def __missing__(self, word: str) -> int:
        return 0


class Words:
    """Numbers for the most frequent words of a language, or characters where no spaces separate words."""

    def __init__(self, pattern: re.Pattern[str], numbers: dict[str, int]) -> None:
        """Take what :meth:`learn` has learned."""
        self._pattern = pattern
        self._numbers = _Numbers(numbers)

    @classmethod
    def learn(cls, texts: Iterable[str], code: str) -> tuple["Words", NDArray[np.int64], NDArray[np.int64]]:
        """Count the words of ``texts`` in the language ``code``, and encode them."""
        pattern = _WORD if is_written_with_spaces(code) else _CHARACTER
        found: defaultdict[str, int] = defaultdict(count().__next__)  # numbers in the order in which words occur
        words, lengths = _encoded(texts, pattern, found.__getitem__)
        by_frequency = np.argsort(-np.bincount(words), kind="stable")
        numbers = np.zeros(len(found), dtype=np.int64)
        numbers[by_frequency[:_MOST_WORDS]] = np.arange(1, min(len(found), _MOST_WORDS) + 1)
        kept = {word: number for word, number in zip(found, numbers.tolist(), strict=True) if number}
        return cls(pattern, kept), numbers[words], lengths

    def encode(self, texts: Iterable[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the numbers of the words of all texts, and how many each text has, at least one."""
        return _encoded(texts, self._pattern, self._numbers.__getitem__)


def _encoded(
    texts: Iterable[str], pattern: re.Pattern[str], number: Callable[[str], int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    lengths = []

    def rows() -> Iterator[list[str]]:
        for text in texts:
            words = pattern.findall(text.casefold()) or [""]
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


class Association:
    """What some pairs say about words: their translations and their frequencies."""

    def __init__(self, pairs: EncodedPairs) -> None:
        """Learn from ``pairs``."""
        table, reverse = ibm_model_1_both_ways(pairs, _MOST_WORDS + 1)
        kept = np.flatnonzero(np.maximum(table.probabilities, reverse) >= _LEAST_PROBABILITY)
        kept = kept[np.argsort(table.probabilities[kept], kind="stable")]  # the likelier of two in one slot comes last
        self._keys = table.src[kept] * (_MOST_WORDS + 1) + table.tgt[kept]
        self._there = table.probabilities[kept].astype(np.float32)
        self._back = reverse[kept].astype(np.float32)
        # A hash table in which one entry in eight loses its slot: five times as fast as a binary search.
        self._n_bits = int(np.ceil(np.log2(_SLOTS * max(1, len(self._keys)))))
        self._slots = np.zeros(2**self._n_bits, dtype=np.int32)
        self._slots[self._slot(self._keys)] = np.arange(len(self._keys), dtype=np.int32)
        self._src_frequencies = np.bincount(pairs.src, minlength=_MOST_WORDS + 1) / len(pairs.src)
        self._tgt_frequencies = np.bincount(pairs.tgt, minlength=_MOST_WORDS + 1) / len(pairs.tgt)

    def features(self, pairs: EncodedPairs) -> Features:
        """Return numbers that tell good pairs from bad ones, of shape (pairs, features)."""
        cells = Cells.of(pairs)
        keys = (pairs.src * (_MOST_WORDS + 1))[cells.src] + pairs.tgt[cells.tgt]
        places = self._slots[self._slot(keys)]
        is_known = np.flatnonzero(self._keys[places] == keys)
        places = places[is_known]
        there = _sums(self._there[places], cells.tgt[is_known], len(pairs.tgt))
        back = _sums(self._back[places], cells.src[is_known], len(pairs.src))
        ratio = np.log(pairs.src_lengths / pairs.tgt_lengths)
        columns = [
            *_explained(there, pairs.tgt, pairs.tgt_lengths, pairs.src_lengths, self._tgt_frequencies),
            *_explained(back, pairs.src, pairs.src_lengths, pairs.tgt_lengths, self._src_frequencies),
            ratio,
            ratio**2,
            np.log(pairs.src_lengths),
            np.log(pairs.tgt_lengths),
        ]
        return np.stack(columns, axis=1)

    def _slot(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the slot of each key (Fibonacci hashing: Knuth 1973)."""
        return ((keys.view(np.uint64) * _MULTIPLIER) >> np.uint64(64 - self._n_bits)).view(np.int64)


def _sums(values: NDArray[np.float32], places: NDArray[np.int64], size: int) -> NDArray[np.float64]:
    return np.asarray(np.bincount(places, values, size), dtype=np.float64)


def _explained(
    sums: NDArray[np.float64],
    words: NDArray[np.int64],
    lengths: NDArray[np.int64],
    other_lengths: NDArray[np.int64],
    frequencies: NDArray[np.float64],
) -> list[NDArray[np.float64]]:
    """Say how well the words of a side are explained by the other side.

    Args:
        sums: the probabilities of each word given the words of the other side, added up.
        words: the words of the side.
        lengths: the words of each pair on this side.
        other_lengths: the words of each pair on the other side.
        frequencies: the relative frequency of each word.

    Returns:
        of each pair: the log likelihood ratio of its words with and without the other side, per word and in all (the
        pointwise mutual information, PMI); the share of its information that has a translation, and how much has none.
    """
    starts = np.cumsum(lengths) - lengths
    probabilities = sums / np.repeat(other_lengths, lengths)
    own = frequencies[words]
    is_known = (words > 0) & (own > 0)
    own = np.where(is_known, own, 1.0)
    ratios = np.where(is_known, np.log((1 - _UNEXPLAINED) * probabilities / own + _UNEXPLAINED), 0)
    information = -np.log(own)
    pmi = np.add.reduceat(ratios, starts)
    in_all = np.add.reduceat(information, starts)
    covered = np.add.reduceat(information * (sums > _EXPLAINED), starts)
    return [pmi / lengths, pmi, covered / np.maximum(in_all, 1e-3), np.log1p(in_all - covered)]
