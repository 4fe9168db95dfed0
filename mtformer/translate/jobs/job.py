"""Translate a text, a file or a pipe, and write the translations in order."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

from mtformer.support.errors import UserError
from mtformer.support.files import require_distinct
from mtformer.support.progress import Progress
from mtformer.text.lines import is_regular_input, is_regular_output
from mtformer.translate.guard.flags import FlagCounter
from mtformer.translate.jobs.documents import Paragraph
from mtformer.translate.jobs.formats import formatted
from mtformer.translate.jobs.options import Format, OnError
from mtformer.translate.jobs.partial import Done, PartialFile
from mtformer.translate.jobs.resuming import add_to, skip_done
from mtformer.translate.jobs.settings import described
from mtformer.translate.jobs.source import Source
from mtformer.translate.jobs.windows import available, windows
from mtformer.translate.translation import Translation

if TYPE_CHECKING:
    from mtformer.translate.translator import Translator

log = logging.getLogger(__name__)

_NUMBERS_SHOWN = 5  # of lines that are not UTF-8


@dataclass(frozen=True)
class Job:
    """What is translated, where to, and how it is printed.

    Attributes:
        source: the lines or paragraphs.
        models: the file or folder of the model, or those of an ensemble.
        output: the file to write; ``-`` is standard output.
        format: how translations are printed.
        n_best: how many translations of each line are printed.
        resume: whether to continue an unfinished output.
        n_processes: how many processes translate a share each; more than one are started by torchrun.
        options: what else the translations depend on, by name; resuming needs the same ones.
    """

    source: Source
    models: Sequence[Path]
    output: Path = Path("-")
    format: Format = Format.text
    n_best: int = 1
    resume: bool = False
    n_processes: int = 1
    options: Mapping[str, object] = field(default_factory=dict)

    def check(self) -> None:
        """Refuse what cannot work, before anything is loaded.

        Raises:
            UserError: the options contradict each other, or the output is the input or the model.
        """
        require_distinct(self.output, [*self.models, *([self.source.path] if self.source.text is None else [])])
        if self.n_processes > 1 and self.source.shard is not None:
            raise UserError("--shard does not work with several processes: each of them translates a share")
        if self.n_processes > 1 and not (self.source.is_file and is_regular_output(self.output)):
            raise UserError("several processes (--nproc) need --input and --output with files")
        if self.resume and not is_regular_output(self.output):
            raise UserError("--resume needs --output with a file, which it continues")
        if self.source.is_document and self.n_best > 1 and self.format is Format.text:
            raise UserError("--document and --n-best go together only with --format tsv or json")


class Output(Protocol):
    """Where the translations go."""

    done: Done

    def write(self, text: str, n_units: int, digest: str, flags: Mapping[str, Any]) -> None:
        """Write the translations of a window, so that a reader sees them; see :meth:`PartialFile.write`."""
        ...


class Stream:
    """Standard output, a pipe or a device."""

    def __init__(self, file: IO[str]) -> None:
        self.done = Done({})
        self._file = file

    def write(self, text: str, n_units: int, digest: str, flags: Mapping[str, Any]) -> None:
        """Write and flush; see :class:`Output`."""
        self._file.write(text)
        self._file.flush()


def partial_file(job: Job) -> PartialFile:
    """Return the output of a job that writes a file."""
    # What comes before a bad line is the same with every --on-error: a job that it stopped may resume with another.
    options = {name: value for name, value in job.options.items() if value is not OnError.stop}
    return PartialFile(job.output, described(options, job.models))


def translate_to(output: Output, job: Job, load: Callable[[], "Translator"]) -> None:
    """Translate what ``output`` does not contain yet; see :func:`mtformer.translate.jobs.run.run`."""
    source = _windows(job)
    bad, flags = _BadLines(job.source.on_error), FlagCounter(**output.done.flags)
    digest = skip_done(output.done, source, bad.note)
    translator = load()
    unit = "paragraphs" if job.source.is_document else "lines"
    try:
        with Progress("translating", initial=output.done.n_units, unit=unit) as progress:
            for window in source:
                add_to(digest, window)
                bad.note(window)
                found = translator.translate(
                    ["" if unit.problem else unit.text for unit in window],
                    numbers=[unit.number for unit in window],
                    on_progress=progress.advance,
                )
                flags.add((unit.number, best) for unit, (best, *_) in zip(window, found, strict=True))
                printed = (
                    formatted(
                        unit,
                        bad.stand_in(unit, translations[0]) if unit.problem else translations,
                        job.format,
                        job.n_best,
                    )
                    for unit, translations in zip(window, found, strict=True)
                )
                output.write("".join(printed), len(window), digest.hexdigest(), asdict(flags))
    finally:
        bad.report()
        if summary := flags.summary():
            log.warning(summary)


class _BadLines:
    """Lines that are not UTF-8: what is printed for them, and a summary."""

    def __init__(self, on_error: OnError) -> None:
        self._is_copied = on_error is OnError.copy
        self._numbers: list[int] = []

    def note(self, window: Sequence[Paragraph]) -> None:
        self._numbers += [unit.number for unit in window if unit.problem]

    def stand_in(self, unit: Paragraph, empty: Translation) -> list[Translation]:
        """Return what is printed for a line, made from the translation of an empty one."""
        note = "not UTF-8: copied" if self._is_copied else "not UTF-8: skipped"
        return [replace(empty, text=unit.text if self._is_copied else "", notes=(note,))]

    def report(self) -> None:
        if not self._numbers:
            return
        n_lines = len(self._numbers)
        lines = "1 line" if n_lines == 1 else f"{n_lines:,} lines"
        shown = ", ".join(map(str, self._numbers[:_NUMBERS_SHOWN])) + (", …" if n_lines > _NUMBERS_SHOWN else "")
        what = "copied with U+FFFD for the bad bytes" if self._is_copied else "replaced by empty lines"
        log.warning("not UTF-8: %s (%s), %s", lines, shown, what)


def _windows(job: Job) -> Iterator[list[Paragraph]]:
    """Return windows of what is there if somebody may wait for an answer, and full windows otherwise."""
    is_stored = job.source.text is not None or is_regular_input(job.source.path)
    return (windows if is_stored or is_regular_output(job.output) else available)(job.source.units())
