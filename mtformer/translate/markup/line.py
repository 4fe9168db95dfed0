"""A line with markup: its texts to translate, and how translations are put back between the marks.

The marks of each segment become a tree over the text that remains.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

from mtformer.text.languages import UNDETERMINED
from mtformer.text.tokenizer.vocabulary import on_one_line
from mtformer.text.words import word_spans
from mtformer.translate.markup.atoms import Links, atoms_of, split_copies
from mtformer.translate.markup.destinations import Destinations, Node
from mtformer.translate.markup.projection import NO_SPACE_AFTER, Projection
from mtformer.translate.markup.scanner import (
    CLOSING_PUNCTUATION,
    ENTITY,
    Mark,
    Role,
    long_words,
    scan,
    unescape,
    unknown_words,
    without_overlaps,
)
from mtformer.translate.translation import FLAG, Translation, joined

_BRACKETS = dict(zip("([{<\"'“‘„«（", ")]}>\"'”’“»）", strict=True))
_DEEPEST = 50  # pairs inside each other; no text has more
# Neither punctuation nor signs that are read as words, such as &
_SIGNS = re.compile(r"""[^\w\s.,:;!?…。，、；：！？"'“”‘’„«»()\[\]{}<>–—&+=%$€£°@-]+""")
_GLUE = re.compile(r"[\w$€£#@/&=+%°-]", re.ASCII)


@dataclass(frozen=True)
class LineSegment:
    """A text without its marks.

    Attributes:
        text: the remaining text.
        nodes: the marks, in order of appearance.
        escaped: whether the source used HTML entities; ``text`` does not.
    """

    text: str
    nodes: Sequence[Node]
    escaped: bool


@dataclass(frozen=True)
class MarkedText:
    """A line with marks in it.

    Attributes:
        stretches: the line from left to right: segments to translate, and strings that stay unchanged.
        notes: the notes of its translations.
    """

    stretches: Sequence[LineSegment | str]
    notes: tuple[str, ...] = ()

    @property
    def segments(self) -> list[LineSegment]:
        """The segments alone."""
        return [stretch for stretch in self.stretches if isinstance(stretch, LineSegment)]

    @property
    def texts(self) -> list[str]:
        """The texts of the segments, without their marks."""
        return [segment.text for segment in self.segments]

    def put_back(self, translations: Sequence[Translation], links: Sequence[Links]) -> Translation:
        """Return the translation of the line, with every mark of the line in it.

        Args:
            translations: one of each of :attr:`texts`.
            links: the word links of each translation; a segment without marks needs none.
        """
        of_segments = zip(translations, links, strict=True)
        text = "".join(
            stretch if isinstance(stretch, str) else _put_back(stretch, *next(of_segments))
            for stretch in self.stretches
        )
        return replace(joined(translations, ""), text=text).noted(*self.notes)


def _put_back(segment: LineSegment, translation: Translation, links: Links) -> str:
    src_words, tgt_words = (atoms_of(text, word_spans(text)) for text in (segment.text, translation.text))
    src, tgt, links = split_copies(src_words, tgt_words, links, _places(segment.nodes))
    destinations = Destinations(src, tgt, links)
    return Projection(tgt, translation.text, destinations, escaped=segment.escaped).render(segment.nodes)


def _places(nodes: Sequence[Node]) -> Iterator[int]:
    for node in nodes:
        yield from (node.start, node.end, *_places(node.children))


def take_out(
    text: str, src_lang: str = UNDETERMINED, is_known: Callable[[str], bool] = lambda character: True
) -> MarkedText | None:
    """Take the marks out of a line; None if it has none.

    Tags, Markdown, placeholders, URLs, e-mail addresses, emoji, words of which no letter ``is_known`` and what is too
    long for a word are marks.
    Paragraphs, list items, cells and the like are translated separately; all other marks stand inside of a sentence,
    which is translated as a whole. A space takes the place of tabs and line breaks.
    """
    text = on_one_line(text)
    unknown = set(unknown_words(text, is_known))
    marks = without_overlaps([*scan(text, src_lang), *unknown])
    if long := long_words(text, marks):
        marks = without_overlaps([*marks, *long])
    if not marks and unescape(text) == text:
        return None
    words = [text[mark.start : mark.end] for mark in marks if mark in unknown]
    notes = [f"{FLAG}unknown words: {', '.join(words)}"] if words else []
    notes += [f"{FLAG}copied what is too long for a word"] if long else []
    return MarkedText(list(_stretches(text, marks)), tuple(notes))


