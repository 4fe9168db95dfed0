"""Sentences as numbers of words: how well these follow each other, and how well two sides explain each other.

Translations of words are estimated by IBM model 1 (Brown et al. 1993) with the smoothing of Moore 2004. A *cell* is a
target position with a source position of the same sentence pair.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtformer.config import LanguagePair
from mtformer.data.arrays import Ragged
from mtformer.text.languages import is_written_with_spaces
from mtformer.text.pairs import SentencePair

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Features = NDArray[np.float64]  # of shape (pairs, features)

_SLOTS = 3  # for each key, at least
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio

VOCAB_SIZE = 2**16  # the most frequent forms of words have numbers of their own; all others share 0
_MOST_WORDS = 2_000  # of a text; longer ones may be whole files
_WORD, _CHARACTER = re.compile(r"\w+|[^\w\s]"), re.compile(r"[A-Za-z0-9]+|[^\sA-Za-z0-9]")
_PRIOR = 5.0  # weight of a word's own frequency against the bigrams that end in it

_ITERATIONS = 5
_LEAST_PROBABILITY = 1e-3  # of a word given another, in the table
_MOST_CELLS = 2**20  # that are looked up at once: about 40 megabytes
_UNEXPLAINED = 0.1  # weight of a word's own frequency against its translations
_EXPLAINED = 0.1  # summed probability from which on a word has a translation on the other side
_COUNT_PRIOR = 1.0  # added to the count of each source word, lest rare ones claim all words of their sentences


class HashTable:
    """Finds numbers in an array, five times as fast as a binary search.

    Of two keys with one slot, only the later one is found, so put the most important ones last. Up to one in seven is
    lost.
    """

    def __init__(self, keys: Ints) -> None:
        """Take distinct keys that are not negative."""
        self._keys = keys if len(keys) else np.array([-1])
        self._n_bits = int(np.ceil(np.log2(_SLOTS * len(self._keys))))
        self._slots = np.zeros(2**self._n_bits, dtype=np.int32)
        self._slots[self._slot(keys)] = np.arange(len(keys), dtype=np.int32)

    def find(self, keys: Ints) -> tuple[Ints, NDArray[np.int32]]:
        """Return the indices of the ``keys`` that are in the table, and their places in the array of its keys."""
        places = self._slots[self._slot(keys)]
        is_there = np.flatnonzero(self._keys[places] == keys)
        return is_there, places[is_there]

    def _slot(self, keys: Ints) -> Ints:
        """Return the slot of each key (Fibonacci hashing: Knuth 1973)."""
        return ((keys.view(np.uint64) * _MULTIPLIER) >> np.uint64(64 - self._n_bits)).view(np.int64)


class _Numbers(dict[str, int]):
    """Numbers of forms of words; an unknown form has the number of the usual one of its word, or 0.

    Attributes:
        usual: the number of the usual form for the number of each form.
    """

    def __init__(self, numbers: dict[str, int]) -> None:
        """Take the numbers of forms, from 1, in order."""
        super().__init__(numbers)
        self._of_words: dict[str, int] = {}
        usual = [self._of_words.setdefault(form.casefold(), number) for form, number in numbers.items()]
        self.usual = np.array([0, *usual], dtype=np.int64)

    def __missing__(self, form: str) -> int:
        return self._of_words.get(form.casefold(), 0)


class EncodedPairs(NamedTuple):
    """The two sides of sentence pairs, as numbers of words (or of tokens) from 0; each sentence has at least one."""

    src: Ragged
    tgt: Ragged

    def selected(self, src: Ints, tgt: Ints | None = None) -> "EncodedPairs":
        """Return pairs by their numbers; the targets may be those of others."""
        return EncodedPairs(self.src.selected(src), self.tgt.selected(src if tgt is None else tgt))

    def portions(self, most_cells: int) -> Iterator["EncodedPairs"]:
        """Yield successive pairs with at most so many cells together, or single ones with more."""
        n_cells = np.cumsum(self.src.lengths * self.tgt.lengths)
        first = 0
        while first < len(n_cells):
            before = n_cells[first - 1] if first else 0
            end = max(first + 1, int(np.searchsorted(n_cells, before + most_cells, side="right")))
            yield self.selected(np.arange(first, end))
            first = end


class Words:
    """Numbers for the most frequent words of a language, or characters where no spaces separate words.

    ``The`` and ``the`` are two forms of a word, with numbers of their own. The more frequent one is the usual one.

    Attributes:
        is_spaced: whether spaces separate words.
    """

    def __init__(self, numbers: dict[str, int], *, is_spaced: bool) -> None:
        """Take the numbers of forms, from 1, the most frequent ones first."""
        self.is_spaced = is_spaced
        self._numbers = _Numbers(numbers)

    @classmethod
    def learn(cls, texts: Iterable[str], code: str) -> tuple["Words", Ragged]:
        """Count the words of ``texts`` in the language ``code``, and encode them."""
        is_spaced = is_written_with_spaces(code)
        occurring: defaultdict[str, int] = defaultdict(count().__next__)  # numbers in the order in which words occur
        encoded = _encoded(texts, is_spaced, occurring.__getitem__)
        by_frequency = np.argsort(-np.bincount(encoded.values), kind="stable")[: VOCAB_SIZE - 1]
        numbers = np.zeros(len(occurring), dtype=np.int64)
        numbers[by_frequency] = np.arange(1, len(by_frequency) + 1)
        forms = list(occurring)
        kept = {forms[place]: number for number, place in enumerate(by_frequency.tolist(), start=1)}
        return cls(kept, is_spaced=is_spaced), Ragged(numbers[encoded.values], encoded.starts)

    def encode(self, texts: Iterable[str]) -> Ragged:
        """Return the numbers of the words of all texts, of each text at most 2,000; an empty text has one word."""
        return _encoded(texts, self.is_spaced, self._numbers.__getitem__)

    def in_usual_form(self, sentences: Ragged) -> Ragged:
        """Return encoded sentences with each word in its usual form."""
        return Ragged(self._numbers.usual[sentences.values], sentences.starts)


def _encoded(texts: Iterable[str], is_spaced: bool, number: Callable[[str], int]) -> Ragged:
    pattern = _WORD if is_spaced else _CHARACTER
    lengths = []

    def rows() -> Iterator[list[str]]:
        for text in texts:
            words = pattern.findall(text)[:_MOST_WORDS] or [""]
            lengths.append(len(words))
            yield words

    numbers = np.fromiter(map(number, chain.from_iterable(rows())), np.int64)
    return Ragged.of_lengths(numbers, np.array(lengths, dtype=np.int64))


class WordEncoder(NamedTuple):
    """Turns pairs into numbers of words."""

    src: Words
    tgt: Words

    @classmethod
    def learn(cls, pairs: Sequence[SentencePair], languages: LanguagePair) -> tuple["WordEncoder", EncodedPairs]:
        """Count the words of pairs, and encode these."""
        src_words, src = Words.learn((pair.src for pair in pairs), languages.src_lang)
        tgt_words, tgt = Words.learn((pair.tgt for pair in pairs), languages.tgt_lang)
        return cls(src_words, tgt_words), EncodedPairs(src, tgt)

    def encode(self, pairs: Sequence[SentencePair]) -> EncodedPairs:
        """Encode pairs."""
        return EncodedPairs(self.src.encode(pair.src for pair in pairs), self.tgt.encode(pair.tgt for pair in pairs))

    def in_usual_forms(self, pairs: EncodedPairs) -> EncodedPairs:
        """Return encoded pairs with each word in its usual form."""
        return EncodedPairs(self.src.in_usual_form(pairs.src), self.tgt.in_usual_form(pairs.tgt))


class WordOrder:
    """Statistics of the order of words: which follow each other, and which begin and end a sentence."""

    def __init__(self, sentences: Ragged) -> None:
        """Learn from sentences."""
        words, starts, last = sentences.values, sentences.starts[:-1], sentences.starts[1:] - 1
        bigrams, counts = np.unique(np.delete(_bigrams(words), last[:-1]), return_counts=True)
        by_count = np.argsort(counts, kind="stable")
        self._table = HashTable(bigrams[by_count])
        self._counts = counts[by_count].astype(np.int32)
        self._word_counts = np.bincount(words, minlength=VOCAB_SIZE)
        self._word_counts[0] = 0  # rare words, which are not told apart
        self._frequencies = np.maximum(1, self._word_counts) / max(1, self._word_counts.sum())
        self._log_first = self._log_share(words[starts])
        self._log_last = self._log_share(words[last])

    def _log_share(self, chosen: Ints) -> Floats:
        """Return for each word the log of the share of its occurrences that are among ``chosen``, smoothed."""
        prior = len(chosen) / max(1, self._word_counts.sum())
        counts = np.bincount(chosen, minlength=VOCAB_SIZE)
        counts[0] = 0
        return np.log((counts + prior) / (self._word_counts + 1))

    def features(self, sentences: Ragged) -> Features:
        """Return numbers that tell good sentences from those in the wrong order, of shape (sentences, features)."""
        words, starts, last = sentences.values, sentences.starts[:-1], sentences.starts[1:] - 1
        first, second = words[:-1], words[1:]
        known, places = self._table.find(_bigrams(words))
        counts = np.zeros(len(words))
        counts[known] = self._counts[places]
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
            ends[last],
        ]
        return np.stack(columns, axis=1)


def _bigrams(words: Ints) -> Ints:
    """Return each word and the next one as a number, those across the ends of sentences included."""
    return words[:-1] * VOCAB_SIZE + words[1:]


class TranslationTable(NamedTuple):
    """The pairs of a source and a target word that stand in some sentence pair together, in order.

    Attributes:
        src: the source word of each.
        tgt: the target word of each.
        probabilities: of the target word given the source word.
        reverse: of the source word given the target word; empty if it was not asked for.
    """

    src: Ints
    tgt: Ints
    probabilities: Floats
    reverse: Floats


def ibm_model_1(pairs: EncodedPairs, tgt_vocab_size: int, *, both_ways: bool = False) -> TranslationTable:
    """Estimate which source words the words of the targets come from, by expectation maximization."""
    src_cells, tgt_cells = _cells(pairs)
    keys = (pairs.src.values * tgt_vocab_size)[src_cells] + pairs.tgt.values[tgt_cells]
    distinct, entries = np.unique(keys, return_inverse=True)
    src, tgt = np.divmod(distinct, tgt_vocab_size)
    reverse = _estimated(entries, src_cells, tgt) if both_ways else np.empty(0)
    return TranslationTable(src, tgt, _estimated(entries, tgt_cells, src), reverse)


def _cells(pairs: EncodedPairs) -> tuple[Ints, Ints]:
    """Return the source and the target position of each cell, as indices of all source and all target words."""
    sentences = np.repeat(np.arange(len(pairs.tgt.lengths)), pairs.tgt.lengths)  # of each target position
    widths = pairs.src.lengths[sentences]
    shifts = np.cumsum(widths) - widths - pairs.src.starts[sentences]
    return np.arange(int(widths.sum())) - np.repeat(shifts, widths), np.repeat(np.arange(len(sentences)), widths)


def _estimated(entries: Ints, positions: Ints, given: Ints) -> Floats:
    """Return the probability of each pair of words.

    Args:
        entries: the pair of words of each cell.
        positions: the position of each cell whose word comes from one of those in its cells.
        given: the other word of each pair of words, which the probability is conditional on.
    """
    probabilities = np.ones(len(given))
    for _ in range(_ITERATIONS):
        shares = probabilities[entries]
        shares /= np.bincount(positions, shares)[positions]
        counts = np.bincount(entries, shares, minlength=len(given))
        probabilities = counts / (np.bincount(given, counts)[given] + _COUNT_PRIOR)
    return probabilities


class Association:
    """Translations of words with their probabilities, and the frequencies of words, in some pairs."""

    def __init__(self, pairs: EncodedPairs) -> None:
        """Learn from ``pairs``."""
        table = ibm_model_1(pairs, VOCAB_SIZE, both_ways=True)
        kept = np.flatnonzero(np.maximum(table.probabilities, table.reverse) >= _LEAST_PROBABILITY)
        kept = kept[np.argsort(table.probabilities[kept], kind="stable")]  # the likeliest come last
        self._table = HashTable(table.src[kept] * VOCAB_SIZE + table.tgt[kept])
        self._there = table.probabilities[kept].astype(np.float32)
        self._back = table.reverse[kept].astype(np.float32)
        self._frequencies = [np.bincount(side.values, minlength=VOCAB_SIZE) / len(side.values) for side in pairs]

    def features(self, pairs: EncodedPairs) -> Features:
        """Return numbers that tell good pairs from bad ones, of shape (pairs, features)."""
        return np.concatenate([self._features(portion) for portion in pairs.portions(_MOST_CELLS)])

    def _features(self, pairs: EncodedPairs) -> Features:
        src, tgt = pairs
        src_cells, tgt_cells = _cells(pairs)
        known, places = self._table.find((src.values * VOCAB_SIZE)[src_cells] + tgt.values[tgt_cells])
        there = np.asarray(np.bincount(tgt_cells[known], self._there[places], len(tgt.values)), dtype=np.float64)
        back = np.asarray(np.bincount(src_cells[known], self._back[places], len(src.values)), dtype=np.float64)
        ratio = np.log(src.lengths / tgt.lengths)
        columns = [
            *_explained(there, tgt, src.lengths, self._frequencies[1]),
            *_explained(back, src, tgt.lengths, self._frequencies[0]),
            ratio,
            ratio**2,
            np.log(src.lengths),
            np.log(tgt.lengths),
        ]
        return np.stack(columns, axis=1)


def _explained(sums: Floats, side: Ragged, other_lengths: Ints, frequencies: Floats) -> list[Floats]:
    """Measure how well the words of a side are explained by the other side.

    Args:
        sums: the probabilities of each word given the words of the other side, added up.
        side: the sentences of the side.
        other_lengths: the words of each pair on the other side.
        frequencies: the relative frequency of each word.

    Returns:
        of each pair: the log likelihood ratio of its words with and without the other side, per word and in all (the
        pointwise mutual information, PMI); the share of its information that has a translation, and how much has none.
    """
    probabilities = sums / np.repeat(other_lengths, side.lengths)
    own = frequencies[side.values]
    is_known = (side.values > 0) & (own > 0)
    own = np.where(is_known, own, 1.0)
    ratios = np.where(is_known, np.log((1 - _UNEXPLAINED) * probabilities / own + _UNEXPLAINED), 0)
    information = -np.log(own)
    pmi = np.add.reduceat(ratios, side.starts[:-1])
    in_all = np.add.reduceat(information, side.starts[:-1])
    covered = np.add.reduceat(information * (sums > _EXPLAINED), side.starts[:-1])
    return [pmi / side.lengths, pmi, covered / np.maximum(in_all, 1e-3), np.log1p(in_all - covered)]
