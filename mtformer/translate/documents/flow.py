"""Flowing text: XML and HTML with inline and block elements."""

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from html import escape

from mtformer.text.marks import character_of
from mtformer.text.words import CHARACTER_WORDS
from mtformer.translate.documents.blocks import Block
from mtformer.translate.documents.inline import Kind, Mark, Raw, Span, Text, Token, Writer
from mtformer.translate.documents.markup_tokens import MarkupSource, TokenKind
from mtformer.translate.documents.paired_elements import paired, point
from mtformer.translate.markup.scanner import ENTITY, unescape


class Role(Enum):
    """The role of an element.

    Attributes:
        BLOCK: separates sentences.
        TEXT_BLOCK: separates sentences and contains text.
        INLINE: stands inside a sentence and contains text.
        POINT: stands inside a sentence, without text to translate.
        CODE: stands inside a sentence, with text that stays unchanged.
        READING: a POINT that belongs to the text before it in its element, such as the reading of Chinese characters.
        COMMENT: a POINT that stays unchanged with all of its content, outside of sentences too.
        NESTED: a POINT with blocks inside.
        LINE_BREAK: breaks a line, which may end a sentence.
        BREAK: separates sentences, such as a tab.
        SENTENCE: contains text that is translated separately, such as a segment of XLIFF.
        HIDDEN: stays unchanged with all of its content, and separates sentences.
    """

    BLOCK = "block"
    TEXT_BLOCK = "text block"
    INLINE = "inline"
    POINT = "point"
    CODE = "code"
    READING = "reading"
    COMMENT = "comment"
    NESTED = "nested"
    LINE_BREAK = "line break"
    BREAK = "break"
    SENTENCE = "sentence"
    HIDDEN = "hidden"


_SEPARATING = (Role.BLOCK, Role.TEXT_BLOCK, Role.HIDDEN)
_KEPT = (Role.COMMENT, Role.HIDDEN)
_OPAQUE = (*_KEPT, Role.POINT, Role.CODE, Role.READING, Role.NESTED, Role.LINE_BREAK, Role.BREAK)
_KINDS = {Role.LINE_BREAK: Kind.LINE, Role.BREAK: Kind.BREAK, Role.SENTENCE: Kind.BREAK}
_ENDS = {TokenKind.START: Kind.OPEN, TokenKind.END: Kind.CLOSE}
_SPACE = " \t\r\n\f\ufeff"
_SPACES = re.compile(f"[{_SPACE}]+")
_LINE_END = re.compile(r"\r?\n[ \t]*")
_WRAPPED = re.compile(rf"(?<=[{CHARACTER_WORDS}])[^\S\n]*+\n\s*+(?=[{CHARACTER_WORDS}])")  # no space is meant there


def between_tags(text: str, format: str | None = None) -> str:
    """Escape the characters of ``text`` that would be read as markup, for a :class:`.Writer`."""
    return escape(text, quote=False)


_AMPERSAND = re.compile("&[A-Z]{1,2};")  # of R&D; rather than an entity
_Stretch = tuple[int, int, Kind]
_ATTRIBUTE = Writer(" / ", lambda text, format: escape(text))


def attribute_block(source: MarkupSource, value: Span) -> Iterator[Block]:
    """Yield the block of an attribute whose ``value`` readers see, if it has text to translate."""
    stretches = _stretches(source.text, *value, [])
    tokens = [
        Mark(kind, ((start, end),), has_text=True) if kind else Text(unescape(source.text[start:end]))
        for start, end, kind in stretches
    ]
    return Block.of(value, tokens, _ATTRIBUTE)


def _stretches(text: str, start: int, end: int, found: list[_Stretch]) -> Iterator[tuple[int, int, Kind | None]]:
    """Yield the stretches of a text, and the kinds of those that stay: the ones ``found``, and unknown entities."""
    entities = (match for match in ENTITY.finditer(text, start, end) if not _AMPERSAND.fullmatch(match[0]))
    unknown = (match for match in entities if character_of(match[0]) == match[0])
    position = start
    for begin, stop, kind in sorted([*found, *((*match.span(), Kind.POINT) for match in unknown)]):
        if position < begin:
            yield position, begin, None
        yield begin, stop, kind
        position = stop
    if position < end:
        yield position, end, None


def with_line_breaks(source: MarkupSource, blocks: Iterable[Block], line_breaks: Mapping[str, str]) -> Iterator[Block]:
    """Yield blocks; in elements without tags inside, whose names have ``line_breaks``, these stand for line breaks."""
    tags = (token for token in source.tokens if token.kind is TokenKind.START and token.name in line_breaks)
    writers = {token.end: Writer(line_breaks[token.name], between_tags) for token in tags}
    return (replace(block, writer=writers.get(block.span[0], block.writer)) for block in blocks)


