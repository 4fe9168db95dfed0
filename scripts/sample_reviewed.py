"""What documents of Word and Excel have after months of use, for ``sample_documents.py``."""

import io
import zipfile
from collections.abc import Sequence
from html import escape
from typing import Any

from docx.opc.packuri import PackURI
from docx.opc.part import Part
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from openpyxl.worksheet.table import Table

Parts = Sequence[tuple[str, bool]]  # of a text, and whether each is the one with a tag

_KINDS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_NOTES = "application/vnd.openxmlformats-officedocument.wordprocessingml.footnotes+xml"
_BY = 'w:author="A" w:date="2026-01-01T00:00:00Z"'


def add_review(document: Any, texts: Sequence[Parts]) -> None:
    """Add paragraphs with links, changes, notes, bookmarks, fields and a comment to a document of Word.

    Args:
        document: a document of python-docx.
        texts: five texts.
    """
    linked, changed, noted, referred, commented = texts
    link = document.part.relate_to("https://example.com/a?b=c&d=e", f"{_KINDS}/hyperlink", is_external=True)
    _add_notes(document, "".join(part for part, _ in noted))
    deleted = f"<w:del w:id='902' {_BY}><w:r><w:delText>removed words</w:delText></w:r></w:del>"
    note = "<w:r><w:footnoteReference w:id='1'/></w:r>"
    for parts, start, end in (
        (linked, f"<w:hyperlink r:id='{link}'>", "</w:hyperlink>"),
        (changed, f"<w:ins w:id='901' {_BY}>", f"</w:ins>{deleted}"),
        (noted, "<w:bookmarkStart w:id='903' w:name='here'/>", f"<w:bookmarkEnd w:id='903'/>{note}"),
        (referred, _field(' HYPERLINK "https://example.com" ', "", "begin", "separate"), _field("", "", "end")),
        ([*referred, (" ", False)], "", _field(" PAGE ", _run("1"), "begin", "separate") + _field("", "", "end")),
    ):
        inside = "".join(f"{start}{_run(part)}{end}" if is_tagged else _run(part) for part, is_tagged in parts)
        document.element.body.insert_element_before(parse_xml(f"<w:p {nsdecls('w', 'r')}>{inside}</w:p>"), "w:sectPr")
    paragraph = document.add_paragraph()
    runs = [(paragraph.add_run(part), is_tagged) for part, is_tagged in commented]
    document.add_comment([run for run, is_tagged in runs if is_tagged] or runs[0][0], "is this right?", "A", "A")


def _run(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{escape(text, quote=False)}</w:t></w:r>'


def _field(code: str, shown: str, *kinds: str) -> str:
    """Return the marks of a field: its code follows the first, and what it shows the last."""
    marks = [f"<w:r><w:fldChar w:fldCharType='{kind}'/></w:r>" for kind in kinds]
    instruction = f"<w:r><w:instrText xml:space='preserve'>{escape(code)}</w:instrText></w:r>" if code else ""
    return instruction.join(marks) + shown


def _add_notes(document: Any, text: str) -> None:
    separators = "".join(
        f"<w:footnote w:type='{kind}' w:id='{id}'><w:p><w:r><w:{kind}/></w:r></w:p></w:footnote>"
        for id, kind in ((-1, "separator"), (0, "continuationSeparator"))
    )
    note = f"<w:footnote w:id='1'><w:p><w:r><w:footnoteRef/></w:r>{_run(' ' + text)}</w:p></w:footnote>"
    content = f"<w:footnotes {nsdecls('w')}>{separators}{note}</w:footnotes>".encode()
    part = Part(PackURI("/word/footnotes.xml"), _NOTES, content, document.part.package)
    document.part.relate_to(part, f"{_KINDS}/footnotes")


def add_table(sheet: Any) -> None:
    """Add a table whose headings formulas may name, with characters that XML writes otherwise."""
    for row in ("R&D cost", "Unit\nprice", "Name "), (1, 2, 3):
        for column, value in zip("GHI", row, strict=True):
            sheet[f"{column}{1 if isinstance(value, str) else 2}"] = value
    sheet.add_table(Table(displayName="Costs", ref="G1:I2"))


def with_readings(workbook: bytes) -> bytes:
    """Return a workbook whose first text has a reading above it, as Japanese ones have."""
    written = io.BytesIO()
    reading = '</t><rPh sb="0" eb="2"><t>reading</t></rPh><phoneticPr fontId="1"/></si>'
    with zipfile.ZipFile(io.BytesIO(workbook)) as old, zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            part = old.read(name)
            if name == "xl/sharedStrings.xml":
                part = part.replace(b"</t></si>", reading.encode(), 1)
            new.writestr(name, part)
    return written.getvalue()
