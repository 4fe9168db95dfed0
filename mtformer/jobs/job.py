"""Translate a text, a file or a pipe, and write the translations in order."""

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from mtformer.files import require_distinct
from mtformer.jobs.formats import Format, formatted
from mtformer.progress import Progress
from mtformer.text.lines import open_output, read_lines

if TYPE_CHECKING:
    from mtformer.translator import Translator


@dataclass(frozen=True)
class Job:
    """What is translated, and where to.

    Attributes:
        text: a text, whose lines are translated; None if ``input`` is read.
        input: a file; ``-`` is standard input.
        output: the file to write; ``-`` is standard output.
        format: how translations are printed.
    """

    text: str | None = None
    input: Path = Path("-")
    output: Path = Path("-")
    format: Format = Format.text

    def lines(self) -> Iterable[str]:
        """Return the lines to translate."""
        return self.text.split("\n") if self.text is not None else read_lines(self.input)


def run(job: Job, model: Path, load: Callable[[], "Translator"]) -> None:
    """Translate line by line.

    Args:
        job: what is translated.
        model: the file or folder that ``load`` reads, which must not be overwritten.
        load: makes the translator; called once the output is open: a wrong path must not cost the work.

    Raises:
        UserError: the input cannot be read, or the output would overwrite it or the model.
        MtformerError: the output cannot be written, or the model predicts NaN.
    """
    require_distinct(job.output, [model, *([job.input] if job.text is None else [])])
    typed = job.text is None and str(job.input) == "-" and sys.stdin.isatty()
    at_once = 1 if typed else 1_000  # who types a line waits for its translation
    with open_output(job.output) as file:
        translator = load()
        with Progress("translating", unit="lines") as progress:
            lines, n_lines = iter(job.lines()), 0
            while window := list(islice(lines, at_once)):
                found = translator.translate(window, first_line=n_lines + 1, on_progress=progress.advance)
                for number, (line, translations) in enumerate(zip(window, found, strict=True), n_lines + 1):
                    file.write(formatted(number, line, translations, job.format))
                file.flush()
                n_lines += len(window)