def _stretches(text: str, marks: Sequence[Mark]) -> Iterator[LineSegment | str]:
    """Split the line at its breaks, and trim the spaces beside them."""
    start, inside = 0, list[Mark]()
    for mark in [*marks, Mark(len(text), len(text), Role.BREAK)]:
        if mark.role is not Role.BREAK:
            inside.append(mark)
            continue
        stretch = text[start : mark.start]
        left, right = start + len(stretch) - len(stretch.lstrip()), start + len(stretch.rstrip())
        segment = make_segment(text[left:right], [mark.moved(-left) for mark in inside])
        if any(character.isalpha() or (character.isalnum() and not inside) for character in segment.text):
            yield from (text[start:left], segment, text[right : mark.end])
        else:
            yield text[start : mark.end]
        start, inside = mark.end, []


def make_segment(text: str, marks: Sequence[Mark]) -> LineSegment:
    """Take ``marks``, in order and none of them a BREAK, out of ``text``."""
    builder = _Builder(escaped=unescape(text) != text)  # not of "AT&T;": no entity has this name
    position, is_after_single = 0, False
    marks = _with_signs(text, _without_lone_tags(text, marks))
    for mark, limit in zip(marks, [*(mark.start for mark in marks[1:]), len(text)], strict=False):
        start, end = _with_glue(text, mark, position, limit)
        builder.add_text(text[position:start])
        match mark.role:
            case Role.OPEN:
                builder.open(text[start:end], mark.name)
            case Role.CLOSE:
                builder.close(text[start:end], mark.name)
            case _:
                builder.add_single(text[start:end], glued=is_after_single and start == position)
        position, is_after_single = end, mark.role not in (Role.OPEN, Role.CLOSE)
    builder.add_text(text[position:])
    return builder.segment()


def _without_lone_tags(text: str, marks: Sequence[Mark]) -> list[Mark]:
    """Read tags that stand apart and are never closed as words, as in ``cp <source> <target>``."""
    opened = defaultdict[str, list[int]](list)
    for number, mark in enumerate(marks):
        if mark.role is Role.OPEN:
            opened[mark.name].append(number)
        elif mark.role is Role.CLOSE and opened[mark.name]:
            opened[mark.name].pop()
    found = list(marks)
    for number in chain.from_iterable(opened.values()):
        mark = marks[number]
        before, after = text[mark.start - 1 : mark.start], text[mark.end : mark.end + 1]
        if not before.isalnum() and (not after.strip() or after in CLOSING_PUNCTUATION):
            found[number] = replace(mark, role=Role.WORD)
    return found


def _with_signs(text: str, marks: Sequence[Mark]) -> list[Mark]:
    """Join pairs around signs that models drop, as in ``[→](next.html)``, to single marks."""
    found: list[Mark] = []
    for mark in marks:
        before = found[-1] if found else mark
        is_pair = (before.role, mark.role) == (Role.OPEN, Role.CLOSE) and before.name == mark.name
        if is_pair and _SIGNS.fullmatch(unescape(text[before.end : mark.start]).strip()):
            found[-1] = Mark(before.start, mark.end, Role.POINT)
        else:
            found.append(mark)
    return found


def _with_glue(text: str, mark: Mark, least: int, most: int) -> tuple[int, int]:
    """Extend a WORD by the brackets and quotes around it and by letters glued to it, as in ``$%d`` and ``#{n}``.

    Otherwise the model would be left with an empty pair of brackets or a fragment of a word.
    """
    start, end = mark.start, mark.end
    if mark.role is not Role.WORD:
        return start, end
    while True:
        before, after = _sign_before(text, start, least), _sign_after(text, end, most)
        left, right = unescape(before), unescape(after)
        following = end + len(after)
        if _BRACKETS.get(left) == right:
            start, end = start - len(before), following
        elif _GLUE.match(left):
            start -= len(before)
        elif _GLUE.match(right):
            end = following
        elif right in "'’" and following < most and text[following].isalpha():
            end = following + 1
        else:
            return start, end


def _sign_before(text: str, start: int, least: int) -> str:
    """Return the character or entity that ends at ``start``; a space if there is none."""
    entity = ENTITY.fullmatch(text, max(text.rfind("&", least, start), least), start)
    return entity[0] if entity else text[max(start - 1, least) : start] or " "


def _sign_after(text: str, end: int, most: int) -> str:
    """Return the character or entity that starts at ``end``; a space if there is none."""
    entity = ENTITY.match(text, end, most)
    return entity[0] if entity else text[end : min(end + 1, most)] or " "


