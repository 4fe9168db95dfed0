"""Metrics on their way to machines: JSON on stderr, TensorBoard, Weights & Biases."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import make_project
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

SETTINGS: dict[str, Any] = {"max_steps": 8, "log_every": 2, "validate_every": 4}


def metrics(folder: Path) -> list[dict[str, float]]:
    lines = (folder / "runs/config/metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def curve(folder: Path, name: str) -> list[tuple[int, float]]:
    return [(int(line["step"]), line[name]) for line in metrics(folder) if name in line]


def test_json_logs_are_an_object_a_line_with_all_metrics(tmp_path: Path) -> None:
    project = make_project(tmp_path, **SETTINGS)
    result = project.mtformer("train", project.config, "--json-logs")
    assert result.stdout == "runs/config/model.safetensors\n"
    lines = [json.loads(line) for line in result.stderr.splitlines()]
    assert all({"time", "level", "message"} <= line.keys() for line in lines)
    assert {line["level"] for line in lines} == {"info", "warning"}  # of so little text
    shown = [line["metrics"] for line in lines if "metrics" in line]
    kept = ("step", "train_loss", "valid_bleu")
    assert [{key: line.get(key) for key in kept} for line in shown] == [
        {key: line.get(key) for key in kept} for line in metrics(tmp_path)
    ]


def test_errors_are_json_too(tmp_path: Path) -> None:
    project = make_project(tmp_path, **SETTINGS)
    (tmp_path / "train.en").write_text("too few\n")
    result = project.mtformer("train", project.config, "--json-logs")
    assert result.status == 2
    last = json.loads(result.stderr.splitlines()[-1])
    assert last["level"] == "error"
    assert "not parallel line by line" in last["message"]


def test_tensorboard_shows_the_curves_of_a_run_that_was_resumed(tmp_path: Path) -> None:
    project = make_project(tmp_path, log_to=["tensorboard"], **SETTINGS)
    for max_steps in (4, 8):
        result = project.mtformer("train", project.config, "--set", f"training.max_steps={max_steps}")
        assert result.status == 0, result.stderr
    events = EventAccumulator(str(tmp_path / "runs/config/tensorboard")).Reload()
    for name in ("train_loss", "train_loss_smoothed", "lr", "valid_loss", "valid_bleu"):
        found = {event.step: event.value for event in events.Scalars(name)}
        assert found == pytest.approx(dict(curve(tmp_path, name)), rel=1e-6), name
    fresh = project.mtformer("train", project.config, "--fresh", "--set", "training.log_to=[]")
    assert fresh.status == 0
    assert not (tmp_path / "runs/config/tensorboard").exists()


RECORDING_WANDB = """
import json, pathlib
out = pathlib.Path("wandb.jsonl")
def note(**values):
    with out.open("a") as file:
        file.write(json.dumps(values, default=str) + "\\n")
class Run:
    def log(self, values, step):
        note(step=step, **values)
    def finish(self):
        note(finished=True)
def init(**settings):
    note(**settings)
    return Run()
"""


def test_weights_and_biases_get_one_run_for_all_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package is replaced by one that writes down what it is called with: the real one wants a server."""
    project = make_project(tmp_path, log_to=["wandb"], **SETTINGS)
    (tmp_path / "wandb.py").write_text(RECORDING_WANDB)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "wandb", raising=False)
    for max_steps in (4, 8):
        result = project.mtformer("train", project.config, "--set", f"training.max_steps={max_steps}")
        assert result.status == 0, result.stderr
    calls = [json.loads(line) for line in (tmp_path / "wandb.jsonl").read_text().splitlines()]
    begun = [call for call in calls if "config" in call]
    assert len(begun) == 2
    assert begun[0]["id"] == begun[1]["id"]
    assert (begun[0]["project"], begun[0]["name"], begun[0]["resume"]) == ("mtformer", "config", "allow")
    assert begun[0]["config"]["training"]["max_steps"] == 4
    assert [(call["step"], call["train_loss"]) for call in calls if "train_loss" in call] == curve(
        tmp_path, "train_loss"
    )
    assert sum("finished" in call for call in calls) == 2
    del sys.modules["wandb"]


def test_a_package_that_is_not_there_is_named_before_anything_is_done(tmp_path: Path) -> None:
    project = make_project(tmp_path, **SETTINGS)
    assert project.mtformer("train", project.config).status == 0
    result = project.mtformer("train", project.config, "--fresh", "--set", "training.log_to=[wandb]")
    assert result.status == 2
    assert "training.log_to = [wandb] needs the package wandb" in result.stderr
    assert (tmp_path / "runs/config/model.safetensors").is_file()
