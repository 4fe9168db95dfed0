"""Multi-head attention against ``nn.MultiheadAttention``, whose masks are inverted: True = may not attend."""

import math

import pytest
import torch
from torch import Tensor, nn

from mtformer.config import ModelConfig
from mtformer.model.attention import MultiHeadAttention, attention_weights, causal_mask, record_attention
from mtformer.model.inference import InferenceModel
from mtformer.model.transformer import Transformer

B, T, S, D, H = 3, 4, 6, 16, 4
TORCH_NAMES = {
    "qkv_proj.weight": "in_proj_weight",
    "qkv_proj.bias": "in_proj_bias",
    "out_proj.weight": "out_proj.weight",
    "out_proj.bias": "out_proj.bias",
}


def attention_pair() -> tuple[MultiHeadAttention, nn.MultiheadAttention]:
    """Return our attention and torch's with the same random weights."""
    ours = MultiHeadAttention(d_model=D, n_heads=H)
    for parameter in ours.parameters():
        nn.init.normal_(parameter, std=0.3)
    reference = nn.MultiheadAttention(D, H, batch_first=True)
    reference.load_state_dict({TORCH_NAMES[name]: tensor for name, tensor in ours.state_dict().items()})
    return ours, reference


def padding(*lengths: int) -> Tensor:
    """Return (B, S), True at the first ``lengths[b]`` places of row b."""
    return torch.arange(S) < torch.tensor(lengths)[:, None]


def assert_same(ours: Tensor | None, expected: Tensor | None) -> None:
    torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-5)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(1)


def test_attention_weights_are_the_softmax_of_scaled_products_computed_by_hand() -> None:
    q = torch.tensor([[[[2.0, 0.0, 0.0, 2.0]]]])  # (B, H, T, Dh) = (1, 1, 1, 4)
    k = torch.tensor([[[[1.0, 0.0, 0.0, 0.0], [0.0, 5.0, 5.0, 0.0], [1.0, 0.0, 0.0, 1.0]]]])
    e = math.e  # the scores are (2, 0, 4) / √4
    expected = torch.tensor([e, 1.0, e**2]) / (e + 1 + e**2)
    assert_same(attention_weights(q, k, None).flatten(), expected)
    masked = attention_weights(q, k, torch.tensor([True, True, False])).flatten()
    assert_same(masked, torch.tensor([e, 1.0, 0.0]) / (e + 1))


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("kind", ["self", "cross"])
def test_multi_head_attention_equals_torch_with_its_weights_and_all_gradients(kind: str, padded: bool) -> None:
    ours, reference = attention_pair()
    mask = padding(6, 1, 4) if padded else padding(6, 6, 6)
    if kind == "self":
        own_inputs = [torch.randn(B, S, D, requires_grad=True)]
    else:
        own_inputs = [torch.randn(B, T, D, requires_grad=True), torch.randn(B, S, D, requires_grad=True)]
    inputs = [x.detach().clone().requires_grad_() for x in own_inputs]

    out = ours(own_inputs[0], own_inputs[-1], mask[:, None, None, :] if padded else None)
    with record_attention(ours) as recorded:
        ours(own_inputs[0], own_inputs[-1], mask[:, None, None, :] if padded else None)
    [weights] = recorded[""]
    expected, expected_weights = reference(
        inputs[0],
        inputs[-1],
        inputs[-1],
        key_padding_mask=~mask if padded else None,
        average_attn_weights=False,
    )
    assert_same(out, expected)
    assert_same(weights, expected_weights)

    upstream = torch.randn_like(out)
    out.backward(upstream)
    expected.backward(upstream)
    for own, x in zip(own_inputs, inputs, strict=True):
        assert_same(own.grad, x.grad)
    expected_gradients = dict(reference.named_parameters())
    for name, parameter in ours.named_parameters():
        assert_same(parameter.grad, expected_gradients[TORCH_NAMES[name]].grad)


def test_causal_attention_equals_torch_with_its_causal_mask() -> None:
    ours, reference = attention_pair()
    x = torch.randn(B, S, D)
    forbidden = torch.ones(S, S, dtype=torch.bool).triu(1)
    expected, expected_weights = reference(x, x, x, attn_mask=forbidden, average_attn_weights=False)
    assert_same(ours(x, x, causal_mask(S)), expected)
    assert_same(ours(x, x, causal=True), expected)
    with record_attention(ours) as recorded:
        assert_same(ours(x, x, causal=True), expected)
    [weights] = recorded[""]
    assert_same(weights, expected_weights)


def test_weights_sum_to_one_and_are_zero_at_masked_places_in_every_head() -> None:
    ours, _ = attention_pair()
    mask = padding(6, 1, 4)
    with record_attention(ours) as recorded:
        ours(torch.randn(B, T, D), torch.randn(B, S, D), mask[:, None, None, :])
    [weights] = recorded[""]
    assert weights.shape == (B, H, T, S)
    assert_same(weights.sum(dim=-1), torch.ones(B, H, T))
    allowed = mask[:, None, None, :].expand_as(weights)
    assert (weights[~allowed] == 0).all()
    assert (weights[allowed] > 0).all()
    assert not torch.allclose(weights[:, 0], weights[:, 1])


