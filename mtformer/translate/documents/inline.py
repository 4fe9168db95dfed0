"""The content of a block: text and marks, the units to translate, and how translations are put back.

The tags of a unit are numbered: ``Press <1>the red button</1>.<2/>``. Each stands for the marks at its place, whatever
their form in the file. Characters that would be read as tags or entities are escaped.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from html import escape
from itertools import accumulate

from mtformer.text.tokenizer.vocabulary import on_one_line
from mtformer.translate.markup.scanner import unescape

Span = tuple[int, int]  # of the source of a document, in characters
Raw = tuple["str | Span", ...]  # what is written: text as it is, or a stretch of the source with the edits inside


class Kind(Enum):
    """The effect of a mark.

    Attributes:
        OPEN: begins a stretch that the CLOSE of its pair ends.
        CLOSE: ends it.
        POINT: stands inside a sentence, such as an image.
        LINE: breaks a line; it is a BREAK where a sentence ends, or beside another, and a POINT elsewhere.
        BREAK: separates sentences.
    """

    OPEN = "open"
    CLOSE = "close"
    POINT = "point"
    LINE = "line"
    BREAK = "break"


@dataclass(frozen=True, slots=True)
class Text:
    """A stretch of text.

    Attributes:
        text: its characters, without the file's escapes.
        raw: its source; empty if the writer of the block produces it.
        format: its format in the source, for writers that use formats.
    """

    text: str
    raw: Raw = ()
    format: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """A stretch of the source that is not text.

    Attributes:
        kind: its effect.
        raw: its source.
        pair: a number shared by an OPEN and its CLOSE, and by points that must stay in order.
        format: the format of the text inside the pair, for writers that use formats; None leaves it unchanged.
        has_text: whether a POINT stands for text, such as a code span.
        name: a name shared by two empty elements that belong together.
    """

    kind: Kind
    raw: Raw = ()
    pair: int = 0
    format: str | None = None
    has_text: bool = False
    name: str = ""


Token = Text | Mark


@dataclass(frozen=True)
class Writer:
    """Writes the text of blocks in the format of the file.

    Attributes:
        line_break: the source of a line break.
        text: returns the source of a text with a format; None is the default format.
    """

    line_break: str = "\n"
    text: Callable[[str, str | None], str] = lambda text, format: text


@dataclass(frozen=True, slots=True)
class Punctuation:
    """Punctuation between marks: it belongs to its sentence without a tag, and gets its marks back afterwards.

    Attributes:
        text: the punctuation.
        number: how often the unit has it before.
        is_last: whether it ends the unit.
        opening: the marks before it.
        closing: the marks after it.
    """

    text: str
    number: int
    is_last: bool
    opening: Sequence[Token]
    closing: Sequence[Token]

    def marked(self, tokens: list[Token]) -> list[Token]:
        """Return a translation with the marks around this punctuation, or at the end if it lacks it."""
        found = [
            (place, token.text, *match.span())
            for place, token in enumerate(tokens)
            if isinstance(token, Text)
            for match in re.finditer(re.escape(self.text), token.text)
        ]
        last = tokens[-1] if tokens else None
        if self.is_last and isinstance(last, Text) and (end := _FINAL_PUNCTUATION.search(last.text)):
            found = [(len(tokens) - 1, last.text, *end.span())]
        if not found:
            return [*tokens, *self.opening, *self.closing]
        place, text, start, stop = found[min(self.number, len(found) - 1)]
        parts = [Text(text[:start]), *self.opening, Text(text[start:stop]), *self.closing, Text(text[stop:])]
        return [*tokens[:place], *(part for part in parts if part != Text("")), *tokens[place + 1 :]]


@dataclass(frozen=True, slots=True)
class BlockUnit:
    """A unit, and the tokens of its block that it stands for.

    Attributes:
        start: the index of the first token.
        stop: the index after the last token.
        text: the text to translate.
        marks: the marks that each tag stands for; None if the text has no numbered tags and no escapes.
        finish: changes the translation before it is written, for example by wrapping it.
        is_escaped: whether the text between the numbered tags is escaped.
        punctuation: the punctuation that has marks of its own.
    """

    start: int
    stop: int
    text: str
    marks: dict[str, Sequence[Mark]] | None
    finish: Callable[[str], str] | None = None
    is_escaped: bool = True
    punctuation: Sequence["Punctuation"] = ()

    def tokens(self, translation: str) -> list[Token]:
        """Return the translation as tokens, with all marks of the unit in it."""
        if self.finish is not None:
            translation = self.finish(translation)
        if self.marks is None:
            return [Text(translation)]
        tokens = list(_without_spaces_beside_lines(list(self._parsed(translation, self.marks))))
        wanted = [mark for of_tag in self.marks.values() for mark in of_tag]
        if not _is_whole(tokens, wanted):  # damaged tags: the text comes first, and then all marks
            tokens = [*(token for token in tokens if isinstance(token, Text)), *wanted]
        for each in reversed(self.punctuation):
            tokens = each.marked(tokens)
        return tokens

    def _parsed(self, translation: str, marks: dict[str, Sequence[Mark]]) -> Iterator[Token]:
        for part in _TAG.split(translation):
            if part in marks:
                yield from marks[part]
            elif part:
                yield Text(unescape(part) if self.is_escaped else part)


_SENTENCE_END = re.compile(r"[.!?:;…。！？：；]['\"”’»)\]]*$")
_FINAL_PUNCTUATION = re.compile(r"[^\w\s]+(?=\s*$)")
_TAG = re.compile(r"(</?\d+>|<\d+/>)")
_MOST_TOKENS, _MOST_PUNCTUATION = 5, 50  # of punctuation with a mark of its own, and of a unit
_SINGLE = (Kind.POINT, Kind.LINE)
_NO_BREAK_SPACE = "\u00a0"


def _without_spaces_beside_lines(tokens: Sequence[Token]) -> Iterator[Token]:
    for place, token in enumerate(tokens):
        before, after = tokens[place - 1] if place else None, tokens[place + 1] if place + 1 < len(tokens) else None
        if isinstance(token, Text):
            text = token.text.lstrip() if isinstance(before, Mark) and before.kind is Kind.LINE else token.text
            text = text.rstrip() if isinstance(after, Mark) and after.kind is Kind.LINE else text
            yield Text(text)
        else:
            yield token


def _is_whole(tokens: Sequence[Token], wanted: Sequence[Mark]) -> bool:
    """Tell whether each wanted mark occurs once, pairs are nested, and the points of a pair are in order.

    What begins or ends outside of the unit is in order, too, and in no pair.
    """
    found = [token for token in tokens if isinstance(token, Mark)]
    if sorted(map(id, found)) != sorted(map(id, wanted)) or _points(found) != _points(wanted):
        return False
    return _left_open(found) == _left_open(wanted)


def _left_open(marks: Sequence[Mark]) -> list[Mark]:
    """Return the opening and closing marks that remain when nested pairs are removed."""
    left: list[Mark] = []
    for mark in marks:
        if mark.kind is Kind.CLOSE and left and (left[-1].kind, left[-1].pair) == (Kind.OPEN, mark.pair):
            left.pop()
        elif mark.kind in (Kind.OPEN, Kind.CLOSE):
            left.append(mark)
    return left


def _points(marks: Sequence[Mark]) -> dict[int, int]:
    """Return the first point of each pair of points, by its identity."""
    return {mark.pair: id(mark) for mark in reversed(marks) if mark.kind is Kind.POINT and mark.pair}


def tagged(text: str) -> str:
    """Escape text for a unit with tags."""
    return on_one_line(escape(text, quote=False)).replace(_NO_BREAK_SPACE, "&nbsp;")


def units_of(tokens: Sequence[Token]) -> Iterator[BlockUnit]:
    """Yield the units of a block, without the spaces and marks around them, which stay in place.

    Spaces at the start and at the end of a stretch of text are tokens of their own; see :func:`texts`.
    """
    start = 0
    for stop in [*_breaks(tokens), len(tokens)]:
        if _has_letters(tokens[start:stop]):
            yield _unit(tokens, *_trimmed(tokens, start, stop))
        start = stop + 1


def texts(text: str) -> Iterator[Text]:
    """Yield a text, with the spaces before and after it as separate tokens."""
    start, inside = len(text) - len(text.lstrip()), text.strip()
    parts = (text[:start], inside, text[start + len(inside) :])
    return (Text(part) for part in parts if part)


def _breaks(tokens: Sequence[Token]) -> list[int]:
    """Return the places of the marks that separate sentences."""
    breaks: list[int] = []
    between: list[tuple[int, Kind]] = []  # the marks since the last text
    before = ""
    for place, token in enumerate([*tokens, Text("")]):
        if isinstance(token, Mark):
            between.append((place, token.kind))
        elif token.text.strip() or place == len(tokens):
            n_lines = sum(kind is Kind.LINE for _, kind in between)  # an empty line ends a paragraph
            is_end = n_lines > 1 or ends_sentence(before, token.text)
            separating = (Kind.LINE, Kind.BREAK) if is_end else (Kind.BREAK,)
            breaks += [at for at, kind in between if kind in separating]
            between, before = [], token.text
    return breaks


def ends_sentence(line: str, following: str) -> bool:
    """Tell whether a sentence ends with a line instead of continuing in the ``following`` one."""
    line, following = line.rstrip(), following.lstrip()
    if not line or not following or _SENTENCE_END.search(line):
        return True
    return not following[0].islower() and not line.split()[-1][0].islower() and line[-1] not in ",，、"


def _has_letters(tokens: Sequence[Token]) -> bool:
    return any(isinstance(token, Text) and any(map(str.isalpha, token.text)) for token in tokens)


def _trimmed(tokens: Sequence[Token], start: int, stop: int) -> Span:
    """Trim tokens at the ends of a stretch that are not part of its sentences."""
    mates = _mates(tokens, start, stop)
    n_texts = [0, *accumulate(map(_has_text, tokens[start:stop]))]  # before each token
    first, last = start, stop - 1
    while True:
        after, before = mates.get(first, first), mates.get(last, last)
        if after == last and first < last:
            first, last = first + 1, last - 1
        elif n_texts[max(after, first) + 1 - start] == n_texts[first - start]:
            first = max(after, first) + 1
        elif n_texts[last + 1 - start] == n_texts[min(before, last) - start]:
            last = min(before, last) - 1
        else:
            return first, last + 1


def _has_text(token: Token) -> bool:
    return bool(token.text.strip()) if isinstance(token, Text) else token.has_text


def _mates(tokens: Sequence[Token], start: int, stop: int) -> dict[int, int]:
    """Map the index of each mark of a pair to the index of its partner."""
    mates: dict[int, int] = {}
    opened: dict[int, int] = {}
    for place in range(start, stop):
        token = tokens[place]
        if isinstance(token, Mark) and token.kind is Kind.OPEN:
            opened[token.pair] = place
        elif isinstance(token, Mark) and token.kind is Kind.CLOSE and token.pair in opened:
            mates[place] = opened.pop(token.pair)
            mates[mates[place]] = place
    return mates


def _unit(tokens: Sequence[Token], start: int, stop: int) -> BlockUnit:
    """Return the unit of a stretch; adjacent marks share a tag."""
    mates = _mates(tokens, start, stop)
    text, marks, punctuation = "", dict[str, Sequence[Mark]](), list[Punctuation]()
    tags = dict[int, tuple[str, int]]()  # by the first of the marks that share it: a tag, and how many these are
    place, number = start, 0
    while place < stop:
        token, mate = tokens[place], mates.get(place, place)
        if isinstance(token, Text):
            text += tagged(token.text)
            place += 1
        elif len(punctuation) < _MOST_PUNCTUATION and (inside := _punctuation_between(tokens, place, mate)):
            marked = inside.strip()
            number_before = text.count(tagged(marked))
            pair = (tokens[place : place + 1], tokens[mate : mate + 1])
            punctuation.append(Punctuation(marked, number_before, mate == stop - 1, *pair))
            text += tagged(inside)
            place = mate + 1
        else:
            if place not in tags:
                number += 1
                size = _n_alike(tokens, place, stop, mates)
                tags[place] = (_tag(token.kind, number), size)
                if mate > place:
                    tags[mate - size + 1] = (_tag(Kind.CLOSE, number), size)
            tag, size = tags[place]
            marks[tag] = [mark for mark in tokens[place : place + size] if isinstance(mark, Mark)]
            text += tag
            place += size
    return BlockUnit(start, stop, text, marks, punctuation=punctuation)


def _punctuation_between(tokens: Sequence[Token], place: int, mate: int) -> str:
    """Return the text between two marks if it is punctuation, or else an empty string."""
    if mate - place >= _MOST_TOKENS:
        return ""
    inside = "".join(token.text if isinstance(token, Text) else "a" for token in tokens[place + 1 : mate])
    return inside if inside.strip() and not any(map(str.isalnum, inside)) else ""


def _tag(kind: Kind, number: int) -> str:
    if kind in _SINGLE:
        return f"<{number}/>"
    return f"</{number}>" if kind is Kind.CLOSE else f"<{number}>"


def _n_alike(tokens: Sequence[Token], place: int, stop: int, mates: dict[int, int]) -> int:
    """Return how many marks from ``place`` on share a tag: points, or directly nested pairs."""
    first, size = tokens[place], 1
    while place + size < stop and isinstance(first, Mark):
        token = tokens[place + size]
        if not isinstance(token, Mark) or token.kind is not first.kind:
            break
        if place in mates and mates.get(place + size) != mates[place] - size:
            break
        if first.kind not in _SINGLE and place not in mates:
            break
        size += 1
    return size
