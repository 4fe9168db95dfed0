"""The places of marks in a translation: beside the translations of the words that are their neighbours."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

from mtformer.translate.markup.atoms import Atom, words_of


@dataclass
class Node:
    """A pair of marks around some text, or a single mark.

    Attributes:
        opening: the first mark as written, or the single one; empty if the pair begins before the segment.
        closing: the second mark; empty if the pair ends after the segment, None of a single mark.
        start: where the text inside starts, in characters of the segment's text.
        end: where it ends.
        spaced: whether it is glued neither to a word of a language with spaces nor to another single mark before it.
        is_glued: whether it is glued to the word after it, but not to one before it.
        children: the nodes inside.
    """

    opening: str
    closing: str | None
    start: int
    end: int
    spaced: bool = True
    is_glued: bool = False
    children: list["Node"] = field(default_factory=list)


class Destination(NamedTuple):
    """The destination of a mark.

    Attributes:
        stretch: the target atoms that it goes around; an empty range is a boundary.
        number: the mark's place among its siblings in the source.
        node: the mark.
    """

    stretch: range
    number: int
    node: Node


class Destinations:
    """Finds where the marks of a segment go in its translation.

    The atoms of both sides are numbered from 0, and boundary i is before atom i. A pair of marks goes around a stretch
    of target atoms; a single mark, or a pair without words inside, goes to a boundary, which is an empty stretch::

        source    Press <b> the red button </b> .
        atoms       0        1   2    3         4

        target    Drücken Sie auf den roten Knopf .
        atoms        0     1   2   3    4     5   6      the stretch of <b>: range(3, 6)
                                  <b>          </b>

    Target atoms 3 to 5 attend to source atoms 1 to 3 more than to all others. A pair that is inside of another stays
    ``within`` the stretch of that one.
    """

    def __init__(self, src: Sequence[Atom], tgt: Sequence[Atom], links: Iterable[tuple[int, int, float]]) -> None:
        """Take the atoms of both sides, and links: source words, target words, how much these attend to those."""
        self._src, self._tgt = src, tgt
        self._starts, self._ends = [atom.start for atom in src], [atom.end for atom in src]
        src_words, tgt_words = words_of(src), words_of(tgt)
        self._src_words, self._tgt_words = sorted(src_words.values()), sorted(tgt_words.values())
        self._weights: list[dict[int, float]] = [{} for _ in src]  # of the target's atoms, for each of the source's
        self._sums = [0.0] * len(tgt)
        for s, t, weight in links:
            if s in src_words and t in tgt_words:
                self._weights[src_words[s]][tgt_words[t]] = weight
                self._sums[tgt_words[t]] += weight
        self._targets = _linked(self._weights)
        linked = {t for targets in self._targets for t in targets}
        self._n_linked = [0, *accumulate(place in linked for place in range(len(tgt)))]  # before each atom of tgt

    def of(self, nodes: Sequence[Node], within: range) -> list[Destination]:
        """Return the destinations of marks, from left to right, ``within`` a stretch, without partial overlaps."""
        wanted = [Destination(self._stretch(node, within), number, node) for number, node in enumerate(nodes)]
        pairs: list[Destination] = []
        position = within.start
        for place in sorted((place for place in wanted if place.stretch), key=lambda place: place.stretch.start):
            start = max(place.stretch.start, position)
            position = max(place.stretch.stop, start)
            pairs.append(place._replace(stretch=range(start, position)))
        singles = [_beside(place, pairs) for place in wanted if not place.stretch]
        places = _uncrossed([*pairs, *singles])
        return sorted(places, key=lambda place: (place.stretch.start, place.stretch.stop, place.number))

    def _stretch(self, node: Node, within: range) -> range:
        """Return the target atoms that a node goes around."""
        inside = range(bisect_right(self._ends, node.start), bisect_left(self._starts, node.end))  # of the source
        if node.closing is None or not any(self._src[i].is_word for i in inside):
            boundary = self._boundary(node.start if node.opening else node.end, within)
            return range(boundary, boundary)
        stretch = self._with_punctuation_of(inside, self._translated(inside, within), within)
        return stretch or self._nearest_word(node.start, within)

    def _translated(self, inside: range, within: range) -> range:
        """Return the target atoms that translate the source atoms ``inside``."""
        linked = {t for i in inside for t in self._targets[i] if t in within}
        if len(linked) == self._n_linked[within.stop] - self._n_linked[within.start]:
            return within  # no other words are translated there
        return self._attending(inside, within) if linked else within[:0]

    def _attending(self, inside: range, within: range) -> range:
        """Return the target atoms that attend to the source atoms ``inside`` more than to all else.

        If there are none, return the one that attends to them most: half of a compound, for example.
        """
        weights: dict[int, float] = {}
        for i in inside:
            for t, weight in self._weights[i].items():
                if t in within:
                    weights[t] = weights.get(t, 0.0) + weight
        candidates = range(min(weights), max(weights) + 1)
        best = _best_range([2 * weights.get(t, 0.0) - self._sums[t] for t in candidates])
        if best:
            return candidates[best.start : best.stop]
        most = max(weights, key=lambda t: weights[t])
        return range(most, most + 1)

    def _nearest_word(self, position: int, within: range) -> range:
        """Return the stretch of the target word nearest to the counterpart of the source ``position``."""
        boundary = self._boundary(position, within)
        number = bisect_left(self._tgt_words, boundary)
        neighbours = [i for i in self._tgt_words[max(number - 1, 0) : number + 1] if i in within]
        nearest = min(neighbours, key=lambda i: abs(i + 0.5 - boundary), default=within.start)
        return range(nearest, nearest + bool(neighbours))

    def _with_punctuation_of(self, inside: range, stretch: range, within: range) -> range:
        """Move the ends of a stretch to have as much punctuation there as the source atoms ``inside``, if possible.

        ``<b>red,</b>`` becomes ``<b>rot,</b>``, and ``<b>red</b>,`` becomes ``<b>rot</b>,``. The sign of a currency
        stays with its number: ``<b>5 €</b>.`` becomes ``<b>€5</b>.``.
        """
        src = [self._src[i] for i in inside if not self._src[i].is_currency]
        n_before = next(n for n, atom in enumerate(src) if atom.is_word)
        n_after = next(n for n, atom in enumerate(reversed(src)) if atom.is_word)
        start = self._right_over_punctuation(stretch.start, len(stretch))
        end = self._left_over_punctuation(stretch.stop, stretch.stop - start)
        if len(src) < len(inside):
            if end < within.stop and self._tgt[end].is_currency:
                end += 1
            elif start > within.start and self._tgt[start - 1].is_currency:
                start -= 1
        start = self._left_over_punctuation(start, min(n_before, start - within.start))
        end = self._right_over_punctuation(end, min(n_after, within.stop - end))
        return range(start, end)

    def _boundary(self, position: int, within: range) -> int:
        """Return the boundary in the target that corresponds to ``position`` of the source.

        With as much punctuation between as in the source, if the target has it, the boundary is::

            the position is                    the boundary is
            before the first word              after the start of the target
            after the last word                before the end of the target
            between two words, with links      after a translation of the left one, as near as it can be to the right's
              with links of the left one       after the last of its translations
              with links of the right one      before the first of its translations
              without links                    as far into the target as the position is into the source
        """
        before, after = bisect_right(self._ends, position), bisect_left(self._starts, position)  # source boundaries
        left, right = bisect_left(self._src_words, before) - 1, bisect_left(self._src_words, after)
        if left < 0:
            boundary = self._right_over_punctuation(0, before)
        elif right == len(self._src_words):
            boundary = self._left_over_punctuation(len(self._tgt), len(self._src) - after)
        else:
            last, following = self._src_words[left], self._src_words[right]
            ends = [self._right_over_punctuation(t + 1, before - 1 - last) for t in self._targets[last]]
            starts = self._targets[following]
            if ends and starts:
                boundary = min(ends, key=lambda end: _distance(end, starts))
            elif ends or starts:
                boundary = max(ends) if ends else min(starts)
            else:
                boundary = round(len(self._tgt) * before / len(self._src))
        return min(max(boundary, within.start), within.stop)

    def _right_over_punctuation(self, boundary: int, most: int) -> int:
        """Move a boundary of the target to the right, over at most ``most`` atoms that are no words."""
        end = min(boundary + most, len(self._tgt))
        return next((i for i in range(boundary, end) if self._tgt[i].is_word), end)

    def _left_over_punctuation(self, boundary: int, most: int) -> int:
        """Move a boundary of the target to the left, over at most ``most`` atoms that are no words."""
        start = max(boundary - most, 0)
        return next((i for i in range(boundary, start, -1) if self._tgt[i - 1].is_word), start)


def _uncrossed(places: Sequence[Destination]) -> list[Destination]:
    """Move the start of a pair that ends after the segment behind the end of one that begins before it."""
    ends = [place.stretch.stop for place in places if not place.node.opening]

    def moved(place: Destination) -> Destination:
        start, stop = (max(boundary, *ends) for boundary in (place.stretch.start, place.stretch.stop))
        return place._replace(stretch=range(start, stop))

    return [moved(place) if ends and place.node.closing == "" else place for place in places]


def _beside(single: Destination, pairs: Sequence[Destination]) -> Destination:
    """Move single marks out of sibling pairs, to the side that they are on in the source."""
    number = bisect_left(pairs, single.stretch.start, key=lambda pair: pair.stretch.start) - 1
    if number < 0 or single.stretch.start >= pairs[number].stretch.stop:
        return single
    pair = pairs[number]
    boundary = pair.stretch.start if single.number < pair.number else pair.stretch.stop
    return single._replace(stretch=range(boundary, boundary))


def _linked(weights: Sequence[Mapping[int, float]]) -> list[list[int]]:
    """Link each target atom to the source atom that it attends to most, and return the targets of each source atom.

    A source atom that no target atom attends to most is linked to the one that attends to it most. So both halves of
    "soccer player" are linked to "Fußballspieler".
    """
    best: dict[int, tuple[float, int]] = {}
    for s, of_targets in enumerate(weights):
        for t, weight in of_targets.items():
            best[t] = max(best.get(t, (0.0, 0)), (weight, -s))
    targets: list[list[int]] = [[] for _ in weights]
    for t in sorted(best):
        targets[-best[t][1]].append(t)
    return [
        linked or ([max(of_targets, key=lambda t: (of_targets[t], -t))] if of_targets else [])
        for linked, of_targets in zip(targets, weights, strict=True)
    ]


def _distance(place: int, places: Sequence[int]) -> int:
    """Return how far ``place`` is from the nearest of ``places``, which are in order."""
    number = bisect_left(places, place)
    return min(abs(place - neighbour) for neighbour in places[max(number - 1, 0) : number + 1])


def _best_range(scores: Sequence[float]) -> range:
    """Return the places with the largest sum, the fewest of several such ranges (Kadane's algorithm)."""
    best, best_range = 0.0, range(0)
    total, start = 0.0, 0
    for place, score in enumerate(scores):
        if total <= 0:
            total, start = 0.0, place
        total += score
        if total > best:
            best, best_range = total, range(start, place + 1)
    return best_range
