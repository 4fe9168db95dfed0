"""Documents as jobs: their units are translated like the lines of a file, resumably, and written into their places.

While ``report.de.docx`` is being made, the translations of its units are the lines of ``report.de.docx.units.part``.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mtformer.support.errors import UserError
from mtformer.support.files import require_distinct, write_atomically
from mtformer.text.lines import is_standard_output
from mtformer.translate.documents.formats import find_format, format_of, read_document
from mtformer.translate.documents.seam import Document, Settings
from mtformer.translate.jobs.core import run
from mtformer.translate.jobs.options import OnError
from mtformer.translate.jobs.reading import Paragraph, Source
from mtformer.translate.jobs.translating import TranslationJob

if TYPE_CHECKING:
    from mtformer.translate.translator import Translator

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Units(Source):
    """The units of a document, as lines to translate.

    Attributes:
        document: the document.
    """

    document: Document | None = None

    def __post_init__(self) -> None:
        """Accept any file: the lines are not those of the file."""

    def units(self) -> Iterator[Paragraph]:
        """Yield the units, numbered from 1."""
        for number, unit in enumerate(self.document.units if self.document else (), 1):
            yield Paragraph(number, unit)


class UnitsJob(TranslationJob):
    """The translations of the units of a document."""

    unit = "units"


class Task(NamedTuple):
    """A document to translate.

    Attributes:
        input: its file.
        output: the file to write; a folder, or standard output, if its name follows from that of the input.
    """

    input: Path
    output: Path

    def target(self, tgt_lang: str) -> Path:
        """Return the file to write: ``report.de.docx`` beside ``report.docx``, or one of the same name in a folder."""
        suffix = format_of(self.input.name).written_as or self.input.suffix
        if self.output.is_dir() or is_standard_output(self.output):
            name = f"{self.input.stem}.{tgt_lang}{suffix}"
            return (self.output if self.output.is_dir() else self.input.parent) / name
        return self.output


def tasks(inputs: Sequence[Path], output: Path) -> list[Task]:
    """Return the documents to translate.

    Args:
        inputs: files; or one folder, of which all documents are translated, in any folder inside.
        output: a file for a single one; else a folder. Standard output stands for the folder of each input.

    Raises:
        UserError: there is none, its format is not known, or several have one output.
    """
    [first, *others] = inputs
    if first.is_dir():
        if is_standard_output(output):
            raise UserError(f"{first} is a folder: name one for the translations with --output")
        require_distinct(output / "any", [first])
        files = sorted(path for path in first.rglob("*") if path.is_file() and not path.name.startswith("."))
        found = [Task(path, output / path.relative_to(first)) for path in files if find_format(path.name)]
        if not found:
            raise UserError(f"{first} has no documents among its {len(files)} files")
        if len(found) < len(files):
            log.info("%s: %d of %d files are no documents, and are skipped", first, len(files) - len(found), len(files))
        return [task._replace(output=task.output.with_suffix(_suffix(task))) for task in found]
    for path in inputs:
        format_of(path.name)
        if not path.is_file():
            raise UserError(f"there is no file {path}")
    if others and not is_standard_output(output):
        output.mkdir(parents=True, exist_ok=True)
    return [Task(path, output) for path in inputs]


def _suffix(task: Task) -> str:
    return format_of(task.input.name).written_as or task.input.suffix


def translate_documents(
    documents: Sequence[Task], job: UnitsJob, translator: "Translator", settings: Settings
) -> Iterator[Path]:
    """Translate documents one after the other, and yield the file of each.

    Args:
        documents: which.
        job: the model and the options; a document that it resumes is kept if it is complete.
        translator: translates.
        settings: the languages, and how the documents are read and written.

    Raises:
        UserError: a document cannot be read, unless the job goes on with the next one.
        MtformerError: a document cannot be written.
    """
    for task in documents:
        target = task.target(settings.tgt_lang)
        if job.resume and len(documents) > 1 and target.is_file():
            log.info("%s is there already", target)
            continue
        try:
            _translate(task.input, target, job, translator, settings)
        except UserError as error:
            if job.source.on_error is OnError.stop or len(documents) == 1:
                raise
            log.error("%s", error)
            continue
        yield target


def _translate(path: Path, target: Path, job: UnitsJob, translator: "Translator", settings: Settings) -> None:
    require_distinct(target, [*job.models, path])
    format = format_of(path.name)
    try:
        content = path.read_bytes()
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot read or write {error.filename}: {error.strerror}") from error
    document = read_document(content, format, replace(settings, name=str(path)))
    units = target.with_name(f"{target.name}.units")
    if document.units:
        log.info("%s: %d units", path, len(document.units))
        source = Units(None, path, on_error=job.source.on_error, document=document)
        run(replace(job, source=source, output=units), lambda: translator)
        lines = units.read_text(encoding="utf-8").split("\n")[:-1]
    else:
        log.warning("%s has no text to translate", path)
        lines = []
    translated = document.with_translations(lines)
    write_atomically(target, lambda temporary: temporary.write_bytes(translated))
    units.unlink(missing_ok=True)
    if format.written_as:
        log.warning("%s has the text of %s only: its layout is lost", target, path.name)
