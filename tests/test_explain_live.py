"""What the model in a lesson computes, in a headless browser, against what torch computes."""

import base64
import json
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest
import torch
from browser import Opener, needs_browser
from conftest import Project
from playwright.sync_api import Page, expect
from test_explain_page import HOSTILE, KEPT, LATIN
from test_layers import randomize
from test_slot_translation import LISTS, make_slot_tokenizer
from torch import Tensor, nn

from mtformer.browser.pack import pack
from mtformer.bundle.format import Bundle, load_bundle
from mtformer.engines.torch import TorchEngine
from mtformer.explain.live import WORKER_ASSETS, describe_lesson
from mtformer.explain.record import Explainer
from mtformer.model.attention import MultiHeadAttention, attention_weights
from mtformer.model.positions import NoPositions
from mtformer.model.transformer import Transformer
from mtformer.search.engine import SearchRequest
from mtformer.search.hypothesis import Hypothesis
from mtformer.support.page import assemble
from mtformer.text.slots import SLOTS
from mtformer.text.tokenizer.tokenizer import CONTEXT, PrefixIds
from mtformer.translate.insertion import plan_with_tokens
from mtformer.translate.plan import run
from mtformer.translate.translator import Translator

SENTENCES = ["the red house sees a small dog.", "my old friend € needs her new garden 你"]
VARIANTS: dict[str, dict[str, Any]] = {
    "trained": {},
    "post-norm, learned": {"norm": "post", "positions": "learned", "activation": "gelu"},
    "rotary": {"positions": "rotary", "activation": "silu"},
    "imported": {"embedding_norm": True, "output_bias": True, "positions": "marian", "norm": "post"},
    "no positions": {"positions": "none", "n_encoder_layers": 1, "n_decoder_layers": 3},
}
_IN_PAGE = """
async function tracesOf([name, requests]) {
  const { header, data, lesson } = pageData[name];
  const buffer = Uint8Array.from(atob(data), (character) => character.charCodeAt(0)).buffer;
  const translator = new TextTranslator(header, await makeKernels(header.tensors, buffer));
  const traces = requests.map((request) => {
    const task = TASKS.explain(translator, { lesson, request });
    let step;
    do step = task.next();
    while (!step.done);
    return plain(step.value);
  });
  return JSON.stringify(traces); // Playwright takes far longer for each number
}
async function inserted([name, text]) {
  const { header, data } = pageData[name];
  const buffer = Uint8Array.from(atob(data), (character) => character.charCodeAt(0)).buffer;
  const translator = new TextTranslator(header, await makeKernels(header.tensors, buffer));
  const planner = translator.plannerOf({});
  const leaf = planner.leaf(text);
  const task = translator.insert(leaf.requests[0], ...planner.slotIds(leaf), () => true);
  let step;
  do step = task.next();
  while (!step.done);
  return step.value.ids;
}
async function translatedCopying([name, texts, slots]) { // all but slots after the third
  const { header, data } = pageData[name];
  const buffer = Uint8Array.from(atob(data), (character) => character.charCodeAt(0)).buffer;
  const translator = new TextTranslator(header, await makeKernels(header.tensors, buffer));
  const { tgt } = translator.plannerOf({}).tokenizer;
  translator.searchAll = function* ({ ids: source }) {
    const kept = source.filter((id) => slots.includes(id)).slice(0, 3);
    const ids = source.slice(0, -1).filter((id) => !slots.includes(id) || kept.includes(id));
    const alignment = ids.map((id) => Float32Array.from(source, (each) => (each === id ? 1 : 0)));
    return [{ ids, score: -1, logProbs: Array(ids.length + 1).fill(-0.1), alignment }];
  };
  return texts.map((text) => {
    const task = translator.translate(text, {});
    let step;
    do step = task.next();
    while (!step.done);
    return [step.value.text, step.value.notes];
  });
}
function plain(value) {
  if (ArrayBuffer.isView(value)) return Array.from(value, (each) => (each === -Infinity ? null : plain(each)));
  if (typeof value === "number" && !Number.isFinite(value)) return String(value);
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, plain(each)]));
}
"""


