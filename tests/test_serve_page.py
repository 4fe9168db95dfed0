"""The page of a server, in a headless browser, and what it asks the server for."""

import io
import re
from pathlib import Path

import docx
import pytest
from browser import Opener, needs_browser
from conftest import Project
from playwright.sync_api import FilePayload, Page, expect
from servers import Client, running

from mtformer.bundle.format import load_bundle
from mtformer.model.weights import count_parameters
from mtformer.serve.documents import SUFFIXES
from mtformer.serve.keys import add_key
from mtformer.serve.segments import sentences
from mtformer.translate.translator import Translator

SENTENCE = "the red house likes a small dog."
TRANSLATION = "das rote Haus mag ein kleiner Hund."
TEXT = f"{SENTENCE} 2 {SENTENCE}\n\nmy old friend needs this green car."
expect.set_options(timeout=60_000)


@pytest.fixture(scope="module")
def translation(server: Client) -> str:
    """What the interface of LibreTranslate says for the text."""
    answer = server.post("/translate", {"q": TEXT, "source": "en", "target": "de"}).json()
    return str(answer["translatedText"])


@needs_browser
def test_the_page_translates_and_offers_alternatives(server: Client, opener: Opener, translation: str) -> None:
    segment = server.post("/page/translate", {"text": TEXT, "source": "en", "target": "de"}).json()["segments"][0]
    lit = [SENTENCE.split()[i].strip(".") for i in sorted(segment["words"][0]["sources"])]
    with opener(f"{server.url}/") as page:
        page.fill("#source", TEXT)
        expect(page.locator("#target")).to_have_text(translation)
        words = page.locator("#target .word")
        words.first.hover()
        expect(page.locator("#source-words .lit")).to_have_text(lit)
        page.locator("#target .word", has_text="rote").first.click()
        menu = page.locator("#alternatives")
        expect(menu.locator("button").first).to_be_visible()
        chosen = menu.locator("button strong").first.inner_text()
        menu.locator("button").first.click()
        expect(page.locator("#target")).to_contain_text(chosen)


@needs_browser
def test_the_page_uses_its_glossary(server: Client, opener: Opener) -> None:
    with opener(f"{server.url}/") as page:
        page.locator("summary", has_text="Glossary").click()
        page.fill("#glossary", "friend = Hund")
        page.fill("#source", "my old friend needs this green car.")
        expect(page.locator("#target")).to_contain_text("Hund")


@needs_browser
def test_the_page_names_bad_lines_of_its_glossary_and_goes_on_without_them(server: Client, opener: Opener) -> None:
    with opener(f"{server.url}/") as page:
        page.locator("summary", has_text="Glossary").click()
        page.fill("#glossary", "# terms\nfriend Freund\nfriend = Hund\n\ncar =")
        expect(page.locator("#bad-terms")).to_have_text("Lines 2, 5: there is no term with a translation")
        page.fill("#source", "my old friend needs this green car.")
        expect(page.locator("#target")).to_contain_text("Hund")
        page.fill("#glossary", "friend = Hund")
        expect(page.locator("#bad-terms")).to_have_text("")


@needs_browser
def test_the_page_says_what_the_model_is(server: Client, opener: Opener, trained: Project) -> None:
    bundle = load_bundle(trained.folder / "runs/config/model.safetensors")
    with opener(f"{server.url}/") as page:
        page.get_by_text("About this model").click()
        about = page.locator("#about").inner_text()
        for fact in (
            "English → German",
            f"{count_parameters(bundle.model):,} parameters",
            "MB",
            "train.en",
            "BLEU",
            "not stated in the model",
            "Apache-2.0",
        ):
            assert fact in about


@pytest.fixture(params=[360, 1280])
def width(request: pytest.FixtureRequest) -> int:
    """That of a window: a phone's or a desktop's."""
    return int(request.param)


def fits(page: Page, width: int) -> bool:
    """Whether nothing of a page is beside the window."""
    return bool(page.evaluate("document.documentElement.scrollWidth") <= width)