@dataclass
class Flow:
    """Finds the blocks of flowing text.

    Attributes:
        source: the text.
        role: returns the role of an element, given the index of its tag.
        writer: writes text between tags.
        is_text: whether there is text outside of a TEXT_BLOCK.
        joins: whether pairs of empty elements go around words; see :func:`.paired`.
        lines: the indices of texts whose line ends are significant.
        syntax: the stretches of texts that are none and separate sentences, by the indices of these texts.
    """

    source: MarkupSource
    role: Callable[[int], Role]
    writer: Writer
    is_text: bool = True
    joins: bool = True
    lines: Container[int] = frozenset()
    syntax: Mapping[int, Sequence[Span]] = field(default_factory=dict)

    def blocks(self, start: int = 0, stop: int | None = None) -> Iterator[Block]:
        """Yield the blocks among some of the source's tokens."""
        stop = len(self.source.tokens) if stop is None else stop
        in_text, first, number = [self.is_text], start, start
        while number < stop:
            kind, _, _, _ = self.source.tokens[number]
            is_tag = kind in (TokenKind.START, TokenKind.END, TokenKind.EMPTY)
            role = self.role(number) if is_tag else Role.POINT
            is_skipped = role in _KEPT or (role in _OPAQUE and in_text[-1])
            following = (self.source.end(number) if is_skipped else number) + 1
            if role in _SEPARATING or not in_text[-1]:
                yield from self._stretch(first, number)
                if role in _SEPARATING and not self.is_text and kind is TokenKind.START and following == number + 1:
                    in_text.append(role is Role.TEXT_BLOCK)
                elif role in _SEPARATING and not self.is_text and kind is TokenKind.END:
                    in_text.pop()
                first = following
            number = following
        yield from self._stretch(first, stop)

    def _stretch(self, start: int, stop: int) -> Iterator[Block]:
        """Yield the block of tokens that contain no separator, and the blocks nested in it."""
        if start >= stop:
            return
        tokens: list[Token] = []
        nested: list[tuple[int, int]] = []
        readings: list[Token] = []
        number = start
        while number < stop:
            kind, _, begin, _ = self.source.tokens[number]
            if kind is TokenKind.TEXT:
                tokens += self._texts(number)
                number += 1
                continue
            role = self.role(number) if kind is not TokenKind.OTHER else Role.POINT
            last = self.source.end(number) if role in _OPAQUE else number
            raw: Raw = ((begin, self.source.tokens[last].end),)
            if role is Role.INLINE and number in self._openings:
                raw = _with_readings(tokens, readings, raw)
            tokens.append(self._mark(number, role, raw))
            if role is Role.READING:
                readings.append(tokens[-1])
            elif role is Role.NESTED:
                nested.append((number + 1, last))
            number = last + 1
        span = (self.source.tokens[start].start, self.source.tokens[stop - 1].end)
        yield from Block.of(span, paired(tokens, joins=self.joins), self.writer)
        for inside in nested:
            yield from self.blocks(*inside)

    def _mark(self, number: int, role: Role, raw: Raw) -> Mark:
        """Return the mark of a tag, or of a whole element that stays unchanged."""
        kind, name, _, _ = self.source.tokens[number]
        if role in _KINDS:
            return Mark(_KINDS[role], raw)
        if role is not Role.INLINE or kind not in _ENDS:
            return point(self.source, number, raw, has_text=role is Role.CODE)
        if number in self.source.ends:
            return Mark(Kind.OPEN, raw, number)
        if number in self._openings:
            return Mark(Kind.CLOSE, raw, self._openings[number])
        return Mark(_ENDS[kind], raw, number, name=name)  # of tags that overlap, as in <b>a<i>b</b>c</i>

    def _texts(self, number: int) -> Iterator[Token]:
        _, _, start, end = self.source.tokens[number]
        if self.source.text.startswith("<![", start):
            yield from self._text(start, end, self.source.characters(number))
            return
        found = [(*span, Kind.BREAK) for span in self.syntax.get(number, ())]
        if number in self.lines and not found:
            found = [(*match.span(), Kind.LINE) for match in _LINE_END.finditer(self.source.text, start, end)]
        for begin, stop, kind in _stretches(self.source.text, start, end, found):
            if kind is None:
                yield from self._text(begin, stop, unescape(self.source.text[begin:stop]))
            else:
                yield Mark(kind, ((begin, stop),), has_text=kind is Kind.POINT)

    def _text(self, start: int, end: int, characters: str) -> Iterator[Text]:
        """Yield a text, with the spaces before and after it as separate items."""
        written = self.source.text[start:end]
        left, right = start + len(written) - len(written.lstrip(_SPACE)), start + len(written.rstrip(_SPACE))
        if left >= right:
            yield Text(" ", ((start, end),))
            return
        text = _SPACES.sub(" ", _WRAPPED.sub("", characters.strip(_SPACE)))
        if start < left:
            yield Text(" ", ((start, left),))
        yield Text(text, ((left, right),) if text == self.source.text[left:right] else ())
        if right < end:
            yield Text(" ", ((right, end),))

    @cached_property
    def _openings(self) -> dict[int, int]:
        """The index of the START of each END."""
        return {end: start for start, end in self.source.ends.items()}


def _with_readings(tokens: list[Token], readings: list[Token], raw: Raw) -> Raw:
    """Remove the readings at the end of an element from the tokens, and return them with its end tag."""
    while tokens and readings and tokens[-1] is readings[-1]:
        readings.pop()
        raw = tokens.pop().raw + raw
    return raw
