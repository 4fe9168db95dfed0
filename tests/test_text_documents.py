"""Text, Markdown, subtitles, books, OpenDocument and PDF."""

import io
import re
import zipfile
from collections.abc import Sequence

import pypdf
import pytest
from documents import backwards, identity, n_steps, parts, translated, units, with_part

from mtformer.support.errors import UserError

MARKDOWN = """---
title: x
---
# The big *title*

A paragraph that is
wrapped with [a link](http://x.y), `code`, [the docs][ref] and [ref].[^1]

- item one
- item two
  goes on

> quoted text\\
> after a hard break

| A b | C |
|---|---|
| one **two** | three |

```
code
```

<p align="center">Some <b>html</b></p>

[^1]: A note.

[ref]: http://x.y
"""


def test_markdown_keeps_code_front_matter_and_the_targets_of_links() -> None:
    assert translated(MARKDOWN, "a.md", identity).decode() == MARKDOWN
    expected = MARKDOWN
    for old, new in (
        ("The big *title*", "THE BIG *TITLE*"),
        ("A paragraph that is\nwrapped with [a link]", "A PARAGRAPH THAT IS WRAPPED WITH [A LINK]"),
        ("[the docs][ref] and [ref].[^1]", "[THE DOCS][ref] AND [REF][ref].[^1]"),
        ("item one\n- item two\n  goes on", "ITEM ONE\n- ITEM TWO GOES ON"),
        ("quoted text\\\n> after a hard break", "QUOTED TEXT\\\n> AFTER A HARD BREAK"),
        ("| A b |", "| A B |"),
        ("| one **two** | three |", "| ONE **TWO** | THREE |"),
        (">Some <b>html</b>", ">SOME <b>HTML</b>"),
        ("A note", "A NOTE"),
    ):
        expected = expected.replace(old, new)
    assert translated(MARKDOWN, "a.md").decode() == expected


def test_markdown_may_be_bilingual_and_starts_no_list_by_chance() -> None:
    assert translated("One dog.\n\n# A title\n", "a.md", bilingual=True).decode() == (
        "One dog.\\\nONE DOG.\n\n# A title<br>A TITLE\n"
    )
    assert translated("Number\n", "a.md", lambda texts: ["1. x"]).decode() == "1\\. x\n"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("> <!-- c --> One dog.\n", "> <!-- c --> ONE DOG.\n"),
        ("> <p>one\n> dog</p>\n", "> <p>ONE DOG</p>\n"),
        ("> <br>\n> one\n\n- <div>\n  two\n  </div>\n", "> <br>\n> ONE\n\n- <div>\n  TWO\n  </div>\n"),
        ("> - <div>\n>   <b>one</b>\n>   </div>\n", "> - <div>\n>   <b>ONE</b>\n>   </div>\n"),
        ("<p>dog\u2028two\x0c\nthe dog runs\n</p>\n", "<p>DOG TWO THE DOG RUNS\n</p>\n"),
        ("> <div>a\x0cb\n> one b two\n> </div>\n", "> <div>A B ONE B TWO\n> </div>\n"),
    ],
)
def test_html_in_quotations_and_items_leaves_their_signs_in_place(text: str, wanted: str) -> None:
    assert translated(text, "a.md", identity).decode() == text
    assert translated(text, "a.md").decode() == wanted


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (  # a cell that stands in code below as well
            "| a | b |\n|---|---|\n| a dog \\| or two | one |\n| two | three |\n\n    a dog | or two\n\nLast one.\n",
            "| A | B |\n|---|---|\n| A DOG \\| OR TWO | ONE |\n| TWO | THREE |\n\n    a dog | or two\n\nLAST ONE.\n",
        ),
        ("+++\ntitle = 'a dog'\n+++\nA dog.\n", "+++\ntitle = 'a dog'\n+++\nA DOG.\n"),
        ("---\nA dog.\n\n---\ntwo dogs\n", "---\nA DOG.\n\n---\nTWO DOGS\n"),
        ("---\ntitle: a dog\n---\ntwo dogs\n", "---\ntitle: a dog\n---\nTWO DOGS\n"),
        ("> [!NOTE]\n> A dog\n> runs.\n", "> [!NOTE]\n> A DOG RUNS.\n"),
        (":::tip\nA dog.\n:::\nTwo.\n", ":::tip\nA DOG.\n:::\nTWO.\n"),
        ('!!! note "Be quick"\n    A dog.\n', '!!! note "Be quick"\n    A DOG.\n'),
        ("So:\n$$\nx = y\n- z\n$$\nand $$ab$$ it.\n", "SO:\n$$\nx = y\n- z\n$$\nAND $$ab$$ IT.\n"),
        ("a\\_b of s\\_client-x, 5 \\* 3 and \\[a b\\]\n", "A\\_B OF S\\_CLIENT-X, 5 \\* 3 AND \\[A B\\]\n"),
        ("Use `\\_x` and `[a]`, `` `\\* ` `` it\n\n[a]: b\n", "USE `\\_x` AND `[a]`, `` `\\* ` `` IT\n\n[a]: b\n"),
        ("`$a` and `$b` cost $5, or $x + y$ it.\n", "`$a` AND `$b` COST $5, OR $x + y$ IT.\n"),
        ("A word\n: what it means\n:   or not\n", "A WORD\n: WHAT IT MEANS\n:   OR NOT\n"),
        ("{% note %}\nA dog.\n{% endnote %}\n", "{% note %}\nA DOG.\n{% endnote %}\n"),
        (
            "[![A dog][b]][u] and [![two](b.svg)][u], [one [old] `x[0]`][u], [see [u]]\n\n[b]: x\n[u]: y\n",
            "[![A DOG][b]][u] AND [![TWO](b.svg)][u], [ONE [OLD] `x[0]`][u], [SEE [U][u]]\n\n[b]: x\n[u]: y\n",
        ),
        ("[TOC]\n\nA dog.\n\n\\newpage\n\n@[toc]\n", "[TOC]\n\nA DOG.\n\n\\newpage\n\n@[toc]\n"),
        ("One\rtwo.\r\rThree\n", "ONE TWO.\r\rTHREE\n"),
        ("A dog.\n{: .note }\n\n# Two {#two .big}\n", "A DOG.\n{: .note }\n\n# TWO {#two .big}\n"),
        ('[One](x){ .big } and ![two](y){ width="3" }.\n', '[ONE](x){ .big } AND ![TWO](y){ width="3" }.\n'),
        ("A man ![A dog](a.png) runs.\n", "A MAN ![A DOG](a.png) RUNS.\n"),
        ('![one](a_(b).png "x")\\\nTwo.\n\n![a](b) ![c](d)\n', '![ONE](a_(b).png "x")\\\nTWO.\n\n![A](b) ![C](d)\n'),
        ("See ![Tom \\* dog & cat](a) it.\n", "SEE ![TOM \\* DOG & CAT](a) IT.\n"),
        ("| ![one](a) two | b |\n|---|---|\n", "| ![ONE](a) TWO | B |\n|---|---|\n"),
        ("> See\n> ![one\n> two](a.png) here\n> ![x](y)!\n", "> SEE ![ONE TWO](a.png) HERE ![X](y)!\n"),
        ("See [[a dog]], [[b|two]] or ![[c.png]] here.\n", "SEE [[a dog]], [[b|two]] OR ![[c.png]] HERE.\n"),
        ("See [[the paper]](https://a.b/c) here.\n", "SEE [[THE PAPER]](https://a.b/c) HERE.\n"),
    ],
)
def test_markdown_keeps_lines_that_mean_something(source: str, expected: str) -> None:
    assert translated(source, "a.md", identity).decode() == source
    assert translated(source, "a.md").decode() == expected
    crlf = source.replace("\r", "\n").replace("\n", "\r\n")
    assert translated(crlf, "a.md").decode() == expected.replace("\r", "\n").replace("\n", "\r\n")


