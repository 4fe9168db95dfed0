"""A run that is killed again and again ends with the very weights of one that is left alone."""

import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from conftest import Project, make_project
from faults import PowerCut, power_cut_before

from mtformer.bundle.format import load_bundle
from mtformer.config import load_config
from mtformer.runs.checkpoints import Checkpoint, newest_checkpoint
from mtformer.runs.folder import RunFolder
from mtformer.training import run
from mtformer.training.trainer import Trainer

SETTINGS: dict[str, Any] = {
    "max_steps": 8,
    "max_tokens": 128,
    "grad_accum_steps": 2,
    "ema_decay": 0.99,
    "validate_every": 3,
    "checkpoint_every": 1,
    "log_every": 1,
    "on_fault": "skip",
    "spike_factor": 1.01,
}


def make(folder: Path) -> Project:
    return make_project(folder, n_pairs=60, **SETTINGS)


def overrides(project: Project) -> list[str]:
    return ["model.dropout=0.2", "eval.n_samples=0", f"run.dir={project.folder / 'runs'}"]


def train(project: Project) -> None:
    run.train(load_config(project.config, overrides(project)))


def folder_of(project: Project) -> RunFolder:
    return RunFolder(project.folder / "runs" / "config")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run that nobody has killed."""
    project = make(tmp_path_factory.mktemp("whole"))
    train(project)
    return folder_of(project)


def end_of(folder: RunFolder) -> Checkpoint:
    newest = newest_checkpoint(folder.checkpoints)
    assert newest is not None
    return newest


def curves(folder: RunFolder) -> list[dict[str, float]]:
    lines = map(json.loads, folder.metrics.read_text(encoding="utf-8").splitlines())
    kept = ("step", "epoch", "lr", "train_loss", "train_loss_smoothed", "valid_loss", "valid_bleu")
    return [{key: line[key] for key in kept if key in line} for line in lines]


def assert_same(killed: RunFolder, whole: RunFolder) -> None:
    bundles = [load_bundle(folder.bundle) for folder in (killed, whole)]
    assert bundles[0].header.scores == bundles[1].header.scores
    for ours, theirs in zip(*(bundle.model.parameters() for bundle in bundles), strict=True):
        assert torch.equal(ours, theirs)
    ours, theirs = (end_of(folder) for folder in (killed, whole))
    assert ours.tensors.keys() == theirs.tensors.keys()
    assert all(torch.equal(tensor, theirs.tensors[name]) for name, tensor in ours.tensors.items())
    assert ours.state | {"seconds": 0} == theirs.state | {"seconds": 0}
    assert curves(killed) == curves(whole)
    files = [sorted(path.relative_to(folder.path) for path in folder.path.rglob("*")) for folder in (killed, whole)]
    assert files[0] == files[1]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a finalizer meets the power cut, too
def test_power_cuts_before_one_file_operation_after_another_change_nothing(tmp_path: Path, whole: RunFolder) -> None:
    project = make(tmp_path)
    n_cuts = 0
    while n_cuts < 200:
        try:
            with power_cut_before(n_cuts):
                train(project)
        except PowerCut:
            n_cuts += 1
        else:
            break
    assert n_cuts > 20
    assert_same(folder_of(project), whole)


KILLED = """
import sys
from faults import killed_before
from mtformer.cli import main
with killed_before(int(sys.argv.pop(1))):
    main()
"""


def train_until_killed(project: Project, sets: Iterable[str], n_operations: int) -> None:
    """Train in a process that ends like one after kill -9, before a file operation."""
    command = [sys.executable, "-c", KILLED, str(n_operations), "train", str(project.config)]
    command += [part for override in sets for part in ("--set", override)]
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    done = subprocess.run(command, cwd=project.folder, env=os.environ | {"PYTHONPATH": paths}, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr


def test_a_run_that_ended_before_its_first_checkpoint_says_that_it_starts_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    project = make(tmp_path)
    caplog.set_level(logging.INFO)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Trainer, "fit", Mock(side_effect=KeyboardInterrupt))
        train(project)
    assert "no checkpoint yet" not in caplog.text
    train(project)
    assert f"{folder_of(project).path} has no checkpoint yet: it starts from the beginning" in caplog.text


def test_a_killed_process_is_resumed_by_the_next(tmp_path: Path, whole: RunFolder) -> None:
    project = make(tmp_path)
    train_until_killed(project, overrides(project), 80)
    assert 0 < end_of(folder_of(project)).state["step"] < SETTINGS["max_steps"]
    train(project)
    assert_same(folder_of(project), whole)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGHUP")
@pytest.mark.parametrize(("prefix", "n_steps", "status"), [([], 100_000, 130), (["nohup"], 40, 0)])
def test_a_training_whose_terminal_is_closed_saves_a_checkpoint_or_continues_under_nohup(
    prefix: list[str], n_steps: int, status: int, tmp_path: Path
) -> None:
    limits: dict[str, Any] = dict.fromkeys(("max_steps", "validate_every", "checkpoint_every"), n_steps)
    project = make_project(tmp_path, n_pairs=60, max_tokens=128, log_every=1, **limits)
    sets = [part for override in overrides(project) for part in ("--set", override)]
    command = [*prefix, sys.executable, "-m", "mtformer", "train", str(project.config), *sets]
    near, far = os.openpty()
    os.set_blocking(near, False)
    # What ignores SIGHUP, as these tests do under nohup, has children that ignore it.
    on_terminal = (
        "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_DFL); os.login_tty(int(sys.argv[1])); "
        "os.execvp(sys.argv[2], sys.argv[2:])"
    )
    folder = folder_of(project)
    with subprocess.Popen(
        [sys.executable, "-c", on_terminal, str(far), *command],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        pass_fds=[far],
    ) as process:
        os.close(far)
        while not folder.metrics.exists() or len(folder.metrics.read_text().splitlines()) < 3:
            assert process.poll() is None
            with suppress(OSError):  # if there is nothing to read, or nobody who writes, as under nohup
                os.read(near, 65_536)  # writing to a full terminal would block
            time.sleep(0.05)
        os.close(near)
        assert process.wait() == status
    step = end_of(folder).state["step"]
    assert step == json.loads(folder.metrics.read_text().splitlines()[-1])["step"]
    assert step == n_steps if prefix else 3 <= step < n_steps
