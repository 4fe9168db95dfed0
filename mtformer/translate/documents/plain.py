"""Text without markup of its format: messages, cells, captions. Any tags in it are the author's.

Lines that were wrapped are joined, as in a text document, and their translation is wrapped again.
"""

import logging
import re
from collections.abc import Callable, Iterator, Sequence

from mtformer.support.errors import UserError
from mtformer.text.code_pages import OF_MANY_CHARACTERS, knows_code_page, read_in_code_page
from mtformer.text.lines import Line
from mtformer.text.tokenizer.vocabulary import on_one_line
from mtformer.translate.documents.blocks import Block
from mtformer.translate.documents.inline import BlockUnit, Span, Text, Writer, texts
from mtformer.translate.documents.markup_tokens import decoded
from mtformer.translate.documents.seam import DocumentSettings
from mtformer.translate.jobs.reading import Paragraph, paragraphs

log = logging.getLogger(__name__)

Parts = Sequence[tuple[str, bool]]  # of a text, and whether each is translated

# Control characters, and sequences of them that color a terminal: they stay, and a unit ends at them.
_CONTROL = re.compile("((?:\x1b\\[[0-9;?]*[A-Za-z]|[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff])+)")
_HALF = re.compile(r"[\ud800-\udfff]")  # of a character: such a text stays


def read_text(content: bytes, settings: DocumentSettings) -> tuple[str, str]:
    """Return the text of a file that declares no encoding, and the encoding to write.

    A text that is no UTF-8 is read in the encoding that Windows had for the source language before Unicode, with a
    warning; but not a text that is partly UTF-8, which is damaged.

    Raises:
        UserError: the text is in none of these encodings, or has a zero byte; the message names the line.
    """
    try:
        return decoded(content, settings.name)
    except UserError:
        as_utf8 = re.sub("[\0-\x7f]", "", content.decode(errors="replace"))
        n_utf8 = len(as_utf8) - as_utf8.count("\ufffd")
        is_known = knows_code_page(settings.src_lang) and 0 not in content
        read = read_in_code_page(content, settings.src_lang) if is_known else None
        if read is None or n_utf8 > (len(as_utf8) // 2 if read[1] in OF_MANY_CHARACTERS else 0):  # by chance
            raise
    text, code_page = read
    log.warning("%s is not UTF-8: it is read as %s, and its translation is UTF-8", settings.name, code_page)
    return text, "utf-8"


def plain_block(
    span: Span, text: str, finish: Callable[[str], str], *, is_kept: bool = True, parts: Parts | None = None
) -> Iterator[Block]:
    """Yield the block of a text, if it has letters.

    Args:
        span: the span that the translation replaces.
        text: the text, without the file's escapes.
        finish: escapes the translation.
        is_kept: whether the file stays unchanged where the translation equals the text.
        parts: the parts of the text, whose lines stay; None if all of it is translated and wrapped lines are joined.
    """
    if not _HALF.search(text):
        tokens, found = plain_units(parts or [(text, True)], joins=parts is None)
        if found:
            yield Block(span, tokens, found, Writer(), finish, is_kept)


def plain_units(parts: Parts, *, joins: bool) -> tuple[list[Text], list[BlockUnit]]:
    """Return the tokens of a text, and its units.

    Args:
        parts: its parts.
        joins: whether wrapped lines are joined.
    """
    tokens: list[Text] = []
    found: list[BlockUnit] = []
    for part, is_translated in parts:
        for stretch, paragraph in _paragraphs(part, joins=joins) if is_translated else [(part, None)]:
            if paragraph is not None:
                unit = on_one_line(paragraph.text)
                found.append(BlockUnit(len(tokens), len(tokens) + 1, unit, None, paragraph.laid_out))
            tokens.append(Text(stretch))
    return tokens, found


def _paragraphs(text: str, *, joins: bool) -> Iterator[tuple[str, Paragraph | None]]:
    """Yield the parts of a text, with the layout of each part that has letters."""
    lines = text.split("\n")
    numbered = [Line(number, line) for number, line in enumerate(lines)]
    joined = list(paragraphs(numbered)) if joins and len(lines) > 1 else list(map(Paragraph.of_line, numbered))
    ends = [*(paragraph.number for paragraph in joined[1:]), len(lines)]
    for paragraph, end in zip(joined, ends, strict=True):
        stretch = "\n".join(lines[paragraph.number : end])
        if paragraph.number:
            yield "\n", None
        if paragraph.width and any(map(str.isalpha, stretch)) and not _CONTROL.search(paragraph.text):
            yield stretch, paragraph
            continue
        for place, piece in enumerate(_CONTROL.split(stretch)):
            for part in [Text(piece)] if place % 2 else texts(piece):
                is_unit = not place % 2 and any(map(str.isalpha, part.text))
                yield part.text, Paragraph(paragraph.number, part.text) if is_unit else None
