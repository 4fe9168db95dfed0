"""Documents of Word, PowerPoint and Excel: their text is translated in whole sentences, and all else stays."""

import io
import re
import zipfile
from collections.abc import Callable, Sequence
from typing import Any

import docx
import openpyxl
import pptx
import pytest
from documents import backwards, identity, n_steps, parts, translated, units, with_part
from docx.oxml import OxmlElement, parse_xml
from docx.oxml.ns import nsdecls, qn
from openpyxl.formatting.rule import CellIsRule
from openpyxl.worksheet.datavalidation import DataValidation

from mtformer.support.errors import UserError
from mtformer.translate.documents import archive, markup_tokens, seam


def saved(document: Any) -> bytes:
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def runs(paragraph: Any) -> list[tuple[str, bool, bool]]:
    return [(run.text, bool(run.bold), bool(run.italic)) for run in paragraph.runs]


def word(build: Callable[[Any], object]) -> bytes:
    document = docx.Document()
    build(document)
    return saved(document)


def paragraph_of(content: bytes) -> Any:
    return docx.Document(io.BytesIO(content)).paragraphs[0]


def formatted(document: Any) -> None:
    """Add a sentence whose runs are divided as Word divides them, with its full stop apart."""
    paragraph = document.add_paragraph("The ")
    paragraph.add_run("old m").bold = True
    paragraph.add_run("an").bold = True
    paragraph.add_run(" likes the sm")
    paragraph.add_run("all dog")
    paragraph.add_run(".").italic = True


def test_runs_of_one_format_are_one_text_and_punctuation_has_no_format_of_its_own() -> None:
    assert units(word(formatted), "a.docx") == ["The <1>old man</1> likes the small dog."]
    assert runs(paragraph_of(translated(word(formatted), "a.docx"))) == [
        ("THE ", False, False),
        ("OLD MAN", True, False),
        (" LIKES THE SMALL DOG.", False, False),
    ]


def test_formulas_are_words_of_their_sentence_in_both_languages() -> None:
    def build(document: Any) -> None:
        paragraph = document.add_paragraph("The dog ")
        formula = OxmlElement("m:oMath")
        formula.append(OxmlElement("m:r"))
        paragraph._p.append(formula)
        paragraph.add_run(" runs.")

    content = word(build)
    assert units(content, "a.docx") == ["The dog <1/> runs."]
    assert b"".join(parts(translated(content, "a.docx", bilingual=True)).values()).count(b"<m:oMath>") == 2


def test_descriptions_of_images_are_translated_at_their_places() -> None:
    described = 'descr="A dog &amp; a &quot;cat&quot;"'

    def build(document: Any) -> None:
        paragraph = document.add_paragraph("The dog ")
        drawing = parse_xml(
            f'<w:r {nsdecls("w", "wp")}><w:drawing><wp:inline><wp:docPr id="1" name="Picture 1" {described}/>'
            "</wp:inline></w:drawing></w:r>"
        )
        paragraph._p.append(drawing)
        paragraph.add_run(" runs.")

    content = word(build)
    assert units(content, "a.docx") == ["The dog <1/> runs.", 'A dog &amp; a "cat"']
    main = parts(content)["word/document.xml"]
    deleted = main.replace(b"<w:drawing>", b"<w:del><w:drawing>").replace(b"</w:drawing>", b"</w:drawing></w:del>")
    assert units(with_part(content, "word/document.xml", deleted), "a.docx") == ["The dog <1/> runs."]
    written = parts(translated(content, "a.docx"))["word/document.xml"].decode()
    assert 'name="Picture 1" descr="A DOG &amp; A &quot;CAT&quot;"/>' in written
    assert written.index("THE DOG") < written.index("A DOG") < written.index("RUNS.")
    written = parts(translated(content, "a.docx", bilingual=True))["word/document.xml"].decode()
    assert 'descr="A dog &amp; a &quot;cat&quot; / A DOG &amp; A &quot;CAT&quot;"' in written

    slides = pptx.Presentation()
    slides.slides.add_slide(slides.slide_layouts[6]).shapes.add_textbox(0, 0, 9, 9)
    slides.slides[0].shapes[0]._element.nvSpPr.cNvPr.set("descr", "A house")
    assert units(saved(slides), "a.pptx") == ["A house"]


