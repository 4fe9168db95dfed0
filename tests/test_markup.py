"""Markup and placeholders come through a translation, whatever the model makes of the words."""

import random
import re
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import Project
from documents import n_steps
from snippets import is_well_formed, marks_of, snippets

from mtformer.text.words import word_spans
from mtformer.translate.markup import scanner
from mtformer.translate.markup.atoms import Links
from mtformer.translate.markup.line import take_out
from mtformer.translate.markup.scanner import scan
from mtformer.translate.translation import Translation
from mtformer.translate.translator import Translator

BUNDLE = Path(__file__).parent / "fixtures/bundle-3.safetensors"
SNIPPETS = snippets()


def put_back(text: str, *translated: tuple[str, Links]) -> str:
    """Put the marks of ``text`` into translations of its segments."""
    marked = take_out(text)
    assert marked is not None
    found = [Translation(translation, -1.0, -1.0) for translation, _ in translated]
    return marked.put_back(found, [links for _, links in translated]).text


def links(*pairs: str) -> Links:
    return [(int(src), int(tgt), 1.0) for src, tgt in (pair.split("-") for pair in pairs)]


def identity(text: str) -> tuple[str, Links]:
    return text, [(i, i, 1.0) for i in range(len(word_spans(text)))]


def at_random(text: str, generator: random.Random) -> tuple[str, Links]:
    """Translate into shuffled, lost and invented words, linked at random."""
    words = [*text.split(), *("new" for _ in range(generator.randrange(3)))]
    generator.shuffle(words)
    chosen = words[: generator.randrange(len(words) + 1)]
    n_src, n_tgt = len(text.split()), len(chosen)
    pairs = [(generator.randrange(n_src), generator.randrange(n_tgt), generator.random()) for _ in range(n_tgt)]
    return " ".join(chosen), pairs


def test_there_are_500_different_snippets() -> None:
    assert len(set(SNIPPETS)) == 500


@pytest.mark.parametrize("text", SNIPPETS)
def test_a_translation_that_equals_its_source_leaves_the_line_as_it_was(text: str) -> None:
    marked = take_out(text)
    assert marked is not None
    assert put_back(text, *map(identity, marked.texts)) == text
    assert not any(set("<>{}`") & set(part) for part in marked.texts)


@pytest.mark.parametrize(
    "text",
    [
        'The "<code>x</code>" function (<var>y</var>) is old.',
        "Press <kbd>Ctrl</kbd>+<kbd>C</kbd>.",
        "Write to Jane Doe <jane@example.org>.",
        "A room of 20 m<sup>2</sup>, and CO<sub>2</sub>.",
        "The <b>answer<sup>1</sup></b> is<a href='#2'><sup>2</sup></a> here.",
        "It is 5&nbsp;km away.",
        "It is <b>H<sub>2</sub>O</b>, not C<sub>6</sub>H<sub>12</sub>O<sub>6</sub>, <b>A</b>ndrea (or H<sub>2</sub>O).",
        "{0}{1} and 🙂{2}",
        "Press <enter> to run git clone <url> <dir> (or <b>write <path>, <name></b>).",
        "Use --output=&lt;file&gt; &lt;name&gt;.",
        'A man <x id="1"/>walks <x id="2"/><b>and</b><x id="3"/> runs (<x id="4"/>fast) <x id="5"/> home.',
        "Some names (<code>x</code>, not <code>y</code>) have <b>'two ends'</b>; (<b>one...</b>), or <b>(none).</b>",
        "It comes with [**`node`**](a.html), (_`npm`_) and (<b>{a}</b>) dogs.",
        "[![The badge](b.svg)](a.html) of [an [old] dog](b.html), [cats](<a b.md> 'Cats') and [[two](c.html)",
        "<b> A dog",
        "[A protocol (TSP)](a.html), `code`",
        '<i class="icon"></i>Old dogs <a href="#"><img src="x">run</a>.<br>🙂So do <i></i> cats',
    ],
)
def test_marks_that_are_glued_to_something_stay_so(text: str) -> None:
    marked = take_out(text)
    assert marked is not None
    assert put_back(text, *map(identity, marked.texts)) == text


