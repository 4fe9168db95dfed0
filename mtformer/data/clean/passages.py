"""Divide a text in which lines are missing or extra into passages of one shift each."""

from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtformer.data.clean.words import Floats
from mtformer.support.terminal import counted

Places = NDArray[np.int64]
# Returns the log odds of sources for being misaligned with the targets at other places, if half of all pairs were.
Scorer = Callable[[Places, Places], Floats]

_BORDER = 15.0  # log odds that a passage must gain, at its beginning and at its end
_MOST = 5.0  # log odds of a pair that count: no pair may decide for its neighbours
_REACHES = (10, 600)  # lines by which a shift may differ from the one before; more are tried if the first finds none
_LEAST_GAIN = 0.5  # log odds for each line; a shift that gains less is that of no translation
_TRIED = 50  # lines that shifts are tried on
_MOST_PLACES = 16  # of a passage where shifts are tried
_MOST_AT_ONCE = 10_000  # pairs that are scored, which bounds the memory
_AT_ONCE = 1_000  # lines that are scored before and after these, as long as most of them are translations
_MOST_SHIFTS = 50
_UNSURE = 10  # lines by which a border may be wrong


class Passage(NamedTuple):
    """Successive sources of a text.

    Attributes:
        first: the number of the first one, from 0.
        end: the number of the one after the last one.
        shift: how many lines later (or earlier, if negative) their translations stand; None if not near.
    """

    first: int
    end: int
    shift: int | None


class Slip(NamedTuple):
    """A passage whose targets do not translate its sources.

    Attributes:
        first_line: the line of its first pair in the source.
        last_line: the line of its last pair.
        offset: how many pairs later (or earlier, if negative) the translation of a source stands; None if not near.
    """

    first_line: int
    last_line: int
    offset: int | None

    @property
    def remedy(self) -> str:
        """What --fix does with it."""
        return "realigns them" if self.offset else "leaves them out"

    def __str__(self) -> str:
        place = f"lines {self.first_line:,} to {self.last_line:,} are out of alignment"
        if not self.offset:
            return place
        direction = "later" if self.offset > 0 else "earlier"
        return f"{place}: the translations stand {counted(abs(self.offset), 'line')} {direction}"


def slips_of(passages: Sequence[Passage], lines: Sequence[int]) -> list[Slip]:
    """Return the passages out of alignment of a text, whose pairs have these lines."""
    return [Slip(lines[first], lines[end - 1], shift) for first, end, shift in passages if shift != 0]


def align(score: Scorer, log_odds: Floats, is_shown: Callable[[Passage], bool] = lambda _: True) -> list[Passage]:
    """Divide a text into passages by how far away the translations of their sources stand.

    Shifts are tried on sample lines of misaligned passages. A shift that yields translations is then scored on the
    lines around, and the text is divided anew by all shifts, until no more are found. Passages that ``is_shown``
    rejects are then left out.
    If eight lines after the first 100 of 1,000 are missing from the targets, the steps find these passages::

        find_passages        (0, 100, 0) (100, 992, None)
        _find_shift          -8, which makes translations of the sources 100 to 149
        _extend              the log odds at this shift of the sources around them
        find_passages        (0, 100, 0) (100, 108, None) (108, 992, -8)
        _find_shift          none in the passage in the middle
        _with_exact_borders  (0, 100, 0) (100, 992, -8)

    Args:
        score: gives the log odds of sources for being misaligned with targets.
        log_odds: those of the text as it stands.
        is_shown: checks a passage at another shift; by default, all are accepted.

    Returns:
        passages that together are the whole text.
    """
    costs = {0: log_odds}
    tried: set[Passage] = set()
    while True:
        passages = find_passages(costs)
        is_changed = False
        for place, passage in enumerate(passages):
            if passage.shift is None and passage not in tried and len(costs) < _MOST_SHIFTS:
                tried.add(passage)
                around = {each.shift or 0 for each in passages[max(0, place - 1) : place + 2]}
                if found := _find_shift(score, len(log_odds), passage, around):
                    is_changed = True
                    shift, start = found
                    _extend(costs.setdefault(shift, np.full(len(log_odds), _MOST)), score, shift, start)
        if not is_changed:
            break
    while doubtful := [passage for passage in passages if passage.shift and not is_shown(passage)]:
        for passage in doubtful:
            costs[passage.shift or 0][passage.first : passage.end] = _MOST
        passages = find_passages(costs)
    return merged(_with_exact_borders(_in_order(passages, len(log_odds)), costs))


