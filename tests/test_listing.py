"""``mtformer runs``: a line for each run, whatever its state."""

import errno
import json
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from conftest import Project, make_project, training_settings
from filelock import lock_descriptor, unlock_descriptor
from safetensors.numpy import save_file

from mtformer.runs.finding import find_model
from mtformer.runs.folder import Journal, RunFolder

SETTINGS = {"max_steps": 400, "max_epochs": None, "max_minutes": None, "early_stopping_patience": 2}
WEIGHTS = {"model.output.weight": np.zeros((1, 1), np.float32)}


@pytest.fixture
def place(tmp_path: Path) -> Project:
    return Project(tmp_path, tmp_path / "none.yaml")


def make_run(place: Project, name: str, *lines: dict[str, Any], age: int = 0, **training: Any) -> RunFolder:
    """Make the folder of a run with these metrics, last written ``age`` seconds after a fixed time."""
    folder = RunFolder(place.folder / "runs" / name)
    folder.path.mkdir(parents=True)
    source = {"tsv": "pairs.tsv"}
    config = {
        "data": {"src_lang": "en", "tgt_lang": "de", "train": [source], "valid": [source]},
        "tokenizer": {"vocab_size": 100, "joint": True},
        "training": training_settings(**(SETTINGS | training)).model_dump(mode="json"),
    }
    folder.config.write_text(yaml.safe_dump(config), encoding="utf-8")
    for line in lines:
        Journal(folder.metrics).write(line)
    for path in (*folder.path.iterdir(), folder.path):
        os.utime(path, (1e9 + age, 1e9 + age))
    return folder


def at(step: int, bleu: float | None = None, *, epoch: int = 0, seconds: float = 60.0) -> dict[str, Any]:
    scores = {} if bleu is None else {"valid_loss": 1.0, "valid_bleu": bleu}
    return {"step": step, "epoch": epoch, "seconds": seconds} | scores


def listed(place: Project, *arguments: str) -> dict[str, dict[str, Any]]:
    result = place.mtformer("runs", *arguments, "--json")
    assert result.status == 0, result.stderr
    return {run["name"]: run for run in json.loads(result.stdout)}


def test_a_run_that_was_stopped_before_its_first_metrics_shows_the_step_of_its_checkpoint(place: Project) -> None:
    folder = make_run(place, "early")
    (folder.checkpoints / "step-000007").mkdir(parents=True)
    assert listed(place)["early"]["step"] == 7


def test_a_report_does_not_make_a_run_newer(place: Project) -> None:
    make_run(place, "new", at(400), age=60)
    (make_run(place, "old", at(400)).path / "report.html").touch()
    runs = listed(place)
    assert list(runs) == ["new", "old"]
    assert [run["date"][:16] for run in runs.values()] == ["2001-09-09T01:47", "2001-09-09T01:46"]


def test_a_trained_run_is_listed_with_its_best_score(tmp_path: Path) -> None:
    project = make_project(tmp_path, n_pairs=40, max_steps=4, validate_every=2, early_stopping_metric="loss")
    assert project.mtformer("train", project.config, "--quiet").status == 0
    folder = RunFolder(tmp_path / "runs/config")
    best = min(
        (line for line in Journal(folder.metrics).read() if "valid_loss" in line), key=lambda line: line["valid_loss"]
    )
    run = listed(project)["config"]
    assert (run["src_lang"], run["tgt_lang"], run["state"], run["step"], run["total_steps"]) == (
        *("en", "de", "finished"),
        *(4, 4),
    )
    assert (run["metric"], run["best"], run["best_step"]) == ("loss", best["valid_loss"], best["step"])
    assert run["bundle_bytes"] == folder.bundle.stat().st_size
    header, row = project.mtformer("runs").stdout.splitlines()
    assert header.split() == ["name", "state", "languages", "step", "best", "at", "step", "minutes", "model", "date"]
    assert row.split()[:6] == ["config", "finished", "en-de", "4/4", "loss", f"{best['valid_loss']:.3f}"]
    assert listed(project, "runs/config") == {"config": run | {"path": "runs/config"}}


