"""Documents of many formats whose text is given, for ``check_documents.py``.

A text is a sentence with ``<b>`` around a phrase. Each document has the texts in its own markup, and beside them what
documents have: headings, tables, lists, images, links, headers, notes and long pages.
"""

import io
import json
import re
import sysconfig
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import docx
import openpyxl
import pptx
from docx.shared import Pt
from openpyxl.worksheet.properties import PageSetupProperties
from PIL import Image
from sample_reviewed import add_review, add_table, with_readings

Build = Callable[[Sequence[str], int], bytes]
_PAIRS = (  # of XLIFF
    ("<g id='1'>", "</g>"),
    ("<bpt id='1' rid='1'>&lt;b&gt;</bpt>", "<ept id='2' rid='1'>&lt;/b&gt;</ept>"),
    ("<bx id='1'/>", "<ex id='1'/>"),
)
_TMX_PAIR = ("<bpt i='1'>&lt;b&gt;</bpt>", "<ept i='1'>&lt;/b&gt;</ept>")
TITLE, HEADER = "The report of this year", "A header of the page"


def parts(text: str) -> list[tuple[str, bool]]:
    """Return the parts of a text, and whether each is bold."""
    return [(part, place % 2 == 1) for place, part in enumerate(re.split("</?b>", text)) if part]


def plain(text: str) -> str:
    """Return a text without its tags."""
    return re.sub("</?b>", "", text)


def picture() -> io.BytesIO:
    """Return a small image."""
    file = io.BytesIO()
    Image.new("RGB", (60, 40), "teal").save(file, "PNG")
    file.seek(0)
    return file


def word(texts: Sequence[str], variant: int) -> bytes:
    """Build a document of Word; every other one has runs that are divided at random, as after corrections."""
    document: Any = docx.Document()
    document.add_heading(TITLE, 1)
    document.sections[0].header.paragraphs[0].text = HEADER
    for number, text in enumerate(texts):
        paragraph = document.add_paragraph(style="List Bullet" if number % 3 == 2 else None)
        for part, is_bold in parts(text):
            for piece in re.findall(r".{1,7}", part) if variant % 2 else [part]:
                run = paragraph.add_run(piece)
                run.bold = is_bold or None
                run.font.size = Pt(9 + variant % 4)
    add_review(document, [parts(text) for text in texts[:5]])
    document.add_picture(picture())
    table = document.add_table(len(texts), 2)
    for row, text in enumerate(texts):
        table.cell(row, 0).text, table.cell(row, 1).text = plain(text), str(row)
    if variant % 3 == 0:
        document.add_page_break()
        document.add_paragraph(" ".join(map(plain, texts)))
    return _saved(document)


def long_document(n_paragraphs: int) -> bytes:
    """Build a document of Word with paragraphs of four sentences."""
    file = io.BytesIO()
    paragraph = (
        f"<w:p><w:r><w:t>{'The old man likes the small dog and his house near the river. ' * 4}</w:t></w:r></w:p>"
    )
    with zipfile.ZipFile(io.BytesIO(word(["a <b>dog</b>"] * 5, 1))) as old, zipfile.ZipFile(file, "w") as new:
        for name in old.namelist():
            part = old.read(name)
            if name == "word/document.xml":
                part = part.replace(b"<w:body>", b"<w:body>" + paragraph.encode() * n_paragraphs)
            new.writestr(name, part)
    return file.getvalue()


def slides(texts: Sequence[str], variant: int) -> bytes:
    """Build a presentation with a slide for each text, notes and a table."""
    deck = pptx.Presentation()
    for text in texts:
        slide = deck.slides.add_slide(deck.slide_layouts[1 if variant % 2 else 3])
        slide.shapes.title.text = TITLE
        paragraph = slide.placeholders[1].text_frame.paragraphs[0]
        for part, is_bold in parts(text):
            run = paragraph.add_run()
            run.text, run.font.bold = part, is_bold or None
        slide.notes_slide.notes_text_frame.text = plain(text)
    deck.slides[0].shapes.add_picture(picture(), 0, 0)
    return _saved(deck)


