"""Files of messages: keys, comments and translations that are there stay."""

import json
import re
from collections.abc import Sequence

import polib
import pytest
import yaml
from documents import Translate, backwards, capitals, identity, n_steps, translated, units

from mtformer.support.errors import UserError
from mtformer.translate.documents.formats import format_of, read_document
from mtformer.translate.documents.seam import DocumentSettings

CATALOGUE = r"""# A comment
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Language: \n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"

#: a.c:1
msgid "Hello \"world\" %s"
msgstr ""

#, fuzzy, c-format
#| msgid "old"
msgid "Two dogs"
msgstr "Zwei Hund"

msgctxt "menu"
msgid "One file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

msgid "done"
msgstr "fertig"

msgid ""
"This is a long text that was wrapped at some\n"
"column because nobody had a wider screen at hand.\n"
"\n"
"Bye.\n"
msgstr ""

#~ msgid "obsolete"
#~ msgstr "alt"
"""


def test_catalogues_keep_their_translations_and_their_fuzzy_marks() -> None:
    catalogue = polib.pofile(translated(CATALOGUE, "a.po").decode())
    found = {entry.msgid: entry.msgstr or entry.msgstr_plural for entry in catalogue}
    assert found == {
        'Hello "world" %s': 'HELLO "WORLD" %s',
        "Two dogs": "TWO DOGS",
        "One file": {0: "ONE FILE", 1: "%d FILES"},
        "done": "fertig",
        "This is a long text that was wrapped at some\ncolumn because nobody had a wider screen at hand.\n\nBye.\n": (
            "THIS IS A LONG TEXT THAT WAS WRAPPED AT SOME\nCOLUMN BECAUSE NOBODY HAD A WIDER SCREEN AT HAND.\n\nBYE.\n"
        ),
        "obsolete": "alt",
    }
    assert [entry.msgid for entry in catalogue.fuzzy_entries()] == ["Two dogs"]
    assert catalogue.metadata["Language"] == "de"


def test_catalogues_change_only_where_a_translation_was_missing() -> None:
    lines = [line for line in translated(CATALOGUE, "a.po").decode().split("\n") if "msgstr" not in line]
    assert [line for line in CATALOGUE.split("\n") if "msgstr" not in line and line not in lines] == ['"Language: \\n"']
    finished = translated(CATALOGUE.replace("fuzzy, ", ""), "a.po", identity)
    assert translated(finished, "a.po") == finished


def test_sentences_wrapped_inside_of_a_message_are_one_unit() -> None:
    text = "This is a long text that was wrapped at some column because nobody had a wider screen at hand."
    assert units(CATALOGUE, "a.po")[-2:] == [text, "Bye."]


def test_a_line_of_a_catalogue_may_have_several_parts() -> None:
    catalogue = 'msgid "the \\"red\\" "  "dog"\nmsgstr {}\n'
    assert translated(catalogue.format('"" ""'), "a.po").decode() == catalogue.format(r'"THE \"RED\" DOG"')


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('msgid "a"\nmsgstr "\n', r"a\.po:2: this line is not part of a catalogue: msgstr"),
        ('"a"\n', r"a\.po:1: this line belongs to no message"),
        (b'msgid "\xff"\nmsgstr ""\n', r"a\.po:1: the text is not UTF-8; convert the file first"),
        (
            b'"Content-Type: text/plain; charset=utf-8\\n"\n#\xff',
            r"a\.po:2: the text is not UTF-8, its declared encoding",
        ),
    ],
)
def test_damaged_catalogues_are_refused_with_the_line(content: str | bytes, message: str) -> None:
    with pytest.raises(UserError, match=message):
        translated(content, "a.po")


def test_catalogues_have_no_place_for_the_source_beside_the_translation() -> None:
    with pytest.raises(UserError, match=r"a\.po: gettext has no place for the source beside its translation"):
        translated(CATALOGUE, "a.po", bilingual=True)


