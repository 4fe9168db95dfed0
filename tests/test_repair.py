"""What ``data check --fix`` repairs: markup, encodings and diacritics, with every change in a table."""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from random import Random
from xml.sax.saxutils import escape

import pytest
from conftest import write_pairs

from mtformer.config import load_config, parse_source
from mtformer.data.clean.checkup import check
from mtformer.data.clean.diacritics import without_diacritics
from mtformer.data.clean.repair import Letters, decoded, without_markup
from mtformer.data.clean.report import as_text, write_clean
from mtformer.data.clean.rules import is_damaged
from mtformer.data.clean.spelling import Spelling
from mtformer.data.sources.parallel import ParallelText
from mtformer.text.lines import read_lines, without_escapes
from mtformer.text.pairs import SentencePair

ANY = Letters(())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Read <b>this</b> first.", "Read this first."),
        ("Here a<b and c>d, but a <b class = x>dog</b >.", "Here a<b and c>d, but a dog."),
        ("<p class='x'>One<br/>two</p>", "One two"),
        ("Stone &amp; wood, it&#39;s &quot;here&quot;", 'Stone & wood, it\'s "here"'),
        ("&amp;lt;i&amp;gt;twice&amp;lt;/i&amp;gt;", "twice"),
        (r"{\an8}Who is there?", "Who is there?"),
        ("<v Tom>Who is there?</v> <v.loud Mary>Me!</v>", "Who is there? Me!"),
        ("- <v 汤姆>谁？</v><v Mary>我。", "- 谁？ 我。"),
        ("A <c.yellow.bg_blue>bl<00:00:01.500><c>ack</c> dog</c>", "A black dog"),
        ("Use <v>, <V x> and <c-name>, if a<v and c>d", "Use <v>, <V x> and <c-name>, if a<v and c>d"),
        ("one &#10; line", "one line"),
        ("one <!-- a note --> line <!-- open <!-- closed -->", "one line <!-- open"),
        ("<script>var x = 1; if (x<2) y();</script>Tom has three cameras.", "Tom has three cameras."),
        ('One<style type="text/css">p > b {color: red}</STYLE >two', "One two"),
        ("&lt;script async src=a.js&gt;f()&lt;/script&gt;Tom", "Tom"),
        ("The <script> stays <script>f()</script> open", "The stays open"),
        ("<styled>x</styled> and <script-name>", "<styled>x</styled> and <script-name>"),
        ("x < y & y > z", "x < y & y > z"),
        ("Use <name> and AT&T  here", "Use <name> and AT&T  here"),
        ("&notes; of &kde; in this &region;", "&notes; of &kde; in this &region;"),
    ],
)
def test_markup_is_removed_once_and_for_all(before: str, after: str) -> None:
    assert without_markup(before) == after
    assert without_markup(after) == after


@pytest.mark.parametrize("read", ["cp1252", "latin-1", "cp1250", "iso-8859-2"])
@pytest.mark.parametrize("times", [1, 2])
def test_utf8_that_was_read_in_another_encoding_is_decoded(read: str, times: int) -> None:
    text = broken = "Übermäßig große Hügel schön für uns"
    for _ in range(times):
        broken = broken.encode().decode(read, "surrogateescape" if read == "cp1252" else "strict")
    if all(character.isprintable() or "\x80" <= character <= "\x9f" for character in broken):
        assert decoded(broken, "de", ANY) == text
    assert decoded(text, "de", ANY) == text


@pytest.mark.parametrize(
    "text",
    ["Das ist für uns.", "Es heißt so.", "Über uns", "pán Šmíd", "żółw i źdźbło", "sú to žabky", "på gården", "Mają"],
)
def test_letters_of_utf8_that_was_read_as_windows_1250_are_found_one_by_one(text: str) -> None:
    broken = text.encode().decode("sloppy-windows-1250")
    assert is_damaged(SentencePair("x", broken))
    assert decoded(broken, "de", ANY) == text
    assert not is_damaged(SentencePair("x", text))


@pytest.mark.parametrize("text", ["one\vtwo", "one\r\ftwo", "one\x1ftwo"])
def test_breaks_of_lines_pages_and_fields_become_spaces(text: str) -> None:
    assert is_damaged(SentencePair("x", text))
    assert decoded(text, "en", ANY) == "one two"


