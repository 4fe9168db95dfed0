"""Documents that are archives: their parts keep their names, and bombs are refused."""

import io
import re
import struct
import zipfile

import docx
import pytest
from documents import parts, translated
from docx.oxml.ns import qn

from mtformer.support.errors import UserError
from mtformer.translate.documents import archive

PAGE = '<html xmlns="http://www.w3.org/1999/xhtml"><body><p>{}</p></body></html>'
CONTAINER = (
    '<container><rootfiles><rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/>'
    "</rootfiles></container>"
)


def book(pages: dict[str, str], manifest: str = "", *, extra: bytes = b"") -> bytes:
    package = f'<package xmlns="http://www.idpf.org/2007/opf"><manifest>{manifest}</manifest></package>'
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as target:
        for name, text in {"META-INF/container.xml": CONTAINER, "OEBPS/book.opf": package, **pages}.items():
            part = zipfile.ZipInfo(name)
            part.compress_type, part.extra = zipfile.ZIP_DEFLATED, extra
            target.writestr(part, text)
    return written.getvalue()


def test_parts_keep_their_names_and_extra_fields() -> None:
    extra = struct.pack("<HHBI", 0x5455, 5, 1, 1_700_000_000)  # when it was changed
    pages = {"OEBPS/b__cher.xhtml": PAGE.format("a dog"), "OEBPS/Straße.xhtml": PAGE.format("a cat")}
    name = "OEBPS/bücher.xhtml".encode()  # without the flag that says that it is UTF-8, as some programs write it
    content = book(pages, extra=extra).replace(b"OEBPS/b__cher.xhtml", name)
    changed = translated(content, "a.epub")
    assert b"A DOG" in b"".join(parts(changed).values())
    with zipfile.ZipFile(io.BytesIO(content)) as before, zipfile.ZipFile(io.BytesIO(changed)) as after:
        described = [
            [(part.orig_filename, part.flag_bits & 0x800, part.extra) for part in each.infolist()]
            for each in (before, after)
        ]
    assert described[0] == described[1]
    assert changed.count(name) == 2


@pytest.mark.parametrize("name", ["MAX_PART_BYTES", "MAX_TEXT_BYTES"])
def test_text_that_is_too_large_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = {f"{number}.xhtml": PAGE.format("a dog") + " " * 1_000 for number in range(4)}
    assert translated(book(pages), "a.epub")
    monkeypatch.setattr(archive, name, 2_000 if name == "MAX_TEXT_BYTES" else 1_000)
    with pytest.raises(UserError, match=r"a\.epub: \d\.xhtml unpacks to more than .* bytes.*, and is refused"):
        translated(book(pages), "a.epub")


def test_text_that_unpacks_to_many_times_its_size_is_refused() -> None:
    bomb = book({"0.xhtml": PAGE.format(" " * 2**24)})
    assert len(bomb) < 2**15
    with pytest.raises(UserError, match=re.escape("0.xhtml unpacks to more than 200 times its size")):
        translated(bomb, "a.epub")


def test_pages_are_those_of_the_manifest_whatever_their_names() -> None:
    manifest = (
        '<item id="a" href="one%20page.xml" media-type="application/xhtml+xml"/>'
        '<item id="b" href="../toc.xml" media-type="application/x-dtbncx+xml"/>'
        '<item id="c" href="data.xml" media-type="application/xml"/>'
    )
    pages = {
        "OEBPS/one page.xml": PAGE.format("a dog"),
        "toc.xml": "<ncx><navLabel><text>a cat</text></navLabel></ncx>",
        "OEBPS/data.xml": PAGE.format("stays"),
        "OEBPS/lost.xhtml": PAGE.format("a house"),
    }
    written = {name: part.decode() for name, part in parts(translated(book(pages, manifest), "a.epub")).items()}
    assert ">A DOG<" in written["OEBPS/one page.xml"]
    assert ">A CAT<" in written["toc.xml"]
    assert written["OEBPS/data.xml"] == pages["OEBPS/data.xml"]
    assert ">A HOUSE<" in written["OEBPS/lost.xhtml"]


def test_a_bilingual_book_has_each_id_once_and_no_tag_in_its_titles() -> None:
    page = (
        '<html xmlns="http://www.w3.org/1999/xhtml"><head><title>a dog</title></head>'
        '<body><p id="p"><a id="x" href="#p">a cat</a> is <i xml:id="y">old</i></p></body></html>'
    )
    written = parts(translated(book({"0.xhtml": page}), "a.epub", bilingual=True))["0.xhtml"].decode()
    assert "<title>a dog / A DOG</title>" in written
    assert re.findall('id="[^"]*"', written) == ['id="p"', 'id="x"', 'id="y"']
    assert '<a href="#p">A CAT</a> IS <i>OLD</i></p>' in written


def test_a_bilingual_document_of_word_has_each_number_of_a_change_once() -> None:
    document = docx.Document()
    paragraph = document.add_paragraph("a red ")
    inserted = paragraph._p.makeelement(qn("w:ins"), {qn("w:id"): "7", qn("w:author"): "A"})
    inserted.append(paragraph.add_run("dog")._r)
    paragraph._p.append(inserted)
    paragraph.add_run(" runs")
    written = io.BytesIO()
    document.save(written)
    changed = parts(translated(written.getvalue(), "a.docx", bilingual=True))["word/document.xml"].decode()
    assert re.findall('w:ins w:id="([0-9]+)"', changed) == ["7", "1000000007"]