def find_passages(costs: dict[int, Floats]) -> list[Passage]:
    """Divide a text into passages of one shift each, so that the sum of costs and borders is least (Viterbi 1967).

    A line costs nothing in a passage that is no translation. The text begins with the first shift.

    Args:
        costs: for each shift, the log odds of each source for being misaligned with the target there.

    Returns:
        passages that together are the whole text.
    """
    states = [*costs, None]
    totals = [0.0, *(_BORDER for _ in costs)]
    best_before = array("B")  # the best state before each line
    entered = array("Q")  # a bit for each state that is entered from that one at the line
    for row in zip(*(np.clip(column, -_MOST, _MOST).tolist() for column in costs.values()), strict=True):
        least, bits = min(totals), 0
        best_before.append(totals.index(least))
        for state, total in enumerate(totals):
            if least + _BORDER < total:
                totals[state] = least + _BORDER
                bits |= 1 << state
        entered.append(bits)
        for state, cost in enumerate(row):
            totals[state] += cost
    state, path = totals.index(min(totals)), array("B")
    for best, bits in zip(reversed(best_before), reversed(entered), strict=True):
        path.append(state)
        state = best if bits >> state & 1 else state
    passages, first = [], 0
    for state, lines in groupby(reversed(path)):
        end = first + sum(1 for _ in lines)
        passages.append(Passage(first, end, states[state]))
        first = end
    return passages


def _find_shift(score: Scorer, n_pairs: int, passage: Passage, around: set[int]) -> tuple[int, int] | None:
    """Try shifts around others on lines at the beginning, in the middle, at the quarters … of a passage.

    Returns:
        a shift that makes translations of some lines, and the first of these; None if there is none.
    """
    for first in _places(passage):
        end = min(first + _TRIED, passage.end)
        for reach in _REACHES:
            shifts = np.array(sorted({near + offset for near in around for offset in range(-reach, reach + 1)}))
            sources = np.tile(np.arange(first, end), len(shifts))
            targets = sources + np.repeat(shifts, end - first)
            scores = np.zeros(len(sources))  # of lines beyond the text, too
            [inside] = np.nonzero((targets >= 0) & (targets < n_pairs))
            for part in np.split(inside, range(_MOST_AT_ONCE, len(inside), _MOST_AT_ONCE)):
                scores[part] = score(sources[part], targets[part])
            means = np.clip(scores, -_MOST, _MOST).reshape(len(shifts), -1).mean(axis=1)
            if means.min() <= -_LEAST_GAIN:
                return int(shifts[means.argmin()]), first
    return None