def test_punctuation_stays_outside_of_a_format_that_is_not_its_own() -> None:
    def build(document: Any) -> None:
        paragraph = document.add_paragraph("The dog is ")
        paragraph.add_run("old").bold = True
        paragraph.add_run(".")

    assert units(word(build), "a.docx") == ["The dog is <1>old</1>."]


def test_a_format_follows_its_words() -> None:
    found = runs(paragraph_of(translated(word(formatted), "a.docx", backwards)))
    assert [(text.strip(), bold) for text, bold, _ in found] == [
        ("dog. small the likes", False),
        ("man old", True),
        ("The", False),
    ]


def test_tables_headers_footnotes_and_text_boxes_are_translated_and_code_is_not() -> None:
    def build(document: Any) -> None:
        document.add_heading("A title", 1)
        table = document.add_table(1, 2)
        table.cell(0, 0).text, table.cell(0, 1).text = "a < b & c", "12"
        document.sections[0].header.paragraphs[0].text = "a header"
        document.styles.add_style("SourceCode", 1)
        document.add_paragraph("int main()", "SourceCode")
        document.add_paragraph("Name:\tTom")

    content = word(build)
    assert units(content, "a.docx") == ["A title", "a &lt; b &amp; c", "Name:", "Tom", "a header"]
    document = docx.Document(io.BytesIO(translated(content, "a.docx")))
    assert document.tables[0].cell(0, 0).text == "A < B & C"
    assert [paragraph.text for paragraph in document.paragraphs] == ["A TITLE", "int main()", "NAME:\tTOM"]
    assert document.sections[0].header.paragraphs[0].text == "A HEADER"


def with_text_box(document: Any) -> None:
    run = document.add_paragraph("Before ").add_run()
    inner = "<w:p><w:r><w:t>inside the box</w:t></w:r></w:p>"
    box = docx.oxml.parse_xml(
        f'<w:pict {docx.oxml.ns.nsdecls("w")} xmlns:v="urn:schemas-microsoft-com:vml"><v:shape><v:textbox>'
        f"<w:txbxContent>{inner}</w:txbxContent></v:textbox></v:shape></w:pict>"
    )
    run._r.append(box)
    document.paragraphs[-1].add_run("after.")


def test_a_text_box_stays_in_its_sentence_and_its_text_is_translated() -> None:
    content = word(with_text_box)
    assert units(content, "a.docx") == ["Before <1/>after.", "inside the box"]
    xml = parts(translated(content, "a.docx"))["word/document.xml"].decode()
    assert [text in xml for text in ("BEFORE", "INSIDE THE BOX", "AFTER.", "inside")] == [True, True, True, False]


def test_links_stay_and_what_word_computes_is_not_translated() -> None:
    def field(paragraph: Any, code: str, text: str) -> None:
        for kind in ("begin", code, "separate", text, "end"):
            run = paragraph.add_run()
            if kind in ("begin", "separate", "end"):
                char = OxmlElement("w:fldChar")
                char.set(qn("w:fldCharType"), kind)
                run._r.append(char)
            elif kind == code:
                instruction = OxmlElement("w:instrText")
                instruction.text = kind
                run._r.append(instruction)
            else:
                run.text = kind

    def build(document: Any) -> None:
        paragraph = document.add_paragraph("See ")
        field(paragraph, ' HYPERLINK "http://a.b/" ', "our page")
        paragraph.add_run(" of ")
        field(paragraph, " DATE ", "4 May")
        paragraph.add_run(" now.")

    content = word(build)
    assert units(content, "a.docx") == ["See <1>our page</1> of <2/> now."]
    text = paragraph_of(translated(content, "a.docx")).text
    assert text == "SEE OUR PAGE OF 4 May NOW."


def test_tracked_deletions_stay_and_a_line_break_inside_of_a_sentence_is_kept() -> None:
    def build(document: Any) -> None:
        paragraph = document.add_paragraph("We go")
        paragraph.add_run().add_break()
        paragraph.add_run("home.")
        paragraph.add_run().add_break()
        paragraph.add_run("Then we eat.")
        deletion = OxmlElement("w:del")
        deletion.append(docx.oxml.parse_xml(f"<w:r {docx.oxml.ns.nsdecls('w')}><w:delText>gone</w:delText></w:r>"))
        paragraph._p.append(deletion)

    content = word(build)
    assert units(content, "a.docx") == ["We go<1/>home.", "Then we eat."]
    assert paragraph_of(translated(content, "a.docx")).text == "WE GO\nHOME.\nTHEN WE EAT."
    assert b"gone" in parts(translated(content, "a.docx"))["word/document.xml"]


