"""The formats of documents: how their files are named, and how they are translated."""

from collections.abc import Callable, Sequence
from pathlib import Path

from mtformer.support.errors import UserError
from mtformer.translate.documents import gettext, html, office
from mtformer.translate.documents.seam import Document, Format, Settings

_OPEN_XML = "application/vnd.openxmlformats-officedocument"
FORMATS = (
    Format("Word", (".docx", ".docm"), f"{_OPEN_XML}.wordprocessingml.document", office.read_word),
    Format("PowerPoint", (".pptx", ".pptm"), f"{_OPEN_XML}.presentationml.presentation", office.read_powerpoint),
    Format("Excel", (".xlsx", ".xlsm"), f"{_OPEN_XML}.spreadsheetml.sheet", office.read_excel),
    Format("HTML", (".html", ".htm"), "text/html", html.read),
    Format("gettext", (".po", ".pot"), "text/x-gettext-translation", gettext.read, has_both=False),
)
_BY_SUFFIX = {suffix: format for format in FORMATS for suffix in format.suffixes}


def find_format(name: str) -> Format | None:
    """Return the format of a file by its name; None if it is not that of a document."""
    return _BY_SUFFIX.get(Path(name).suffix.lower())


def format_of(name: str) -> Format:
    """Return the format of a document by the name of its file.

    Raises:
        UserError: there is none; the message says which there are.
    """
    format = find_format(name)
    if format is None:
        known = ", ".join(suffix.removeprefix(".") for suffix in sorted(_BY_SUFFIX))
        raise UserError(f"{name} is no document of a known format, which are: {known}")
    return format


def read_document(content: bytes, format: Format, settings: Settings) -> Document:
    """Read a document.

    Raises:
        UserError: it cannot be read, or cannot have the source beside the translation.
    """
    if settings.bilingual and not format.has_both:
        raise UserError(f"{settings.name}: {format.name} has no place for the source beside its translation")
    return format.read(content, settings)


def translate_document(
    content: bytes, format: Format, translate: Callable[[Sequence[str]], Sequence[str]], settings: Settings
) -> bytes:
    """Translate a document.

    Args:
        content: the bytes of its file.
        format: its format; see :func:`format_of`.
        translate: translates any number of texts of one line each, with tags such as ``<1>`` in them.
        settings: the languages, and what the document is called.

    Returns:
        The bytes of the translated file, which has the format ``format.written_as`` if that is another one.

    Raises:
        UserError: the document cannot be read.
    """
    document = read_document(content, format, settings)
    return document.with_translations(translate(document.units))
