"""Two processes, on one machine or two, do the work of one."""

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from conftest import Project, Result, make_project, sentence_pairs
from faulty_rank import main_or_die
from forked import run, run_ranks, start, torchrun
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure

from mtformer.config import load_config
from mtformer.runs.checkpoints import list_checkpoints
from mtformer.support.errors import UserError
from mtformer.support.processes.launch import launch, without_nproc
from mtformer.support.processes.ranks import ALONE, Ranks, local_device
from mtformer.training import run as run_module

SETTINGS: dict[str, Any] = {"max_steps": 20, "log_every": 5, "validate_every": 10, "learning_rate": 0.005}


def metrics(project: Project, name: str) -> list[dict[str, float]]:
    text = (project.folder / "runs" / name / "metrics.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def train(project: Project, name: str, n_ranks: int, max_steps: int = 20) -> Result:
    sets = ["--set", f"run.name={name}", "--set", f"training.max_steps={max_steps}"]
    return run(project, ["train", str(project.config), *sets], n_ranks)


def assert_same_curves(project: Project, name: str, other: str) -> None:
    kept = ("step", "epoch", "lr", "train_loss", "train_loss_smoothed", "valid_loss", "valid_bleu")
    ours, theirs = ([{k: line[k] for k in kept if k in line} for line in metrics(project, n)] for n in (name, other))
    assert len(ours) == len(theirs) > 3
    for mine, yours in zip(ours, theirs, strict=True):
        assert mine == pytest.approx(yours, rel=1e-4, abs=1e-6)


def test_two_ranks_train_as_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_project(tmp_path, **SETTINGS, grad_accum_steps=2, max_grad_norm=0.1)
    train(project, "one", 1)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # without the tokenizer of the first
    result = train(project, "two", 2)  # of which only the first rank takes the lock
    assert result.stdout == "runs/two/model.safetensors\n"
    assert result.stderr.count("training the tokenizer") == 1
    assert "on 2 × cpu" in result.stderr
    assert_same_curves(project, "two", "one")


@pytest.mark.slow
def test_one_and_two_ranks_go_on_with_each_others_checkpoints(tmp_path: Path) -> None:
    limitless: dict[str, Any] = {"schedule": "constant", "warmup_steps": 0}  # the rate does not depend on the limits
    project = make_project(tmp_path, **SETTINGS, **limitless, grad_accum_steps=2, max_grad_norm=0.1)
    train(project, "one", 1)
    train(project, "mixed", 1, max_steps=7)
    assert "resuming from step 7" in train(project, "mixed", 2, max_steps=13).stderr
    train(project, "mixed", 1)
    ours, theirs = (metrics(project, name)[-1] for name in ("mixed", "one"))
    assert ours["step"] == theirs["step"]
    assert ours["valid_loss"] == pytest.approx(theirs["valid_loss"], rel=1e-4)


def test_what_the_user_got_wrong_is_told_once(tmp_path: Path) -> None:
    project = make_project(tmp_path, **SETTINGS)
    (tmp_path / "train.de").write_text("zu wenig\n", encoding="utf-8")
    result = run_ranks(tmp_path, [["train", str(project.config)]] * 2)
    assert result.statuses == [2, 2]
    assert result.stderr.count("they are not parallel line by line") == 1
    assert "Traceback" not in result.stderr


@pytest.mark.slow
def test_faulty_updates_are_left_out_by_all_ranks_and_told_by_the_first(tmp_path: Path) -> None:
    settings = SETTINGS | {"spike_factor": 1.01, "on_fault": "skip", "learning_rate": 1e-5, "max_steps": 40}
    project = make_project(tmp_path, **settings, grad_accum_steps=2, max_tokens=90)
    result = run_ranks(tmp_path, [["train", str(project.config)]] * 2)
    assert result.statuses == [0, 0], result.stderr
    [told, *_] = [line for line in result.stderr.splitlines() if "in the steps before" in line]
    assert result.stderr.count(told) == 1
    assert "train.en:" in told
    alone = project.mtformer("train", project.config, "--set", "run.name=alone")
    assert "in the steps before" in alone.stderr
    assert [line["step"] for line in metrics(project, "config")] == [line["step"] for line in metrics(project, "alone")]


def test_a_faulty_update_ends_all_ranks_and_is_told_once(tmp_path: Path) -> None:
    project = make_project(tmp_path, **SETTINGS | {"learning_rate": 1e30, "warmup_steps": 0, "max_grad_norm": 1e30})
    result = run_ranks(tmp_path, [["train", str(project.config)]] * 2)
    assert result.statuses == [1, 1], result.stderr
    assert result.stderr.count("is not a finite number") == 1
    assert "train.en:" in result.stderr


@pytest.mark.slow
def test_ctrl_c_lets_all_ranks_save_and_the_same_ranks_go_on(tmp_path: Path) -> None:
    project = make_project(tmp_path, **SETTINGS | {"max_steps": 100_000, "checkpoint_every": 10})
    command = [sys.executable, "-m", "mtformer", "train", str(project.config), "--nproc", "2"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as launcher:
        try:
            wait_for_checkpoint(project)
        finally:
            launcher.send_signal(signal.SIGINT)
        _, stderr = launcher.communicate(timeout=300)
    assert launcher.returncode == 130, stderr
    assert "Traceback" not in stderr
    assert "rerun the same command to resume" in stderr
    newest = list_checkpoints(tmp_path / "runs" / "config" / "checkpoints")[0]
    max_steps = int(newest.name.removeprefix("step-")) + 3
    assert "resuming from step" in train(project, "config", 2, max_steps).stderr


@pytest.mark.slow
def test_a_failure_of_one_of_two_processes_that_translate_ends_both(trained: Project, tmp_path: Path) -> None:
    text, output = tmp_path / "in.en", tmp_path / "out.de"
    text.write_bytes("".join(f"{src}\n" for src, _ in sentence_pairs(7, seed=8)).encode() + b"\xff\n")
    command = ["translate", "--model", "runs/config", "--input", str(text), "--output", str(output)]
    failed = run_ranks(trained.folder, [command] * 2)
    assert failed.statuses == [2, 2], failed.stderr
    assert failed.stderr.count("in.en:8: byte 0xff") == 1
    assert not output.exists()
    done = run_ranks(trained.folder, [[*command, "--resume", "--on-error", "copy"]] * 2)
    assert done.statuses == [0, 0], done.stderr
    assert len(output.read_text("utf-8").splitlines()) == 8


def wait_for_checkpoint(project: Project) -> None:
    for _ in range(3_000):
        if list_checkpoints(project.folder / "runs" / "config" / "checkpoints"):
            return
        time.sleep(0.1)
    raise AssertionError("there is no checkpoint after five minutes")


def test_when_a_rank_is_killed_the_others_stop_and_the_next_start_resumes(tmp_path: Path) -> None:
    project = make_project(tmp_path, **SETTINGS | {"checkpoint_every": 5})
    killed = run_ranks(tmp_path, [["train", str(project.config)]] * 2, partial(main_or_die, 1, 8))
    assert killed.statuses == [1, -signal.SIGKILL]
    assert "rank 0 has lost another rank and stops; rerun the command to resume" in killed.stderr
    result = project.mtformer("train", project.config, "--set", "training.max_steps=8")
    assert "resuming from step 5" in result.stderr


@pytest.mark.slow
def test_torchrun_restarts_a_run_though_the_rank_that_held_the_lock_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    project = make_project(tmp_path, **SETTINGS | {"checkpoint_every": 5})
    standalone = {"rdzv_backend": "c10d", "rdzv_endpoint": "localhost:0"}
    settings = {"min_nodes": 1, "max_nodes": 1, "nproc_per_node": 2, "max_restarts": 1, **standalone}
    command = ["train", str(project.config), "--fresh"]
    stderr = torchrun(tmp_path, command, settings, partial(main_or_die, 0, 8))
    assert "resuming from step 5" in stderr  # whether rank 1 notices the loss before torchrun stops it or not
    assert stderr.count("training the tokenizer") == 1
    assert metrics(project, "config")[-1]["step"] == 20


@pytest.fixture
def two_hosts() -> Iterator[list[str]]:
    """Two network namespaces joined by a cable, which only the superuser may make."""
    names = [f"mtformer-{os.getpid()}-{i}" for i in (1, 2)]
    ends = [f"mt{os.getpid() % 10**9}.{i}" for i in (1, 2)]
    commands = [f"ip netns add {name}" for name in names]
    commands.append(f"ip link add {ends[0]} netns {names[0]} type veth peer name {ends[1]} netns {names[1]}")
    for i, (name, end) in enumerate(zip(names, ends, strict=True), 1):
        commands += [
            f"ip -n {name} address add 10.77.0.{i}/24 dev {end}",
            f"ip -n {name} link set {end} up",
            f"ip -n {name} link set lo up",
        ]
    try:
        for command in commands:
            if shutil.which("ip") is None or subprocess.run(command.split(), capture_output=True).returncode:
                pytest.skip(f"cannot {command}")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)


@pytest.mark.slow
def test_two_machines_train_as_one_process_does(two_hosts: list[str], tmp_path: Path) -> None:
    project = make_project(tmp_path, **SETTINGS)
    train(project, "one", 1)
    command = ["train", str(project.config), "--set", "run.name=two"]
    hosts = [start(run_on_host, *host, tmp_path, command) for host in enumerate(two_hosts)]
    for host in hosts:
        host.join(120)
    messages = [path.read_text("utf-8") for path in tmp_path.glob("logs/**/stderr.log")]
    assert [host.exitcode for host in hosts] == [0, 0], messages
    assert_same_curves(project, "two", "one")


def run_on_host(number: int, name: str, folder: Path, command: list[str]) -> None:
    [interface] = [link["ifname"] for link in json.loads(_ip("-n", name, "-j", "link")) if link["ifname"] != "lo"]
    with Path("/run/netns", name).open(encoding="utf-8") as namespace:
        assert ctypes.CDLL(None).setns(namespace.fileno(), 0) == 0
    os.environ["GLOO_SOCKET_IFNAME"] = interface
    first = {"rdzv_backend": "static", "rdzv_endpoint": "10.77.0.1:29500", "rdzv_configs": {"rank": number}}
    settings = {"min_nodes": 2, "max_nodes": 2, "nproc_per_node": 1, "run_id": "two hosts", **first}
    torchrun(folder, command, {"start_method": "fork", **settings})  # processes of another method start elsewhere


def _ip(*arguments: str) -> str:
    return subprocess.run(["ip", *arguments], capture_output=True, text=True, check=True).stdout


def test_shares_are_divided_and_brought_together() -> None:
    items = list(range(7))
    shares = [Ranks(rank, 3).share(items) for rank in range(3)]
    assert shares == [[0, 3, 6], [1, 4], [2, 5]]
    assert ALONE.unshare(ALONE.share(items)) == items


@pytest.fixture
def one_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with one GPU, as far as torch knows."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)


class ThreeRanks(Ranks):
    """One of three ranks on two machines, the other of which has what it needs."""

    def _gather(self, items: Sequence[Any]) -> list[Sequence[Any]]:
        return [items, items, []]


@pytest.mark.usefixtures("one_gpu")
@pytest.mark.parametrize("rank", [0, 1])
def test_more_ranks_than_gpus_are_an_error_of_every_rank_before_any_text_is_read(
    rank: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_RANK", str(rank))
    monkeypatch.setattr(run_module, "joined_ranks", lambda device: nullcontext(ThreeRanks(rank, 3)))
    config = load_config(make_project(tmp_path).config)
    (tmp_path / "train.en").unlink()
    with pytest.raises(UserError, match="has 1 GPU for 2 processes: start one process for each GPU"):
        run_module.train(config)


@pytest.mark.usefixtures("one_gpu")
def test_more_processes_than_gpus_are_refused_before_they_start() -> None:
    with pytest.raises(UserError, match="has 1 GPU for 2 processes"):
        launch(2, "auto")


@pytest.mark.parametrize(("exitcode", "status"), [(2, 2), (130, 130), (1, 1), (-9, 1)])
def test_several_processes_end_as_the_first_that_fails(
    exitcode: int, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    failure = ProcessFailure(0, 1, exitcode, "no file")
    failed = Mock(side_effect=ChildFailedError("mtformer", {0: failure}))
    monkeypatch.setattr("torch.distributed.run.run", failed)
    with pytest.raises(SystemExit) as ended:
        launch(2, "cpu")
    assert ended.value.code == status


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGHUP")
@pytest.mark.parametrize(("handler", "is_handled"), [(signal.SIG_IGN, False), (signal.SIG_DFL, True)])
def test_under_nohup_torchrun_ignores_a_hangup(
    handler: signal.Handlers, is_handled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = Mock()
    monkeypatch.setattr("torch.distributed.run.run", started)
    previous = signal.signal(signal.SIGHUP, handler)
    try:
        with pytest.raises(SystemExit):
            launch(2, "cpu")
    finally:
        signal.signal(signal.SIGHUP, previous)
    [arguments] = started.call_args.args
    assert ("SIGHUP" in arguments.signals_to_handle.split(",")) == is_handled


@pytest.mark.usefixtures("one_gpu")
def test_a_rank_of_a_machine_with_enough_gpus_hears_of_one_without() -> None:
    class OtherLacks(Ranks):
        def _gather(self, items: Sequence[Any]) -> list[Sequence[Any]]:
            return [items, [("elsewhere", "cuda", "elsewhere has 1 GPU for 2 processes")]]

    with pytest.raises(UserError, match="elsewhere has 1 GPU for 2 processes"):
        local_device(torch.device("cuda"), OtherLacks(0, 2))
    assert local_device(torch.device("cuda")) == torch.device("cuda", 0)
    assert local_device(torch.device("cpu")) == torch.device("cpu")


@pytest.mark.usefixtures("one_gpu")
@pytest.mark.parametrize(("own", "other"), [("cuda", "cpu"), ("cpu", "cuda")])
def test_ranks_on_different_types_of_device_are_an_error_of_every_rank(own: str, other: str) -> None:
    class OtherDiffers(Ranks):
        def _gather(self, items: Sequence[Any]) -> list[Sequence[Any]]:
            return [items, [("elsewhere", other, "")]]

    with pytest.raises(UserError, match=f"the same type of device, but found .*{other} on elsewhere"):
        local_device(torch.device(own), OtherDiffers(0, 2))


@pytest.mark.parametrize("failing", [{1}, {0, 1}])
def test_an_error_of_any_rank_is_reported_once(tmp_path: Path, failing: set[int]) -> None:
    done = run_ranks(tmp_path, [["train", "missing.yaml"] if rank in failing else ["--version"] for rank in range(2)])
    assert done.statuses == [2 if rank in failing else 0 for rank in range(2)]
    assert done.stderr.count("Error: cannot read the config missing.yaml: No such file or directory") == 1


def test_torchrun_is_not_told_to_start_torchrun() -> None:
    assert without_nproc(["train", "a.yaml", "--nproc", "2", "--fresh"]) == ["train", "a.yaml", "--fresh"]
    assert without_nproc(["train", "--nproc=2", "a.yaml"]) == ["train", "a.yaml"]