def test_bilingual_markdown_repeats_all_but_notes_and_attributes() -> None:
    source = "A dog\\_x is $x + y$ or [[b]].[^1]{.c}\n\n[^1]: x\n"
    assert translated(source, "a.md", bilingual=True).decode().splitlines()[:2] == [
        "A dog\\_x is $x + y$ or [[b]].[^1]{.c}\\",
        "A DOG\\_X IS $x + y$ OR [[b]].",
    ]


def test_the_backslash_of_a_hard_line_break_in_markdown_is_not_translated() -> None:
    assert units("One dog. \\\nAnd \\\\\ntwo\\\n", "a.md") == ["One dog.", "And <1/> two\\"]
    assert translated("One dog. \\\r\nAnd two\r\n", "a.md").decode() == "ONE DOG. \\\r\nAND TWO\r\n"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("A man  \nis riding a bike.\n", ["A man<1/>is riding a bike."]),
        ("Two young\\\n*dogs* run.\n", ["Two young<1/>*dogs* run."]),
        ("A **Young**  \n**dog** runs.\n", ["A **Young**<1/>**dog** runs."]),
        ("> A man \\\n> is [riding][a]  \n> a bike.\n\n[a]: b\n", ["A man<1/>is <2>riding</2><4/>a bike."]),
        ("A big<br><br>dog.<BR/>\nTwo dogs<br />\nrun.\n", ["A big<1/><2/>dog.<BR/> Two dogs<3/> run."]),
        ("| a |\n|---|\n| A big<br>dog |\n", ["a", "A big<1/>dog"]),
        ("Write `a<br>b` twice.\n", ["Write `a<br>b` twice."]),
        ("**Two dogs.**  \nanother one\n", ["**Two dogs.**", "another one"]),
        ("Jane Doe  \n[Main Street](x) 1\\\nthe end\n", ["Jane Doe", "[Main Street](x) 1<1/>the end"]),
    ],
)
def test_line_breaks_of_markdown_inside_a_sentence_are_tags(source: str, expected: list[str]) -> None:
    for text in (source, source.replace("\n", "\r\n")):
        assert units(text, "a.md") == expected
        assert translated(text, "a.md", identity).decode() == text
    assert translated("> A man \\\r\n> is<br>\r\n> here.\r\n", "a.md").decode() == "> A MAN \\\r\n> IS<br>HERE.\r\n"


