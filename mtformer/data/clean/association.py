"""How well the words of two sides explain each other, as numbers for each pair.

Translations of words are estimated by IBM model 1 (Brown et al. 1993) with the smoothing of Moore 2004. A *cell* is a
target position with a source position of the same sentence pair.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtformer.data.clean.words import VOCAB_SIZE, EncodedPairs, Features, HashTable

_ITERATIONS = 5
_LEAST_PROBABILITY = 1e-3  # of a word given another, in the table
_MOST_CELLS = 2**20  # that are looked up at once: about 40 megabytes
_UNEXPLAINED = 0.1  # weight of a word's own frequency against its translations
_EXPLAINED = 0.1  # summed probability from which on a word has a translation on the other side
_PRIOR = 1.0  # added to the count of each source word, so that rare ones do not claim all words of their sentences


class TranslationTable(NamedTuple):
    """The pairs of a source and a target word that stand in some sentence pair together, in order.

    Attributes:
        src: the source word of each.
        tgt: the target word of each.
        probabilities: of the target word given the source word.
    """

    src: NDArray[np.int64]
    tgt: NDArray[np.int64]
    probabilities: NDArray[np.float64]


class Cells(NamedTuple):
    """The cells of sentence pairs.

    Attributes:
        src: the source position of each, as an index of all source words.
        tgt: the target position of each, as an index of all target words.
    """

    src: NDArray[np.int64]
    tgt: NDArray[np.int64]

    @classmethod
    def of(cls, pairs: EncodedPairs) -> "Cells":
        """Return the cells of ``pairs``."""
        sentences = np.repeat(np.arange(len(pairs.tgt_lengths)), pairs.tgt_lengths)  # of each target position
        widths = pairs.src_lengths[sentences]
        starts = np.cumsum(widths) - widths
        first_of_sentence = (np.cumsum(pairs.src_lengths) - pairs.src_lengths)[sentences]
        src = np.arange(int(widths.sum())) - np.repeat(starts - first_of_sentence, widths)
        return cls(src, np.repeat(np.arange(len(pairs.tgt)), widths))


def ibm_model_1(pairs: EncodedPairs, tgt_vocab_size: int) -> TranslationTable:
    """Estimate which source words the words of the targets come from, by expectation maximization."""
    cells = Cells.of(pairs)
    src, tgt, entries = _entries(pairs, cells, tgt_vocab_size)
    return TranslationTable(src, tgt, _estimated(entries, cells.tgt, src))


def ibm_model_1_both_ways(pairs: EncodedPairs, tgt_vocab_size: int) -> tuple[TranslationTable, NDArray[np.float64]]:
    """Estimate the models of both directions; also return the probabilities of the source given the target words."""
    cells = Cells.of(pairs)
    src, tgt, entries = _entries(pairs, cells, tgt_vocab_size)
    return TranslationTable(src, tgt, _estimated(entries, cells.tgt, src)), _estimated(entries, cells.src, tgt)


def _entries(
    pairs: EncodedPairs, cells: Cells, tgt_vocab_size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the different pairs of words, in order: their source words, target words, and which one each cell has."""
    keys, entries = np.unique((pairs.src * tgt_vocab_size)[cells.src] + pairs.tgt[cells.tgt], return_inverse=True)
    return *np.divmod(keys, tgt_vocab_size), entries


def _estimated(
    entries: NDArray[np.int64], positions: NDArray[np.int64], given: NDArray[np.int64]
) -> NDArray[np.float64]:
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
        probabilities = counts / (np.bincount(given, counts)[given] + _PRIOR)
    return probabilities


class Association:
    """Translations of words with their probabilities, and the frequencies of words, in some pairs."""

    def __init__(self, pairs: EncodedPairs) -> None:
        """Learn from ``pairs``."""
        table, reverse = ibm_model_1_both_ways(pairs, VOCAB_SIZE)
        kept = np.flatnonzero(np.maximum(table.probabilities, reverse) >= _LEAST_PROBABILITY)
        kept = kept[np.argsort(table.probabilities[kept], kind="stable")]  # the likeliest come last
        self._table = HashTable(table.src[kept] * VOCAB_SIZE + table.tgt[kept])
        self._there = table.probabilities[kept].astype(np.float32)
        self._back = reverse[kept].astype(np.float32)
        self._src_frequencies = np.bincount(pairs.src, minlength=VOCAB_SIZE) / len(pairs.src)
        self._tgt_frequencies = np.bincount(pairs.tgt, minlength=VOCAB_SIZE) / len(pairs.tgt)

    def features(self, pairs: EncodedPairs) -> Features:
        """Return numbers that tell good pairs from bad ones, of shape (pairs, features)."""
        return np.concatenate([self._features(portion) for portion in pairs.portions(_MOST_CELLS)])

    def _features(self, pairs: EncodedPairs) -> Features:
        cells = Cells.of(pairs)
        known, places = self._table.find((pairs.src * VOCAB_SIZE)[cells.src] + pairs.tgt[cells.tgt])
        there = _sums(self._there[places], cells.tgt[known], len(pairs.tgt))
        back = _sums(self._back[places], cells.src[known], len(pairs.src))
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
