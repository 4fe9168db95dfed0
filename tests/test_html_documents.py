"""Pages in HTML: whole sentences, with their tags; scripts, code, links and what is marked so stay."""

from functools import partial
from html import unescape

import pytest
from documents import backwards, identity, n_steps, translated, units

from mtformer.support.errors import UserError
from mtformer.translate.documents.formats import format_of, read_document
from mtformer.translate.documents.markup_tokens import TokenKind, read_html
from mtformer.translate.documents.seam import DocumentSettings

PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>My "page" &amp; yours</title>
<script>var x = "hello <b>";</script><meta name="description" content="Two dogs"></head>
<body class=x><h1>The <em>old</em> dog</h1>
<p>A man is riding
a <a href="http://x.y/?a=1&amp;b=2" title="See this">red <b>bike</b></a>. <img src=a.png alt="A dog"></p>
<ul><li>One<li><b>Two</b> dogs<ul><li>nested text</ul></ul>
<pre>int main()</pre><p translate="no">Keep me</p><p>Use <code>git status</code> on <i translate=no>Foo Bar</i> now.</p>
John Smith<br>12 High Street<br/>London. We go<br>home.
<button disabled>Press <i>me</i></button><input type="submit" value="Send it"></body></html>
"""


def test_units_are_whole_sentences_with_tags_and_attributes_that_readers_see() -> None:
    assert units(PAGE, "a.html") == [
        'My "page" &amp; yours',
        "Two dogs",
        "The <1>old</1> dog",
        "A man is riding a <1>red <2>bike</2></1>.",
        "See this",
        "A dog",
        "One",
        "<1>Two</1> dogs",
        "nested text",
        "Use <1/> on <2/> now.",
        "John Smith",
        "12 High Street",
        "London. We go<1/>home.",
        "Press <1>me</1>",
        "Send it",
    ]


def test_names_of_tags_and_attributes_may_be_in_capitals() -> None:
    page = '<META NAME="Description" CONTENT="Two dogs"><INPUT TYPE="Submit" VALUE="Send it"><IMG ALT="A dog">'
    assert units(page, "a.html") == ["Two dogs", "Send it", "A dog"]


def test_all_but_the_text_stays() -> None:
    page = translated(PAGE, "a.html").decode()
    assert (
        'A <a href="http://x.y/?a=1&amp;b=2" title="SEE THIS">RED <b>BIKE</b></a>. <img src=a.png alt="A DOG">' in page
    )
    assert '<script>var x = "hello <b>";</script><meta name="description" content="TWO DOGS">' in page
    assert '<pre>int main()</pre><p translate="no">Keep me</p><p>USE <code>git status</code> ON <i translate=' in page
    assert "JOHN SMITH<br>12 HIGH STREET<br/>LONDON. WE GO<br>HOME.\n<button disabled>PRESS <i>ME</i>" in page


def test_code_of_templates_stays() -> None:
    page = "<% if (n > 1) { %><p>It has <%= n %> dogs, and <?= $n ?> cats.</p><% } %>A <b>5 <% 6</b> dog"
    assert units(page, "a.html") == ["It has <1/> dogs, and <2/> cats.", "A <1>5 &lt;% 6</1> dog"]
    expected = page.replace("It has", "IT HAS").replace("dog", "DOG").replace("s, and", "S, AND")
    expected = expected.replace("cats", "CATS").replace("5 <%", "5 &lt;%")
    assert translated(page, "a.html").decode() == expected


def test_a_page_whose_translation_equals_its_source_is_the_same_but_for_its_language() -> None:
    assert translated(PAGE, "a.html", identity).decode() == PAGE.replace('lang="en"', 'lang="de"')


def test_tags_follow_their_words() -> None:
    page = translated("<p>The <a href=x>red bike</a> is <b>new</b> here", "a.html", backwards).decode()
    assert page == "<p>here <b>new</b> is <a href=x>bike red</a> The"


def test_readings_of_characters_stay() -> None:
    page = "<p>The <ruby>old dog<rp>(</rp><rt>reading</rt><rp>)</rp></ruby> <ruby>runs<rt>way</ruby>."
    assert units(page, "a.html") == ["The <1>old dog</1> <2>runs</2>."]
    assert translated(page, "a.html").decode() == (
        page.replace("The", "THE").replace("old dog", "OLD DOG").replace("runs", "RUNS")
    )


def test_a_full_stop_keeps_its_own_tag_at_its_place() -> None:
    page = "<p>The dog<b>,</b> who is old, <i>sleeps</i><b>.</b>"
    assert units(page, "a.html") == ["The dog, who is old, <1>sleeps</1>."]
    assert translated(page, "a.html", identity).decode() == page
    assert translated(page, "a.html").decode() == "<p>THE DOG<b>,</b> WHO IS OLD, <i>SLEEPS</i><b>.</b>"
    assert translated(page, "a.html", lambda texts: ["Der Hund <1>schläft</1>!"]).decode() == (
        "<p>Der Hund <i>schläft</i><b>!</b><b></b>"
    )


def test_the_ends_of_tags_that_overlap_stay_in_order() -> None:
    """Browsers accept them; an end before its start would format the rest of the page."""
    page = "<p>An <b>old <i>piano</b> in Vienna</i> and <i>new <b>chips</i> here</b>."
    [unit] = units(page, "a.html")
    assert unit == "An <1>old <2/>piano</1> in Vienna<3/> and <4>new <5/>chips</4> here<6/>."
    assert translated(page, "a.html", identity).decode() == page
    swapped = unit.replace("<2/>", "<x/>").replace("<3/>", "<2/>").replace("<x/>", "<3/>")
    assert translated(page, "a.html", lambda texts: [swapped]).decode() == (
        "<p>An old piano in Vienna and new chips here.<b><i></b></i><i><b></i></b>"
    )
    assert translated("<p>The <i>dog", "a.html", identity).decode() == "<p>The <i>dog"


def test_a_translator_that_loses_tags_loses_neither_text_nor_links() -> None:
    def careless(texts: list[str]) -> list[str]:
        return [text.replace("<1>", "").replace("</2>", "</1>") for text in texts]

    page = translated("<p>The <a href=x>red</a> <b>bike</b>.", "a.html", careless)  # type: ignore[arg-type]
    assert page.decode() == "<p>The red bike.<a href=x></a><b></b>"


def test_the_encoding_stays_and_what_it_lacks_becomes_an_entity() -> None:
    page = '<meta charset="iso-8859-1"><p>caf\u00e9'.encode("latin-1")
    assert translated(page, "a.html", lambda texts: ["ein Caf\u00e9 \u20ac"]) == page[:-4] + b"ein Caf\xe9 &#8364;"
    with pytest.raises(UserError, match=r"a\.html:2: the text is not UTF-8; convert the file first"):
        translated(b"<p>\n\xff\xfea", "a.html")


@pytest.mark.parametrize(
    ("declared", "encoding"),
    [("iso-8859-1", "cp1252"), ("us-ascii", "cp1252"), ("gb2312", "gb18030"), ("utf-16", "utf-8"), ("utf8", "utf-8")],
)
def test_encodings_are_those_that_browsers_read(declared: str, encoding: str) -> None:
    text = "\u9555\u57d4" if encoding == "gb18030" else "\u201chot\u201d"
    page = f'<meta charset="{declared}"><p>{text} dog'.encode(encoding)
    assert units(page, "a.html") == [f"{text} dog"]
    assert translated(page, "a.html", identity) == page
    assert translated(page, "a.html", lambda texts: [f"{text} Hund"]) == page.replace(b"dog", b"Hund")


@pytest.mark.parametrize("declared", ["undefined", "punycode", "unicode_escape", "rot13", "no-such-encoding"])
def test_a_page_in_no_encoding_is_refused(declared: str) -> None:
    with pytest.raises(UserError, match=f"a.html: the text is not {declared.upper()}, its declared encoding"):
        translated(f'<meta charset="{declared}"><p>A dog', "a.html")


def test_bilingual_pages_have_a_line_of_each_language() -> None:
    assert translated("<title>A dog</title><p>A <b>man</b>", "a.html", bilingual=True).decode() == (
        "<title>A dog / A DOG</title><p>A <b>man</b><br>A <b>MAN</b>"
    )


def test_unknown_entities_stay() -> None:
    page = '<p>See &firm; now</p><p>A dog?&firm;<img alt="The &firm; sign"><p>&firm;'
    assert units(page, "a.html") == ["See <1/> now", "A dog?<1/>", "The <1/> sign"]
    wanted = page.replace("See", "SEE").replace("now", "NOW").replace("A dog", "A DOG")
    assert translated(page, "a.html").decode() == wanted.replace("The", "THE").replace("sign", "SIGN")


def test_an_ampersand_between_capitals_is_no_entity() -> None:
    assert units("<p>R&D; is good.", "a.html") == ["R&amp;D; is good."]
    assert translated("<p>R&D; is good.", "a.html", identity).decode() == "<p>R&D; is good."


@pytest.mark.parametrize("end", ["</div></div>", ""])
def test_nested_languages_take_work_in_proportion_to_their_size(end: str) -> None:
    pages = ("<html lang=en>" + "<div lang=fr>Un<div lang=en>two" * n + end * n for n in (50, 100))
    few, many = (n_steps(partial(units, page, "a.html")) for page in pages)
    assert many < 2.5 * few


def test_untidy_pages_are_read() -> None:
    page = "<p>One <b>two <i>three</b> four</i> 1 < 2 &copy; AT&T </p></div><p>five <"
    assert translated(page, "a.html", identity).decode() == page
    assert "FOUR" in translated(page, "a.html").decode()


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<ul><li translate=no>Foo<li>Two</ul>", ["Two"]),
        ("<p translate=no>Foo<p>One", ["One"]),
        ("<p translate=no>Foo<div>One</div>", ["One"]),
        ("<dl><dt translate='no'>Foo<dd>One</dl>", ["One"]),
        ("<table><tr><td class=notranslate>Foo<td>One<tr><td>Two</table>", ["One", "Two"]),
        ("<div><span translate=no>Foo</div>One", ["One"]),
        ("<div translate=no><ul><li>a<li>b</ul></div>One", ["One"]),
        ("One<pre>code", ["One"]),
        ("<p TRANSLATE=NO>Foo<p Class='a NoTranslate'>Foo<p>One", ["One"]),
        ('<a href="notranslate.html">One</a><p title=x data-x="notranslate">Two', ["One", "Two"]),
    ],
)
def test_what_must_not_be_translated_ends_where_browsers_end_it(page: str, expected: list[str]) -> None:
    assert units(page, "a.html") == expected


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<p lang=fr title='Un'>Un chien<p lang='en-GB'>One", ["One"]),
        ('<p>See <i xml:lang="fr" lang="fr">Un <b>chien</b></i> now', ["See <1/> now"]),
        ("<div lang=fr>Un<p lang=en title='One'>Two <i lang=fr>Un</i></p>Un <b>chien</b> ", ["One", "Two <1/>"]),
        ("<div lang=fr>Un <q lang=en>One</q></div>Two", ["One", "Two"]),
        ("<div lang=fr>Un<div lang=en>One<p lang=fr>Un<i lang=en>Two</i></p></div></div>", ["One", "Two"]),
        ("<div translate=no><p lang=fr>Un<i lang=en>One</i></p></div>", []),
        ("<html lang=fr><p>One<p lang=fr-CA>Two<p lang=it>Un cane<p lang=en>Three", ["One", "Two", "Three"]),
        ("<p lang=''>One<p lang=und>Two<p lang=la>Unus canis", ["One", "Two"]),
        ("<html><body lang=fr><p>One<i lang=''>Two</i>", ["One<1>Two</1>"]),
        ("<p lang=fr>Un <i lang=''>chien</i>", []),
    ],
)
def test_elements_in_another_language_stay(page: str, expected: list[str]) -> None:
    assert units(page, "a.html") == expected
    assert translated(page, "a.html", identity).decode() == page.replace("html lang=fr", "html lang=de")
    assert translated(page, "a.html").decode().count("Un") == page.count("Un")


def test_text_areas_keep_their_lines() -> None:
    page = "<textarea>\nDear all,\n  we eat &amp; drink.\n</textarea>"
    assert translated(page, "a.html").decode() == "<textarea>\nDEAR ALL,\n  WE EAT &amp; DRINK.\n</textarea>"


@pytest.mark.parametrize(
    ("page", "language", "expected"),
    [
        ('<html lang="ar" dir="rtl">', "de", '<html lang="de" dir="ltr">'),
        ("<html>", "ar", '<html dir="rtl">'),
        ("<html lang=en>", "he", '<html lang=he dir="rtl">'),
        ('<html dir="ltr">', "zh", '<html dir="ltr">'),
    ],
)
def test_pages_name_the_direction_of_the_target_language(page: str, language: str, expected: str) -> None:
    document = read_document(page.encode(), format_of("a.html"), DocumentSettings(language, "en"))
    assert document.with_translations([]).decode() == expected


def test_an_empty_line_ends_a_unit() -> None:
    page = "<p>Dear Ms. Smith,<br><br>a man is here<br> <br>two dogs run<br>in the snow</p>"
    assert units(page, "a.html") == ["Dear Ms. Smith,", "a man is here", "two dogs run<1/>in the snow"]


HOSTILE = ["<", "<%", "<a ", "<!--", "&", '<a b="', "<b>x", "</b>", "<!", "<script>", "a<br>", "<p>x<li>", '<a "<a" ']


@pytest.mark.parametrize("part", HOSTILE)
def test_hostile_pages_stay_as_they_are_and_take_time_in_proportion_to_their_size(part: str) -> None:
    page = part * 300 + "a"
    assert translated(page, "a.html", identity).decode() == page
    letters = unescape(translated(page, "a.html").decode()).lower().replace(" ", "")
    assert letters == unescape(page).replace(" ", "")
    one, four = (n_steps(lambda: translated(part * n + "a", "a.html", identity)) for n in (100, 400))  # noqa: B023
    assert four < 5 * one + 100


def test_the_end_of_a_tag_is_not_searched_in_the_whole_page() -> None:
    for n_values, kind in ((20, TokenKind.START), (21, TokenKind.TEXT)):
        page = "<a " + '"<b" ' * n_values + ">x"
        assert read_html(page, "a.html").tokens[0].kind is kind


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16-le", "utf-16-be"])
def test_texts_keep_their_byte_order(encoding: str) -> None:
    mark = "" if encoding == "utf-8-sig" else "\ufeff"
    for name, text in (
        ("a.html", "<p>A dog</p>"),
        ("a.txt", "A dog\n"),
        ("a.json", '{"a": "A dog"}'),
        ("a.properties", "# a comment = x\na=A dog\n"),
        ("a.md", "# A dog\n"),
        ("a.yml", "# x\na: A dog\n"),
        ("a.srt", "1\n00:01,000 --> 00:02,000\nA dog\n"),
        ("a.csv", "A dog\n"),
        ("a.xlf", "<xliff version='1.2'><file><trans-unit><source>A dog</source></trans-unit></file></xliff>"),
    ):
        content = (mark + text).encode(encoding)
        assert units(content, name) == ["A dog"]
        written = translated(content, name).decode(encoding)
        assert written[: len(mark)] == mark and "A DOG" in written and "\ufeff" not in written[len(mark) :]
        if name != "a.xlf":
            assert written == mark + text.replace("A dog", "A DOG")