@pytest.mark.parametrize(
    ("settings", "lines", "state"),
    [
        ({}, [], "stopped"),
        ({}, [at(399, 10.0)], "stopped"),
        ({}, [at(400, 10.0)], "finished"),
        ({}, [at(100, 10.0), at(200, 9.0), at(250)], "stopped"),
        ({}, [at(100, 10.0), at(200, 9.0), at(300, 10.0)], "finished"),  # out of patience
        ({}, [at(100, 10.0), at(200, 9.0), at(300, 11.0)], "stopped"),
        ({"early_stopping_patience": None}, [at(100, 10.0), at(200, 9.0), at(300, 10.0)], "stopped"),
        ({"max_epochs": 3}, [at(300, 10.0, epoch=2)], "stopped"),
        ({"max_epochs": 3}, [at(300, 10.0, epoch=3)], "finished"),
        ({"max_minutes": 2.0}, [at(300, 10.0, seconds=119.0)], "stopped"),
        ({"max_minutes": 2.0}, [at(300, 10.0, seconds=120.0)], "finished"),
    ],
)
def test_a_run_at_one_of_its_limits_is_finished(
    settings: dict[str, Any], lines: list[dict[str, Any]], state: str, place: Project
) -> None:
    make_run(place, "a", *lines, **settings)
    assert listed(place)["a"]["state"] == state


@pytest.mark.parametrize(
    ("settings", "step", "note"),
    [
        ({}, 400, ""),
        ({}, 399, ", stopped at step 399 of 400"),
        ({"max_steps": None, "max_minutes": 2.0}, 1_250, ", stopped at step 1,250"),
    ],
)
def test_a_run_that_was_stopped_is_named_as_such_where_its_model_is_taken(
    settings: dict[str, Any], step: int, note: str, place: Project, caplog: pytest.LogCaptureFixture
) -> None:
    run = make_run(place, "a", at(step, 10.0), **settings)
    save_file(WEIGHTS, run.bundle)
    with caplog.at_level("INFO"):
        assert find_model(place.folder / "runs") == run.bundle
    assert caplog.messages == [f"model: {run.bundle}{note}"]


def test_a_run_that_has_had_all_its_epochs_lacks_no_step_of_the_forecast(place: Project) -> None:
    run = make_run(place, "a", at(398, 10.0, epoch=2), max_steps=None, max_epochs=2)
    start = {"step": 0, "seconds": 0.0, "time": "", "machine": {}, "data": {}, "model": {}}
    Journal(run.starts).write({**start, "steps_per_epoch": 200, "total_steps": 400})
    assert (listed(place)["a"]["step"], listed(place)["a"]["total_steps"]) == (398, 398)


def test_a_run_is_as_long_as_it_was_though_its_limit_was_lowered(place: Project) -> None:
    make_run(place, "a", at(400, 10.0), max_steps=60)
    assert (listed(place)["a"]["step"], listed(place)["a"]["total_steps"]) == (400, 400)


def test_a_run_whose_folder_is_locked_is_training(place: Project) -> None:
    folder = make_run(place, "a", at(50))
    reading = RunFolder(place.folder / "runs" / "b")  # the text; it has written nothing yet
    with folder.lock(), reading.lock():
        runs = listed(place)
        assert (runs["a"]["state"], runs["b"]["state"]) == ("training", "training")
        assert "step" not in runs["b"]
    assert listed(place).keys() == {"a"}


def test_the_newest_run_comes_first_and_other_folders_are_left_out(place: Project) -> None:
    for age, name in enumerate(("old", "newer", "newest")):
        make_run(place, name, at(10), age=100 * age)
    old = RunFolder(place.folder / "runs" / "old")
    save_file(WEIGHTS, old.bundle)
    os.utime(old.bundle, (1e9, 1e9))
    os.utime(old.config)  # as when the command of a complete run is run again
    (place.folder / "runs" / "notes").mkdir()
    (place.folder / "runs" / "file").touch()
    assert list(listed(place)) == ["newest", "newer", "old"]
    rows = place.mtformer("runs", "runs").stdout.splitlines()
    assert [row.split()[0] for row in rows] == ["name", "newest", "newer", "old"]


