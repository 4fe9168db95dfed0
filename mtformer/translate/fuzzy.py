"""Fuzzy matches: texts of a translation memory that are similar to the text to translate.

Texts are compared by the tokens of the model, which suits all languages. The similarity of two texts is 1 - d/n, where
d is the edit distance between their tokens and n the number of tokens of the longer one.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtformer.data.arrays import Ragged
from mtformer.search.engine import Example
from mtformer.support.errors import UserError
from mtformer.support.progress import Progress
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.translate.translation import FuzzyMatch
from mtformer.translate.translation_memory import TranslationMemory

_N_MATCHES = 8  # that a search follows
_N_COMPARED = 30  # the texts with most tokens in common, of which the similarity is computed
_AT_ONCE = 10_000


class FuzzyMatches:
    """An index of the texts of a memory. It takes about 8 bytes for each of their tokens."""

    def __init__(self, memory: TranslationMemory, tokenizer: Tokenizer, least: float, max_length: int) -> None:
        """Index a memory.

        Args:
            memory: its texts.
            tokenizer: the model's.
            least: the minimum similarity of a match.
            max_length: the maximum number of tokens, EOS included, that the model reads; longer texts never match.

        Raises:
            UserError: ``least`` is not above 0 and at most 1.
        """
        if not 0 < least <= 1:
            raise UserError(f"fuzzy = {least}: it is a similarity, above 0 and at most 1")
        self._memory, self._tokenizer, self._least, self._max_length = memory, tokenizer, least, max_length
        rows = list[NDArray[np.int32]]()
        with Progress("indexing the translation memory", unit="pairs", total=len(memory)) as progress:
            for start in range(0, len(memory), _AT_ONCE):
                texts = [memory.pair(number)[0] for number in range(start, min(start + _AT_ONCE, len(memory)))]
                rows += [np.array(self._own(ids), np.int32) for ids in tokenizer.encode_src(texts)]
                progress.advance(len(texts))
        self._tokens = _joined(rows)  # of each text
        self._index(rows)

    def _index(self, rows: Sequence[NDArray[np.int32]]) -> None:
        """List the texts that contain each token, and weight rare tokens higher."""
        distinct = _joined(list(map(np.unique, rows)))
        tokens, texts = distinct.values, np.repeat(np.arange(len(rows), dtype=np.int32), distinct.lengths)
        counts = np.bincount(tokens, minlength=self._tokenizer.src_vocab_size)
        self._texts = Ragged.of_lengths(texts[np.argsort(tokens, kind="stable")], counts)  # with each token
        self._weights = np.log((1 + len(rows)) / (1 + counts))
        self._sums = np.bincount(texts, self._weights[tokens], minlength=len(rows))

    def find(self, ids: Sequence[int]) -> list[tuple[FuzzyMatch, Example]]:
        """Return the matches of a text, the most similar first, with the ids of both sides.

        Args:
            ids: those of the text, as the model reads it.
        """
        own = self._own(ids)
        similar = [(similarity(own, self._tokens[number].tolist()), number) for number in self._candidates(own)]
        matches = dict[tuple[str, str], tuple[FuzzyMatch, Example]]()
        for value, number in sorted(similar, key=lambda candidate: (-candidate[0], candidate[1])):
            if value < self._least or len(matches) == _N_MATCHES:
                break
            pair = self._memory.pair(number)
            [tgt] = self._tokenizer.encode_tgt([pair[1]])
            src = (*self._tokenizer.prefixes.src, *self._tokens[number].tolist(), self._tokenizer.special_ids.eos)
            if max(len(src), len(tgt)) <= self._max_length and pair not in matches:
                matches[pair] = FuzzyMatch(*pair, value), (src, tuple(tgt[:-1]))
        return list(matches.values())

    def _candidates(self, own: Sequence[int]) -> list[int]:
        """Return the indices of the texts that share the most tokens with a text, weighted by rarity."""
        distinct = sorted(set(own))
        lists = [self._texts[token] for token in distinct]
        if not sum(map(len, lists)):
            return []
        weights = self._weights[distinct]
        shared = np.bincount(
            np.concatenate(lists), np.repeat(weights, list(map(len, lists))), minlength=len(self._sums)
        )
        overlap = shared / (self._sums + weights.sum())
        best = np.argpartition(-overlap, min(_N_COMPARED, len(overlap) - 1))[:_N_COMPARED]
        return [int(number) for number in best if shared[number] > 0]

    def _own(self, ids: Sequence[int]) -> Sequence[int]:
        """Return the ids of a text without its prefix and EOS."""
        return ids[len(self._tokenizer.prefixes.src) : -1]


def _joined(rows: Sequence[NDArray[np.int32]]) -> Ragged:
    return Ragged.of_lengths(np.concatenate([np.zeros(0, np.int32), *rows]), np.array(list(map(len, rows)), np.int64))


def similarity(first: Sequence[Any], second: Sequence[Any]) -> float:
    """Return 1 - d/n for the edit distance d between two sequences and the length n of the longer one."""
    longest = max(len(first), len(second))
    return 1 - edit_distance(first, second) / longest if longest else 1.0


def edit_distance(first: Sequence[Any], second: Sequence[Any]) -> int:
    """Return the fewest insertions, deletions and substitutions that turn one sequence into another.

    A column of the table is two integers of as many bits as ``first`` is long (Hyyrö 2003, figure 3).
    """
    places = defaultdict[Any, int](int)
    for i, item in enumerate(first):
        places[item] |= 1 << i
    every, last = (1 << len(first)) - 1, 1 << len(first) >> 1
    up, down, distance = every, 0, len(first)
    for item in second:
        same = places.get(item, 0) | down
        diagonal = (((same & up) + up) ^ up) | same
        more, less = down | ~(diagonal | up) & every, diagonal & up
        distance += bool(more & last) - bool(less & last) if first else 1
        more, less = more << 1 | 1, less << 1
        up, down = (less | ~(diagonal | more)) & every, more & diagonal & every
    return distance
