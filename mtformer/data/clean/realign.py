"""Realign a text in which lines are missing or extra."""

from array import array
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, islice, pairwise, tee
from operator import attrgetter
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtformer.data.clean.filters import Filters
from mtformer.data.clean.learned import MISALIGNED, LearnedRules
from mtformer.data.sources.parallel import ParallelText
from mtformer.support.terminal import counted
from mtformer.text.pairs import Drops, Example, SentencePair

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
LineLengths = NDArray[np.int32]
# Returns the log odds of sources for being misaligned with the targets at other places, if half of all pairs were.
Scorer = Callable[[Places, Places], Floats]

UNRELATED = "hardly any pair looks like a translation: are both sides in the same order?"
_BORDER = 15.0  # log odds that a passage must gain, at its beginning and at its end
_MOST = 5.0  # log odds of a pair that count: no pair may decide for its neighbours
_REACHES = (10, 600)  # lines by which a shift may differ from the one before; more are tried if the first finds none
_LEAST_GAIN = 0.5  # log odds for each line; a shift that gains less is that of no translation
_TRIED = 50  # lines that shifts are tried on
_MOST_PLACES = 16  # of a passage where shifts are tried
_MOST_AT_ONCE = 10_000  # pairs that are scored, which bounds the memory
_AT_ONCE = 1_000  # lines that are scored before and after these, as long as most of them are translations
_MOST_SHIFTS = 50
_CORRELATION = 0.7  # of the lengths of texts and their translations
_WEIGHT = 4.0  # of the odds by lengths, which are small, so that passages of some 50 lines outweigh their borders
_AROUND = 1_000  # pairs before and after those that are out of alignment, which may belong to them
_MOST_MISALIGNED = 0.5  # share of the pairs of a text that teaches what translations are
_MOST_REALIGNED = 4_000_000  # pairs, which take two gigabytes
_FEWEST_SHOWN = 12  # pairs whose lengths show that they are translations
_NEIGHBOURS = 20  # shifts to either side, at which the lengths of translations are less alike
_LEAST_LEAD = 3.0  # standard errors by which they are
_FEWEST_SURE, _SURE_AT_ONCE = 200, 100  # pairs, in which a slip is found if there is one, and parts of them
_FEWEST_UNRELATED = 300  # pairs
_LARGEST_UNRELATED, _LARGEST_UNRELATED_LEAD = (
    0.4,
    1.0,
)  # as of lines that take turns, which are alike at every other shift
_SENTENCES, _LEAST_SPREAD = 15, 0.2  # characters on the longer side; words and codes tell too little
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
        out = f"lines {self.first_line:,} to {self.last_line:,} are out of alignment"
        if not self.offset:
            return out
        direction = "later" if self.offset > 0 else "earlier"
        return f"{out}: the translations stand {counted(abs(self.offset), 'line')} {direction}"


def slips_of(passages: Sequence[Passage], lines: Sequence[int]) -> list[Slip]:
    """Return the passages out of alignment of a text, whose pairs have these lines."""
    return [Slip(lines[first], lines[end - 1], shift) for first, end, shift in passages if shift != 0]


def aligned(part: ParallelText, log_odds: Floats, learned: LearnedRules) -> list[Passage]:
    """Find the passages of a text, which is read once more for that if some are out of alignment.

    Args:
        part: the text.
        log_odds: of each of its pairs for being misaligned.
        learned: what returns them.

    Returns:
        passages that together are the whole text.

    Raises:
        UserError: the text cannot be read a second time.
    """
    passages = find_passages({0: log_odds})
    teaches_little = learned.shares()[MISALIGNED] > _MOST_MISALIGNED
    better = _taught_by_lengths(part, len(log_odds)) if teaches_little else None
    slips = [passage for passage in passages if passage.shift is None]
    if better and not slips:
        slips = passages  # where all has slipped, nothing looks worse than the rest
    if not slips:
        return passages
    first, end = max(0, slips[0].first - _AROUND), min(slips[-1].end + _AROUND, len(log_odds))
    if end - first > _MOST_REALIGNED:
        return passages
    pairs = list(islice(part, first, end))
    odds = better.misalignment(pairs) if better else log_odds[first:end]
    found = align(_score_by(better or learned, pairs), odds)
    moved = [Passage(passage.first + first, passage.end + first, passage.shift) for passage in found]
    return _joined([Passage(0, first, 0), *moved, Passage(end, len(log_odds), 0)])


def _score_by(learned: LearnedRules, pairs: Sequence[SentencePair]) -> Scorer:
    def score(sources: Places, targets: Places) -> Floats:
        places = zip(sources.tolist(), targets.tolist(), strict=True)
        return learned.misalignment([SentencePair(pairs[source].src, pairs[target].tgt) for source, target in places])

    return score


