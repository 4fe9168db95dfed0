"""The translator as a web page, in a headless browser."""

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from browser import Opener, needs_browser
from conftest import Project
from playwright.sync_api import Page, expect

from mtformer.bundle.format import Bundle, load_bundle
from mtformer.config.sources import PrefixTokens
from mtformer.export import html

LINES = ["the red house likes a small dog.", "my old friend needs this green car."]
TEXT = "\n".join(LINES)
TRANSLATED = ["das rote Haus mag ein kleiner Hund.", "mein alter Freund braucht dieses grüne Auto."]
TRANSLATION = "\n".join(TRANSLATED)
MARKUP = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"


@pytest.fixture(scope="module")
def bundle(trained: Project) -> Bundle:
    """The model that has learned the language of the tests."""
    return load_bundle(trained.folder / "runs/config/model.safetensors")


@pytest.fixture(scope="module")
def demo(trained: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its page, as the command line writes it."""
    path = tmp_path_factory.mktemp("pages") / "demo.html"
    result = trained.mtformer("export", "runs/config", "--to", "html", "--output", path)
    assert (result.status, result.stdout) == (0, f"{path}\n"), result.stderr
    return path


@pytest.fixture
def page(demo: Path, opener: Opener) -> Iterator[Page]:
    """The page of the model."""
    with opener(demo) as page:
        yield page


@pytest.fixture
def page_of(bundle: Bundle, opener: Opener, tmp_path: Path) -> Callable[..., Any]:
    """A function that opens the page of the model with some changes to its header."""

    @contextmanager
    def opened(**changes: Any) -> Iterator[Page]:
        changed = replace(bundle, header=bundle.header.model_copy(update=changes))
        (tmp_path / "page.html").write_text(html.render_page(changed), encoding="utf-8")
        with opener(tmp_path / "page.html") as page:
            yield page

    return opened


def between(*directions: str) -> dict[str, Any]:
    """Return what makes a header one of these directions."""
    return {"src_lang": "mul", "tgt_lang": "mul", "prefixes": dict.fromkeys(directions, PrefixTokens())} | {
        "directions": directions
    }


def type_text(page: Page, text: str, expected: str | None = None) -> str:
    """Type a text and return its translation, which is ``expected`` if that is given."""
    page.fill("#source", text)
    if expected is not None:
        expect(page.locator("#target")).to_have_text(expected)
    page.wait_for_selector("#target:not([aria-busy])")
    return page.locator("#target").evaluate("node => node.textContent")


def links(project: Project, text: str) -> list[tuple[int, int]]:
    """Return which words of a text and of its translation are aligned."""
    result = project.mtformer("translate", "--model", "runs/config", "--alignments", "--format", "json", text)
    return json.loads(result.stdout)["translations"][0]["alignment"]["links"]


# Translating


@needs_browser
def test_a_page_translates_as_the_command_line_does(page: Page, trained: Project) -> None:
    texts = [
        *LINES,
        "every good book sees her new garden.",
        "THE RED HOUSE",
        "the 12 red houses",
        "a small dog likes",
        " x",
        "1. the red house",
        "\t- [x]  the red house. a small dog likes ",
        "> # a) the 12 red houses",
        "| the red house | 12 | |",
        "😀 the red house 👍🏽❤️",
        "- **the red house**",
        "- ",
    ]
    result = trained.mtformer("translate", "--model", "runs/config", stdin="".join(f"{text}\n" for text in texts))
    assert [type_text(page, text) for text in texts] == result.stdout.splitlines()
    together = "\n".join(texts)
    assert type_text(page, together) == result.stdout.removesuffix("\n")


@needs_browser
def test_words_light_up_with_those_they_are_aligned_with(page: Page, trained: Project) -> None:
    pairs = links(trained, LINES[0])
    type_text(page, TEXT, TRANSLATION)
    words, readout = page.locator("#target .word"), page.locator("#readout")
    source, target = LINES[0].split(), TRANSLATED[0].split()
    for s, t in pairs:
        words.nth(t).hover()
        expect(page.locator(".word.lit")).to_have_text([target[t]])
        expect(page.locator(".source-word.lit").filter(has_text=source[s])).to_have_count(1)
        expect(readout).to_contain_text(f"{target[t]} ← {source[s]}")
    page.locator("#target").focus()
    for key in ("End", "Home", "ArrowRight", "ArrowLeft", "ArrowRight"):
        page.keyboard.press(key)
    expect(readout).to_contain_text(f"{target[1]} ← ")
    page.locator("#source").press("Control+Home")
    page.locator("#source").press("ArrowRight")
    expect(page.locator(".source-word.lit")).to_have_text([source[0]])
    expect(readout).to_contain_text(f"{source[0]} → {target[0]}")


@needs_browser
def test_words_can_be_pointed_at_while_the_next_translation_is_computed(page: Page) -> None:
    type_text(page, LINES[0], TRANSLATED[0])
    page.evaluate("() => { translatorPage.translate = () => {}; }")
    page.fill("#source", TEXT)
    page.locator("#target .word").first.hover()
    expect(page.locator("#readout")).to_contain_text(TRANSLATED[0].split()[0])
    page.evaluate("() => { delete translatorPage.translate; }")
    type_text(page, TEXT, TRANSLATION)


@needs_browser
def test_a_tap_lights_a_word_and_offers_alternatives(demo: Path, opener: Opener) -> None:
    with opener(demo, width=360, touch=True) as page:
        type_text(page, TEXT, TRANSLATION)
        page.locator("#target .word").first.tap()
        expect(page.locator("#alternatives button").first).to_be_visible()
        expect(page.locator(".word.lit")).to_have_text(["das"])


@needs_browser
def test_characters_of_a_word_are_joined(page: Page) -> None:
    starts = {0: False, 1: False, 2: False, 3: False, 4: True, 5: False}  # 薯片 is one token
    words = [
        {"start": start, "end": start + 1, "continues": continues, "confidence": 0.5, "sources": [min(start, 1)]}
        for start, continues in starts.items()
    ]
    sources = [{"start": 0, "end": 1}, {"start": 2, "end": 5}]
    joined = page.evaluate(
        "([source, translated]) => joinWords(source, translated)",
        ["I ate", {"text": "我们吃薯片。", "words": words, "sources": sources}],
    )
    assert [(word["start"], word["end"], word["sources"]) for word in joined["words"]] == [
        (0, 2, [0, 1]),
        (2, 3, [1]),
        (3, 5, [1]),
        (5, 6, [1]),
    ]


@needs_browser
def test_an_alternative_takes_the_place_of_a_word_and_of_what_follows(page: Page) -> None:
    type_text(page, TEXT, TRANSLATION)
    page.locator("#target .word", has_text="mag").click()
    buttons = page.locator("#alternatives button")
    expect(buttons.locator("strong").first).to_be_visible()
    words = buttons.locator("strong").all_inner_texts()
    assert "mag" not in words and len(words) == len(set(words)) > 1
    chances = [float(text.strip("<% ")) for text in buttons.locator("small").all_inner_texts()]
    assert len(chances) == len(words) and 0 < sum(chances) < 100
    chosen = buttons.first.locator("span").inner_text()
    buttons.first.click()
    expect(page.locator("#target")).to_have_text(f"{chosen}\n{TRANSLATED[1]}")
    page.locator("#target .word").nth(3).hover()
    expect(page.locator("#target .lit")).to_have_text([words[0]])
    expect(page.locator(".source-word.lit").filter(has_text="likes")).to_have_count(1)
    page.keyboard.press("Enter")  # the word is where the keys go on
    page.get_by_text("The first translation again").click()
    expect(page.locator("#target")).to_have_text(TRANSLATION)


@needs_browser
def test_a_glossary_replaces_words_where_its_terms_are_translated(page: Page, trained: Project) -> None:
    pairs = links(trained, LINES[0])
    place = pairs[len(pairs) // 2][0]
    before = TRANSLATED[0].split()[: min(t for s, t in pairs if s == place)]
    page.get_by_text("Glossary").click()
    page.fill("#glossary", f"# a = b\n{LINES[0].split()[place].upper()} = no\n{LINES[0].split()[place]}\tGarten\ncar =")
    assert type_text(page, LINES[0]).startswith(" ".join([*before, "Garten"]))
    page.fill("#glossary", "")
    expect(page.locator("#target")).to_have_text(TRANSLATED[0])


@needs_browser
def test_notes_name_the_lines_of_a_text_of_several(page_of: Callable[..., Any]) -> None:
    with page_of(known_words=("the", "red", "house", "a", "dog")) as page:
        notes = page.locator("#notes li")
        page.locator("summary", has_text="Glossary").click()
        page.fill("#glossary", "red = x  y\nhouse = x  z")  # two spaces are in no translation
        type_text(page, " the car\n")
        expect(notes).to_have_text(["check: unknown: car"])
        type_text(page, "a dog. the car.\n\n- a red car\r\n\nthe cat. a car\na\nhouse")
        expect(notes).to_have_text(
            [
                "check lines 1, 3: unknown: car",
                "check line 3: term not used: red",
                "check line 5: unknown: cat, car",
                "check line 7: term not used: house",
            ]
        )
        named = page.evaluate("namedNotes('a\\nb', [{ start: 2, notes: ['translated in 2 parts'] }])")
        assert named == ["line 2: translated in 2 parts"]


@needs_browser
def test_terms_are_whole_words(page: Page) -> None:
    def spans(text: str, term: str) -> list[list[int]]:
        return page.evaluate("([text, src]) => termSpans(text, { src }).map(Object.values)", [text, term])

    assert spans("Chips, (chips) chipset", "chips") == [[0, 5], [8, 13]]
    assert spans("Chips, (chips) chipset", "Chips") == [[0, 5]]
    assert spans("我吃薯片。", "薯片") == [[2, 4]]
    assert spans("a.b a+b", "a.b") == [[0, 3]]
    longest = page.evaluate("[...spansOfTerms('an old piano', [{ src: 'piano' }, { src: 'old piano' }]).values()]")
    assert longest == [[{"start": 3, "end": 12}], []]
    segment = {"src": "a b", "tgt": "c", "start": 0, "sources": [], "words": []}
    missed = page.evaluate("async (given) => (await withTerms(given, [{ src: 'b', tgt: 'x' }])).missed", segment)
    assert missed == ["b"]


@needs_browser
def test_a_glossary_is_read_line_by_line(page: Page) -> None:
    read = page.evaluate("parseGlossary", "# x=y\r\n\r\na\tb = c\na = b = c\na\tb\tc\n=\na\n")
    assert read == {"terms": [{"src": "a", "tgt": "b = c"}] * 2, "badLines": [5, 6, 7]}


@needs_browser
def test_a_translation_that_comes_too_late_is_not_shown(page: Page) -> None:
    page.evaluate(
        "() => { translatorPage.termed = () => new Promise((end) => { document.body.onclick = () => end(); }); }"
    )
    page.fill("#source", LINES[0])
    page.evaluate("async () => { while (!document.body.onclick) await new Promise(requestAnimationFrame); }")
    page.fill("#source", "")
    page.evaluate("document.body.click()")
    assert page.locator("#target").text_content() == ""


@needs_browser
def test_no_other_translation_stands_beside_a_text_that_cannot_be_translated(page: Page) -> None:
    type_text(page, LINES[0], TRANSLATED[0])
    failing = "Object.assign(Promise.reject(new Error('no')), { cancel() {} })"
    page.evaluate(f"() => {{ translatorPage.engine.translate = () => {failing}; }}")
    page.fill("#source", TEXT)
    expect(page.locator("#state")).to_have_text("This could not be translated: no")
    assert page.locator("#target").text_content() == ""
    expect(page.get_by_role("button", name="Copy")).to_be_disabled()


@needs_browser
def test_clearing_a_text_can_be_undone(page: Page) -> None:
    type_text(page, TEXT, TRANSLATION)
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("#target")).to_have_text("")
    page.keyboard.press("ControlOrMeta+z")
    expect(page.locator("#source")).to_have_value(TEXT)
    expect(page.locator("#target")).to_have_text(TRANSLATION)


@needs_browser
def test_directions_can_be_chosen_and_swapped(page_of: Callable[..., Any]) -> None:
    with page_of(**between("en-de", "de-en", "en-fr")) as page:
        german = type_text(page, TEXT)
        assert page.title() == "English → German"
        page.get_by_role("button", name="Swap languages").click()
        expect(page.locator("#source")).to_have_value(german)
        assert page.title() == "German → English"
        expect(page.get_by_role("combobox")).to_have_count(1)
        page.get_by_label("From", exact=True).select_option("English")
        page.get_by_label("To", exact=True).select_option("French")
        assert (page.title(), page.locator("#target").get_attribute("lang")) == ("English → French", "fr")
        expect(page.get_by_role("button", name="Swap languages")).to_have_count(0)


@needs_browser
def test_a_swap_keeps_a_text_that_has_no_translation_yet(page_of: Callable[..., Any]) -> None:
    with page_of(**between("en-de", "de-en")) as page:
        swap = page.get_by_role("button", name="Swap languages")
        never = "Object.assign(new Promise(() => {}), { cancel() {} })"
        type_text(page, LINES[0])
        page.evaluate(f"() => {{ translatorPage.engine.translate = () => {never}; }}")
        page.fill("#source", TEXT)
        swap.click()
        expect(page.locator("#source")).to_have_value(TEXT)
        assert page.title() == "German → English"


@needs_browser
def test_languages_run_from_right_to_left_in_their_box(page_of: Callable[..., Any]) -> None:
    with page_of(src_lang="en", tgt_lang="ar") as page:
        type_text(page, TEXT)
        assert [page.locator(box).get_attribute("dir") for box in ("#source", "#target")] == ["auto", "rtl"]
        page.locator("#target").focus()
        for key in ("Home", "ArrowLeft"):
            page.keyboard.press(key)
        expect(page.locator(".current")).to_have_text(page.locator("#target .word").nth(1).inner_text())


@needs_browser
def test_each_line_has_a_direction_of_its_own(page: Page) -> None:
    type_text(page, f"{LINES[0]}\nשלום עולם", f"{TRANSLATED[0]}\nשלום עולם")
    is_on_the_right = """node => {
      const range = document.createRange();
      range.selectNodeContents(node);
      const last = [...range.getClientRects()].findLast(({ width }) => width > 2);
      const { left, right } = node.getBoundingClientRect();
      return right - last.right < last.left - left;
    }"""
    for box in ("#source-words", "#target"):
        assert page.locator(box).evaluate(is_on_the_right), box


@pytest.mark.slow
@needs_browser
def test_the_progress_of_a_long_text_stays_on_the_screen(page: Page) -> None:
    type_text(page, "\n".join(LINES * 30), "\n".join(TRANSLATED * 30))
    for place in (0, 500):
        page.evaluate("top => scrollTo(0, top)", place)
        expect(page.locator("#state")).to_be_in_viewport()
        expect(page.get_by_role("button", name="Copy")).to_be_in_viewport()
    page.locator("#target").press("Home")
    for _ in range(150):
        page.keyboard.press("ArrowRight")
    bottom = "node => node.getBoundingClientRect().bottom"
    top_of_tools = page.locator("#copy").evaluate("node => node.parentNode.getBoundingClientRect().top")
    assert page.locator(".current").evaluate(bottom) < top_of_tools


@needs_browser
def test_a_page_says_what_its_model_is(page: Page, bundle: Bundle) -> None:
    page.get_by_text("About this model").click()
    about = page.locator("#about").inner_text()
    for fact in ("English → German", "train.en", "BLEU 100", "not stated in the model", bundle.digest, "Apache-2.0"):
        assert fact in about


@needs_browser
def test_a_translation_can_be_copied(page: Page) -> None:
    type_text(page, TEXT, TRANSLATION)
    page.get_by_role("button", name="Copy").click()
    expect(page.locator("#state")).to_have_text("Copied")
    page.fill("#source", "")
    page.locator("#source").press("ControlOrMeta+v")
    expect(page.locator("#source")).to_have_value(TRANSLATION)


@needs_browser
def test_a_page_tests_itself(demo: Path, opener: Opener) -> None:
    with opener(demo) as page:
        page.goto(f"{demo.as_uri()}?selftest")
        expect(page.locator("#selftest")).to_contain_text("passed; the largest difference is")
        passed, of = page.locator("#selftest").inner_text().split()[1:4:2]
        assert passed == of != "0"


@needs_browser
def test_a_damaged_page_says_so(demo: Path, opener: Opener, tmp_path: Path) -> None:
    before, mark, after = demo.read_text(encoding="utf-8").partition('id="weights">')
    (tmp_path / "damaged.html").write_text(before + mark + after[:5_000] + after[5_004:], encoding="utf-8")
    with opener(tmp_path / "damaged.html") as page:
        expect(page.locator("#state")).to_have_text("The model cannot be opened: this file is damaged or incomplete")
        page.fill("#source", TEXT)
        expect(page.locator("#state")).to_contain_text("This could not be translated: ")
        page.goto(f"{(tmp_path / 'damaged.html').as_uri()}?selftest")
        expect(page.locator("#selftest")).to_have_text("Self-test: this file is damaged or incomplete")


# Files


def drop(page: Page, name: str, contents: bytes) -> None:
    """Drop a file onto the page."""
    transfer = page.evaluate_handle(
        "([name, characters]) => { const all = new DataTransfer();"
        "all.items.add(new File([Uint8Array.from(characters, (each) => each.charCodeAt(0))], name)); return all; }",
        [name, contents.decode("latin-1")],
    )
    page.dispatch_event("body", "drop", {"dataTransfer": transfer})


def saved(page: Page, name: str) -> str:
    """Save a file's translation and return it."""
    with page.expect_download() as download:
        page.get_by_role("link", name=f"Save {name}").click()
    assert download.value.suggested_filename == name
    return download.value.path().read_bytes().decode()


@needs_browser
def test_a_text_file_that_is_dropped_is_translated_line_by_line(page: Page) -> None:
    drop(page, "news.txt", f"\ufeff{LINES[0]}\r\n\r\n{LINES[1]}\n".encode())
    drop(page, "test.en", LINES[0].encode("utf-16"))
    assert saved(page, "news.de.txt") == f"{TRANSLATED[0]}\r\n\r\n{TRANSLATED[1]}\n"
    assert saved(page, "test.de") == TRANSLATED[0]
    expect(page.locator(".file").first).to_contain_text("3 lines")


@needs_browser
def test_a_long_file_can_be_stopped(page: Page) -> None:
    drop(page, "long.txt", "".join(f"{LINES[1]} {n}\n" for n in range(5_000)).encode())
    expect(page.locator(".file")).to_contain_text("of 5,000 lines")
    assert type_text(page, TEXT, TRANSLATION)  # what is typed does not wait for the file
    drop(page, "next.txt", LINES[0].encode())
    page.get_by_role("button", name="Stop").last.click()
    expect(page.locator(".file").last).to_have_text("next.txt stopped")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".file").first).to_contain_text("stopped after")
    lines = saved(page, "long.de.txt").splitlines()
    assert 0 < len(lines) < 5_000 and lines[0].startswith("mein alter Freund")


