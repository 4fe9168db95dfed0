"""The Transformer prepared for translating equals the plain one, for every architecture."""

from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import make_project
from recorded_graph import Recorded
from test_layers import assert_same, randomize
from test_transformer import MAX_LENGTH, SRC, SRC_MASK, TGT_IN, all_positions, both_norms, make_model
from torch import Tensor, nn

from mtformer.model.architecture import ACTIVATIONS
from mtformer.model.attention import MultiHeadAttention
from mtformer.model.cache import Cache
from mtformer.model.graphs import CAPTURES
from mtformer.model.inference import InferenceModel, require_same_logits
from mtformer.model.layers import FeedForward
from mtformer.model.packing import pack, rounded
from mtformer.model.transformer import Transformer
from mtformer.support.errors import MtformerError, UserError
from mtformer.support.hardware import require_precision

EVERYONE = torch.arange(len(SRC))
VARIANTS: list[dict[str, Any]] = [
    {},
    {"feed_forward": "silu", "positions": "rotary"},
    {"feed_forward": "gelu", "tie_embeddings": False, "n_encoder_layers": 3, "n_decoder_layers": 1},
    {"joint": True, "dropout": 0.0, "attention_dropout": 0.1},
    {"output_bias": True},
    *({"feed_forward": name} for name in ACTIVATIONS),
]


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(1)


def prepared(**config: Any) -> tuple[Transformer, InferenceModel]:
    model = make_model(**config)
    randomize(model)
    return model, InferenceModel(model)


@both_norms
@all_positions
@pytest.mark.parametrize("variant", VARIANTS)
@torch.inference_mode()
def test_steps_equal_the_full_forward_pass(norm: str, positions: str, variant: dict[str, Any]) -> None:
    model, inference = prepared(norm=norm, **{"positions": positions, **variant})
    assert_same(inference.encode(SRC, SRC_MASK)[SRC_MASK], model.encode(SRC, SRC_MASK)[SRC_MASK])
    cache = inference.start(SRC, SRC_MASK)
    logits = [inference.step(TGT_IN[:, t], cache) for t in range(TGT_IN.size(1))]
    assert_same(torch.stack(logits, dim=1), model.project(model(SRC, SRC_MASK, TGT_IN)))


