"""Jobs: text of any size is read, processed and written one window at a time, resumably.

A job defines its input and the work on a window. The rest is common to all jobs: the windows, the progress, the output,
resuming, and the counts for the final report.
"""

import gc
import hashlib
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from mtformer.support import __version__
from mtformer.support.errors import UserError
from mtformer.support.files import digest_of, file_digest, read_errors, require_distinct
from mtformer.support.progress import Progress
from mtformer.text.lines import count_lines, is_regular_input, is_regular_output, open_output
from mtformer.translate.jobs.options import Shard
from mtformer.translate.jobs.partial import Done, PartialFile
from mtformer.translate.jobs.reading import available, share_of, windows

if TYPE_CHECKING:
    from mtformer.translate.translator import Translator

Unit = TypeVar("Unit")  # a line, a paragraph or a pair
Load = Callable[[], "Translator"]

_LINES_SHOWN = 5


@dataclass
class Tally:
    """Counts the doubtful lines of a job, by reason.

    Attributes:
        n_lines: the number of these lines.
        first: the numbers of the first of these lines.
        reasons: the count of each reason.
        details: the reasons for each of these in full.
    """

    n_lines: int = 0
    first: list[int] = field(default_factory=list)
    reasons: dict[str, int] = field(default_factory=dict)
    details: list[str] = field(default_factory=list)

    def add(self, line: int, reasons: Sequence[str]) -> None:
        """Count a line, unless there are no reasons; details after a colon do not count."""
        kinds = dict.fromkeys(reason.split(":")[0] for reason in reasons)
        if kinds:
            self.n_lines += 1
            if len(self.first) < _LINES_SHOWN:
                self.first.append(line)
                self.details.append("; ".join(reasons))
            self.reasons |= {kind: self.reasons.get(kind, 0) + 1 for kind in kinds}

    @property
    def lines(self) -> str:
        """The numbers of the first lines, as in ``2, 7, …``."""
        return ", ".join(map(str, self.first)) + (", …" if self.n_lines > len(self.first) else "")

    def __str__(self) -> str:
        return ", ".join(f"{reason} ({n:,})" for reason, n in Counter(self.reasons).most_common())


Tallies = defaultdict[str, Tally]  # by name


# What a job does with a window: it counts in the tallies what the report should mention, calls the function with the
# number of units that are done since the last call, and returns what to write.
Work = Callable[[Sequence[Unit], Tallies, Callable[[int], object]], str]


@dataclass(frozen=True, kw_only=True)
class Job(ABC, Generic[Unit]):
    """Work on text of any size.

    Attributes:
        models: the file or folder of the model, or those of an ensemble.
        output: the file to write; ``-`` is standard output.
        shard: the share of the text to read; None for all.
        resume: whether to continue an unfinished output.
        options: other settings that the output depends on, by name; resuming requires the same ones.
        doing: the label of the progress bar.
    """

    doing: ClassVar[str]

    models: Sequence[Path]
    output: Path = Path("-")
    shard: Shard | None = None
    resume: bool = False
    options: Mapping[str, object] = field(default_factory=dict)

    @property
    def unit(self) -> str:
        """The unit of progress."""
        return "lines"

    @property
    def line_file(self) -> Path | None:
        """The file that has each unit on a line of its own, if there is one: its lines are counted first."""
        return None

    @abstractmethod
    def inputs(self) -> list[Path]:
        """Return the input files, ``-`` for standard input."""

    @abstractmethod
    def units(self) -> Iterator[Unit]:
        """Yield the whole input, regardless of the share.

        Raises:
            UserError: it cannot be read.
        """

    @abstractmethod
    def work(self, *translators: "Translator") -> Work[Unit]:
        """Return the work on a window, with these models.

        Raises:
            UserError: the models are not fit for it.
        """

    def n_units(self) -> int | None:
        """Return how many units there are, if it is quick to find out; asked again when more have been read."""
        n_units = None if self.line_file is None else count_lines(self.line_file)
        return len(self.shard.of(n_units)) if self.shard and n_units is not None else n_units

    def proceed(self, text: str) -> None:
        """React to the written output of a window, for example by finishing complete documents."""

    def check(self) -> None:
        """Refuse contradictory options before anything is loaded.

        Raises:
            UserError: the options contradict each other, the output is an input or the model, or an input is missing.
        """
        require_distinct(self.output, [*self.models, *self.inputs()])
        for path in self.inputs():
            if str(path) != "-":
                with read_errors(path):
                    path.stat()
        if self.resume and not is_regular_output(self.output):
            raise UserError("--resume needs --output with a file, which it continues")

    def warn(self, tallies: Tallies) -> None:
        """Log problems of the text and its translations, even if the job has ended early."""

    def report(self, done: Done, n_before: int, tallies: Tallies) -> None:
        """Log the result of a complete job, ``n_before`` of whose lines were written before it was resumed."""

    def settings(self) -> dict[str, str]:
        """Return the settings that the output depends on, as text that can be compared; files are hashed.

        Raises:
            UserError: a file cannot be read.
        """
        first, *others = self.models
        with read_errors(first):
            options = {f"--{name.replace('_', '-')}": _described(value) for name, value in self.options.items()}
            return {
                "mtformer's version": __version__,
                "the model": _digest(first),
                **options,
                "--model": _described(others),
            }


