"""The input of jobs: lines or paragraphs of a text, a share of them, and windows of them.

A document is a text whose lines are wrapped at some width, so that sentences run over several lines. Lines are joined
only where a program must have wrapped them because the next word did not fit. Lists, headings, verses and texts with a
paragraph on each line keep their lines. In an e-mail, quoted lines are joined with others of the same quotation depth.

A search is fast if its batches hold sentences of similar length, and a larger choice of sentences means less padding.
On the other hand, the first translations should come soon, and a program that has written one line and waits for its
translation must get it.
"""

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from os import isatty
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import TypeVar

from mtformer.support.errors import UserError
from mtformer.support.terminal import text_width, wrap
from mtformer.text.languages import is_written_with_spaces, language_of_script, separator_of
from mtformer.text.lines import COMPRESSED, Line, is_regular_input, read_numbered_lines
from mtformer.translate.jobs.options import OnError, Shard

log = logging.getLogger(__name__)

Item = TypeVar("Item")

_WIDTHS = range(40, 121)  # columns; shorter lines are verses or lists, longer ones are whole paragraphs
_MARKER = re.compile(r"\s*(?:(?:[-*•+]|#{1,6}|\d{1,3}[.)])\s+)?")  # indentation, list item, heading
_QUOTATION = re.compile(r"(?:\s*>)*")  # of an e-mail: one for each time that it was quoted


@dataclass(frozen=True)
class Paragraph(Line):
    """A unit of translation: one line, or several wrapped lines.

    Attributes:
        marker: the start of its first line that is not translated, such as a quotation mark, indentation and a dash.
        indentation: the start of its other lines.
        width: the column at which its lines were wrapped; 0 for a single line.
    """

    marker: str = ""
    indentation: str = ""
    width: int = 0

    @classmethod
    def of_line(cls, line: Line) -> "Paragraph":
        """Return a line as a paragraph."""
        return cls(line.number, line.text, line.problem)

    def laid_out(self, translation: str) -> str:
        """Return a translation with the marker and the wrapping of the paragraph."""
        if not self.width:
            return self.marker + translation
        return "\n".join(wrap(translation, self.width, self.marker, self.indentation, keeps_words=True))


def paragraphs(lines: Iterable[Line]) -> Iterator[Paragraph]:
    """Join wrapped lines; each blank line, and each line that is not text, is a separate paragraph."""
    block: list[Line] = []
    block_quotation = ""
    for line in lines:
        quotation = _start(_QUOTATION, line.text)
        unquoted = line.text[len(quotation) :]
        is_apart = line.problem or not unquoted.strip()
        if is_apart or quotation != block_quotation or _start(_MARKER, unquoted).strip():
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
    """Yield a single paragraph if the lines, which all start with ``quotation``, were wrapped, else one per line."""
    texts = [line.text.rstrip()[len(quotation) :] for line in block]
    longest = max(map(text_width, texts), default=0)
    width = text_width(quotation) + longest
    if len(block) > 1 and width in _WIDTHS and all(_is_wrapped(*lines, longest) for lines in pairwise(texts)):
        marker, indentation = _start(_MARKER, texts[0]), texts[1][: -len(texts[1].lstrip())]
        joiner = separator_of(language_of_script(" ".join(texts)))
        text = joiner.join([texts[0][len(marker) :], *(text.strip() for text in texts[1:])])
        yield Paragraph(block[0].number, text, "", quotation + marker, quotation + indentation, width)
    else:
        for line in block:
            marker = quotation + _start(_MARKER, line.text[len(quotation) :])
            yield Paragraph(line.number, line.text[len(marker) :], "", marker)


