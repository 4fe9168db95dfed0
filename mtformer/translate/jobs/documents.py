"""Documents: texts whose lines are wrapped at some width, so that sentences run over several lines.

Lines are joined only where a program that wraps text must have broken them, because the next word did not fit. Lists,
headings, verses and texts with a paragraph on each line keep their lines. In an e-mail, quoted lines are joined with
those that are quoted as deeply.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from mtformer.support.terminal import text_width, wrap
from mtformer.text.languages import is_written_with_spaces, language_of_script
from mtformer.text.lines import Line

_WIDTHS = range(40, 121)  # columns; shorter lines are verses or lists, longer ones are whole paragraphs
_MARKER = re.compile(r"\s*(?:(?:[-*•+]|#{1,6}|\d{1,3}[.)])\s+)?")  # indentation, list item, heading
_QUOTATION = re.compile(r"(?:\s*>)*")  # of an e-mail: one for each time that it was quoted


@dataclass(frozen=True)
class Paragraph(Line):
    """A unit of translation: one line, or several that were wrapped.

    Attributes:
        marker: what its first line starts with, such as a quotation mark, indentation and a dash; it is not translated.
        indentation: what its other lines start with.
        width: the columns that its lines were wrapped to; 0 if it is a single line.
    """

    marker: str = ""
    indentation: str = ""
    width: int = 0

    @classmethod
    def of_line(cls, line: Line) -> "Paragraph":
        """Return a line as it is."""
        return cls(line.number, line.text, line.problem)

    def laid_out(self, translation: str) -> str:
        """Return a translation with the paragraph's marker, wrapped as the paragraph was."""
        if not self.width:
            return self.marker + translation
        return "\n".join(wrap(translation, self.width, self.marker, self.indentation, keeps_words=True))


def paragraphs(lines: Iterable[Line]) -> Iterator[Paragraph]:
    """Join wrapped lines; blank lines, and lines that are not text, are paragraphs of their own."""
    block: list[Line] = []
    block_quotation = ""
    for line in lines:
        quotation = _quotation(line.text)
        unquoted = line.text[len(quotation) :]
        is_apart = line.problem or not unquoted.strip()
        if is_apart or quotation != block_quotation or _marker(unquoted).strip():
            yield from _paragraphs_of(block, block_quotation)
            block, block_quotation = [], quotation
        if line.problem or not line.text.strip():
            yield Paragraph.of_line(line)
        elif is_apart:
            yield Paragraph(line.number, "", "", line.text)
        else:
            block.append(line)
    yield from _paragraphs_of(block, block_quotation)


def _paragraphs_of(block: Sequence[Line], quotation: str) -> Iterator[Paragraph]:
    """Yield one paragraph for wrapped lines, all of which start with ``quotation``, and one for each line otherwise."""
    texts = [line.text.rstrip()[len(quotation) :] for line in block]
    width = text_width(quotation) + max(map(text_width, texts), default=0)
    if len(block) > 1 and width in _WIDTHS and _are_wrapped(texts, width - text_width(quotation)):
        marker, indentation = _marker(texts[0]), texts[1][: -len(texts[1].lstrip())]
        joiner = " " if is_written_with_spaces(language_of_script(" ".join(texts))) else ""
        text = joiner.join([texts[0][len(marker) :], *(text.strip() for text in texts[1:])])
        yield Paragraph(block[0].number, text, "", quotation + marker, quotation + indentation, width)
    else:
        for line in block:
            marker = quotation + _marker(line.text[len(quotation) :])
            yield Paragraph(line.number, line.text[len(marker) :], "", marker)


def _quotation(text: str) -> str:
    match = _QUOTATION.match(text)
    return match[0] if match else ""


def _marker(text: str) -> str:
    match = _MARKER.match(text)
    return match[0] if match else ""


def _are_wrapped(texts: Sequence[str], width: int) -> bool:
    """Tell whether the first word of each line would not have fit at the end of the one before."""
    return all(_is_wrapped(line, following, width) for line, following in pairwise(texts))


def _is_wrapped(line: str, following: str, width: int) -> bool:
    word = following.split(maxsplit=1)[0]
    if is_written_with_spaces(language_of_script(following)):
        return text_width(line) + 1 + text_width(word) > width
    return text_width(line) + 3 * text_width(word[0]) > width  # punctuation may not start a line, so it can end early