def workbook() -> bytes:
    book = openpyxl.Workbook()
    sheet = book.active
    for row in (["name", "text"], ["a1", "Two dogs\nrun."], [3, "=1+1"], ["x", "Two dogs\nrun."]):
        sheet.append(row)
    sheet.add_table(openpyxl.worksheet.table.Table(displayName="T", ref="A1:B4"))
    return saved(book)


def presentation(title: str = "A big title") -> bytes:
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = title
    slide.placeholders[1].text = "First\nThe second\vpoint"
    slide.notes_slide.notes_text_frame.text = "A note"
    return saved(deck)


def test_cells_are_translated_and_headings_of_tables_stay_for_the_formulas_that_name_them() -> None:
    sheet = openpyxl.load_workbook(io.BytesIO(translated(workbook(), "a.xlsx"))).active
    assert [[cell.value for cell in row] for row in sheet] == [
        ["name", "text"],
        ["A1", "TWO DOGS\nRUN."],
        [3, "=1+1"],
        ["X", "TWO DOGS\nRUN."],
    ]


def test_slides_and_notes_are_translated() -> None:
    [slide] = pptx.Presentation(io.BytesIO(translated(presentation(), "a.pptx"))).slides
    assert [shape.text_frame.text for shape in slide.shapes] == ["A BIG TITLE", "FIRST\nTHE SECOND\vPOINT"]
    assert slide.notes_slide.notes_text_frame.text == "A NOTE"


@pytest.mark.parametrize(
    ("name", "content", "of_library", "of_office"),
    [
        ("a.pptx", presentation(), "ppt/slides/slide.xml", "ppt/slides/slide1.xml"),
        ("a.pptx", presentation(), "ppt/notesSlides/notesSlide.xml", "ppt/notesSlides/notesSlide1.xml"),
        ("a.xlsx", workbook(), "xl/worksheets/sheet.xml", "xl/worksheets/sheet1.xml"),
        ("a.xlsx", workbook(), "xl/worksheets/Sheet1.xml", "xl/worksheets/sheet1.xml"),
        ("a.docx", word(formatted), "word/Document.xml", "word/document.xml"),
    ],
)
def test_libraries_name_parts_without_a_number_or_in_capitals(
    name: str, content: bytes, of_library: str, of_office: str
) -> None:
    renamed = io.BytesIO()
    with zipfile.ZipFile(renamed, "w") as archive:
        for part, text in parts(content).items():
            archive.writestr(of_library if part == of_office else part, text)
    assert units(renamed.getvalue(), name) == units(content, name)


def test_tabs_in_a_text_end_units_and_stay() -> None:
    content = presentation("A name\tits value")
    assert units(content, "a.pptx")[:2] == ["A name", "its value"]
    [slide] = pptx.Presentation(io.BytesIO(translated(content, "a.pptx"))).slides
    assert slide.shapes.title.text_frame.text == "A NAME\tITS VALUE"
    assert strings(translated(with_strings("<t>A name\tits value</t>"), "a.xlsx")) == [f"{SPACED}A NAME\tITS VALUE</t>"]


@pytest.mark.parametrize(
    ("name", "content"), [("a.docx", word(formatted)), ("a.xlsx", workbook()), ("a.pptx", presentation())]
)
def test_a_document_whose_translation_equals_its_source_has_the_same_parts(name: str, content: bytes) -> None:
    assert parts(translated(content, name, identity)) == parts(content)
    changed = parts(translated(content, name))
    assert list(changed) == list(parts(content))
    assert [part for part in changed if changed[part] != parts(content)[part] and "xml" not in part] == []


