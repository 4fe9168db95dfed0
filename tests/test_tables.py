"""Tables as they are: headers, columns, quotes, blank lines."""

import io
from pathlib import Path

import pytest

from mtformer.config import CsvFile, TsvFile
from mtformer.data.sources.parallel import ParallelText
from mtformer.support.errors import UserError
from mtformer.text.pairs import Drops

Pairs = list[tuple[str, str]]


def table(folder: Path, text: str, **keys: object) -> TsvFile | CsvFile:
    """A table written with ``|`` between its columns, or else a csv."""
    path = folder / "table"
    path.write_text(text.replace("|", "\t"), encoding="utf-8")
    is_csv = "|" not in text
    return CsvFile.model_validate({"csv": path, **keys}) if is_csv else TsvFile.model_validate({"tsv": path, **keys})


def read(source: TsvFile | CsvFile, direction: str = "en-de") -> Pairs:
    src_lang, tgt_lang = direction.split("-")
    return [(pair.src, pair.tgt) for pair in ParallelText([source], src_lang, tgt_lang)]


def error_of(source: TsvFile | CsvFile, direction: str = "en-de") -> str:
    with pytest.raises(UserError) as error:
        read(source, direction)
    return str(error.value).rpartition("/")[2]


@pytest.mark.parametrize(
    "header",
    [
        "en|de",
        "EN|DE",
        "en-US|de_AT",
        "eng|ger",
        "English|German",
        "english |de",
    ],
)
def test_a_header_that_names_the_languages_gives_the_columns_in_both_directions(tmp_path: Path, header: str) -> None:
    source = table(tmp_path, f"{header}\na|b\n")
    assert read(source, "en-de") == [("a", "b")]
    assert read(source, "de-en") == [("b", "a")]


@pytest.mark.parametrize("header", ["id|en|fr|de|score", "domain|en|en_GB|de|id", "de|id|en|tgt|eng"])
def test_columns_are_found_among_others(tmp_path: Path, header: str) -> None:
    names = header.split("|")
    source = table(tmp_path, header + "\n" + "|".join(f"<{name}>" for name in names) + "\n")
    assert read(source, "en-de") == [("<en>", "<de>")]
    assert read(source, "de-en") == [("<de>", "<en>")]


@pytest.mark.parametrize("header", ["source|target", "src|tgt", "Target|Source", "id|tgt|src"])
def test_source_and_target_are_what_the_header_says(tmp_path: Path, header: str) -> None:
    row = "|".join(name.split()[0].lower()[0] for name in header.split("|"))
    assert read(table(tmp_path, f"{header}\n{row}\n")) == [("s", "t")]


def test_without_a_header_the_first_of_two_columns_is_the_source(tmp_path: Path) -> None:
    source = table(tmp_path, "The house.|Das Haus.\nen|de\n a |b|\n")
    assert read(source) == [("The house.", "Das Haus."), ("en", "de"), (" a ", "b")]


def test_a_header_is_what_the_config_says(tmp_path: Path) -> None:
    assert read(table(tmp_path, "en|de\na|b\n", header=False)) == [("en", "de"), ("a", "b")]
    assert read(table(tmp_path, "x|y\na|b\n", header=True)) == [("a", "b")]


@pytest.mark.parametrize(
    ("keys", "pairs"),
    [
        ({"src_column": "3", "tgt_column": "1"}, [("h3", "h1"), ("c", "a")]),
        ({"src_column": 3, "tgt_column": 1, "header": True}, [("c", "a")]),
        ({"src_column": "h2", "tgt_column": "h3"}, [("b", "c")]),
        ({"src_column": "h2", "tgt_column": 3}, [("b", "c")]),
    ],
)
def test_columns_by_name_or_number(tmp_path: Path, keys: dict[str, object], pairs: Pairs) -> None:
    assert read(table(tmp_path, "h1|h2|h3\na|b|c\n", **keys)) == pairs