def sheet(texts: Sequence[str], variant: int) -> bytes:
    """Build a workbook with texts, numbers, formulas and a table; every other one has readings of characters."""
    book = openpyxl.Workbook()
    for row, text in enumerate(texts, 1):
        book.active.append([plain(text), row, f"=B{row}*2"])
    book.active["E1"] = "\n".join(map(plain, texts[:2]))
    book.active.column_dimensions["A"].width = book.active.column_dimensions["E"].width = 120  # nothing is cut off
    book.active.sheet_properties.pageSetUpPr = PageSetupProperties(fitToPage=True)
    add_table(book.active)
    return with_readings(_saved(book)) if variant % 2 else _saved(book)


def page(texts: Sequence[str], variant: int) -> bytes:
    """Build a page with a list, a table, code and a script."""
    items = "".join(f"<p>{_wrapped(text) if variant % 2 else text}</p>\n" for text in texts)
    cells = "".join(f"<tr><td>{plain(text)}<td>{row}</tr>" for row, text in enumerate(texts))
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{TITLE}</title></head><body>\n'
        f"<h1>{TITLE}</h1>{items}<script>let a = '<b>x</b>';</script><pre>code stays</pre><table>{cells}</table>"
        f"<ul><li>{plain(texts[0])}<li><a href='http://a.b/?c=1&amp;d=2'>{plain(texts[1])}</a></ul></body></html>\n"
    ).encode()


def book(texts: Sequence[str], variant: int) -> bytes:
    """Build a book with a page for each text."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr("META-INF/container.xml", "<container/>")
        archive.writestr("toc.ncx", f"<ncx><navLabel><text>{TITLE}</text></navLabel></ncx>")
        for number, text in enumerate(texts):
            body = f'<html xmlns="http://www.w3.org/1999/xhtml"><body><p>{text}</p></body></html>'
            archive.writestr(f"page{number}.xhtml", f'<?xml version="1.0" encoding="UTF-8"?>\n{body}')
    return file.getvalue()


def markdown(texts: Sequence[str], variant: int) -> bytes:
    """Build a text in Markdown."""
    marked = [text.replace("<b>", "**").replace("</b>", "**") for text in texts]
    lines = "\n\n".join(map(_wrapped, marked) if variant % 2 else marked)
    rows = "\n".join(f"| {plain(text)} | {row} |" for row, text in enumerate(texts))
    return f"# {TITLE}\n\n{lines}\n\n```\ncode stays\n```\n\n| text | n |\n|---|---|\n{rows}\n".encode()


def subtitles(texts: Sequence[str], variant: int) -> bytes:
    """Build subtitles, whose sentences run over two cues in every other file."""
    cues = []
    for text in map(plain, texts):
        words = text.split(" ")
        middle = len(words) // 2 if variant % 2 else len(words)
        cues += [part for part in (" ".join(words[:middle]), " ".join(words[middle:])) if part]
    times = (f"00:00:{n:02},000 --> 00:00:{n + 1:02},000" for n in range(len(cues)))
    return "".join(f"{n}\n{time}\n{cue}\n\n" for n, (time, cue) in enumerate(zip(times, cues, strict=True), 1)).encode()


def captions(texts: Sequence[str], variant: int) -> bytes:
    """Build WebVTT from the subtitles, with settings and a note."""
    cues = re.sub(r"(\d),(\d{3})", r"\1.\2", subtitles(texts, variant).decode()).replace(".000\n", ".000 align:start\n")
    return f"WEBVTT - {TITLE}\n\nNOTE this is for editors\n\n{cues}".encode()


def catalogue(texts: Sequence[str], variant: int) -> bytes:
    """Build a catalogue of gettext."""
    header = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
    return (header + "".join(f'\n#: a.c:{n}\nmsgid {json.dumps(t)}\nmsgstr ""\n' for n, t in enumerate(texts))).encode()


def messages(texts: Sequence[str], variant: int) -> bytes:
    """Build messages in JSON."""
    return json.dumps({f"key{n}": text for n, text in enumerate(texts)}, indent=2).encode() + b"\n"


def units(texts: Sequence[str], variant: int) -> bytes:
    """Build XLIFF, with the tags that it has for pairs."""
    start, end = _PAIRS[variant % len(_PAIRS)]
    inner = [text.replace("<b>", start).replace("</b>", end) for text in texts]
    rows = "".join(f'<trans-unit id="{n}"><source>{text}</source></trans-unit>\n' for n, text in enumerate(inner))
    head = '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file source-language="en"><body>\n'
    return f"{head}{rows}</body></file></xliff>\n".encode()


def memory(texts: Sequence[str], variant: int) -> bytes:
    """Build TMX."""
    start, end = _TMX_PAIR
    inner = [text.replace("<b>", start).replace("</b>", end) for text in texts]
    rows = "".join(f'<tu><tuv xml:lang="en"><seg>{text}</seg></tuv></tu>\n' for text in inner)
    return f'<tmx version="1.4"><header srclang="en"/><body>\n{rows}</body></tmx>\n'.encode()


def yaml_messages(texts: Sequence[str], variant: int) -> bytes:
    """Build messages in YAML, as Rails has them."""
    rows = "".join(f"  key{n}: {json.dumps(text) if n % 2 else text}\n" for n, text in enumerate(map(plain, texts)))
    return f"# for Rails\nen:\n{rows}".encode()


def rows(texts: Sequence[str], variant: int) -> bytes:
    """Build a table in CSV, some of whose cells have quotes."""
    return "".join(f'{n},"{plain(text)}, ""{n}"""\r\n' for n, text in enumerate(texts)).encode()


