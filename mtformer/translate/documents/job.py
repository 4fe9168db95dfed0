"""Documents as a job: the units of all of them are translated like the lines of one file, resumably.

While ``report.de.docx`` and others are being made, the translations of their units are the lines of
``report.de.docx.units.part``. A document is written as soon as all of its units are translated.
"""

import json
import logging
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from mtformer.support.errors import MtformerError, UserError
from mtformer.support.files import digest_of, read_errors, write_atomically
from mtformer.support.terminal import counted
from mtformer.translate.documents.formats import format_of, read_document, write_document
from mtformer.translate.documents.seam import Document, DocumentSettings
from mtformer.translate.documents.tasks import Task, require_free, without_translations
from mtformer.translate.jobs.core import Tally, Work, process
from mtformer.translate.jobs.options import Format, OnError
from mtformer.translate.jobs.partial import PartialFile
from mtformer.translate.jobs.reading import Paragraph
from mtformer.translate.jobs.translating import TranslationJob

if TYPE_CHECKING:
    from mtformer.translate.translator import Translator

log = logging.getLogger(__name__)

_SKIPPED = "the numbers of the documents that are skipped"  # a setting of the journal


@dataclass
class _Waiting:
    """A document whose units are being translated.

    Attributes:
        task: its file, and the file of its translation.
        n_units: the number of its units.
        document: the document; None if its units were translated before the job was resumed.
    """

    task: Task
    n_units: int
    document: Document | None


@dataclass
class Documents:
    """Documents that are read when their units are needed, and written when all units are translated.

    Attributes:
        tasks: the documents.
        settings: the languages, and how documents are read and written.
        goes_on: whether a document that cannot be read is skipped instead of ending the job.
        on_written: called with what to print of each document when it is written: its file, or its units in JSON.
        format: the output format of a unit: text or json.
        skipped: the numbers, from 1, of the tasks whose output existed before the job.
        is_new: whether the next units are new, rather than translated before the job was resumed.
        n_left_out: how many documents could not be read.
        n_units: how many units all of them have; None until the last one is read.
    """

    tasks: Sequence[Task]
    settings: DocumentSettings
    goes_on: bool
    on_written: Callable[[object], object]
    format: Format
    skipped: Sequence[int] = ()
    is_new: bool = False
    n_left_out: int = 0
    n_units: int | None = None
    _starts: list[int] = field(default_factory=list)  # of the documents read so far, the numbers before their units
    _read: list[Path] = field(default_factory=list)
    _waiting: deque[_Waiting] = field(default_factory=deque)
    _lines: deque[str] = field(default_factory=deque)

    @property
    def unit(self) -> str:
        """The name of a unit in messages: a paragraph, if all documents are plain text."""
        names = {format_of(task.input.name).unit for task in self.tasks}
        return names.pop() if len(names) == 1 else "unit"

    def units(self) -> Iterator[Paragraph]:
        """Yield the units of all documents that are not skipped, numbered from 1.

        Raises:
            UserError: documents cannot be read, unless ``goes_on``.
        """
        n_units, skipped, unreadable = 0, set(self.skipped), list[str]()
        last = max(set(range(1, len(self.tasks) + 1)) - skipped, default=0)
        for number, task in enumerate(self.tasks, 1):
            if number in skipped:
                continue
            try:
                document = self._document(task)
                units = document.units
            except UserError as error:
                if self.goes_on:
                    self._leave_out(error)
                else:
                    unreadable.append(str(error))
                continue
            if unreadable:
                continue  # the others are only read to report all problems at once
            log.info("%s: %s", task.input, counted(len(units), self.unit))
            self._starts.append(n_units)
            self._read.append(task.input)
            self._waiting.append(_Waiting(task, len(units), document if self.is_new else None))
            if number == last:
                self.n_units = n_units + len(units)
            for unit in units:
                n_units += 1
                yield Paragraph(n_units, unit)
        if unreadable:
            heading = [f"{len(unreadable)} of {len(self.tasks)} documents cannot be read:"] if unreadable[1:] else []
            raise UserError("\n".join(heading + unreadable))
        self.n_units = n_units

    def add(self, outputs: Iterable[str]) -> None:
        """Take the outputs of the next units, and write the documents that are complete.

        Raises:
            UserError: a part of a document that was not read before is damaged, unless ``goes_on``.
            MtformerError: a document cannot be written.
        """
        self._lines += outputs
        while self._waiting and self._waiting[0].n_units <= len(self._lines):
            waiting = self._waiting.popleft()
            try:
                self._write(waiting, [self._lines.popleft() for _ in range(waiting.n_units)])
            except UserError as error:
                self._leave_out(error)

    def place(self, number: int) -> tuple[Path, int]:
        """Return the document of a unit, and the number of the unit in it."""
        document = bisect_right(self._starts, number - 1) - 1
        return self._read[document], number - self._starts[document]

    def _document(self, task: Task) -> Document:
        with read_errors(task.input):
            content = task.input.read_bytes()
        return read_document(content, format_of(task.input.name), self._named(task))

    def _write(self, waiting: _Waiting, outputs: Sequence[str]) -> None:
        task, format = waiting.task, format_of(waiting.task.input.name)
        target = task.target(self.settings.tgt_lang)
        if target.exists() and not task.is_named:
            if waiting.document is None:
                log.info("%s exists already", target)
                return
            raise UserError(f"{target} has appeared and would be replaced: move it, and continue with --resume")
        if not outputs:
            log.warning(
                "%s has no text to translate; code stays as it is, in office documents that of styles such as "
                "Preformatted Text",
                task.input,
            )
        document = waiting.document or self._document(task)
        is_json = self.format is Format.json
        units = [_unit(number, output) for number, output in enumerate(outputs, 1)] if is_json else []
        translations = [str(unit["translation"]) for unit in units] if is_json else outputs
        content = write_document(document, translations, format, self._named(task))
        write_atomically(target, lambda temporary: temporary.write_bytes(content))
        if format.written_as:
            log.warning("%s has the text of %s only: its layout is lost", target, task.input.name)
        printed = {"document": str(task.input), "output": str(target), "units": units}
        self.on_written(json.dumps(printed, ensure_ascii=False) if is_json else target)

    def _named(self, task: Task) -> DocumentSettings:
        return replace(self.settings, name=str(task.input))

    def _leave_out(self, error: UserError) -> None:
        if not self.goes_on:
            raise error
        log.error("%s", error)
        self.n_left_out += 1