@pytest.mark.parametrize("changed", [MultiHeadAttention, FeedForward])
def test_no_model_is_trained_that_search_computes_in_another_way(
    changed: type[nn.Module], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a user changes the attention of training, and not that of search."""
    project = make_project(tmp_path, n_pairs=60, max_steps=1)
    command = "train", project.config, "--set", "model.dropout=0.3", "--set", "model.attention_dropout=0.1"
    assert project.mtformer(*command, "--set", "run.name=unchanged").status == 0
    forward = changed.forward
    monkeypatch.setattr(changed, "forward", lambda *args, **settings: 1.05 * forward(*args, **settings))
    result = project.mtformer(*command)
    assert result.status == 1
    assert "has to change in inference.py" in result.stderr


@pytest.mark.parametrize("n", [9, 30])  # tokens, or less than is compared
def test_attention_to_padding_or_only_to_the_last_tokens_is_noticed(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_model(max_length=n, dropout=0.2).train()
    before = torch.get_rng_state()
    require_same_logits(model)
    assert model.training and torch.equal(torch.get_rng_state(), before)
    attend = MultiHeadAttention.attend

    def of_all(self: MultiHeadAttention, *qkv: Tensor, causal: bool = False) -> Tensor:
        return attend(self, *qkv[:3], causal=causal)

    def of_last(self: MultiHeadAttention, *qkv: Tensor, causal: bool = False) -> Tensor:
        q, k, v, *_ = qkv
        is_near = torch.ones(q.size(2), k.size(2), dtype=torch.bool).triu(-4)
        return attend(self, q, k, v, is_near.tril() if causal else None)

    for changed in (of_all, of_last):
        monkeypatch.setattr(MultiHeadAttention, "attend", changed)
        with pytest.raises(MtformerError, match=r"inference\.py"):
            require_same_logits(model)


@both_norms
@all_positions
@pytest.mark.parametrize("has_graphs", [False, True])
@torch.inference_mode()
def test_a_cache_follows_any_choice_of_sentences_and_beams(
    norm: str, positions: str, has_graphs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if has_graphs:
        monkeypatch.setitem(CAPTURES, "cpu", Recorded)
    model, inference = prepared(norm=norm, positions=positions)
    cache, generator = inference.start(SRC, SRC_MASK), torch.Generator().manual_seed(3)
    alive, prefixes = EVERYONE, torch.empty(len(SRC), 1, 0, dtype=torch.long)  # (n, K, t)
    # Widen, keep, shuffle the sentences, drop the first, narrow, widen again, and go beyond the cache's first capacity.
    plan = [([0, 1, 2], 2), ([0, 1, 2], 2), ([2, 0, 1], 3), ([2, 1], 3), ([1, 0], 1), ([0, 1], 4), *[([0, 1], 4)] * 14]
    for sentences, n_beams in plan:
        kept = torch.tensor(sentences)
        beams = torch.randint(prefixes.size(1), (len(kept), n_beams), generator=generator)
        cache.select(kept, beams)
        alive, prefixes = alive[kept], prefixes[kept].gather(1, beams[:, :, None].expand(-1, -1, prefixes.size(2)))
        tokens = torch.randint(4, 13, (len(kept), n_beams, 1), generator=generator)
        prefixes = torch.cat([prefixes, tokens], dim=2)
        rows = alive.repeat_interleave(n_beams)
        expected = model.project(model(SRC[rows], SRC_MASK[rows], prefixes.flatten(0, 1))[:, -1])
        assert_same(inference.step(tokens.flatten(), cache), expected)
    assert cache.length == len(plan) > MAX_LENGTH


@torch.inference_mode()
def test_choosing_beams_moves_no_keys_and_values_and_dropping_sentences_only_those_that_fill_the_gaps() -> None:
    _, inference = prepared()
    cache = inference.start(SRC, SRC_MASK)
    assert isinstance(cache, Cache)
    cache.select(EVERYONE, torch.zeros(3, 2, dtype=torch.long))
    inference.step(torch.tensor([4, 5, 6, 7, 8, 9]), cache)
    tensors = [cache.memory_kv, cache.prefix_kv[:, :, :, :, : cache.n_slots]]  # (L, 2, n, H, …, Dh)
    before = [tensor.clone() for tensor in tensors]
    cache.select(EVERYONE, torch.tensor([[1, 0], [1, 1], [0, 0]]))
    assert all(map(torch.equal, tensors, before))
    cache.select(torch.tensor([2, 1]), torch.tensor([[0, 1], [0, 1]]))
    assert all(torch.equal(tensor, old[:, :, [2, 1, 2]]) for tensor, old in zip(tensors, before, strict=True))
    assert cache.memory_kv.size(2) == cache.prefix_kv.size(2) == 2


@torch.inference_mode()
def test_full_sources_need_no_mask() -> None:
    _, inference = prepared()
    for n, has_mask in ((1, False), (3, True)):
        cache = inference.start(SRC[:n], SRC_MASK[:n])
        assert isinstance(cache, Cache)
        assert (cache.src_mask is not None) == has_mask


@pytest.mark.parametrize("n_rows", [1, 3, 64])
@pytest.mark.parametrize(("n_in", "n_out"), [(16, 24), (128, 1024)])
@pytest.mark.parametrize("with_bias", [False, True])
@torch.inference_mode()
def test_a_packed_product_equals_the_plain_one(n_rows: int, n_in: int, n_out: int, with_bias: bool) -> None:
    x, weight = torch.randn(n_rows, n_in), torch.randn(n_out, n_in) / n_in**0.5
    bias: Tensor | None = torch.randn(n_out) if with_bias else None
    expected = torch.nn.functional.linear(x, weight, bias)
    assert_same(pack(weight, bias, "fp32")(x), expected)


@pytest.mark.parametrize("with_bias", [False, True])
@torch.inference_mode()
def test_a_product_in_bf16_is_close_to_the_exact_one(with_bias: bool) -> None:
    x, weight = torch.randn(33, 128) * torch.logspace(-3, 3, 33)[:, None], torch.randn(96, 128)
    bias = torch.randn(96) if with_bias else None
    exact = torch.nn.functional.linear(x, weight, bias)
    error = (pack(weight, bias, "bf16")(x) - exact).norm(dim=1) / exact.norm(dim=1)
    assert 0 < error.max() < 0.02  # of each row, whatever its magnitude


def test_precisions_that_a_device_does_not_have_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="precision int8 needs CTranslate2"):
        require_precision("int8", torch.device("cpu"))
    monkeypatch.setattr("mtformer.support.hardware.has_fast_bf16", lambda device: False)
    with pytest.raises(UserError, match="this processor would emulate it"):
        require_precision("bf16", torch.device("cpu"))


@pytest.mark.parametrize("n_rows", [1, 7, 8, 9, 100, 1_000])
def test_numbers_of_rows_are_rounded_up_to_three_bits(n_rows: int) -> None:
    assert n_rows <= rounded(n_rows) < n_rows * 1.25
    assert rounded(rounded(n_rows)) == rounded(n_rows)


def test_few_numbers_of_rows_are_left() -> None:
    assert [rounded(n) for n in (1, 5, 8, 9, 11, 13)] == [1, 5, 8, 10, 12, 14]
    assert len({rounded(n) for n in range(1, 4_097)}) == 8 + 4 * 9