def test_recording_ends_with_its_block_even_on_an_error() -> None:
    ours, _ = attention_pair()
    x = torch.randn(B, T, D)
    with pytest.raises(RuntimeError, match="stop"), record_attention(ours) as recorded:
        ours(x, x)
        raise RuntimeError("stop")
    ours(x, x)
    assert len(recorded[""]) == 1
    assert ours.observer is None


def make_transformer() -> Transformer:
    config = ModelConfig(d_model=D, n_heads=H, d_ff=8, n_encoder_layers=2, n_decoder_layers=2)
    return Transformer(config.architecture(src_vocab_size=12, tgt_vocab_size=12, joint=True, max_length=8)).eval()


@torch.inference_mode()
def test_teacher_forcing_records_encoder_decoder_and_cross_attention_once_each() -> None:
    model, mask = make_transformer(), padding(6, 1, 4)
    src, tgt_in = torch.randint(4, 12, (B, S)), torch.randint(4, 12, (B, T))
    silent = model(src, mask, tgt_in)
    with record_attention(model) as recorded:
        watched = model(src, mask, tgt_in)
    assert_same(watched, silent)
    shapes = {name: [tuple(weights.shape) for weights in calls] for name, calls in recorded.items()}
    assert shapes == {
        **{f"encoder_layers.{i}.self_attention": [(B, H, S, S)] for i in range(2)},
        **{f"decoder_layers.{i}.self_attention": [(B, H, T, T)] for i in range(2)},
        **{f"decoder_layers.{i}.cross_attention": [(B, H, T, S)] for i in range(2)},
    }
    for name, [weights] in recorded.items():
        assert_same(weights.sum(dim=-1), torch.ones(weights.shape[:-1]))
        allowed = causal_mask(T) if name.startswith("decoder") and "self" in name else mask[:, None, None, :]
        assert (weights[~allowed.expand_as(weights)] == 0).all()


@torch.inference_mode()
def test_each_decoding_step_records_its_row_of_the_weights_of_teacher_forcing() -> None:
    model, mask = make_transformer(), padding(6, 1, 4)
    src, tgt_in = torch.randint(4, 12, (B, S)), torch.randint(4, 12, (B, T))
    with record_attention(model) as expected:
        model(src, mask, tgt_in)
    with record_attention(model) as recorded:
        inference = InferenceModel(model)
        cache = inference.start(src, mask)
        for t in range(T):
            inference.step(tgt_in[:, t], cache)
    assert recorded.keys() == expected.keys()
    for name, [weights] in expected.items():
        if name.startswith("encoder"):
            assert_same(recorded[name][0], weights)
            continue
        for t, row in enumerate(recorded[name]):
            assert_same(row[:, :, 0], weights[:, :, t, : t + 1] if "self" in name else weights[:, :, t])


@torch.inference_mode()
def test_each_beam_records_its_own_prefix_and_queries_the_memory_of_its_sentence() -> None:
    model, mask = make_transformer(), padding(6, 1, 4)
    src, tgt_in = torch.randint(4, 12, (B, S)), torch.randint(4, 12, (B * 2, T))
    inference = InferenceModel(model)
    cache = inference.start(src, mask)
    cache.select(torch.arange(B), torch.zeros(B, 2, dtype=torch.long))
    for t in range(T - 1):
        inference.step(tgt_in[:, t], cache)
    cache.select(torch.arange(B), torch.tensor([[1, 1]] * B))  # the second beam continues in both
    with record_attention(model) as recorded:
        inference.step(tgt_in[:, T - 1], cache)
    tgt_in[:, :-1] = tgt_in[1::2, :-1].repeat_interleave(2, dim=0)
    with record_attention(model) as expected:
        model(src.repeat_interleave(2, dim=0), mask.repeat_interleave(2, dim=0), tgt_in)
    [to_self], [to_memory] = (recorded[f"decoder_layers.1.{name}_attention"] for name in ("self", "cross"))
    assert_same(to_self[:, :, 0], expected["decoder_layers.1.self_attention"][0][:, :, -1])
    assert to_memory.shape == (B, H, 2, S)
    rows = to_memory.transpose(1, 2).flatten(0, 1)  # (2·B, H, S)
    assert_same(rows, expected["decoder_layers.1.cross_attention"][0][:, :, -1])


def test_a_mask_of_numbers_is_refused() -> None:
    ours, _ = attention_pair()
    x, mask = torch.randn(B, S, D), padding(6, 1, 4)[:, None, None, :]
    for wrong in (mask.float(), mask.long()):
        with pytest.raises(TypeError, match=r"boolean, True = may attend; this one has dtype torch\.(float32|int64)"):
            ours(x, x, wrong)


