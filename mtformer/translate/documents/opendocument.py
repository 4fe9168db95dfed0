"""OpenDocument: texts, tables and slides of LibreOffice."""

import re
from functools import partial

from mtformer.support.errors import UserError
from mtformer.translate.documents.archive import Archive
from mtformer.translate.documents.flow import Flow, Role, between_tags, with_line_breaks
from mtformer.translate.documents.inline import Writer
from mtformer.translate.documents.markup_tokens import MarkupSource, TokenKind
from mtformer.translate.documents.runs import CODE_WORD
from mtformer.translate.documents.seam import ArchiveDocument, DocumentSettings, TextDocument

_DESCRIPTIONS = dict.fromkeys(("svg:title", "svg:desc"), " / ")  # of images, in which no tag may stand
_ROLES = {
    **dict.fromkeys(("text:p", "text:h", *_DESCRIPTIONS), Role.TEXT_BLOCK),
    **dict.fromkeys(
        ("text:span", "text:a", "text:meta", "text:meta-field", "text:ruby", "text:ruby-base", "loext:content-control"),
        Role.INLINE,
    ),
    **dict.fromkeys(("text:tracked-changes", "office:scripts"), Role.HIDDEN),
    "office:annotation": Role.COMMENT,
    "text:note": Role.NESTED,
    "text:ruby-text": Role.READING,
    "text:tab": Role.BREAK,
    "text:line-break": Role.LINE_BREAK,
}
_FIELD = re.compile(  # whose text LibreOffice computes
    r"text:(?:page|date|time|author|chapter|file|title|subject|sequence|reference|bookmark-ref|note-ref|note-citation)"
)
_CODE = re.compile(rf'text:style-name="[^"]*(?:{CODE_WORD}|Source_20_Text)')
_FORMULA = re.compile(r"\stable:formula=")
_PARTS = ("content.xml", "styles.xml")


def _role(source: MarkupSource, number: int) -> Role:
    kind, name, start, end = source.tokens[number]
    other = Role.CODE if _FIELD.match(name) else Role.NESTED if name.startswith("draw:") else Role.POINT
    role = _ROLES.get(name, other)
    if kind is TokenKind.START and role in (Role.TEXT_BLOCK, Role.INLINE) and _CODE.search(source.text, start, end):
        return Role.HIDDEN if role is Role.TEXT_BLOCK else Role.CODE
    if name == "table:table-cell" and _FORMULA.search(source.text, start, end):
        return Role.HIDDEN
    return role


def read(content: bytes, settings: DocumentSettings) -> ArchiveDocument:
    """Read a text, a table or slides.

    Raises:
        UserError: it is not such a document, or is damaged, encrypted or too large.
    """
    archive = Archive(content, settings.name)
    if "content.xml" not in archive.names:
        raise UserError(f"{settings.name} is not an OpenDocument document: content.xml is missing")
    if b"encryption-data" in (
        archive.read("META-INF/manifest.xml") if "META-INF/manifest.xml" in archive.names else b""
    ):
        raise UserError(f"{settings.name} has a password: save it without one")
    names = [name for name in _PARTS if name in archive.names]
    return ArchiveDocument(archive, ((name, _part(archive, name, settings)) for name in names))


def _part(archive: Archive, name: str, settings: DocumentSettings) -> TextDocument:
    source, encoding = archive.read_xml(name)
    writer, joins = Writer("<text:line-break/>", between_tags), not settings.bilingual
    flow = Flow(source, partial(_role, source), writer, is_text=False, joins=joins)
    return TextDocument(source.text, encoding, settings, with_line_breaks(source, flow.blocks(), _DESCRIPTIONS))
