"""What jobs read: lines or paragraphs of a text, a share of them, and windows of them.

A search is fast if its batches hold sentences of one length, and the more sentences it can choose from, the less
padding there is. On the other hand, nobody should wait long for the first translations, and a program that has written
one line and waits for its translation must get it.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from os import isatty
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import TypeVar

from mtformer.support.errors import UserError
from mtformer.text.lines import Line, is_regular_input, read_numbered_lines
from mtformer.translate.jobs.documents import Paragraph, paragraphs
from mtformer.translate.jobs.options import OnError, Shard

log = logging.getLogger(__name__)

Item = TypeVar("Item")

FIRST_SIZE, LARGEST_SIZE = 1_000, 8_000  # of windows

# Files whose lines are not sentences: keywords, markup and time codes would be translated with the text.
_STRUCTURED = frozenset(
    ".csv .doc .docx .epub .ini .json .jsonl .odp .ods .odt .pdf .po .pot .ppt .pptx .properties .resx .rtf .srt "
    ".strings .tmx .toml .tsv .vtt .xlf .xliff .xls .xlsx .xml .yaml .yml".split()
)
_COMPRESSED = frozenset([".gz", ".bz2", ".xz", ".zst"])


@dataclass(frozen=True)
class Source:
    """The text to translate.

    Attributes:
        text: the text itself; None if ``path`` is read.
        path: a file; ``-`` is standard input.
        is_document: whether wrapped lines are joined to paragraphs.
        on_error: what happens to lines that are not UTF-8.

    Raises:
        UserError: the file's name says that its lines are not sentences.
    """

    text: str | None = None
    path: Path = Path("-")
    is_document: bool = False
    on_error: OnError = OnError.stop

    def __post_init__(self) -> None:
        suffixes = [suffix.lower() for suffix in self.path.suffixes]
        while suffixes and suffixes[-1] in _COMPRESSED:
            suffixes.pop()
        if self.text is None and suffixes and suffixes[-1] in _STRUCTURED:
            raise UserError(
                f"{self.path}: all lines of a {suffixes[-1]} file would be translated, keywords included: extract the "
                "text, one sentence a line; or, to translate it as it is, give it to standard input (--input -)"
            )

    @property
    def files(self) -> list[Path]:
        """The file that is read, if it is one; ``-`` is standard input."""
        return [self.path] if self.text is None else []

    @property
    def is_file(self) -> bool:
        """Whether the text can be read twice."""
        return self.text is None and str(self.path) != "-" and is_regular_input(self.path)

    def require_file(self, option: str) -> None:
        """Refuse a text that cannot be read twice.

        Raises:
            UserError: it cannot; the message names the ``option`` that asks for it.
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
    """Yield the items of a share, or all of them; ``items`` returns them anew, since they are counted first."""
    if shard is None:
        return iter(items())
    share = shard.of(sum(1 for _ in items()))
    return islice(items(), share.start, share.stop)


def windows(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Divide items into windows, each twice as large as the one before, up to a limit.

    Where a window ends depends only on the number of items before it.
    """
    remaining, size = iter(items), FIRST_SIZE
    while window := list(islice(remaining, size)):
        yield window
        size = min(2 * size, LARGEST_SIZE)


def available(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Divide items into windows of those that are there, waiting only while there is none.

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