@needs_browser
def test_the_page_translates_documents(server: Client, opener: Opener, width: int) -> None:
    document, content = docx.Document(), io.BytesIO()
    document.add_paragraph(SENTENCE)
    document.save(content)
    media_type = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    subtitles = f"1\n00:00:01,000 --> 00:00:02,000\n{SENTENCE}\n".encode()
    files: list[FilePayload] = [
        {"name": "my letter.docx", "mimeType": media_type, "buffer": content.getvalue()},
        {"name": "film.SRT", "mimeType": "application/x-subrip", "buffer": subtitles},
        {"name": "lines.log", "mimeType": "text/plain", "buffer": SENTENCE.encode()},
    ]
    with opener(f"{server.url}/", width=width) as page:
        accepted = (page.get_attribute("#files-input", "accept") or "").split(",")
        assert accepted == ["text/*", *SUFFIXES]
        page.set_input_files("#files-input", files)
        cards = page.locator("#files .file")
        expect(cards.nth(2)).to_contain_text("Save lines.de.log")
        saved = []
        for i in range(2):
            with page.expect_download() as download:
                cards.nth(i).locator("a").click()
            saved.append((download.value.suggested_filename, Path(download.value.path()).read_bytes()))
        assert [name for name, _ in saved] == ["my letter.de.docx", "film.de.SRT"]
        assert docx.Document(io.BytesIO(saved[0][1])).paragraphs[0].text == TRANSLATION
        assert TRANSLATION in saved[1][1].decode()
        assert fits(page, width)


@needs_browser
def test_the_page_says_what_is_wrong_with_a_document(server: Client, opener: Opener) -> None:
    file: FilePayload = {"name": "bad.docx", "mimeType": "application/zip", "buffer": b"PK no archive"}
    with pytest.raises(AssertionError, match="400"), opener(f"{server.url}/") as page:  # the browser logs the refusal
        page.set_input_files("#files-input", [file])
        expect(page.locator("#files .file")).to_contain_text("bad.docx is damaged")


@needs_browser
def test_the_page_says_so_when_a_proxy_answers_instead_of_the_server(server: Client, opener: Opener) -> None:
    logged = "console: .* status of 502"
    with pytest.raises(AssertionError, match=logged), opener(f"{server.url}/") as page:
        page.route("**/page/translate", lambda route: route.fulfill(status=502, body="<h1>Bad Gateway</h1>"))
        page.fill("#source", SENTENCE)
        expect(page.locator("#state")).to_have_text(
            "This could not be translated: the server is not reached (status 502)"
        )


@needs_browser
def test_the_page_says_so_when_the_server_is_gone(server: Client, opener: Opener) -> None:
    logged = "console: .* net::ERR_FAILED"
    film: FilePayload = {"name": "a.srt", "mimeType": "application/x-subrip", "buffer": b"1"}
    with pytest.raises(AssertionError, match=logged), opener(f"{server.url}/") as page:
        page.route("**/*", lambda route: route.abort())
        page.fill("#source", SENTENCE)
        expect(page.locator("#state")).to_have_text("This could not be translated: the server is not reached")
        page.set_input_files("#files-input", [film])
        expect(page.locator("#files .file")).to_have_text("a.srt the server is not reached")
        page.unroute("**/*")
        page.fill("#source", SENTENCE + " ")
        expect(page.locator("#target")).to_contain_text(TRANSLATION)


@needs_browser
def test_the_page_says_why_a_word_was_chosen(server: Client, opener: Opener, width: int) -> None:
    with opener(f"{server.url}/", width=width) as page:
        page.fill("#source", SENTENCE)
        page.locator("#target .word", has_text="Haus").first.click()
        menu = page.locator("#alternatives")
        menu.get_by_role("button", name="Why this word?").click()
        table = menu.locator("table")
        expect(table.locator("caption")).to_have_text("The model chose it token by token:")
        rows = [row.split("\t") for row in table.locator("tr").all_inner_texts()[1:]]
        assert "".join(token for token, *_ in rows).strip("␣") == "Haus"
        assert all(likelihood.endswith(" %") and others for _, likelihood, others in rows)
        expect(menu.get_by_role("button", name="Why this word?")).to_have_count(0)
        box = menu.bounding_box()
        assert box
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert fits(page, width)


def test_why_is_told_for_the_tokens_of_the_word_alone(server: Client) -> None:
    asked = {"text": SENTENCE, "source": "en", "target": "de", "prefix": "das rote ", "word": "Auto"}
    tokens = server.post("/page/why", asked).json()
    assert "".join(each["token"] for each in tokens).strip("␣") == "Auto"
    assert all(len(each["others"]) == 3 for each in tokens)
    assert tokens[0]["probability"] < 0.5 < tokens[0]["others"][0]["probability"]  # the house, which it would have said
    assert server.post("/page/why", asked | {"word": ""}).status_code == 400