def align(score: Scorer, log_odds: Floats, is_shown: Callable[[Passage], bool] = lambda _: True) -> list[Passage]:
    """Divide a text into passages by how far away the translations of their sources stand.

    Shifts are tried on sample lines of misaligned passages. A shift that yields translations is then scored on the
    lines around, and the text is divided anew by all shifts, until no more are found. Those that do not stand a second
    look are then left out.
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
        is_shown: a second look at a passage whose translations stand elsewhere.

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
                before = passages[place - 1].shift or 0 if place else 0
                if found := _find_shift(score, len(log_odds), passage, before):
                    is_changed = True
                    shift, start = found
                    _extend(costs.setdefault(shift, np.full(len(log_odds), _MOST)), score, shift, start)
        if not is_changed:
            break
    while doubtful := [passage for passage in passages if passage.shift and not is_shown(passage)]:
        for passage in doubtful:
            costs[passage.shift or 0][passage.first : passage.end] = _MOST
        passages = find_passages(costs)
    return _in_order(_with_exact_borders(passages, costs), len(log_odds))


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


def _find_shift(score: Scorer, n_pairs: int, passage: Passage, near: int) -> tuple[int, int] | None:
    """Try shifts around one on lines at the beginning, in the middle, at the quarters … of a passage.

    Returns:
        a shift that makes translations of some lines, and the first of these; None if there is none.
    """
    for first in _places(passage):
        end = min(first + _TRIED, passage.end)
        for reach in _REACHES:
            shifts = np.arange(max(near - reach, -first), min(near + reach, n_pairs - end) + 1)
            if not len(shifts):
                continue
            sources = np.tile(np.arange(first, end), len(shifts))
            targets = sources + np.repeat(shifts, end - first)
            parts = [slice(begin, begin + _MOST_AT_ONCE) for begin in range(0, len(sources), _MOST_AT_ONCE)]
            scores = np.concatenate([score(sources[part], targets[part]) for part in parts])
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
    return _joined(
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


def _joined(passages: Sequence[Passage]) -> list[Passage]:
    """Join neighbours of one shift, and leave out passages without sources."""
    found: list[Passage] = []
    for passage in passages:
        if passage.end > passage.first:
            if found and found[-1].shift == passage.shift:
                passage = passage._replace(first=found.pop().first)
            found.append(passage)
    return found


def _taught_by_lengths(part: ParallelText, n_pairs: int) -> LearnedRules | None:
    """Learn from a text that teaches little as it stands, after a rough realignment; None if that changes nothing."""
    if n_pairs > _MOST_REALIGNED:
        return None
    passages = _by_lengths(lengths_of(list(part)))
    if not any(passage.shift for passage in passages):
        return None
    text = RealignedText(part.sources, *part.languages, passages=passages, n_pairs=n_pairs)
    return Filters([MISALIGNED], part.languages, sample=text).learned


def lengths_of(pairs: Sequence[SentencePair]) -> LineLengths:
    """Return the characters of both sides of each pair, shape (pairs, 2)."""
    return np.array([(len(pair.src), len(pair.tgt)) for pair in pairs], dtype=np.int32).reshape(-1, 2)


def aligned_by_lengths(lengths: LineLengths) -> list[Passage]:
    """Find the passages of a text by the lengths of its lines alone (Gale and Church 1993).

    This takes no other text and no knowledge of the languages, but it finds few slips of less than 30 lines, and the
    ends of passages may be a few lines away.

    Args:
        lengths: the characters of both sides of each pair, shape (pairs, 2).

    Returns:
        passages that together are the whole text; one if it is unsure that some have slipped.
    """
    passages = _by_lengths(lengths) if 0 < len(lengths) <= _MOST_REALIGNED else []
    n_unknown = sum(passage.end - passage.first for passage in passages if passage.shift is None)
    if any(passage.shift for passage in passages) and 2 * n_unknown <= len(lengths):
        return passages
    return [Passage(0, len(lengths), 0)]


def describe_alignment(lengths: LineLengths, lines: Sequence[int], *, fixable: bool) -> Iterator[str]:
    """Yield sentences on passages out of alignment, or on a text that is no translation at all.

    Args:
        lengths: the characters of both sides of each pair, shape (pairs, 2).
        lines: the line of each pair.
        fixable: whether --fix changes the text.
    """
    slips = slips_of(aligned_by_lengths(lengths), lines)
    if not slips and are_unrelated(lengths):
        yield UNRELATED
    for slip in slips:
        yield f"{slip}; mtformer data check --fix {slip.remedy}" if fixable else str(slip)


def are_surely_aligned(passages: Sequence[Passage], lengths: LineLengths) -> bool:
    """Tell whether the lengths leave no doubt in any part of a text that its passages are translations.

    There is doubt in sorted text, for instance, where a line is as long as its neighbours.

    Args:
        passages: those of the text.
        lengths: the characters of both sides of each pair, shape (pairs, 2).
    """
    if len(lengths) < _FEWEST_SURE and not any(passage.shift for passage in passages):
        return False
    scores, parts = _length_scores(lengths), []
    for first, end, shift in translated(passages, len(lengths)):
        borders = np.linspace(first, end, max(1, (end - first) // _SURE_AT_ONCE) + 1).astype(int).tolist()
        parts += [Passage(*between, shift) for between in pairwise(borders)]
    return all(_is_shown(scores, part) for part in parts if 2 * (part.end - part.first) >= _SURE_AT_ONCE)


def are_unrelated(lengths: LineLengths) -> bool:
    """Tell whether the lengths of a text show that hardly any pair is a translation.

    Args:
        lengths: the characters of both sides of each pair, shape (pairs, 2).
    """
    filled = lengths[(lengths > 0).all(axis=1)]
    if len(filled) < _FEWEST_UNRELATED or filled.mean(axis=0).max() < _SENTENCES:
        return False
    if np.log(1.0 + filled).std(axis=0).min() < _LEAST_SPREAD:
        return False
    correlation, lead = _likeness(_length_scores(filled), Passage(0, len(filled), 0))
    return correlation < _LARGEST_UNRELATED and lead < _LARGEST_UNRELATED_LEAD


def _is_shown(scores: Floats, passage: Passage) -> bool:
    """Tell whether the lengths of a passage are alike at its shift, and clearly less so at the shifts around it.

    They may be alike at all shifts: in sorted text, or where headings and paragraphs take turns.

    Args:
        scores: those of the lengths, shape (2, pairs).
        passage: some translations, as far as it seems.
    """
    return passage.end - passage.first >= _FEWEST_SHOWN and _likeness(scores, passage)[1] >= _LEAST_LEAD


def _likeness(scores: Floats, passage: Passage) -> tuple[float, float]:
    """Return the correlation of lengths at a shift, and its lead over shifts around, in standard errors."""
    first, end, shift = passage
    if shift is None:
        return 0.0, 0.0
    src, tgt = scores
    correlations = {}
    for other in range(shift - _NEIGHBOURS, shift + _NEIGHBOURS + 1):
        begin, stop = max(first, -other), min(end, len(src) - other)
        if 2 * (stop - begin) >= end - first:
            correlations[other] = _correlation(src[begin:stop], tgt[begin + other : stop + other])
    here = correlations.pop(shift)
    lead = np.arctanh(here) - np.arctanh(max(0.0, *correlations.values()))  # of Fisher's z
    return here, float(lead * np.sqrt(max(0, end - first - 3)))


def _by_lengths(lengths: LineLengths) -> list[Passage]:
    scores, places = _length_scores(lengths), np.arange(len(lengths))
    score = _score_by_lengths(scores)
    return align(score, score(places, places), partial(_is_shown, scores))


def _correlation(first: Floats, second: Floats) -> float:
    """Return the correlation of two series; 0 if the values of one are all the same."""
    first, second = first - first.mean(), second - second.mean()
    product = np.sqrt((first**2).sum() * (second**2).sum())
    return float(np.clip((first * second).sum() / product, -0.999, 0.999)) if product > 1e-6 else 0.0


def _length_scores(lengths: LineLengths) -> Floats:
    """Return the ranks of the lengths on each side as values of a normal distribution, shape (2, pairs).

    So few lengths that differ much from the others, as of blank lines, do not count more than the many.
    """
    scores = np.empty(lengths.T.shape)
    for side, of_side in zip(lengths.T, scores, strict=True):
        _, places, counts = np.unique(side, return_inverse=True, return_counts=True)
        shares = (np.cumsum(counts) - counts / 2) / len(side)
        of_side[:] = np.array([NormalDist().inv_cdf(share) for share in shares.tolist()])[places]
    return scores


def _score_by_lengths(scores: Floats) -> Scorer:
    """Return log odds of being misaligned that depend on the lengths of the two sides alone (Gale and Church 1993).

    They need no knowledge of the languages, but it takes some lines to tell whether these are translations.

    Args:
        scores: those of the lengths of the text, shape (2, pairs).
    """
    src_lengths, tgt_lengths = scores
    noise = 1 - _CORRELATION**2

    def score(sources: Places, targets: Places) -> Floats:
        src, tgt = src_lengths[sources], tgt_lengths[targets]
        return _WEIGHT * ((tgt - _CORRELATION * src) ** 2 / noise - tgt**2 + np.log(noise)) / 2

    return score


@dataclass(frozen=True)
class RealignedText(ParallelText):
    """A text whose sources stand with their translations.

    Attributes:
        passages: how far away the translations are.
        n_pairs: the number of its pairs as they stand.
    """

    lenient: bool = True
    passages: Sequence[Passage] = ()
    n_pairs: int = 0

    def examples(self, drops: Drops | None = None) -> Generator[Example, None, None]:
        """Yield the pairs of sources and their translations, with the lines of the sources."""
        for source, target in self.joined(drops):
            if target is not None:
                yield source._replace(tgt=target.tgt)

    def joined(self, drops: Drops | None = None) -> Iterator[tuple[Example, Example | None]]:
        """Yield the pairs as they stand, each with the one that has the translation of its source; None without one."""
        sources, targets = tee(super().examples(drops))  # which remembers the lines between them
        n_sources = n_targets = 0
        for first, end, shift in translated(self.passages, self.n_pairs):
            if shift is None or first == end:
                continue
            for source in islice(sources, first - n_sources):
                yield source, None
            between = islice(targets, first + shift - n_targets, end + shift - n_targets)
            yield from zip(islice(sources, end - first), between, strict=False)
            n_sources, n_targets = end, end + shift
        for source in sources:
            yield source, None
