"""Books in EPUB: pages in XHTML, and their table of contents."""

from collections.abc import Iterable
from functools import partial

from mtformer.support.errors import UserError
from mtformer.translate.documents.archive import Archive
from mtformer.translate.documents.flow import Flow, FlowWriter, Role
from mtformer.translate.documents.html import attribute_blocks, language_edits, role_in_html
from mtformer.translate.documents.inline import Span
from mtformer.translate.documents.markup_tokens import MarkupSource, TokenKind, decoded, read_html, read_xml
from mtformer.translate.documents.seam import ArchiveDocument, Settings, TextDocument
from mtformer.translate.documents.source import Source

_PAGES = (".xhtml", ".html", ".htm")


def read(content: bytes, settings: Settings) -> ArchiveDocument:
    """Read a book.

    Raises:
        UserError: it is none, damaged, encrypted or too large.
    """
    archive = Archive(content, settings.name)
    if "META-INF/container.xml" not in archive.names:
        raise UserError(f"{settings.name} is no book in EPUB: META-INF/container.xml is missing")
    encrypted = archive.read("META-INF/encryption.xml") if "META-INF/encryption.xml" in archive.names else b""
    parts = []
    for name in archive.names:
        if name.lower().endswith((*_PAGES, ".ncx", ".opf")):
            if name.encode() in encrypted:
                raise UserError(f"{settings.name} is protected: {name} is encrypted")
            parts.append((name, _part(archive.read(name), f"{settings.name}: {name}", name, settings)))
    return ArchiveDocument(archive, parts)


def _part(content: bytes, title: str, name: str, settings: Settings) -> TextDocument:
    text, encoding = decoded(content, title)
    if name.lower().endswith(_PAGES):
        try:
            source = read_xml(text, title)
        except UserError:
            if "<!ENTITY" in text:
                raise
            source = read_html(text, title)  # which readers of books accept as well
        blocks = list(Flow(source, partial(role_in_html, source), FlowWriter("<br/>")).blocks())
        blocks += attribute_blocks(source)
        return TextDocument(Source(text, blocks, list(language_edits(source, settings))), encoding, settings)
    source = read_xml(text, title)
    if name.lower().endswith(".opf"):
        return TextDocument(Source(text, [], list(_language(source, settings))), encoding, settings)
    flow = Flow(source, partial(_role_in_contents, source), FlowWriter(" / "), is_text=False)
    return TextDocument(Source(text, list(flow.blocks())), encoding, settings)


def _role_in_contents(source: MarkupSource, number: int) -> Role:
    return Role.TEXT_BLOCK if source.tokens[number].name == "text" else Role.BLOCK


def _language(source: MarkupSource, settings: Settings) -> Iterable[tuple[Span, str]]:
    """Yield the edit that names the target language as that of the book."""
    for number, (kind, name, _, end) in enumerate(source.tokens):
        if name == "dc:language" and kind is TokenKind.START and not settings.bilingual:
            yield (end, source.tokens[source.end(number)].start), settings.tgt_lang
            return