@pytest.mark.parametrize("seed", range(4))
def test_whatever_the_model_says_nothing_is_lost_and_pairs_stay_nested(seed: int) -> None:
    generator = random.Random(seed)
    in_words = [text.replace("you", "y<u>o<s></s></u>u").replace("will", "w<b>ill") for text in SNIPPETS]
    across = ["<i>One<br>two dogs</i> {a} and <b>big <u>cats</u> {b}<br>run</b>"] * 100
    for text in [*SNIPPETS, *in_words, *across]:
        marked = take_out(text)
        assert marked is not None
        found = put_back(text, *(at_random(part, generator) for part in marked.texts))
        assert marks_of(found) == marks_of(text), (text, found)
        assert is_well_formed(found) >= is_well_formed(text), (text, found)


def test_pairs_that_begin_before_a_segment_or_end_after_it_stay_outside_of_the_others() -> None:
    text = "<i>One.<br>a</i> <b>red dog.<br>Two.</b>"
    one, two = ("Eins.", links("0-0")), ("Zwei.", links("0-0"))
    crossed = put_back(text, one, ("roter a Hund.", links("1-0", "0-1", "2-2")), two)
    assert crossed == "<i>Eins.<br>roter a</i> <b>Hund.<br>Zwei.</b>"


def test_pairs_that_cross_segments_may_have_others_inside() -> None:
    text = "<b>Note:<br>Yesterday</b> <a>the minister</a> resigned."
    moved = ("Der Minister trat gestern zurück.", links("0-3", "1-0", "2-1", "3-2", "3-4"))
    found = put_back(text, ("Hinweis:", links("0-0")), moved)
    assert found == "<b>Hinweis:<br><a>Der Minister</a> trat gestern</b> zurück."