def test_bilingual_documents_have_the_source_first_and_no_image_twice() -> None:
    text = paragraph_of(translated(word(formatted), "a.docx", bilingual=True)).text
    assert text == "The old man likes the small dog.\nTHE OLD MAN LIKES THE SMALL DOG."
    xml = parts(translated(word(with_text_box), "a.docx", bilingual=True))["word/document.xml"]
    assert xml.count(b"<w:pict") == 1


def test_macros_are_kept() -> None:
    content = with_part(word(formatted), "word/vbaProject.bin", b"macro")
    assert parts(translated(content, "a.docm"))["word/vbaProject.bin"] == b"macro"


def encrypted() -> bytes:
    content = bytearray(word(formatted))
    for header in (b"PK\x03\x04", b"PK\x01\x02"):
        place = content.index(header) + (6 if header[3] == 4 else 8)
        content[place] |= 1
    return bytes(content)


ENTITIES = b'<!DOCTYPE w [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><w>&b;</w>'
EXTERNAL = b'<!DOCTYPE w [<!ENTITY a SYSTEM "file:///etc/passwd">]><w>&a;</w>'
OLE = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(600)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.docx", b"no archive", "a.docx is damaged: it is not a zip archive"),
        ("a.docx", word(formatted)[:-300], "a.docx is damaged: it is not a zip archive"),
        ("a.docx", encrypted(), "a.docx has a password: save it without one"),
        ("a.docx", OLE + "EncryptedPackage".encode("utf-16-le"), "a.docx has a password"),
        ("a.docx", OLE, "a.docx is a file of Office 97 to 2003"),
        ("a.docx", workbook(), "a.docx is not a document of Word"),
        (
            "a.docx",
            with_part(word(formatted), "word/document.xml", b"<w><a></w>"),
            "word/document.xml is damaged: line 1",
        ),
        ("a.docx", with_part(word(formatted), "word/document.xml", ENTITIES), "document.xml declares entities"),
        ("a.docx", with_part(word(formatted), "word/document.xml", EXTERNAL), "document.xml declares entities"),
        ("a.xyz", b"", "a.xyz is not a document of a known format; the formats are: arb, csv, docm, docx, "),
    ],
)
def test_hostile_and_damaged_documents_get_one_sentence(name: str, content: bytes, message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)) as error:
        translated(content, name)
    assert "\n" not in str(error.value)


def test_zip_bombs_are_refused_before_they_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    content = with_part(word(formatted), "word/document.xml", b"<w>" + b" " * 2**20 + b"</w>")
    with monkeypatch.context() as patch:
        patch.setattr(markup_tokens, "MAX_TOKENS", 10)
        with pytest.raises(UserError, match=r"word/document\.xml has more than 10 tags"):
            translated(word(formatted), "a.docx")
        patch.undo()
        patch.setattr(seam, "MAX_UNITS", 1)
        assert translated(word(formatted), "a.docx")
        twice = with_part(word(formatted), "word/footer1.xml", parts(word(formatted))["word/document.xml"])
        with pytest.raises(UserError, match=r"a\.docx has more than 1 units, and is refused"):
            translated(twice, "a.docx")
    monkeypatch.setattr(archive, "MAX_PART_BYTES", 2**19)
    with pytest.raises(
        UserError, match=r"a\.docx: word/document\.xml unpacks to more than 524,288 bytes, and is refused"
    ):
        translated(content, "a.docx")
    monkeypatch.setattr(archive, "MAX_BYTES", 2**19)
    with pytest.raises(UserError, match=r"a\.docx unpacks to more than 524,288 bytes"):
        translated(content, "a.docx")


def test_a_part_that_is_damaged_is_named() -> None:
    content = bytearray(word(formatted))
    with zipfile.ZipFile(io.BytesIO(content)) as opened:
        start = opened.getinfo("word/styles.xml").header_offset + 100
    content[start : start + 50] = bytes(50)
    with pytest.raises(UserError, match=r"word/styles\.xml cannot be unpacked"):
        translated(bytes(content), "a.docx")


def word_xml(paragraph: str) -> bytes:
    """Return a document of one paragraph, given what is in it."""
    content = word(lambda document: None)
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    body = f"<w:document {space}><w:body><w:p>{paragraph}</w:p></w:body></w:document>"
    return with_part(content, "word/document.xml", body.encode())


def paragraph_xml(content: bytes) -> str:
    return parts(content)["word/document.xml"].decode().split("<w:p>")[1].split("</w:p>")[0]


