"""Encoder and decoder layers against those of ``torch.nn``, whose masks are inverted: True = may not attend."""

from collections.abc import Callable, Iterable
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn

from mtformer.config import ModelConfig
from mtformer.model.architecture import ACTIVATIONS, Architecture
from mtformer.model.layers import DecoderLayer, EncoderLayer, FeedForward, Residual

B, T, S, D, F = 3, 5, 6, 16, 24
SRC_LENGTHS = torch.tensor([6, 1, 4])
SRC_MASK = torch.arange(S) < SRC_LENGTHS[:, None]  # (B, S)
FORBIDDEN_FUTURE = torch.ones(T, T, dtype=torch.bool).triu(1)

TORCH_NAMES = {
    "self_attention.qkv_proj.": "self_attn.in_proj_",
    "self_attention.out_proj.": "self_attn.out_proj.",
    "feed_forward.linear": "linear",
    "residuals.0.norm.": "norm1.",
    "residuals.1.norm.": "norm2.",
    "cross_attention.qkv_proj.": "multihead_attn.in_proj_",
    "cross_attention.out_proj.": "multihead_attn.out_proj.",
    "residuals.2.norm.": "norm3.",
}

both_norms = pytest.mark.parametrize("norm", ["post", "pre"])


def architecture(norm: str, **others: Any) -> Architecture:
    values = {"d_model": D, "n_heads": 4, "d_ff": F, "dropout": 0.0, "norm": norm, **others}
    return ModelConfig.model_validate(values).architecture(
        src_vocab_size=10, tgt_vocab_size=10, joint=True, max_length=10
    )


def randomize(module: nn.Module) -> None:
    """Give every parameter other values, LayerNorms too, so that no two can be mistaken for each other."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)


def torch_name(name: str) -> str:
    """Translate the name of a parameter of one of our layers to that in ``torch.nn``."""
    start = next(start for start in TORCH_NAMES if name.startswith(start))
    return TORCH_NAMES[start] + name.removeprefix(start)


def torch_layer(ours: nn.Module, norm: str) -> nn.Module:
    """Return the layer of ``torch.nn`` with the weights of ``ours``."""
    kind: Callable[..., nn.Module] = (
        nn.TransformerEncoderLayer if isinstance(ours, EncoderLayer) else nn.TransformerDecoderLayer
    )
    reference = kind(D, 4, F, dropout=0.0, batch_first=True, norm_first=norm == "pre")
    reference.load_state_dict({torch_name(name): tensor for name, tensor in ours.state_dict().items()})
    return reference


def twins(*shape: int) -> tuple[Tensor, Tensor]:
    """Return two equal random inputs that collect gradients."""
    x = torch.randn(shape)
    return x.clone().requires_grad_(), x.clone().requires_grad_()


def assert_same(ours: Tensor | None, expected: Tensor | None) -> None:
    torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-5)


def assert_same_gradients(ours: nn.Module, reference: nn.Module) -> None:
    expected = dict(reference.named_parameters())
    compared = {torch_name(name): parameter for name, parameter in ours.named_parameters()}
    assert compared.keys() == expected.keys()
    for name, parameter in compared.items():
        assert_same(parameter.grad, expected[name].grad)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(1)


def test_the_feed_forward_network_is_equation_2_computed_by_hand() -> None:
    network = FeedForward(d_model=2, d_ff=3)
    with torch.no_grad():
        network.linear1.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]))
        network.linear1.bias.copy_(torch.tensor([0.0, 0.5, 0.0]))
        network.linear2.weight.copy_(torch.tensor([[1.0, 2.0, 10.0], [0.0, 1.0, 10.0]]))
        network.linear2.bias.copy_(torch.tensor([0.0, -1.0]))
    assert_same(network(torch.tensor([[3.0, 1.0], [-1.0, -1.0]])), torch.tensor([[6.0, 0.5], [20.0, 19.0]]))


@both_norms
def test_the_encoder_layer_equals_torchs_with_all_gradients(norm: str) -> None:
    ours = EncoderLayer(architecture(norm))
    randomize(ours)
    reference = torch_layer(ours, norm)
    own_x, x = twins(B, S, D)
    out = ours(own_x, SRC_MASK[:, None, None, :])
    expected = reference(x, src_key_padding_mask=~SRC_MASK)
    assert_same(out, expected)
    upstream = torch.randn_like(out)
    out.backward(upstream)
    expected.backward(upstream)
    assert_same(own_x.grad, x.grad)
    assert_same_gradients(ours, reference)


@both_norms
def test_the_decoder_layer_equals_torchs_with_all_gradients(norm: str) -> None:
    ours = DecoderLayer(architecture(norm))
    randomize(ours)
    reference = torch_layer(ours, norm)
    (own_x, x), (own_memory, memory) = twins(B, T, D), twins(B, S, D)
    out = ours(own_x, own_memory, SRC_MASK[:, None, None, :])
    expected = reference(x, memory, tgt_mask=FORBIDDEN_FUTURE, memory_key_padding_mask=~SRC_MASK)
    assert_same(out, expected)
    upstream = torch.randn_like(out)
    out.backward(upstream)
    expected.backward(upstream)
    assert_same(own_x.grad, x.grad)
    assert_same(own_memory.grad, memory.grad)
    assert_same_gradients(ours, reference)


@both_norms
def test_dropout_acts_on_each_sublayers_output_before_the_residual_sum(norm: str) -> None:
    x = torch.randn(B, S, D)
    layer = EncoderLayer(architecture(norm, dropout=0.5))
    randomize(layer)
    first, second = cast(Iterable[Residual], layer.residuals)
    dropped: list[Tensor] = []
    for residual in (first, second):
        residual.dropout.register_forward_hook(lambda _module, _inputs, out: dropped.append(out))
    out = layer(x, None)
    for values in dropped:
        assert 0.3 < (values == 0).float().mean() < 0.7
    if norm == "post":
        assert_same(out, second.norm(first.norm(x + dropped[0]) + dropped[1]))
    else:
        assert_same(out, x + dropped[0] + dropped[1])


@pytest.mark.parametrize("kind", ACTIVATIONS)
def test_the_architecture_decides_the_network(kind: str) -> None:
    network = EncoderLayer(architecture("pre", feed_forward=kind)).feed_forward
    randomize(network)
    x = torch.randn(3, D)
    inner = network.linear1(x)
    expected = {
        "relu": inner.clamp(min=0),
        "gelu": nn.functional.gelu(inner),
        "silu": inner * inner.sigmoid(),
    }
    assert_same(network(x), network.linear2(expected[kind]))
