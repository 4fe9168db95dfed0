"""The blocks of a text: translations replace their spans, and all other text stays unchanged."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from mtformer.translate.documents.inline import BlockUnit, Kind, Raw, Span, Text, Token, Writer, units_of

_TAG = re.compile(r"<[^<>]+>")
_ID = re.compile(r"""\s(?:xml:)?id\s*=\s*(?:"[^"]*"|'[^']*')""")
_WORD_ID = re.compile(r'(?<=\sw:id=")\d{1,8}(?=")')
_SECOND = 1_000_000_000  # more than the ids of any document, and less than Word takes


@dataclass(frozen=True)
class Block:
    """A stretch of a source with text in it.

    Attributes:
        span: the span that is replaced if a unit of the block changes; its start also orders the blocks.
        tokens: the text and the marks, in order.
        units: the units.
        writer: writes text in the format of the file.
        finish: changes the whole new text before it is written, for example by putting quotes around it.
        is_kept: whether a block whose translation equals its source stays unchanged.
    """

    span: Span
    tokens: Sequence[Token]
    units: Sequence[BlockUnit]
    writer: Writer
    finish: Callable[[str], str] = str
    is_kept: bool = True

    @classmethod
    def of(cls, span: Span, tokens: Sequence[Token], writer: Writer) -> "Iterator[Block]":
        """Yield the block of these tokens, if it has units."""
        if found := list(units_of(tokens)):
            yield cls(span, tokens, found, writer)

    def written(self, translations: Sequence[str], render: Callable[[Raw], str], *, bilingual: bool) -> str | None:
        """Return the block with ``translations`` of its units; None if it stays unchanged.

        Args:
            translations: one of each unit.
            render: returns the source of a mark.
            bilingual: whether the translation follows the source, instead of replacing it.
        """
        if self.is_kept and list(translations) == [unit.text for unit in self.units]:
            return None
        tokens: list[Token] = []
        position = 0
        for unit, translation in zip(self.units, translations, strict=True):
            tokens += [*self.tokens[position : unit.start], *unit.tokens(translation)]
            position = unit.stop
        tokens += self.tokens[position:]
        translated = self._written(_once(tokens), _again(render)) if bilingual else self._written(tokens, render)
        if bilingual:
            translated = self._written(self.tokens, render) + self.writer.line_break + translated
        return self.finish(translated)

    def _written(self, tokens: Iterable[Token], render: Callable[[Raw], str]) -> str:
        formats: list[str | None] = [None]
        parts = []
        for token in tokens:
            if isinstance(token, Text):
                parts.append(render(token.raw) if token.raw else self.writer.text(token.text, formats[-1]))
                continue
            parts.append(render(token.raw))
            if token.format is not None and token.kind is Kind.OPEN:
                formats.append(token.format)
            elif token.format is not None and len(formats) > 1:
                formats.pop()
        return "".join(parts)


def _once(tokens: Iterable[Token]) -> Iterator[Token]:
    """Leave out marks that must not occur twice in a file, such as images and notes."""
    for token in tokens:
        if isinstance(token, Text) or token.kind is not Kind.POINT or token.has_text:
            yield token


def _again(render: Callable[[Raw], str]) -> Callable[[Raw], str]:
    """Return a function that renders marks a second time, without ids, or with new numbers where Word needs them."""

    def renumbered(tag: re.Match[str]) -> str:
        return _WORD_ID.sub(lambda id: str(_SECOND + int(id[0])), _ID.sub("", tag[0]))

    return lambda raw: _TAG.sub(renumbered, render(raw))


def rendered(
    text: str,
    blocks: Iterable[Block],
    edits: Iterable[tuple[Span, str]],
    translations: Iterable[str],
    *,
    bilingual: bool,
) -> str:
    """Return a text with its edits and its translations; edits inside the marks of a block are written with the block.

    Args:
        text: the text.
        blocks: its blocks, in order.
        edits: other changes, by their spans.
        translations: one for each unit of the blocks.
        bilingual: whether a translation follows its source, instead of replacing it.
    """
    remaining = iter(translations)
    changes: list[tuple[Span, Block | str, list[str]]] = [(span, new, []) for span, new in edits]
    changes += [(block.span, block, [next(remaining) for _ in block.units]) for block in blocks]
    changes.sort(key=lambda change: (change[0][0], -change[0][1]))
    starts = [span[0] for span, _, _ in changes]

    def stretch(start: int, stop: int, outer: int = -1) -> str:
        """Return a stretch with the changes inside it whose numbers are greater than ``outer``."""
        parts, position = [], start
        for number in range(max(bisect_left(starts, start), outer + 1), len(changes)):
            (begin, end), new, of_units = changes[number]
            if begin >= stop and not begin == end == stop == len(text):
                break
            if begin < position or end > stop:
                continue  # written with another, or one that this stretch is a part of
            written = (
                new if isinstance(new, str) else new.written(of_units, partial(render, number), bilingual=bilingual)
            )
            if written is not None:
                parts += [text[position:begin], written]
                position = end
        return "".join([*parts, text[position:stop]])

    def render(number: int, raw: Raw) -> str:
        return "".join(part if isinstance(part, str) else stretch(*part, number) for part in raw)

    return stretch(0, len(text))
