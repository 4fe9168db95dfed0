"""Where the two sides of a text slip out of alignment."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtformer.text.pairs import SentencePair

_BORDER = 15.0  # what the log odds of a passage must outweigh, at its beginning and at its end
_MOST = 5.0
_LARGEST_OFFSET = 10  # lines
_TRIED = 200  # pairs that an offset is tried on

Score = Callable[[Sequence[SentencePair]], NDArray[np.float64]]


class Slip(NamedTuple):
    """A passage whose targets do not translate its sources.

    Attributes:
        first: the number of its first pair, from 0.
        end: the number of the pair after its last one.
        offset: how many pairs later (or earlier, if negative) the translation of a source stands; None if not near.
    """

    first: int
    end: int
    offset: int | None = None


def find_slips(log_odds: NDArray[np.float64]) -> list[Slip]:
    """Find the passages that make the log odds within them, less a cost for each border, the largest (Viterbi 1967).

    Args:
        log_odds: of each pair of a text for being misaligned.
    """
    starts_bad = np.zeros(len(log_odds), dtype=np.bool_)  # the best path that is bad here was good before
    starts_good = np.zeros(len(log_odds), dtype=np.bool_)
    good, bad = 0.0, -_BORDER
    for place, value in enumerate(np.clip(log_odds, -_MOST, _MOST).tolist()):  # no pair may decide for its neighbours
        starts_bad[place], starts_good[place] = good - _BORDER > bad, bad - _BORDER > good
        good, bad = max(good, bad - _BORDER), max(bad, good - _BORDER) + value
    slips: list[Slip] = []
    is_bad, end = bad > good, len(log_odds)
    for place in reversed(range(len(log_odds))):
        if is_bad and starts_bad[place]:
            slips.append(Slip(place, end))
            is_bad = False
        elif not is_bad and starts_good[place]:
            is_bad, end = True, place
    if is_bad:
        slips.append(Slip(0, end))
    return slips[::-1]


def offset_of(pairs: Sequence[SentencePair], score: Score) -> int | None:
    """Return how many pairs later the translation of each source stands; None if it is not near.

    Args:
        pairs: the first pairs of a passage that is out of alignment.
        score: returns the log odds of pairs for being misaligned.
    """
    means = {}
    pairs = pairs[:_TRIED]
    for offset in range(-_LARGEST_OFFSET, _LARGEST_OFFSET + 1):
        if 0 < abs(offset) < len(pairs) // 2:
            sources, targets = (pairs[:-offset], pairs[offset:]) if offset > 0 else (pairs[-offset:], pairs[:offset])
            moved = [SentencePair(one.src, other.tgt) for one, other in zip(sources, targets, strict=True)]
            means[offset] = float(score(moved).mean())
    best = min(means, key=lambda offset: means[offset], default=None)
    return best if best is not None and means[best] < 0 else None
