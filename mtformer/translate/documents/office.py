"""Office Open XML: Word, PowerPoint and Excel. Macros and all other parts are copied; nothing is executed."""

import re
from collections.abc import Iterable, Iterator
from functools import partial

from mtformer.support.errors import UserError
from mtformer.translate.documents.archive import Archive
from mtformer.translate.documents.blocks import Block
from mtformer.translate.documents.flow import attribute_block
from mtformer.translate.documents.inline import Text
from mtformer.translate.documents.markup_tokens import MarkupSource, TokenKind, decoded
from mtformer.translate.documents.runs import Dialect, paragraphs
from mtformer.translate.documents.seam import ArchiveDocument, DocumentSettings, TextDocument
from mtformer.translate.markup.scanner import unescape

_WORD_TEXT = Dialect(
    frozenset(["w:p"]),
    "w:",
    "<{0}r><{0}br/></{0}r>",
    frozenset(["br", "cr"]),
    containers=frozenset("w:hyperlink w:ins w:moveTo w:smartTag w:customXml w:sdt w:fldSimple w:bdo w:dir".split()),
    dropped=frozenset(["proofErr", "lastRenderedPageBreak", "softHyphen"]),
)
_DRAWING = Dialect(frozenset(["a:p"]), "a:", "<{0}br/>", marks_spaces=False)
_SHEET = Dialect(
    frozenset(["si", "is"]),
    "",
    '<{0}r><{0}t xml:space="preserve">\n</{0}t></{0}r>',
    dropped=frozenset(["rPh", "phoneticPr"]),  # readings count the characters of the source
    line_end=r"(?:_x000[dD]_)?\r?\n",
    code=r"_x[0-9A-Fa-f]{4}_",
)
# The parts with text, and how it is written there; those of one pattern in the order of their numbers.
_WORD = (
    (r"word/document\d*\.xml", _WORD_TEXT),
    (r"word/(?:header|footer)\d*\.xml", _WORD_TEXT),
    (r"word/(?:footnotes|endnotes)\.xml", _WORD_TEXT),
    (r"word/(?:charts/chart|diagrams/data|diagrams/drawing)\d*\.xml", _DRAWING),
)
_POWERPOINT = (
    (r"ppt/slides/slide\d*\.xml", _DRAWING),
    (r"ppt/notesSlides/notesSlide\d*\.xml", _DRAWING),
    (r"ppt/(?:charts/chart|diagrams/data|diagrams/drawing)\d*\.xml", _DRAWING),
)
_EXCEL = (
    (r"xl/sharedStrings\.xml", _SHEET),
    (r"xl/worksheets/sheet\d*\.xml", _SHEET),
    (r"xl/(?:drawings/drawing|charts/chart|diagrams/data|diagrams/drawing)\d*\.xml", _DRAWING),
)
_DELETED = ("w:del", "w:moveFrom")
_FORMULA = re.compile(r"<(?:\w+:)?(?:f|formula[12]?|definedName)(?:\s[^<>]*)?>([^<]+)<")
_OPERATOR = re.compile("^(?:<>|[<>]=?|=)")  # of a criterion, as in COUNTIF(A:A,"<>Ja")
_STRING = re.compile(r'"((?:[^"]|"")*)"')
_NUMBER = re.compile(r"\d+")


def _read(
    content: bytes, settings: DocumentSettings, *, program: str, main: str, patterns: Iterable[tuple[str, Dialect]]
) -> ArchiveDocument:
    """Read a document; what formulas of a workbook name or compare is kept: headings of tables, and whole cells.

    Args:
        content: its bytes.
        settings: how it is read.
        program: the program that wrote it.
        main: the name of its main part.
        patterns: the names of its parts with text, and the dialect of each.

    Raises:
        UserError: it is not such a document, or is damaged, encrypted or too large.
    """
    archive = Archive(content, settings.name)
    names = sorted(archive.names, key=lambda name: [int(number) for number in _NUMBER.findall(name)])
    if not all(any(_is_named(part, name) for name in names) for part in (r"\[Content_Types\]\.xml", main)):
        raise UserError(f"{settings.name} is not a document of {program}: the main part is missing")
    kept = _headings(archive) | _constants(archive)
    with_text = ((name, dialect) for pattern, dialect in patterns for name in names if _is_named(pattern, name))
    parts = ((name, _part(archive, name, settings, dialect, kept)) for name, dialect in with_text)
    return ArchiveDocument(archive, ((name, part) for name, part in parts if part.units))


