"""The contract of engines: requests of any mix, each with its own result or error."""

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import EOS_ID

from mtformer.bundle.format import Bundle, load_bundle
from mtformer.config import SearchOptions
from mtformer.engines.ctranslate2.conversion import write_ctranslate2
from mtformer.engines.ctranslate2.engine import CTranslate2Engine
from mtformer.engines.ctranslate2.folder import read_folder
from mtformer.engines.torch import TorchEngine
from mtformer.model.architecture import SPECIAL_IDS
from mtformer.search.constraints import Constraint, TokenTexts
from mtformer.search.engine import AlignRequest, Engine, Request, ScoreRequest, SearchRequest, results_of
from mtformer.support.errors import MtformerError, UserError
from mtformer.text.words import word_rule

FIXTURE = Path(__file__).parent / "fixtures/bundle-3.safetensors"
GREEDY, BEAM = SearchOptions(beam_size=1), SearchOptions(beam_size=3, n_best=2)
DAMAGED = 37  # a token whose embedding is NaN
GOOD = [[*range(10, 14), EOS_ID], [40, 41, EOS_ID], [*range(50, 57), EOS_ID]]
BAD = [20, DAMAGED, 21, EOS_ID]

KINDS: dict[str, Callable[[list[int]], Request[Any]]] = {
    "greedy": lambda src: SearchRequest(src, GREEDY, 6),
    "beam": lambda src: SearchRequest(src, BEAM, 6),
    "score": lambda src: ScoreRequest(src, [60, 61]),
    "align": lambda src: AlignRequest(src, [60, 61, 62]),
}


def torch_engine(bundle: Bundle, folder: Path) -> Engine:
    return TorchEngine(bundle.model)


def ctranslate2_engine(bundle: Bundle, folder: Path) -> Engine:
    write_ctranslate2(folder, bundle, name="model.safetensors", quantization="float32")
    return CTranslate2Engine(read_folder(folder))


@pytest.fixture(params=[torch_engine, ctranslate2_engine])
def make_engine(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Bundle], Engine]:
    return lambda bundle: request.param(bundle, tmp_path)


def assert_same(found: Any, expected: Any) -> None:
    if isinstance(expected, np.ndarray):
        np.testing.assert_allclose(found, expected, atol=1e-4)
    elif isinstance(expected[0], float):
        assert found == pytest.approx(expected, abs=1e-4)
    else:
        assert [one.ids for one in found] == [one.ids for one in expected]
        for one, other in zip(found, expected, strict=True):
            assert one.token_log_probs == pytest.approx(other.token_log_probs, abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_a_sentence_with_nan_leaves_those_beside_it_alone(make_engine: Callable[[Bundle], Engine], kind: str) -> None:
    bundle = load_bundle(FIXTURE)
    bundle.model.src_embedding = deepcopy(bundle.model.src_embedding)  # no longer that of the output
    with torch.no_grad():
        bundle.model.src_embedding.weight[DAMAGED] = math.nan
    engine, done = make_engine(bundle), list[int]()
    requests = list(map(KINDS[kind], [*GOOD, BAD]))
    *results, error = engine.submit(requests, on_done=lambda batch, _: done.extend(batch))
    assert isinstance(error, MtformerError) and "the model predicts NaN" in str(error)
    assert sorted(done) == [0, 1, 2, 3]
    for result, request in zip(results, requests, strict=False):
        assert_same(result, engine.submit([request])[0])
    with pytest.raises(MtformerError, match="the model predicts NaN"):
        results_of(engine, requests)


def test_requests_of_any_mix_get_what_each_would_get_alone(make_engine: Callable[[Bundle], Engine]) -> None:
    engine = make_engine(load_bundle(FIXTURE))
    requests = [make(src) for src in GOOD for make in KINDS.values()]
    done = list[int]()
    for result, request in zip(
        engine.submit(requests, on_done=lambda batch, _: done.extend(batch)), requests, strict=True
    ):
        assert_same(result, engine.submit([request])[0])
    assert sorted(done) == list(range(len(requests)))
    assert engine.submit([]) == []


def test_what_an_engine_cannot_do_is_the_error_of_who_asks_for_it(tmp_path: Path) -> None:
    bundle = load_bundle(FIXTURE)
    write_ctranslate2(tmp_path, bundle, name="model.safetensors", quantization="float32")
    engine = CTranslate2Engine(replace(read_folder(tmp_path), n_positions=8))
    possible = SearchRequest(GOOD[0], BEAM, 5)
    requests: list[Request[Any]] = [
        possible,
        SearchRequest(GOOD[0], SearchOptions(beam_size=1, sample=True), 5),
        SearchRequest(GOOD[0], BEAM, 5, constraint=Constraint((), TokenTexts([], SPECIAL_IDS, word_rule("de")))),
        SearchRequest(GOOD[0], BEAM, 90),
        ScoreRequest(GOOD[0], [60] * 8),
        AlignRequest(GOOD[0], [60] * 8),
        ScoreRequest(GOOD[0], [60]),
    ]
    expected = [
        None,
        "does not support sample = True",
        "has no constraints",
        *["the exported model has 8 positions"] * 3,
        None,
    ]
    for result, message in zip(engine.submit(requests), expected, strict=True):
        if message is None:
            assert not isinstance(result, MtformerError)
        else:
            assert isinstance(result, UserError) and message in str(result)
    assert_same(engine.submit(requests)[0], engine.submit([possible])[0])
