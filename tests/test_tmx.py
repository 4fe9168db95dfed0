"""Translation memories."""

from pathlib import Path

import pytest

from mtformer.config import TmxFile
from mtformer.data.sources.parallel import ParallelText
from mtformer.support.errors import UserError
from mtformer.text.pairs import Drops, Example

HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en" datatype="plaintext"><note>no text</note></header><body>
"""
TAIL = "</body></tmx>\n"


def unit(**texts: str) -> str:
    variants = "".join(
        f'<tuv xml:lang="{code.replace("_", "-")}"><seg>{text}</seg></tuv>' for code, text in texts.items()
    )
    return f"<tu><note>no text</note>{variants}</tu>\n"


def memory(folder: Path, *units: str, head: str = HEAD, encoding: str = "utf-8") -> TmxFile:
    (folder / "memory.tmx").write_bytes((head + "".join(units) + TAIL).encode(encoding))
    return TmxFile(tmx=folder / "memory.tmx")


def read(source: TmxFile, src_lang: str = "en", tgt_lang: str = "de", drops: Drops | None = None) -> list[Example]:
    return list(ParallelText([source], src_lang, tgt_lang).examples(drops))


def error_of(source: TmxFile, src_lang: str = "en", tgt_lang: str = "de") -> str:
    with pytest.raises(UserError) as error:
        read(source, src_lang, tgt_lang)
    return str(error.value).rpartition("/memory")[2]


def test_units_are_read_with_their_lines_in_either_direction(tmp_path: Path) -> None:
    source = memory(tmp_path, unit(en="a &lt;b&gt; &amp; c", de="d"), "\n", unit(de="f\n   f", en=" e&#x20AC; "))
    assert read(source) == [("a <b> & c", "d", 4), ("e€", "f f", 6)]
    assert read(source, "de", "en") == [("d", "a <b> & c", 4), ("f f", "e€", 6)]


def test_variants_of_a_language_stand_for_it(tmp_path: Path) -> None:
    source = memory(tmp_path, unit(EN_GB="british", en_US="american", de_DE="deutsch"))
    assert read(source)[0].src == "british"
    assert read(source, "en_US")[0] == ("american", "deutsch", 4)
    assert read(source, "de-DE", "en-gb")[0] == ("deutsch", "british", 4)
    assert ": no unit has both en-AU and de; the languages are: EN-GB (1 segment)" in error_of(source, "en-AU")


def test_the_two_texts_of_a_pair_are_different_variants(tmp_path: Path) -> None:
    drops = Drops()
    source = memory(tmp_path, unit(zh="一"), unit(zh_TW="二", zh="三"), unit(zh_TW="四", zh_CN="五"))
    assert [(src, tgt) for src, tgt, _ in read(source, "zh", "zh_TW", drops)] == [("三", "二"), ("五", "四")]
    assert drops.lines == {"without zh_TW": [4]}
    assert [(src, tgt) for src, tgt, _ in read(source, "zh_TW", "zh")] == [("二", "三"), ("四", "五")]


def test_inline_markup_is_removed_and_its_text_kept(tmp_path: Path) -> None:
    text = (
        '<bpt i="1">&lt;b&gt;</bpt>bold<ept i="1">&lt;/b&gt;</ept> and <hi type="x">marked</hi><ph>{<sub>1</sub>}</ph>'
        ", <it pos='begin'>x</it><ut>y</ut>end"
    )
    assert read(memory(tmp_path, unit(en=text, de="x"))) == [("bold and marked, end", "x", 4)]


def test_units_without_one_of_the_languages_are_counted(tmp_path: Path) -> None:
    drops = Drops()
    source = memory(tmp_path, unit(en="a", fr="b"), unit(en="a", de="b"), unit(de="b", en=""))
    assert read(source, drops=drops) == [("a", "b", 5), ("", "b", 6)]
    assert drops.lines == {"without de": [4]}
    message = ": no unit has both en and es; the languages are: en (3 segments), de (2 segments), fr (1 segment)"
    assert error_of(source, "en", "es") == ".tmx" + message


def test_other_encodings_and_old_versions_are_read(tmp_path: Path) -> None:
    text = unit(en="a", de="ä").replace("xml:lang", "lang")
    assert read(memory(tmp_path, text, head=HEAD.replace("UTF-8", "UTF-16"), encoding="utf-16")) == [("a", "ä", 4)]
    assert read(memory(tmp_path, text, head=HEAD.replace("UTF-8", "ISO-8859-1"), encoding="latin-1"))[0].tgt == "ä"


@pytest.mark.parametrize("encoding", ["GB18030", "no-such-encoding"])
def test_an_encoding_that_expat_cannot_read_is_an_error_in_a_sentence(tmp_path: Path, encoding: str) -> None:
    source = memory(tmp_path, unit(en="a", de="b"), head=HEAD.replace("UTF-8", encoding))
    assert (
        error_of(source)
        == ".tmx: the encoding that its first line names cannot be read: convert it to UTF-8, that line too"
    )


def test_a_long_memory_is_read_unit_by_unit(tmp_path: Path) -> None:
    source = memory(tmp_path, *(unit(en=f"e{n}" * 9, de=f"d{n}") for n in range(5_000)))
    assert len(read(source)) == 5_000
    with source.tmx.open("r+b") as file:
        file.truncate(source.tmx.stat().st_size // 2)
    examples = ParallelText([source], "en", "de").examples()
    assert next(examples) == ("e0" * 9, "d0", 4)
    with pytest.raises(UserError, match=r"memory.tmx:25\d\d: this is not valid XML"):
        list(examples)


BOMB = """<?xml version="1.0"?>
<!DOCTYPE tmx [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>
<tmx version="1.4"><body>
"""
OUTSIDE = """<?xml version="1.0"?>
<!DOCTYPE tmx [<!ENTITY a SYSTEM "file:///etc/passwd">]>
<tmx version="1.4"><body>
"""


@pytest.mark.parametrize("head", [BOMB, OUTSIDE])
def test_files_that_declare_entities_are_refused(tmp_path: Path, head: str) -> None:
    message = error_of(memory(tmp_path, unit(en="&a;", de="b"), head=head))
    assert message == ".tmx:2: this file declares the entity 'a', which is refused: remove it"


def test_an_entity_that_only_a_dtd_could_declare_is_an_error(tmp_path: Path) -> None:
    message = error_of(memory(tmp_path, unit(en="a", de="b"), unit(en="a&nbsp;b", de="b")))
    assert message == ".tmx:5: this file does not declare the entity 'nbsp': replace it with its character"


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ("<html><body/></html>", ".tmx: this is not TMX: its root element is <html>"),
        ("a\tb\n", ".tmx:1: this is not valid XML: syntax error"),
        (HEAD + "<tu><tuv>", ".tmx:4: this is not valid XML: no element found"),
        (HEAD + "<tu>\n<seg></tu>", ".tmx:5: this is not valid XML: mismatched tag"),
        ("", ".tmx:1: this is not valid XML: no element found"),
    ],
)
def test_what_is_not_a_memory_is_named_with_its_line(tmp_path: Path, raw: str, message: str) -> None:
    (tmp_path / "memory.tmx").write_text(raw)
    assert error_of(TmxFile(tmx=tmp_path / "memory.tmx")) == message
