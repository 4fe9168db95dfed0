import math
import subprocess
import sys
from functools import partial

import pytest
import torch
from conftest import training_settings
from torch import nn

from mtformer.config import ResolvedTraining
from mtformer.training.optimizer import learning_rate, make_optimizers

rate_at = partial(learning_rate, warmup_share=0.1)


@pytest.mark.parametrize(
    ("schedule", "step", "progress", "expected"),
    [
        ("linear", 1, 0.0, 0.25),
        ("linear", 2, 0.02, 0.49),  # 2/4 · 0.98
        ("linear", 4, 0.06, 0.94),
        ("linear", 41, 0.8, 0.2),
        ("linear", 51, 1.0, 0.0),
        ("linear", 56, 1.1, 0.0),
        ("cosine", 1, 0.0, 0.25),
        ("cosine", 21, 1 / 3, 0.75),  # (1 + cos 60°) / 2
        ("cosine", 26, 0.5, 0.5),
        ("cosine", 51, 1.0, 0.0),
        ("cosine", 66, 1.3, 0.0),
        ("constant", 2, 0.02, 0.5),
        ("constant", 51, 1.0, 1.0),
        ("inverse_sqrt", 1, 0.0, 0.25),
        ("inverse_sqrt", 4, 0.06, 1.0),
        ("inverse_sqrt", 16, 0.3, 0.5),
        ("inverse_sqrt", 64, 1.0, 0.25),
    ],
)
def test_schedules_with_four_steps_of_warmup(schedule: str, step: int, progress: float, expected: float) -> None:
    rate = rate_at(step, progress, schedule=schedule, peak=1.0, warmup_steps=4)
    assert rate == pytest.approx(expected, abs=1e-12)
    assert rate_at(step, progress, schedule=schedule, peak=3e-4, warmup_steps=4) == pytest.approx(3e-4 * rate)


@pytest.mark.parametrize(
    ("schedule", "step", "progress", "expected"),
    [
        ("constant", 1, 0.0, 0.0025),
        ("constant", 3, 0.05, 0.5),  # half of the tenth
        ("constant", 30, 0.05, 0.5),
        ("constant", 300, 0.05, 0.75),  # fast enough for the steps to come first
        ("constant", 5, 0.1, 1.0),
        ("linear", 5, 0.1, 0.9),
        ("cosine", 5, 0.5, 0.5),
        ("inverse_sqrt", 5, 0.1, 1.0),
        ("inverse_sqrt", 400, 0.5, 1.0),  # holds its peak until equation 3 does
        ("inverse_sqrt", 1_600, 1.0, 0.5),
    ],
)
def test_a_warmup_of_400_steps_ends_with_the_first_tenth_of_the_run_if_not_before(
    schedule: str, step: int, progress: float, expected: float
) -> None:
    rate = rate_at(step, progress, schedule=schedule, peak=1.0, warmup_steps=400)
    assert rate == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("schedule", "step", "progress", "expected"),
    [("linear", 1, 0.0, 1.0), ("cosine", 1, 0.0, 1.0), ("inverse_sqrt", 1, 0.0, 1.0), ("inverse_sqrt", 4, 0.5, 0.5)],
)
def test_without_warmup_the_first_update_has_the_peak(
    schedule: str, step: int, progress: float, expected: float
) -> None:
    assert rate_at(step, progress, schedule=schedule, peak=1.0, warmup_steps=0) == pytest.approx(expected)


@pytest.mark.parametrize("step", [1, 17, 3_999, 4_000, 4_001, 100_000])
def test_inverse_sqrt_is_equation_3_of_the_paper(step: int) -> None:
    d_model, warmup_steps = 512, 4_000
    paper = d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)
    peak = (d_model * warmup_steps) ** -0.5
    ours = rate_at(step, step / 1e6, schedule="inverse_sqrt", peak=peak, warmup_steps=warmup_steps)
    assert ours == pytest.approx(paper, rel=1e-12)


