"""``mtformer train --dry-run``."""

import re
from pathlib import Path

import pytest
from conftest import Project, make_project

from mtformer.bundle import load_bundle


def rows(text: str) -> dict[str, str]:
    return {line[:12].strip(): line[12:] for line in text.splitlines()}


def numbers(text: str) -> list[float]:
    return [float(number.replace(",", "")) for number in re.findall(r"[\d,]*\d(?:\.\d+)?", text)]


def test_a_dry_run_tells_what_the_run_will_be_and_leaves_nothing(project: Project) -> None:
    result = project.mtformer("train", project.config, "--dry-run")
    assert result.status == 0, result.stderr
    assert not (project.folder / "runs").exists()
    told = rows(result.stdout)
    project.mtformer("train", project.config)
    model = load_bundle(project.folder / "runs/config/model.safetensors").model
    assert numbers(told["parameters"]) == [sum(parameter.numel() for parameter in model.parameters())]
    assert numbers(told["pairs"]) == [400, 0]
    assert numbers(told["steps"])[0] == 20
    assert re.fullmatch(r"[\d,]+ target tokens/s, fp32 on cpu", told["speed"])
    assert re.fullmatch(r"[\d.]+ GiB", told["memory"])
    assert re.fullmatch(r"[\d:]+ and 0 validations", told["time"])


def test_the_steps_of_a_run_are_those_that_its_first_limit_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mtformer.training.forecast._measure", lambda trainer, plan: 500.0)
    project = make_project(tmp_path, max_steps=None, max_epochs=3, max_minutes=600, grad_accum_steps=2)
    told = rows(project.mtformer("train", project.config, "--dry-run").stdout)
    steps_per_epoch, _, n_tokens = numbers(told["an epoch"])
    assert numbers(told["steps"]) == [3 * steps_per_epoch, 3.0]
    seconds_per_step = n_tokens / steps_per_epoch / 500
    for n_steps in (1, 4):
        minutes = (n_steps + 0.5) * seconds_per_step / 60
        short = project.mtformer("train", project.config, "--dry-run", "--set", f"training.max_minutes={minutes}")
        assert numbers(rows(short.stdout)["steps"])[0] == n_steps
        minutes, seconds = divmod(round(n_steps * seconds_per_step), 60)
        assert rows(short.stdout)["time"].startswith(f"{minutes}:{seconds:02} and ")


def test_a_preset_that_brings_post_norm_says_so(project: Project) -> None:
    told = "preset base is the paper's, with post-norm: the learning rate peaks at 0.0027951 (model.norm=pre"
    base = ("train", project.config, "--dry-run", "--set", "model.preset=base")
    assert told in project.mtformer(*base).stderr
    assert "post-norm" not in project.mtformer(*base, "--set", "model.norm=pre").stderr


def test_a_dry_run_finds_what_is_wrong(project: Project) -> None:
    result = project.mtformer("train", project.config, "--dry-run", "--set", "tokenizer.vocab_size=200000")
    assert result.status == 2
    assert "supports up to" in result.stderr
    assert result.stdout == ""