def run(job: Job[Any], *loads: Load) -> None:
    """Do a job in this process.

    Args:
        job: the job.
        loads: load the models. They are called after the output is opened: a wrong path must not cost the work.

    Raises:
        UserError: the options contradict each other, the input cannot be read, or an unfinished output cannot be
            continued.
        MtformerError: the output cannot be written, or the model predicts NaN.
    """
    job.check()
    if is_regular_output(job.output):
        file = PartialFile(job.output, job.settings())
        with file.opened(resume=job.resume, end=file.finish):
            n_before = file.done.n_lines
            tallies = process(job, file, *loads)
        job.report(file.done, n_before, tallies)
    else:
        with open_output(job.output) as stream:
            process(job, Stream(stream), *loads)


class Stream:
    """Standard output, a pipe or a device."""

    def __init__(self, file: IO[str]) -> None:
        self.done = Done()
        self._file = file

    def require_engine(self, engine: str) -> None:
        """Accept any engine."""

    def write(self, text: str, n_units: int, digest: str, tallies: Mapping[str, Any]) -> None:
        """Write and flush."""
        self._file.write(text)
        self._file.flush()


Output = PartialFile | Stream


def process(job: Job[Any], output: Output, *loads: Load) -> Tallies:
    """Process the windows that ``output`` does not contain yet, and return the tallies; see :func:`run`."""
    tallies: Tallies = defaultdict(Tally, {name: Tally(**tally) for name, tally in output.done.tallies.items()})
    source = _windows(job)
    digest = _skip_done(output, source)
    translators = [load() for load in loads]
    gc.freeze()  # or collections would look through all that has been imported, again and again
    output.require_engine("; ".join(translator.computation for translator in translators))
    work = job.work(*translators)
    try:
        with Progress(job.doing, job.n_units(), output.done.n_units, job.unit) as progress:
            for window in source:
                progress.total = progress.total or job.n_units()
                _add_to(digest, window)
                text = work(window, tallies, progress.advance)
                counted = {name: asdict(tally) for name, tally in tallies.items()}
                with progress.aside():
                    output.write(text, len(window), digest.hexdigest(), counted)
                    job.proceed(text)
    finally:
        job.warn(tallies)
    return tallies


def _windows(job: Job[Unit]) -> Iterator[list[Unit]]:
    """Return windows of the available units if somebody may be waiting for output, else full windows."""
    is_stored = all(map(is_regular_input, job.inputs()))
    return (windows if is_stored or is_regular_output(job.output) else available)(share_of(job.units, job.shard))


def _skip_done(output: Output, source: Iterator[list[Any]]) -> "hashlib._Hash":
    """Skip the windows that an unfinished output contains, and return their hash.

    Raises:
        UserError: their input has changed.
    """
    digest, n_units, done = hashlib.sha256(), 0, output.done
    while n_units < done.n_units and (window := next(source, [])):
        n_units += len(window)
        _add_to(digest, window)
    if (
        isinstance(output, PartialFile)
        and done.n_units
        and (n_units, digest.hexdigest()) != (done.n_units, done.digest)
    ):
        raise UserError(
            f"--resume: the first {done.n_units:,} lines or paragraphs of the input have changed since {output.part} "
            "was written; delete this file to start from scratch"
        )
    return digest


def _add_to(digest: "hashlib._Hash", window: Sequence[Any]) -> None:
    for unit in window:
        digest.update(f"{unit!r}\n".encode())


def _described(value: object) -> str:
    if isinstance(value, Path):
        return f"{value} ({_digest(value)})" if value.exists() else str(value)
    if isinstance(value, list | tuple):
        return ", ".join(map(_described, value))
    return "not given" if value is None else str(value)


def _digest(path: Path) -> str:
    """Return the first 16 hexadecimal digits of a hash of a file, or of all files in a folder."""
    if not path.is_dir():
        return file_digest(path)[:16]
    return digest_of([file_digest(file) for file in sorted(path.rglob("*")) if file.is_file()])[:16]