@needs_browser
def test_a_file_without_text_is_refused(page: Page) -> None:
    drop(page, "picture.png", b"\x89PNG\xff")
    expect(page.locator(".file")).to_have_text("picture.png not a text file in UTF-8")
    drop(page, "empty.txt", b"")
    expect(page.locator(".file").last).to_have_text("empty.txt 0 lines")
    places = [page.locator(each).bounding_box() for each in ("#files", ".file > div >> nth=0", ".file > div >> nth=1")]
    assert len({place["x"] for place in places if place}) == 1


# Strangers


@needs_browser
def test_what_strangers_write_is_text(page_of: Callable[..., Any]) -> None:
    origin = {"imported_from": MARKUP, "license": MARKUP, "config": {"data": {"train": [{"src": MARKUP}]}}}
    with page_of(provenance=origin, scores={MARKUP: 1.0}) as page:
        page.on("dialog", lambda dialog: pytest.fail(dialog.message))
        page.get_by_text("About this model").click()
        expect(page.locator("#about dd").nth(2)).to_have_text(MARKUP)
        type_text(page, MARKUP)
        drop(page, f"{MARKUP}.txt", MARKUP.encode())
        expect(page.locator(".file")).to_contain_text(MARKUP)
        assert page.locator("img").count() == 0


