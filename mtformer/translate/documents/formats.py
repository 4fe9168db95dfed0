"""The formats of documents: their file names, their readers and their writers."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mtformer.support.errors import MtformerError, UserError
from mtformer.translate.documents import (
    epub,
    exchange,
    gettext,
    html,
    markdown,
    messages,
    office,
    opendocument,
    subtitles,
    tables,
    text,
)
from mtformer.translate.documents.seam import Document, DocumentSettings, Format

_OPEN_XML = "application/vnd.openxmlformats-officedocument"
_OPEN_DOCUMENT = "application/vnd.oasis.opendocument"
FORMATS = (
    Format("Word", (".docx", ".docm"), f"{_OPEN_XML}.wordprocessingml.document", office.read_word),
    Format("PowerPoint", (".pptx", ".pptm"), f"{_OPEN_XML}.presentationml.presentation", office.read_powerpoint),
    Format("Excel", (".xlsx", ".xlsm"), f"{_OPEN_XML}.spreadsheetml.sheet", office.read_excel),
    Format("HTML", (".html", ".htm"), "text/html", html.read),
    Format("OpenDocument text", (".odt", ".ott"), f"{_OPEN_DOCUMENT}.text", opendocument.read),
    Format("OpenDocument slides", (".odp",), f"{_OPEN_DOCUMENT}.presentation", opendocument.read),
    Format("OpenDocument table", (".ods",), f"{_OPEN_DOCUMENT}.spreadsheet", opendocument.read),
    Format("EPUB", (".epub",), "application/epub+zip", epub.read),
    Format("Markdown", (".md", ".markdown"), "text/markdown", markdown.read, package="markdown_it"),
    Format("text", (".txt",), "text/plain", text.read, unit="paragraph"),
    Format("SRT", (".srt",), "application/x-subrip", subtitles.read),
    Format("WebVTT", (".vtt",), "text/vtt", subtitles.read),
    Format("gettext", (".po", ".pot"), "text/x-gettext-translation", gettext.read, has_both=False),
    Format("XLIFF", (".xlf", ".xliff"), "application/xliff+xml", exchange.read_xliff, has_both=False),
    Format("TMX", (".tmx",), "application/x-tmx+xml", exchange.read_tmx, has_both=False),
    Format("JSON", (".json", ".arb"), "application/json", messages.read_json, has_both=False, has_columns=True),
    Format("YAML", (".yaml", ".yml"), "application/yaml", messages.read_yaml, has_both=False, has_columns=True),
    Format("properties", (".properties",), "text/x-java-properties", messages.read_properties, has_both=False),
    Format("CSV", (".csv",), "text/csv", tables.read, has_columns=True),
    Format("TSV", (".tsv",), "text/tab-separated-values", tables.read, has_columns=True),
    Format("PDF", (".pdf",), "application/pdf", text.read_pdf, written_as=".txt", package="pypdf", unit="paragraph"),
)
_BY_SUFFIX = {suffix: format for format in FORMATS for suffix in format.suffixes}


def find_format(name: str) -> Format | None:
    """Return the format of a file by its name; None if it is not a document."""
    return _BY_SUFFIX.get(Path(name).suffix.lower())


def format_of(name: str) -> Format:
    """Return the format of a document by the name of its file.

    Raises:
        UserError: the format is unknown; the message lists the known ones.
    """
    format = find_format(name)
    if format is None:
        known = ", ".join(suffix.removeprefix(".") for suffix in sorted(_BY_SUFFIX))
        raise UserError(f"{name} is not a document of a known format; the formats are: {known}")
    return format


def read_document(content: bytes, format: Format, settings: DocumentSettings) -> Document:
    """Read a document.

    Raises:
        UserError: it cannot be read, or its format has no bilingual form.
    """
    format.require_package()
    if settings.bilingual and not format.has_both:
        raise UserError(f"{settings.name}: {format.name} has no place for the source beside its translation")
    with _errors_named(format, settings, "read"):
        return format.read(content, settings)


def write_document(
    document: Document, translations: Sequence[str], format: Format, settings: DocumentSettings
) -> bytes:
    """Return a document that has been read with one translation for each unit.

    Raises:
        UserError: a part that was not read before is damaged, or the document cannot be written.
    """
    with _errors_named(format, settings, "written"):
        return document.with_translations(translations)


@contextmanager
def _errors_named(format: Format, settings: DocumentSettings, done: str) -> Iterator[None]:
    """Name the document in unexpected errors: readers do not know all kinds of damage.

    Raises:
        UserError: for any error except mtformer's own and a lack of memory.
    """
    try:
        yield
    except (MtformerError, MemoryError):
        raise
    except RecursionError as error:
        raise UserError(f"{settings.name} is nested too deeply to be {done}") from error
    except Exception as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise UserError(f"{settings.name} cannot be {done} as {format.name} ({reason})") from error


def translate_document(
    content: bytes, format: Format, translate: Callable[[Sequence[str]], Sequence[str]], settings: DocumentSettings
) -> bytes:
    """Translate a document.

    Args:
        content: the bytes of its file.
        format: its format; see :func:`format_of`.
        translate: translates any number of texts of one line each, with tags such as ``<1>`` in them.
        settings: the languages, and the name of the document.

    Returns:
        The bytes of the translated file, which has the format ``format.written_as`` if that is another one.

    Raises:
        UserError: the document cannot be read.
    """
    document = read_document(content, format, settings)
    return write_document(document, translate(document.units), format, settings)
