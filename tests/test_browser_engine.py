"""The engine of a web page, whose worker translates, in a headless browser."""

import base64
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Opener, needs_browser
from browser_tokens import hostile_lines
from conftest import Project, sentence_pairs
from nasty_report import read_suite
from playwright.sync_api import Page

from mtformer import Translator
from mtformer.browser.pack import ENGINE_ASSETS, pack
from mtformer.bundle.format import load_bundle
from mtformer.support.page import assemble

pytestmark = needs_browser

BUNDLE = Path(__file__).parent / "fixtures/bundle-3.safetensors"
TEXT = "  I ate chips. “She” ﬁnds the DOGS!\r\n\nWHERE IS THE HOUSE? 3 apples.\t It is red. ☃\n\t1.  He reads."
SENTENCES = ["I ate chips.", "“She” ﬁnds the DOGS!", "", "WHERE IS THE HOUSE?", "3 apples.", "It is red.", "He reads."]

_START = """
const weights = Uint8Array.from(atob(pageData.weights), (character) => character.charCodeAt(0)).buffer;
const engine = startEngine(pageData.header, Promise.resolve(weights));
const nameOf = (promise) => promise.then(() => "done", (error) => `${error.name}: ${error.message}`);
const manySentences = () => Array.from({ length: 40 }, (_, i) => `There are ${i} chips. `).join("");
async function newestFirst() {
  const ended = [];
  const long = engine.translate(manySentences(), { beam: 8 }).then(() => ended.push("long"));
  await engine.translate("She reads.", { beam: 1 }).then(() => ended.push("short"));
  await long;
  return ended;
}
async function cancelled() {
  const running = engine.translate(manySentences(), { beam: 7, onProgress: () => running.cancel() });
  const names = [await nameOf(running)];
  const others = [engine.translate(manySentences(), { beam: 6 }), engine.translate(manySentences(), { beam: 5 })];
  const ended = others.map(nameOf);
  others[0].cancel();
  engine.stop();
  return [...names, ...(await Promise.all(ended)), await nameOf(engine.translate("He is red."))];
}
async function misplaced(texts) {
  const wrong = [];
  for (const text of JSON.parse(texts)) {
    const source = text.toWellFormed();
    const result = await engine.translate(text, { beam: 1 });
    let [last, tgtLast] = [0, 0];
    for (const { src, tgt, start, end, tgtStart, tgtEnd, sources, words } of result.segments) {
      const areOrdered = last <= start && start <= end && end <= source.length && tgtLast <= tgtStart;
      const areWords = sources.every((word) => start <= word.start && word.start < word.end && word.end <= end) &&
        words.every((word) => tgtStart <= word.start && word.start < word.end && word.end <= tgtEnd &&
          word.sources.every((index) => sources[index]) && word.confidence >= 0 && word.confidence <= 1);
      const areTexts = source.slice(start, end) === src && result.text.slice(tgtStart, tgtEnd) === tgt;
      if (!areOrdered || !areWords || !areTexts) wrong.push([text, areOrdered, areWords, areTexts]);
      [last, tgtLast] = [end, tgtEnd];
    }
  }
  return wrong;
}
async function progress() {
  const steps = [];
  await engine.translate("One. Two. Three. Four. Five.", { onProgress: (step) => steps.push(step) });
  return steps;
}
"""


