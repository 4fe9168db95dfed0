"""Averages of weights, while training and of what training has left."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from conftest import Project, make_project
from torch import Tensor, nn

from mtformer.bundle.format import Bundle, load_bundle, save_bundle
from mtformer.model.transformer import Transformer
from mtformer.model.weights import weights
from mtformer.runs.checkpoints import list_checkpoints, load_checkpoint, model_weights, step_of
from mtformer.training.ema import WeightAverage


def test_the_moving_average_is_its_formula() -> None:
    model = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(model.weight)
    average = WeightAverage(model, 0.5)
    expected = 0.0
    for step, value in enumerate([1.0, 5.0, -2.0], 1):
        nn.init.constant_(model.weight, value)
        average.update(step)
        decay = min(0.5, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * value
    assert average.tensors["weight"].item() == pytest.approx(expected)
    with average.in_place():
        assert model.weight.item() == pytest.approx(expected)
    assert model.weight.item() == -2.0
    assert average.tensors["weight"].item() == pytest.approx(expected)


def test_an_average_is_loaded_by_name_in_whatever_order() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    average = WeightAverage(model, 0.9)
    saved = {name: torch.full_like(tensor, i) for i, (name, tensor) in enumerate(average.tensors.items())}
    average.load(dict(reversed(saved.items())))
    assert all(torch.equal(average.tensors[name], tensor) for name, tensor in saved.items())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A run with its last three checkpoints."""
    project = make_project(
        tmp_path_factory.mktemp("run"),
        max_steps=60,
        validate_every=5,
        keep_last=3,
        early_stopping_patience=None,
        early_stopping_metric="loss",
    )
    result = project.mtformer("train", project.config)
    assert result.status == 0, result.stderr
    return project


def mean(models: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    return {name: torch.stack([model[name] for model in models]).mean(dim=0) for name in models[0]}


def assert_close(ours: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert ours.keys() == expected.keys()
    for name, tensor in ours.items():
        torch.testing.assert_close(tensor, expected[name], rtol=1e-5, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("choice", [[], ["--last", "2"]], ids=str)
def test_the_average_of_a_runs_checkpoints_is_a_model_that_translates(
    run: Project, choice: list[str], tmp_path: Path
) -> None:
    result = run.mtformer("average", "runs/config", *choice, "--output", tmp_path / "mean.safetensors")
    assert (result.status, result.stdout) == (0, f"{tmp_path / 'mean.safetensors'}\n"), result.stderr
    chosen = list_checkpoints(run.folder / "runs/config/checkpoints")[: 2 if choice else 3]
    assert ", ".join(f"step {step_of(path)}" for path in sorted(chosen)) in result.stderr
    expected = mean([model_weights(path) for path in chosen])
    assert_close(weights(load_bundle(tmp_path / "mean.safetensors").model), expected)
    assert run.mtformer("translate", "--model", tmp_path / "mean.safetensors", "the red house").status == 0


def test_bundles_are_averaged(run: Project, tmp_path: Path) -> None:
    bundle = run.folder / "runs/config/model.safetensors"
    run.mtformer("average", "runs/config", "--last", "1", "--output", tmp_path / "last.safetensors")
    result = run.mtformer("average", bundle, tmp_path / "last.safetensors", "--output", tmp_path / "both.safetensors")
    assert result.status == 0, result.stderr
    models = [weights(load_bundle(path).model) for path in (bundle, tmp_path / "last.safetensors")]
    assert_close(weights(load_bundle(tmp_path / "both.safetensors").model), mean(models))


def test_only_models_of_different_seeds_are_warned_of(run: Project, tmp_path: Path) -> None:
    bundle = load_bundle(run.folder / "runs/config/model.safetensors")
    origin = bundle.header.provenance
    other_seed = {"config": {"training": {"seed": origin["config"]["training"]["seed"] + 1}}}
    for given, warned in (
        (other_seed, True),
        (other_seed | {"fingerprints": {"init_from": bundle.digest}}, False),
        ({}, False),
        ({"config": "none", "fingerprints": 1}, False),
    ):
        header = bundle.header.model_copy(update={"provenance": origin | given})
        save_bundle(tmp_path / "other.safetensors", replace(bundle, header=header))
        paths, output = ("runs/config/model.safetensors", tmp_path / "other.safetensors"), tmp_path / "mean.safetensors"
        output.unlink(missing_ok=True)
        result = run.mtformer("average", *paths, "--output", output)
        told = f"{paths[1]} and {paths[0]} were initialized with different seeds"
        assert (result.status, told in result.stderr) == (0, warned)


def test_with_a_moving_average_it_is_that_which_is_averaged(tmp_path: Path) -> None:
    project = make_project(tmp_path, max_steps=6, checkpoint_every=3, ema_decay=0.9)
    assert project.mtformer("train", project.config).status == 0
    checkpoints = list_checkpoints(tmp_path / "runs/config/checkpoints")
    assert len(checkpoints) == 2
    for path in checkpoints:
        tensors = load_checkpoint(path).tensors
        assert all(torch.equal(tensor, tensors[f"average.{name}"]) for name, tensor in model_weights(path).items())


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["runs/config", "--last", "9"], "has 3 checkpoints, not 9; training.keep_last"),
        (["runs"], "runs has no checkpoints: name the folder of a run"),
        (["runs/config", "runs/config"], "or bundles, such as runs/config/model.safetensors"),
        (["runs/config/model.safetensors", "runs/config"], "or bundles, such as runs/config/model.safetensors"),
        (["runs/config/model.safetensors", "--last", "1"], "give its folder"),
        (["runs/nothing"], "there is no model at runs/nothing"),
    ],
)
def test_what_cannot_be_averaged_is_told(run: Project, arguments: list[str], told: str) -> None:
    result = run.mtformer("average", *arguments, "--output", "x.safetensors")
    assert result.status == 2
    assert told in result.stderr
    assert not (run.folder / "x.safetensors").exists()


