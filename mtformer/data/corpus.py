"""Filtered and encoded sentence pairs, stored compactly so that millions of them fit in memory."""

import itertools
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from mtformer.data.augment import Augmenter
from mtformer.data.terms import TermSampler
from mtformer.text.sources import SentencePair
from mtformer.text.tokenizer import Sampling, Tokenizer

_CHUNK = 10_000  # pairs encoded at once


class Ragged:
    """An append-only list of integer rows of different lengths, stored in two flat arrays."""

    def __init__(self) -> None:
        self._values = array("i")
        self._ends = array("q", [0])

    def append(self, row: Sequence[int]) -> None:
        """Add a row."""
        self._values.extend(row)
        self._ends.append(len(self._values))

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, index: int) -> np.ndarray:
        start, end = self._ends[index], self._ends[index + 1]
        return np.frombuffer(self._values, dtype=np.int32, count=end - start, offset=4 * start)

    @property
    def lengths(self) -> np.ndarray:
        """The length of each row."""
        return np.diff(np.frombuffer(self._ends, dtype=np.int64))


class Corpus:
    """Encoded pairs: ``src[i]`` and ``tgt[i]`` are the ids of pair i, each ended by EOS.

    Attributes:
        numbers: the index of pair i among all pairs, dropped ones included, starting at 0.
        sources: (N,) the index of the source of pair i.
        dropped: the number of dropped pairs by reason.
    """

    def __init__(self) -> None:
        self.src = Ragged()
        self.tgt = Ragged()
        self.numbers = array("q")
        self.sources = np.zeros(0, dtype=np.int64)
        self.dropped: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self.src)


def encode_corpus(
    pairs: Iterable[SentencePair],
    tokenizer: Tokenizer,
    *,
    max_length: int,
    max_ratio: float,
    sampling: Sampling | None = None,
    terms: TermSampler | None = None,
    augmenter: Augmenter | None = None,
    epoch: int = 0,
) -> Corpus:
    """Encode ``pairs``; drop those that cannot be learned from and count them by reason.

    Args:
        pairs: the text.
        tokenizer: turns it into ids.
        max_length: the most tokens of a side, EOS included.
        max_ratio: the most that one side may be longer than the other.
        sampling: how to sample tokens; None takes the likeliest ones.
        terms: annotates terms where the source stays short enough; None does not.
        augmenter: varies pairs where they stay within the limits; None does not.
        epoch: which terms to annotate and which pairs to vary.
    """
    corpus = Corpus()
    stream = iter(pairs)
    number = 0
    problem = partial(reason_to_drop, max_length=max_length, max_ratio=max_ratio)
    while chunk := list(itertools.islice(stream, _CHUNK)):
        drawn = sampling and Sampling(sampling.alpha, sampling.seed + number)
        rows = _encode(tokenizer, chunk, drawn)
        reasons = [problem(*map(len, row)) for row in rows]
        varied = augmenter.vary(chunk, number, epoch) if augmenter else {}
        for index, row in zip(varied, _encode(tokenizer, list(varied.values()), drawn), strict=True):
            if not problem(*map(len, row)):
                chunk[index], rows[index] = varied[index], row
        annotated = terms.annotated(chunk, number, epoch, drawn) if terms else {}
        for index, row in annotated.items():
            if max(map(len, row)) <= max_length:
                rows[index] = row
        for reason, (src, tgt) in zip(reasons, rows, strict=True):
            if reason:
                corpus.dropped[reason] += 1
            else:
                corpus.src.append(src)
                corpus.tgt.append(tgt)
                corpus.numbers.append(number)
            number += 1
    return corpus


def _encode(
    tokenizer: Tokenizer, pairs: Sequence[SentencePair], sampling: Sampling | None
) -> list[tuple[list[int], list[int]]]:
    """Return the ids of both sides of each pair."""
    src = tokenizer.encode_src([pair.src for pair in pairs], sampling)
    tgt = tokenizer.encode_tgt([pair.tgt for pair in pairs], sampling)
    return list(zip(src, tgt, strict=True))


def reason_to_drop(src_length: int, tgt_length: int, *, max_length: int, max_ratio: float) -> str | None:
    """Return why a pair of these lengths in tokens, EOS included, cannot be used for training; None if it can."""
    shorter, longer = sorted((src_length, tgt_length))
    if shorter <= 1:
        return "a side is empty"
    if longer > max_length:
        return f"longer than {max_length} tokens (data.max_length)"
    if longer > max_ratio * shorter:
        return f"one side more than {max_ratio:g} times as long as the other (data.max_ratio)"
    return None
