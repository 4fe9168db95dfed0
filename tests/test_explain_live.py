"""What the model in a lesson computes, in a headless browser, against what torch computes."""

import base64
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from browser import needs_browser, opened
from conftest import Project
from playwright.sync_api import Page
from test_layers import randomize

from mtformer.browser.pack import pack
from mtformer.bundle.format import Bundle, load_bundle
from mtformer.config import SearchConfig
from mtformer.engines.torch import TorchEngine
from mtformer.explain.live import WORKER_ASSETS, describe_lesson
from mtformer.explain.record import Explainer
from mtformer.explain.trace import Trace
from mtformer.model.transformer import Transformer
from mtformer.support.page import assemble

SENTENCES = ["the red house sees a small dog.", "my old friend € needs her new garden 你"]
VARIANTS: dict[str, dict[str, Any]] = {
    "trained": {},
    "post-norm, learned": {"norm": "post", "positions": "learned", "activation": "gelu"},
    "rotary, gated": {"positions": "rotary", "activation": "swiglu", "norm_type": "rmsnorm"},
    "imported": {"embedding_norm": True, "output_bias": True, "positions": "marian", "norm": "post"},
    "no positions": {"positions": "none", "n_encoder_layers": 1, "n_decoder_layers": 3},
}
_IN_PAGE = """
async function tracesOf([name, requests]) {
  const { header, data, lesson } = pageData[name];
  const buffer = Uint8Array.from(atob(data), (character) => character.charCodeAt(0)).buffer;
  const translator = new TextTranslator(header, await makeKernels(header.tensors, buffer));
  return requests.map((request) => {
    const task = TASKS.explain(translator, { lesson, request });
    let step;
    do step = task.next();
    while (!step.done);
    return plain(step.value);
  });
}
function plain(value) {
  if (ArrayBuffer.isView(value)) return Array.from(value, (each) => (each === -Infinity ? null : each));
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
            header = trained_bundle.header.model_copy(update={"architecture": architecture})
            made[name] = replace(trained_bundle, model=model, header=header)
    return made


def explainer_of(bundle: Bundle, **options: Any) -> Explainer:
    search = SearchConfig.model_validate(bundle.header.search.model_dump()).updated(**options)
    length = bundle.header.architecture.max_length
    return Explainer.of(TorchEngine(bundle.model), bundle.tokenizer, search, tgt_lang="de", max_length=length)


@pytest.fixture(scope="module")
def page(bundles: dict[str, Bundle], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A page with all models in float32."""
    data = {}
    for name, bundle in bundles.items():
        packed = pack(bundle, quantization="float32")
        weights = base64.b64encode(packed.data).decode()
        data[name] = {"header": packed.header, "data": weights, "lesson": describe_lesson(bundle)}
    path = tmp_path_factory.mktemp("lessons") / "page.html"
    body = assemble("lessons", "", data=data, assets=WORKER_ASSETS, computes=True)
    path.write_text(body.replace("</body>", f"<script>{_IN_PAGE}</script></body>"), encoding="utf-8")
    with opened(path) as page:
        yield page


def trace_in(page: Page, name: str, text: str, **request: Any) -> dict[str, Any]:
    search = {"beam_size": 4, "length_penalty": 0.6} | request.pop("search", {})
    [trace] = page.evaluate("tracesOf", [name, [{"text": text, "search": search, **request}]])
    found: dict[str, Any] = trace
    return found


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
@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_page_records_the_trace_that_torch_records(
    bundles: dict[str, Bundle], page: Page, name: str, beam_size: int
) -> None:
    explainer = explainer_of(bundles[name], beam_size=beam_size)
    for text in SENTENCES:
        assert_same(trace_in(page, name, text, search={"beam_size": beam_size}), explainer.trace(text).to_dict())