@pytest.mark.parametrize("columns", [96, 88, 80])
def test_the_list_fits_a_terminal(place: Project, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    save_file(WEIGHTS, make_run(place, "multi30k_en_de.12", at(30_000, 41.23), max_steps=100_000).bundle)
    assert len(place.mtformer("runs").stdout.splitlines()[0]) > 96
    monkeypatch.setattr("mtformer.cli.options.terminal_columns", lambda: columns)
    header, row = place.mtformer("runs").stdout.splitlines()
    assert max(len(header), len(row)) <= columns
    assert (row.split()[0], header.split()[-1]) == ("multi30k_en_de.12", "date")


def test_folders_of_others_that_cannot_be_read_are_left_out(place: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    (place.folder / "runs" / "lost+found").mkdir(parents=True)
    stat = os.stat

    def refuse(path: Any, *rest: Any, **options: Any) -> os.stat_result:
        if "lost+found" in Path(str(path)).parent.parts:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return stat(path, *rest, **options)

    monkeypatch.setattr("os.stat", refuse)
    result = place.mtformer("translate", "a")
    assert result.stderr.startswith("Error: there is no trained model under")
    make_run(place, "own")
    assert list(listed(place)) == ["own"]


def test_the_newest_model_is_a_file(tmp_path: Path) -> None:
    paths = [tmp_path / name / "model.safetensors" for name in ("file", "gone", "folder")]
    for path in paths:
        path.parent.mkdir()
    paths[0].touch()
    paths[1].symlink_to(tmp_path / "unmounted")  # which Path.glob of Python 3.12 and later finds
    paths[2].mkdir()
    assert find_model(tmp_path) == paths[0]


def test_a_damaged_run_is_shown_as_such_among_the_others(place: Project) -> None:
    make_run(place, "good", at(10, 5.0))
    half = make_run(place, "half", at(10, 5.0), at(20, 7.0))
    half.metrics.write_bytes(half.metrics.read_bytes()[:-20])
    make_run(place, "config").config.write_text("data: {src_la", encoding="utf-8")
    make_run(place, "empty").config.write_bytes(b"")
    make_run(place, "binary").config.write_bytes(b"\xff\x00")
    make_run(place, "none", at(10)).config.unlink()
    make_run(place, "lines", {"step": 10, "valid_loss": "low", "valid_bleu": "high", "seconds": []}, at(20, 5.0))
    make_run(place, "others", {"step": 10, "another": 1})
    truncated = make_run(place, "truncated", at(10, 5.0))
    save_file(WEIGHTS, truncated.bundle)
    truncated.bundle.write_bytes(truncated.bundle.read_bytes()[:-1])
    result = place.mtformer("runs", "--json")
    runs = {run["name"]: run for run in json.loads(result.stdout)}
    assert (runs["half"]["step"], runs["half"]["best"], runs["half"]["state"]) == (10, 5.0, "stopped")
    assert {name for name, run in runs.items() if run["state"] == "damaged"} == {
        *("config", "empty", "binary", "none", "lines", "others", "truncated")
    }
    for name, run in runs.items():
        assert ("problem" in run) == (run["state"] == "damaged")
        if "problem" in run:
            assert f"runs/{name}" in run["problem"]
            assert run["problem"] + "\n" in result.stderr
    table = place.mtformer("runs").stdout
    assert len(table.splitlines()) == 1 + len(runs)


def test_a_folder_that_is_not_there_is_an_error_and_one_without_runs_is_not(place: Project) -> None:
    missing = place.mtformer("runs")
    assert (missing.status, missing.stdout) == (2, "")
    path = place.folder / "runs"
    assert missing.stderr == f"Error: there is no folder {path}: train a model, or name the folder of your runs\n"
    (place.folder / "runs").mkdir()
    empty = place.mtformer("runs")
    assert (empty.status, empty.stdout, empty.stderr) == (0, "", "there are no runs in runs\n")
    assert place.mtformer("runs", "--json").stdout == "[]\n"
    (place.folder / "file").touch()
    assert "cannot read file: Not a directory" in place.mtformer("runs", "file").stderr


def test_training_starts_though_somebody_looks_whether_it_does(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    (tmp_path / "lock").touch()
    with (tmp_path / "lock").open("rb") as file:
        lock_descriptor(file.fileno())
        release = threading.Timer(0.05, unlock_descriptor, [file.fileno()])
        release.start()
        with folder.lock():
            release.join()
