"""Muon computes the equations of Jordan et al. 2024 and Liu et al. 2025, and its state is that of torch's own."""

import copy
import math
from collections.abc import Sequence

import pytest
import torch
from conftest import training_settings
from torch import Tensor, nn
from torch.testing import assert_close

from mtformer.config import ModelConfig
from mtformer.model.lora import stacked_matrices
from mtformer.model.transformer import Transformer
from mtformer.training.muon import Muon, orthogonalize
from mtformer.training.optimizer import make_optimizers

RATE, DECAY = 0.02, 0.1
SHAPES = [(6, 6), (12, 5), (5, 12), (6, 6), (1, 7)]


def draw(shapes: Sequence[tuple[int, int]], seed: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator) for shape in shapes]


def parameters_of(tensors: Sequence[Tensor]) -> list[nn.Parameter]:
    return [nn.Parameter(tensor.clone()) for tensor in tensors]


def make_muon(parameters: Sequence[nn.Parameter], n_matrices: int = 1) -> Muon:
    muon = Muon(dict.fromkeys(parameters, n_matrices), weight_decay=DECAY)
    muon.param_groups[0]["lr"] = RATE
    return muon


def make_torch_muon(parameters: Sequence[nn.Parameter]) -> torch.optim.Muon:
    return torch.optim.Muon(parameters, lr=RATE, weight_decay=DECAY, adjust_lr_fn="match_rms_adamw")


def step(optimizer: torch.optim.Optimizer, gradients: Sequence[Tensor]) -> None:
    for parameter, gradient in zip(optimizer.param_groups[0]["params"], gradients, strict=True):
        parameter.grad = gradient.clone()
    optimizer.step()


def by_the_equations(start: Tensor, gradients: Sequence[Tensor]) -> Tensor:
    """Return a matrix after updates with ``gradients``, in float64."""
    weight, momentum = start.double(), torch.zeros_like(start, dtype=torch.float64)
    for given in gradients:
        gradient = given.double()
        momentum = 0.95 * momentum + 0.05 * gradient
        x = 0.05 * gradient + 0.95 * momentum
        x = x / max(x.pow(2).sum().sqrt().item(), 1e-7)
        for _ in range(5):
            a = x @ x.T
            x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
        weight = weight - RATE * DECAY * weight - RATE * 0.2 * math.sqrt(max(x.shape)) * x
    return weight.float()


@pytest.mark.parametrize("most_elements", [1, 100, 1 << 24])
def test_updates_are_those_of_the_equations(most_elements: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mtformer.training.muon._MAX_ELEMENTS", most_elements)
    starts, gradients = draw(SHAPES, 1), [draw(SHAPES, seed) for seed in (2, 3, 4)]
    parameters = parameters_of(starts)
    muon = make_muon(parameters)
    for given in gradients:
        step(muon, given)
    for parameter, start, *given in zip(parameters, starts, *gradients, strict=True):
        assert_close(parameter.detach(), by_the_equations(start, given), rtol=0, atol=1e-5)


def test_in_bfloat16_updates_are_those_of_torch_and_only_the_products_are_rounded() -> None:
    ours, theirs = parameters_of(draw(SHAPES, 1)), parameters_of(draw(SHAPES, 1))
    muon = Muon(dict.fromkeys(ours, 1), weight_decay=DECAY, dtype=torch.bfloat16)
    muon.param_groups[0]["lr"] = RATE
    for optimizer in (muon, make_torch_muon(theirs)):
        step(optimizer, draw(SHAPES, 2))
    assert all(parameter.dtype == muon.state[parameter]["momentum_buffer"].dtype == torch.float32 for parameter in ours)
    assert_close(ours, theirs, rtol=0, atol=1e-3)


def test_matrices_stacked_in_a_weight_are_updated_as_if_each_were_alone() -> None:
    starts = draw([(4, 6)] * 3, 1)
    stacked, alone = parameters_of([torch.cat(starts)]), parameters_of(starts)
    together, apart = make_muon(stacked, 3), make_muon(alone)
    for seed in (2, 3):
        gradients = draw([(4, 6)] * 3, seed)
        step(together, [torch.cat(gradients)])
        step(apart, gradients)
    assert_close(stacked[0], torch.cat(list(alone)), rtol=0, atol=1e-6)


def make_model() -> Transformer:
    config = ModelConfig(d_model=8, n_heads=2, d_ff=12, n_encoder_layers=1, n_decoder_layers=1)
    return Transformer(config.architecture(src_vocab_size=20, tgt_vocab_size=20, joint=True, max_length=16))


def test_the_model_says_which_weights_stack_matrices() -> None:
    attentions = ["encoder_layers.0.self_attention"]
    attentions += [f"decoder_layers.0.{name}_attention" for name in ("self", "cross")]
    expected = {f"{name}.qkv_proj.weight": 3 for name in attentions}
    assert stacked_matrices(make_model()) == expected


def test_each_projection_of_a_model_gets_an_orthogonal_update_of_the_same_size() -> None:
    model = make_model()
    [_, muon] = make_optimizers(model, training_settings(optimizer="muon", weight_decay=0.0))
    muon.param_groups[0]["lr"] = RATE
    generator = torch.Generator().manual_seed(1)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator)
    weight = model.get_parameter("encoder_layers.0.self_attention.qkv_proj.weight")
    before = weight.detach().clone()
    assert weight.grad is not None
    weight.grad[:8] *= 1e-3  # the gradient of the queries is small beside that of the values
    muon.step()
    for matrix in (weight.detach() - before).chunk(3):
        singular_values = torch.linalg.svdvals(matrix) / (RATE * 0.2 * math.sqrt(8))
        assert singular_values.max() < 1.3
        assert singular_values.median() > 0.6