@pytest.mark.parametrize(
    ("text", "translation", "pairs", "expected"),
    [
        ("Click <b>here</b>.", "Hier klicken.", "0-1 1-0", "<b>Hier</b> klicken."),
        ("The <b>red house</b> is old.", "Das rote Haus ist alt.", "0-0 1-1 2-2 3-3 4-4",
         "Das <b>rote Haus</b> ist alt."),
        ("I <i>turned off</i> it.", "Ich habe es ausgeschaltet.", "0-0 1-3 2-3 3-2",
         "Ich habe es <i>ausgeschaltet</i>."),
        ("Dear {{name}}, thanks!", "Liebe, danke!", "0-0 1-1", "Liebe {{name}}, danke!"),
        ("①② dogs run", "Hunde rennen", "0-0 1-1", "①② Hunde rennen"),
        ("I saw %s yesterday.", "Ich habe gestern gesehen.", "0-0 1-1 1-3 2-2", "Ich habe %s gestern gesehen."),
        ("See https://example.org.", "Siehe.", "0-0", "Siehe https://example.org."),
        ("<b>A <i>small</i> dog</b> runs.", "Ein Hund, klein, rennt.", "0-0 1-2 2-1 3-3",
         "<b>Ein Hund, <i>klein</i></b>, rennt."),
        ("Use <b>this</b> &amp; that.", "Nimm dies & das.", "0-0 1-1 2-2 3-3", "Nimm <b>dies</b> &amp; das."),
        ("Read [the **long** text](a.html) now.", "Lies jetzt den langen Text.", "0-0 1-2 2-3 3-4 4-1",
         "Lies jetzt [den **langen** Text](a.html)."),
        ("Read [![the image](a.png) here](a.html) now.", "Lies jetzt das Bild hier.", "0-0 1-2 2-3 3-4 4-1",
         "Lies jetzt [![das Bild](a.png) hier](a.html)."),
        ("<b>Start of it", "Anfang davon", "0-0 1-1 2-1", "<b>Anfang davon"),
        ("the end</b> of it", "das Ende davon", "0-0 1-1 2-2 3-2", "das Ende</b> davon"),
        ("(1)</b> Old dogs.", "(1) Alte Hunde.", "0-0 1-1 2-2", "(1)</b> Alte Hunde."),
        ('"</b> Old dogs.', '" Alte Hunde.', "0-0 1-1 2-2", '"</b> Alte Hunde.'),
        ("A <b></b>dog", "Ein Hund", "0-0 1-1", "Ein <b></b>Hund"),
        ("A man <x/><b>walks</b> here.", "Ein Mann geht hier.", "0-0 1-1 2-2 3-3", "Ein Mann <x/><b>geht</b> hier."),
        ("A man <x/> (<y/>old) runs.", "Ein Mann (alt) rennt.", "0-0 1-1 2-2 3-3", "Ein Mann <x/> (<y/>alt) rennt."),
        ("The <i><b>web</b> <u>site</u></i>, here", "Die Seite, hier", "0-0 1-1 2-1 3-2",
         "Die <i><b>Seite</b><u></u></i>, hier"),
        ("The <i><u>web</u> <b>site</b></i> here", "Die Seite hier", "0-0 2-1 3-2",
         "Die <i><u>Seite</u><b></b></i> hier"),
        ("{a} and {b}", "und", "0-0", "{a} und {b}"),
        ("[→](x) Old dogs <b>#</b> run.", "Alte Hunde rennen.", "0-0 1-1 2-2", "[→](x) Alte Hunde <b>#</b> rennen."),
        ("Old dogs<b>!</b>", "Alte Hunde!", "0-0 1-1", "Alte Hunde<b></b>!"),
        ("Water is <b>H<sub>2</sub>O</b>.", "H2O? Ist Wasser.", "0-2 1-1 2-0", "<b>H<sub>2</sub>O</b>? Ist Wasser."),
        ("Drink H<sub>2</sub>O and H<sup>2</sup>O.", "H2O und H2O trinken.", "0-3 1-0 2-1 3-2",
         "H<sub>2</sub>O und H<sup>2</sup>O trinken."),
        ("An un<b>believ</b>able <b>A</b>nna.", "Eine unglaubliche Anna.", "0-0 1-1 2-2",
         "Eine <b>unglaubliche</b> <b>A</b>nna."),
        ("20 m<sup>2</sup> large", "Große 20 m", "0-1 1-2 2-0", "Große 20 m<sup>2</sup>"),
        ("It is **€5**.", "Es sind 5 €.", "0-0 1-1 2-2", "Es sind **5 €**."),
        ("Es sind **5 €**.", "It is €5.", "0-0 1-1 2-2", "It is **€5**."),
        ("Es sind **5 €.**", "It is €5.", "0-0 1-1 2-2", "It is **€5.**"),
        ("Es sind <b>5</b> €.", "It is €5.", "0-0 1-1 2-2", "It is €<b>5</b>."),
        ("Es sind <b>5 €</b>.", "It is five.", "0-0 1-1 2-2", "It is <b>five</b>."),
        (r"a {\i1}red{\i0} dog", "ein Hund, rot", "0-0 1-2 2-1", r"ein Hund, {\i1}rot{\i0}"),
    ],
)  # fmt: skip
def test_marks_follow_the_words_that_they_belong_to(text: str, translation: str, pairs: str, expected: str) -> None:
    assert put_back(text, (translation, links(*pairs.split()))) == expected


@pytest.mark.parametrize("tagged", ["soccer", "player", "soccer player"])
def test_a_tag_around_a_part_of_a_compound_goes_around_the_compound(tagged: str) -> None:
    weights = [(0, 0, 0.5), (1, 1, 0.6), (2, 1, 0.3), (2, 2, 0.2), (3, 2, 0.7)]
    text = "A soccer player kicks.".replace(tagged, f"<b>{tagged}</b>")
    assert put_back(text, ("Ein Fußballspieler tritt.", weights)) == "Ein <b>Fußballspieler</b> tritt."