@pytest.fixture(scope="module")
def bundles(trained: Project) -> dict[str, Bundle]:
    """The trained model, and models of other architectures with its tokenizer."""
    trained_bundle = load_bundle(trained.folder / "runs/config/model.safetensors")
    made = {"trained": trained_bundle}
    for number, (name, changes) in enumerate(VARIANTS.items()):
        if changes:
            torch.manual_seed(number)
            architecture = trained_bundle.header.architecture.model_copy(update=changes)
            model = Transformer(architecture).eval()
            randomize(model)
            search = trained_bundle.header.search.model_copy(update={"max_length_factor": 1.0, "max_length_offset": 1})
            header = trained_bundle.header.model_copy(update={"architecture": architecture, "search": search})
            made[name] = replace(trained_bundle, model=model, header=header)
    tagged = trained_bundle.tokenizer.with_prefixes(PrefixIds((5,), (6, 7)))
    made["tags"] = replace(made["rotary"], tokenizer=tagged)
    made["slots"] = with_slots(made["rotary"])
    made["context"] = with_slots(made["trained"], [CONTEXT])
    return made


def with_slots(bundle: Bundle, control_symbols: Sequence[str] = ()) -> Bundle:
    """Give a bundle a tokenizer with slots, and a model of its size."""
    tokenizer = make_slot_tokenizer(control_symbols)
    sizes = {"src_vocab_size": tokenizer.src_vocab_size, "tgt_vocab_size": tokenizer.tgt_vocab_size}
    architecture = bundle.header.architecture.model_copy(update=sizes)
    torch.manual_seed(7)
    model = Transformer(architecture).eval()
    randomize(model)
    header = bundle.header.model_copy(update={"architecture": architecture})
    return replace(bundle, model=model, header=header, tokenizer=tokenizer)


def explainer_of(bundle: Bundle, **options: Any) -> Explainer:
    search = bundle.header.search.to_config().updated(**options)
    length = bundle.header.architecture.max_length
    planner = partial(Translator, src_lang="en", tgt_lang="de", max_length=length, slots=bundle.tokenizer.has_slots)
    return planner(TorchEngine(bundle.model), bundle.tokenizer, search).explainer()