@needs_browser
def test_a_page_may_ask_for_nothing(demo: Path, opener: Opener) -> None:
    with pytest.raises(AssertionError, match="violates the following Content Security Policy"), opener(demo) as page:
        assert page.evaluate("fetch('https://example.com').then(() => 'answered', () => 'refused')") == "refused"


# Apps


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder, and says nothing about it."""

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on this machine."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


@needs_browser
def test_an_app_translates_when_its_server_is_gone(trained: Project, opener: Opener, tmp_path: Path) -> None:
    result = trained.mtformer("export", "runs/config", "--to", "html", "--output", tmp_path / "app")
    assert (result.status, result.stdout) == (0, f"{tmp_path / 'app'}\n"), result.stderr
    names = sorted(path.name for path in (tmp_path / "app").iterdir())
    assert names == ["icon.svg", "index.html", "manifest.webmanifest", "service-worker.js"]
    manifest = json.loads((tmp_path / "app/manifest.webmanifest").read_text(encoding="utf-8"))
    assert (manifest["name"], manifest["start_url"], manifest["display"]) == ("en-de", "./", "standalone")
    with ExitStack() as stack:
        with served(tmp_path / "app") as address:
            page = stack.enter_context(opener(address))
            page.evaluate("navigator.serviceWorker.ready.then(() => true)")
        for path in ("", "index.html", "?selftest"):
            page.goto(address + path)
            type_text(page, TEXT, TRANSLATION)


# The command line


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--output", "page.txt"], "--output page.txt: name a page, page.html, or a folder for a web server"),
        (["--output", "there.html"], "there.html exists and is not a page of mtformer: name another file"),
        (["--output", "none/new.html"], "cannot write none/new.html: No such file or directory"),
        (["--output", "runs"], "runs exists: name a new folder with --output"),
        (["--output", "-"], "--output -: standard output is for the path of the page; name a file"),
        (["--output", "new.html", "--quantization", "int4"], "a page stores weights as int8 or float32"),
        (["--output", "new.html", "--vocabulary-map", "a", "b"], "--vocabulary-map is for --to ctranslate2"),
    ],
)
def test_bad_input_is_explained(copied: Project, options: list[str], message: str) -> None:
    (copied.folder / "there.html").write_text("mine")
    before = sorted(copied.folder.rglob("*"))
    result = copied.mtformer("export", "runs/config", "--to", "html", *options)
    assert (result.status, result.stdout) == (2, "")
    assert message in result.stderr and result.stderr.count("\n") == 1
    assert sorted(copied.folder.rglob("*")) == before
    assert (copied.folder / "there.html").read_text() == "mine"


@pytest.mark.parametrize(
    "command", ["export runs/config --to html", "report --no-test runs/config", "explain --fixed a"]
)
def test_a_page_replaces_an_earlier_page_and_no_other_file(copied: Project, command: str) -> None:
    page = copied.folder / "page.html"
    for _ in range(2):
        result = copied.mtformer(*command.split(), "--output", page)
        assert (result.status, result.stdout) == (0, f"{page}\n"), result.stderr
    page.write_text("mine")
    result = copied.mtformer(*command.split(), "--output", page)
    assert (result.status, result.stdout, page.read_text()) == (2, "", "mine")
    assert f"{page} exists and is not a page of mtformer: name another file with --output\n" in result.stderr


@pytest.mark.parametrize("command", ["report --no-test runs/config", "explain --fixed a"])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("page.txt", "name a page, such as page.html"),
        (".", "name a page, such as page.html"),
        ("-", "standard output is for the path of the page; name a file"),
    ],
)
def test_a_page_is_named_as_one(copied: Project, command: str, name: str, message: str) -> None:
    result = copied.mtformer(*command.split(), "--output", name)
    assert (result.status, result.stdout) == (2, "")
    assert result.stderr.endswith(f"Error: --output {name}: {message}\n")
    assert not (copied.folder / "page.txt").exists()


def test_a_model_that_is_too_large_is_refused(copied: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "MAX_BYTES", 50_000)
    arguments = ["export", "runs/config", "--to", "html", "--quantization", "float32", "--output", "app"]
    result = copied.mtformer(*arguments)
    assert result.status == 2
    assert "its page would take" in result.stderr and "--quantization int8" in result.stderr
    assert not (copied.folder / "app").exists()


def test_a_model_that_a_page_cannot_run_is_refused(copied: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mtformer.browser.pack._POSITIONS", {"rotary"})
    result = copied.mtformer("export", "runs/config", "--to", "html", "--output", "new.html")
    assert (result.status, result.stdout) == (2, "")
    assert "a web page cannot run a model with positions = sinusoidal" in result.stderr
    assert not (copied.folder / "new.html").exists()
