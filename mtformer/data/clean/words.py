"""Sentence pairs as numbers of words, and how well the words of a sentence follow each other."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtformer.config import LanguagePair
from mtformer.text.languages import is_written_with_spaces
from mtformer.text.pairs import SentencePair

_SLOTS = 3  # for each key, at least
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio
Features = NDArray[np.float64]  # of shape (pairs, features)

VOCAB_SIZE = 2**16  # the most frequent words have numbers of their own; all others share 0
_MOST_WORDS = 2_000  # of a text; longer ones may be whole files
_WORD, _CHARACTER = re.compile(r"\w+|[^\w\s]"), re.compile(r"[A-Za-z0-9]+|[^\sA-Za-z0-9]")
_PRIOR = 5.0  # weight of a word's own frequency against the bigrams that end in it


class HashTable:
    """Finds numbers in an array, five times as fast as a binary search.

    Of two keys with one slot, only the later one is found, so put the most important ones last. Up to one in seven is
    lost.
    """

    def __init__(self, keys: NDArray[np.int64]) -> None:
        """Take distinct keys that are not negative."""
        self._keys = keys if len(keys) else np.array([-1])
        self._n_bits = int(np.ceil(np.log2(_SLOTS * len(self._keys))))
        self._slots = np.zeros(2**self._n_bits, dtype=np.int32)
        self._slots[self._slot(keys)] = np.arange(len(keys), dtype=np.int32)

    def find(self, keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return the indices of the ``keys`` that are in the table, and their places in the array of its keys."""
        places = self._slots[self._slot(keys)]
        is_there = np.flatnonzero(self._keys[places] == keys)
        return is_there, places[is_there]

    def _slot(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the slot of each key (Fibonacci hashing: Knuth 1973)."""
        return ((keys.view(np.uint64) * _MULTIPLIER) >> np.uint64(64 - self._n_bits)).view(np.int64)


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
        occurring: defaultdict[str, int] = defaultdict(count().__next__)  # numbers in the order in which words occur
        words, lengths = _encoded(texts, is_spaced, occurring.__getitem__)
        by_frequency = np.argsort(-np.bincount(words), kind="stable")
        numbers = np.zeros(len(occurring), dtype=np.int64)
        by_frequency = by_frequency[: VOCAB_SIZE - 1]
        numbers[by_frequency] = np.arange(1, len(by_frequency) + 1)
        kept = {word: number for word, number in zip(occurring, numbers.tolist(), strict=True) if number}
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


class EncodedPairs(NamedTuple):
    """Sentence pairs as one array per side.

    Attributes:
        src: the source words (or tokens) of all sentences, one sentence after another, as numbers from 0.
        tgt: the target words.
        src_lengths: the words of each source, at least one.
        tgt_lengths: the words of each target, at least one.
    """

    src: NDArray[np.int64]
    tgt: NDArray[np.int64]
    src_lengths: NDArray[np.int64]
    tgt_lengths: NDArray[np.int64]

    def selected(self, src: NDArray[np.int64], tgt: NDArray[np.int64] | None = None) -> "EncodedPairs":
        """Return pairs by their numbers; the targets may be those of others."""
        src_words, src_lengths = _rows(self.src, self.src_lengths, src)
        tgt_words, tgt_lengths = _rows(self.tgt, self.tgt_lengths, src if tgt is None else tgt)
        return EncodedPairs(src_words, tgt_words, src_lengths, tgt_lengths)

    def portions(self, most_cells: int) -> Iterator["EncodedPairs"]:
        """Yield successive pairs with at most so many cells together, or single ones with more."""
        n_cells = np.cumsum(self.src_lengths * self.tgt_lengths)
        first = 0
        while first < len(n_cells):
            before = n_cells[first - 1] if first else 0
            end = max(first + 1, int(np.searchsorted(n_cells, before + most_cells, side="right")))
            yield self.selected(np.arange(first, end))
            first = end


def _rows(
    words: NDArray[np.int64], lengths: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    starts = (np.cumsum(lengths) - lengths)[rows]
    counts = lengths[rows]
    places = np.arange(int(counts.sum())) + np.repeat(starts - (np.cumsum(counts) - counts), counts)
    return words[places], counts


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


class WordOrder:
    """Statistics of the order of words: which follow each other, and which begin and end a sentence."""

    def __init__(self, words: NDArray[np.int64], lengths: NDArray[np.int64]) -> None:
        """Learn from sentences that follow each other, ``lengths`` words each."""
        last = np.cumsum(lengths) - 1
        bigrams, counts = np.unique(np.delete(_bigrams(words), last[:-1]), return_counts=True)
        by_count = np.argsort(counts, kind="stable")
        self._table = HashTable(bigrams[by_count])
        self._counts = counts[by_count].astype(np.int32)
        self._word_counts = np.bincount(words, minlength=VOCAB_SIZE)
        self._word_counts[0] = 0  # rare words, which are not told apart
        self._frequencies = np.maximum(1, self._word_counts) / max(1, self._word_counts.sum())
        self._log_first = self._log_share(words[last - lengths + 1])
        self._log_last = self._log_share(words[last])

    def _log_share(self, chosen: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return for each word the log of the share of its occurrences that are among ``chosen``, smoothed."""
        prior = len(chosen) / max(1, self._word_counts.sum())
        counts = np.bincount(chosen, minlength=VOCAB_SIZE)
        counts[0] = 0
        return np.log((counts + prior) / (self._word_counts + 1))

    def ends(self, words: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return for each sentence the log of how often its last word ends a sentence, of all its occurrences."""
        return self._log_last[words[np.cumsum(lengths) - 1]]

    def features(self, words: NDArray[np.int64], lengths: NDArray[np.int64]) -> Features:
        """Return numbers that tell good sentences from those in the wrong order, of shape (sentences, features)."""
        first, second = words[:-1], words[1:]
        known, places = self._table.find(_bigrams(words))
        counts = np.zeros(len(words))
        counts[known] = self._counts[places]
        last = np.cumsum(lengths) - 1
        starts = last - lengths + 1
        is_known = self._word_counts[words] > 0
        is_known[:-1] &= is_known[1:]
        is_known[last] = False
        # How much likelier a word is after the one before it: the pointwise mutual information, smoothed.
        ratios = counts[:-1] / self._frequencies[second] + _PRIOR
        information = np.append(np.log(ratios / (self._word_counts[first] + _PRIOR)), 0) * is_known
        n_known = np.maximum(1, np.add.reduceat(is_known, starts, dtype=np.int64))
        n_unseen = np.add.reduceat(is_known & (counts == 0), starts, dtype=np.int64)
        in_all = np.add.reduceat(information, starts)
        against = np.add.reduceat(np.minimum(information, 0), starts)
        begins, ends = self._log_first[words], self._log_last[words]
        columns = [
            in_all,
            in_all / n_known,
            against,
            against / n_known,
            np.minimum.reduceat(information, starts),
            n_unseen,
            n_unseen / n_known,
            begins[starts] - np.maximum.reduceat(begins, starts),  # another word is likelier to begin the sentence
            ends[last] - np.maximum.reduceat(ends, starts),
            np.log(lengths),
        ]
        return np.stack(columns, axis=1)


def _bigrams(words: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return each word and the next one as a number, those across the ends of sentences included."""
    return words[:-1] * VOCAB_SIZE + words[1:]
