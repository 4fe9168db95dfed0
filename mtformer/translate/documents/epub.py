"""Books in EPUB: pages in XHTML, and their table of contents."""

from collections.abc import Iterable
from functools import partial
from pathlib import PurePosixPath
from posixpath import dirname, join, normpath
from urllib.parse import unquote

from mtformer.support.errors import UserError
from mtformer.translate.documents.archive import Archive
from mtformer.translate.documents.flow import Flow, Role, between_tags
from mtformer.translate.documents.html import page
from mtformer.translate.documents.inline import Span, Writer
from mtformer.translate.documents.markup_tokens import MarkupSource, TokenKind, decoded, read_html, read_xml
from mtformer.translate.documents.seam import ArchiveDocument, DocumentSettings, TextDocument

_KINDS = {  # of the parts with text, by their media types, and by their names where the book does not tell
    "application/xhtml+xml": "page",
    "text/html": "page",
    "application/x-dtbncx+xml": "contents",
    "application/oebps-package+xml": "package",
    **dict.fromkeys((".xhtml", ".html", ".htm"), "page"),
    ".ncx": "contents",
    ".opf": "package",
}
_WITH_TEXT = ("text", "dc:title")  # of a table of contents, and of a package, whose description may have tags as text


def read(content: bytes, settings: DocumentSettings) -> ArchiveDocument:
    """Read a book.

    Raises:
        UserError: it is not a book, or is damaged, encrypted or too large.
    """
    archive = Archive(content, settings.name)
    if "META-INF/container.xml" not in archive.names:
        raise UserError(f"{settings.name} is not an EPUB book: META-INF/container.xml is missing")
    encrypted = archive.read("META-INF/encryption.xml") if "META-INF/encryption.xml" in archive.names else b""
    kinds = {name: _KINDS.get(PurePosixPath(name).suffix.lower(), "") for name in archive.names}
    for name in [name for name, kind in kinds.items() if kind == "package"]:
        kinds |= _in_manifest(archive, name)
    names = [name for name in archive.names if kinds[name]]
    if protected := [name for name in names if name.encode() in encrypted]:
        raise UserError(f"{settings.name} is protected: {protected[0]} is encrypted")
    return ArchiveDocument(archive, ((name, _part(archive, name, kinds[name], settings)) for name in names))


def _in_manifest(archive: Archive, package: str) -> dict[str, str]:
    """Return the kinds of the parts that a package lists with the media type of text."""
    source, _ = archive.read_xml(package)
    found, names = dict[str, str](), set(archive.names)
    for number, (kind, tag, _, _) in enumerate(source.tokens):
        if kind in (TokenKind.START, TokenKind.EMPTY) and tag.rpartition(":")[2] == "item":
            attributes = source.attributes(number)
            name = normpath(join(dirname(package), unquote(attributes.get("href", ""))))
            if name in names and (of_item := _KINDS.get(attributes.get("media-type", ""))):
                found[name] = of_item
    return found


def _part(archive: Archive, name: str, kind: str, settings: DocumentSettings) -> TextDocument:
    title = f"{archive.name}: {name}"
    text, encoding = decoded(archive.read(name), title)
    if kind == "page":
        try:
            source = read_xml(text, title)
        except UserError:
            if "<!ENTITY" in text:
                raise
            source = read_html(text, title)  # which readers of books accept as well
        return page(source, encoding, settings, Writer("<br/>", between_tags))
    source = read_xml(text, title)
    flow = Flow(source, partial(_role, source), Writer(" / ", between_tags), is_text=False)
    return TextDocument(text, encoding, settings, flow.blocks(), _language(source, settings))


def _role(source: MarkupSource, number: int) -> Role:
    return Role.TEXT_BLOCK if source.tokens[number].name in _WITH_TEXT else Role.BLOCK


def _language(source: MarkupSource, settings: DocumentSettings) -> Iterable[tuple[Span, str]]:
    """Yield the edit that sets the language of the book to the target language."""
    for number, (kind, name, _, end) in enumerate(source.tokens):
        if name == "dc:language" and kind is TokenKind.START and not settings.bilingual:
            yield (end, source.tokens[source.end(number)].start), settings.tgt_lang
            return
