"""How well the words of two sides explain each other, as numbers for each pair."""

import numpy as np
from numpy.typing import NDArray

from mtformer.data.clean.classifier import Features
from mtformer.data.clean.hash_table import HashTable
from mtformer.data.clean.ibm_model_1 import Cells, EncodedPairs, ibm_model_1_both_ways
from mtformer.data.clean.words import VOCAB_SIZE

_LEAST_PROBABILITY = 1e-3  # of a word given another, in the table
_MOST_CELLS = 2**20  # that are looked up at once: about 40 megabytes
_UNEXPLAINED = 0.1  # weight of a word's own frequency against its translations
_EXPLAINED = 0.1  # summed probability from which on a word has a translation on the other side


class Association:
    """What some pairs say about words: their translations and their frequencies."""

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
        found, places = self._table.find((pairs.src * VOCAB_SIZE)[cells.src] + pairs.tgt[cells.tgt])
        there = _sums(self._there[places], cells.tgt[found], len(pairs.tgt))
        back = _sums(self._back[places], cells.src[found], len(pairs.src))
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
