"""IBM model 1 (Brown et al. 1993) with the smoothing of Moore 2004: which source words the target words come from.

A *cell* is a target position with a source position of the same sentence pair.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_ITERATIONS = 5
_PRIOR = 1.0  # added to the count of each source word, so that rare ones do not claim all words of their sentences


class EncodedPairs(NamedTuple):
    """Sentence pairs as one array per side.

    Attributes:
        src: the source words (or tokens) of all sentences, one sentence after another, as numbers from 0.
        tgt: the target words, likewise.
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
        tgt: the target position of each, likewise.
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


def _rows(
    words: NDArray[np.int64], lengths: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    starts = (np.cumsum(lengths) - lengths)[rows]
    counts = lengths[rows]
    places = np.arange(int(counts.sum())) + np.repeat(starts - (np.cumsum(counts) - counts), counts)
    return words[places], counts