def updated(config: ResolvedTraining, *gradients: float) -> dict[str, torch.Tensor]:
    """Return the parameters of a small model, all 1 at first, after updates with the same gradient everywhere."""
    model = nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3), nn.Embedding(5, 3))
    for parameter in model.parameters():
        nn.init.ones_(parameter)
    [optimizer] = make_optimizers(model, config)
    for group in optimizer.param_groups:
        group["lr"] = 0.1
    for gradient in gradients:
        for parameter in model.parameters():
            parameter.grad = torch.full_like(parameter, gradient)
        optimizer.step()
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def test_weight_decay_pulls_on_matrices_only() -> None:
    for name, parameter in updated(training_settings(weight_decay=0.5), 0.0).items():
        expected = 1 - 0.1 * 0.5 if name in ("0.weight", "2.weight") else 1.0
        assert torch.allclose(parameter, torch.full_like(parameter, expected)), name


@pytest.mark.parametrize("optimizer", ["adam", "adamw"])
def test_updates_are_those_of_adam_with_the_constants_of_the_paper(optimizer: str) -> None:
    config = training_settings(optimizer=optimizer, weight_decay=0.5 if optimizer == "adam" else 0.0)
    # Gradients 2 and 0: the moments are 0.2 and 0.08, then 0.18 and 0.0784, and are divided by 1 - β^t.
    second = (0.18 / (1 - 0.9**2)) / math.sqrt(0.0784 / (1 - 0.98**2))
    for name, parameter in updated(config, 2.0, 0.0).items():
        expected = torch.full_like(parameter, 1 - 0.1 * (1 + second))
        assert torch.allclose(parameter, expected, atol=1e-6), name


def test_epsilon_is_that_of_the_paper() -> None:
    # With one gradient g the update is the learning rate times g / (|g| + ε): half of it where g is ε itself.
    for parameter in updated(training_settings(weight_decay=0.0), 1e-9).values():
        assert torch.allclose(parameter, torch.full_like(parameter, 0.95), atol=1e-4)


def layered_model() -> nn.ModuleDict:
    return nn.ModuleDict({"embedding": nn.Embedding(50, 12), "layers": nn.Linear(12, 30)})


def test_muon_makes_the_updates_of_the_layers_matrices_orthogonal_and_as_large_as_those_of_adamw() -> None:
    torch.manual_seed(1)
    model = layered_model()
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    gradients = {name: torch.randn_like(parameter) for name, parameter in before.items()}
    for optimizer in make_optimizers(model, training_settings(optimizer="muon", weight_decay=0.0)):
        for group in optimizer.param_groups:
            group["lr"] = 0.01
        for name, parameter in model.named_parameters():
            parameter.grad = gradients[name].clone()
        optimizer.step()
    moves = {name: parameter.detach() - before[name] for name, parameter in model.named_parameters()}
    matrix = moves.pop("layers.weight")
    # Five steps of Newton-Schulz bring singular values near 1 (Jordan et al. 2024); times 0.2 · √30 (Liu et al. 2025).
    singular_values = torch.linalg.svdvals(matrix) / (0.01 * 0.2 * math.sqrt(30))
    assert singular_values.min() > 0.6
    assert singular_values.max() < 1.3
    u, _, v = torch.linalg.svd(gradients["layers.weight"], full_matrices=False)
    assert torch.cosine_similarity(-matrix.flatten(), (u @ v).flatten(), dim=0) > 0.95
    for name, move in moves.items():  # the first update of Adam is the learning rate
        assert torch.allclose(move, -0.01 * gradients[name].sign(), atol=1e-5), name


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "muon"])
def test_frozen_parameters_are_left_to_no_optimizer(optimizer: str) -> None:
    model = layered_model()
    model["layers"].requires_grad_(False)
    optimizers = make_optimizers(model, training_settings(optimizer=optimizer))
    held = {id(parameter) for o in optimizers for group in o.param_groups for parameter in group["params"]}
    assert held == {id(parameter) for parameter in model["embedding"].parameters()}


@pytest.mark.slow
def test_optimizers_do_not_import_torchs_compiler() -> None:
    code = """
import sys
import torch
from mtformer.config import ResolvedTraining
from mtformer.training.optimizer import make_optimizers

model = torch.nn.ModuleDict({"layers": torch.nn.Linear(2, 2)})
model["layers"](torch.ones(1, 2)).sum().backward()
settings = ResolvedTraining.model_construct(weight_decay=0.0, precision="fp32")
for name in ("adam", "adamw", "muon"):
    for optimizer in make_optimizers(model, settings.model_copy(update={"optimizer": name})):
        optimizer.step()
        optimizer.zero_grad()
sys.exit("torch._dynamo" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