def test_a_tag_goes_where_most_of_the_attention_is() -> None:
    weights = [(0, 0, 0.9), (1, 1, 0.6), (0, 1, 0.2), (1, 3, 0.8), (2, 2, 0.7), (1, 2, 0.1)]
    found = put_back("Dogs <b>won</b> games.", ("Hunde haben Spiele gewonnen.", weights))
    assert found == "Hunde haben Spiele <b>gewonnen</b>."


def test_a_tag_around_words_that_nothing_translates_goes_to_the_word_nearest_to_the_gap() -> None:
    assert put_back("One <b>x</b> two.", ("Eins zwei.", links("0-0", "2-1"))) == "<b>Eins</b> zwei."


def test_invisible_characters_in_words_do_not_separate_them() -> None:
    marked = take_out("An old steam&shy;boat &amp; gr&ouml;&szlig;er.")
    assert marked is not None
    assert marked.texts == ["An old steam\u00adboat & größer."]


def test_signs_that_go_with_numbers_are_text() -> None:
    marked = take_out("<b>It</b> is &euro;5 at 20&deg;.")
    assert marked is not None
    assert marked.texts == ["It is €5 at 20°."]


@pytest.mark.parametrize("text", ["&amp;", "&lt; &gt;", "&quot;...&quot;", "&euro;"])
def test_entities_without_letters_beside_them_stay(text: str) -> None:
    assert put_back(text) == text


def test_a_translation_is_on_one_line() -> None:
    text = "a\tb <b>c\rd</b>\u2028e\f{x}\n{y\t} f &#10; g &amp; h"
    marked = take_out(text)
    assert marked is not None
    found = put_back(text, *map(identity, marked.texts))
    assert len(found.splitlines()) == 1 and "\t" not in found
    assert not any("\n" in part for part in marked.texts)


def test_spaces_separate_a_mark_from_words_in_any_language() -> None:
    assert put_back("Hello {{name}}!", ("你好！", links("0-0", "0-1"))) == "你好 {{name}}！"
    assert put_back("你好{{name}}！", ("Hello!", links("0-0", "1-0"))) == "Hello {{name}}!"
    assert put_back("你好 <b>世界</b>！", ("Hello world!", links("0-0", "1-0", "2-1", "3-1"))) == "Hello <b>world</b>!"


def test_emphasis_goes_with_chinese_words_though_no_space_is_beside_it() -> None:
    marked = take_out("请点击**确定**按钮，或者*取消*它。")
    assert marked is not None and marked.texts == ["请点击确定按钮，或者取消它。"]
    assert put_back("请**点**我。", ("Click me.", links("1-0", "2-1"))) == "**Click** me."


def test_emphasis_may_end_inside_of_a_word() -> None:
    assert put_back("Two **dog**s run.", ("Zwei Hunde rennen.", links("0-0", "1-1", "2-2"))) == "Zwei **Hunde** rennen."
    assert [mark.role.value for mark in scan("*dog*s, un*frigging*real")] == ["open", "close"]
    assert not scan("2*3*4 dogs, a*b*c, snake_case_s")


def test_a_space_keeps_emphasis_apart_from_a_word_where_markdown_needs_it() -> None:
    text, tgt = 'I say **"yes"** I *do* it.', "我说“好”我做它。"
    of_words = links("0-0", "1-1", "2-3", "3-5", "4-6", "5-7")
    assert put_back(text, (tgt, of_words)) == "我说 **“好”** 我*做*它。"
    assert put_back(text.replace("*do*", "_do_"), (tgt, of_words)) == "我说 **“好”** 我 _做_ 它。"
    assert put_back("Say <b>x</b>.", ("Sag (*x) _x.", links("0-0", "1-1"))) == "Sag (*<b>x</b>) _x."