def test_json_keeps_its_keys_and_layout_and_messages_of_icu_are_translated_one_by_one() -> None:
    source = r"""{
  "a": {"b": "Hello {name}, see %s", "n": 3, "t": true},
  "list": ["Two dogs", "x\ny"],
  "files": "{n, plural, one {# file in {dir}} other {# files}}",
  "mixed": "You have {n, plural, one {a file in {dir}} other {# files}} now",
  "@a": {"description": "for translators"},
  "ext": {"message": "Open", "description": "a button"}
}
"""
    assert translated(source, "a.json", identity).decode() == source
    assert translated(source, "a.json").decode() == (
        source.replace("Hello {name}, see", "HELLO {name}, SEE")
        .replace("Two dogs", "TWO DOGS")
        .replace(r"x\ny", r"X\nY")
        .replace("one {# file in {dir}} other {# files}}", "one {# FILE IN {dir}} other {# FILES}}", 1)
        .replace("You have", "YOU HAVE")
        .replace(" now", " NOW")
        .replace('"Open"', '"OPEN"')
    )


def test_json_is_a_file_of_descriptions_only_where_all_keys_are_known_ones() -> None:
    dialog = '{"dialog": {"title": "Delete file", "message": "Are you sure?", "ok": "Yes, delete"}}'
    assert units(dialog, "a.json") == ["Delete file", "Are you sure?", "Yes, delete"]
    extension = '{"hi": {"message": "Hello $USER$", "placeholders": {"user": {"content": "$1", "example": "Cindy"}}}}'
    assert units(extension, "a.json") == ["Hello $USER$"]
    formatjs = (
        '[{"id": "a.b", "defaultMessage": "A dog", "description": "a pet", "start": 1, "end": 2}, "a \\" b", ["c"]]'
    )
    assert units(formatjs, "a.json") == ["A dog", 'a " b', "c"]
    arb = '{"@@locale": "en", "hi": "Hello", "@hi": {"placeholders": {"n": {"type": "int"}}}}'
    assert translated(arb, "a.arb").decode() == arb.replace('"en"', '"de"').replace("Hello", "HELLO")
    twice = '{"a": {"b": "one"}, "a": "two"}'
    assert translated(twice, "a.json").decode() == '{"a": {"b": "ONE"}, "a": "TWO"}'


TECHNICAL = (
    "de-DE zh-Hant-TW application/json text/x.y+xml Europe/Berlin America/Argentina/Ushuaia btn-save btn--save a-17 "
    "users.list.title list-1.a_b config.json save_button saveButton getHTMLText MAX_SIZE a_B ^[a-z]+$ [0-9]+$ ^a*"
).split()
WORDS = "plain OK ACTIVE E-Mail Read-only and/or Yes/No iPhone Save. e.g. e.g ^up _emphasis_ naïve-größe A.B(c)".split()


def test_single_technical_values_stay() -> None:
    text = [*WORDS, "See de-DE", "de-DE saveButton"]
    listed, lines = json.dumps(TECHNICAL + text), "".join(f"a={value}\n" for value in TECHNICAL + text)
    for name, content in (("a.json", listed), ("a.yml", listed), ("a.properties", lines)):
        assert units(content, name) == text
    assert units("de-DE\nsaveButton\n", "a.txt") == ["de-DE", "saveButton"]


YAML = """\
en:
  a: Hello %{you}   # a comment
  b: 'It''s me'
  c: |
    Line one
    line two

  d: >-
    Folded text
    here

    and more
  e: [x y, "z zz"]
  f: yes
  g: &anchor A word
  h: *anchor
"""


def test_yaml_keeps_comments_styles_and_what_is_no_text() -> None:
    assert translated(YAML, "a.yml", identity).decode() == YAML.replace("en:", "de:", 1)
    changed = translated(YAML, "a.yml").decode()
    assert yaml.safe_load(changed) == {
        "de": {
            "a": "HELLO %{you}",
            "b": "IT'S ME",
            "c": "LINE ONE\nLINE TWO\n",
            "d": "FOLDED TEXT HERE\nAND MORE",
            "e": ["X Y", "Z ZZ"],
            "f": True,
            "g": "A WORD",
            "h": "A WORD",
        }
    }
    assert [mark in changed for mark in ("# a comment", "'IT''S ME'", "c: |\n    LINE", '"Z ZZ"', "f: yes")] == [
        True
    ] * 5


