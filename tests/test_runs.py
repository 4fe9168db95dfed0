"""The folder of a run: one process trains in it at a time."""

import errno
import json
import os
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from conftest import Project
from faults import unreadable

from mtformer.bundle.format import load_bundle
from mtformer.config import load_config
from mtformer.runs.folder import Journal, RunFolder
from mtformer.support.errors import MtformerError, UserError
from mtformer.training.run import clear

HOLDER = """
import subprocess, sys
from pathlib import Path
from mtformer.runs.folder import RunFolder
with RunFolder(Path(sys.argv[1])).lock():
    subprocess.Popen(["cat"])  # a child that outlives it
    print("locked", flush=True)
    sys.stdin.read()
"""


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_second_trainer_ends_and_names_the_first_until_that_is_killed(project: Project) -> None:
    folder = RunFolder(project.folder / "runs" / "config")
    command = [sys.executable, "-c", HOLDER, str(folder.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        before = contents(folder.path)
        for fresh in ([], ["--fresh"]):
            result = project.mtformer("train", project.config, *fresh)
            assert result.status == 2
            assert f"process {holder.pid} on {socket.gethostname()} is training in this folder" in result.stderr
            assert len(result.stderr.splitlines()) == 1
        assert contents(folder.path) == before
        holder.kill()
        holder.wait()
        with folder.lock():  # though the child of the killed process is alive
            assert f"process {os.getpid()} on " in (folder.path / "lock").read_text()


def test_the_lock_is_released_at_the_end_and_after_an_error(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    with pytest.raises(ZeroDivisionError), folder.lock():
        raise ZeroDivisionError
    with folder.lock(), pytest.raises(UserError), folder.lock():
        pass
    with folder.lock():
        pass


def test_a_training_that_is_refused_leaves_no_folder(project: Project) -> None:
    result = project.mtformer("train", project.config, "--set", "data.max_tokens=1")
    assert result.status == 2
    assert not (project.folder / "runs").exists()


def test_a_time_limit_that_ends_training_early_is_pointed_out(project: Project) -> None:
    limits = ("--set", "training.max_steps=null", "--set", "training.max_minutes=0.001")
    result = project.mtformer("train", project.config, *limits)
    assert result.status == 0
    assert "epochs are few: without training.max_minutes, this text has 30 by default" in result.stderr
    result = project.mtformer("train", project.config, *limits, "--set", "training.max_epochs=100", "--fresh")
    assert "epochs are few" not in result.stderr  # the default is not what training.max_minutes has replaced


def test_a_model_that_has_hardly_learned_anything_is_pointed_out(project: Project) -> None:
    train = ("train", project.config, "--set", "training.max_steps=100", "--set", "training.learning_rate=1e-9")
    warning = "the model has hardly learned anything yet: its best BLEU on the validation set is 0."
    assert warning in project.mtformer(*train).stderr
    by_loss = project.mtformer(*train, "--set", "training.early_stopping_metric=loss", "--fresh")
    assert (by_loss.status, "hardly learned" in by_loss.stderr) == (0, False)


def test_starting_from_scratch_removes_the_page_of_the_earlier_run(project: Project) -> None:
    train = ("train", project.config, "--set", "training.max_steps=1")
    assert project.mtformer(*train, "--set", "training.report=true").status == 0
    page = project.folder / "runs" / "config" / "report.html"
    assert page.exists()
    assert project.mtformer(*train, "--fresh").status == 0
    assert not page.exists()


def test_a_text_without_a_pair_that_filters_keep_is_an_error_with_the_reasons(project: Project) -> None:
    text = project.folder / "copies.tsv"
    text.write_text("the red house sees my dog.\tthe red house sees my dog.\n" * 3, encoding="utf-8")
    overrides = (f"data.train=[{{tsv: {text}}}]", "data.filters=[copy]")
    result = project.mtformer("train", project.config, *(part for one in overrides for part in ("--set", one)))
    assert result.status == 2
    assert "all 3 training pairs were dropped: the target copies the source (data.filters: copy)" in result.stderr


def test_a_run_does_not_replace_the_model_that_it_starts_from(project: Project) -> None:
    bundle = project.folder / "runs" / "config" / "model.safetensors"
    bundle.parent.mkdir(parents=True)
    bundle.write_bytes(b"precious")
    result = project.mtformer("train", project.config, "--fresh", "--set", f"training.init_from={bundle}")
    assert result.status == 2
    assert "runs/config/model.safetensors is in the place of a file of the run runs/config" in result.stderr
    assert bundle.read_bytes() == b"precious"


@pytest.mark.parametrize("name", ["metrics.jsonl", "held_out/text.jsonl", "checkpoints/step-000001/text.jsonl"])
@pytest.mark.parametrize("options", [[], ["--fresh"], ["--dry-run"]])
def test_a_text_in_the_place_of_a_file_of_the_run_is_refused_untouched(
    project: Project, name: str, options: list[str]
) -> None:
    text = project.folder / "runs" / "config" / name
    text.parent.mkdir(parents=True)
    text.write_text('{"en": "a", "de": "b"}\n')
    source = f"data.train=[{{jsonl: runs/config/{name}}}]"
    result = project.mtformer("train", project.config, *options, "--set", source)
    assert result.status == 2
    assert f"runs/config/{name} is in the place of a file of the run runs/config: choose another" in result.stderr
    assert list(contents(project.folder / "runs").values()) == [b'{"en": "a", "de": "b"}\n']


@pytest.mark.parametrize("options", [[], ["--fresh"], ["--dry-run"]])
def test_a_config_that_is_not_that_of_a_run_is_never_overwritten(project: Project, options: list[str]) -> None:
    before = project.config.read_bytes()
    here = ("--set", "run.dir=..", "--set", f"run.name={project.folder.name}")
    result = project.mtformer("train", project.config, *options, *here)
    assert (result.status, project.config.read_bytes()) == (2, before)
    assert f"../{project.folder.name}/config.yaml is not the config of a run, and training would" in result.stderr


def test_fresh_ends_if_it_cannot_remove_the_earlier_run(project: Project) -> None:
    checkpoints = project.folder / "runs" / "config" / "checkpoints"
    checkpoints.parent.mkdir(parents=True)
    checkpoints.write_text("not a folder")
    result = project.mtformer("train", project.config, "--fresh", "--set", "training.max_steps=1")
    assert result.status == 1
    assert "cannot remove runs/config/checkpoints" in result.stderr.replace(f"{project.folder}/", "")


def test_fresh_says_why_it_cannot_remove_a_folder_where_the_system_gives_no_reason(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    folder.checkpoints.symlink_to(tmp_path, target_is_directory=True)
    with pytest.raises(MtformerError, match="checkpoints: Cannot call rmtree on a symbolic link; remove it"):
        clear(folder)


def test_a_restart_starts_from_scratch_unless_its_launch_has_done_so(project: Project) -> None:
    train = ("train", project.config, "--fresh", "--set", "training.max_steps=1")
    for job, count, is_resumed in [(1, 0, False), (2, 1, False), (2, 2, True), (2, 0, False)]:
        result = project.mtformer(*train, env={"SLURM_JOB_ID": str(job), "SLURM_RESTART_COUNT": str(count)})
        assert result.status == 0, result.stderr
        assert ("is complete: step 1 after" in result.stderr) is is_resumed, (job, count)
        assert ("warm-up" in result.stderr) is not is_resumed  # which a complete run has behind it


def test_each_start_is_recorded_with_its_data_and_machine(project: Project) -> None:
    with (project.folder / "train.en").open("a") as src, (project.folder / "train.de").open("a") as tgt:
        src.write("\na b c d e f g h i j k l m n o p q r s t u v w x y z\n")
        tgt.write("nichts\na\n")
    train = ("train", project.config, "--quiet", "--set")
    starts = RunFolder(project.folder / "runs" / "config").starts
    assert project.mtformer(*train, "training.max_steps=1").status == 0
    assert project.mtformer(*train, "training.max_steps=2").status == 0
    first, second = map(json.loads, starts.read_text(encoding="utf-8").splitlines())
    assert [start["step"] for start in (first, second)] == [0, 1]
    assert first["data"] == second["data"]
    assert first["data"]["pairs"] == 400
    assert first["data"]["pairs_by_source"] == [402]
    assert first["data"]["valid_pairs"] == 20
    assert sum(first["data"]["dropped"].values()) == 2
    assert first["data"]["dropped"]["a side is empty"] == 1
    model = load_bundle(starts.parent / "model.safetensors").model
    assert first["model"]["parameters"] == sum(parameter.numel() for parameter in model.parameters())
    assert first["machine"]["threads"] == torch.get_num_threads()
    assert (first["machine"]["device"], first["machine"]["precision"]) == ("cpu", "fp32")
    assert [start["total_steps"] for start in (first, second)] == [1, 2]
    assert project.mtformer(*train, "training.max_steps=1", "--fresh").status == 0
    assert len(starts.read_text(encoding="utf-8").splitlines()) == 1


def test_a_dry_run_needs_no_lock_and_makes_none(project: Project) -> None:
    result = project.mtformer("train", project.config, "--dry-run")
    assert result.status == 0, result.stderr
    assert not (project.folder / "runs").exists()
    with RunFolder(project.folder / "runs" / "config").lock():
        assert project.mtformer("train", project.config, "--dry-run").status == 0


def fail_to_lock(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(file: object, operation: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("fcntl.flock", flock)


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOTSUP])
def test_a_file_system_without_locks_gets_a_warning(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fail_to_lock(code, monkeypatch)
    with RunFolder(tmp_path).lock():
        pass
    [warning] = caplog.records
    assert warning.getMessage().startswith(f"this file system cannot lock {tmp_path / 'lock'}")


def test_other_errors_of_the_lock_end_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_to_lock(errno.EIO, monkeypatch)
    with pytest.raises(MtformerError, match=r"cannot lock .*Input/output error"), RunFolder(tmp_path).lock():
        pass


def test_a_folder_of_runs_that_is_a_file_is_refused(project: Project) -> None:
    result = project.mtformer("train", project.config, "--set", "run.dir=train.de")
    assert (result.status, result.stdout) == (2, "")
    assert "Error: cannot make the folder train.de/config (run.dir, run.name): Not a directory\n" in result.stderr


def test_the_journal_keeps_the_lines_up_to_a_step(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "metrics.jsonl")
    journal.cut(0)  # there is none
    assert not journal.has_validations()
    for step in (1, 2, 3):
        journal.write({"step": step, "train_loss": float("nan")})
    with journal.path.open("ab") as file:
        file.write(b'{"step": 1, "tr\xc3')
    journal.cut(2)
    assert journal.path.read_text() == '{"step": 1, "train_loss": null}\n{"step": 2, "train_loss": null}\n'
    assert not journal.has_validations()
    journal.write({"step": 2, "valid_loss": 1.0})
    assert journal.has_validations()


@pytest.mark.parametrize("use", [Journal.read, Journal.has_validations, lambda journal: journal.cut(1)])
def test_a_journal_that_cannot_be_read_is_an_error_in_a_sentence(
    use: Callable[[Journal], object], tmp_path: Path
) -> None:
    journal = Journal(tmp_path / "metrics.jsonl")
    journal.write({"step": 1})
    with unreadable("metrics.jsonl", errno.EIO), pytest.raises(UserError, match=f"cannot read {journal.path}: "):
        use(journal)


def test_damaged_lines_are_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    journal = Journal(tmp_path / "metrics.jsonl")
    journal.path.write_bytes(b'{"step": 1}\n{"step"\n{"step": 3}\n' + b"[" * 100_000 + b'\n{"step": 5')
    assert journal.read() == [{"step": 1}, {"step": 3}]
    assert caplog.messages == [f"{journal.path} is damaged, and read without line 2, 4"]  # 5 is still being written


def test_a_line_after_a_damaged_one_is_readable(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "starts.jsonl")
    journal.path.write_bytes(b'{"step": 1}\n{"step": 2, "hyp')
    journal.write({"step": 3})
    journal.write({"step": 4})
    assert journal.read() == [{"step": 1}, {"step": 3}, {"step": 4}]
    assert journal.path.read_bytes() == b'{"step": 1}\n{"step": 2, "hyp\n{"step": 3}\n{"step": 4}\n'


def test_processes_that_write_at_once_do_not_mix_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    start = threading.Barrier(4)

    def write(step: int) -> None:
        start.wait()
        for _ in range(20):
            Journal(path).write({"step": step, "hypotheses": [str(step)] * 20_000})

    threads = [threading.Thread(target=write, args=(step,)) for step in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = Journal(path).read()
    assert sorted(row["step"] for row in rows) == sorted(list(range(4)) * 20)
    assert all(row["hypotheses"] == [str(row["step"])] * 20_000 for row in rows)


def test_metrics_are_read_up_to_where_a_run_is_writing(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert Journal(folder.metrics).read() == Journal(folder.samples).read() == []
    journal = Journal(folder.metrics)
    journal.write({"step": 1, "train_loss": float("inf")})
    journal.write({"step": 2, "train_loss": 0.5})
    whole = folder.metrics.read_bytes()
    lines = [{"step": 1, "train_loss": None}, {"step": 2, "train_loss": 0.5}]
    assert Journal(folder.metrics).read() == lines
    for cut in range(len(whole)):
        folder.metrics.write_bytes(whole[:cut])
        n_lines = whole[: cut + 1].count(b"\n")
        assert Journal(folder.metrics).read() == lines[:n_lines]
    folder.metrics.write_bytes(whole + b'[1]\n"step"\n{"step": null}\n\xc3\n{"step": 3}')
    assert Journal(folder.metrics).read() == [*lines, {"step": 3}]
    Journal(folder.samples).write({"step": 2, "samples": [{"src": "a", "ref": "ä", "hyp": "吃"}]})
    assert "吃" in folder.samples.read_text(encoding="utf-8")
    assert Journal(folder.samples).read() == [{"step": 2, "samples": [{"src": "a", "ref": "ä", "hyp": "吃"}]}]
    folder.metrics.unlink()
    folder.metrics.mkdir()
    with pytest.raises(UserError, match=r"cannot read .*metrics\.jsonl: Is a directory"):
        Journal(folder.metrics).read()


def test_a_moved_run_is_resumed_by_a_command_that_names_its_place_whatever_yaml_makes_of_it(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "#1" / "[a b]")
    run.path.mkdir(parents=True)
    run.config.write_text("data: {src_lang: en, tgt_lang: de, train: [{builtin: phrasebook}]}\nrun: {name: demo}\n")
    _, _, config, *settings = shlex.split(run.resume_command)
    loaded = load_config(Path(config), [each for each in settings if each != "--set"])
    assert RunFolder.of(loaded).path == run.path.resolve()