@pytest.mark.parametrize("line_break", ["  \n> ", "\\\n> "])
@pytest.mark.parametrize("translation", ["{0}ein Hund", "ein Hund{0}", "{0}ein{0}{0}Hund{0}"])
def test_a_line_break_of_markdown_moved_to_an_end_is_dropped_since_it_would_be_none(
    line_break: str, translation: str
) -> None:
    n_breaks = translation.count("{0}")
    source = line_break.join(["> a", *"bcde"[:n_breaks]])
    expected = f"> ein{line_break if n_breaks > 1 else ' '}Hund\n"
    tags = iter(f"<{number}/>" for number in range(1, n_breaks + 1))
    moved = re.sub(r"\{0\}", lambda _: next(tags), translation)
    assert translated(f"{source}\n", "a.md", lambda texts: [moved]).decode() == expected


@pytest.mark.parametrize(
    ("moved", "expected"),
    [
        ("It began in<1/>1. January.", "It began in  \n1\\. January.\n"),
        ("It began<1/>- and ended.", "It began  \n\\- and ended.\n"),
        ("It began<1/># at last.", "It began  \n\\# at last.\n"),
        ("It began<1/>1.5 years ago.", "It began  \n1.5 years ago.\n"),
    ],
)
def test_what_follows_a_moved_line_break_of_markdown_stays_text(moved: str, expected: str) -> None:
    assert translated("It began  \nin the year 1914.\n", "a.md", lambda texts: [moved]).decode() == expected


@pytest.mark.parametrize("part", [" ", "\\"])
def test_line_breaks_of_markdown_are_found_in_linear_time(part: str) -> None:
    """Quadratic time would be a minute."""
    assert units(f"A {part * 50_000}x\n", "a.md")


def test_bilingual_markdown_repeats_line_breaks_inside_sentences() -> None:
    assert translated("A man\\\nis here.\n", "a.md", bilingual=True).decode() == (
        "A man\\\nis here.\\\nA MAN\\\nIS HERE.\n"
    )


SUBTITLES = """1
00:00:01,000 --> 00:00:03,000
<i>When we went to
the market</i>

2
00:00:03,500 --> 00:00:05,000
we saw two dogs.

3
00:00:08,000 --> 00:00:09,000
- Hello.
- Who are you?
"""


def test_sentences_of_subtitles_run_over_cues_and_their_times_stay() -> None:
    assert translated(SUBTITLES, "a.srt", identity).decode() == SUBTITLES
    assert units(SUBTITLES, "a.srt") == [
        "When we went to the market we saw two dogs.",
        "Hello.",
        "Who are you?",
    ]
    assert translated(SUBTITLES, "a.srt", backwards).decode() == (
        SUBTITLES.replace("<i>When we went to\nthe market</i>", "<i>dogs. two saw we market the</i>")
        .replace("we saw two dogs.", "to went we When")
        .replace("- Who are you?", "- you? are Who")
    )


def test_cues_need_no_blank_line_between_them() -> None:
    first = "1\n00:01,000 --> 00:03,000\nOne dog.\n2\n00:03,500 --> 00:05,000\n7\nTwo dogs.\n"
    cues = f"{first}00:06,000 --> 00:07,000\nEnd.\n"
    assert units(cues, "a.srt") == ["One dog.", "7 Two dogs.", "End."]
    assert "\n2\n00:03,500 --> 00:05,000\n" in translated(cues, "a.srt").decode()


def test_text_after_an_empty_line_belongs_to_its_cue_in_srt_alone() -> None:
    times = "00:00:0{0},000 --> 00:00:0{0},900\n"
    cues = f"{times.format(1)}A big\n \n\ndog.\n\n\n2\n{times.format(2)}Two.\n\n 3\n00:00:03 --> 00:00:04\nNo times.\n"
    assert units(cues, "a.srt") == ["A big dog.", "Two."]
    assert translated(cues, "a.srt", identity).decode() == cues
    assert translated(cues, "a.srt").decode() == cues.replace("A big\n \n\ndog", "A BIG DOG").replace("Two", "TWO")
    assert units(cues.replace(",", "."), "a.vtt") == ["A big Two."]


@pytest.mark.parametrize("name", ["intro", "2.", "#2", " 2", "\t2"])
def test_the_name_of_a_cue_is_no_text_of_the_one_before(name: str) -> None:
    cues = "1\n00:01,000 --> 00:02,000\nA big\n\n{0}\n00:02,000 --> 00:03,000\ndog.\n".replace("{0}", name)
    assert translated(cues, "a.srt").decode() == cues.replace("A big", "A BIG").replace("dog", "DOG")


