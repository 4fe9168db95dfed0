"""Readers of documents that are not ours, for ``check_documents.py``: what is in a document, and what stays in it."""

import csv
import io
import json
import re
import zipfile
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import docx
import markdown
import openpyxl
import polib
import pptx
import webvtt
import yaml

_XML = "{http://www.w3.org/XML/1998/namespace}"


def texts(content: bytes, suffix: str, language: str | None) -> list[str]:
    """Return the texts of a document that LibreOffice does not render.

    Args:
        content: its bytes.
        suffix: that of its name.
        language: of a file of several languages, the one to read; None for the source.
    """
    return _READERS[suffix](content, language)


def _epub(content: bytes, language: str | None) -> list[str]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = [name for name in archive.namelist() if name.endswith((".xhtml", ".ncx"))]
        return ["".join(ElementTree.fromstring(archive.read(name)).itertext()) for name in names]


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def _markdown(content: bytes, language: str | None) -> list[str]:
    page = _Page()
    page.feed(markdown.markdown(content.decode(), extensions=["tables", "fenced_code"]))
    return page.texts


def _catalogue(content: bytes, language: str | None) -> list[str]:
    return [entry.msgstr if language else entry.msgid for entry in polib.pofile(content.decode())]


def _xliff(content: bytes, language: str | None) -> list[str]:
    found = ElementTree.fromstring(content).iterfind(f".//{{*}}{'target' if language else 'source'}")
    return ["".join(unit.itertext()) for unit in found]


def _tmx(content: bytes, language: str | None) -> list[str]:
    variants = ElementTree.fromstring(content).iterfind(".//tuv")
    return ["".join(each.itertext()).strip() for each in variants if each.get(f"{_XML}lang") == (language or "en")]


def _captions(name: str) -> Callable[[bytes, str | None], list[str]]:
    def read(content: bytes, language: str | None) -> list[str]:
        captions = webvtt.from_buffer(io.BytesIO(content), format=name).captions
        times = [time for caption in captions for time in (caption.start, caption.end)]
        return [*times, *(caption.text for caption in captions)]  # a word may move to another caption

    return read


def _messages(content: bytes, language: str | None) -> list[str]:
    of_language: dict[str, str] = yaml.safe_load(content)[language or "en"]
    return list(of_language.values())


def _table(content: bytes, language: str | None) -> list[str]:
    return [cell for row in csv.reader(io.StringIO(content.decode(), newline="")) for cell in row]


_READERS: dict[str, Callable[[bytes, str | None], list[str]]] = {
    ".epub": _epub,
    ".md": _markdown,
    ".po": _catalogue,
    ".xlf": _xliff,
    ".tmx": _tmx,
    ".srt": _captions("srt"),
    ".vtt": _captions("vtt"),
    ".json": lambda content, language: list(json.loads(content).values()),
    ".yaml": _messages,
    ".csv": _table,
}


def without_translations(content: bytes, suffix: str, languages: tuple[str, str]) -> bytes:
    """Return a document without the translations that it has got, and with the name of the source language."""
    source, target = (language.encode() for language in languages)
    pattern, written = {
        ".po": (rb'^msgstr "[^\n]+"$', b'msgstr ""'),
        ".xlf": (rb"<target[^>]*>.*?</target>| target-language=\"\w+\"", b""),
        ".tmx": (rb'<tuv xml:lang="%b">.*?</tuv>' % target, b""),
        ".html": (rb'(?<=<html lang=")%b(?=")' % target, source),
        ".yaml": (rb"^%b(?=:$)" % target, source),
    }.get(suffix, (rb"\Z.", b""))
    return re.sub(pattern, written, content, flags=re.MULTILINE)


def kept(path: Path) -> list[object]:
    """Return what a translation of a document of Office must not change: comments, addresses, formulas, headings.

    Raises:
        ValueError: a table has other headings than its cells.
    """
    if path.suffix == ".docx":
        document = docx.Document(str(path))
        links = [link.address for paragraph in document.paragraphs for link in paragraph.hyperlinks]
        return [*links, *(comment.text for comment in document.comments)]
    if path.suffix == ".xlsx":
        sheets = openpyxl.load_workbook(path).worksheets
        return [item for sheet in sheets for item in _of_sheet(sheet)]
    if path.suffix == ".pptx":
        return [len(slide.shapes) for slide in pptx.Presentation(str(path)).slides]
    return []


def _of_sheet(sheet: openpyxl.worksheet.worksheet.Worksheet) -> list[object]:
    headings = []
    for table in sheet.tables.values():
        names = [column.name for column in table.tableColumns]
        cells = [cell.value for cell in sheet[table.ref][0]]
        if [re.sub("_x000[aA]_", "\n", name) for name in names] != cells:
            raise ValueError(f"the table {table.name} has the headings {names}, and its cells {cells}")
        headings += names
    values = (cell.value for row in sheet.iter_rows() for cell in row)
    return [*headings, *(value for value in values if not isinstance(value, str) or value.startswith("="))]
