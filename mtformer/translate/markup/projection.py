"""Put the marks of a segment into its translation, where the words stand that translate the words beside them."""

import html
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from mtformer.translate.markup.atoms import Atom, words_of
from mtformer.translate.markup.scanner import unescape
from mtformer.translate.markup.segment import Node


@dataclass
class _Chunk:
    """Something written.

    Attributes:
        text: what.
        spaced: whether a space separates it from what stands before it.
        is_mark: whether it is a mark without words inside.
    """

    text: str
    spaced: bool
    is_mark: bool = False


@dataclass
class _Place:
    """Where a mark goes: around the atoms from ``start`` to before ``end`` of the target.

    Attributes:
        start: the first atom inside.
        end: the atom after the last.
        number: the mark's place among its siblings in the source.
        node: the mark.
    """

    start: int
    end: int
    number: int
    node: Node


_NO_SPACE_AFTER = tuple("([{（「『“‘«")
_NO_SPACE_BEFORE = tuple(".,;:!?)]}…。，、；：！？）」』”")


class Projection:
    """The translation of a segment, into which marks are put."""

    def __init__(
        self, src: Sequence[Atom], tgt: Sequence[Atom], links: Iterable[tuple[int, int, float]], tgt_text: str
    ) -> None:
        """Take the atoms of both sides.

        Args:
            src: the source's.
            tgt: the translation's.
            links: source words, target words, and how much these attend to those.
            tgt_text: the translation.
        """
        self._src, self._tgt = src, tgt
        self._spaced = [tgt_text[atom.start - 1 : atom.start].isspace() for atom in tgt]
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

    def render(self, nodes: Sequence[Node], *, escaped: bool) -> str:
        """Return the translation with the marks; ``escaped`` writes it with HTML's entities."""
        self._escaped = escaped
        chunks = self._render(nodes, 0, len(self._tgt))
        return "".join(" " * (chunk.spaced and place > 0) + chunk.text for place, chunk in enumerate(chunks))

    def _render(self, nodes: Sequence[Node], first: int, last: int) -> list[_Chunk]:
        """Render the target's atoms from ``first`` to before ``last`` with the marks among them."""
        chunks: list[_Chunk] = []
        position = first
        for place in self._places(nodes, first, last):
            self._write_atoms(chunks, position, place.start)
            node, position = place.node, place.end
            inner = self._render(node.children, place.start, place.end)
            if node.closing is not None and inner:
                inner[0].spaced = self._is_spaced(chunks, inner[0].text, inner[0].spaced)
                inner[0].text = node.opening + inner[0].text
                inner[-1].text += node.closing
                chunks += inner
            elif node.closing != node.opening:  # Markdown's emphasis on nothing would be read as something else
                spaced = node.spaced and not (chunks and chunks[-1].text.endswith(_NO_SPACE_AFTER))
                chunks.append(_Chunk(node.opening + (node.closing or ""), spaced, is_mark=True))
        self._write_atoms(chunks, position, last)
        return chunks

    def _write_atoms(self, chunks: list[_Chunk], first: int, last: int) -> None:
        for place in range(first, last):
            text = self._tgt[place].text
            spaced = self._is_spaced(chunks, text, self._spaced[place])
            chunks.append(_Chunk(html.escape(text, quote=False) if self._escaped else text, spaced))

    def _is_spaced(self, chunks: Sequence[_Chunk], text: str, otherwise: bool) -> bool:
        """Return whether a space goes before ``text`` of the translation, which had one or not where no mark was."""
        if chunks and chunks[-1].is_mark:
            return not (text.startswith(_NO_SPACE_BEFORE) or unescape(chunks[-1].text).isspace())
        return otherwise

    def _places(self, nodes: Sequence[Node], first: int, last: int) -> list[_Place]:
        """Return where marks go, from left to right: inside of the range, and in or beside each other."""
        pairs: list[_Place] = []
        singles: list[_Place] = []
        for number, node in enumerate(nodes):
            start, end = self._range(node, first, last)
            (pairs if end > start else singles).append(_Place(start, end, number, node))
        pairs.sort(key=lambda place: (place.start, place.number))
        position = first
        for pair in pairs:
            pair.start = max(pair.start, position)
            pair.end = position = max(pair.end, pair.start)
        starts = [pair.start for pair in pairs]
        for single in singles:
            before = bisect_left(starts, single.start) - 1
            if before >= 0 and single.start < pairs[before].end:
                pair = pairs[before]
                single.start = single.end = pair.start if single.number < pair.number else pair.end
        return sorted([*pairs, *singles], key=lambda place: (place.start, place.end, place.number))

    def _range(self, node: Node, first: int, last: int) -> tuple[int, int]:
        """Return the atoms of the target, from the first to before the second, that a node surrounds."""
        inside = range(bisect_right(self._ends, node.start), bisect_left(self._starts, node.end))
        if not any(self._src[i].is_word for i in inside):
            place = min(max(self._boundary(node.start), first), last)
            return place, place
        linked = {t for i in inside for t in self._targets[i] if first <= t < last}
        if len(linked) == self._n_linked[last] - self._n_linked[first]:  # no other words are translated here
            start, end = first, last
        elif linked:
            start, end = self._attending(inside, first, last)
        else:
            start = end = first
        start, end = self._with_punctuation_of(self._src[inside[0]], self._src[inside[-1]], start, end, first, last)
        return (start, end) if start < end else self._nearest_word(node.start, first, last)

    def _attending(self, inside: range, first: int, last: int) -> tuple[int, int]:
        """Return the atoms from ``first`` to before ``last`` that attend to ``inside`` more than to all else.

        If there are none, return the one that attends to ``inside`` most: half of a compound, for example.
        """
        weights: dict[int, float] = {}
        for i in inside:
            for t, weight in self._weights[i].items():
                if first <= t < last:
                    weights[t] = weights.get(t, 0.0) + weight
        left, right = min(weights), max(weights) + 1
        start, end = _best_range([2 * weights.get(t, 0.0) - self._sums[t] for t in range(left, right)])
        if start < end:
            return start + left, end + left
        best = max(weights, key=lambda t: weights[t])
        return best, best + 1

    def _nearest_word(self, position: int, first: int, last: int) -> tuple[int, int]:
        """Return the range of the word that is nearest to where ``position`` of the source is in the target."""
        place = min(max(self._boundary(position), first), last)
        number = bisect_left(self._tgt_words, place)
        nearest = [i for i in self._tgt_words[max(number - 1, 0) : number + 1] if first <= i < last]
        start = min(nearest, key=lambda i: abs(i + 0.5 - place), default=first)
        return start, start + bool(nearest)

    def _with_punctuation_of(
        self, src_first: Atom, src_last: Atom, start: int, end: int, first: int, last: int
    ) -> tuple[int, int]:
        """Move the ends of a range so that punctuation is inside of it if it is in the source."""
        if src_first.is_word:
            while start < end and not self._tgt[start].is_word:
                start += 1
        elif first < start and not self._tgt[start - 1].is_word:
            start -= 1
        if src_last.is_word:
            while start < end and not self._tgt[end - 1].is_word:
                end -= 1
        elif end < last and not self._tgt[end].is_word:
            end += 1
        return start, end

    def _boundary(self, position: int) -> int:
        """Return before which atom of the target a mark goes that stands at ``position`` of the source."""
        n_before = bisect_right(self._ends, position)
        n_after = len(self._src) - bisect_left(self._starts, position)
        left = bisect_left(self._src_words, n_before) - 1
        right = bisect_left(self._src_words, len(self._src) - n_after)
        if left < 0:
            return self._skip_punctuation(0, n_before)
        if right == len(self._src_words):
            end = len(self._tgt)
            least = max(0, end - n_after)
            while end > least and not self._tgt[end - 1].is_word:
                end -= 1
            return end
        n_between = n_before - 1 - self._src_words[left]  # punctuation between the word and the mark
        lefts = [self._skip_punctuation(t + 1, n_between) for t in self._targets[self._src_words[left]]]
        rights = self._targets[self._src_words[right]]
        if lefts and rights:
            return min(lefts, key=lambda place: _distance(place, rights))
        if lefts or rights:
            return max(lefts) if lefts else min(rights)
        return round(len(self._tgt) * n_before / len(self._src))

    def _skip_punctuation(self, place: int, most: int) -> int:
        """Return the place after the punctuation at ``place``, of which at most ``most`` atoms are skipped."""
        end = min(place + most, len(self._tgt))
        return next((i for i in range(place, end) if self._tgt[i].is_word), end)


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
        found or ([max(of_targets, key=lambda t: (of_targets[t], -t))] if of_targets else [])
        for found, of_targets in zip(targets, weights, strict=True)
    ]


def _distance(place: int, places: Sequence[int]) -> int:
    """Return how far ``place`` is from the nearest of ``places``, which are in order."""
    number = bisect_left(places, place)
    return min(abs(place - other) for other in places[max(number - 1, 0) : number + 1])


def _best_range(scores: Sequence[float]) -> tuple[int, int]:
    """Return start and end of the stretch with the largest sum, the shortest of several (Kadane's algorithm)."""
    best, best_range = 0.0, (0, 0)
    total, start = 0.0, 0
    for place, score in enumerate(scores):
        if total <= 0:
            total, start = 0.0, place
        total += score
        if total > best:
            best, best_range = total, (start, place + 1)
    return best_range
