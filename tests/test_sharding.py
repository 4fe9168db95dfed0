"""Ranks that keep only a share of the model each train as one process that keeps all of it."""

import json
import shutil
from typing import Any

import pytest
import sharded_updates
from conftest import Project, make_project, sentence_pairs, write_pairs
from forked import run, run_ranks
from pydantic import ValidationError
from test_ranks import assert_same_curves

from mtformer.bundle.format import load_bundle
from mtformer.config import Config

SETTINGS: dict[str, Any] = {
    "max_tokens": 64,
    "grad_accum_steps": 2,
    "max_grad_norm": 0.1,
    "ema_decay": 0.9,
    "learning_rate": 0.005,
    "max_steps": 18,
    "log_every": 2,
    "validate_every": 6,
    "checkpoint_every": 6,
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project, and a run by one process and one by two; many batches have one row, and leave a rank without any."""
    project = make_project(tmp_path_factory.mktemp("sharding"), **SETTINGS)
    long = [(" ".join([english] * 5), " ".join([german] * 5)) for english, german in sentence_pairs(9, seed=9)]
    write_pairs(project.folder, "train", sentence_pairs(60, seed=1) + long)
    train(project, "one", 1)
    train(project, "two", 2)
    return project


def train(project: Project, name: str, n_ranks: int) -> str:
    settings = f"run.name={name}", f"training.shard={str(n_ranks > 1).lower()}", "training.threads=2"
    sets = [part for setting in settings for part in ("--set", setting)]
    result = run(project, ["train", str(project.config), *sets], n_ranks)
    assert (n_ranks > 1) == ("on 2 × cpu, sharded" in result.stderr)
    return result.stderr


def test_sharded_ranks_train_as_one_process_does(project: Project) -> None:
    assert_same_curves(project, "two", "one")
    ours, theirs = (load_bundle(project.folder / "runs" / name / "model.safetensors") for name in ("two", "one"))
    assert ours.header.scores == pytest.approx(theirs.header.scores, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(("begun_by", "n_ranks"), [("two", 1), ("one", 2)])
def test_checkpoints_serve_sharded_or_not(begun_by: str, n_ranks: int, project: Project) -> None:
    runs, name = project.folder / "runs", f"{begun_by}, then {n_ranks}"
    shutil.copytree(runs / begun_by, runs / name)
    shutil.rmtree(runs / name / "checkpoints/step-000018")
    assert "resuming from step 12" in train(project, name, n_ranks)
    assert_same_curves(project, name, "one")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What two ranks of ``sharded_updates.py`` have found."""
    done = run_ranks(tmp_path_factory.mktemp("updates"), [[], []], sharded_updates.main)
    assert done.statuses == [0, 0], done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["tied", "untied", "rotary", "frozen embeddings", "frozen stacks", "muon"])
def test_weights_and_average_become_those_of_one_process(variant: str, results: dict[str, Any]) -> None:
    result, tolerance = results[variant], 1e-4 if variant == "muon" else 1e-6  # Muon enlarges what is small
    assert result["moved"] > 1e-3
    assert result["weights"] < tolerance
    assert result["average"] < tolerance
    assert result["loss"] < 1e-6


@pytest.mark.slow
def test_each_rank_keeps_half_but_for_odd_rows_and_has_all_to_validate(results: dict[str, Any]) -> None:
    result = results["tied"]
    assert sum(result["n_kept"]) == result["n_whole"] == result["n_parameters"]
    assert max(result["n_kept"]) < 0.52 * result["n_parameters"]


@pytest.mark.slow
def test_running_out_of_memory_ends_a_sharded_run_with_advice(results: dict[str, Any]) -> None:
    assert "set a smaller training.max_tokens" in results["starved"]


@pytest.mark.slow
def test_what_each_rank_has_found_comes_together_however_much_it_is(results: dict[str, Any]) -> None:
    assert results["collected"] == [0, 1, 2, 3]


def config_of(training: dict[str, Any], **model: Any) -> Config:
    text = [{"src": "a", "tgt": "b"}]
    data = {"src_lang": "en", "tgt_lang": "de", "train": text, "valid": text}
    return Config.model_validate({"data": data, "training": training, "model": model, "tokenizer": {"vocab_size": 300}})


def test_what_cannot_be_sharded_is_told() -> None:
    with pytest.raises(ValidationError, match="max_tokens = auto with shard: it measures a whole model on each device"):
        config_of({"shard": True, "max_tokens": "auto"})