def _is_letter_of_word(character: str) -> bool:
    """Tell whether spaces separate a character from other words, unlike a Chinese one."""
    return character.isalnum() and len(word_spans(f"a{character}")) == 1


class _Builder:
    """Puts a segment together from left to right.

    Marks become nodes of a tree, and only text adds to the text of the segment. A single mark leaves a gap there: what
    follows decides whether the space before the gap is dropped, or one is needed in it.
    """

    def __init__(self, *, escaped: bool) -> None:
        self._escaped = escaped
        self._text = ""
        self._has_gap = False  # whether a single mark came after the text
        self._open = [_Pair("", Node("", "", 0, 0))]  # the whole segment, and the open pairs, the innermost last
        self._n_unopened = 0  # pairs that begin before the segment
        self._unfollowed: Node | None = None  # the last single mark or closed pair, until text follows it

    def add_text(self, text: str) -> None:
        text = on_one_line(unescape(text)) if self._escaped else text
        if self._unfollowed is not None and text:
            self._unfollowed.is_glued = self._is_apart(self._unfollowed.end) and _is_letter_of_word(text[0])
            self._unfollowed = None
        if not self._text or self._text[-1].isspace():
            text = text.lstrip()
        if not text:
            return
        if self._has_gap:
            self._close_gap(text)
        self._text += text

    def _close_gap(self, following: str) -> None:
        """Drop the space before a gap, or add one, as the text that follows needs it."""
        self._has_gap = False
        if following.startswith(CLOSING_PUNCTUATION) and self._text.rstrip()[-1:].isalnum():
            self._drop_trailing_space()
        elif self._text and not self._text[-1].isspace() and _GLUE.match(following):
            self._text += " "

    def add_single(self, written: str, *, glued: bool = False) -> None:
        """Add a single mark, which may be ``glued`` to the one before."""
        place = len(self._text)
        node = Node(written, None, place, place, self._is_apart(place) and not glued)
        self._open[-1].node.children.append(node)
        self._unfollowed, self._has_gap = node, True

    def open(self, written: str, name: str) -> None:
        """Begin a pair; a single mark takes its place if it would be too deep inside others."""
        if len(self._open) > _DEEPEST:
            self.add_single(written)
            return
        place = len(self._text)
        node = Node(written, "", place, place, self._is_apart(place))
        self._open[-1].node.children.append(node)
        self._open.append(_Pair(name, node))

    def close(self, written: str, name: str) -> None:
        """End the innermost pair of this name and those inside it; if there is none, it begins before the segment."""
        if all(pair.name != name for pair in self._open[1:]):
            self._close_unopened(written)
            return
        while (pair := self._open.pop()).name != name:
            pair.node.end = len(self._text)
        pair.node.end, pair.node.closing = len(self._text), written
        self._unfollowed = pair.node

    def _close_unopened(self, written: str) -> None:
        """End a pair that begins before the segment: it goes around all that the innermost open pair has so far."""
        if self._n_unopened == _DEEPEST:
            self.add_single(written)
            return
        self._n_unopened += 1
        outer = self._open[-1].node
        is_apart = self._text[-1:] in ("", " ")
        outer.children = [Node("", written, outer.start, len(self._text), is_apart, children=outer.children)]

    def segment(self) -> LineSegment:
        """Return the segment; open pairs end after it."""
        self._drop_trailing_space()
        for pair in self._open:
            pair.node.end = len(self._text)
        return LineSegment(self._text, self._open[0].node.children, self._escaped)

    def _is_apart(self, place: int) -> bool:
        """Tell whether a mark is not glued to a word before it of a language with spaces."""
        before = self._text[max(place - 1, 0) : place]
        is_chinese = len(word_spans(f"a{before}")) == 2  # which has no spaces to be missing
        return before in ("", " ", *NO_SPACE_AFTER) or is_chinese

    def _drop_trailing_space(self) -> None:
        self._text = self._text.rstrip()
        _clamp(self._open[0].node.children, len(self._text))


class _Pair(NamedTuple):
    """An open pair."""

    name: str
    node: Node


def _clamp(nodes: Sequence[Node], most: int) -> None:
    """Clamp the ends of nodes to ``most``; nodes are in order, so only the last ones can exceed it."""
    for place, node in enumerate(reversed(nodes)):
        if place and node.end <= most:  # the last node may still be open, with children
            return
        node.start, node.end = min(node.start, most), min(node.end, most)
        _clamp(node.children, most)