OTHER = "1\n00:00:01,000 --> 00:00:02,000\n{}\n\n"  # also lines of text, of Markdown or of a table


@pytest.mark.parametrize("name", ["a.srt", "a.vtt", "a.txt", "a.md", "a.csv"])
@pytest.mark.parametrize(
    ("src_lang", "encoding", "line"),
    [("de", "cp1252", "Schöne Grüße!"), ("cs", "cp1250", "Příliš žluťoučký"), ("zh", "gb18030", "你好")],
)
def test_documents_in_other_encodings_are_read_by_their_language_and_written_in_utf8(
    name: str, src_lang: str, encoding: str, line: str, caplog: pytest.LogCaptureFixture
) -> None:
    written = translated(OTHER.format(line).encode(encoding), name, src_lang=src_lang).decode()
    assert line.upper() in written
    assert caplog.messages == [f"{name} is not UTF-8: it is read as {encoding}, and its translation is UTF-8"]


@pytest.mark.parametrize(("src_lang", "line"), [("und", "Привет"), ("kk", "Сәлем"), ("yue", "你好")])
def test_encodings_of_languages_that_had_others_or_are_not_known_are_not_guessed(src_lang: str, line: str) -> None:
    content = OTHER.format(line).encode("gb18030" if src_lang == "yue" else "cp1251", "replace")
    with pytest.raises(UserError, match="the text is not UTF-8"):
        translated(content, "a.srt", src_lang=src_lang)


@pytest.mark.parametrize("name", ["a.srt", "a.md", "a.csv"])
@pytest.mark.parametrize("line", [b"Sch\xf6ne Gr\xc3\xbc\xc3\x9fe!", b"\x81 Sch\xf6n"])
def test_a_document_that_is_damaged_or_in_no_known_encoding_is_refused(name: str, line: bytes) -> None:
    content = OTHER.encode().replace(b"{}", line)
    with pytest.raises(UserError, match=rf"{name}:3: the text is not UTF-8; convert the file first"):
        translated(content, name)


@pytest.mark.parametrize(
    "name", ["a.srt", "a.vtt", "a.txt", "a.md", "a.csv", "a.html", "a.po", "a.json", "a.properties"]
)
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_documents_in_utf16_without_its_mark_are_refused(name: str, encoding: str) -> None:
    """Else each of their letters would be a text between control characters."""
    with pytest.raises(UserError, match=rf"{name}:1: the text has a zero byte: it is not text, or UTF-16"):
        translated("Hello you.\n".encode(encoding), name)


def test_subtitles_are_wrapped_and_may_be_bilingual() -> None:
    cue = "WEBVTT\n\nNOTE not this\n\n00:01.000 --> 00:02.000 align:start\n<v Bob>A dog\n"
    assert translated(cue, "a.vtt").decode() == cue.replace("A dog", "A DOG")
    assert translated(cue, "a.vtt", bilingual=True).decode() == cue.replace("A dog", "A dog\n<v Bob>A DOG")
    long = translated(cue, "a.vtt", lambda texts: ["word " * 15]).decode()
    assert max(map(len, long.split("\n")[4:])) <= 42 + len("<v Bob>")


@pytest.mark.parametrize(
    ("cue", "wanted"),
    [
        ("<i>I have a big dog.</i>\n<i>I have a small cat.</i>", ["I have a big dog.", "I have a small cat."]),
        ("<b>Stop!</b> I have a dog and <b>a cat.</b>", ["<b>Stop!</b> I have a dog and <b>a cat.</b>"]),
        ("{\\an8}<font color='red'>A big</font>\n<font color='blue'>dog.</font>", ["A big dog."]),
        ("<i><b>Stop</b> here</i>", ["<b>Stop</b> here"]),
        ("<i>- Where is Tom?</i>\n<i>- He is at home.</i>", ["Where is Tom?", "He is at home."]),
        ("<i>- Where is Tom?\n- He is at home.</i>", ["Where is Tom?", "He is at home."]),
        ("<i>Where is Tom?</i>\n- He is at home.", ["Where is Tom?", "He is at home."]),
        ("Where is Tom?\n-He is at home.", ["Where is Tom?", "He is at home."]),
        ("<v Mary>Where is Tom?\n<v Tom>He is at home.", ["Where is Tom?", "He is at home."]),
        ("<v Mary>Where is\n<v Tom>Tom?</v>", ["Where is", "Tom?"]),
        ("MARY: Where is Tom?\n[door opens]\n♪ I love you ♪", ["Where is Tom?", "door opens", "I love you"]),
        ("[door opens]\nI see\n<i>♪ I love you</i> ♪", ["door opens", "I see", "I love you"]),
    ],
)
def test_tags_of_subtitles_stay_whole_and_speakers_keep_their_lines(cue: str, wanted: list[str]) -> None:
    file = f"WEBVTT\n\n00:01.000 --> 00:02.000\n{cue}\n"
    assert units(file, "a.vtt") == wanted
    assert translated(file, "a.vtt", identity).decode() == file
    longer = translated(file, "a.vtt", lambda texts: [f"{text} {'word ' * 12}end" for text in texts]).decode()
    tags = r"<[^<>]*>|\{[^{}]*\}"
    assert re.findall(tags, longer) == re.findall(tags, cue)
    assert all("\n" not in tag for tag in re.findall(tags, longer))
    signs = r"^(?:<[^<>]*>)*(?:[-\[♪]|MARY:)"
    assert re.findall(signs, longer, re.MULTILINE) == re.findall(signs, cue, re.MULTILINE)


