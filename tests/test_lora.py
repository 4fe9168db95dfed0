"""Low-rank adapters: what they compute, what they train, their files, and the model that they belong to."""

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from conftest import Project, make_project
from faults import PowerCut, power_cut_before
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from test_kill import end_of
from test_layers import assert_same, randomize
from test_transformer import SRC, SRC_MASK, TGT_IN, make_model

from mtformer.bundle.adapter import load_adapted, load_adapter, save_adapter
from mtformer.bundle.format import load_bundle, save_bundle
from mtformer.config import load_config
from mtformer.engines.loading import load_model
from mtformer.engines.torch import TorchEngine
from mtformer.model import packing
from mtformer.model.inference import InferenceModel
from mtformer.model.lora import (
    LowRank,
    adapt,
    adapted,
    adapter_shapes,
    merged,
    stacked_matrices,
    trained_parameters,
)
from mtformer.model.transformer import Transformer
from mtformer.model.weights import weights
from mtformer.runs.checkpoints import model_weights, tensors_below
from mtformer.runs.folder import RunFolder
from mtformer.support.errors import UserError
from mtformer.training import run
from mtformer.training.ema import average_checkpoints
from mtformer.translate.translator import Translator

SETTINGS: dict[str, Any] = {
    "lora": {"rank": 4},
    "max_steps": 6,
    "learning_rate": 0.02,
    "warmup_steps": 0,
    "ema_decay": 0.5,
    "validate_every": 3,
    "checkpoint_every": 1,
    "early_stopping_metric": "loss",
}
TEXTS = ["the red house needs my old friend.", "my old friend likes the red house."]


def make_adapter_project(folder: Path, base: Path, **changes: Any) -> Project:
    """Make a project that trains an adapter of ``base`` on text whose sources and targets do not belong together."""
    project = make_project(folder, **{"n_pairs": 60, "init_from": str(base), **SETTINGS, **changes})
    project.config.write_text(project.config.read_text().replace("tokenizer:\n  vocab_size: 320\n", ""))
    for name in ("train.de", "valid.de"):
        lines = (folder / name).read_text().splitlines()
        (folder / name).write_text("".join(f"{line}\n" for line in reversed(lines)))
    return project


def run_of(project: Project) -> RunFolder:
    return RunFolder(project.folder / "runs" / "config")


def run_overrides(project: Project) -> list[str]:
    return [f"run.dir={project.folder / 'runs'}"]


def train(project: Project) -> RunFolder:
    run.train(load_config(project.config, run_overrides(project)))
    return run_of(project)


@pytest.fixture(scope="module")
def base(trained: Project) -> Path:
    return trained.folder / "runs" / "config" / "model.safetensors"


