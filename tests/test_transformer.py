"""The whole Transformer with its positions, embeddings, initialization and dropout."""

import math
from itertools import product
from typing import Any

import pytest
import torch
from test_layers import assert_same, randomize, torch_layer
from torch import Tensor, nn

from mtformer.config import ModelConfig
from mtformer.model.architecture import POSITIONS
from mtformer.model.dropout import Dropout
from mtformer.model.layers import DecoderLayer, EncoderLayer
from mtformer.model.positions import LearnedPositions, SinusoidalPositions, marian_table, rotate, sinusoidal_table
from mtformer.model.transformer import Transformer

V_SRC, V_TGT, D, F, MAX_LENGTH = 11, 13, 16, 24, 4
SRC = torch.tensor([[4, 5, 6, 7, 3], [8, 3, 0, 0, 0], [9, 10, 4, 3, 0]])
SRC_MASK = SRC != 0
TGT_IN = torch.tensor([[2, 4, 5, 6, 7, 8], [2, 9, 10, 0, 0, 0], [2, 11, 12, 4, 5, 0]])

both_norms = pytest.mark.parametrize("norm", ["post", "pre"])
all_positions = pytest.mark.parametrize("positions", POSITIONS)


def make_model(*, joint: bool = False, **config: Any) -> Transformer:
    """Build a small model in evaluation mode; learned positions are fewer than the pieces of a row."""
    values = {"d_model": D, "n_heads": 4, "d_ff": F, "n_encoder_layers": 2, "n_decoder_layers": 2, **config}
    src_vocab_size = V_TGT if joint else V_SRC
    of_config = {key: values[key] for key in values if key in ModelConfig.model_fields}
    architecture = ModelConfig.model_validate(of_config).architecture(
        src_vocab_size=src_vocab_size, tgt_vocab_size=V_TGT, joint=joint, max_length=MAX_LENGTH
    )
    others = {key: values[key] for key in values if key not in of_config}
    return Transformer(architecture.model_copy(update=others)).eval()