def test_blocks_are_translated_separately_and_code_is_not_translated() -> None:
    marked = take_out("<ul><li>One <b>dog</b></li><li><code>x = 1</code> is <kbd>Ctrl</kbd></li><li>12</li></ul>")
    assert marked is not None
    assert marked.texts == ["One dog", "is", "12"]
    table = take_out("| a dog | – | 12 | `x` 12 | two cats |")
    assert table is not None and table.texts == ["a dog", "12", "two cats"]


@pytest.mark.parametrize(
    "text",
    [
        "A dog runs.",
        "5 * 3 * 2",
        "snake_case_name",
        "x < y and y > z",
        "100%sure of 5 %der",
        "C# and F#",
        "a - b",
        "# 8 for Iowa State",
        "He works at AT&T; she runs.",
        "用C#写的，增长了5%的苹果/香蕉/梨，2*3*4",
        "Yes and/or no, 1/2 of it, on 3/4/2024",
        "Mr. A",
        r"Stra{\ss}e, na{\i}ve, {\it one} and {\bf two}, {\fnote of a dog}, {\f(a b)} {\u0041}",
        "Fields with a star (*) are required.",
        'The sign "**" is an operator.',
        "Fields (*), (*) and (~~).",
        "Name: ______, date: ____.",
        "The password is ******.",
        "Python calls \\_\\_init\\_\\_ (\\*).",
    ],
)
def test_plain_text_has_no_marks(text: str) -> None:
    assert take_out(text) is None


@pytest.mark.parametrize(
    ("text", "rest", "words"),
    [
        ("I met Мария in Berlin.", "I met in Berlin.", "Мария"),
        ("Мария Иванова-Петрова reads.", "reads.", "Мария Иванова-Петрова"),
        ("A dog (собака) and a cat (кот) play.", "A dog and a cat play.", "собака, кот"),
        ("A नमस्ते is 東京.", "A is.", "नमस्ते, 東京"),
        ("See {{city}} <b>Москва</b> now.", "See now.", "Москва"),
    ],
)
def test_words_of_which_no_letter_is_known_are_kept(text: str, rest: str, words: str) -> None:
    marked = take_out(text, is_known=str.isascii)
    assert marked is not None and marked.texts == [rest]
    kept = marked.put_back([Translation(rest, -1.0, -1.0)], [identity(rest)[1]])
    assert kept.text == text and kept.notes == (f"check: unknown words: {words}",)


def test_the_time_for_unknown_words_grows_with_their_number() -> None:
    one, four = (n_steps(lambda: take_out("a 万 " * n, is_known=str.isascii)) for n in (100, 400))  # noqa: B023
    assert four < 5 * one


@pytest.mark.parametrize("text", ["A café in Łódź.", "Привет, мир!", "A dogсобака.", "12 – …", ""])
def test_words_with_known_letters_and_lines_without_are_left_to_the_model(text: str) -> None:
    assert take_out(text, is_known=str.isascii) is None


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("see (https://example.org/a_(b)), or", "https://example.org/a_(b)"),
        ("see www.example.org/x?y=1&z=2.", "www.example.org/x?y=1&z=2"),
        ("write to a.b+c@example.co.uk!", "a.b+c@example.co.uk"),
        ("write to mailto:a.b@example.org.", "mailto:a.b@example.org"),
        ("open file:///tmp/a.txt or", "file:///tmp/a.txt"),
        ("clone git+ssh://a@b.org/c.git.", "git+ssh://a@b.org/c.git"),
        ("family 👨‍👩‍👧‍👦 here", "👨‍👩‍👧‍👦"),
        ("flag 🇩🇪 here", "🇩🇪"),
        ("key 1️⃣ here", "1️⃣"),
        ("is %.2f long", "%.2f"),
        ("is %(size)03d long", "%(size)03d"),
        ("<img alt='a > b' src=x> is", "<img alt='a > b' src=x>"),
        ("{% if x %} then", "{% if x %}"),
        (r"save it to C:\Users\new\report.txt.", r"C:\Users\new\report.txt"),
        (r"on \\server\new\x, too", r"\\server\new\x"),
        (r"type ^\w+\n$ here", r"^\w+\n$"),
        (r"type {\w+} here", r"{\w+}"),
        ("look in /usr/local/bin.", "/usr/local/bin"),
        ("edit ~/.config/x.yaml now", "~/.config/x.yaml"),
        ("{n, plural, =0 {no dogs} other {# dogs}} run", "{n, plural, =0 {no dogs} other {# dogs}}"),
        ("请看https://example.org/a。谢谢", "https://example.org/a"),
        ("发邮件到a.b@example.org吧", "a.b@example.org"),
        ("共%d条", "%d"),
        ("变量$HOME是什么", "$HOME"),
        ("问@user吧", "@user"),
        ("有__NAME__吗", "__NAME__"),
        (r"打开C:\a\b.txt", r"C:\a\b.txt"),
        ("好:smile:的", ":smile:"),
        ("二十m<sup>2</sup>的房间", "<sup>2</sup>"),
        (r"a {\an8} dog", r"{\an8}"),
        (r"a {\pos(1, 2)\1c&HFF&\fnArial Black\b}dog", r"{\pos(1, 2)\1c&HFF&\fnArial Black\b}"),
    ],
)
def test_marks_are_found_whole(text: str, mark: str) -> None:
    [found] = scan(text)
    assert text[found.start : found.end] == mark


