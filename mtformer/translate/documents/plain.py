"""Text without markup of the format around it: messages, cells, captions. Tags in it are those of its author.

Lines that were wrapped are joined, as in a text document, and their translation is wrapped again.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mtformer.text.lines import Line
from mtformer.text.tokenizer.vocabulary import on_one_line
from mtformer.translate.documents.inline import Segment, Span, Text, texts
from mtformer.translate.documents.source import Block
from mtformer.translate.jobs.reading import Paragraph, paragraphs


@dataclass(frozen=True)
class PlainWriter:
    """Writes text as it is.

    Attributes:
        line_break: what breaks a line.
    """

    line_break: str = "\n"

    def text(self, text: str, format: str | None) -> str:
        """Return ``text``."""
        return text


def plain_block(
    span: Span, text: str, *, finish: Callable[[str], str] = str, is_kept: bool = True, joins: bool = True
) -> Block | None:
    """Return the block of a text; None if it has no letters.

    Args:
        span: what is replaced by the translation.
        text: the text, without the file's escapes.
        finish: escapes the translation.
        is_kept: whether the file stays as it is where the translation equals the text.
        joins: whether wrapped lines are joined.
    """
    tokens: list[Text] = []
    found: list[Segment] = []
    for stretch, paragraph in _paragraphs(text, joins=joins):
        if paragraph is not None:
            unit = on_one_line(paragraph.text)
            found.append(Segment(len(tokens), len(tokens) + 1, unit, None, paragraph.laid_out))
        tokens.append(Text(stretch))
    return Block(span, tokens, found, PlainWriter(), finish, is_kept) if found else None


def _paragraphs(text: str, *, joins: bool) -> Iterator[tuple[str, Paragraph | None]]:
    """Yield the parts of a text, and for each that has letters how it is laid out."""
    lines = text.split("\n")
    numbered = [Line(number, line) for number, line in enumerate(lines)]
    joined = list(paragraphs(numbered)) if joins and len(lines) > 1 else list(map(Paragraph.of_line, numbered))
    ends = [*(paragraph.number for paragraph in joined[1:]), len(lines)]
    for paragraph, end in zip(joined, ends, strict=True):
        stretch = "\n".join(lines[paragraph.number : end])
        if paragraph.number:
            yield "\n", None
        if not any(map(str.isalpha, stretch)):
            yield stretch, None
        elif paragraph.width:
            yield stretch, paragraph
        else:
            for part in texts(stretch):
                yield part.text, Paragraph(paragraph.number, part.text) if part.text.strip() else None