def test_yaml_leaves_what_has_a_tag_of_its_own() -> None:
    tagged = "a: !!binary aGVsbG8gd29ybGQ=\nb: !Ref My dog\nc: !include a file\nd: !Join [one, two]\ne: !!str A dog\n"
    assert translated(tagged, "a.yml").decode() == tagged.replace("A dog", "A DOG")
    assert units("a: ! A dog\nb: !!map {c: Two dogs}\n", "a.yml") == ["A dog", "Two dogs"]


@pytest.mark.parametrize("indicator", ["|", "|2", "|-", "|+", ">", ">2", ">-", ">+"])
@pytest.mark.parametrize(
    "text", ["One dog\n", "One\ntwo\n\n\nthree\n\n", "One\n\ntwo\n   code\n\nthree\n", " One\ntwo\n"]
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_blocks_of_yaml_keep_their_lines(indicator: str, text: str, end: str) -> None:
    indicator = indicator if "2" in indicator or not text.startswith(" ") else f"{indicator[0]}2{indicator[1:]}"
    block = "".join(f"  {line}{end}" if line else end for line in text.split("\n")[:-1])
    source = f"a: {indicator}{end}{block}b: x{end}"
    value = yaml.safe_load(source)["a"]
    written = translated(source, "a.yml", shout).decode()
    assert yaml.safe_load(written) == {"a": value.upper(), "b": "X"}
    assert set(written.replace(end, "")).isdisjoint("\r\n")


def shout(texts: Sequence[str]) -> list[str]:
    return [text.upper() for text in texts]


def test_choices_take_time_in_proportion_to_their_length() -> None:
    branch = "=1 {{a} dog} "

    def work(n: int) -> int:
        return n_steps(lambda: units('{"a": "{n, plural, %s}"}' % (branch * n), "a.json"))

    assert work(200) < 5 * work(50)


def test_a_language_whose_code_is_a_truth_value_gets_quotes() -> None:
    content = b"en:\n  a: A dog\n"
    document = read_document(content, format_of("a.yml"), DocumentSettings("no", "en", name="a.yml"))
    assert yaml.safe_load(document.with_translations(["En hund"])) == {"no": {"a": "En hund"}}


def test_a_translation_that_would_be_something_else_in_yaml_gets_quotes() -> None:
    written = translated("a: one\nb: two\n", "a.yml", lambda texts: ["key: value # x", "yes"])
    assert yaml.safe_load(written) == {"a": "key: value # x", "b": "yes"}
    assert yaml.safe_load(translated("a: one\u00a0\nb: two\n", "a.yml")) == {"a": "ONE\u00a0", "b": "TWO"}


def test_a_key_of_properties_may_go_on_in_the_next_line() -> None:
    source = "long.key\\\n   .name=A dog.\nb\\\r\n A dog\n"
    assert translated(source, "a.properties").decode() == "long.key\\\n   .name=A DOG.\nb\\\r\n A DOG\n"


def test_properties_keep_escapes_and_double_apostrophes() -> None:
    source = "# c\n! d\na=Hello {0}, it''s me\nb : two \\\n   dogs\nc\\ d=\\u00dcber uns\ne=\n"
    assert translated(source, "a.properties", identity).decode() == source
    assert translated(source, "a.properties").decode() == (
        "# c\n! d\na=HELLO {0}, IT''S ME\nb : TWO DOGS\nc\\ d=\\u00DCBER UNS\ne=\n"
    )


TABLE = 'id,text,n\n1,"Two, dogs",3\n2,One dog,4\n3,,\n'


def test_named_columns_of_tables_are_translated() -> None:
    assert translated(TABLE, "a.csv", columns=["text"]).decode() == 'id,text,n\n1,"TWO, DOGS",3\n2,ONE DOG,4\n3,,\n'
    assert translated(TABLE.replace(",", "\t"), "a.tsv", columns=["2"]).decode().startswith("id\tTEXT\tn\n")
    both = translated(TABLE, "a.csv", columns=["text"], bilingual=True).decode()
    assert both == 'id,text,text (de),n\n1,"Two, dogs","TWO, DOGS",3\n2,One dog,ONE DOG,4\n3,,,\n'


def test_rows_with_too_many_cells_or_an_unclosed_quote_are_named(caplog: pytest.LogCaptureFixture) -> None:
    units('id,text\n1,"Yes, two"\n2,"a" b,\n', "a.csv", columns=["text"])
    assert not caplog.messages
    units('id,text\n1,"Yes,\ntwo"\n2,Yes, two\n3,"Yes\n4,No, no\n', "a.csv", columns=["text"])
    assert caplog.messages == [
        "a.csv:4: the row has more cells than the first one: put quotes around a text that contains the separator; 1 "
        "other row likewise",
        "a.csv:5: the row has a quote that is not closed",
    ]


def test_values_below_named_keys_are_translated() -> None:
    source = {
        "id": "one",
        "text": ["two", {"x": {"y": "three"}}],
        "more": [{"text": "four", "n": ["five"]}, ["six"], "seven"],
        "item": {"message": "eight", "description": "nine"},
    }
    for name in ("a.json", "a.yml"):
        written = json.dumps(source) if name == "a.json" else yaml.safe_dump(source, sort_keys=False)
        assert units(written, name, columns=["text"]) == ["two", "three", "four"]
        assert units(written, name, columns=["n", "description"]) == ["five", "nine"]
        with pytest.raises(UserError, match=f"{name} has no key b, which --column names"):
            units(written, name, columns=["text", "b"])


def test_below_a_named_key_all_values_are_text() -> None:
    assert units('{"label": "e-mail", "class": "btn-save"}', "a.json", columns=["label"]) == ["e-mail"]


def test_a_key_that_is_no_plain_scalar_is_never_a_named_one() -> None:
    text = "a: &x name\ntitle: A dog\n*x : Two\ntitle : A cat\n!!int 2: Three\n? [a, b]\n: Four\n"
    assert units(text, "a.yml", columns=["title"]) == ["A dog", "A cat"]


def test_tables_with_tabs_may_have_commas_in_their_header() -> None:
    assert units("name\ta, b, c\nx\tA, dog\n", "a.tsv", columns=["2"]) == ["a, b, c", "A, dog"]
    assert units("A, dog\n", "a.tsv") == ["A, dog"]


def test_what_separates_cells_is_not_in_quotes() -> None:
    assert units('"name (a; b; c)",text\nx,A dog\n', "a.csv", columns=["text"]) == ["A dog"]


@pytest.mark.parametrize("first", ["sep=|\r\n", '\ufeff"sep=|"\n'])
def test_a_first_line_for_excel_names_the_separator_of_a_table(first: str) -> None:
    text = f'{first}id|text\n1|one, two; a "dog"\n2|"a|b"\n'
    wanted = text.replace("one, two; a", "ONE, TWO; A").replace("dog", "DOG").replace("a|b", "A|B")
    assert translated(text, "a.csv", columns=["text"]).decode() == wanted


def test_cells_without_quotes_around_them_keep_those_inside() -> None:
    table = 'A "dog" runs.\n"Yes," he said.\n"Yes"\nNo\n'
    assert translated(table, "a.tsv").decode() == table.upper()
    assert translated("No\n", "a.tsv", lambda texts: ['"No"']).decode() == '"""No"""\n'


def test_the_choices_of_xliff_are_units_as_in_other_messages() -> None:
    choice = (
        '{n, plural, =0 {No &amp; none} one {<x id="n"/> dog} other {{s, select, a {A cat} other {<g id="1">Two</g>}}}}'
    )
    page = XLIFF_PAGE.format(f"<source>{choice}</source>", f"<source>Is {choice}?</source>")
    assert units(page, "a.xlf")[:-1] == ["No &amp; none", "dog", "A cat", "Two"]
    new = choice.replace("No &amp; none", "NO &amp; NONE").replace("dog", "DOG").replace("A cat", "A CAT")
    assert f">{new.replace('Two', 'TWO')}</target>" in translated(page, "a.xlf").decode()
    assert f">IS {choice}?</target>" in translated(page, "a.xlf").decode()


XLIFF_PAGE = """<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file source-language="en"><body>
<trans-unit id="1">{}</trans-unit><trans-unit id="2">{}</trans-unit></body></file></xliff>"""
XLIFF = """<?xml version="1.0"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file source-language="en" datatype="x"><body>
  <trans-unit id="1">
    <source>Hello <g id="1">big</g> world <x id="2"/></source>
  </trans-unit>
  <trans-unit id="2"><source>Two dogs</source><target state="new">x</target></trans-unit>
  <trans-unit id="3"><source>Two dogs</source><target state="translated">Zwei</target></trans-unit>
  <trans-unit id="4" translate="no"><source>Two dogs</source></trans-unit>
</body></file></xliff>
"""
REVIEW = 'state="needs-review-translation" state-qualifier="leveraged-mt"'


def test_xliff_keeps_its_translations_and_marks_ours_for_review() -> None:
    lines = translated(XLIFF, "a.xlf").decode().split("\n")
    assert 'target-language="de"' in lines[1]
    assert lines[4] == f'    <target {REVIEW}>HELLO <g id="1">BIG</g> WORLD <x id="2"/></target>'
    assert lines[6].endswith(f"<target {REVIEW}>TWO DOGS</target></trans-unit>")
    assert [line for line in lines if line not in XLIFF.split("\n")] == [lines[1], lines[4], lines[6]]


def test_tabs_and_control_characters_stay_and_end_units() -> None:
    assert units('{"a": "One\\tTwo dogs\\u001b[1m big\\u001b[0m"}', "a.json") == ["One", "Two dogs", "big"]
    assert translated("One\tTwo dogs\nEnd\t\n", "a.txt") == b"ONE\tTWO DOGS\nEND\t\n"
    catalogue = 'msgid "\\033[1mbold\\x1b[0m\\t\\303\\274ber"\nmsgstr ""\n'
    assert units(catalogue, "a.po") == ["bold", "\u00fcber"]
    assert 'msgstr "\\033[1mBOLD\\033[0m\\t\u00dcBER"' in translated(catalogue, "a.po").decode()
    properties = "a=One\\tdog \\uD83D\\uDE00\nb=\\u001b[1mTwo\nc=half \\uD83D\n"
    assert units(properties, "a.properties") == ["One", "dog \U0001f600", "Two"]
    assert translated(properties, "a.properties").decode() == (
        "a=ONE\\tDOG \\uD83D\\uDE00\nb=\\u001B[1mTWO\nc=half \\uD83D\n"
    )
    choice = '{"n": "{n, plural, one { one\\tdog } other {dogs\\nor none}}"}'
    assert translated(choice, "a.json").decode() == choice.replace(r"one\tdog", r"ONE\tDOG").replace(
        r"dogs\nor none", r"DOGS\nOR NONE"
    )


def test_a_fuzzy_mark_counts_for_its_own_message_only() -> None:
    obsolete = '#, fuzzy\n#~ msgid "old"\n#~ msgstr "alt"\n\n'
    message = 'msgid "done"\nmsgstr "fertig"\n'
    for catalogue in (f"{obsolete}{message}", f"#, fuzzy\n\n{message}", f"{obsolete.rstrip()}\n{message}"):
        assert translated(catalogue, "a.po").decode() == catalogue


def test_xliff_is_translated_beside_suggestions_of_others() -> None:
    suggestion = "<alt-trans><source>Two cats</source><target>Zwei Katzen</target></alt-trans>"
    unit = f"<trans-unit id='1'><source>Two dogs</source>{suggestion}</trans-unit>"
    xliff = f"<xliff version='1.2'><file target-language='de'><body>{unit}</body></file></xliff>"
    assert translated(xliff, "a.xlf").decode() == xliff.replace(
        "dogs</source>", f"dogs</source><target {REVIEW}>TWO DOGS</target>"
    )


def test_the_second_xliff_and_translation_memories_get_the_target_language() -> None:
    segments = (
        "<segment><source>Hello <pc id='1'>big</pc> dog</source></segment><segment state='final'><source>a</source>"
    )
    unit = f"<file id='f'><unit id='1'>{segments}<target>b</target></segment></unit></file>"
    xliff = f"<xliff xmlns='urn:oasis:names:tc:xliff:document:2.0' version='2.0' srcLang='en'>{unit}</xliff>"
    assert translated(xliff, "a.xlf").decode() == xliff.replace("srcLang='en'", "srcLang='en' trgLang=\"de\"").replace(
        "<segment><source>Hello <pc id='1'>big</pc> dog</source>",
        "<segment state=\"translated\"><source>Hello <pc id='1'>big</pc> dog</source>"
        "<target>HELLO <pc id='1'>BIG</pc> DOG</target>",
    )
    unit = '<tu><tuv xml:lang="en-US"><seg>Two dogs</seg></tuv></tu>'
    tmx = f'<tmx version="1.4"><header srclang="en"/><body>{unit}</body></tmx>'
    added = '<tuv xml:lang="de"><seg>TWO DOGS</seg></tuv></tu>'
    assert translated(tmx, "a.tmx").decode() == tmx.replace("</tu>", added)
    assert units(translated(tmx, "a.tmx"), "a.tmx") == []


def target_of(source: str, *, after: str = "", version: str = "1.2", translate: Translate = backwards) -> str:
    """Return the target that a source gets, in a file with a namespace of its own name."""
    name = {"1.2": "trans-unit", "2.0": "segment"}[version]
    unit = f"<x:{name} id='1'><x:source{source}</x:source>{after}</x:{name}>"
    unit = unit if version == "1.2" else f"<x:unit id='1'>{unit}</x:unit>"
    namespace = f"xmlns:x='urn:oasis:names:tc:xliff:document:{version}'"
    language = "target-language" if version == "1.2" else "trgLang"
    root = f"<x:xliff {namespace} version='{version}' {language}='de-AT'>"
    written = translated(f"{root}<x:file {language}='de-AT'>{unit}</x:file></x:xliff>", "a.xlf", translate).decode()
    assert f"{root}<x:file {language}='de-AT'>" in written
    return written.split("</x:source>")[1].split(f"</x:{name}>")[0]


OLD, NEW = f"<x:target {REVIEW}>", "<x:target>"


def test_elements_that_belong_together_go_around_the_same_words() -> None:
    bold = "<x:bpt id='1' rid='9'>b</x:bpt>dog<x:ept id='2' rid='9'>/b</x:ept>"
    assert target_of(f">The {bold} runs") == f"{OLD}runs {bold} The</x:target>"
    start, end = "<x:sc id='1'/>", "<x:ec startRef='1'/>"
    assert target_of(f">The {start}dog{end} runs", version="2.0") == f"{NEW}runs {start}dog{end} The</x:target>"
    overlapping = target_of(">The <x:bx id='1'/>big <x:g id='3'>dog<x:ex id='1'/> runs</x:g>")
    assert overlapping.index("<x:bx") < overlapping.index("<x:ex")
    unit = '<tu><tuv lang="EN"><seg>The <bpt i="1">b</bpt>dog<ept i="1">e</ept> runs</seg></tuv></tu>'
    tmx = f'<tmx version="1.1"><header srclang="EN"/><body>{unit}</body></tmx>'
    assert '<seg>runs <bpt i="1">b</bpt>dog<ept i="1">e</ept> The</seg>' in translated(tmx, "a.tmx", backwards).decode()


def test_targets_keep_lines_segments_and_attributes() -> None:
    preserve = " xml:space='preserve'"
    written = target_of(f"{preserve}>One dog.\nTwo big\n  dogs.\n", translate=capitals)
    assert written == OLD.replace("target", 'target xml:space="preserve"') + "ONE DOG.\nTWO BIG\n  DOGS.\n</x:target>"
    name = "<x:mrk mtype='protected'>Big Dog</x:mrk>"
    assert target_of(f">See {name} run", translate=capitals) == f"{OLD}SEE {name} RUN</x:target>"
    segments = "<x:mrk mtype='seg' mid='1'>One dog</x:mrk> <x:mrk mtype='seg' mid='2'>Two dogs</x:mrk>"
    segmented = f"<x:seg-source>{segments}</x:seg-source>"
    reordered = segments.replace("One dog", "dog One").replace("Two dogs", "dogs Two")
    assert target_of(">One dog Two dogs", after=segmented) == f"{segmented}{OLD}{reordered}</x:target>"
    assert (
        target_of(">Two dogs", after="<x:target order='2'/>", version="2.0")
        == "<x:target order='2'>dogs Two</x:target>"
    )


@pytest.mark.parametrize(
    "xliff",
    [
        "<xliff version='1.2'><file source-language='{}'><trans-unit><source>Dogs</source></trans-unit></file></xliff>",
        "<xliff version='2.0' srcLang='{}'><file><unit><segment><source>Dogs</source></segment></unit></file></xliff>",
    ],
)
def test_files_in_another_source_language_are_refused(xliff: str) -> None:
    with pytest.raises(UserError, match=r"a\.xlf names fr-CA as the language of its texts, not en"):
        translated(xliff.format("fr-CA"), "a.xlf")
    for language in ("en-GB", "ENG", "unknown"):
        assert units(xliff.format(language), "a.xlf") == ["Dogs"]
    settings = DocumentSettings("de", "no")
    settings.require_source_language("nb-NO")  # a macrolanguage and a language of it


@pytest.mark.parametrize("comments", [0, 500])
@pytest.mark.parametrize("encoding", ["iso-8859-1", "utf-16"])
def test_catalogues_are_read_in_their_encoding_after_any_comment(comments: int, encoding: str) -> None:
    text = "# by a translator of the catalogue\n" * comments
    text += f'msgid ""\nmsgstr "Content-Type: text/plain; charset={encoding}\\n"\n\nmsgid "Grüße"\nmsgstr ""\n'
    assert units(text.encode(encoding), "a.po") == ["Grüße"]


def test_files_in_another_target_language_are_refused() -> None:
    xliff = (
        "<xliff version='1.2'><file target-language='{}'><trans-unit><source>A dog</source></trans-unit></file></xliff>"
    )
    with pytest.raises(UserError, match=r"a\.xlf names fr as the language of its translations, not de"):
        translated(xliff.format("fr"), "a.xlf")
    assert "target-language='de'" in translated(xliff.format("en"), "a.xlf").decode()
    with pytest.raises(UserError, match=r"a\.po names fr_CA as the language of its translations"):
        translated(CATALOGUE.replace("Language: ", "Language: fr_CA"), "a.po")
    assert "Language: de_AT\\n" in translated(CATALOGUE.replace("Language: ", "Language: de_AT"), "a.po").decode()


@pytest.mark.parametrize(
    ("variants", "added"),
    [(["EN-US", "DE-DE"], False), (["en", "fr"], True), (["fr", "EN"], True)],
)
def test_translation_memories_get_a_language_once(variants: list[str], added: bool) -> None:
    unit = "".join(f'<tuv xml:lang="{variant}"><seg>Two dogs</seg></tuv>' for variant in variants)
    tmx = f'<tmx version="1.4"><header srclang="en"/><body><tu>{unit}</tu></body></tmx>'
    assert ('xml:lang="de"' in translated(tmx, "a.tmx").decode()) == added


def test_a_variant_of_a_language_is_not_another_variant() -> None:
    unit = '<tu><tuv xml:lang="en"><seg>Two dogs</seg></tuv><tuv xml:lang="zh-TW"><seg>x</seg></tuv></tu>'
    tmx = f"<tmx><body>{unit}</body></tmx>".encode()
    for language, n_units in (("zh-CN", 1), ("zh-tw", 0), ("zh", 0)):
        settings = DocumentSettings(language, "en", name="a.tmx")
        assert len(read_document(tmx, format_of("a.tmx"), settings).units) == n_units


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", '{"a": 1', "a.json is not JSON: "),
        ("a.json", "[" * 100_000, "a.json is nested too deeply"),
        ("a.yml", "a: " + "[" * 100_000, "a.yml is nested too deeply"),
        ("a.yml", "a: [b", "a.yml is not YAML: "),
        (
            "a.csv",
            TABLE,
            "a.csv has 3 columns, id, text, n: name those to translate with mtformer translate --column (",
        ),
        ("a.csv", TABLE, "--column (mtformer serve translates tables of one column)"),
        ("a.xlf", "<tmx/>", "a.xlf is not XLIFF"),
        ("a.xlf", "<xliff><a></xliff>", "a.xlf is damaged: line 1 is not valid XML (mismatched tag)"),
        ("a.xlf", '<!DOCTYPE x [<!ENTITY a "b">]><xliff/>', "a.xlf declares entities of its own"),
        ("a.tmx", "<xliff/>", "a.tmx is not TMX"),
    ],
)
def test_bad_files_of_messages_get_one_sentence(name: str, content: str, message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)) as error:
        translated(content, name)
    assert "\n" not in str(error.value)