def test_code_of_one_character_ends_before_other_code() -> None:
    text = "labels, with `N` in `vN.x` denoting"
    assert [text[mark.start : mark.end] for mark in scan(text)] == ["`N`", "`vN.x`"]


def test_a_mark_inside_of_a_word_leaves_the_word_in_its_translation() -> None:
    german = ("ein Klon hier", links("0-0", "1-1", "2-2"))
    assert put_back('a clo<img src="x"/>ne here', german) == 'ein Klon<img src="x"/> hier'


@pytest.mark.slow
def test_a_line_without_a_hint_has_no_marks_but_those_of_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """What saves the search for each kind of mark must not change what is found."""
    rng = random.Random(1)
    plain = [chr(code) for code in range(32, 0x11000) if not scanner._may_have_marks(f"a{chr(code)}")]
    lines = [f"1{c}a{c} {c}" for c in plain] + ["".join(rng.choices("aw1.:/-+>|#* ", k=8)) for _ in range(10_000)]
    unhinted = [line for line in lines if not scanner._may_have_marks(line)]
    unhinted += [f"a{line}" for line in lines[: len(plain)]]
    assert len(unhinted) > len(plain) > 50_000
    found = list(map(scan, unhinted))
    monkeypatch.setattr(scanner, "_may_have_marks", lambda text: True)
    assert list(map(scan, unhinted)) == found


@pytest.mark.parametrize(
    ("text", "language", "texts"),
    [
        ("3. Mai ist ein Tag.", "de", None),
        ("1. und 2. Klasse", "de-AT", None),
        ("1. öffnen!", "de-AT", ["öffnen!"]),
        ("1. Treffpunkt: Eingang C, 3. Stock", "de", ["Treffpunkt: Eingang C, 3. Stock"]),
        ("3. třída", "cs", None),
        ("3) Mai ist ein Tag.", "de", ["Mai ist ein Tag."]),
        ("3. Öffnen Sie die Kiste!", "de", ["Öffnen Sie die Kiste!"]),
        ("## 3. Aufbau", "de", ["Aufbau"]),
        ("• a) A dog", "en", ["A dog"]),
        ("‣ A dog", "en", ["A dog"]),
        ("•A dog", "en", ["A dog"]),
        (" ■ □ ∙⁃\uf0b7\tA dog", "en", ["A dog"]),
        ("→ A dog => (and) -> a cat", "en", ["A dog => (and) -> a cat"]),
        ("=> (12) A dog", "en", ["A dog"]),
        ("(b) A dog (a)", "en", ["A dog (a)"]),
        ("(1) Ein Hund", "de", ["Ein Hund"]),
        (">> >A dog", "en", ["A dog"]),
        ("(and) a dog - (2)", "en", None),
        ("- **A dog! Two cats.** ", "en", ["A dog! Two cats."]),
        ("~~1. A dog~~", "en", ["1. A dog"]),
        ("1. _A dog:_ Two cats.", "en", ["A dog:", "Two cats."]),
        ("***A dog***: Two cats.", "en", ["A dog", "Two cats."]),
        ("**A dog** runs.", "en", ["A dog runs."]),
        ("*A dog* and *a cat*", "en", ["A dog and a cat"]),
        ("*A <b>dog</b>*", "en", ["A dog"]),
        ("__NAME__", "en", []),
        ("– Ein Hund (oder 2).", "de", ["Ein Hund (oder 2)."]),
        ("3. May is a month.", "en", ["May is a month."]),
        ("## 2. Setup", "en", ["Setup"]),
        ("# A title", "en", ["A title"]),
    ],
)
def test_the_start_of_a_line_depends_on_how_a_language_writes_ordinals(
    text: str, language: str, texts: list[str] | None
) -> None:
    marked = take_out(text, language)
    assert (None if marked is None else marked.texts) == texts


