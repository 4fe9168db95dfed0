"""The cache of a GPU, on the processor, with graphs that behave as CUDA's."""

import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from pretended_gpu import ARCHITECTURES
from recorded_graph import Recorded
from test_search import EOS, make_model

from mtformer.config import SearchOptions
from mtformer.engines.torch import TorchEngine
from mtformer.model import graphs as model_graphs
from mtformer.model.attention import record_attention
from mtformer.model.inference import InferenceModel
from mtformer.model.positions import SinusoidalPositions
from mtformer.search.engine import SearchRequest, results_of
from mtformer.search.hypothesis import Hypothesis


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> list[Recorded]:
    """Let the processor have graphs; return those captured."""
    monkeypatch.setitem(model_graphs.CAPTURES, "cpu", Recorded)
    Recorded.captured.clear()
    return Recorded.captured


def search(engine: TorchEngine, limits: list[int], **options: Any) -> list[list[Hypothesis]]:
    sources = [[4 + (3 * i + j) % 8 for j in range(3 + i % 4)] + [EOS] for i in range(len(limits))]
    requests = [
        SearchRequest(source, SearchOptions(**options), limit) for source, limit in zip(sources, limits, strict=True)
    ]
    return results_of(engine, requests)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{"beam_size": 1}, {"beam_size": 4, "n_best": 4}, {"beam_size": 1, "sample": True, "n_best": 3}]
)
@pytest.mark.parametrize("settings", ARCHITECTURES)
def test_searches_find_the_same_as_without_graphs(
    settings: dict[str, Any], options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, limits = TorchEngine(make_model(1, **settings), n_threads=1), [50, 35, 37, 50, 42, 36, 39]
    options = options | {"min_length": 33}  # so that the cache grows and sentences end in different steps
    expected = search(engine, limits, **options)
    monkeypatch.setitem(model_graphs.CAPTURES, "cpu", Recorded)
    Recorded.captured.clear()
    found = search(engine, limits, **options)
    assert sum(graph.n_replays for graph in Recorded.captured) > 30
    for hypotheses, others in zip(found, expected, strict=True):
        assert [hypothesis.ids for hypothesis in hypotheses] == [other.ids for other in others]
        for hypothesis, other in zip(hypotheses, others, strict=True):
            assert hypothesis.token_log_probs == pytest.approx(other.token_log_probs, abs=1e-4)


def test_a_table_that_graphs_may_read_is_kept_when_it_grows(graphs: list[Recorded]) -> None:
    positions = SinusoidalPositions(d_model=8, n_positions=4)
    first = weakref.ref(positions.table)
    assert len(positions(0, 9)) == 9
    assert first() is not None
    assert first() is not positions.table


@torch.inference_mode()
def test_shapes_change_only_when_the_cache_grows_or_half_of_the_sentences_have_ended(graphs: list[Recorded]) -> None:
    model = InferenceModel(make_model(1))
    state = model.start(torch.full((5, 3), 4), torch.ones(5, 3, dtype=torch.bool))
    n_left = [5] * 10 + [4] * 10 + [3] * 10 + [2] * 20  # at 32 steps there is no more room; 2 of 5 are less than half
    for n in n_left:
        state.select(torch.arange(n), torch.zeros(n, 1, dtype=torch.long))
        model.step(torch.full((n,), 4), state)
    assert [graph.n_replays for graph in graphs] == [29, 1, 17]


def test_a_step_that_cannot_be_captured_is_computed_without_a_graph(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def capture(take: Callable[[], None], device: torch.device) -> model_graphs.Graph:
        raise RuntimeError("operation not permitted when stream is capturing")

    engine = TorchEngine(make_model(1), n_threads=1)
    expected = search(engine, [6, 9], beam_size=2)
    monkeypatch.setitem(model_graphs.CAPTURES, "cpu", capture)
    assert [h.ids for row in search(engine, [6, 9], beam_size=2) for h in row] == [
        h.ids for row in expected for h in row
    ]
    assert caplog.text.count("operation not permitted") == 1


@pytest.mark.usefixtures("graphs")
def test_a_tap_of_attention_sees_every_step(graphs: list[Recorded]) -> None:
    model = make_model(1)
    with record_attention(model) as recorded:
        search(TorchEngine(model, n_threads=1), [6], beam_size=1)
    assert {len(weights) for name, weights in recorded.items() if "decoder" in name} == {7}
    assert not graphs