def _unit(number: int, output: str) -> dict[str, object]:
    """Return a unit of a document for JSON, given its number in the document, and its output in JSON."""
    unit = json.loads(output)
    best = unit["translations"][0]
    translated = {"source": unit["src"], "translation": best["text"], "confidence": best["confidence"]}
    return {"unit": number, **translated, "notes": best["notes"]}


@dataclass(frozen=True, kw_only=True)
class UnitsJob(TranslationJob):
    """The translations of the units of documents.

    Attributes:
        documents: the documents.
    """

    documents: Documents

    @property
    def unit(self) -> str:
        """The unit of progress."""
        return f"{self.documents.unit}s"

    def inputs(self) -> list[Path]:
        """Return the documents."""
        return [task.input for task in self.documents.tasks]

    def units(self) -> Iterator[Paragraph]:
        """Yield the units of all documents that are not skipped."""
        return self.documents.units()

    def settings(self) -> dict[str, str]:
        """Return the settings, which include the documents and the numbers of skipped ones."""
        names = [f"{task.input}\n{task.target(self.documents.settings.tgt_lang)}\n" for task in self.documents.tasks]
        documents = {"the list of documents": f"{len(names)} ({digest_of(''.join(names))[:16]})"}
        skipped = {_SKIPPED: ", ".join(map(str, self.documents.skipped))} if self.documents.skipped else {}
        return documents | skipped | super().settings()

    def n_units(self) -> int | None:
        """Return how many units there are, if all documents have been read."""
        return self.documents.n_units

    def work(self, *translators: "Translator") -> Work[Paragraph]:
        """Return the function that translates a window of units; units read from now on are new."""
        self.documents.is_new = True
        return super().work(*translators)

    def proceed(self, text: str) -> None:
        """Write the complete documents."""
        self.documents.add(text.split("\n")[:-1])

    def place(self, number: int) -> str:
        """Return the place of a unit, for messages."""
        path, in_document = self.documents.place(number)
        return f"{self.documents.unit} {in_document} of {path}"

    def places(self, tally: Tally) -> str:
        """Return the number of units in a tally, and the places of the first ones, for messages."""
        by_path = groupby(map(self.documents.place, tally.first), lambda place: place[0])
        shown = [f"{path}: {', '.join(str(number) for _, number in numbers)}" for path, numbers in by_path]
        more = ", …" if tally.n_lines > len(tally.first) else ""
        return f"{counted(tally.n_lines, self.documents.unit)} ({'; '.join(shown)}{more})"

    @property
    def _copies(self) -> bool:
        """Whether text that cannot be translated is copied: a document must not lose it."""
        return self.source.on_error is not OnError.stop