@pytest.fixture(scope="module")
def tuned(base: Path, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run that has trained an adapter."""
    return train(make_adapter_project(tmp_path_factory.mktemp("tuned"), base, keep_last=6))


def outputs(model: Transformer) -> torch.Tensor:
    with torch.inference_mode():
        return model.project(model.eval()(SRC, SRC_MASK, TGT_IN))


def adapted_model(**settings: Any) -> Transformer:
    """Return a model whose adapter has random weights."""
    torch.manual_seed(1)
    model = make_model(**settings)
    randomize(model)
    adapt(model, 3)
    for parameter in trained_parameters(model).values():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def test_one_matrix_by_hand() -> None:
    low_rank = LowRank(torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0], [0.0], [-1.0]]))
    assert low_rank(torch.tensor([[3.0, 4.0]])).tolist() == [[11.0, 0.0, -11.0]]


def test_stacked_matrices_have_an_adapter_each() -> None:
    down, up = torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[10.0], [100.0]])
    low_rank = LowRank(down, up, n_matrices=2)
    x = torch.tensor([[3.0, 4.0]])
    assert low_rank(x).tolist() == [[30.0, 400.0]]
    assert (low_rank(x, 0, 1).tolist(), low_rank(x, 1, 2).tolist()) == ([[30.0]], [[400.0]])


def test_a_fresh_adapter_changes_no_output() -> None:
    torch.manual_seed(1)
    model = make_model()
    before = outputs(model)
    adapt(model, 8)
    assert torch.equal(outputs(model), before)


@pytest.mark.parametrize("settings", [{}, {"positions": "learned"}, {"tie_embeddings": False}])
def test_merged_weights_compute_what_the_adapter_does(settings: dict[str, Any]) -> None:
    model = adapted_model(**settings)
    whole = merged(model)
    assert_same(outputs(whole), outputs(model))
    assert not torch.allclose(outputs(whole), outputs(make_model(**settings)), atol=0.1)
    assert whole.tgt_embedding.weight is model.tgt_embedding.weight
    assert weights(whole).keys() == weights(make_model(**settings)).keys()


@pytest.mark.parametrize("settings", [{}, {"norm": "post"}])
@torch.inference_mode()
def test_decoding_step_by_step_uses_the_adapter(settings: dict[str, Any]) -> None:
    model = adapted_model(**settings).eval()
    inference = InferenceModel(model)
    cache = inference.start(SRC, SRC_MASK)
    logits = [inference.step(TGT_IN[:, t], cache) for t in range(TGT_IN.size(1))]
    assert_same(torch.stack(logits, dim=1), outputs(model))


def test_muon_knows_the_matrices_that_adapters_stack() -> None:
    model = adapted_model()
    stacked = stacked_matrices(model)
    name = "encoder_layers.0.self_attention.qkv_proj"
    assert (stacked[f"{name}.weight"], stacked[f"{name}.adapter.down"], stacked[f"{name}.adapter.up"]) == (3, 3, 3)


def test_only_the_adapter_is_trained_and_saved(base: Path, tuned: RunFolder) -> None:
    names = load_adapter(tuned.adapter).weights.keys()
    assert tensors_below("model", end_of(tuned).tensors).keys() == names
    before, after = weights(load_bundle(base).model), weights(load_bundle(tuned.bundle).model)
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {name.replace("adapter.down", "weight") for name in names if name.endswith("down")}


def test_the_base_with_the_adapter_is_the_model_of_the_run(base: Path, tuned: RunFolder) -> None:
    ours, run_model = load_adapted(base, tuned.adapter), load_bundle(tuned.bundle)
    assert ours.header == run_model.header
    for name, weight in weights(run_model.model).items():
        assert torch.allclose(weights(ours.model)[name], weight, atol=1e-6), name
    assert load_bundle(base).digest not in (ours.digest, run_model.digest)


def test_adapters_share_one_base_in_a_process(base: Path, tuned: RunFolder, tmp_path: Path) -> None:
    adapter = load_adapter(tuned.adapter)
    save_adapter(tmp_path / "none", replace(adapter, weights={k: w * 0 for k, w in adapter.weights.items()}))
    loaded = load_model([base])
    models = [loaded, loaded.with_adapter(tuned.adapter), loaded.with_adapter(tmp_path / "none")]
    translators = list(map(Translator.load, models))
    expected = [line for [line] in Translator.load(tuned.bundle).translate(TEXTS)]
    plain, adapted, unchanged = (translator.translate(TEXTS) for translator in translators)
    assert [line.text for [line] in adapted] == [line.text for line in expected]
    assert adapted[0][0].score == pytest.approx(expected[0].score, abs=1e-5)
    assert plain[0][0].score == pytest.approx(unchanged[0][0].score, abs=1e-6)
    assert plain[0][0].score != pytest.approx(expected[0].score, abs=1e-3)
    assert len({each.digest for each in models}) == 3
    engines = [cast(TorchEngine, each.engine) for each in models]
    shared = [{name: id(weight) for name, weight in engine.model.named_parameters()} for engine in engines]
    assert all(shared[0].items() <= each.items() for each in shared[1:])
    alignments = Translator.load(loaded, adapter=tuned.adapter, alignments=True).translate(TEXTS)
    assert alignments[0][0].alignment is not None and alignments[0][0].text == expected[0].text
    explained = [each.explain(TEXTS[0]).target.text for each in (translators[1], Translator.load(tuned.bundle))]
    assert explained[0] == explained[1]


def test_what_is_packed_of_a_base_is_packed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = list[torch.Size]()

    def pack(weight: torch.Tensor, *_: object) -> packing.Linear:
        packed.append(weight.shape)
        return lambda x: x

    monkeypatch.setattr(packing, "pack", pack)
    model, packer = make_model(), packing.Packer("bf16")
    adapter = {name: each.data for name, each in trained_parameters(adapted_model()).items()}
    InferenceModel(model, packer)
    n_packed = len(packed)
    for _ in range(2):
        InferenceModel(adapted(model, adapter), packer)
    assert len(packed) == n_packed > 0


def test_an_ensemble_and_a_model_of_ctranslate2_take_no_adapter(base: Path, tuned: RunFolder) -> None:
    with pytest.raises(UserError, match="an adapter of one model, on torch"):
        load_model([base, tuned.bundle]).with_adapter(tuned.adapter)


def test_commands_take_an_adapter(base: Path, tuned: RunFolder, tmp_path: Path, trained: Project) -> None:
    project = Project(tmp_path, trained.config)
    scores = []
    (tmp_path / "pairs.tsv").write_text("the red house.\tdas rote Haus.\n")
    models: list[list[str | Path]] = [[tuned.bundle], [base, "--adapter", tuned.adapter], [base]]
    for model in models:
        result = project.mtformer("score", "--model", *model, "--engine", "torch", "--input", tmp_path / "pairs.tsv")
        assert result.status == 0, result.stderr
        scores.append(float(result.stdout))
    assert scores[0] == pytest.approx(scores[1], abs=1e-4)
    assert scores[0] != pytest.approx(scores[2], abs=1e-2)
    done = project.mtformer("merge", base, tuned.adapter, "--output", tmp_path / "merged.safetensors")
    assert done.status == 0, done.stderr
    assert load_bundle(tmp_path / "merged.safetensors").header == load_bundle(tuned.bundle).header


def test_an_adapter_in_use_leaves_its_file_alone(tuned: RunFolder, tmp_path: Path) -> None:
    path = tmp_path / "adapter.safetensors"
    path.write_bytes(tuned.adapter.read_bytes())
    adapter = load_adapter(path)
    before = {name: weight.clone() for name, weight in adapter.weights.items()}
    with path.open("r+b") as file:  # Windows would refuse it, as it refuses to replace the file
        file.write(bytes(path.stat().st_size))
    assert all(torch.equal(weight, before[name]) for name, weight in adapter.weights.items())


def test_an_adapter_of_another_model_is_refused_with_both_digests(tuned: RunFolder, tmp_path: Path) -> None:
    other = load_bundle(tuned.bundle)
    with pytest.raises(UserError) as refused:
        load_adapted(tuned.bundle, tuned.adapter)
    assert other.digest in str(refused.value)
    assert load_adapter(tuned.adapter).base in str(refused.value)
    assert "name the model of training.init_from" in str(refused.value)


def test_averaged_checkpoints_are_merged_with_the_base(base: Path, tuned: RunFolder, tmp_path: Path) -> None:
    average_checkpoints(tuned.path, tmp_path / "mean.safetensors", last=2)
    mean = weights(load_bundle(tmp_path / "mean.safetensors").model)
    both = [model_weights(tuned.checkpoints / f"step-{step:06d}") for step in (5, 6)]
    assert both[0].keys() == weights(load_bundle(base).model).keys()
    for name, weight in mean.items():
        assert torch.allclose(weight, (both[0][name] + both[1][name]) / 2, atol=1e-6), name


def test_a_run_that_loses_power_ends_with_the_same_adapter(base: Path, tmp_path: Path) -> None:
    whole = train(make_adapter_project(tmp_path / "whole", base))
    project = make_adapter_project(tmp_path / "killed", base)
    with pytest.raises(PowerCut), power_cut_before(187):
        train(project)
    assert 0 < end_of(run_of(project)).state["step"] < SETTINGS["max_steps"]
    for n in range(20, 140, 40):
        try:
            with power_cut_before(n):
                train(project)
        except PowerCut:
            continue
    killed = train(project)
    ours, theirs = end_of(killed), end_of(whole)
    assert all(torch.equal(tensor, theirs.tensors[name]) for name, tensor in ours.tensors.items())
    assert load_adapter(killed.adapter).header.scores == load_adapter(whole.adapter).header.scores
    for name, weight in load_adapter(killed.adapter).weights.items():
        assert torch.equal(weight, load_adapter(whole.adapter).weights[name])


def test_a_lost_adapter_is_written_again(base: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    project = make_adapter_project(tmp_path, base)
    folder = train(project)
    before = load_adapter(folder.adapter).weights
    folder.adapter.unlink()
    with caplog.at_level(logging.WARNING):
        train(project)
    after = load_adapter(folder.adapter).weights
    assert f"{folder.adapter} was missing or damaged: written again" in caplog.text
    assert list(folder.path.glob("*.damaged")) == []
    assert all(torch.equal(before[name], after[name]) for name in before)


def rewrite(path: Path, output: Path, **changes: Any) -> Path:
    """Write the adapter ``path`` with other tensors or metadata, whose digest is that of the original."""
    with safe_open(path, framework="pt") as file:
        metadata = dict(file.metadata())
    save_file(load_file(path) | changes.pop("tensors", {}), output, metadata | changes)
    return output


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"format": "mtformer-bundle-3"}, "not an adapter that this version"),
        ({"base": "0" * 64}, "not those that were written"),
        ({"tensors": {"model.more": torch.zeros(2, 2)}}, "not those that were written"),
    ],
)
def test_a_damaged_adapter_is_refused(tuned: RunFolder, tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError, match=told):
        load_adapter(rewrite(tuned.adapter, tmp_path / "damaged.safetensors", **changes))


def test_an_adapter_with_parameters_of_another_shape_is_refused(base: Path, tuned: RunFolder, tmp_path: Path) -> None:
    adapter = load_adapter(tuned.adapter)
    name = next(iter(adapter.weights))
    empty = {name: torch.zeros(shape) for name, shape in adapter_shapes(load_bundle(base).model, 0)}
    for wrong in ({**adapter.weights, name: torch.zeros(3, 3)}, empty):
        save_adapter(tmp_path / "wrong.safetensors", replace(adapter, weights=wrong))
        with pytest.raises(UserError, match="do not fit"):
            load_adapted(base, tmp_path / "wrong.safetensors")


def test_files_that_are_no_adapter_are_refused(base: Path, tmp_path: Path) -> None:
    (tmp_path / "text.safetensors").write_text("text")
    for path, told in (
        (base, "not an adapter that this version"),
        (tmp_path / "text.safetensors", "not an intact safetensors file"),
        (tmp_path / "missing.safetensors", "there is no adapter"),
        (base.parent, "is a folder: name the file of the adapter in it"),
    ):
        with pytest.raises(UserError, match=told):
            load_adapter(path)


def test_an_adapter_in_the_place_of_a_model_is_named(tuned: RunFolder) -> None:
    with pytest.raises(UserError, match="this is an adapter: name its model too"):
        load_bundle(tuned.adapter)


@pytest.mark.parametrize(
    ("training", "sets", "told"),
    [
        ({"init_from": None}, [], "lora without init_from"),
        ({"freeze": ["encoder"]}, [], "remove freeze"),
        ({"shard": True}, [], "lora with shard"),
        ({}, ["tokenizer={vocab_size: 330}"], "training.lora adds no tokens"),
    ],
)
def test_what_cannot_be_is_told(
    base: Path, tmp_path: Path, training: dict[str, Any], sets: list[str], told: str
) -> None:
    project = make_adapter_project(tmp_path, base, **training)
    result = project.mtformer("train", project.config, *(part for each in sets for part in ("--set", each)))
    assert result.status == 2
    assert told in result.stderr


def test_an_ensemble_and_ctranslate2_take_no_adapter(base: Path, tuned: RunFolder) -> None:
    with pytest.raises(UserError, match="an adapter of one model"):
        Translator.load([base, tuned.bundle], adapter=tuned.adapter)
    with pytest.raises(UserError, match="mtformer merge"):
        Translator.load(base, engine="ctranslate2", adapter=tuned.adapter)


def test_a_checkpoint_needs_the_base_that_it_was_trained_on(base: Path, tmp_path: Path) -> None:
    copy = tmp_path / "base.safetensors"
    copy.write_bytes(base.read_bytes())
    folder = train(make_adapter_project(tmp_path / "project", copy, max_steps=1))
    bundle = load_bundle(base)
    bundle.model.tgt_embedding.weight.data[0] += 1
    save_bundle(copy, bundle)
    with pytest.raises(UserError, match="has changed since"):
        model_weights(folder.checkpoints / "step-000001")
    copy.unlink()
    with pytest.raises(UserError, match="config needs the model that its adapter was trained on: there is no model at"):
        model_weights(folder.checkpoints / "step-000001")
    assert json.loads((folder.checkpoints / "step-000001" / "state.json").read_text())["step"] == 1