@pytest.mark.parametrize("text", ["- It is {}.", "<b>It is {}</b>."])
def test_translations_keep_their_no_break_spaces(text: str) -> None:
    translated = ("Es ist 5\u00a0km.", links("0-0", "1-1", "2-2", "2-3"))
    assert put_back(text.format("5km"), translated) == text.replace("It is", "Es ist").format("5\u00a0km")


def test_colours_of_a_terminal_are_no_text() -> None:
    marked = take_out("\x1b[1m- One \x1b[31mred\x1b[0m dog")
    assert marked is not None and marked.texts == ["One red dog"]


def test_emphasis_on_a_whole_line_goes_around_its_translation() -> None:
    assert put_back("- **A dog**", ("Ein Hund.", links("0-0", "1-1"))) == "- **Ein Hund.**"


def test_breaks_written_as_escapes_separate_texts_except_in_paths() -> None:
    marked = take_out(r"One dog.\nTwo cats in C:\new\x.")
    assert marked is not None and marked.texts == ["One dog.", "Two cats in."]


def test_escaped_tags_are_tags() -> None:
    text = "&lt;b class='x'&gt;A dog&lt;/b&gt; runs &amp; <i>barks</i>.&lt;br/&gt;Two cats"
    marked = take_out(text)
    assert marked is not None and marked.texts == ["A dog runs & barks.", "Two cats"]
    assert put_back(text, *map(identity, marked.texts)) == text


@pytest.mark.parametrize("mark", ["&quot;{a}&quot;", "&lt;{a}&gt;", "b&amp;{a}", "{a}&apos;s", "{a}&#39;s"])
def test_a_mark_takes_entities_around_it_as_it_takes_their_characters(mark: str) -> None:
    text = f"The dog sees {mark} cat &amp; runs."
    marked = take_out(text)
    assert marked is not None and marked.texts == ["The dog sees cat & runs."]
    assert put_back(text, *map(identity, marked.texts)) == text


def test_emphasis_between_signs_is_a_mark() -> None:
    marked = take_out("It comes with [**`node`**](a.html), (_`npm`_) and a dog.")
    assert marked is not None and marked.texts == ["It comes with, () and a dog."]


def test_a_mark_takes_entities_beside_it_whole_or_not_at_all() -> None:
    text = "Call $object-&gt;name with {a}&amp;{b} or {c}&lt;5 now."
    marked = take_out(text)
    assert marked is not None and marked.texts == ["Call >name with or <5 now."]
    moved = put_back(text, ("Ruf >name mit oder <5.", links("0-0", "1-1", "2-2", "3-3", "4-4")))
    assert re.findall(r"&\w+;?|;", moved) == ["&gt;", "&amp;", "&lt;"]


