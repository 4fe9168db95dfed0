"""The Transformer and its search in a web page, in a headless browser, against those of torch."""

import base64
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from browser import needs_browser, opened
from playwright.sync_api import Page
from test_layers import randomize
from test_transformer import SRC, SRC_MASK, TGT_IN, make_model

from mtformer.browser.pack import ENGINE_ASSETS, PackedModel, pack_model
from mtformer.bundle.header import AlignmentHead
from mtformer.config import SearchConfig
from mtformer.engines.torch import TorchEngine
from mtformer.model.architecture import ACTIVATIONS, POSITIONS, Positions
from mtformer.model.transformer import Transformer
from mtformer.search.engine import AlignRequest, SearchRequest, results_of
from mtformer.search.hypothesis import Hypothesis, rank
from mtformer.support.errors import UserError
from mtformer.support.page import assemble
from mtformer.translate.alignment import Weights

VARIANTS: dict[str, dict[str, Any]] = {
    **{name: {"feed_forward": name} for name in ACTIVATIONS},
    **{
        f"{norm}-norm, {name} positions": {"norm": norm, "positions": name}
        for norm in ("pre", "post")
        for name in POSITIONS
    },
    "not tied": {"tie_embeddings": False, "n_encoder_layers": 3, "n_decoder_layers": 1},
    "joint": {"joint": True},
    "joint, not tied": {"joint": True, "tie_embeddings": False},
    "imported": {"output_bias": True, "embedding_norm": True},
    "odd widths": {"d_model": 18, "n_heads": 3, "d_ff": 13},
    "wide": {"d_model": 72, "n_heads": 6, "d_ff": 100},
}
SEARCHES: list[dict[str, Any]] = [
    {"beam_size": 1},
    {"beam_size": 3, "n_best": 3, "length_penalty": 1.0},
    {"beam_size": 4, "n_best": 2, "prefix": [5, 8]},
    {"beam_size": 2, "forced": [6, 4], "length_penalty_offset": 5},
    {"beam_size": 8, "limit": 3},
    {"beam_size": 3, "repetition_penalty": 1.3, "no_repeat_ngram_size": 2, "min_length": 4},
    {"beam_size": 1, "repetition_penalty": 2.0, "no_repeat_ngram_size": 1, "min_length": 20},
]
SOURCES = [[int(i) for i in row[mask]] for row, mask in zip(SRC, SRC_MASK, strict=True)]
LIMIT = 9
HEADS = [AlignmentHead(layer=0, head=1, reading=True), AlignmentHead(layer=0, head=2, reading=False)]

_IN_PAGE = """
async function kernelsOf({ header, data }, kind) {
  const buffer = Uint8Array.from(atob(data), (character) => character.charCodeAt(0)).buffer;
  return kind === "plain" ? new PlainKernels(header.tensors, buffer) : makeKernels(header.tensors, buffer);
}
async function modelOf(packed, kind) {
  return new Transformer(packed.header, await kernelsOf(packed, kind));
}
async function logitsOf([name, kind, pairs]) {
  const model = await modelOf(pageData[name], kind);
  return pairs.map(([src, tgtIn]) => {
    const decoder = model.start(src);
    return tgtIn.map((id) => Array.from(decoder.step([id])));
  });
}
async function selfTestOf(packed) {
  const models = await Promise.all(["plain", "wasm"].map((kind) => modelOf(packed, kind)));
  return models.map((model) => testModel(model, packed.header.golden));
}
async function translationsOf([name, searches]) {
  const model = await modelOf(pageData[name]);
  return searches.map(([src, options]) => hypothesesOf(model.start(src), options));
}
function hypothesesOf(decoder, options) {
  const search = searchTranslations(decoder, { ...options, lengthPenalty: lengthPenaltyOf(options) });
  let step;
  do step = search.next();
  while (!step.done);
  return step.value.map((each) => ({ ...each, alignment: each.alignment.map((row) => Array.from(row)) }));
}
async function productOf([packed, x]) {
  const kernels = await makeKernels(packed.header.tensors, (await kernelsOf(packed, "plain")).tensors.buffer);
  return Array.from(kernels.product(kernels.tensors.linear("layer"), Float32Array.from(x.flat()), x.length));
}
"""


