"""The page of ``mtformer explain``, in a headless browser, against the numbers of the trace."""

import base64
import json
import re
import zlib
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import Opener, needs_browser
from conftest import Project
from playwright.sync_api import Page

import mtformer.explain.page as page_module
from mtformer import Translator
from mtformer.explain.notebook import NotebookTrace
from mtformer.explain.page import _pack, read_words, render_page
from mtformer.support.errors import UserError
from mtformer.support.page import MAX_PAGE_BYTES

SENTENCE = "the red house sees a small dog."
OTHER = "the red house likes my old friend."
HOSTILE = "</script><img src=x onerror=alert(1)> & the red dog"


@pytest.fixture(scope="module")
def command(trained: Project, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """What one command writes: a page, and the trace that the page is about."""
    path = tmp_path_factory.mktemp("page") / "page.html"
    options = ["--compare", OTHER, "--why-not", "Hund", "--why-not", "Garten", "--prefix", "das", "--checkpoints"]
    result = trained.mtformer("explain", SENTENCE, *options, "--fixed", "--output", path, "--format", "json")
    assert result.status == 0, result.stderr
    return path, json.loads(result.stdout)


@pytest.fixture(scope="module")
def large(command: tuple[Path, dict[str, Any]]) -> dict[str, Any]:
    """An explanation with features of 256 columns and 4 times as many layers."""
    explanation = deepcopy(command[1])
    random = np.random.default_rng(1)
    for trace in explanation["traces"]:
        for block in trace["matrices"]:
            if block["columns"] == "features" and len(block["shape"]) == 2:
                block["shape"][1] = 256
                block["values"] = random.normal(size=block["shape"])
        trace["matrices"] *= 4
    return explanation


@pytest.fixture(scope="module")
def page(command: tuple[Path, dict[str, Any]], opener: Opener) -> Iterator[Page]:
    """The page in a browser, for the tests that look at its sections one after the other."""
    with opener(command[0]) as page:
        page.wait_for_selector("#what-if")
        yield page


@pytest.fixture(scope="module")
def trace(command: tuple[Path, dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = command[1]["traces"][0]
    return found


def weights_of(trace: dict[str, Any], kind: str, layer: int) -> np.ndarray:
    [found] = [one["weights"] for one in trace["attention"] if (one["kind"], one["layer"]) == (kind, layer)]
    return np.array(found)


def number(text: str) -> float:
    return float(text.replace("−∞", "-inf").replace("−", "-"))


def decoder_input(trace: dict[str, Any]) -> list[str]:
    return [trace["bos"]["text"], *(token["text"] for token in trace["target"]["tokens"][:-1])]


# Language

# What stays as it is in Chinese: names of the paper and of code, and of matrices, which have a translation beside them.
KEPT = set(
    "softmax Attention LayerNorm ReLU query Tab MB format json PE ids max head d_model d_head d_ff pre norm "
    "scores scaled mask masked weights concatenation output residual activation linear1 linear2 heads "
    "embeddings encoder decoder logits probabilities memory positions Wu JavaScript d_k W_out config".split()
)
# The words in Latin letters that a reader sees or hears, without those that are of the sentence and its translation.
LATIN = """node => {
  const [page, sentence] = [[], []];
  const read = (node, texts) => {
    if (node.nodeType === Node.TEXT_NODE) texts.push(node.textContent);
    if (node.nodeType !== Node.ELEMENT_NODE || node.matches(".formula")) return;
    const own = node.hasAttribute("lang") ? sentence : texts;
    texts.push(node.title ?? "", node.ariaLabel ?? "");
    node.childNodes.forEach(child => read(child, own));
  };
  read(node, page);
  const words = texts => texts.flatMap(text => text.match(/[A-Za-z]\\w+/g) ?? []);
  const known = new Set(words(sentence));
  return words(page.map(text => text.replace(/“.*?”/g, ""))).filter(word => !known.has(word));
}"""


@pytest.mark.slow
@needs_browser
def test_a_chinese_page_says_everything_in_chinese(trained: Project, tmp_path: Path, opener: Opener) -> None:
    path = tmp_path / "page.html"
    options = ["--compare", OTHER, "--why-not", "Garten", "--prefix", "das", "--checkpoints", "--language", "zh"]
    result = trained.mtformer("explain", SENTENCE, *options, "--fixed", "--output", path)
    assert result.status == 0, result.stderr
    with opener(path, width=360, height=740) as page:
        page.wait_for_selector("#what-if")
        assert page.locator("html").get_attribute("lang") == "zh"
        assert page.locator("nav a").all_inner_texts() == [
            "词元",
            "注意力",
            "流程",
            "解码",
            "束搜索",
            "矩阵",
            "词",
            "如果",
        ]
        page.evaluate("document.querySelectorAll('details').forEach(panel => (panel.open = true))")
        page.wait_for_selector("details.layer .card canvas")
        model = set(re.findall(r"\w+", page.locator(".translation + p").inner_text()))
        assert set(page.locator("main").evaluate(LATIN)) - KEPT - model == set()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360


def words_said() -> set[str]:
    """Return what the scripts of the page say, in English."""
    scripts = Path(page_module.__file__).parent.glob("*.js")
    literals = [re.findall(r'say\(\s*("(?:[^"\\]|\\.)*")', script.read_text(encoding="utf-8")) for script in scripts]
    return {json.loads(literal) for found in literals for literal in found}


def test_all_that_scripts_say_has_a_translation_with_the_same_values() -> None:
    words = read_words()
    assert words_said() - words.keys() == set()
    for english, chinese in words.items():
        names = set(re.findall(r"\{(\w+)\}", chinese))
        may_have = {name for known in re.findall(r"\{(\w+)\}", english) for name in (known, known.removesuffix("_th"))}
        assert names <= may_have, english


# Numbers


def test_numbers_survive_packing_to_within_half_a_unit() -> None:
    numbers = np.random.default_rng(1).normal(scale=[[[1e-3]], [[1.0]], [[3e4]]], size=(3, 4, 5))
    numbers[1, 2, 3] = -np.inf
    packed = _pack(numbers)
    planes = np.frombuffer(zlib.decompress(base64.b64decode(packed["data"]), wbits=-15), dtype=np.uint8)
    counts = np.ascontiguousarray(planes.reshape(4, -1).T).view("<i4").ravel()
    found = np.where(counts == -(2**31), -np.inf, counts * packed["unit"]).reshape(packed["shape"])
    assert packed["unit"] == 1e-4
    np.testing.assert_allclose(found, numbers, rtol=0, atol=0.5001e-4)


def test_numbers_too_large_for_the_unit_get_a_larger_one() -> None:
    packed = _pack(np.array([1e9, -3.0]))
    assert packed["unit"] == pytest.approx(1.0)


# The whole page


@needs_browser
@pytest.mark.parametrize("dark", [False, True])
def test_a_narrow_page_does_not_scroll_sideways_and_text_stays_text(
    trained: Project, tmp_path: Path, opener: Opener, dark: bool
) -> None:
    path = tmp_path / "page.html"
    options = ["--beam-size", "1", "--kind", "cross", "--layer", "1", "--head", "2", "--fixed"]
    result = trained.mtformer("explain", HOSTILE, *options, "--output", path)
    assert (result.status, result.stdout) == (0, f"{path}\n")
    with opener(path, width=360, height=740, dark=dark) as page:
        page.wait_for_selector("#matrices")
        assert page.locator("h1").inner_text() == HOSTILE
        assert page.locator("img").count() == 0
        titles = ["Tokens", "Attention", "Flow", "Decoding", "Search", "Matrices", "Words"]
        assert page.locator("nav a").all_inner_texts() == titles
        assert page.locator("#attention h3").inner_text() == "Layer 1, head 2"
        assert page.locator("#attention").get_by_label("Cross", exact=True).is_checked()
        page.locator("#matrices .map-part").nth(1).click()
        page.wait_for_selector("#matrices .card td.number, #matrices .card canvas")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        strongest = "Math.max(...document.querySelector('.thumbnail').getContext('2d').getImageData(0, 0, 9, 9).data)"
        color = page.evaluate("cssColor('--heat')").split(", ")
        assert page.evaluate(strongest) > 0
        assert color == (["138", "180", "255"] if dark else ["31", "95", "191"])


# The contrast (WCAG 2) of an element's text with what is behind it, at full weight.
CONTRAST = """element => {
  (element.closest(".end") ?? element).style.setProperty("--weight", 1);
  const styles = [];
  for (let node = element; node; node = node.parentElement) styles.unshift(getComputedStyle(node));
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const put = color => [canvas.fillStyle = color, canvas.fillRect(0, 0, 1, 1)];
  const luminance = () => {
    const linear = [...canvas.getImageData(0, 0, 1, 1).data].map(each => each / 255)
      .map(each => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  styles.forEach(style => put(style.backgroundColor));
  const behind = luminance();
  canvas.globalAlpha = styles.reduce((alpha, { opacity }) => alpha * opacity, 1);
  put(element instanceof SVGElement ? styles.at(-1).fill : styles.at(-1).color);
  const [low, high] = [behind, luminance()].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}"""


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("dark", [False, True])
def test_text_is_legible(command: tuple[Path, dict[str, Any]], opener: Opener, dark: bool) -> None:
    with opener(command[0], dark=dark) as page:
        page.wait_for_selector("#what-if")
        page.locator("#matrices .map-part").nth(1).click()
        page.wait_for_selector("#matrices td.number")
        page.locator("#attention").get_by_text("Cross", exact=True).click()
        for kind in (
            ".chip.heated",
            ".end.query",
            ".end.query .next",
            "#matrices td.number:not(.negative, .masked)",
            "#matrices td.negative",
            ".node.pruned:not(.on-path) .name",
            ".node.pruned:not(.on-path) .total",
        ):
            assert page.locator(kind).first.evaluate(CONTRAST) >= 4.5, kind


@needs_browser
def test_small_weights_are_visible(page: Page) -> None:
    """Those of a sentence of 50 tokens, of which one looks at all alike."""
    paint = """() => {
      const canvas = document.createElement("canvas");
      paint(canvas, { rows: 1, columns: 1, at: () => 0.02 }, 1);
      return canvas.getContext("2d").getImageData(0, 0, 1, 1).data[3] / 255;
    }"""
    assert page.evaluate(paint) > 0.1
    line = page.locator("#attention .wires path").first
    line.evaluate("node => node.style.setProperty('--weight', 0.02)")
    assert float(line.evaluate("node => getComputedStyle(node).strokeOpacity")) < 0.1  # one of many
    page.locator("#attention .end.query").nth(1).hover()
    assert float(line.evaluate("node => getComputedStyle(node).strokeOpacity")) > 0.3


@needs_browser
def test_an_empty_translation_is_named(page: Page) -> None:
    finished = "{ rank: 2, text: '', length: 1, log_prob: -1, penalty: 1, score: -1 }"
    row = page.evaluate(f"finishedRow({finished}, {{ length_penalty: 0.6 }}).cells[1].textContent")
    assert row == "(nothing)"


@needs_browser
def test_the_length_penalty_is_that_of_the_search(page: Page) -> None:
    formula = """offset => {
        const before = pageData.search.length_penalty_offset;
        pageData.search.length_penalty_offset = offset;
        const text = penaltyFormula(7, 0.6).textContent;
        pageData.search.length_penalty_offset = before;
        return text;
    }"""
    assert page.evaluate(formula, 0) == "70.6"  # the exponent is raised
    assert page.evaluate(formula, 5) == "((5 + 7) / 6)0.6"


@needs_browser
def test_a_tap_on_a_phone_pins_the_token_under_the_finger(command: tuple[Path, dict[str, Any]], opener: Opener) -> None:
    with opener(command[0], width=360, height=740, touch=True) as page:
        page.wait_for_selector("#what-if")
        ends = page.locator("#attention .end.query")
        from_top = "node => node.getBoundingClientRect().top + scrollY"
        for index in (2, 4):
            tapped = ends.nth(index)
            before = tapped.evaluate(from_top)
            tapped.tap()
            assert tapped.evaluate(from_top) == before
            pressed = [end.get_attribute("aria-pressed") for end in ends.all()]
            assert [place for place, is_pressed in enumerate(pressed) if is_pressed == "true"] == [index]
        page.locator("#attention").get_by_text("Cross", exact=True).tap()
        assert not page.locator("#attention .next").first.is_visible()
        assert "→" not in page.locator("#attention").inner_text()
        edges = page.locator("nav a").evaluate_all("links => links.map(link => link.getBoundingClientRect().right)")
        assert len(edges) == 8
        assert max(edges) <= 360


# The right edge of what a section shows; a paragraph is shown by its text.
RIGHT_EDGES = """sections => sections.map(section => Math.max(...[...section.querySelectorAll(
    "p, table, canvas, svg, .chip, button, summary")].filter(node => node.checkVisibility()).map(node => {
  const range = document.createRange();
  range.selectNodeContents(node);
  return (node.matches("p") ? range : node).getBoundingClientRect().right;
})))"""


@needs_browser
def test_a_wide_page_uses_its_width(page: Page) -> None:
    edges = page.locator("main > section").evaluate_all(RIGHT_EDGES)
    left, width = page.evaluate(
        "(box => [box.left, box.width])(document.querySelector('main').getBoundingClientRect())"
    )
    assert [edge > left + 0.85 * width for edge in edges] == [True] * 8, edges


@needs_browser
def test_a_page_says_what_it_had_to_leave_out(
    large: dict[str, Any], tmp_path: Path, opener: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "page.html"
    monkeypatch.setattr(page_module, "_LEVELS", page_module._LEVELS[-1:])
    path.write_text(render_page(large), encoding="utf-8")
    with opener(path) as page:
        page.wait_for_selector("#what-if")
        assert "it has their mean only" in page.locator("#attention").inner_text()
        assert page.locator(".head-grid input").count() == 1
        assert "would make the page larger than 2 MB" in page.locator("#matrices").inner_text()


# What the page shows


@needs_browser
def test_tokens_and_ids_are_shown_and_uncertainty_is_explained(page: Page, trace: dict[str, Any]) -> None:
    chips = page.locator("#tokens .strip").first.locator(".chip")
    assert [chip.split("\n")[-1] for chip in chips.all_inner_texts()] == [
        str(t["id"]) for t in trace["source"]["tokens"]
    ]
    buttons = page.locator("#tokens button.chip")
    buttons.first.focus()
    page.keyboard.press("ArrowRight")
    step = trace["steps"][1]
    detail = page.locator("#tokens .detail").inner_text()
    assert "Step 2" in detail
    assert f"Entropy {step['entropy_bits']:.2f} bits" in detail
    hesitant = [step["instead"] is not None for step in trace["steps"]]
    assert [button.get_attribute("data-close") is not None for button in buttons.all()] == hesitant


@needs_browser
def test_heads_and_tokens_are_selected_with_the_mouse(page: Page, trace: dict[str, Any]) -> None:
    attention = page.locator("#attention")
    attention.get_by_text("Cross", exact=True).click()
    page.locator('#attention label[title="Layer 1, head 2"]').click()
    weights = weights_of(trace, "cross", 1)[1]
    attention.locator(".end.query").nth(3).hover()
    shown = attention.locator(".end.key .weight").all_inner_texts()
    assert [number(text or "0") for text in shown] == pytest.approx(list(weights[3]), abs=0.0051)
    attention.locator(".end.key").nth(1).hover()
    shown = attention.locator(".end.query .weight").all_inner_texts()
    assert [number(text or "0") for text in shown] == pytest.approx(list(weights[:, 1]), abs=0.0051)
    n_shown = (weights[:, 1].round(4) >= 0.005).sum()  # rounded as in the page
    assert attention.locator(".wires path:not(.faded)").count() == n_shown
    attention.locator(".end.query").nth(2).click()  # stays selected when the mouse leaves and the head changes
    page.locator('#attention label[title="Layer 1, head 1"]').click()
    page.mouse.move(0, 0)
    assert attention.locator(".end.query").nth(2).get_attribute("aria-pressed") == "true"
    n_shown = (weights_of(trace, "cross", 1)[0, 2].round(4) >= 0.005).sum()
    assert attention.locator(".wires path:not(.faded)").count() == n_shown
    attention.locator(".end.query").nth(2).click()
    page.mouse.move(0, 0)


@needs_browser
def test_heads_and_tokens_are_selected_with_the_keyboard(page: Page, trace: dict[str, Any]) -> None:
    attention = page.locator("#attention")
    attention.get_by_label("Encoder", exact=True).focus()
    page.keyboard.press("Space")
    attention.get_by_role("radio", name="Layer 1, mean of the heads").focus()
    page.keyboard.press("ArrowRight")
    assert attention.locator("h3").inner_text() == "Layer 1, head 1"
    weights = weights_of(trace, "encoder", 1)[0]
    attention.locator(".end.query").first.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowUp"):  # to the keys' column, one token up
        page.keyboard.press(key)
    shown = attention.locator(".end.query .weight").all_inner_texts()
    assert [number(text or "0") for text in shown] == pytest.approx(list(weights[:, 1]), abs=0.0051)
    for event in ("pointerenter", "pointerleave"):  # another token scrolls under the mouse, and away from it
        attention.locator(".end.query").first.dispatch_event(event)
        assert attention.locator(".end.query .weight").all_inner_texts() == shown
    attention.locator(".heat .field").focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    tokens = [token["text"].removeprefix("▁") or "▁" for token in trace["source"]["tokens"]]
    row, column, value = attention.locator(".heat .readout").inner_text().split(" · ")
    assert [row, column] == [tokens[1], tokens[2]]
    assert number(value) == pytest.approx(weights[1, 2], abs=1e-4)


@needs_browser
def test_decoding_goes_step_by_step_until_the_end(page: Page, trace: dict[str, Any]) -> None:
    decoding = page.locator("#decoding")
    decoding.get_by_role("button", name="Next").click()
    decoding.locator(".stepper").focus()
    page.keyboard.press("ArrowRight")
    step = trace["steps"][2]
    assert "Step 3 of" in decoding.inner_text()
    read = decoding.locator(".part").nth(1).locator(".chip:not(.new)").all_inner_texts()
    assert read == decoder_input(trace)[:3]
    rows = [row.split("\t") for row in decoding.locator("tbody tr").all_inner_texts()]
    assert [int(row[0]) for row in rows] == [candidate["rank"] for candidate in step["candidates"]]
    assert [number(row[-1]) for row in rows] == pytest.approx([c["log_prob"] for c in step["candidates"]], abs=1e-3)
    assert [row.get_attribute("class") == "chosen" for row in decoding.locator("tbody tr").all()] == [
        place == step["chosen"] for place in range(len(rows))
    ]
    decoding.locator(".stepper").focus()
    page.keyboard.press("End")
    assert decoding.locator(".chip.new").inner_text() == "</s>"
    assert decoding.get_by_role("button", name="Next").is_disabled()


@needs_browser
def test_an_unlikely_end_is_not_explained_by_what_follows_it(page: Page) -> None:
    step = {"candidates": [{"token": {"text": "</s>", "kind": "special"}, "rank": 2, "forced": False}], "chosen": 0}
    said = page.evaluate("step => note(step).textContent", step)
    assert "what followed" not in said
    assert "</s> has rank 2 here" in said


@needs_browser
def test_the_tree_contains_every_candidate_and_the_arithmetic_of_the_finished(
    page: Page, trace: dict[str, Any]
) -> None:
    search = page.locator("#search")
    nodes, finished = trace["tree"]["nodes"], trace["tree"]["finished"]
    assert search.locator("g.node").count() == len(nodes)
    for fate in ("expanded", "finished", "pruned"):
        assert search.locator(f"g.node.{fate}").count() == sum(node["fate"] == fate for node in nodes)
    first, below = sorted((node for node in nodes if node["step"] == 4), key=lambda node: node["rank"])[:2]
    search.locator("g.node").nth(first["id"]).focus()
    page.keyboard.press("ArrowDown")
    assert search.locator(".detail .chip").all_inner_texts()[-1] == below["token"]["text"]
    detail = search.locator(".detail p").inner_text()
    assert detail.startswith("Step 4, rank 2: ")
    assert number(re.split(r"= |\. ", detail)[1]) == pytest.approx(below["total"], abs=1e-4)
    page.keyboard.press("ArrowLeft")
    path = search.locator(".detail .chip").all_inner_texts()
    assert path[-1] == nodes[below["parent"]]["token"]["text"]
    other = search.locator("g.node").nth(first["id"])
    other.dispatch_event("pointerenter")  # it scrolls under the mouse
    assert search.locator(".detail .chip").all_inner_texts() == path
    other.hover()
    assert search.locator(".detail .chip").all_inner_texts()[-1] == first["token"]["text"]
    for row, expected in zip(search.locator("tbody tr").all(), finished, strict=True):
        cells = row.locator("td").all_text_contents()
        assert int(cells[2]) == expected["length"]
        assert number(cells[4].split(" = ")[1]) == pytest.approx(expected["penalty"], abs=1e-4)
        assert number(cells[5].split(" = ")[1]) == pytest.approx(expected["score"], abs=1e-4)


@needs_browser
def test_matrices_show_the_numbers_of_every_head(page: Page, trace: dict[str, Any]) -> None:
    blocks = {(block["stack"], block["layer"], block["sublayer"], block["name"]): block for block in trace["matrices"]}
    page.locator("#matrices").get_by_role("button", name="Decoder layer 1").click()
    panel = page.locator("#matrices details[open]")
    attention = panel.locator(".sublayer").first
    attention.locator("fieldset").get_by_text("2", exact=True).click()
    for name in ("masked scores", "Q"):  # the former may be wide, and then a picture first
        card = attention.get_by_role("group", name=name, exact=True)
        toggle = card.get_by_role("button", name="Numbers")
        toggle.click() if toggle.is_visible() else None
        cells = card.locator("td.number").all_inner_texts()
        expected = blocks["decoder", 1, "self_attention", name]["values"][1]
        flat = [-np.inf if value is None else value for row in expected for value in row]
        assert [number(cell) for cell in cells] == pytest.approx(flat, abs=1e-4)
    residual = attention.get_by_role("group", name="residual", exact=True)
    residual.locator(".field").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    expected = blocks["decoder", 1, "self_attention", "residual"]["values"][1][1]
    assert number(residual.locator("output").inner_text().split(" · ")[2]) == pytest.approx(expected, abs=1e-4)
    mask = attention.get_by_role("group", name="mask", exact=True)
    mask.locator(".field").focus()
    assert "may attend" in mask.locator("output").inner_text()
    page.keyboard.press("ArrowRight")
    assert "masked" in mask.locator("output").inner_text()
    assert page.locator("#matrices details.layer .card-title").count() == len(
        [block for block in trace["matrices"] if (block["stack"], block["layer"]) == ("decoder", 1)]
    )


@needs_browser
def test_what_if_shows_prefix_missing_words_changes_and_checkpoints(
    page: Page, command: tuple[Path, dict[str, Any]], trace: dict[str, Any]
) -> None:
    explanation = command[1]
    shown = page.locator("#what-if")
    assert [text for text in (answer["message"] for answer in trace["why_not"]) if text not in shown.inner_text()] == []
    steps = [step for answer in trace["why_not"] for step in answer["steps"]]
    rows = [row.inner_text().split("\t") for row in shown.locator("table:has(th:text('differs')) tbody tr").all()]
    expected = [[str(step["step"]), step["token"]["text"], str(step["rank"])] for step in steps]
    assert [row[:3] for row in rows] == expected
    assert not re.search(r"(?<![\w-])-\d", shown.inner_text())  # minus signs are −
    changes = page.evaluate("changesOf(pageData.traces)")
    assert [changes[side] for side in ("source", "target")] == [
        explanation["changes"][side] for side in ("source", "target")
    ]
    differences = [
        {(c["kind"], c["layer"], c["head"]): c["difference"] for c in each["attention"]}
        for each in (changes, explanation["changes"])
    ]
    assert differences[0] == pytest.approx(differences[1], abs=1e-4)
    largest = explanation["changes"]["attention"][0]
    name = f"{largest['kind'].capitalize()} layer {largest['layer']}, head {largest['head']}: "
    assert name + f"{largest['difference']:.3f}" in shown.inner_text()
    removed = [op for op in explanation["changes"]["source"] if op[0] in ("replace", "delete")]
    assert shown.locator(".pair").first.locator(".chip.removed").count() >= sum(op[2] - op[1] for op in removed) > 0
    first, second = (weights_of(t, largest["kind"], largest["layer"]) for t in explanation["traces"])
    shown.locator(".triple .field").last.focus()  # the tokens at the start, which both sentences share
    readout = shown.locator(".triple output").last.inner_text()
    head = largest["head"] - 1
    assert number(readout.split(" · ")[2]) == pytest.approx(second[head, 0, 0] - first[head, 0, 0], abs=2e-4)
    slider = shown.get_by_label("checkpoint", exact=True)
    slider.focus()
    page.keyboard.press("Home")
    page.wait_for_function("document.querySelector('.checkpoints tr.chosen').rowIndex === 1")
    assert explanation["checkpoints"][0]["text"] in (shown.locator(".checkpoints tr.chosen").text_content() or "")
    page.get_by_text(OTHER, exact=True).click()  # the other sentence in all sections
    page.wait_for_function("text => document.querySelector('h1').textContent === text", arg=OTHER)
    assert page.locator(".translation").inner_text() == explanation["traces"][1]["target"]["text"]


# In a notebook


@needs_browser
def test_a_trace_shows_itself_in_a_notebook_and_leaves_its_styles_alone(
    trained: Project, tmp_path: Path, opener: Opener
) -> None:
    trace = Translator.load(trained.folder / "runs/config").explain(HOSTILE, prefix="das")
    assert isinstance(trace, NotebookTrace)
    assert "explanation" not in trace.to_dict()
    path = tmp_path / "notebook.html"
    path.write_text(f"<!doctype html><h1>Notebook</h1>{trace._repr_html_()}", encoding="utf-8")
    with opener(path) as page:
        frame = page.frame_locator("iframe")
        frame.locator("#what-if").wait_for()
        assert frame.locator("h1").inner_text() == HOSTILE
        assert frame.locator(".translation").inner_text() == trace.target.text
        frame.get_by_role("link", name="Matrices").click()
        assert page.locator("h1").evaluate("node => getComputedStyle(node).fontSize") == "32px"  # the browser's own


# Size


def kept_columns(page: str) -> int:
    data = json.loads(page.split("const pageData = ")[1].split(";</script>")[0])
    kept = [b["values"]["shape"][-1] for b in data["traces"][0]["matrices"] if b["columns"] == "features"]
    return max(kept, default=0)


def test_a_page_that_would_be_too_large_keeps_the_first_columns(large: dict[str, Any]) -> None:
    page = render_page(large)
    assert len(page.encode()) <= MAX_PAGE_BYTES
    assert kept_columns(page) == 64


def test_matrices_and_then_heads_give_way_until_nothing_is_left(
    large: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = len(render_page(large).encode())
    found = []
    for limit in (whole // 2, whole // 4, 0):
        monkeypatch.setattr(page_module, "MAX_PAGE_BYTES", limit)
        if limit == 0:
            with pytest.raises(UserError, match="the sentence is too long"):
                render_page(large)
        else:
            page = render_page(large)
            assert len(page.encode()) <= limit
            found.append(kept_columns(page))
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("name", ["model.safetensors", "checkpoints/*/state.json", "checkpoints/*/tensors.*"])
def test_the_page_is_not_written_over_the_model_or_a_checkpoint(trained: Project, name: str) -> None:
    file = min((trained.folder / "runs/config").glob(name))
    before = file.read_bytes()
    result = trained.mtformer("explain", SENTENCE, "--checkpoints", "--output", file)
    assert result.status == 2
    assert "both input and output" in result.stderr or "which is an input" in result.stderr
    assert file.read_bytes() == before