def test_weights_without_a_gradient_stay_as_they_are() -> None:
    parameters = parameters_of(draw(SHAPES, 1))
    before = [parameter.detach().clone() for parameter in parameters]
    muon = make_muon(parameters)
    parameters[0].grad = torch.ones_like(parameters[0])
    muon.step()
    assert [torch.equal(p, b) for p, b in zip(parameters, before, strict=True)] == [False, True, True, True, True]
    assert list(muon.state) == parameters[:1]


def test_a_gradient_of_zeros_moves_nothing_but_by_weight_decay() -> None:
    [parameter] = parameters_of([torch.ones(3, 4)])
    step(make_muon([parameter]), [torch.zeros(3, 4)])
    assert_close(parameter.detach(), torch.full((3, 4), 1 - RATE * DECAY))


def test_states_of_torch_can_be_loaded_and_ours_by_torch() -> None:
    starts, gradients = draw(SHAPES, 1), [draw(SHAPES, seed) for seed in (2, 3)]
    for first, second in ((make_torch_muon, make_muon), (make_muon, make_torch_muon)):
        parameters = parameters_of(starts)
        optimizer = first(parameters)
        step(optimizer, gradients[0])
        uninterrupted, resumed = copy.deepcopy(parameters), copy.deepcopy(parameters)
        expected, loaded = second(uninterrupted), second(resumed)
        for parameter, old in zip(uninterrupted, parameters, strict=True):
            expected.state[parameter] = copy.deepcopy(optimizer.state[old])
        loaded.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        for one in (expected, loaded):
            step(one, gradients[1])
        assert all(map(torch.equal, resumed, uninterrupted))
        assert [set(state) for state in loaded.state.values()] == [{"momentum_buffer"}] * len(SHAPES)


@pytest.mark.parametrize("shape", [(3, 8, 8), (3, 8, 20), (3, 20, 8)])
def test_orthogonalizing_brings_singular_values_near_one_and_keeps_the_directions(shape: tuple[int, int, int]) -> None:
    matrices = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    result = orthogonalize(matrices, (3.4445, -4.7750, 2.0315), 5)
    assert result.shape == matrices.shape
    u, singular_values, v = torch.linalg.svd(matrices, full_matrices=False)
    bases = u.mT @ result @ v.mT
    assert_close(bases, torch.diag_embed(bases.diagonal(dim1=1, dim2=2)), rtol=0, atol=1e-4)
    is_large = singular_values > 0.1 * singular_values[:, :1]
    assert bases.diagonal(dim1=1, dim2=2)[is_large].sub(1).abs().max() < 0.35