def test_checkpoints_of_another_model_than_the_bundle_have_no_average(run: Project, tmp_path: Path) -> None:
    folder = shutil.copytree(run.folder / "runs/config", tmp_path / "run")
    bundle = load_bundle(folder / "model.safetensors")
    narrow = bundle.header.architecture.model_copy(update={"d_ff": 8})
    header = bundle.header.model_copy(update={"architecture": narrow})
    save_bundle(folder / "model.safetensors", Bundle(Transformer(narrow), bundle.tokenizer, header))
    result = run.mtformer("average", folder, "--output", tmp_path / "x.safetensors")
    assert result.status == 2
    newest = folder / "checkpoints" / "step-000060"
    assert f"{newest} and {folder / 'model.safetensors'} are of different models: " in result.stderr


def test_bundles_of_different_directions_have_no_average(run: Project, tmp_path: Path) -> None:
    bundle = load_bundle(run.folder / "runs/config/model.safetensors")
    header = bundle.header.model_copy(update={"src_lang": "de", "tgt_lang": "en"})
    save_bundle(tmp_path / "reverse.safetensors", replace(bundle, header=header))
    bundles = (run.folder / "runs/config/model.safetensors", tmp_path / "reverse.safetensors")
    result = run.mtformer("average", *bundles, "--output", tmp_path / "x.safetensors")
    assert result.status == 2
    assert "reverse.safetensors translates de-en, and " in result.stderr


def test_bundles_with_other_pieces_have_no_average(run: Project, trained: Project, tmp_path: Path) -> None:
    bundles = [project.folder / "runs/config/model.safetensors" for project in (run, trained)]
    other = make_project(tmp_path, n_pairs=50, max_steps=1)
    assert other.mtformer("train", other.config, "--set", "tokenizer.vocab_size=300").status == 0
    bundles[1] = tmp_path / "runs/config/model.safetensors"
    result = run.mtformer("average", *bundles, "--output", tmp_path / "x.safetensors")
    assert result.status == 2
    assert "have different tokenizers" in result.stderr