read_word = partial(_read, program="Word", main=r"word/document\d*\.xml", patterns=_WORD)
read_powerpoint = partial(_read, program="PowerPoint", main=r"ppt/presentation\.xml", patterns=_POWERPOINT)
read_excel = partial(_read, program="Excel", main=r"xl/workbook\.xml", patterns=_EXCEL)


def _is_named(pattern: str, name: str) -> bool:
    """Tell whether a part has a name: libraries leave out the first number, and case does not count."""
    return re.fullmatch(pattern, name, re.IGNORECASE) is not None


def _part(
    archive: Archive, name: str, settings: DocumentSettings, dialect: Dialect, kept: frozenset[str]
) -> TextDocument:
    source, encoding = archive.read_xml(name)
    blocks = [*paragraphs(source, dialect, joins=not settings.bilingual), *_descriptions(source)]
    if kept:
        blocks = [block for block in blocks if _plain(block) not in kept]
    return TextDocument(source.text, encoding, settings, blocks)


def _descriptions(source: MarkupSource) -> Iterator[Block]:
    """Yield the descriptions of images and other drawings, except deleted ones."""
    deleted = -1  # the last token of a deleted element
    for number, (kind, name, start, end) in enumerate(source.tokens):
        if name in _DELETED and kind is TokenKind.START:
            deleted = max(deleted, source.end(number))
        elif number > deleted and name.endswith((":docPr", ":cNvPr")):
            for attribute, begin, stop in source.attribute_spans(start, end):
                if attribute in ("descr", "title"):
                    yield from attribute_block(source, (begin, stop))


def _headings(archive: Archive) -> frozenset[str]:
    """Return the headings of the tables of a workbook."""
    found: set[str] = set()
    for name in archive.names:
        if _is_named(r"xl/(?:tables/table|pivotCache/pivotCacheDefinition)\d*\.xml", name):
            source, _ = archive.read_xml(name)
            for number in source.elements("tableColumn", "cacheField"):
                found.add(_decoded(source.attributes(number).get("name", "")))
    return frozenset(found)


def _constants(archive: Archive) -> frozenset[str]:
    """Return the strings in the formulas of a workbook, and the entries of its lists of allowed values."""
    found: set[str] = set()
    for name in archive.names:
        if _is_named(r"xl/(?:workbook|worksheets/[^/]+)\.xml", name):
            part, _ = decoded(archive.read(name), f"{archive.name}: {name}")
            for formula in map(unescape, _FORMULA.findall(part)):
                is_list = _STRING.fullmatch(formula) is not None  # of allowed values
                for string in _STRING.findall(formula):
                    text = string.replace('""', '"')
                    found.update(text.split(",") if is_list else [_OPERATOR.sub("", text)])
    return frozenset(map(_decoded, found))


def _plain(block: Block) -> str:
    """Return the text of a cell, including marks that stand for characters."""
    parts = (
        token.text if isinstance(token, Text) else "".join(p for p in token.raw if isinstance(p, str))
        for token in block.tokens
    )
    return _decoded(re.sub("<[^<>]*>", "", "".join(parts)))


def _decoded(text: str) -> str:
    """Decode the codes of a workbook text and simplify its spaces and capitals, to compare it."""
    return " ".join(re.sub("_x([0-9A-Fa-f]{4})_", lambda code: chr(int(code[1], 16)), text).casefold().split())