def run_of(text: str, properties: str = "") -> str:
    space = ' xml:space="preserve"' if text != text.strip() else ""
    return f"<w:r>{properties}<w:t{space}>{text}</w:t></w:r>"


@pytest.mark.parametrize("name", ["comment", "bookmark", "perm"])
def test_both_ends_of_a_comment_or_a_bookmark_go_around_the_same_words(name: str) -> None:
    start, end = (f'<w:{name}{"Range" * (name == "comment")}{side} w:id="7"/>' for side in ("Start", "End"))
    content = word_xml(f"{run_of('The ')}{start}{run_of('big dog')}{end}{run_of(' runs')}")
    assert paragraph_xml(translated(content, "a.docx", backwards)) == (
        f"{run_of('runs ')}{start}{run_of('dog big')}{end}{run_of(' The')}"
    )
    assert paragraph_xml(translated(content, "a.docx", bilingual=True)).count(start) == 1
    bold = "<w:rPr><w:b/></w:rPr>"
    overlapping = word_xml(
        f"{run_of('A ')}{start}{run_of('big ')}{run_of('dog ', bold)}{end}{run_of('runs here', bold)}"
    )
    written = paragraph_xml(translated(overlapping, "a.docx", backwards))
    assert written.index(start) < written.index(end)
    crossing = (
        f"{run_of('The ')}{start}<w:hyperlink>{run_of('big ')}{end}{run_of('dog')}</w:hyperlink>{run_of(' runs')}"
    )
    written = paragraph_xml(translated(word_xml(crossing), "a.docx", backwards))
    assert written.index(start) < written.index(end)


def test_readings_stay_beside_their_words_and_custom_tags_around_theirs() -> None:
    ruby = f"<w:r><w:ruby><w:rubyPr/><w:rt>{run_of('reading')}</w:rt><w:rubyBase>{{}}</w:rubyBase></w:ruby></w:r>"
    custom = '<w:customXml w:element="a"><w:customXmlPr/>{}</w:customXml>'
    content = word_xml(f"{run_of('The ')}{ruby.format(run_of('old'))}{run_of(' ')}{custom.format(run_of('dog'))}")
    assert units(content, "a.docx") == ["The <1>old</1> <2>dog</2>"]
    assert paragraph_xml(translated(content, "a.docx")) == (
        f"{run_of('THE ')}{ruby.format(run_of('OLD'))}{run_of(' ')}{custom.format(run_of('DOG'))}"
    )


def test_insertions_in_which_a_field_only_begins_or_ends_stay_with_the_field() -> None:
    begin, separate, end = (f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in ("begin", "separate", "end"))
    inserted, last = (
        f'<w:ins w:id="1">{part}</w:ins>' for part in (f"{begin}<w:r><w:instrText>PAGE</w:instrText></w:r>", end)
    )
    for close in (end, last):
        field = f"{inserted}{separate}{run_of('3')}{close}"
        content = word_xml(f"{run_of('See page ')}{field}{run_of(' again')}")
        assert units(content, "a.docx") == ["See page <1/> again"]
        written = paragraph_xml(translated(content, "a.docx", backwards))
        assert written == f"{run_of('again page ')}{field}{run_of(' See')}"
    unended = word_xml(f"{run_of('See page ')}{inserted}")
    assert paragraph_of(translated(unended, "a.docx", bilingual=True)).text == "See page \nSEE PAGE "


def test_a_long_paragraph_takes_time_in_proportion_to_its_length() -> None:
    bold = "<w:rPr><w:b/></w:rPr>"

    def work(n: int) -> int:
        content = word_xml(run_of("A dog") + (run_of(".", bold) + run_of(",")) * n + run_of("."))
        return n_steps(lambda: units(content, "a.docx"))

    assert work(200) < 5 * work(50)


