"""How well the words of two sides explain each other, as numbers for each pair."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtformer.text.ibm_model_1 import Cells, EncodedPairs, ibm_model_1
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


class Words:
    """Numbers for the most frequent words of a language, or characters where no spaces separate words."""

    def __init__(self, texts: Iterable[str], code: str) -> None:
        """Count the words of ``texts`` in the language ``code``."""
        self._pattern = _WORD if is_written_with_spaces(code) else _CHARACTER
        counts = Counter(word for text in texts for word in self._pattern.findall(text.casefold()))
        self._numbers = {word: number for number, (word, _) in enumerate(counts.most_common(_MOST_WORDS), 1)}

    def encode(self, texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the numbers of the words of all texts, and how many each text has, at least one."""
        number = self._numbers.get
        rows = [[number(word, 0) for word in self._pattern.findall(text.casefold())] or [0] for text in texts]
        lengths = np.array([len(row) for row in rows], dtype=np.int64)
        return np.fromiter((i for row in rows for i in row), np.int64, int(lengths.sum())), lengths


class Encoder(NamedTuple):
    """Turns pairs into numbers of words."""

    src: Words
    tgt: Words

    def encode(self, pairs: Sequence[SentencePair]) -> EncodedPairs:
        """Encode pairs."""
        src, src_lengths = self.src.encode([pair.src for pair in pairs])
        tgt, tgt_lengths = self.tgt.encode([pair.tgt for pair in pairs])
        return EncodedPairs(src, tgt, src_lengths, tgt_lengths)


class Association:
    """What some pairs say about words: their translations and their frequencies."""

    def __init__(self, pairs: EncodedPairs) -> None:
        """Learn from ``pairs``."""
        there = ibm_model_1(pairs, _MOST_WORDS + 1)
        back = ibm_model_1(pairs.swapped, _MOST_WORDS + 1)
        in_order = np.lexsort((back.src, back.tgt))  # both tables have the same pairs of words
        kept = np.maximum(there.probabilities, back.probabilities[in_order]) >= _LEAST_PROBABILITY
        likely = np.argsort(there.probabilities[kept], kind="stable")  # the likelier of two in one slot comes last
        self._keys = (there.src * (_MOST_WORDS + 1) + there.tgt)[kept][likely]
        self._there = there.probabilities[kept][likely].astype(np.float32)
        self._back = back.probabilities[in_order][kept][likely].astype(np.float32)
        # A hash table in which one entry in eight loses its slot: five times as fast as a binary search.
        self._n_bits = int(np.ceil(np.log2(_SLOTS * max(1, len(self._keys)))))
        self._slots = np.zeros(2**self._n_bits, dtype=np.int32)
        self._slots[self._slot(self._keys)] = np.arange(len(self._keys), dtype=np.int32)
        self._src_frequencies = np.bincount(pairs.src, minlength=_MOST_WORDS + 1) / len(pairs.src)
        self._tgt_frequencies = np.bincount(pairs.tgt, minlength=_MOST_WORDS + 1) / len(pairs.tgt)

    def features(self, pairs: EncodedPairs) -> Features:
        """Return numbers that tell good pairs from bad ones, of shape (pairs, features)."""
        cells = Cells.of(pairs)
        keys = cells.src * (_MOST_WORDS + 1) + cells.tgt
        places = self._slots[self._slot(keys)]
        is_known = self._keys[places] == keys
        tgt_positions = np.repeat(np.arange(len(pairs.tgt)), cells.widths)
        starts = np.cumsum(pairs.src_lengths) - pairs.src_lengths
        sentences = np.repeat(np.arange(len(pairs.tgt_lengths)), pairs.tgt_lengths)
        src_positions = starts[sentences][tgt_positions] + np.arange(len(keys)) - cells.starts[tgt_positions]
        there = _sums(np.where(is_known, self._there[places], 0), tgt_positions, len(pairs.tgt))
        back = _sums(np.where(is_known, self._back[places], 0), src_positions, len(pairs.src))
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
        return ((keys.astype(np.uint64) * _MULTIPLIER) >> np.uint64(64 - self._n_bits)).astype(np.int64)


def _sums(values: NDArray[np.float32], places: NDArray[np.int64], size: int) -> NDArray[np.float64]:
    return np.bincount(places, values, size).astype(np.float64)


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
