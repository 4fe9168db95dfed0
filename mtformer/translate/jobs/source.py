"""What a job translates: lines or paragraphs, one after another, in windows."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from os import isatty
from pathlib import Path

from mtformer.support.errors import UserError
from mtformer.text.lines import Line, is_regular_input, read_numbered_lines
from mtformer.translate.jobs.documents import Paragraph, paragraphs
from mtformer.translate.jobs.options import OnError
from mtformer.translate.jobs.shards import Shard, share_of

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Source:
    """The text to translate.

    Attributes:
        text: the text itself; None if ``path`` is read.
        path: a file; ``-`` is standard input.
        is_document: whether wrapped lines are joined to paragraphs.
        on_error: what happens to lines that are not UTF-8.
        shard: which share of the lines is translated; None for all.

    Raises:
        UserError: there is a shard of something else than a file.
    """

    text: str | None = None
    path: Path = Path("-")
    is_document: bool = False
    on_error: OnError = OnError.stop
    shard: Shard | None = None

    def __post_init__(self) -> None:
        if self.shard is not None and not self.is_file:
            raise UserError("--shard needs --input with a file: its lines are counted first")

    @property
    def is_file(self) -> bool:
        """Whether the text can be read again."""
        return self.text is None and str(self.path) != "-" and is_regular_input(self.path)

    def units(self) -> Iterator[Paragraph]:
        """Yield what is translated: lines, or the paragraphs of a document.

        Raises:
            UserError: the file cannot be read, or a line is not UTF-8 and ``on_error`` is ``stop``.
        """
        return share_of(self._all_units, self.shard)

    def _all_units(self) -> Iterator[Paragraph]:
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