def test_lines_of_subtitles_break_outside_of_tags_which_cues_share() -> None:
    times = "00:0{0}.000 --> 00:0{0}.900\n"
    file = f"{times.format(1)}Look, I have a big\n\n{times.format(2)}dog.\n"
    text = "Look, <font color='red'>one two three</font> <font color='blue'>four five six seven eight nine ten</font>."
    written = translated(file, "a.srt", lambda texts: [text]).decode()
    assert written.replace("\n", " ").count("<font color='blue'>") == written.count("</font>") - 1 == 2
    assert all(cue.count("<font ") == cue.count("</font>") for cue in written.split("\n\n"))


@pytest.mark.parametrize(
    ("cue", "wanted"),
    [
        (r"A dog is in {\i1}the park{\i0} now.", r"A DOG IS IN {\i1}THE PARK{\i0} NOW."),
        (r"{\b1}Stop!{\b0} A {\c&H0000FF&}big{\c} dog.", r"{\b1}STOP!{\b0} A {\c&H0000FF&}BIG{\c} DOG."),
        (r"{\i1}A dog.{\i0}" "\n" r"{\i1}Two.{\i0}", r"{\i1}A DOG.{\i0}" "\n" r"{\i1}TWO.{\i0}"),
        (r"<i>A dog {\an8}is</i> here.", r"{\an8}<i>A DOG IS</i> HERE."),
        (r"A dog{\pos(1,2)\fad(3,4)}.", r"{\pos(1,2)\fad(3,4)}A DOG."),
        (r"A {\b1}big dog{\b0} ({\s1}or{\s0}) two.", r"A {\b1}BIG DOG{\b0} ({\s1}OR{\s0}) TWO."),
        (r"A {\anything else}dog", r"{\anything else}A DOG"),
        (
            r"A {\fs40}big{\fs} {\rAlt}dog{\r} {\bord2}runs{\bord}.",
            r"A {\fs40}BIG{\fs} {\rAlt}DOG{\r} {\bord2}RUNS{\bord}.",
        ),
        (r"A {\an8\i1}big{\i0} dog", r"A {\an8\i1}BIG{\i0} DOG"),
    ],
)
def test_codes_of_subtitles_are_tags_and_those_of_a_whole_cue_begin_it(cue: str, wanted: str) -> None:
    file = "00:01,000 --> 00:02,000\n{0}\n\n00:02,000 --> 00:03,000\nOne cat.\n"
    source = file.replace("{0}", cue)
    assert translated(source, "a.srt", identity).decode() == source
    assert translated(source, "a.srt").decode() == file.replace("{0}", wanted).replace("One cat", "ONE CAT")


@pytest.mark.parametrize(
    ("translation", "wanted"),
    [
        ("Der Mann sieht <i>den Hund</i> und lacht.", ["Der Mann sieht", "<i>den Hund</i> und lacht."]),
        (r"Der Mann sieht {\i1}den Hund{\i0} und lacht.", ["Der Mann sieht", r"{\i1}den Hund{\i0} und lacht."]),
        ("Der <i>Mann sieht den Hund</i> und lacht.", ["Der <i>Mann sieht</i>", "<i>den Hund</i> und lacht."]),
        ("Der <i>Mann sieht</i> den Hund und lacht.", ["Der <i>Mann sieht</i>", "den Hund und lacht."]),
        ("这个男人<b>看到</b>那只狗在笑", ["这个男人", "<b>看到</b>那只狗在笑"]),
    ],
)
def test_translations_of_several_cues_are_cut_before_tags_as_between_words(translation: str, wanted: list[str]) -> None:
    file = "00:01,000 --> 00:02,000\n{0}\n\n00:02,000 --> 00:03,000\n{1}\n"
    source = file.format("The man sees", "<i>the dog</i> and laughs.")
    assert translated(source, "a.srt", lambda texts: [translation]).decode() == file.format(*wanted)


@pytest.mark.parametrize("part", ["a ", "x<b>y</b> ", "<b></i>", "<b>a\n", "</i>\n<b>", r"{\i1}"])
def test_a_long_cue_takes_time_in_proportion_to_its_length(part: str) -> None:
    cue = "00:01,000 --> 00:02,000\nA "
    one, four = (n_steps(lambda: translated(cue + part * n, "a.srt", reversed_words)) for n in (100, 400))  # noqa: B023
    assert four < 5 * one + 100