def _places(passage: Passage) -> Iterator[int]:
    """Yield the places where shifts are tried: the beginning, then the middle of each remaining stretch."""
    length = passage.end - passage.first
    yield passage.first
    n_parts = 2
    while n_parts <= _MOST_PLACES and length // n_parts >= _TRIED:
        yield from (passage.first + length * part // n_parts for part in range(1, n_parts, 2))
        n_parts *= 2


def _extend(costs: Floats, score: Scorer, shift: int, start: int) -> None:
    """Score lines at a shift, in both directions from ``start`` as long as most are translations."""
    lowest, highest = max(0, -shift), len(costs) - max(0, shift)
    start = max(start, lowest)

    def score_between(first: int, end: int) -> bool:
        costs[first:end] = score(np.arange(first, end), np.arange(first, end) + shift)
        return bool(np.clip(costs[first:end], -_MOST, _MOST).mean() < 0)

    for first in range(start, highest, _AT_ONCE):
        if not score_between(first, min(first + _AT_ONCE, highest)):
            break
    for end in range(start, lowest, -_AT_ONCE):
        if not score_between(max(lowest, end - _AT_ONCE), end):
            break


def _with_exact_borders(passages: list[Passage], costs: dict[int, Floats]) -> list[Passage]:
    """Let a passage begin at the first source without a translation where the shift becomes less.

    If n lines are missing from the targets, n sources have no translation. They are few enough for one shift or the
    other, or a passage by themselves.
    """
    found: list[Passage] = []
    for passage in passages:
        gap = found[-1:] if found and found[-1].shift is None else []
        before = found[len(found) - len(gap) - 1] if len(found) > len(gap) else None
        border = _border(before, passage, sum(end - first for first, end, _ in gap), costs) if before else None
        if before and border is not None:
            found[len(found) - len(gap) - 1 :] = [before._replace(end=border), passage._replace(first=border)]
        else:
            found.append(passage)
    return found


def _border(before: Passage, after: Passage, n_between: int, costs: dict[int, Floats]) -> int | None:
    """Return where two passages with ``n_between`` sources between them meet; None if they do not, or have one shift.

    The sources up to the border cost what they do at the first shift, those after the missing ones at the second.
    """
    if before.shift is None or after.shift is None or before.shift == after.shift:
        return None
    n_missing = max(0, before.shift - after.shift)
    earliest = max(before.first, after.first - n_between - n_missing - _UNSURE)
    latest = min(after.first + _UNSURE, after.end - n_missing)
    if not n_missing - 2 * _UNSURE <= n_between <= n_missing + _UNSURE or latest < earliest:
        return None
    old, new = (
        np.append(0, np.cumsum(np.clip(costs[shift][earliest : latest + n_missing], -_MOST, _MOST)))
        for shift in (before.shift, after.shift)
    )
    return earliest + int(np.argmin(old[: len(old) - n_missing] - new[n_missing:]))


class _Way(NamedTuple):
    """Passages that are kept: their pairs, their targets up to the last one, its number, and those before it."""

    n_kept: int
    n_used: int
    number: int
    before: "_Way | None"


def _in_order(passages: Sequence[Passage], n_pairs: int) -> list[Passage]:
    """Leave out shifts that cost more translations than they bring, as each target is taken once, in order.

    So a few lines whose translations stand far away do not cost all the lines between.
    """
    ways = [_Way(0, 0, -1, None)]  # to keep passages in order, by the last one of them
    for number, (first, end, shift) in enumerate(passages):
        if shift is not None:
            last = min(end, n_pairs - shift)
            longer = [
                _Way(way.n_kept + last - max(first, way.n_used - shift), last + shift, number, way)
                for way in reversed(ways[-_MOST_SHIFTS:])
                if last > max(first, way.n_used - shift)
            ]
            if longer:
                ways.append(max(longer, key=attrgetter("n_kept")))
    kept, best = set(), max(reversed(ways), key=attrgetter("n_kept"))
    while best.before:
        kept.add(best.number)
        best = best.before
    return merged(
        [passage if number in kept else passage._replace(shift=None) for number, passage in enumerate(passages)]
    )


def translated(passages: Sequence[Passage], n_pairs: int) -> list[Passage]:
    """Return the part of each passage whose sources have translations, each target at most once; it may be empty."""
    parts, n_used = [], 0  # targets
    for first, end, shift in passages:
        if shift is None:
            parts.append(Passage(first, first, None))
            continue
        first = min(max(first, n_used - shift), end)
        end = max(first, min(end, n_pairs - shift))
        parts.append(Passage(first, end, shift))
        n_used = max(n_used, end + shift)
    return parts


def merged(passages: Sequence[Passage]) -> list[Passage]:
    """Join neighbours of one shift, and leave out passages without sources."""
    found: list[Passage] = []
    for passage in passages:
        if passage.end > passage.first:
            if found and found[-1].shift == passage.shift:
                passage = passage._replace(first=found.pop().first)
            found.append(passage)
    return found