def test_a_mark_keeps_its_distance_if_the_bracket_before_it_is_lost() -> None:
    text = "The dog (`red`, not old) barks."
    assert put_back(text, ("Der Hund, nicht alt, bellt.", links("0-0", "1-1", "3-2", "4-3", "5-4"))) == (
        "Der Hund, `red` nicht alt, bellt."
    )
    assert put_back(text, ("Der Hund nicht alt bellt.", links("0-0", "1-1", "3-2", "4-3", "5-4"))) == (
        "Der Hund `red` nicht alt bellt."
    )


@pytest.mark.slow
@pytest.mark.parametrize("text", ["a</b> ", "<a>b ", "<a>b ,</a></a>", "x {y}, ", "**a*, "])
def test_thousands_of_marks_are_put_back(text: str) -> None:
    """Deep nesting exceeds no limit of recursion, and work for each mark does not grow with their number."""
    text = text * 2_000
    marked = take_out(text)
    assert marked is not None
    found = put_back(text, *map(identity, marked.texts))
    assert marks_of(found) == marks_of(text)


@pytest.mark.parametrize("text", ["A <a", "A &lt;a", "A <a b", "[a](b", r"C:\a", "/a/b", r"\w"])
def test_a_mark_with_a_long_end_is_scanned_in_linear_time(text: str) -> None:
    """Quadratic time would be minutes."""
    assert len(scan(text + " " * 200_000)) + len(scan(text + "." * 200_000)) <= 2


@pytest.mark.parametrize(
    "opening",
    ["<", "[", "[[a]", "[a](<", "*", "{{", "`", "<a ", "a@", "%(", "<!--", "<pre>", "{a, plural,", "&", r"{\a1\fna"],
)
def test_marks_that_never_end_are_scanned_in_reasonable_time(opening: str) -> None:
    text = opening * 2_000
    marked = take_out(text)
    assert marked is None or put_back(text, *map(identity, marked.texts)) == text


@pytest.mark.parametrize("start", ["`", "<!--", "<![CDATA[", "<?", "<%", "{%", "{#", "<code>", "<SCRIPT >", "<pre"])
def test_starts_without_an_end_are_scanned_in_linear_time(start: str) -> None:
    """Else a request could hold a server for minutes."""
    text = start * (100_000 // len(start))
    assert all(mark.start < mark.end for mark in scan(text) + scan(f"-->]]>?>%>%}}#}}</code></script></pre>{text}"))


@pytest.fixture(scope="module")
def translator() -> Translator:
    """A model that has learned nothing: what it says has nothing to do with the text."""
    return Translator.load(BUNDLE, beam_size=2, n_best=2)


def test_words_of_an_unknown_script_come_through_a_translation(translator: Translator) -> None:
    [[best, *_]] = translator.translate(["The cat met Мария Иванова."])
    assert "Мария Иванова" in best.text and best.notes[-1] == "check: unknown words: Мария Иванова"
    assert translator.texts_read("The cat met Мария Иванова.") == ["The cat met."]


@pytest.mark.slow
def test_a_model_keeps_the_marks_of_all_snippets_in_all_translations(translator: Translator) -> None:
    done: list[int] = []
    found = translator.translate(SNIPPETS, on_progress=done.append)
    assert sum(done) == len(SNIPPETS)
    for text, translations in zip(SNIPPETS, found, strict=True):
        for translation in translations:
            assert marks_of(translation.text) == marks_of(text)
            assert is_well_formed(translation.text) >= is_well_formed(text)


def test_text_without_marks_is_translated_as_without_markup(translator: Translator) -> None:
    texts = ["Where is a small green bird?", "", "1 < 2 and 3 * 4 * 5"]
    assert translator.translate(texts) == replace(translator, markup=False).translate(texts)


def test_the_command_line_keeps_markup(project: Project) -> None:
    text = "<p>Where is <b>the bird</b>?</p> {{name}}"
    done = project.mtformer("translate", text, "--model", str(BUNDLE))
    assert marks_of(done.stdout.strip()) == marks_of(text)