@pytest.mark.parametrize("part", ["</i>", "♪", r"{\i0}", " "])
def test_the_end_of_a_long_cue_is_found_in_linear_time(part: str) -> None:
    """Quadratic time would be minutes."""
    assert units(f"00:01,000 --> 00:02,000\nA {part * 50_000}x\n", "a.srt") == [f"A {part * 50_000}x"]


@pytest.mark.parametrize("start", ["", "a", "aa", "aaa"])
def test_no_line_of_a_translation_is_empty(start: str) -> None:
    """Else the cue would end with it."""
    translation = f"{start}{'dogs ' * 8}<u></u>"  # up to 43 columns, of which the last is a space
    written = translated("00:01,000 --> 00:02,000\nA <u>dog</u>.\n", "a.srt", lambda texts: [translation])
    assert "\n\n" not in written.decode()


def reversed_words(texts: Sequence[str]) -> list[str]:
    return [" ".join(text.split()[::-1]) for text in texts]


def test_text_keeps_its_layout() -> None:
    text = "This is a long text that was wrapped at some\r\ncolumn because nobody had a wider screen.\r\n\r\n- Item\r\n"
    assert translated(text, "a.txt", identity).decode() == text
    assert translated(text, "a.txt").decode() == text.upper()


def test_lines_with_different_ends_keep_theirs() -> None:
    text = "One dog.\r\nTwo dogs.\nThree.\r\n"
    assert translated(text, "a.txt").decode() == text.upper()


def archive(**contents: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as written:
        for name, content in contents.items():
            written.writestr(name, content)
    return file.getvalue()


NAMES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{uri}:1.0"'
    for name, uri in (
        ("office", "office"),
        ("text", "text"),
        ("draw", "drawing"),
        ("table", "table"),
        ("loext", "loext"),
    )
)
CONTENT = f"""<?xml version="1.0" encoding="UTF-8"?>
<office:document-content {NAMES}><office:body><office:text>
<text:h>A title</text:h><text:p>The <text:span text:style-name="T1">red</text:span> dog<text:note><text:note-citation>1
</text:note-citation><text:note-body><text:p>A note.</text:p></text:note-body></text:note> runs
on page <text:page-number>3</text:page-number>.</text:p><text:p text:style-name="Preformatted_20_Text">code</text:p>
<table:table><table:table-cell><text:p>Cell<text:tab/>two</text:p></table:table-cell></table:table>
<text:p><draw:frame><draw:text-box><text:p>In a box</text:p></draw:text-box></draw:frame></text:p>
</office:text></office:body></office:document-content>"""


def test_opendocument_is_translated_in_sentences() -> None:
    content = archive(**{"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": CONTENT})
    assert units(content, "a.odt") == [
        "A title",
        "The <1>red</1> dog<2/> runs on page <3/>.",
        "A note.",
        "Cell",
        "two",
        "In a box",
    ]
    assert parts(translated(content, "a.odt", identity)) == parts(content)
    written = parts(translated(content, "a.odt", backwards))
    assert list(written) == ["mimetype", "content.xml"]
    assert b'<text:span text:style-name="T1">red</text:span> The' in written["content.xml"]
    encrypted = with_part(content, "META-INF/manifest.xml", b"<m:encryption-data/>")
    with pytest.raises(UserError, match=r"a\.odt has a password"):
        translated(encrypted, "a.odt")


def test_marks_of_opendocument_stay_inside_of_their_sentence() -> None:
    ruby = "<text:ruby><text:ruby-base>old</text:ruby-base><text:ruby-text>reading</text:ruby-text></text:ruby>"
    note = '<office:annotation office:name="1"><text:p>note</text:p></office:annotation>'
    start, end = '<text:bookmark-start text:name="a"/>', '<text:bookmark-end text:name="a"/>'
    inside = f'The {ruby} {note}dog<office:annotation-end office:name="1"/> {start}runs{end} home.'
    page = re.sub("<office:text>.*</office:text>", f"<text:p>{inside}</text:p>", CONTENT, flags=re.DOTALL)
    content = archive(**{"content.xml": page})
    assert units(content, "a.odt") == ["The <1>old</1> <2>dog</2> <3>runs</3> home."]
    written = parts(translated(content, "a.odt", backwards))["content.xml"].decode()
    assert f"home. {start}runs{end} {note}dog<office:annotation-end" in written
    assert parts(translated(content, "a.odt", bilingual=True))["content.xml"].decode().count(start) == 1


def test_elements_that_a_tab_divides_stay_nested() -> None:
    paragraph = "<text:p>A <text:span>red <text:a>dog<text:tab/>runs</text:a> to</text:span> me.</text:p>"
    content = archive(**{"content.xml": re.sub("<office:text>.*</office:text>", paragraph, CONTENT, flags=re.DOTALL)})
    assert units(content, "a.odt") == ["A <1>red <2>dog", "runs</1> to</2> me."]

    def swap(texts: Sequence[str]) -> list[str]:
        return [text.translate(str.maketrans("12", "21")) for text in texts]

    written = parts(translated(content, "a.odt", swap))["content.xml"].decode()
    assert "A red dog<text:span><text:a><text:tab/>runs to me.</text:a></text:span></text:p>" in written