@pytest.fixture(scope="module")
def models() -> dict[str, Transformer]:
    """A model of each architecture."""
    made = {}
    for number, (name, config) in enumerate(VARIANTS.items()):
        torch.manual_seed(number)
        made[name] = make_model(**config)
        randomize(made[name])
    return made


def in_data(packed: PackedModel) -> dict[str, Any]:
    return {"header": packed.header, "data": base64.b64encode(packed.data).decode()}


@pytest.fixture(scope="module")
def page(models: dict[str, Transformer], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A page with all models, in float32 and as int8."""
    data = {}
    for name, model in models.items():
        data[name] = in_data(pack_model(model, HEADS, "float32"))
        data[f"{name}, int8"] = in_data(pack_model(model, HEADS))
    path = tmp_path_factory.mktemp("models") / "page.html"
    body = assemble("models", "", data=data, assets=ENGINE_ASSETS, computes=True)
    path.write_text(body.replace("</body>", f"<script>{_IN_PAGE}</script></body>"), encoding="utf-8")
    with opened(path) as page:
        yield page


def align(engine: TorchEngine, src: list[int], hypothesis: Hypothesis, own: dict[str, Any]) -> Weights:
    [weights] = results_of(engine, [AlignRequest(src, hypothesis.ids, own["forced"])])
    return weights


def assert_close(ours: list[Any], theirs: Any) -> None:
    expected = torch.as_tensor(theirs)
    torch.testing.assert_close(torch.tensor(ours).reshape(expected.shape), expected, rtol=1e-4, atol=1e-4)


@needs_browser
@pytest.mark.parametrize("name", VARIANTS)
@torch.inference_mode()
def test_logits_equal_those_of_torch(models: dict[str, Transformer], page: Page, name: str) -> None:
    model = models[name]
    expected = model.project(model(SRC, SRC_MASK, TGT_IN))  # (B, T, V)
    for kind in ("plain", "wasm"):
        pairs = list(zip(SOURCES, TGT_IN.tolist(), strict=True))
        assert_close(page.evaluate("logitsOf", [name, kind, pairs]), expected)


@needs_browser
@pytest.mark.parametrize("name", VARIANTS)
def test_searches_find_what_torch_finds(models: dict[str, Transformer], page: Page, name: str) -> None:
    engine = TorchEngine(models[name], alignment_heads=[HEADS])
    asked, expected = [], []
    for src, given in product(SOURCES, SEARCHES):
        own = {key: given.get(key, default) for key, default in {"limit": LIMIT, "prefix": [], "forced": []}.items()}
        options = SearchConfig().updated(**{key: value for key, value in given.items() if key not in own})
        [found] = results_of(engine, [SearchRequest(src, options, **own)])
        expected.append((options, [(each, align(engine, src, each, own)) for each in rank(options, found, str)]))
        in_page: dict[str, Any] = {"beamSize": options.beam_size, "nBest": options.n_best}
        if options.min_length:
            strictness = {"ngramSize": options.no_repeat_ngram_size, "minLength": options.min_length}
            in_page["strictness"] = {**strictness, "repetitionPenalty": options.repetition_penalty}
        asked.append([src, {**options.model_dump(), **own, **in_page}])
    in_page_found = page.evaluate("translationsOf", [name, asked])
    for (options, hypotheses), found in zip(expected, in_page_found, strict=True):
        assert [each["ids"] for each in found] == [each.ids for each, _ in hypotheses]
        for ours, (theirs, weights) in zip(found, hypotheses, strict=True):
            assert_close(ours["logProbs"], theirs.token_log_probs)
            assert_close([ours["score"]], [theirs.score(options.penalty)])
            assert_close(ours["alignment"][:-1], weights)


@needs_browser
@pytest.mark.parametrize("name", VARIANTS)
def test_weights_as_int8_give_the_logits_that_torch_computes_with_them(page: Page, name: str) -> None:
    plain, wasm = page.evaluate("(name) => selfTestOf(pageData[name])", f"{name}, int8")
    assert (plain["passed"], plain["of"]) == (wasm["passed"], wasm["of"]) == (2, 2)
    assert plain["worst"] < 1e-4
    assert wasm["worst"] < 1e-3  # its inputs have 16 bits


@needs_browser
def test_a_self_test_notices_a_damaged_weight(models: dict[str, Transformer], page: Page) -> None:
    packed = pack_model(models["joint"])
    data = bytearray(packed.data)
    data[packed.header["tensors"]["tgt_embedding.weight"]["offset"]] ^= 64
    results = page.evaluate("selfTestOf", in_data(PackedModel(packed.header, bytes(data))))
    assert all(result["passed"] < 2 for result in results)


@needs_browser
@pytest.mark.parametrize(("n", "n_in", "n_out"), [(37, 19, 7), (1, 8, 4), (2, 4096, 3), (2, 2, 1)])
def test_products_are_right_for_any_shape(page: Page, n: int, n_in: int, n_out: int) -> None:
    generator = np.random.default_rng(1)
    rows = generator.integers(-127, 128, (n_out, n_in)).astype("i1")
    rows[-1] = 127  # as large as sums become
    scales, x = generator.random(n_out, "f4"), generator.standard_normal((n, n_in), "f4")
    x[0] = 1.0
    padding = ((0, 0), (0, -n_in % 8))
    packed_rows = np.pad(rows, padding).tobytes()
    int8 = packed_rows + bytes(-len(packed_rows) % 16) + scales.tobytes()
    float32 = np.pad(rows * scales[:, None], padding).astype("<f4").tobytes()
    for kind, data in (("int8", int8), ("float32", float32)):
        tensors = {"layer.weight": {"offset": 0, "shape": [n_out, n_in], "type": kind}}
        packed = in_data(PackedModel({"tensors": tensors}, data))
        found = np.array(page.evaluate("productOf", [packed, x.tolist()])).reshape(n, n_out)
        expected = x.astype("f8") @ (rows * scales[:, None].astype("f8")).T
        sizes = np.abs(x.astype("f8")) @ np.abs(rows * scales[:, None].astype("f8")).T
        assert (np.abs(found - expected) <= 1e-4 * sizes).all()


# What does not need a browser


def test_rows_as_int8_are_within_half_a_scale_of_the_weights(models: dict[str, Transformer]) -> None:
    packed = pack_model(models["wide"])
    weight = models["wide"].get_parameter("encoder_layers.0.feed_forward.linear2.weight")  # (72, 100)
    place = packed.header["tensors"]["encoder_layers.0.feed_forward.linear2.weight"]
    assert (place["shape"], place["type"], place["offset"] % 16) == ([72, 100], "int8", 0)
    rows = np.frombuffer(packed.data, "i1", 72 * 104, place["offset"]).reshape(72, 104)
    scales = np.frombuffer(packed.data, "<f4", 72, place["offset"] + 72 * 104)
    assert (np.abs(rows).max(axis=1) == 127).all()
    assert not rows[:, 100:].any()
    stored = torch.tensor(rows[:, :100] * scales[:, None])
    assert ((stored - weight).abs() <= 0.501 * torch.tensor(scales)[:, None]).all()


def test_a_model_that_a_page_cannot_run_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(POSITIONS, "alibi", Positions("NoPositions"))
    model = make_model(positions="none")
    model.architecture = model.architecture.model_copy(update={"positions": "alibi"})
    with pytest.raises(UserError, match="a web page cannot run a model with positions = alibi"):
        pack_model(model)


def test_the_kernels_are_built_from_their_text() -> None:
    path = Path(__file__).parent.parent
    subprocess.run([sys.executable, path / "scripts/build_kernels.py", "--check"], check=True)
