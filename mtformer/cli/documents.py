"""Documents for ``mtformer translate``."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mtformer.cli.command import Options, option
from mtformer.cli.options import names_document, print_result
from mtformer.support.errors import UserError

if TYPE_CHECKING:
    from mtformer.translate.documents.tasks import Task
    from mtformer.translate.jobs.translating import TranslationJob
    from mtformer.translate.translator import Translator


class DocumentOptions(Options):
    """Options for translating documents."""

    panel = "Documents"
    bilingual: bool = option("Put the translation below the source instead of replacing it.")
    column: list[str] | None = option(
        "Translate this column of a table, by name or number, or below this key of JSON or YAML. Repeatable."
    )

    def tasks(self, texts: Sequence[str] | None, input: Path | None, output: Path) -> "list[Task]":
        """Return the documents named by the arguments or ``--input``; none if these name a text or lines.

        Raises:
            UserError: a file is not a document, both arguments and ``--input`` are given, or options for documents are
                given without documents.
        """
        from mtformer.translate.documents.formats import find_format
        from mtformer.translate.documents.tasks import tasks

        if texts and (len(texts) > 1 or names_document(texts[0])):
            if input is not None:
                raise UserError("give documents or --input, not both")
            return tasks(list(map(Path, texts)), output)
        if input is not None and not texts:
            has_lines = input.suffix.lower() == ".txt" or not find_format(input.name)
            if input.is_dir() or not has_lines:
                return tasks([input], output)
        if self.bilingual or self.column:
            raise UserError("--bilingual and --column are for documents: name one, such as report.docx")
        return []

    def translate(
        self,
        tasks: "Sequence[Task]",
        job: "TranslationJob",
        load: "Callable[[], Translator]",
        refused: Mapping[str, bool],
        read: Iterable[Path],
    ) -> None:
        """Translate documents, and print the path of each when it is written, or its units in JSON.

        Args:
            tasks: the documents.
            job: the model and the options.
            load: loads the model.
            refused: the options for lines of text, and whether each is given.
            read: other files that are read, such as a glossary.

        Raises:
            UserError: one of ``refused`` is given, or ``--column`` without a document that has columns or keys; a
                document cannot be read, or its translation would replace another file.
            MtformerError: a document cannot be written; or, at the end, documents could not be read, and were skipped.
        """
        from mtformer.translate.documents.formats import format_of
        from mtformer.translate.documents.job import translate_documents
        from mtformer.translate.documents.seam import DocumentSettings

        if names := [name for name, is_given in refused.items() if is_given]:
            raise UserError(f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} for lines of text, not documents")
        if self.column and not any(format_of(task.input.name).has_columns for task in tasks):
            raise UserError("--column is for CSV, TSV, JSON and YAML, not these documents")
        translator = load()
        settings = DocumentSettings(
            translator.tgt_lang, translator.src_lang, bilingual=self.bilingual, columns=tuple(self.column or ())
        )
        translate_documents(tasks, job, translator, settings, read=read, on_written=print_result)
