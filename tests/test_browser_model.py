"""The Transformer and its search in a web page, in a headless browser, against those of torch."""

import base64
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from browser import needs_browser, opened
from playwright.sync_api import Page
from test_layers import randomize
from test_transformer import SRC, SRC_MASK, TGT_IN, make_model

import mtformer.browser.pack
from mtformer.browser.pack import ENGINE_ASSETS, PackedModel, pack_model
from mtformer.bundle.header import AlignmentHead
from mtformer.config import SearchConfig
from mtformer.engines.torch import TorchEngine
from mtformer.model.architecture import ACTIVATIONS, NORMS, POSITIONS, Positions
from mtformer.model.transformer import Transformer
from mtformer.search.engine import AlignRequest, SearchRequest, results_of
from mtformer.search.hypothesis import rank
from mtformer.support.errors import UserError
from mtformer.support.page import assemble

pytestmark = pytest.mark.xdist_group("models in a page")

VARIANTS: dict[str, dict[str, Any]] = {
    **{f"{norm}-norm, {kind}": {"norm": norm, "norm_type": kind} for norm, kind in product(("pre", "post"), NORMS)},
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
SEARCHES = [
    {"beam_size": 1},
    {"beam_size": 3, "n_best": 3, "length_penalty": 1.0},
    {"beam_size": 4, "n_best": 2, "prefix": [5, 8]},
    {"beam_size": 2, "forced": [6, 4], "length_penalty_offset": 0},
    {"beam_size": 8, "limit": 3},
]
SOURCES = [[int(i) for i in row[mask]] for row, mask in zip(SRC, SRC_MASK, strict=True)]
LIMIT = 9
HEADS = [AlignmentHead(layer=0, head=1, reading=True), AlignmentHead(layer=0, head=2, reading=False)]

_IN_PAGE = """
function modelOf({ header, data }) {
  const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
  return new Transformer(header, new PlainKernels(header.tensors, bytes.buffer));
}
function logitsOf([name, src, tgtIn]) {
  const decoder = modelOf(pageData[name]).start(src);
  return tgtIn.map((id) => Array.from(decoder.step([id])));
}
function selfTestOf(name) {
  return testModel(modelOf(pageData[name]), pageData[name].header.golden);
}
function translationsOf([name, src, options]) {
  const decoder = modelOf(pageData[name]).start(src);
  const search = searchTranslations(decoder, { ...options, lengthPenalty: lengthPenaltyOf(options) });
  let step;
  do step = search.next();
  while (!step.done);
  return step.value.map((each) => ({ ...each, alignment: each.alignment.map((row) => Array.from(row)) }));
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


def assert_close(ours: list[Any], theirs: Any) -> None:
    expected = torch.as_tensor(theirs)
    torch.testing.assert_close(torch.tensor(ours).reshape(expected.shape), expected, rtol=1e-4, atol=1e-4)


@needs_browser
@pytest.mark.parametrize("name", VARIANTS)
@torch.inference_mode()
def test_logits_equal_those_of_torch(models: dict[str, Transformer], page: Page, name: str) -> None:
    model = models[name]
    expected = model.project(model(SRC, SRC_MASK, TGT_IN))  # (B, T, V)
    for src, tgt_in, rows in zip(SOURCES, TGT_IN.tolist(), expected, strict=True):
        assert_close(page.evaluate("logitsOf", [name, src, tgt_in]), rows)


@needs_browser
@pytest.mark.parametrize("name", VARIANTS)
def test_searches_find_what_torch_finds(models: dict[str, Transformer], page: Page, name: str) -> None:
    engine = TorchEngine(models[name], alignment_heads=[HEADS])
    for src, given in product(SOURCES, SEARCHES):
        given = {"limit": LIMIT, "prefix": [], "forced": [], **given}
        own = {key: given[key] for key in ("limit", "prefix", "forced")}
        options = SearchConfig().updated(**{key: value for key, value in given.items() if key not in own})
        [found] = results_of(engine, [SearchRequest(src, options, **own)])
        expected = rank(options, found, str)
        in_page = {**options.model_dump(), **own, "beamSize": options.beam_size, "nBest": options.n_best}
        hypotheses = page.evaluate("translationsOf", [name, src, in_page])
        assert [each["ids"] for each in hypotheses] == [each.ids for each in expected]
        for ours, theirs in zip(hypotheses, expected, strict=True):
            assert_close(ours["logProbs"], theirs.token_log_probs)
            assert_close([ours["score"]], [theirs.score(options.penalty)])
            [weights] = results_of(engine, [AlignRequest(src, theirs.ids, own["forced"])])
            assert_close(ours["alignment"][:-1], weights)


@needs_browser
@pytest.mark.parametrize("name", VARIANTS)
def test_weights_as_int8_give_the_logits_that_torch_computes_with_them(page: Page, name: str) -> None:
    result = page.evaluate("selfTestOf", f"{name}, int8")
    assert (result["passed"], result["of"]) == (2, 2)
    assert 0 < result["worst"] < 1e-4
    assert page.evaluate("selfTestOf", name)["worst"] < 1e-4


@needs_browser
def test_a_self_test_notices_a_damaged_weight(models: dict[str, Transformer], page: Page) -> None:
    packed = pack_model(models["joint"])
    data = bytearray(packed.data)
    data[packed.header["tensors"]["tgt_embedding.weight"]["offset"]] ^= 64
    [result] = page.evaluate(
        "([{ header, data }]) => [testModel(modelOf({ header, data }), header.golden)]",
        [in_data(PackedModel(packed.header, bytes(data)))],
    )
    assert result["passed"] < 2


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


def test_a_model_that_a_page_cannot_run_is_refused_by_name(
    models: dict[str, Transformer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(POSITIONS, "alibi", Positions("NoPositions"))
    model = make_model(positions="none")
    model.architecture = model.architecture.model_copy(update={"positions": "alibi"})
    with pytest.raises(UserError, match="a web page cannot run a model with positions = alibi"):
        pack_model(model)
    monkeypatch.setattr(mtformer.browser.pack, "_MOST_BYTES", 10_000)
    with pytest.raises(UserError, match="as float32, those of this model take more"):
        pack_model(models["joint"], quantization="float32")