def _start(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.match(text)
    return match[0] if match else ""


def _is_wrapped(line: str, following: str, width: int) -> bool:
    """Tell whether the first word of the following line would not have fit on this one."""
    word = following.split(maxsplit=1)[0]
    if is_written_with_spaces(language_of_script(following)):
        return text_width(line) + 1 + text_width(word) > width
    return text_width(line) + 3 * text_width(word[0]) > width  # punctuation may not start a line, so it can end early


FIRST_SIZE, LARGEST_SIZE = 1_000, 8_000  # of windows

# Files whose lines are not sentences: keywords, markup and time codes would be translated with the text.
_STRUCTURED = frozenset(
    ".csv .doc .docx .epub .htm .html .ini .json .jsonl .odp .ods .odt .pages .pdf .po .pot .ppt .pptx .properties "
    ".resx .rtf .srt .strings .tex .tmx .toml .tsv .vtt .xlf .xliff .xls .xlsx .xml .yaml .yml".split()
)
# The formats of documents to convert others to.
_CURRENT = {".doc": ".docx", ".rtf": ".docx", ".pages": ".docx", ".ppt": ".pptx", ".xls": ".xlsx"}


def structured_suffix(path: Path) -> str:
    """Return the suffix of a file whose name says that it is not plain text; empty for other files."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    while suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes and suffixes[-1] in _STRUCTURED else ""


@dataclass(frozen=True)
class TextInput:
    """The text to translate.

    Attributes:
        text: the text itself; None if ``path`` is read.
        path: a file; ``-`` is standard input.
        is_document: whether wrapped lines are joined into paragraphs.
        on_error: the treatment of lines that are not UTF-8.

    Raises:
        UserError: the file's name says that its lines are not sentences.
    """

    text: str | None = None
    path: Path = Path("-")
    is_document: bool = False
    on_error: OnError = OnError.stop

    def __post_init__(self) -> None:
        if self.text is None and (suffix := structured_suffix(self.path)):
            if suffix in _CURRENT:
                raise UserError(f"{self.path} is not in a format that is translated: save it as {_CURRENT[suffix]}")
            raise UserError(
                f"{self.path}: all lines of a {suffix} file would be translated, keywords included: extract the "
                "text, one sentence a line; or, to translate it as it is, give it to standard input (--input -)"
            )

    @property
    def files(self) -> list[Path]:
        """The input file, if any; ``-`` is standard input."""
        return [self.path] if self.text is None else []

    @property
    def line_file(self) -> Path | None:
        """The file, if each of its lines is a unit."""
        return None if self.text is not None or self.is_document else self.path

    @property
    def is_file(self) -> bool:
        """Whether the text can be read twice."""
        return self.text is None and str(self.path) != "-" and is_regular_input(self.path)

    def require_file(self, option: str) -> None:
        """Refuse a text that cannot be read twice.

        Raises:
            UserError: it cannot; the message names ``option``, which requires this.
        """
        if not self.is_file:
            raise UserError(f"{option} needs --input with a file: its lines are counted first")

    def units(self) -> Iterator[Paragraph]:
        """Yield lines, or the paragraphs of a document.

        Raises:
            UserError: the file cannot be read, or a line is not UTF-8 and ``on_error`` is ``stop``.
        """
        lines = self._lines()
        return paragraphs(lines) if self.is_document else map(Paragraph.of_line, lines)

    def _lines(self) -> Iterator[Line]:
        if self.text is not None:
            yield from (Line(number, text) for number, text in enumerate(self.text.split("\n"), 1))
            return
        if str(self.path) == "-" and isatty(0):
            log.info("translating what you type, line by line; Ctrl-D ends it")
        for line in read_numbered_lines(self.path):
            if line.problem and self.on_error is OnError.stop:
                raise UserError(f"{line.problem}, or see --on-error")
            yield line


def share_of(items: Callable[[], Iterable[Item]], shard: Shard | None) -> Iterator[Item]:
    """Yield the items of a share, or all; ``items`` is called twice, because the items are counted first."""
    if shard is None:
        return iter(items())
    share = shard.of(sum(1 for _ in items()))
    return islice(items(), share.start, share.stop)


def windows(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Divide items into windows, each twice as large as the previous one, up to a limit.

    The end of a window depends only on the number of items before it.
    """
    remaining, size = iter(items), FIRST_SIZE
    while window := list(islice(remaining, size)):
        yield window
        size = min(2 * size, LARGEST_SIZE)


def available(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Divide items into windows of those available, waiting only while there are none.

    If ``items`` raises an error, the items before it are yielded first.
    """
    queue: Queue[Item | None] = Queue(LARGEST_SIZE)  # None is the end
    errors: list[Exception] = []

    def fill() -> None:
        try:
            for item in items:
                queue.put(item)
        except Exception as error:
            errors.append(error)
        queue.put(None)

    # A daemon: it may wait for input that never comes, and the program must end nevertheless.
    Thread(target=fill, name="reader", daemon=True).start()
    size = FIRST_SIZE
    while (item := queue.get()) is not None:
        window = [item]
        while len(window) < size and not queue.empty():
            if (item := queue.get()) is None:
                queue.put(None)
                break
            window.append(item)
        yield window
        size = min(2 * size, LARGEST_SIZE) if len(window) == size else size
    for error in errors:
        raise error