def sinusoid(position: int, dimension: int, d_model: int) -> float:
    angle = position / 10_000 ** (2 * (dimension // 2) / d_model)
    return math.cos(angle) if dimension % 2 else math.sin(angle)


def final_norm(x: Tensor, norm: nn.Module) -> Tensor:
    assert isinstance(norm, nn.LayerNorm)
    return nn.functional.layer_norm(x, (D,), norm.weight, norm.bias)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(1)


@both_norms
def test_the_model_equals_one_built_of_torchs_layers(norm: str) -> None:
    model = make_model(norm=norm)
    randomize(model)
    pe = torch.tensor([[sinusoid(t, i, D) for i in range(D)] for t in range(TGT_IN.size(1))])

    memory = model.src_embedding.weight[SRC] * 4.0 + pe[: SRC.size(1)]  # 4 = √D
    for layer in model.encoder_layers:
        assert isinstance(layer, EncoderLayer)
        memory = torch_layer(layer, norm)(memory, src_key_padding_mask=~SRC_MASK)
    hidden = model.tgt_embedding.weight[TGT_IN] * 4.0 + pe
    if norm == "pre":
        memory = final_norm(memory, model.encoder_norm)
    forbidden = torch.ones(6, 6, dtype=torch.bool).triu(1)
    for layer in model.decoder_layers:
        assert isinstance(layer, DecoderLayer)
        reference = torch_layer(layer, norm)
        hidden = reference(hidden, memory, tgt_mask=forbidden, memory_key_padding_mask=~SRC_MASK)
    if norm == "pre":
        hidden = final_norm(hidden, model.decoder_norm)

    out = model(SRC, SRC_MASK, TGT_IN)
    assert_same(out, hidden)
    assert_same(model.project(out), hidden @ model.tgt_embedding.weight.T)


@both_norms
@all_positions
def test_a_later_target_piece_never_changes_an_earlier_output(norm: str, positions: str) -> None:
    model = make_model(norm=norm, positions=positions)
    before = model(SRC, SRC_MASK, TGT_IN)
    for t in range(1, TGT_IN.size(1)):
        changed = TGT_IN.clone()
        changed[:, t] = (changed[:, t] + 1) % V_TGT
        after = model(SRC, SRC_MASK, changed)
        torch.testing.assert_close(after[:, :t], before[:, :t], rtol=0, atol=1e-6)
        assert ((after[:, t] - before[:, t]).abs().amax(dim=-1) > 1e-3).all()


@both_norms
def test_padding_and_batch_mates_never_change_an_output(norm: str) -> None:
    model = make_model(norm=norm)
    garbage = torch.cat([SRC.masked_fill(~SRC_MASK, 7), torch.full((3, 4), 9)], dim=1)  # masked, whatever it holds
    mask = nn.functional.pad(SRC_MASK, (0, 4))
    memory, hidden = model.encode(garbage, mask), model(garbage, mask, TGT_IN)
    for row, length in enumerate(SRC_MASK.sum(dim=1).tolist()):
        alone, all_real = SRC[row : row + 1, :length], torch.ones(1, length, dtype=torch.bool)
        assert_same(memory[row, :length], model.encode(alone, all_real)[0])
        assert_same(hidden[row], model(alone, all_real, TGT_IN[row : row + 1])[0])


def test_sinusoids_are_the_papers_formula() -> None:
    table = SinusoidalPositions(d_model=D, n_positions=512)(0, 512)
    for position, dimension in product((0, 1, 2, 77, 511), range(D)):
        assert table[position, dimension].item() == pytest.approx(sinusoid(position, dimension, D), abs=1e-4)


def test_an_odd_width_has_no_sinusoids() -> None:
    with pytest.raises(ValueError, match=r"d_model \(5\) is odd"):
        sinusoidal_table(4, 5)


def test_the_narrowest_sinusoids_of_tensor2tensor_have_one_rate() -> None:
    assert marian_table(3, 2).tolist() == [pytest.approx([math.sin(t), math.cos(t)], abs=1e-6) for t in range(3)]


def test_the_sinusoidal_table_grows_when_a_longer_text_comes() -> None:
    positions = SinusoidalPositions(d_model=D, n_positions=4)
    with torch.inference_mode():
        grown = positions(3, 7)
    assert grown.shape == (7, D)
    for offset, dimension in product(range(7), range(D)):
        assert grown[offset, dimension].item() == pytest.approx(sinusoid(3 + offset, dimension, D), abs=1e-5)
    x = torch.randn(7, D, requires_grad=True)  # and then serves training too, though it grew in inference mode
    (x * positions(3, 7)).sum().backward()
    assert_same(x.grad, grown)
    assert not list(positions.state_dict())


def test_rotations_are_multiplications_of_complex_numbers() -> None:
    x = torch.randn(3, 2, 5, 8)  # (B, H, T, Dh)
    as_complex = torch.complex(x[..., :4], x[..., 4:])
    angles = torch.tensor([[position / 10_000 ** (i / 4) for i in range(4)] for position in range(3, 8)])
    turned = as_complex * torch.polar(torch.ones(5, 4), angles)
    assert_same(rotate(x, start=3), torch.cat([turned.real, turned.imag], dim=-1))


def test_products_of_turned_queries_and_keys_depend_on_their_distance_alone() -> None:
    q, k = torch.randn(1, 1, 1, 8), torch.randn(1, 1, 1, 8)

    def product(q_position: int, k_position: int) -> float:
        return (rotate(q, q_position) * rotate(k, k_position)).sum().item()

    assert product(3, 1) == pytest.approx(product(103, 101), abs=1e-4)
    assert product(3, 1) != pytest.approx(product(1, 3), abs=1e-3)
    assert product(0, 0) == pytest.approx((q * k).sum().item(), abs=1e-6)


def test_rotary_positions_tell_the_order_of_the_source() -> None:
    model = make_model(positions="rotary")
    swapped = SRC.clone()
    swapped[0, :2] = SRC[0, [1, 0]]
    memory, other = model.encode(SRC, SRC_MASK), model.encode(swapped, SRC_MASK)
    assert (memory[0, [1, 0]] - other[0, :2]).abs().max() > 1e-3


@torch.inference_mode()
def test_without_positions_the_source_is_a_set_but_the_target_is_not() -> None:
    model = make_model(positions="none")
    swapped, memory = SRC[:, [1, 0, 2, 3, 4]], model.encode(SRC, SRC_MASK)
    assert_same(model.encode(swapped, SRC_MASK[:, [1, 0, 2, 3, 4]])[:, [1, 0, 2, 3, 4]], memory)
    other = TGT_IN[:, [0, 2, 1, 3, 4, 5]]  # the causal mask gives the prefixes, and so the order, away
    assert (
        model.decode(TGT_IN, memory, SRC_MASK)[0, 3] - model.decode(other, memory, SRC_MASK)[0, 3]
    ).abs().max() > 1e-3


def test_learned_positions_are_rows_of_the_weight_and_the_last_serves_all_later_ones() -> None:
    positions = LearnedPositions(d_model=D, n_positions=4)
    nn.init.normal_(positions.weight)
    assert torch.equal(positions(1, 5), positions.weight[[1, 2, 3, 3, 3]])
    positions(2, 2).sum().backward()
    assert positions.weight.grad is not None
    assert positions.weight.grad.abs().sum(dim=1).tolist() == [0, 0, D, D]


@pytest.mark.parametrize(
    ("tied", "joint", "n_vocabulary_rows"),
    [(True, True, V_TGT), (True, False, V_SRC + V_TGT), (False, True, 3 * V_TGT), (False, False, V_SRC + 2 * V_TGT)],
)
@both_norms
@all_positions
def test_embeddings_are_shared_as_told_and_the_parameters_add_up(
    tied: bool, joint: bool, n_vocabulary_rows: int, norm: str, positions: str
) -> None:
    model = make_model(joint=joint, tie_embeddings=tied, norm=norm, positions=positions)
    assert (model.output.weight is model.tgt_embedding.weight) == tied
    assert (model.src_embedding.weight is model.tgt_embedding.weight) == (tied and joint)
    attention, feed_forward, layer_norm = 4 * (D * D + D), 2 * D * F + F + D, 2 * D
    expected = n_vocabulary_rows * D
    expected += 2 * (attention + feed_forward + 2 * layer_norm)  # encoder layers
    expected += 2 * (2 * attention + feed_forward + 3 * layer_norm)
    expected += 2 * layer_norm if norm == "pre" else 0
    expected += 2 * MAX_LENGTH * D if positions == "learned" else 0
    assert sum(parameter.numel() for parameter in model.parameters()) == expected


def test_fresh_weights_are_xavier_uniform_and_embeddings_have_unit_variance_once_scaled() -> None:
    model = make_model(d_model=64, n_heads=4, d_ff=256, tie_embeddings=False, positions="learned")
    layer = model.decoder_layers[0]
    assert isinstance(layer, DecoderLayer)
    square = math.sqrt(6 / (64 + 64))
    matrices = [
        *((matrix, square) for matrix in layer.cross_attention.qkv_proj.weight.chunk(3)),  # W^Q, W^K, W^V
        (layer.cross_attention.out_proj.weight, square),
        (layer.feed_forward.linear1.weight, math.sqrt(6 / (64 + 256))),
        (layer.feed_forward.linear2.weight, math.sqrt(6 / (256 + 64))),
    ]
    for matrix, bound in matrices:
        assert 0.99 * bound < matrix.abs().max() <= bound
        assert matrix.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert (parameter == 0).all(), name
        elif "norm" in name:
            assert (parameter == 1).all(), name
        elif "embedding" in name or "positions" in name or name == "output.weight":
            assert parameter.std().item() * 8 == pytest.approx(1, rel=0.15), name  # 8 = √D


@pytest.mark.parametrize("p", [0.1, 0.25, 0.5, 0.9])
def test_dropout_drops_at_its_rate_and_keeps_the_mean(p: float) -> None:
    out = Dropout(p)(torch.ones(1000, 200))
    assert (out == 0).float().mean().item() == pytest.approx(p, abs=1 / 512 + 0.005)
    assert out.mean().item() == pytest.approx(1, abs=0.03)
    assert len(out.unique()) == 2


@pytest.mark.parametrize(("p", "kept_value"), [(0.001, 1.0), (0.003, 256 / 255), (0.999, 256.0)])
def test_dropout_near_zero_and_one_goes_to_the_nearest_of_256_rates(p: float, kept_value: float) -> None:
    out = Dropout(p)(torch.ones(1000, 200))
    assert out.isfinite().all()
    assert out.max().item() == pytest.approx(kept_value)
    assert out.mean().item() == pytest.approx(1, abs=0.15)


def test_dropout_is_off_in_evaluation_and_at_rate_zero() -> None:
    x = torch.randn(5, 7)
    assert torch.equal(Dropout(0.5).eval()(x), x)
    assert torch.equal(Dropout(0.0)(x), x)


def test_dropout_masks_differ_from_call_to_call_and_follow_torchs_seed() -> None:
    dropout, x = Dropout(0.5), torch.ones(100)
    torch.manual_seed(5)
    first, second = dropout(x), dropout(x)
    torch.manual_seed(5)
    assert torch.equal(dropout(x), first)
    assert torch.equal(dropout(x), second)
    assert not torch.equal(first, second)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_gradient_of_dropout_is_its_scaled_mask(dtype: torch.dtype) -> None:
    x = torch.full((64, 8), 3.0, dtype=dtype, requires_grad=True)
    out: Tensor = Dropout(0.25)(x)
    out.sum().backward()
    assert out.dtype == dtype and x.grad is not None
    torch.testing.assert_close(x.grad, torch.where(out == 0, 0.0, 4 / 3).to(dtype))


@pytest.mark.parametrize("p", [-0.1, 1.0, 1.5, math.nan])
def test_a_dropout_probability_out_of_range_is_refused(p: float) -> None:
    with pytest.raises(ValueError, match="at least 0 and less than 1"):
        Dropout(p)
