"""Flowing text: XML and HTML whose elements stand inside of sentences or around them."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from html import escape

from mtformer.text.words import CHARACTER_WORDS
from mtformer.translate.documents.inline import Kind, Mark, Text, Token, Writer
from mtformer.translate.documents.markup_tokens import MarkupSource, TokenKind
from mtformer.translate.documents.source import Block


class Role(Enum):
    """The role of an element.

    Attributes:
        BLOCK: separates sentences.
        TEXT_BLOCK: does so, and contains text.
        INLINE: stands inside of sentences, with text inside of it.
        POINT: stands inside of sentences, without text that is translated.
        CODE: does so, with text that stays as it is.
        NESTED: a POINT with blocks inside.
        LINE_BREAK: breaks a line, which may end a sentence.
        BREAK: separates sentences, such as a tab.
        HIDDEN: stays as it is, with all that is inside, and separates sentences.
    """

    BLOCK = "block"
    TEXT_BLOCK = "text block"
    INLINE = "inline"
    POINT = "point"
    CODE = "code"
    NESTED = "nested"
    LINE_BREAK = "line break"
    BREAK = "break"
    HIDDEN = "hidden"


_SEPARATING = (Role.BLOCK, Role.TEXT_BLOCK, Role.HIDDEN)
_OPAQUE = (Role.POINT, Role.CODE, Role.NESTED, Role.LINE_BREAK, Role.BREAK, Role.HIDDEN)
_KINDS = {Role.LINE_BREAK: Kind.LINE, Role.BREAK: Kind.BREAK}
_SPACE = " \t\r\n\f"
_SPACES = re.compile(f"[{_SPACE}]+")
_WRAPPED = re.compile(rf"(?<=[{CHARACTER_WORDS}])\s*\n\s*(?=[{CHARACTER_WORDS}])")  # no space is meant there


@dataclass(frozen=True)
class FlowWriter:
    """Writes text between tags.

    Attributes:
        line_break: what breaks a line.
        entities: names of characters that are better written as entities.
    """

    line_break: str
    entities: Mapping[str, str] = field(default_factory=dict)

    def text(self, text: str, format: str | None) -> str:
        """Return ``text`` with the characters escaped that would be read as markup."""
        text = escape(text, quote=False)
        for character, entity in self.entities.items():
            text = text.replace(character, entity)
        return text


@dataclass
class Flow:
    """Finds the blocks of flowing text.

    Attributes:
        source: the text.
        role: tells the role of an element, given the number of its tag.
        writer: writes text between tags.
        is_text: whether there is text outside of a TEXT_BLOCK.
    """

    source: MarkupSource
    role: Callable[[int], Role]
    writer: Writer
    is_text: bool = True

    def blocks(self, start: int = 0, stop: int | None = None) -> Iterator[Block]:
        """Yield the blocks among some of the source's tokens."""
        stop = len(self.source.tokens) if stop is None else stop
        in_text, first, number = [self.is_text], start, start
        while number < stop:
            kind, _, _, _ = self.source.tokens[number]
            is_tag = kind in (TokenKind.START, TokenKind.END, TokenKind.EMPTY)
            role = self.role(number) if is_tag else Role.POINT
            is_skipped = role is Role.HIDDEN or (role in _OPAQUE and in_text[-1])
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
        """Yield the block of tokens without separating ones among them, and those nested in it."""
        if start >= stop:
            return
        tokens: list[Token] = []
        nested: list[tuple[int, int]] = []
        pairs: dict[int, int] = {}
        number = start
        while number < stop:
            kind, _, begin, _ = self.source.tokens[number]
            if kind is TokenKind.TEXT:
                tokens += self._texts(number)
                number += 1
                continue
            role = self.role(number) if kind is not TokenKind.OTHER else Role.POINT
            last = self.source.end(number) if role in _OPAQUE else number
            raw = ((begin, self.source.tokens[last].end),)
            if role is Role.INLINE and number in self.source.ends:
                pairs[self.source.end(number)] = number
                tokens.append(Mark(Kind.OPEN, raw, number))
            elif role is Role.INLINE and kind is TokenKind.END and number in self._closing:
                tokens.append(Mark(Kind.CLOSE, raw, pairs.get(number, -1)))
            else:
                tokens.append(Mark(_KINDS.get(role, Kind.POINT), raw, has_text=role is Role.CODE))
            if role is Role.NESTED:
                nested.append((number + 1, last))
            number = last + 1
        span = (self.source.tokens[start].start, self.source.tokens[stop - 1].end)
        if block := Block.of(span, tokens, self.writer):
            yield block
        for inside in nested:
            yield from self.blocks(*inside)

    def _texts(self, number: int) -> Iterator[Text]:
        _, _, start, end = self.source.tokens[number]
        written = self.source.text[start:end]
        left, right = start + len(written) - len(written.lstrip(_SPACE)), start + len(written.rstrip(_SPACE))
        if left >= right:
            yield Text(" ", ((start, end),))
            return
        text = _SPACES.sub(" ", _WRAPPED.sub("", self.source.characters(number).strip(_SPACE)))
        if start < left:
            yield Text(" ", ((start, left),))
        yield Text(text, ((left, right),) if text == self.source.text[left:right] else ())
        if right < end:
            yield Text(" ", ((right, end),))

    @cached_property
    def _closing(self) -> frozenset[int]:
        return frozenset(self.source.ends.values())
