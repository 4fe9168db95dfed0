"""Documents: texts whose lines are wrapped at some width, so that sentences run over several lines.

Lines are joined only where a program that wraps text must have broken them, because the next word did not fit. Lists,
headings, verses and texts with a paragraph on each line keep their lines.
"""

import re
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from mtformer.text.languages import is_written_with_spaces, language_of_script
from mtformer.text.lines import Line

_WIDTHS = range(40, 121)  # columns; shorter lines are verses or lists, longer ones are whole paragraphs
_MARKER = re.compile(r"\s*(?:(?:[-*•+>]|#{1,6}|\d{1,3}[.)])\s+)?")  # indentation, list item, heading, quotation


@dataclass(frozen=True)
class Paragraph(Line):
    """What is translated together: one line, or several that were wrapped.

    Attributes:
        marker: what its first line starts with, such as indentation and a dash; it is not translated.
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
        lines = textwrap.wrap(
            translation,
            self.width,
            initial_indent=self.marker,
            subsequent_indent=self.indentation,
            break_long_words=False,
            break_on_hyphens=False,
        )
        return "\n".join(lines)


def paragraphs(lines: Iterable[Line]) -> Iterator[Paragraph]:
    """Join wrapped lines; blank lines, and lines that are not text, are paragraphs of their own."""
    block: list[Line] = []
    for line in lines:
        if line.problem or not line.text.strip() or _starts_item(line.text):
            yield from _paragraphs_of(block)
            block = []
        if line.problem or not line.text.strip():
            yield Paragraph.of_line(line)
        else:
            block.append(line)
    yield from _paragraphs_of(block)


def _paragraphs_of(block: Sequence[Line]) -> Iterator[Paragraph]:
    """Yield one paragraph for wrapped lines, and one for each line otherwise."""
    texts = [line.text.rstrip() for line in block]
    width = max(map(_columns, texts), default=0)
    if len(block) > 1 and width in _WIDTHS and all(_is_wrapped(a, b, width) for a, b in pairwise(texts)):
        marker, indentation = _marker(texts[0]), texts[1][: -len(texts[1].lstrip())]
        joiner = " " if is_written_with_spaces(language_of_script(" ".join(texts))) else ""
        text = joiner.join([texts[0][len(marker) :], *(text.strip() for text in texts[1:])])
        yield Paragraph(block[0].number, text, "", marker, indentation, width)
    else:
        for line in block:
            marker = _marker(line.text)
            yield Paragraph(line.number, line.text[len(marker) :], "", marker)


def _marker(text: str) -> str:
    found = _MARKER.match(text)
    return found[0] if found else ""


def _starts_item(text: str) -> bool:
    return bool(_marker(text).strip())


def _is_wrapped(line: str, following: str, width: int) -> bool:
    """Tell whether the first word of the following line would not have fit at the end of this one."""
    word = following.split(maxsplit=1)[0]
    if is_written_with_spaces(language_of_script(following)):
        return _columns(line) + 1 + _columns(word) > width
    return _columns(line) + 3 * _columns(word[0]) > width  # punctuation may not start a line, so it can end early


def _columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