@pytest.mark.parametrize(
    ("style", "is_code"),
    [("SourceCode", True), ("HTMLPreformatted", True), ("code", True), ("CodeChar", True), ("PostcodeLine", False)],
)
def test_styles_of_code_are_those_with_such_a_word(style: str, is_code: bool) -> None:
    content = word_xml(f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>{run_of("A dog")}')
    assert units(content, "a.docx") == ([] if is_code else ["A dog"])


def with_strings(*items: str, headings: Sequence[str] = ()) -> bytes:
    """Return a workbook with shared strings and the headings of a table, as Excel writes them."""
    file = io.BytesIO()
    namespace = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    with zipfile.ZipFile(file, "w") as written:
        for name in ("[Content_Types].xml", "xl/workbook.xml"):
            written.writestr(name, "<x/>")
        shared = "".join(f"<si>{item}</si>" for item in items)
        written.writestr("xl/sharedStrings.xml", f'<sst xmlns="{namespace}">{shared}</sst>')
        columns = "".join(f'<tableColumn name="{name}"/>' for name in headings)
        written.writestr("xl/tables/table1.xml", f'<table xmlns="{namespace}">{columns}</table>')
    return file.getvalue()


def strings(content: bytes) -> list[str]:
    return re.findall("<si>(.*?)</si>", parts(content)["xl/sharedStrings.xml"].decode(), re.DOTALL)


SPACED = '<t xml:space="preserve">'
READING = '<rPh sb="0" eb="2"><t>reading</t></rPh><phoneticPr fontId="1"/>'


def test_readings_in_cells_are_left_out_where_the_text_that_they_belong_to_is_translated() -> None:
    content = with_strings(
        f"<t>two dogs</t>{READING}", f"<r><t>A big</t></r><r>{SPACED} dog</t></r>{READING}", "<t>7</t>"
    )
    assert units(content, "a.xlsx") == ["two dogs", "A big dog"]
    assert parts(translated(content, "a.xlsx", identity)) == parts(content)
    plain, rich, number = strings(translated(content, "a.xlsx"))
    assert plain == '<t xml:space="preserve">TWO DOGS</t>'
    assert (rich, number) == ("<r><t>A BIG DOG</t></r>", "<t>7</t>")


def test_a_cell_with_text_beside_runs_stays() -> None:
    content = with_strings("<t>One </t><r><rPr><b/></rPr><t>big</t></r><r><t> dog</t></r>")
    assert strings(translated(content, "a.xlsx")) == strings(content)  # schema-valid, but nothing writes it


def test_headings_of_tables_stay_however_they_are_written_in_the_table() -> None:
    cells = ["<t>R&amp;D cost</t>", "<t>Unit\nprice</t>", "<t>Name </t>", "<t>Unit price each</t>"]
    rich = f"<r><t>Unit</t></r><r><rPr><b/></rPr>{SPACED}\nprice</t></r>"
    content = with_strings(*cells, rich, headings=["R&amp;D cost", "Unit_x000a_price", "Name "])
    assert units(content, "a.xlsx") == ["Unit price each"]


def test_cells_that_formulas_compare_stay() -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    for text in ("open", "Red dog", "two dogs", 'A "big" dog', "yes", "No", "maybe, now", "never", "late dog"):
        sheet.append([text])
    sheet["B1"] = '=IF(A1="Open",COUNTIF(A:A,"=Red dog"),"A ""big"" dog")'
    sheet["B2"] = '=A2&"maybe, never"&COUNTIF(A:A,"<>red dog")'
    sheet.add_data_validation(DataValidation(type="list", formula1='"Yes, no"', sqref="A5:A6"))
    sheet.conditional_formatting.add("A1:A9", CellIsRule(operator="equal", formula=['"late dog"']))
    content = saved(book)
    assert units(content, "a.xlsx") == ["two dogs", "maybe, now", "never"]
    written = openpyxl.load_workbook(io.BytesIO(translated(content, "a.xlsx"))).active
    assert [cell.value for cell in written["A"]][:3] == ["open", "Red dog", "TWO DOGS"]


def test_characters_that_sheets_write_as_codes_stay() -> None:
    content = with_strings("<t>Two dogs_x000D_\nrun.</t>", "<t>A _x005F_x000D_ dog</t>")
    assert units(content, "a.xlsx") == ["Two dogs<1/>run.", "A <1/>x000D_ dog"]
    first, second = strings(translated(content, "a.xlsx"))
    assert "TWO DOGS_x000D_\nRUN." in first
    assert "_x005F_" in second
    [_, second] = strings(translated(content, "a.xlsx", bilingual=True))
    assert second.count("_x005F_") == 2
