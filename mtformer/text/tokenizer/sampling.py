"""Random segmentations of texts, the same in every process for the same seed.

SentencePiece samples as well, but from release 0.2.2 on with a seed that differs from process to process, so that a run
could not be resumed in the middle of an epoch. Tokens end where words do, hence words are segmented one at a time.
"""

import math
import re
from array import array
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from random import Random
from typing import NamedTuple

from sentencepiece import SentencePieceProcessor

from mtformer.text.tokenizer.sentencepiece_file import BPE, Kind, Token

_N_BEST = 64  # segmentations of a word to choose among; there may be millions
_LONGEST = 200  # characters: a longer word is segmented in the likeliest way
_MAX_CACHED = 100_000  # words: 200 megabytes


class Sampling(NamedTuple):
    """How to sample one of the many ways to segment a text.

    Attributes:
        alpha: unigram: the exponent on the probability of a segmentation (Kudo 2018), where smaller gives more variety;
            BPE: the probability of skipping a merge (Provilkov et al. 2020), where larger gives more.
        seed: the seed of the sample.
    """

    alpha: float
    seed: int


class _Choices(NamedTuple):
    """The segmentations of a word, in arrays, which take a fraction of the memory of lists.

    Attributes:
        ids: of all segmentations, one after the other.
        starts: where each segmentation starts in ``ids``, and where the last one ends.
        ends: of the intervals that their probabilities take.
    """

    ids: "array[int]"
    starts: "array[int]"
    ends: "array[float]"

    @classmethod
    def of(cls, segmentations: Sequence[Sequence[int]], weights: Iterable[float]) -> "_Choices":
        """Take segmentations, whose probabilities are proportional to ``weights``."""
        starts = accumulate(map(len, segmentations), initial=0)
        return cls(array("I", chain.from_iterable(segmentations)), array("I", starts), array("d", accumulate(weights)))


class Sampler:
    """Samples segmentations by a unigram or BPE model. Symbols that a user has defined stay whole."""

    def __init__(
        self, tokens: Sequence[Token], algorithm: int, of_word: SentencePieceProcessor, of_part: SentencePieceProcessor
    ) -> None:
        """Take a model.

        Args:
            tokens: its tokens, by id.
            algorithm: its algorithm.
            of_word: the model, which puts ``▁`` in front of a text.
            of_part: the model without that.
        """
        self._scores = [token.score for token in tokens]
        self._ids = {token.text: i for i, token in enumerate(tokens) if token.kind == Kind.NORMAL}
        self._bytes = [i for i, token in enumerate(tokens) if token.kind == Kind.BYTE]
        self._symbols = {token.text: i for i, token in enumerate(tokens) if token.kind == Kind.USER_DEFINED}
        longest_first = sorted(self._symbols, key=len, reverse=True)
        self._symbol = re.compile(f"({'|'.join(map(re.escape, longest_first))})") if longest_first else None
        self._sample = self._merge if algorithm == BPE else self._choose
        self._processors = (of_part, of_word)
        self._choices: dict[tuple[str, bool, float], _Choices] = {}

    def encode(self, texts: Sequence[str], sampling: Sampling, *, inside: bool = False) -> list[list[int]]:
        """Turn normalized texts into ids, without EOS.

        Args:
            texts: the texts.
            sampling: how to sample.
            inside: whether they follow other text without a space.
        """
        random = Random(sampling.seed)
        return [
            [
                i
                for number, word in enumerate(text.replace("▁", " ").split(" ") if text else ())
                for i in self._word(word, not inside or number > 0, sampling.alpha, random)
            ]
            for text in texts
        ]

    def _word(self, word: str, follows_space: bool, alpha: float, random: Random) -> Iterator[int]:
        """Yield the ids of a word, whose symbols stay whole."""
        for part in self._symbol.split(word) if self._symbol else (word,):
            if part in self._symbols:
                yield self._symbols[part]
            elif part or follows_space:
                yield from self._sample(part, follows_space, alpha, random)
            follows_space = False

    def _choose(self, word: str, follows_space: bool, alpha: float, random: Random) -> Sequence[int]:
        """Choose one of the likeliest segmentations of a word, with probabilities to the power of ``alpha``."""
        key = word, follows_space, alpha
        if key not in self._choices:
            if len(self._choices) >= _MAX_CACHED:
                self._choices.clear()
            self._choices[key] = self._segmentations(*key)
        ids, starts, ends = self._choices[key]
        place = min(bisect(ends, random.random() * ends[-1]), len(ends) - 1)
        return ids[starts[place] : starts[place + 1]]

    def _segmentations(self, word: str, follows_space: bool, alpha: float) -> _Choices:
        """Return the likeliest segmentations."""
        if not word:
            return _Choices.of([[self._ids["▁"]]], [1.0])
        n_best = _N_BEST if len(word) <= _LONGEST else 1
        segmentations = self._processors[follows_space].nbest_encode(word, nbest_size=n_best)
        scores = [sum(self._scores[i] for i in ids) for ids in segmentations]  # bytes, with score 0, are in all or none
        return _Choices.of(segmentations, (math.exp(alpha * (score - scores[0])) for score in scores))

    def _merge(self, word: str, follows_space: bool, alpha: float, random: Random) -> Sequence[int]:
        """Merge the characters of a word as BPE does, but skip merges with probability ``alpha``.

        Provilkov et al. 2020, algorithm 1.
        """
        if len(word) > _LONGEST:  # the time grows with the square of the length
            return self._processors[follows_space].encode(word)
        parts = ["▁", *word] if follows_space else list(word)
        while True:
            possible = [
                (-self._scores[i], place)
                for place in range(len(parts) - 1)
                if (i := self._ids.get(parts[place] + parts[place + 1])) is not None and random.random() >= alpha
            ]
            if not possible:
                return [i for part in parts for i in self._spelled(part)]
            _, place = min(possible)
            parts[place : place + 2] = [parts[place] + parts[place + 1]]

    def _spelled(self, part: str) -> list[int]:
        known = self._ids.get(part)
        return [self._bytes[byte] for byte in part.encode()] if known is None else [known]
