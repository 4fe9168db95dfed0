"""Text files, and the text of PDF files, which is all that is translated of them."""

import io
import logging
import re
from itertools import accumulate, pairwise
from typing import Any

from mtformer.support.errors import UserError
from mtformer.support.terminal import text_width
from mtformer.text.words import CHARACTER_WORDS, word_spans
from mtformer.translate.documents.blocks import Block
from mtformer.translate.documents.inline import BlockUnit, Writer
from mtformer.translate.documents.plain import plain_units, read_text
from mtformer.translate.documents.seam import DocumentSettings, TextDocument

_SHORT = 40  # columns: shorter lines say nothing about the width of a page
_FULL = 0.9  # of the longest lines of a page: how far full lines reach, since letters are not of one width
# Or a section or a reference, but not a date.
_ITEM = re.compile(r"[-–—*•▪◦·‣]\s|(?!\d\d?\.\d\d?\.\d{4})[(\[]?(?:\d{1,3}|[A-Za-z])[.)\]](?:\s|\d)")
_ENTRY = re.compile(r"(?<!\.)(?<!\. )(?:\. ?){3,}+\w+\Z")  # of a table of contents
_AFTER_PARTS = frozenset("and or und oder bzw. sowie en of och eller".split())  # of words, as in pre- and post-war
_UNSPACED = re.compile(f"[{CHARACTER_WORDS}]{{2}}")
_HYPHEN = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]\Z")


def read(content: bytes, settings: DocumentSettings) -> TextDocument:
    """Read a text, of which wrapped lines are joined.

    Raises:
        UserError: its encoding is not known.
    """
    text, encoding = read_text(content, settings)
    return _document(text, encoding, settings, joins=True)


def _document(text: str, encoding: str, settings: DocumentSettings, *, joins: bool) -> TextDocument:
    line_end = "\r\n" if text.count("\r\n") == text.count("\n") else "\n"  # where both are used, each stays
    tokens, units = plain_units([(text.replace(line_end, "\n"), True)], joins=joins)
    sizes = [len(token.text) + token.text.count("\n") * (len(line_end) - 1) for token in tokens]
    ends = list(accumulate(sizes))
    writer, finish = Writer(), lambda new: new.replace("\n", line_end)
    blocks = []
    for unit in units:  # each is a block, so that in a bilingual text its translation follows it
        number, part = unit.start, BlockUnit(0, 1, unit.text, None, unit.finish)
        span = (ends[number] - sizes[number], ends[number])
        blocks.append(Block(span, [tokens[number]], [part], writer, finish))
    return TextDocument(text, encoding, settings, blocks, errors="strict")


def read_pdf(content: bytes, settings: DocumentSettings) -> TextDocument:
    """Read the text of a PDF file: its pages, one after the other, with a paragraph on each line.

    Raises:
        UserError: the file is damaged, encrypted, or has no text.
    """
    import pypdf

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # which reports every fault that it reads past
    try:
        reader: Any = pypdf.PdfReader(io.BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise UserError(f"{settings.name} has a password: save it without one")
        pages = [page.extract_text() for page in reader.pages]
    except UserError:
        raise
    except Exception as error:  # of many kinds: a PDF file may be damaged in any place
        raise UserError(f"{settings.name} is damaged, or no PDF file: {' '.join(str(error).split())}") from None
    if not any(any(map(str.isalpha, page)) for page in pages):
        raise UserError(f"{settings.name} has no text: it may have pictures of pages, which need OCR first")
    text = "\n\n".join(map(_with_whole_paragraphs, pages))
    return _document(text.encode("utf-8", "replace").decode() + "\n", "utf-8", settings, joins=False)


def _with_whole_paragraphs(page: str) -> str:
    """Join the lines of each paragraph of a page; those of a proportional font are not of one length."""
    lines = [line.strip() for line in page.split("\n")]
    widths = sorted(width for width in map(text_width, lines) if width >= _SHORT)
    longest = widths[int(0.9 * len(widths))] if widths else _SHORT  # a few may be longer, such as those of a table
    parts = lines[:1]
    for line, following in pairwise(lines):
        separator = "" if _UNSPACED.fullmatch(line[-1:] + following[:1]) else " "
        word = following[slice(*(word_spans(following) or [(0, 0)])[0])]
        hyphen = _HYPHEN.search(line)
        is_divided = hyphen is not None and word[:1].islower() and word not in _AFTER_PARTS
        is_full = text_width(f"{line}{separator}{word}") > _FULL * longest
        if not line or not following or _ITEM.match(following) or _ENTRY.search(line) or not (is_full or is_divided):
            parts.append("\n")
        elif is_divided:
            parts[-1] = parts[-1][:-1]
        elif hyphen is None or word in _AFTER_PARTS:
            parts.append(separator)
        parts.append(following)
    return "".join(parts)
