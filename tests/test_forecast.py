"""``mtformer train --dry-run``."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import Project, make_project, sentence_pairs

from mtformer.bundle.format import load_bundle
from mtformer.config import LanguagePair, ResolvedConfig
from mtformer.engines.torch import TorchEngine
from mtformer.runs.folder import RunFolder
from mtformer.support.progress import clock, expected_seconds
from mtformer.text.pairs import SentencePair
from mtformer.training.model import build_model
from mtformer.training.validation import Validator


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
    assert told["optimizer"] == "adamw, weight decay 0.01, learning rate up to 0.0041926"
    assert re.fullmatch(r"[\d,]+ target tokens/s, fp32 on cpu", told["speed"])
    assert re.fullmatch(r"[\d.]+ GiB", told["memory"])
    assert re.fullmatch(r"[\d:]+, [\d:]+ of it for 1 validation", told["time"])
    stands = "the forecast is for the whole run; runs/config"
    assert stands not in result.stderr
    complete = project.mtformer("train", project.config, "--dry-run").stderr
    assert f"{stands} is complete: step 20, training.max_steps = 20\n" in complete
    longer = project.mtformer("train", project.config, "--dry-run", "--set", "training.max_steps=30").stderr
    assert f"{stands} resumes at step 20\n" in longer
    fresh = project.mtformer("train", project.config, "--dry-run", "--fresh", "--set", "training.optimizer=adam")
    assert stands not in fresh.stderr
    assert rows(fresh.stdout)["optimizer"] == "adam, learning rate up to 0.0041926"  # which decays no weights


def test_the_steps_of_a_run_are_those_that_its_first_limit_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mtformer.training.forecast._measure", lambda trainer, plan: 500.0)
    monkeypatch.setattr(Validator, "expected_seconds", lambda validator, model: 7.0)
    project = make_project(
        tmp_path, max_steps=None, max_epochs=3, max_minutes=600, grad_accum_steps=2, validate_every=4
    )
    told = rows(project.mtformer("train", project.config, "--dry-run").stdout)
    steps_per_epoch, _, n_tokens = numbers(told["an epoch"])
    assert numbers(told["steps"]) == [3 * steps_per_epoch, 3.0]
    per_step = n_tokens / steps_per_epoch / 500
    for n_steps, n_validations in ((1, 1), (4, 1), (5, 2)):
        minutes = (n_steps + 0.5) * (per_step + 7 / 4) / 60
        short = project.mtformer("train", project.config, "--dry-run", "--set", f"training.max_minutes={minutes}")
        assert numbers(rows(short.stdout)["steps"])[0] == n_steps
        total, validating = n_steps * per_step + 7 * n_validations, 7 * n_validations
        ending = f"{n_validations} validation{'s' if n_validations > 1 else ''}"
        assert rows(short.stdout)["time"] == f"{clock(total)}, {clock(validating)} of it for {ending}"


def test_the_search_of_a_validation_is_measured_along_the_references(trained: Project) -> None:
    bundle = load_bundle(trained.folder / "runs/config/model.safetensors")
    config = RunFolder(trained.folder / "runs/config").read_config(ResolvedConfig)
    pairs = [SentencePair(*pair) for pair in sentence_pairs(60, seed=2)]
    validator = Validator(config, bundle.tokenizer, {LanguagePair("en", "de"): pairs})
    found: list[list[int]] = []
    submit = TorchEngine.submit

    def observed(engine: TorchEngine, requests: Any, **rest: Any) -> Any:
        results: Any = submit(engine, requests, **rest)
        found.extend(list(best.ids) for (best, *_) in results)
        return results

    torch.manual_seed(1)
    untrained = build_model(config, bundle.tokenizer)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TorchEngine, "submit", observed)
        assert validator.expected_seconds(untrained) > 0
    references = [row[:-1] for row in bundle.tokenizer.encode_tgt([pair.tgt for pair in pairs])]
    assert found and all(ids in references for ids in found)


def test_the_time_for_all_batches_is_measured_on_batches_of_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("mtformer.support.progress.time.monotonic", lambda: clock[0])
    done: list[int] = []

    def work(sizes: Sequence[int]) -> None:
        clock[0] += sum(size * (100 if size not in done else 1) for size in sizes)  # the first time is slow
        done.extend(sizes)

    assert expected_seconds(range(1, 101), work, float, 5) == pytest.approx(5_050)
    assert sorted(done) == sorted([11, 31, 51, 71, 91] * 2)
    assert expected_seconds([3], work, float, 5) == pytest.approx(3)


def test_a_preset_that_brings_post_norm_says_so(project: Project) -> None:
    told = "preset base is the paper's, with post-norm: the learning rate peaks at 0.0027951 (model.norm=pre"
    base = ("train", project.config, "--dry-run", "--set", "model.preset=base")
    assert told in project.mtformer(*base).stderr
    assert "post-norm" not in project.mtformer(*base, "--set", "model.norm=pre").stderr


def test_training_takes_the_tokenizer_that_a_dry_run_has_trained(project: Project) -> None:
    command = ("train", project.config, "--set", "training.max_steps=1", "--set", "tokenizer.vocab_size=310")
    assert "training the tokenizer" in project.mtformer(*command, "--dry-run").stderr
    assert "training the tokenizer" not in project.mtformer(*command).stderr
    assert "training the tokenizer" in project.mtformer(*command, "--fresh", "--set", "training.seed=2").stderr


def test_a_dry_run_finds_what_is_wrong(project: Project) -> None:
    result = project.mtformer("train", project.config, "--dry-run", "--set", "tokenizer.vocab_size=200000")
    assert result.status == 2
    assert "supports up to" in result.stderr
    assert result.stdout == ""


def test_a_warm_up_that_the_run_shortens_is_reported(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    shortened = "2 steps instead of 1,000, 10 % of the run"
    dry = ("train", project.config, "--dry-run", "--set", "training.warmup_steps=1_000")
    assert rows(project.mtformer(*dry).stdout)["warm-up"] == shortened
    post_norm = project.mtformer(*dry, "--set", "model.norm=post").stdout
    assert rows(post_norm)["warm-up"] == "7 steps instead of 1,000, 33 % of the run"
    long = project.mtformer(*dry, "--set", "training.max_steps=10_000").stdout
    assert rows(long)["warm-up"] == "1,000 steps"
    about_as_long = project.mtformer(*dry, "--set", "training.max_steps=9_800").stdout
    assert rows(about_as_long)["warm-up"] == "1,000 steps"
    monkeypatch.setattr("mtformer.training.forecast._until_limit", lambda *args: (40, 1))
    by_the_clock = project.mtformer(*dry, "--set", "training.max_steps=null", "--set", "training.max_minutes=6").stdout
    assert rows(by_the_clock)["warm-up"] == "4 steps instead of 1,000, 10 % of the run"


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"max_steps": 10}, "a warm-up of 1 step instead of 1,000, 10 % of the run"),
        ({"max_steps": 20}, "a warm-up of 2 steps instead of 1,000, 10 % of the run"),
        ({"max_steps": 20, "warmup_steps": 2}, ""),
        ({"max_steps": None, "max_minutes": 0.01}, "a warm-up of 1,000 steps or 0.001 minutes, whichever ends first"),
        ({"max_steps": None, "max_minutes": 0.01, "warmup_steps": 0}, ""),
    ],
    ids=str,
)
def test_the_start_of_training_reports_it_too(limits: dict[str, Any], said: str, tmp_path: Path) -> None:
    project = make_project(tmp_path, **{"warmup_steps": 1_000, **limits})
    stderr = project.mtformer("train", project.config).stderr
    assert said in stderr
    assert ("warm-up" in stderr) == bool(said)


def test_a_run_that_is_resumed_does_not_report_its_warm_up_again(tmp_path: Path) -> None:
    project = make_project(tmp_path, warmup_steps=1_000, max_steps=10)
    assert "a warm-up of 1 step" in project.mtformer("train", project.config).stderr
    resumed = project.mtformer("train", project.config, "--set", "training.max_steps=20").stderr
    assert "resuming from step 10" in resumed
    assert "warm-up" not in resumed
