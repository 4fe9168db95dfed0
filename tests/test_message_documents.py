"""Files of messages: keys, comments and translations that are there stay."""

import polib
import pytest
from documents import identity, translated, units

from mtformer.support.errors import UserError

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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('msgid "a"\nmsgstr "\n', r"a\.po:2: this line is no part of a catalogue: msgstr"),
        ('"a"\n', r"a\.po:1: this line belongs to no message"),
        (b'msgid "\xff"\nmsgstr ""\n', r"a\.po: the text is not UTF-8"),
    ],
)
def test_damaged_catalogues_are_refused_with_the_line(content: str | bytes, message: str) -> None:
    with pytest.raises(UserError, match=message):
        translated(content, "a.po")


def test_catalogues_have_no_place_for_the_source_beside_the_translation() -> None:
    with pytest.raises(UserError, match=r"a\.po: gettext has no place for the source beside its translation"):
        translated(CATALOGUE, "a.po", bilingual=True)