def test_opendocument_has_text_in_shapes_and_content_controls() -> None:
    shape = "<draw:ellipse><text:p>A cat</text:p></draw:ellipse>"
    control = "<loext:content-control>dog</loext:content-control>"
    paragraph = f"<text:p>{shape}A {control} runs.</text:p>"
    page = re.sub("<office:text>.*</office:text>", paragraph, CONTENT, flags=re.DOTALL)
    content = archive(**{"content.xml": page})
    assert units(content, "a.odt") == ["A <1>dog</1> runs.", "A cat"]


def test_comments_and_results_of_formulas_in_tables_of_opendocument_stay() -> None:
    comment = "<office:annotation><text:p>A comment.</text:p></office:annotation>"
    cells = (
        f"<table:table-cell>{comment}<text:p>A dog</text:p></table:table-cell>"
        '<table:table-cell table:formula="of:=[.A1]"><text:p>A dog</text:p></table:table-cell>'
    )
    page = re.sub("<office:text>.*</office:text>", cells, CONTENT, flags=re.DOTALL)
    content = archive(**{"content.xml": page})
    assert units(content, "a.ods") == ["A dog"]
    expected = page.replace("A dog", "A DOG", 1).encode()
    assert parts(translated(content, "a.ods"))["content.xml"] == expected


def test_descriptions_of_images_in_opendocument_are_translated_and_have_no_tags() -> None:
    image = "<draw:frame><draw:image/><svg:title>a dog</svg:title><svg:desc>a cat\nruns</svg:desc></draw:frame>"
    page = re.sub(
        "(?<=<office:text>).*(?=</office:text>)", f"<text:p>a {image} house</text:p>", CONTENT, flags=re.DOTALL
    )
    content = archive(**{"content.xml": page})
    written = parts(translated(content, "a.odt"))["content.xml"].decode()
    assert re.findall("<text:p>.*</text:p>", written) == [
        "<text:p>A <draw:frame><draw:image/><svg:title>A DOG</svg:title><svg:desc>A CAT RUNS</svg:desc></draw:frame>"
        " HOUSE</text:p>"
    ]
    written = parts(translated(content, "a.odt", bilingual=True))["content.xml"].decode()
    assert "<svg:title>a dog / A DOG</svg:title>" in written


def test_books_are_translated_with_their_contents_and_their_language() -> None:
    page = '<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="en"><body><p>A <i>dog</i>&nbsp;runs</p></body></html>'
    book = archive(
        **{
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": "<container/>",
            "content.opf": '<package xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>The dog</dc:title>'
            "<dc:creator>A. Cat</dc:creator><dc:language>en</dc:language></package>",
            "toc.ncx": "<ncx><navLabel><text>A dog</text></navLabel><x>no</x></ncx>",
            "a.xhtml": '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN" "http://x/y.dtd">' + page,
            "b.css": "p {}",
        }
    )
    written = {name: part.decode() for name, part in parts(translated(book, "a.epub")).items()}
    assert written["a.xhtml"].endswith('xml:lang="de"><body><p>A <i>DOG</i>\u00a0RUNS</p></body></html>')
    assert (written["toc.ncx"], written["b.css"]) == (
        "<ncx><navLabel><text>A DOG</text></navLabel><x>no</x></ncx>",
        "p {}",
    )
    assert "<dc:title>THE DOG</dc:title><dc:creator>A. Cat</dc:creator><dc:language>de<" in written["content.opf"]
    with pytest.raises(UserError, match=r"a\.epub is not an EPUB book"):
        translated(archive(a="b"), "a.epub")


def pdf(text: str) -> bytes:
    """Return a file of one page."""
    writer = pypdf.PdfWriter()
    page = writer.add_blank_page(300, 300)
    font = pypdf.generic.DictionaryObject(
        {
            pypdf.generic.NameObject("/Encoding"): pypdf.generic.NameObject("/WinAnsiEncoding"),
            pypdf.generic.NameObject("/Type"): pypdf.generic.NameObject("/Font"),
            pypdf.generic.NameObject("/Subtype"): pypdf.generic.NameObject("/Type1"),
            pypdf.generic.NameObject("/BaseFont"): pypdf.generic.NameObject("/Helvetica"),
        }
    )
    fonts = pypdf.generic.DictionaryObject({pypdf.generic.NameObject("/F1"): font})
    page[pypdf.generic.NameObject("/Resources")] = pypdf.generic.DictionaryObject(
        {pypdf.generic.NameObject("/Font"): fonts}
    )
    stream = pypdf.generic.DecodedStreamObject()
    lines = text.replace("\n", ") Tj 0 -14 Td (")
    stream.set_data(f"BT /F1 12 Tf 20 280 Td ({lines}) Tj ET".encode("latin-1"))
    page[pypdf.generic.NameObject("/Contents")] = stream
    file = io.BytesIO()
    writer.write(file)
    return file.getvalue()