def test_only_languages_and_sides_make_a_header(tmp_path: Path) -> None:
    keys = {"src_column": "1", "tgt_column": "2"}
    pairs = [("Hello", "Hallo"), ("Yes", "Ja")]
    assert read(table(tmp_path, "Hello|Hallo|n/a\nYes|Ja|0.5\n", **keys)) == pairs
    assert read(table(tmp_path, "en|de|quality\nHello|Hallo|1\nYes|Ja|0.5\n", **keys)) == pairs
    assert read(table(tmp_path, "Text|Translation\nYes|Ja\n")) == [("Text", "Translation"), ("Yes", "Ja")]
    assert read(table(tmp_path, "Text|Translation\nYes|Ja\n", header=True)) == [("Yes", "Ja")]
    assert read(table(tmp_path, "de text|en text\na|b\n", src_column="en text")) == [("b", "a")]


def test_one_column_by_name_and_the_other_by_language(tmp_path: Path) -> None:
    assert read(table(tmp_path, "de|clean|en\na|b|c\n", src_column="clean")) == [("b", "a")]
    assert read(table(tmp_path, "clean|en\na|b\n", tgt_column="clean")) == [("b", "a")]


@pytest.mark.parametrize(
    ("text", "keys", "message"),
    [
        (
            "id|en|fr|score\n1|a|b|2\n",
            {},
            "it is not clear which columns contain the texts; the first row is 1 'id', 2 'en', 3 'fr', 4 'score': "
            "set src_column and tgt_column",
        ),
        (
            "en|fr|source\na|b|c\n",
            {},
            "the header does not name the target (de); the columns are 1 'en', 2 'fr', 3 'source': "
            "set tgt_column; if the first row is a pair, set header: false",
        ),
        (
            "1|a|b\n",
            {},
            "it is not clear which columns contain the texts; the first row is 1 '1', 2 'a', 3 'b': "
            "set src_column and tgt_column",
        ),
        ("en|fr\na|b\n", {}, "does not name the target (de); the columns are 1 'en', 2 'fr'"),
        ("fr|it\na|b\n", {}, "does not name the source (en) and the target (de); the columns are 1 'fr', 2 'it'"),
        ("en_GB|en_US|de\na|b|c\n", {}, "the column of the source may be 'en_GB' or 'en_US': set src_column"),
        ("en|de\na|b\n", {"tgt_column": "DE"}, "there is no column 'DE'; the columns are 1 'en', 2 'de'"),
        ("a|b\n", {"tgt_column": "3"}, "there is no column number 3; the first row is 1 'a', 2 'b'"),
        ("a|b\n", {"tgt_column": "0"}, "there is no column number 0"),
        ("a|b\n", {"tgt_column": "1", "src_column": "1"}, "source and target are both column 1"),
        ("a|b\nc\n", {}, "table:2: this line has no tab: 'c'"),
        ("a|b\n\nc|d|e\n", {}, "table:3: this line has 3 columns, and the first has 2"),
        (
            "a|b|c\nd|e\n",
            {"src_column": "1", "tgt_column": "3"},
            "table:2: this line has 2 columns, and the first has 3",
        ),
        ("one, two,eins\n", {}, "it is not clear which columns contain the texts"),
        ("a b,\nc\n", {}, "table:2: this line has no ',': 'c'; set delimiter, or put quotes around text"),
        ("a,b\nc, d,e\n", {}, "table:2: this line has 3 columns, and the first has 2; set delimiter, or put quotes"),
        ('a|b\n"c|d"|e\n', {}, "table:2: this line has 3 columns, and the first has 2; set quotes: true if the fields"),
        ('a,b\n"c\nd,e\nf,g\n', {}, "table:2: this row cannot be read: its quotes are not closed"),
        ('a,b\n"c,d\n', {}, "table:2: this row cannot be read: its quotes are not closed"),
        ('a,b\n"c"d,e\n', {}, "table:2: this row cannot be read: ',' expected after '\"'"),
        ('"a, a";"b"\n', {}, "',' expected after '\"'; set delimiter, or double the quotes inside quoted text"),
        ("a,b\nc\rd,e\n", {}, "table:2: this row cannot be read: it contains a carriage return outside quotes"),
        ("en|de\na|\xe4\n", {"src_column": ""}, ""),
    ],
)
def test_what_is_ambiguous_or_wrong_is_an_error_that_lists_the_columns(
    tmp_path: Path, text: str, keys: dict[str, object], message: str
) -> None:
    if not message:
        with pytest.raises(ValueError, match="at least 1 character"):
            table(tmp_path, text, **keys)
    else:
        assert message in error_of(table(tmp_path, text, **keys))