def write_page(path: Path, bundle: Path) -> Path:
    """Write a page with an engine that has the model in float32."""
    packed = pack(load_bundle(bundle), quantization="float32")
    data = {"header": packed.header, "weights": base64.b64encode(packed.data).decode()}
    text = assemble("engine", "", data=data, assets=ENGINE_ASSETS, computes=True)
    path.write_text(text.replace("</body>", f"<script>{_START}</script></body>"), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def page(opener: Opener, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A page with an engine."""
    with opener(write_page(tmp_path_factory.mktemp("engine") / "page.html", BUNDLE)) as page:
        yield page


def translated(page: Page, text: str, **options: Any) -> dict[str, Any]:
    result: dict[str, Any] = page.evaluate("([text, options]) => engine.translate(text, options)", [text, options])
    return result


def test_a_worker_translates_as_python_does(page: Page) -> None:
    """The model is bad enough for second, stricter searches."""
    translator = Translator.load(BUNDLE)
    texts = [
        "I ate chips.",
        "She reads the book. He sees a dog.",
        "Where is\nthe house?",
        "He is here.",
        "",
        "no no no",
    ]
    for beam in (1, 4, 16):
        expected = translator.with_options(beam_size=beam).translate(texts)
        for text, [best] in zip(texts, expected, strict=True):
            found = translated(page, text, beam=beam)
            assert (found["text"], found["notes"]) == (best.text, list(best.notes))


def test_words_are_linked_as_python_does(trained: Project, opener: Opener, tmp_path: Path) -> None:
    bundle = trained.folder / "runs/config/model.safetensors"
    translator = Translator.load(bundle)
    sources = [src for src, _ in sentence_pairs(20)]
    expected = [best for best, *_ in translator.translate(sources)]
    alignments = translator.align(sources, [each.text for each in expected])
    with opener(write_page(tmp_path / "page.html", bundle)) as page:
        for src, best, alignment in zip(sources, expected, alignments, strict=True):
            found = translated(page, src)
            words = [word for segment in found["segments"] for word in segment["words"]]
            links = [(word["sources"][0], place) for place, word in enumerate(words) if word["sources"]]
            assert (found["text"], sorted(links)) == (best.text, alignment.word_links())


def test_segments_and_words_stand_where_they_say(page: Page) -> None:
    found = translated(page, TEXT)
    segments = found["segments"]
    assert [segment["src"] for segment in segments] == SENTENCES
    for segment in segments:
        assert TEXT[segment["start"] : segment["end"]] == segment["src"]
        assert found["text"][segment["tgtStart"] : segment["tgtEnd"]] == segment["tgt"]
        assert [TEXT[source["start"] : source["end"]] for source in segment["sources"]] == segment["src"].split()
        words = segment["words"]
        assert [found["text"][word["start"] : word["end"]] for word in words] == segment["tgt"].split()
        assert all(0 < word["confidence"] <= 1 for word in words)
        assert {i for word in words for i in word["sources"]} <= set(range(len(segment["sources"])))


def test_segments_of_hostile_texts_stand_where_they_say(page: Page) -> None:
    texts = [text for _, text in read_suite() if len(text) < 300] + hostile_lines(40, 1)
    assert page.evaluate("misplaced", json.dumps(texts)) == []  # as JSON, surrogates stay what they are


def test_each_note_is_one_of_a_segment(page: Page) -> None:
    """Also those of lines of several sentences."""
    found = translated(page, "I ate chips.\nI ate chips. She reads ש.")
    assert found["notes"] == ["check: unknown characters: ש"]
    assert [segment["notes"] for segment in found["segments"]] == [[], found["notes"], []]


def test_alternatives_continue_a_prefix_with_different_words(page: Page) -> None:
    sentence = "She reads the book."
    [segment] = translated(page, sentence)["segments"]
    prefix = segment["tgt"][: segment["words"][1]["start"]]
    found = page.evaluate("([src, prefix]) => engine.alternatives(src, prefix)", [sentence, prefix])
    assert len(found) > 1
    assert len({each["word"] for each in found}) == len(found)
    assert all(each["text"].startswith(prefix.strip()) for each in found)
    assert all(each["text"] == each["segment"]["tgt"] for each in found)
    assert [each["score"] for each in found] == sorted((each["score"] for each in found), reverse=True)
    assert page.evaluate("engine.alternatives('', '')") == []


def test_what_was_asked_last_is_translated_first(page: Page) -> None:
    assert page.evaluate("newestFirst()") == ["short", "long"]


def test_tasks_can_be_cancelled_and_others_go_on(page: Page) -> None:
    assert page.evaluate("cancelled()") == ["AbortError: cancelled"] * 3 + ["done"]


def test_progress_counts_the_sentences(page: Page) -> None:
    steps = page.evaluate("progress()")
    assert all(step["of"] == 5 and 0 <= step["done"] < 5 for step in steps)


def test_the_model_tests_itself(page: Page) -> None:
    ready = page.evaluate("engine.ready")
    assert math.isfinite(ready["loadedIn"])
    assert page.evaluate("engine.selftest()")["passed"] == 2


def test_errors_reach_the_page(page: Page) -> None:
    other = "nameOf(engine.translate('I', { to: 'fr' }))"
    assert page.evaluate(other) == "Error: the model does not translate from any language to fr"
    failing = "nameOf(startEngine(pageData.header, Promise.reject(new Error('damaged'))).translate('I'))"
    assert page.evaluate(failing) == "Error: damaged"
    empty = "nameOf(startEngine(pageData.header, new ArrayBuffer(8)).translate('I'))"
    assert page.evaluate(empty) == "Error: the page's weights are damaged"