@needs_browser
def test_the_page_asks_for_a_key(bundle: Path, opener: Opener, tmp_path: Path) -> None:
    key = add_key(tmp_path / "keys.json", "ada")
    with running(bundle, keys=tmp_path / "keys.json") as client:
        assert client.post("/page/translate", {"text": "a", "source": "en", "target": "de"}).status_code == 403
        assert client.get("/").status_code == 200
        with (
            pytest.raises(AssertionError, match="403"),
            opener(f"{client.url}/") as page,
        ):  # the browser logs the refusal
            page.on("dialog", lambda dialog: dialog.accept(key))
            page.fill("#source", SENTENCE)
            expect(page.locator("#target")).to_have_text(TRANSLATION)


def test_segments_have_their_places_in_the_whole_texts(server: Client, bundle: Path, translation: str) -> None:
    text = f"😀 {TEXT}"
    answer = server.post("/page/translate", {"text": text, "source": "en", "target": "de"}).json()
    assert answer["text"] == f"😀 {translation}"
    source, target = text.encode("utf-16-le"), answer["text"].encode("utf-16-le")

    def at(side: bytes, start: int, end: int) -> str:
        return side[2 * start : 2 * end].decode("utf-16-le")

    assert len(answer["segments"]) == 3
    for segment in answer["segments"]:
        assert at(source, segment["start"], segment["end"]) == segment["src"]
        assert at(target, segment["tgtStart"], segment["tgtEnd"]) == segment["tgt"]
        shown = [at(target, word["start"], word["end"]) for word in segment["words"]]
        assert shown == segment["tgt"].split()
        assert [at(source, word["start"], word["end"]) for word in segment["sources"]] == segment["src"].split()
        assert all(0 < word["confidence"] <= 1 for word in segment["words"])
        [alignment] = Translator.load(bundle).align([segment["src"]], [segment["tgt"]])
        for number, word in enumerate(segment["words"]):
            weights = {weight.src: weight.weight for weight in alignment.word_weights() if weight.tgt == number}
            assert word["sources"][0] == max(weights, key=weights.__getitem__)


def test_alternatives_begin_as_they_are_told_to_and_go_on_differently(server: Client) -> None:
    asked = {"text": SENTENCE, "source": "en", "target": "de", "prefix": "das rote Haus "}
    found = server.post("/page/alternatives", asked).json()
    words = [each["word"] for each in found]
    assert words[0] == "mag"
    assert len(set(words)) == len(words) > 1
    assert all(each["text"].startswith("das rote Haus") for each in found)
    assert all(0 <= each["probability"] <= 1 for each in found)
    assert sum(each["probability"] for each in found) <= 1.001, "they are those of different words at one place"
    begun = server.post("/page/begin", asked | {"prefix": "ein kleiner Hund"}).json()
    assert begun["tgt"].startswith("ein kleiner Hund")
    several = server.post("/page/begin", asked | {"text": f"{SENTENCE} 2 {SENTENCE}"})
    assert several.json() is None
    assert server.post("/page/nothing", asked).status_code == 404


@pytest.mark.parametrize("task", ["alternatives", "begin"])
def test_a_beginning_is_not_longer_than_a_translation_may_be(server: Client, task: str) -> None:
    """Each of its tokens takes a step: a thread would compute it for hours."""
    asked = {"text": SENTENCE, "source": "en", "target": "de", "prefix": "das " * 200}
    answer = server.post(f"/page/{task}", asked)
    assert answer.status_code == 400
    assert re.fullmatch(r"the beginning has \d+ tokens, more than the \d+ that .*", answer.json()["error"])


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        ("one.", ["", "one."]),
        ("One. Two?\r\n\r\n Three", ["", "One.", " ", "Two?", "\r\n\r\n", "Three"]),
        ("\n\none.\n", ["\n\n", "one."]),
        ("1. One. Two?\n\t- Three \n- \n", ["1. ", "One.", " ", "Two?", "\n - ", "Three"]),
        ("| one | - | 3 |", ["| ", "one", " | - | ", "3"]),
    ],
)
def test_a_text_is_split_into_sentences(text: str, parts: list[str]) -> None:
    places, end = sentences(text, "en", "de")
    assert [part for place in places for part in (place.joiner, place.text)] == parts
    assert all(text[place.start :].startswith(place.text) for place in places)
    assert "".join([*parts, end]).split() == text.split()