@pytest.mark.parametrize("text", ["Ăştia sunt.", "CĂŞTIG", "PÓŁ", "HĹŻA", "Ăn cơm", "sehr groß…"])
def test_letters_that_only_look_like_utf8_in_windows_1250_stay(text: str) -> None:
    assert not is_damaged(SentencePair("x", text))
    assert decoded(text, "ro", ANY) == text


@pytest.mark.parametrize(
    ("language", "encoding", "text"),
    [
        ("de", "latin-1", "Schöne Grüße für Zoë"),
        ("fr-CA", "cp1252", "L’œuvre a coûté 5 €…"),
        ("cs", "cp1250", "Můj přítel píše dlouhé dopisy"),
        ("ru", "cp1251", "Собака бежит через реку"),
        ("zho_Hans", "gbk", "两只狗在草地上奔跑。"),
        ("zh-TW", "big5", "兩隻狗在草地上奔跑。"),
        ("ja", "cp932", "二匹の犬が走っています。"),
        ("ja", "cp932", "ｱｲｳｴ"),
        ("ja", "euc_jp", "二匹の犬が走っています。"),
        ("sr_Latn", "cp1250", "Čovek čita knjigu o životu"),
    ],
)
def test_bytes_that_are_not_utf8_are_those_of_windows(tmp_path: Path, language: str, encoding: str, text: str) -> None:
    (tmp_path / "text").write_bytes(text.encode(encoding) + b"\r\n" + text.encode())
    first, second = read_lines(tmp_path / "text", escape=True)
    assert [decoded(line, language, ANY) for line in (first, second)] == [text, text]
    assert "\N{REPLACEMENT CHARACTER}" in without_escapes(first)
    assert without_escapes(second) == second == text