def test_the_likely_delimiter_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as error:
        read(table(tmp_path, "a;b\n"))
    advice = """set delimiter: ";", as in 'csv:table,delimiter:;' on the command line"""
    assert str(error.value) == f"table:1: this line has no ',': 'a;b'; if ';' separates the columns, {advice}"


def test_blank_lines_are_skipped_and_counted(tmp_path: Path) -> None:
    drops = Drops()
    source = table(tmp_path, "\nen|de\na|b\n|\n  \nc|\n")
    examples = list(ParallelText([source], "en", "de").examples(drops))
    assert examples == [("a", "b", 3), ("c", "", 6)]
    assert (drops.counts, drops.lines) == ({"blank": 3}, {"blank": [1, 4, 5]})


def test_quotes_of_a_csv_enclose_separators_quotes_and_line_ends(tmp_path: Path) -> None:
    text = 'id,de,en\n1,"b ""b"", b","a\na"\n\n2,d "d",c\n'
    examples = list(ParallelText([table(tmp_path, text)], "en", "de").examples())
    assert examples == [("a a", 'b "b", b', 2), ("c", 'd "d"', 5)]
    semicolons = table(tmp_path, text.replace(",", ";").replace("; b", ", b"), delimiter=";")
    assert read(semicolons) == [("a a", 'b "b", b'), ("c", 'd "d"')]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("sep=;\r\nen;de\r\na;b\r\n", {}),
        ("sep=;\nen;de\na;b\n", {"delimiter": ";"}),
        ('\ufeff"sep=,"\nen,de\na,b\n', {}),
        ("sep=|\nen|de\na|b\n", {"quotes": True}),
    ],
)
def test_a_first_line_for_excel_names_the_separator(tmp_path: Path, text: str, keys: dict[str, object]) -> None:
    assert list(ParallelText([table(tmp_path, text, **keys)], "en", "de").examples()) == [("a", "b", 3)]


def test_quotes_of_a_tsv_are_text_unless_the_config_says_otherwise(tmp_path: Path) -> None:
    text = '"Hi," he said.|"Hallo," sagte er.\n"a"|""\n'
    assert read(table(tmp_path, text)) == [('"Hi," he said.', '"Hallo," sagte er.'), ('"a"', '""')]
    quoted = '"""Hi,"" he said."|"b|b"\n'
    assert read(table(tmp_path, quoted, quotes=True)) == [('"Hi," he said.', "b\tb")]


def test_what_pandas_writes_is_read(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"de": ['b "b"', "d\td", "f"], "en": ["a, a", "c", "e\ne"], "score": [1, 2, 3]})
    expected = [("a, a", 'b "b"'), ("c", "d\td"), ("e e", "f")]
    for separator, keys in ((",", {}), ("\t", {"quotes": True})):
        for index in (False, True):
            text = io.StringIO()
            frame.to_csv(text, sep=separator, index=index)
            (tmp_path / "table").write_text(text.getvalue(), encoding="utf-8")
            kind = CsvFile if separator == "," else TsvFile
            name = "csv" if separator == "," else "tsv"
            assert read(kind.model_validate({name: tmp_path / "table", **keys})) == expected
