"""How well the words of a text follow each other, as numbers for each sentence."""

import numpy as np
from numpy.typing import NDArray

from mtformer.data.clean.classifier import Features
from mtformer.data.clean.hash_table import HashTable
from mtformer.data.clean.words import VOCAB_SIZE

_PRIOR = 5.0  # weight of a word's own frequency against the bigrams that end in it


class WordOrder:
    """What some sentences say about the order of words: which follow each other, and which begin and end a sentence."""

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
        found, places = self._table.find(_bigrams(words))
        counts = np.zeros(len(words))
        counts[found] = self._counts[places]
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
