"""Bring a passage back into alignment: which target translates which source, where lines are missing or extra."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtformer.text.pairs import SentencePair

Floats = NDArray[np.float64]
Score = Callable[[Sequence[SentencePair]], Floats]

_SHIFTS = (10, 100, 500)  # the most lines that a passage may be shifted by; larger ones are tried if the others fail
_LEFT_OUT = 2.5  # the cost of a line without a translation
_MOST = 5.0  # log odds of a pair that count: no pair may decide for its neighbours
_LEAST_GAIN = 1.0  # log odds for each line of a passage; one that gains less is no shifted translation
_AROUND = 5  # links before and after one, most of which have its shift; those of chance have not
_MOST_SCORED = 2**23  # pairs, which takes two minutes
_AT_ONCE = 10_000


class Link(NamedTuple):
    """Two places of a passage, from 0: the target at ``tgt`` translates the source at ``src``."""

    src: int
    tgt: int


def realign(pairs: Sequence[SentencePair], score: Score) -> list[Link]:
    """Link sources and targets in order, so that the log odds of the links and the cost of other lines are least.

    The dynamic program of Gale and Church (1993), with a lexical score instead of lengths, and without links of
    several lines.

    Args:
        pairs: the passage, as it stands.
        score: returns the log odds of pairs for being misaligned.

    Returns:
        the links that have the shift of those around them; none if the passage is no shifted translation, or too long.
    """
    for shift in _SHIFTS:
        if len(pairs) * (2 * shift + 1) > _MOST_SCORED:
            break
        costs = _costs(pairs, score, shift)
        links = _steady(_path(costs, shift))
        found = [costs[link.src, link.tgt - link.src + shift] for link in links]
        if sum(found) <= -_LEAST_GAIN * len(pairs):
            return links
    return []


def _costs(pairs: Sequence[SentencePair], score: Score, shift: int) -> Floats:
    """Return the cost of each link, of shape (sources, 2·shift + 1): column c is the target c - shift lines later."""
    costs = np.full((len(pairs), 2 * shift + 1), np.inf)
    n_rows = max(1, _AT_ONCE // costs.shape[1])
    for first in range(0, len(pairs), n_rows):
        places = [
            (src, tgt)
            for src in range(first, min(first + n_rows, len(pairs)))
            for tgt in range(max(0, src - shift), min(src + shift + 1, len(pairs)))
        ]
        scores = score([SentencePair(pairs[src].src, pairs[tgt].tgt) for src, tgt in places])
        rows, columns = np.array(places).T
        costs[rows, columns - rows + shift] = np.clip(scores, -_MOST, _MOST)
    return costs


def _path(costs: Floats, shift: int) -> list[Link]:
    """Return the links of the cheapest way through the passage, from the last to the first line."""
    totals = _totals(costs, shift)
    links: list[Link] = []
    src, column = len(costs), shift
    while src > 0:
        total = totals[src, column]
        if np.isclose(total, totals[src - 1, column] + costs[src - 1, column]):
            src -= 1
            links.append(Link(src, src + column - shift))
        elif column + 1 < costs.shape[1] and np.isclose(total, totals[src - 1, column + 1] + _LEFT_OUT):
            src, column = src - 1, column + 1
        else:
            column -= 1
    return links[::-1]


def _steady(links: list[Link]) -> list[Link]:
    """Return the links with the shift of most of those around them."""
    shifts = [link.tgt - link.src for link in links]
    windows = (shifts[max(0, place - _AROUND) : place + _AROUND + 1] for place in range(len(links)))
    return [link for link, near in zip(links, windows, strict=True) if 2 * near.count(link.tgt - link.src) > len(near)]


def _totals(costs: Floats, shift: int) -> Floats:
    """Return the least cost of all that is before each source and column, of shape (sources + 1, 2·shift + 1)."""
    ramp = _LEFT_OUT * np.arange(costs.shape[1])
    totals = np.full((len(costs) + 1, costs.shape[1]), np.inf)
    totals[0, shift:] = ramp[: shift + 1]
    for src, row in enumerate(costs):
        skipped = np.append(totals[src, 1:], np.inf) + _LEFT_OUT  # the source is left out
        totals[src + 1] = np.minimum.accumulate(np.minimum(totals[src] + row, skipped) - ramp) + ramp  # targets are
    return totals