def translate_documents(
    tasks: Sequence[Task],
    job: TranslationJob,
    translator: "Translator",
    settings: DocumentSettings,
    *,
    read: Iterable[Path],
    on_written: Callable[[object], object],
) -> None:
    """Translate documents.

    Args:
        tasks: the documents, and the files of their translations.
        job: the model and the options. If it is resumed, existing outputs are kept, whoever has written them.
        translator: translates.
        settings: the languages, and how the documents are read and written.
        read: other files that are read, which no translation may replace.
        on_written: called with what to print of each document when it is written; see :class:`Documents`.

    Raises:
        UserError: a document cannot be read, unless the job skips such documents; or a translation would replace a
            file that must be kept.
        MtformerError: a document cannot be written; or, at the end, documents could not be read, and were skipped.
    """
    tasks = without_translations(tasks, settings.tgt_lang)
    targets = [task.target(settings.tgt_lang) for task in tasks]
    output = targets[0].with_name(f"{targets[0].name}.units")
    earlier = PartialFile(output).unfinished_settings()
    is_resumed = job.resume or earlier is not None
    require_free(tasks, settings.tgt_lang, [*job.models, *read], is_resumed=is_resumed)
    skipped = _skipped(tasks, settings.tgt_lang, earlier) if is_resumed else []
    for number in skipped:
        log.info("%s: skipped: %s exists", tasks[number - 1].input, targets[number - 1])
    goes_on = job.source.on_error is not OnError.stop and len(tasks) > 1
    documents = Documents(tasks, settings, goes_on, on_written, job.format, skipped)
    units = UnitsJob(**{**vars(job), "output": output}, documents=documents)
    units.check()
    if len(skipped) == len(tasks):
        return
    try:
        for folder in dict.fromkeys(target.parent for target in targets):
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot write {error.filename}: {error.strerror}") from error
    file = PartialFile(units.output, units.settings(), targets[0])
    with file.opened(resume=job.resume, end=file.discard):
        documents.add(file.written())
        process(units, file, lambda: translator)
        documents.add(())  # those without text at the end
    if documents.n_left_out:
        raise MtformerError(f"{documents.n_left_out} of {counted(len(tasks), 'document')} could not be read: see above")


def _skipped(tasks: Sequence[Task], tgt_lang: str, earlier: Mapping[str, str] | None) -> list[int]:
    """Return the numbers, from 1, of the documents that are skipped because their outputs exist.

    Args:
        tasks: the documents.
        tgt_lang: the target language.
        earlier: the settings of the unfinished job, if any. It has written outputs of its own, so only outputs count
            that existed before it.
    """
    present = [number for number, task in enumerate(tasks, 1) if not task.is_named and task.target(tgt_lang).exists()]
    if earlier is None:
        return present
    before = set(earlier.get(_SKIPPED, "").split(", "))
    return [number for number in present if str(number) in before]