def test_what_admonitions_tabs_and_footnotes_contain_is_text_unless_it_is_code() -> None:
    source = """!!! note "Title"
    ```python
    x = "a dog"
    y = 1
    ```

    a red dog.

    - an item
        - another

    ??? tip
        a cat
        and a dog.

            code

=== "Tab"

    a tree.

a house

    code

[^1]: a note.

    its second paragraph.

term
:   its definition.

    more of it.
"""
    texts = ("a red dog.", "an item", "another", "a cat\n        and a dog.", "a tree.", "a house", "a note.")
    wanted = source
    for text in (*texts, "its second paragraph.", "term\n", "its definition.", "more of it."):
        wanted = wanted.replace(text, text.upper().replace("\n        ", " "))
    assert translated(source, "a.md").decode() == wanted
    crlf = source.replace("\n", "\r\n")
    assert translated(crlf, "a.md").decode() == wanted.replace("\n", "\r\n")
    both = "!!! note\n\n    a dog.\n"
    assert translated(both, "a.md", bilingual=True).decode() == "!!! note\n\n    a dog.<br>A DOG.\n"


def test_code_that_shows_an_admonition_stays_code() -> None:
    code = "```md\n!!! note\n    ```\n    a dog\n    ```\n: one\n\n    two\n```\n"
    text = "\n!!! note\n\n    a cat\n\n> ```\n> x\n> ```\n\n- ~~~py\n  x\n  ~~~\n\n!!! tip\n\n    a dog\n"
    wanted = text.replace("a cat", "A CAT").replace("a dog", "A DOG")
    assert translated(code + text, "a.md").decode() == code + wanted


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_each_paragraph_of_a_bilingual_text_is_followed_by_its_translation(end: str) -> None:
    text = "A dog.\n\nThis paragraph was wrapped at some column,\nbecause it was long.\n- an item\n"
    both = (
        "A dog.\nA DOG.\n\nThis paragraph was wrapped at some column,\nbecause it was long.\n"
        "THIS PARAGRAPH WAS WRAPPED AT SOME COLUMN,\nBECAUSE IT WAS LONG.\n- an item\n- AN ITEM\n"
    )
    assert translated(text.replace("\n", end), "a.txt", bilingual=True).decode() == both.replace("\n", end)
    assert translated(pdf("A dog.\n\nA cat."), "a.pdf", bilingual=True).decode() == "A dog.\nA DOG.\nA cat.\nA CAT.\n"


def test_sentences_of_pdf_are_whole_though_its_lines_are_not_of_one_length() -> None:
    text = """CONTENTS
MACHINE TRANSLATION ............................................... 1
WHAT IT IS GOOD FOR AND WHAT NOT .......................... 2
1 MACHINE TRANSLATION
neural networks read a whole sentence at once, instead of one word|
after the other, as in the past. many people use them every day, on|
12.05.2024 as well. in the middle of the year, and at its end, in|
Berlin nobody can imagine the work without them. rare words are diffi-|
cult, as are long sentences, and nobody sees the errors who has not read|
the original text. so the first part of it, which consists of the pre-|
and post-editing, remains with humans, above all for important Web-|
Pages.
- THE FIRST ITEM IS LONGER THAN ONE LINE, WHICH IS WHY IT HAS
- THE SECOND IS SHORT."""
    whole = text.replace("diffi-|\n", "diffi").replace("Web-|\n", "Web-").replace("|\n", " ").upper()
    assert translated(pdf(text.replace("|", "")), "a.pdf").decode() == f"{whole}\n"


def test_lines_of_a_pdf_page_in_two_languages_are_joined_as_each_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    page = """ABSTRACT
neural networks read a whole sentence at once, instead of one word|
after the other, as in the past.
神经网络一次读取整个句子，而不是像过去那样逐词读取，使用 transformer|
模型，许多人每天都在使用它们，在柏林没有人能想象没有它们的工作，罕见^
词很难，长句子也是。"""
    lines = page.replace("|", "").replace("^", "")
    monkeypatch.setattr(pypdf.PageObject, "extract_text", lambda self: lines)
    whole = page.replace("|\n", " ").replace("^\n", "")
    assert translated(pdf("x"), "a.pdf", identity).decode() == f"{whole}\n"


def test_pdf_gives_its_text() -> None:
    assert translated(pdf("A small dog."), "a.pdf").decode() == "A SMALL DOG.\n"
    with pytest.raises(UserError, match=r"a\.pdf has no text: it may have pictures of pages"):
        translated(pdf(""), "a.pdf")
    with pytest.raises(UserError, match=r"a\.pdf is damaged, or no PDF file"):
        translated(b"%PDF-1.4 nothing", "a.pdf")