def test_bytes_in_damaged_utf8_are_not_decoded(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes("Grüße aus K\0öln".encode().replace("ß".encode(), b"\x9f"))
    (text,) = read_lines(tmp_path / "text", escape=True)
    assert decoded(text, "de", ANY) == text
    assert without_escapes(text) == "Gr\u00fc\ufffde aus K\0öln"


def test_bytes_that_would_become_unusual_letters_are_not_decoded(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes("Herr Dvořák hört zu.\n".encode("cp1250") + "Herr Müller hört zu.".encode("cp1252"))
    name, usual = read_lines(tmp_path / "text", escape=True)
    letters = Letters(["Äpfel für Zoë, schöne Grüße"] * 100)
    assert decoded(name, "de", letters) == name
    assert decoded(name, "de", ANY) == "Herr Dvoøák hört zu."
    assert decoded(usual, "de", letters) == "Herr Müller hört zu."


@pytest.mark.parametrize(
    ("language", "encoding", "text"),
    [
        ("zh", "gb18030", "你在看什么"),
        ("zh", "gb18030", "我就会重新考虑 谢谢"),
        ("zh", "gb18030", "一小时以前的那个吗"),
        ("zh", "gb18030", "为你提供办公室 支付你薪水"),
        ("zh-TW", "big5", "你在看什麼"),
    ],
)
def test_a_line_is_read_in_one_encoding_though_some_of_it_is_utf8_by_chance(
    tmp_path: Path, language: str, encoding: str, text: str
) -> None:
    (tmp_path / "text").write_bytes(text.encode(encoding))
    (line,) = read_lines(tmp_path / "text", escape=True)
    assert decoded(line, language, ANY) == text


@pytest.mark.parametrize(
    "text", ["“你”说：\U0010f7e4您好。", "Müller 你好\U0010f7e4", "こんにちは\U0010f7e3\U0010f7c4", "안녕\U0010f7e3"]
)
def test_damaged_utf8_of_a_language_of_many_characters_stays(text: str) -> None:
    assert decoded(text, "zh", ANY) == text


@pytest.mark.parametrize("text", ["什么", "谢谢", "喂", "谁", "为什么?", "4小时前"])
def test_a_line_that_is_utf8_by_chance_is_read_as_the_lines_that_are_not(text: str) -> None:
    line = text.encode("gb18030").decode()
    assert decoded(line, "zh", ANY, by_chance=True) == text
    assert decoded(text, "zh", ANY, by_chance=True) == text
    assert decoded(line, "zh", ANY) == line
    assert decoded(line, "en", ANY, by_chance=True) == line


@pytest.mark.parametrize(
    "text", ["Café", "Müller", "25°", "±3", "π", "Привет", "汤姆·é", "한국", "Ångström", "“é”", "\ud800"]
)
def test_utf8_that_is_hardly_so_by_chance_stays(text: str) -> None:
    assert decoded(text, "zh", ANY, by_chance=True) == text


CZECH = [
    f"{who} {when} {what}."
    for who, when, what in product(
        ["Můj přítel", "Naše učitelka", "Ta žena", "Černý kůň", "Každý člověk", "Děti", "Jiří", "Tvůj bratr"],
        ["dnes večer", "často", "vždycky", "zítra ráno", "v pondělí", "později", "teď", "nikdy ne"],
        ["přijede vlakem", "píše dlouhé dopisy", "pije kávu", "běží přes řeku", "kupuje čerstvé ryby", "čte noviny"],
    )
] * 2  # fmt: skip


@pytest.fixture(scope="module")
def german() -> list[str]:
    return [pair.tgt for pair in ParallelText([parse_source("builtin:phrasebook,size:3000", "en", "de")], "en", "de")]


@pytest.mark.parametrize("read", ["cp1252", "latin-1"])
def test_text_in_another_8_bit_encoding_is_found_and_decoded(read: str) -> None:
    broken = [text.encode("cp1250").decode(read) for text in CZECH[::25]]
    spelling = Spelling(CZECH + [text for text in broken if text.isprintable()])
    repaired = [spelling.repair(decoded(text, "cs", ANY)) for text in broken]
    assert repaired == CZECH[::25]
    assert not any(map(spelling.is_wrong, CZECH))
    assert [spelling.repair(text) for text in CZECH] == CZECH


def test_foreign_names_stay_among_texts_in_another_encoding(german: list[str]) -> None:
    names = ["Er fährt einen Škoda.", "Herr Peña kommt.", "Dvořák schläft.", "Žižek liest."]
    broken = {text.encode("mac-roman").decode("cp1252"): text for text in german[::25]}
    spelling = Spelling([*german, *broken, *names])
    assert sum(spelling.repair(text) == right for text, right in broken.items()) >= 0.95 * len(broken)
    assert [spelling.repair(text) for text in names] == names


def test_a_text_with_letters_that_the_encoding_lacks_was_not_read_in_it(german: list[str]) -> None:
    broken = [text.encode("mac-roman").decode("cp1252") for text in german[::25]]
    read = next(text for text in broken if not text.isascii())
    spelling = Spelling([*german, *broken])
    assert spelling.repair(read) != read
    assert spelling.repair(f"{read} Nguyễn") == f"{read} Nguyễn"


@pytest.mark.parametrize("language", ["cs", "de"])
def test_diacritics_are_restored_where_the_corpus_has_one_form(language: str, german: list[str]) -> None:
    texts = CZECH if language == "cs" else german
    marked = [text for text in texts if without_diacritics(text) != text]
    lost = {without_diacritics(text): text for text in Random(1).sample(marked, len(marked) // 20)}
    spelling = Spelling(texts + list(lost))
    found = {bare: spelling.repair(bare) for bare in lost if spelling.is_wrong(bare)}
    assert len(found) >= 0.9 * len(lost)
    restored = {bare: text for bare, text in found.items() if text != bare}
    assert len(restored) >= 0.5 * len(lost)
    assert all(text == lost[bare] for bare, text in restored.items())
    assert sum(map(spelling.is_wrong, texts)) <= 0.005 * len(texts)


def test_a_word_that_is_right_without_diacritics_but_rare_stays(german: list[str]) -> None:
    rare = ["Sie mochte ihn nicht.", "Wie konntest du das tun?", "Bitte fass die Ware nicht an."]
    forms = [f"Er {verb} {number} Bücher." for verb in ("möchte", "könntest", "wäre") for number in range(100)]
    spelling = Spelling([*german, *forms, *rare])
    assert [spelling.repair(text) for text in rare] == rare


def test_a_word_that_exists_in_both_forms_is_told_by_its_neighbours() -> None:
    texts = [f"Das Haus steht für uns in der Nähe von Ort {place}." for place in range(600)]
    texts += [f"{'Für' if place % 20 else 'Fur'} uns ist das Nummer {place}." for place in range(700)]
    texts += [f"Der Sommer ist nahe, sagt Frau {place}." for place in range(300)]
    spelling = Spelling([*texts, "Wir wohnen in der Nahe von Ulm."])
    assert spelling.is_wrong("Wir wohnen in der Nahe von Ulm.")
    assert not spelling.is_wrong("Der Winter ist nahe, sagt Frau Wolf.")


def test_a_language_without_diacritics_teaches_nothing() -> None:
    assert not Spelling(["The old man is sleeping."] * 600).is_taught
    assert not Spelling(CZECH[:100]).is_taught


def test_fix_repairs_lists_every_change_and_has_nothing_to_do_again(tmp_path: Path) -> None:
    source = parse_source("builtin:phrasebook,size:2600", "en", "de")
    pairs = [[src, tgt] for src, tgt in dict.fromkeys(ParallelText([source], "en", "de"))]
    marked = [place for place, (_, tgt) in enumerate(pairs) if without_diacritics(tgt) != tgt]
    good = [list(pair) for pair in pairs]
    html, broken, bare = marked[:20], marked[20:40], marked[40:60]
    swapped = [place for place in marked[60:] if min(map(len, pairs[place])) > 30][:20]
    for place in html:
        pairs[place] = [f"<p>{text.replace('.', '.<br>')}</p>" for text in pairs[place]]
    for place in broken:
        pairs[place][1] = pairs[place][1].encode().decode("latin-1")
    for place in bare:
        pairs[place][1] = without_diacritics(pairs[place][1])
    for place in swapped:
        pairs[place].reverse()
    write_pairs(tmp_path, "train", [(src, tgt) for src, tgt in pairs])
    config = tmp_path / "config.yaml"
    config.write_text("data: {src_lang: en, tgt_lang: de, train: [{src: train.en, tgt: train.de}]}\n")
    checkup = check(load_config(config))
    write_clean(checkup, tmp_path / "clean")
    rows = [line.split("\t") for line in (tmp_path / "clean/repaired.tsv").read_text().splitlines()]
    assert rows.pop(0) == ["source", "line", "side", "rule", "before", "after"]
    assert {row[3] for row in rows} == {"markup", "encoding", "diacritics", "language"}
    for _, line, side, _, before, after in rows:
        number = side == "tgt"
        assert (before, after) == (pairs[int(line) - 1][number], good[int(line) - 1][number])
    changed = {int(line) - 1 for _, line, *_ in rows}
    assert {*html, *broken, *swapped} <= changed
    assert len(changed.intersection(bare)) >= 0.7 * len(bare)
    again = check(load_config(config, ["data.train=[{src: clean/train.en, tgt: clean/train.de}]"]))
    write_clean(again, tmp_path / "again")
    for name in ("train.en", "train.de"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "clean" / name).read_bytes()
    assert "rules not fully applied: held_out: there is no validation or test text" in as_text(checkup)


def as_texts(folder: Path, pairs: list[tuple[bytes, bytes]]) -> str:
    for side, texts in zip(("en", "de"), zip(*pairs, strict=True), strict=True):
        (folder / f"train.{side}").write_bytes(b"".join(text + b"\n" for text in texts))
    return "{src: train.en, tgt: train.de}"


def as_table(folder: Path, pairs: list[tuple[bytes, bytes]]) -> str:
    (folder / "train.tsv").write_bytes(b"".join(src + b"\t" + tgt + b"\n" for src, tgt in pairs))
    return "{tsv: train.tsv}"


def as_quoted_table(folder: Path, pairs: list[tuple[bytes, bytes]]) -> str:
    (folder / "train.csv").write_bytes(b"".join(b'"%s","%s"\n' % pair for pair in pairs))
    return "{csv: train.csv, header: false}"


def as_objects(folder: Path, pairs: list[tuple[bytes, bytes]]) -> str:
    (folder / "train.jsonl").write_bytes(b"".join(b'{"en": "%s", "de": "%s"}\n' % pair for pair in pairs))
    return "{jsonl: train.jsonl}"


@pytest.mark.parametrize("write", [as_texts, as_table, as_quoted_table, as_objects])
def test_fix_decodes_lines_that_are_not_utf8(
    tmp_path: Path, write: Callable[[Path, list[tuple[bytes, bytes]]], str]
) -> None:
    good = [(f"Hello to town {place}, where they eat.", f"Grüße nach Ort {place}, wo sie essen.") for place in range(9)]
    pairs = [(src.encode(), tgt.encode()) for src, tgt in good]
    pairs[3] = pairs[3][0], good[3][1].encode("cp1252")
    pairs[5] = pairs[5][0], pairs[5][1].replace(b"\xc3", b"", 1)
    pairs.append((pairs[4][0], good[4][1].encode("cp1252")))
    config = tmp_path / "config.yaml"
    config.write_text(f"data: {{src_lang: en, tgt_lang: de, train: [{write(tmp_path, pairs)}]}}\n")
    checkup = check(load_config(config))
    damaged = good[5][1].replace("ü", "\ufffd")
    shown = [good[3][1].replace("ü", "\ufffd").replace("ß", "\ufffd"), damaged]
    shown += ["Gr\ufffd\ufffde nach Ort 4, wo sie essen."]
    assert [example.tgt for example in checkup.sources[0].examples["encoding"]] == shown
    (clean,) = write_clean(checkup, tmp_path / "clean")
    assert clean.tgt.read_text().splitlines() == [tgt for place, (_, tgt) in enumerate(good) if place != 5]
    assert (tmp_path / "clean/repaired.tsv").read_text().splitlines()[1].split("\t")[3:] == [
        "encoding",
        shown[0],
        good[3][1],
    ]
    rejected = [line.split("\t")[2:] for line in (tmp_path / "clean/rejected.tsv").read_text().splitlines()[1:]]
    assert rejected == [["encoding", good[5][0], damaged], ["duplicates", good[4][0], shown[2]]]


def test_fix_tells_the_units_of_a_line_of_tmx_apart(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    texts = [(f"The <b>dog</b> eats {n} bones.", f"Der <b>Hund</b> frisst {n} Knochen.") for n in range(300)]
    units = "".join(
        f'<tu><tuv xml:lang="en"><seg>{escape(src)}</seg></tuv><tuv xml:lang="de"><seg>{escape(tgt)}</seg></tuv></tu>'
        for src, tgt in texts
    )
    (tmp_path / "memory.tmx").write_text(f'<tmx version="1.4"><body>{units}</body></tmx>')
    (tmp_path / "config.yaml").write_text("data: {src_lang: en, tgt_lang: de, train: [{tmx: memory.tmx}]}\n")
    with caplog.at_level("INFO"):
        write_clean(check(load_config(tmp_path / "config.yaml")), tmp_path / "clean")
    assert "memory.tmx: 300 pairs kept, 0 of them realigned and 300 repaired; 0 rejected" in caplog.text
    for side, pairs in zip(("en", "de"), zip(*texts, strict=True), strict=True):
        assert (tmp_path / f"clean/memory.{side}").read_text().splitlines() == list(map(without_markup, pairs))


@pytest.mark.parametrize("every", [1, 5])
def test_fix_decodes_all_lines_of_a_text_in_gb18030(tmp_path: Path, every: int) -> None:
    """Some of them, or a part of each, are UTF-8 by chance."""
    pairs = [("谢谢", "Thank you."), ("喂", "Hello?"), ("什么", "What?")] if every == 1 else []
    pairs += [(f"你在看{n}个什么", f"What are {n} of you watching?") for n in range(13, 210)]
    encoded = [src.encode("utf-8" if n % every else "gb18030") for n, (src, _) in enumerate(pairs)]
    (tmp_path / "a.zh").write_bytes(b"".join(line + b"\n" for line in encoded))
    (tmp_path / "a.en").write_text("".join(f"{tgt}\n" for _, tgt in pairs))
    (tmp_path / "config.yaml").write_text("data: {src_lang: zh, tgt_lang: en, train: [{src: a.zh, tgt: a.en}]}\n")
    checkup = check(load_config(tmp_path / "config.yaml"))
    assert checkup.sources[0].problems == {"encoding": sum(n % every == 0 for n in range(len(pairs)))}
    [clean] = write_clean(checkup, tmp_path / "clean")
    assert list(ParallelText([clean], "zh", "en")) == pairs