@pytest.fixture(scope="module")
def page(bundles: dict[str, Bundle], opener: Opener, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A page with all models in float32."""
    data = {}
    for name, bundle in bundles.items():
        packed = pack(bundle, quantization="float32")
        weights = base64.b64encode(packed.data).decode()
        data[name] = {"header": packed.header, "data": weights, "lesson": describe_lesson(bundle)}
    path = tmp_path_factory.mktemp("lessons") / "page.html"
    body = assemble("lessons", "", data=data, assets=WORKER_ASSETS, computes=True)
    path.write_text(body.replace("</body>", f"<script>{_IN_PAGE}</script></body>"), encoding="utf-8")
    with opener(path) as page:
        yield page


def trace_in(page: Page, name: str, text: str, **request: Any) -> dict[str, Any]:
    search = {"beam_size": 4, "length_penalty": 1.0} | request.pop("search", {})
    found: list[dict[str, Any]]
    found = json.loads(page.evaluate("tracesOf", [name, [{"text": text, "search": search, **request}]]))
    return found[0]


def numbers(packed: Any) -> np.ndarray:
    """Return the numbers of an array, as a page has them or as JSON has them."""
    if isinstance(packed, dict):
        return np.array(packed["values"], dtype=float).reshape(packed["shape"])
    return np.array(packed, dtype=float)


def assert_same(ours: Any, theirs: Any, place: str = "trace") -> None:
    """Compare two traces: texts, structure, and numbers to within 1e-4."""
    if isinstance(ours, dict) and set(ours) == {"shape", "values"}:
        np.testing.assert_allclose(numbers(ours), numbers(theirs), rtol=1e-4, atol=1e-4, err_msg=place)
    elif isinstance(ours, dict):
        assert ours.keys() == theirs.keys(), place
        for key, value in ours.items():
            assert_same(value, theirs[key], f"{place}.{key}")
    elif isinstance(ours, list):
        assert len(ours) == len(theirs), place
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            assert_same(a, b, f"{place}[{i}]")
    elif isinstance(ours, float) and theirs is not None:
        assert ours == pytest.approx(theirs, rel=1e-4, abs=1e-4), place
    else:
        assert ours == theirs, place


@needs_browser
@pytest.mark.parametrize("name", [*VARIANTS, "tags"])
@pytest.mark.parametrize(("beam_size", "text"), [(1, SENTENCES[0]), (3, SENTENCES[1])], ids=("greedy", "beam"))
def test_a_page_records_the_trace_that_torch_records(
    bundles: dict[str, Bundle], page: Page, name: str, beam_size: int, text: str
) -> None:
    explainer = explainer_of(bundles[name], beam_size=beam_size)
    assert_same(trace_in(page, name, text, search={"beam_size": beam_size}), explainer.trace(text).to_dict())


@needs_browser
def test_slots_are_spelled_in_a_page_as_in_torch(bundles: dict[str, Bundle], page: Page) -> None:
    explainer, text = explainer_of(bundles["slots"], beam_size=2), "pay 1,250.5 to a_b@c.de"
    trace = explainer.trace(text)
    assert {"⟨1,250.5⟩", "⟨a_b@c.de⟩"} < {token.text for token in trace.source.tokens}
    assert_same(trace_in(page, "slots", text, search={"beam_size": 2}), trace.to_dict())


@needs_browser
@pytest.mark.parametrize("text", ["So it is. Pay 12! It is a 7.", "It is.", "I pay 7. It is."])
def test_a_page_reads_the_sentence_before_as_torch_does(bundles: dict[str, Bundle], page: Page, text: str) -> None:
    trace = explainer_of(bundles["context"], beam_size=2).trace(text)
    n_contexts = [token.text for token in trace.source.tokens].count(CONTEXT)
    assert n_contexts == (text != "It is.")
    assert_same(trace_in(page, "context", text, search={"beam_size": 2}), trace.to_dict())


@needs_browser
def test_a_page_inserts_the_slots_that_a_translation_lacks_as_torch_does(
    bundles: dict[str, Bundle], page: Page
) -> None:
    bundle, text = bundles["slots"], "pay 12 to a_b@c.de"
    explainer = explainer_of(bundle)
    slotted = explainer.with_slots(text)
    assert slotted is not None
    src = explainer.spelling(text).encode_src()
    needed, [space] = map(bundle.tokenizer.tgt.ids, (list(slotted.fillings), ["▁"]))
    request = SearchRequest(src, explainer.options, explainer.options.limit(len(src)))
    [found] = run([plan_with_tokens(request, needed, space, has_spaces=True, fits=lambda _ids: True)], explainer.engine)
    assert isinstance(found, Hypothesis)
    assert set(needed) < set(found.ids)
    assert page.evaluate("inserted", ["slots", text]) == found.ids


@needs_browser
def test_a_page_translates_alone_what_stands_between_commas(bundles: dict[str, Bundle], page: Page) -> None:
    slots = bundles["slots"].tokenizer.tgt.ids(SLOTS)
    found = page.evaluate("translatedCopying", ["slots", [text for text, _, _ in LISTS], slots])
    assert found == [[expected, [f"translated in {n_parts} parts"]] for _, expected, n_parts in LISTS]


# Parts switched off


@contextmanager
def switched(model: Transformer, switches: dict[str, Any]) -> Iterator[Transformer]:
    """Give a copy of a model without the parts that are switched off, with the tap of attention where possible."""
    model = deepcopy(model)
    for name in switches.get("heads", []):
        kind, layer, head = name.split(".")
        stack = model.encoder_layers if kind == "encoder" else model.decoder_layers
        whole: Any = stack[int(layer) - 1]
        attention = whole.cross_attention if kind == "cross" else whole.self_attention
        attention.observer = partial(silence, head=int(head) - 1)
    for name in switches.get("layers", []):
        stack, layer = name.split(".")
        kept = [each for i, each in enumerate(getattr(model, f"{stack}_layers"), 1) if i != int(layer)]
        setattr(model, f"{stack}_layers", nn.ModuleList(kept))
    attentions = [module for module in model.modules() if isinstance(module, MultiHeadAttention)]
    if not switches.get("positions", True):
        model.src_positions = model.tgt_positions = NoPositions(d_model=model.d_model, n_positions=1)
        for attention in attentions:
            attention.rotary = False
    with pytest.MonkeyPatch.context() as patch:
        if not switches.get("scale", True):
            for attention in attentions:
                attention.observer = attention.observer or (lambda _: None)  # so that the weights are computed below
            unscaled = lambda q, k, mask: attention_weights(q * math.sqrt(q.size(-1)), k, mask)  # noqa: E731
            patch.setattr("mtformer.model.attention.attention_weights", unscaled)
        if not switches.get("causal", True):
            for attention in (module for name, module in model.named_modules() if is_causal(name)):
                attend: Any = attention.attend
                patch.setattr(attention, "attend", lambda *heads, attend=attend, **_: attend(*heads))
        yield model


def is_causal(name: str) -> bool:
    return name.startswith("decoder_layers") and name.endswith("self_attention")


def silence(weights: Tensor, *, head: int) -> None:
    weights[:, head] = 0


@needs_browser
@pytest.mark.parametrize(
    "switches",
    [
        {"heads": ["encoder.1.2", "cross.1.1"]},
        {"heads": ["decoder.1.1"], "layers": ["encoder.1"]},
        {"layers": ["decoder.1"]},
        {"scale": False},
        {"positions": False},
        {"causal": False},
        {"padding": False},
        {"temperature": 2, "causal": False, "scale": False},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["post-norm, learned", "rotary"])
@torch.inference_mode()
def test_a_model_without_some_parts_computes_what_torch_computes_without_them(
    bundles: dict[str, Bundle], page: Page, name: str, switches: dict[str, Any]
) -> None:
    n_padding = 3
    trace = trace_in(page, name, SENTENCES[0], search={"beam_size": 1}, switches=switches, nPadding=n_padding)
    src = torch.tensor([[token["id"] for token in trace["source"]["tokens"]]])
    mask = torch.arange(src.size(1))[None] < src.size(1) - n_padding * switches.get("padding", True)
    tgt_in = torch.tensor([[trace["bos"]["id"], *(token["id"] for token in trace["target"]["tokens"][:-1])]])
    with switched(bundles[name].model, switches) as model:
        logits = model.project(model(src, mask, tgt_in))[0]  # (T, V)
    *_, block, probabilities = trace["matrices"]
    ids = torch.tensor([[candidate["token"]["id"] for candidate in step["candidates"]] for step in trace["steps"]])
    np.testing.assert_allclose(numbers(block["values"]), logits.gather(1, ids), rtol=1e-4, atol=1e-4)
    expected = (logits / switches.get("temperature", 1)).softmax(dim=-1).gather(1, ids)
    np.testing.assert_allclose(numbers(probabilities["values"]), expected, atol=1e-5)
    ranks = {step["candidates"][step["chosen"]]["rank"] for step in trace["steps"][:-1]}
    assert ranks == {1}  # greedy search decodes with the same parts


@needs_browser
def test_padding_is_masked_and_shows_in_every_matrix(bundles: dict[str, Bundle], page: Page) -> None:
    plain = trace_in(page, "trained", SENTENCES[0])
    padded = trace_in(page, "trained", SENTENCES[0], nPadding=2)
    assert [token["text"] for token in padded["source"]["tokens"][-2:]] == ["<pad>", "<pad>"]
    assert_same(padded["steps"], plain["steps"])
    masks = [block for block in padded["matrices"] if block["name"] == "mask" and block["side"] == "source"]
    assert masks
    for block in masks:
        assert numbers(block["values"]).tolist() == [[1] * (block["shape"][1] - 2) + [0, 0]] * block["shape"][0]


@needs_browser
def test_a_forced_token_is_chosen_and_the_rest_follows(bundles: dict[str, Bundle], page: Page) -> None:
    explainer = explainer_of(bundles["trained"])
    prefix = explainer.tokenizer.encode_tgt(["ein kleiner"])[0][:-1]
    trace = trace_in(page, "trained", SENTENCES[0], prefix=prefix)
    assert_same(trace, explainer.trace(SENTENCES[0], prefix="ein kleiner").to_dict())


# The page


@pytest.fixture(scope="module")
def lesson_path(trained: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lesson") / "lesson.html"
    result = trained.mtformer("explain", SENTENCES[0], "--output", path)
    assert (result.status, result.stdout) == (0, f"{path}\n")
    return path


@pytest.fixture
def lesson(lesson_path: Path, opener: Opener) -> Iterator[Page]:
    with opener(lesson_path) as page:
        settled(page)
        yield page


def settled(page: Page) -> None:
    page.wait_for_selector("main[aria-busy=false]")


def type_sentence(page: Page, text: str, label: str = "Sentence") -> None:
    page.get_by_label(label, exact=True).fill(text)
    settled(page)


def translation_of(page: Page) -> Any:
    return page.locator("aside .translation")


@needs_browser
def test_every_view_follows_what_is_typed(lesson: Page, bundles: dict[str, Bundle]) -> None:
    explainer = explainer_of(bundles["trained"])
    for text in (SENTENCES[1], "every good book finds <b>her</b> new garden."):
        type_sentence(lesson, text)
        trace = explainer.trace(text)
        tokens = [token.text for token in trace.source.tokens]
        assert translation_of(lesson).inner_text() == trace.target.text
        chips = lesson.locator("#tokens .strip").first.locator(".token")
        assert chips.count() == len(tokens)
        assert lesson.locator("#attention .end.key").count() == len(tokens)
        assert lesson.locator("#search .node.finished").count() > 0
        assert f"of {len(trace.target.tokens)}" in lesson.locator("#decoding .count").inner_text()
    lesson.get_by_label("Sentence", exact=True).fill(" ")
    lesson.get_by_text("Type a sentence.").wait_for()
    assert translation_of(lesson).inner_text() == ""


@needs_browser
def test_a_sentence_that_is_too_long_has_no_translation(lesson: Page) -> None:
    long = " ".join(["dog"] * 300)
    type_sentence(lesson, long, "Compare with a second sentence")
    assert lesson.locator(".status").inner_text().startswith("The second sentence has")
    assert translation_of(lesson).inner_text() != ""
    type_sentence(lesson, long)
    assert lesson.locator(".status").inner_text().startswith("This sentence has")
    assert translation_of(lesson).inner_text() == ""


@needs_browser
def test_what_a_lesson_says_fits_what_is_switched_off(lesson: Page) -> None:
    lesson.locator("#attention").get_by_text("Decoder", exact=True).click()
    assert "later ones are masked" in lesson.locator("#attention").inner_text()
    for label in ("Causal mask", "Positions", "Encoder layer 1"):
        lesson.get_by_label(label, exact=True).uncheck()
        settled(lesson)
    assert "later ones are masked" not in lesson.locator("#attention").inner_text()
    assert "later ones too" in lesson.locator("#attention").inner_text()
    captions = lesson.locator("#flow .flow-caption")
    assert captions.inner_text() == "Each token of the source becomes a vector: its embedding."
    lesson.locator("#flow").get_by_role("button", name="Next").click()
    assert captions.inner_text() == "Encoder layer 1 is switched off: the vectors pass it unchanged."


@needs_browser
def test_sentences_are_compared_without_any_layer(lesson: Page) -> None:
    type_sentence(lesson, SENTENCES[1], "Compare with a second sentence")
    layers = lesson.get_by_label(re.compile("^(En|De)coder layer [0-9]+$"))
    for number in range(layers.count()):
        layers.nth(number).uncheck()
        settled(lesson)
    assert lesson.locator(".status").inner_text() == ""
    assert lesson.locator("#what-if .pair").count() == 1


@pytest.mark.slow
@needs_browser
def test_switches_change_the_translation_and_a_link_restores_everything(
    lesson: Page, lesson_path: Path, opener: Opener
) -> None:
    type_sentence(lesson, SENTENCES[1])
    whole = translation_of(lesson).inner_text()
    lesson.get_by_label("Cross: Layer 1, head 2").click()
    embedding = lesson.locator("#matrices .map-part.embedding .muted").first
    assert embedding.inner_text() == "vectors and positions"
    lesson.get_by_label("Positions").uncheck()
    settled(lesson)
    assert embedding.inner_text() == "vectors"
    lesson.get_by_label("Beam size").fill("0")
    settled(lesson)
    altered = translation_of(lesson).inner_text()
    assert f"Without your changes: {whole}" in lesson.locator("aside").inner_text().replace("“", "").replace("”", "")
    lesson.locator("#attention").get_by_text("Cross", exact=True).click()
    assert lesson.locator("#attention label.off").count() == 1
    lesson.locator("#decoding").get_by_role("button", name="Next").click()
    lesson.get_by_role("button", name="Copy link").click()
    with opener(lesson_path.as_uri() + "#" + lesson.url.split("#")[1]) as copy:
        copy.wait_for_selector("#matrices")
        assert copy.get_by_label("Sentence", exact=True).input_value() == SENTENCES[1]
        assert translation_of(copy).inner_text() == altered
        assert not copy.get_by_label("Positions").is_checked()
        assert not copy.get_by_label("Cross: Layer 1, head 2").is_checked()
        assert copy.locator("#attention").get_by_label("Cross", exact=True).is_checked()
        assert copy.locator("#decoding .count").inner_text().startswith("Step 2 of")
        copy.get_by_role("button", name="Reset").click()
        expect(translation_of(copy)).to_have_text(whole)


@needs_browser
def test_a_hostile_link_is_shown_as_text(lesson_path: Path, opener: Opener) -> None:
    values = {
        "text": HOSTILE,
        "off": "cross.9.9 __proto__ encoder.1.1.1 toString",
        "kind": "constructor",
        "heads": "99.99 1.mean",
        "force": "1e9.-1",
        "pin": "query.999",
        "beam": "999",
        "temperature": "NaN",
        "step": "-1",
        "section": HOSTILE,
    }
    with opener(f"{lesson_path.as_uri()}#{urlencode(values)}") as page:
        page.wait_for_selector("#matrices")
        assert page.get_by_label("Sentence", exact=True).input_value() == HOSTILE
        assert page.locator("img").count() == 0
        assert page.locator("aside input[type=checkbox]:not(:checked)").count() == 0


@needs_browser
def test_what_a_link_counts_from_zero_is_ignored(lesson_path: Path, opener: Opener) -> None:
    """Layers, heads and tokens count from 1."""
    values = {"text": SENTENCES[0], "pin": "query.0", "heads": "1.0 0.1", "off": "encoder.0 cross.1.0"}
    with opener(f"{lesson_path.as_uri()}#{urlencode(values)}") as page:
        page.wait_for_selector("#matrices")
        assert page.locator(".status").inner_text() == ""
        assert "Without your changes" not in page.locator("aside").inner_text()
        assert "NaN" not in page.locator("#attention .end").first.inner_text()
        assert page.locator("#attention .heads input:checked").count() == 1


@needs_browser
def test_a_token_is_forced_and_released_by_its_button(lesson: Page) -> None:
    before = translation_of(lesson).inner_text()
    row = lesson.locator("#decoding tbody tr").nth(1)
    token = row.locator(".token").inner_text().replace("▁", "").strip()
    row.get_by_role("button").click()
    lesson.locator("aside .forced .chip").wait_for()
    settled(lesson)
    assert translation_of(lesson).inner_text().startswith(token)
    assert "How much the model disliked" in lesson.locator("#what-if").inner_text()
    lesson.get_by_role("button", name="Release", exact=True).click()
    expect(translation_of(lesson)).to_have_text(before)


@needs_browser
def test_heads_are_overlaid_in_colours(lesson: Page) -> None:
    attention = lesson.locator("#attention")
    attention.get_by_label("Several heads at once").check()
    assert attention.locator(".stage h4").all_inner_texts() == ["Layer 1, head 1", "Layer 1, head 2"]
    assert (
        len(set(attention.locator(".wires path").evaluate_all("paths => paths.map(p => getComputedStyle(p).stroke)")))
        == 2
    )
    attention.locator(".end.query").nth(1).hover()
    assert attention.locator(".of-head").count() == 2
    attention.get_by_role("button", name="Switch off: Layer 1, head 2").click()
    attention.get_by_role("button", name="Switch on: Layer 1, head 2").wait_for()
    assert not lesson.get_by_label("Encoder: Layer 1, head 2").is_checked()
    attention.locator('label[title="Layer 1, head 2, switched off"]').click()
    assert attention.locator("h3").inner_text() == "Layer 1, head 1"


@needs_browser
def test_the_flow_goes_through_encoder_and_decoder(lesson: Page) -> None:
    flow = lesson.locator("#flow")
    assert "its embedding" in flow.locator(".flow-caption").inner_text()
    flow.locator(".stepper").focus()
    lesson.keyboard.press("ArrowRight")
    assert "Encoder layer 1" in flow.locator(".flow-caption").inner_text()
    moving = flow.locator("path.encoder").first
    assert moving.evaluate("node => getComputedStyle(node).animationName") == "flows"
    lesson.emulate_media(reduced_motion="reduce")
    assert moving.evaluate("node => getComputedStyle(node).animationName") == "none"
    assert flow.locator("circle.done").count() == flow.locator("circle.active").count()
    lesson.keyboard.press("End")
    assert "</s>" in flow.locator(".flow-caption").inner_text()
    assert flow.locator("text.hidden").count() == 0


@needs_browser
def test_a_word_is_followed_into_another_sentence(lesson: Page, bundles: dict[str, Bundle]) -> None:
    other = "a small dog likes every good book."
    type_sentence(lesson, other, "Compare with a second sentence")
    words = lesson.locator("#words")
    words.get_by_text("dog", exact=True).click()
    rows = [row.locator("td").all_inner_texts() for row in words.locator("tbody tr").all()]
    first, last = ([float(text) for text in row] for row in (rows[0], rows[-1]))
    assert first == [1.0, 1.0]
    explainer = explainer_of(bundles["trained"])
    vectors = []
    for text in (SENTENCES[0], other):
        trace = explainer.trace(text)
        [output] = [block.values for block in trace.matrices if block.name == "encoder output"]
        vectors.append(output[[token.text for token in trace.source.tokens].index("▁dog")])
    a, b = (vector / np.linalg.norm(vector) for vector in vectors)
    assert last[1] == pytest.approx(a @ b, abs=0.03)  # the page has weights of 8 bits


@needs_browser
def test_a_chinese_lesson_fits_a_phone_and_says_everything_in_chinese(
    trained: Project, tmp_path: Path, opener: Opener
) -> None:
    path = tmp_path / "lesson.html"
    options = ["--compare", SENTENCES[1], "--prefix", "ein", "--language", "zh"]
    result = trained.mtformer("explain", SENTENCES[0], *options, "--output", path)
    assert result.status == 0, result.stderr
    with opener(path, width=360, height=740, dark=True) as page:
        page.wait_for_selector("#what-if")
        page.evaluate("document.querySelectorAll('details').forEach(panel => (panel.open = true))")
        page.evaluate("lesson.turn({positions: false, scale: false, temperature: 2})")
        settled(page)
        page.wait_for_selector("details.layer .card canvas")
        model = set(re.findall(r"\w+", page.locator("main > p").first.inner_text()))
        for part in ("main", "aside"):
            assert set(page.locator(part).evaluate(LATIN)) - KEPT - model == set()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360


@needs_browser
def test_answers_of_the_command_are_shown_with_its_own_sentence(
    trained: Project, tmp_path: Path, opener: Opener
) -> None:
    path = tmp_path / "lesson.html"
    options = ["--why-not", "Garten", "--checkpoints"]
    result = trained.mtformer("explain", SENTENCES[0], *options, "--output", path, "--format", "json")
    answer = json.loads(result.stdout)["traces"][0]["why_not"][0]["message"]
    with opener(path) as page:
        settled(page)
        assert answer in page.locator("#what-if").inner_text()
        assert page.locator("#what-if .checkpoints tbody tr").count() > 1
        type_sentence(page, SENTENCES[1])
        assert page.locator("#what-if").count() == 0


def test_a_model_too_large_for_a_lesson_gets_a_page_about_the_sentence(
    trained: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mtformer.explain.live.MAX_LESSON_BYTES", 10_000)
    result = trained.mtformer("explain", SENTENCES[0], "--output", tmp_path / "page.html")
    assert result.status == 0
    assert "million parameters: a page with it would take" in result.stderr
    assert "about this sentence only" in result.stderr
    assert 'id="weights"' not in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_fixed_without_a_page_is_refused(trained: Project) -> None:
    result = trained.mtformer("explain", SENTENCES[0], "--fixed")
    assert result.status == 2
    assert "--fixed needs --output, the page to write" in result.stderr