BUILDERS: dict[str, Build] = {
    ".docx": word,
    ".pptx": slides,
    ".xlsx": sheet,
    ".html": page,
    ".epub": book,
    ".md": markdown,
    ".srt": subtitles,
    ".po": catalogue,
    ".json": messages,
    ".xlf": units,
    ".vtt": captions,
    ".tmx": memory,
    ".yaml": yaml_messages,
    ".csv": rows,
}


def bold_texts(content: bytes, suffix: str) -> list[str]:
    """Return the texts of a document in which something is bold, with their tags, in order."""
    if suffix == ".docx":
        paragraphs = docx.Document(io.BytesIO(content)).paragraphs
        found = ["".join(_tagged(run.text, run.bold) for run in paragraph.runs) for paragraph in paragraphs]
    elif suffix == ".pptx":
        shapes = [slide.placeholders[1] for slide in pptx.Presentation(io.BytesIO(content)).slides]
        found = ["".join(_tagged(run.text, run.font.bold) for run in s.text_frame.paragraphs[0].runs) for s in shapes]
    elif suffix == ".epub":
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            pages = sorted((n for n in archive.namelist() if n.startswith("page")), key=lambda n: int(n[4:-6]))
            found = [re.findall("<p>(.*)</p>", archive.read(name).decode())[0] for name in pages]
    else:
        text = content.decode()
        text = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", text) if suffix == ".md" else text
        for start, end in [*_PAIRS, _TMX_PAIR] if suffix in (".xlf", ".tmx") else []:
            text = text.replace(start, "<b>").replace(end, "</b>")
        pattern = {
            ".html": "<p>(.*?)</p>",
            ".po": '^msgstr "(.*)"',
            ".json": '": "(.*)"',
            ".xlf": "<target[^>]*>(.*?)</target>",
            ".tmx": '<tuv xml:lang="(?!en).*?<seg>(.*?)</seg>',
        }.get(suffix, "^(.*<b>.*)$")
        found = re.findall(pattern, text, re.MULTILINE | re.DOTALL if suffix == ".html" else re.MULTILINE)
    return [text for text in found if "<b>" in text]


def shipped() -> list[Path]:
    """Return documents that installed packages have."""
    roots = [Path(sysconfig.get_paths()["purelib"]), Path("/usr/lib/libreoffice/share/template")]
    roots += [Path(docx.__file__).parents[1]]
    suffixes = (".docx", ".pptx", ".xlsx", ".odt", ".ods", ".odp")
    return sorted({path for root in roots for path in root.rglob("*") if path.suffix in suffixes})


def _tagged(text: str, is_bold: bool | None) -> str:
    return f"<b>{text}</b>" if is_bold else text


def _wrapped(text: str) -> str:
    words = text.split(" ")
    return " ".join(words[: len(words) // 2]) + "\n" + " ".join(words[len(words) // 2 :])


def _saved(document: Any) -> bytes:
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()
