"""IBM model 1 (Brown et al. 1993) with the smoothing of Moore 2004: which source words the target words come from.

A *cell* is a target position with a source position of the same sentence pair; the cells of a target position follow
each other.
"""

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

    @property
    def swapped(self) -> "EncodedPairs":
        """The pairs with source and target exchanged."""
        return EncodedPairs(self.tgt, self.src, self.tgt_lengths, self.src_lengths)


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
        src: the source word of each.
        tgt: the target word of each.
        starts: the first cell of each target position.
        widths: the number of cells of each target position.
    """

    src: NDArray[np.int64]
    tgt: NDArray[np.int64]
    starts: NDArray[np.int64]
    widths: NDArray[np.int64]

    @classmethod
    def of(cls, pairs: EncodedPairs) -> "Cells":
        """Return the cells of ``pairs``."""
        sentences = np.repeat(np.arange(len(pairs.tgt_lengths)), pairs.tgt_lengths)  # of each target position
        widths = pairs.src_lengths[sentences]
        starts = np.cumsum(widths) - widths
        first_of_sentence = (np.cumsum(pairs.src_lengths) - pairs.src_lengths)[sentences]
        places = np.arange(int(widths.sum())) - np.repeat(starts - first_of_sentence, widths)
        return cls(pairs.src[places], np.repeat(pairs.tgt, widths), starts, widths)


def ibm_model_1(pairs: EncodedPairs, tgt_vocab_size: int) -> TranslationTable:
    """Estimate which source words the words of the targets come from, by expectation maximization."""
    cells = Cells.of(pairs)
    keys, entries = np.unique(cells.src * tgt_vocab_size + cells.tgt, return_inverse=True)
    src, tgt = np.divmod(keys, tgt_vocab_size)
    probabilities = np.ones(len(keys))
    for _ in range(_ITERATIONS):
        shares = probabilities[entries]
        shares /= np.repeat(np.add.reduceat(shares, cells.starts), cells.widths)
        counts = np.bincount(entries, shares, minlength=len(keys))
        probabilities = counts / (np.bincount(src, counts)[src] + _PRIOR)
    return TranslationTable(src, tgt, probabilities)