@pytest.mark.parametrize("masking", ["none", "padding", "causal"])
def test_bfloat16_training_on_a_cpu_agrees_with_torchs_fused_attention(masking: str) -> None:
    ours, _ = attention_pair()
    x = torch.randn(B, S, D)
    mask = padding(6, 1, 4)[:, None, None, :] if masking == "padding" else None

    def run(dtype: torch.dtype) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == torch.bfloat16):
            q, k, v = ours.project_qkv(x)
            assert q.dtype == dtype
            return ours.attend(q, k, v, mask, causal=masking == "causal")

    training = run(torch.bfloat16)  # with gradients: written out
    gradients = torch.autograd.grad(training.float().square().sum(), list(ours.parameters()))
    with torch.no_grad():
        fused = run(torch.bfloat16)
    exact = run(torch.float32)
    exact_gradients = torch.autograd.grad(exact.square().sum(), list(ours.parameters()))
    assert training.dtype == fused.dtype == torch.bfloat16
    torch.testing.assert_close(training, fused, rtol=0.02, atol=0.02)
    torch.testing.assert_close(training.float(), exact, rtol=0.03, atol=0.03)
    for gradient, expected in zip(gradients, exact_gradients, strict=True):
        assert (gradient - expected).norm() < 0.03 * expected.norm()


def test_heads_that_do_not_divide_the_width_are_refused() -> None:
    with pytest.raises(ValueError, match=r"n_heads \(3\) does not divide d_model \(16\)"):
        MultiHeadAttention(d_model=16, n_heads=3)


def dropping_attention(p: float) -> MultiHeadAttention:
    ours, _ = attention_pair()
    dropping = MultiHeadAttention(d_model=D, n_heads=H, dropout=p)
    dropping.load_state_dict(ours.state_dict())
    return dropping


@pytest.mark.parametrize("masking", ["none", "padding", "causal"])
def test_dropout_of_weights_scales_or_zeroes_each_weight_in_training(masking: str) -> None:
    ours, x = dropping_attention(0.25), torch.randn(B, S, D)
    mask = padding(6, 1, 4)[:, None, None, :] if masking == "padding" else None
    dropped: list[Tensor] = []
    ours.dropout.register_forward_hook(lambda _module, _inputs, out: dropped.append(out))
    out = ours(x, x, mask, causal=masking == "causal")
    [weights] = dropped
    with record_attention(ours) as recorded:
        ours.eval()(x, x, mask, causal=masking == "causal")
    [whole] = recorded[""]
    kept = weights > 0
    assert 0 < kept.float().mean() < (whole > 0).float().mean()
    assert_same(weights, torch.where(kept, whole / 0.75, 0.0))
    _, _, v = ours.project_qkv(x)
    assert_same(out, ours.out_proj((weights @ v).transpose(1, 2).flatten(2)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dropout_of_weights_keeps_their_expectation(dtype: torch.dtype) -> None:
    ours, x = dropping_attention(0.25), torch.randn(B, S, D)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == torch.bfloat16):
        many = x.repeat(40, 1, 1)
        mean = torch.stack([ours(many, many).float() for _ in range(100)]).unflatten(1, (40, B)).mean(dim=(0, 1))
        expected = ours.eval()(x, x).float()
    assert (mean - expected).abs().max() < 0.05 * expected.abs().max()


def test_dropout_of_weights_is_off_in_evaluation_and_at_rate_zero() -> None:
    x = torch.randn(B, S, D)
    ours, never = dropping_attention(0.5).eval(), MultiHeadAttention(d_model=D, n_heads=H)
    never.load_state_dict(ours.state_dict())
    state = torch.get_rng_state()
    assert torch.equal(ours(x, x), never.train()(x, x))
    assert torch.equal(torch.get_rng_state(), state)  # nothing was drawn


def test_dropout_of_weights_follows_torchs_seed() -> None:
    ours, x = dropping_attention(0.5), torch.randn(B, S, D)
    torch.manual_seed(5)
    first, second = ours(x, x), ours(x, x)
    torch.manual_seed(5)
    assert torch.equal(ours(x, x), first)
    assert torch.equal(ours(x, x), second)
    assert not torch.equal(first, second)


def test_recorded_weights_of_training_are_those_before_dropout() -> None:
    ours, x = dropping_attention(0.5), torch.randn(B, S, D)
    with record_attention(ours) as recorded:
        ours(x, x)
        ours.eval()(x, x)
    training, evaluation = recorded[""]
    assert_same(training, evaluation)


def test_the_config_drops_weights_in_all_three_attentions() -> None:
    config = ModelConfig(d_model=D, n_heads=H, d_ff=8, n_encoder_layers=1, n_decoder_layers=1, attention_dropout=0.3)
    model = Transformer(config.architecture(src_vocab_size=12, tgt_vocab_size=12, joint=True, max_length=8))
    rates = [module.dropout.p for module in model.modules() if isinstance(module, MultiHeadAttention)]
    assert rates == [0.3, 0.3, 0.3]
    with pytest.raises(ValueError, match="less than 1"):
        ModelConfig(attention_dropout=1)
