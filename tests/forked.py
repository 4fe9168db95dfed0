"""Processes that start at once: they are forked from one that has already imported torch and mtformer."""

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from conftest import Project, Result
from torch.distributed import TCPStore  # type: ignore[attr-defined]
from torch.distributed.elastic.multiprocessing.api import DefaultLogsSpecs, Std
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from mtformer.cli import main
from mtformer.support.processes import launch

_METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
_CONTEXT = multiprocessing.get_context(_METHOD)
_CONTEXT.set_forkserver_preload(
    [
        "mtformer.training.run",
        "mtformer.report.writing",
        "mtformer.cli.app",
        "torch.distributed.fsdp",
        "torch._dynamo",  # which sharding imports
    ]
)
_SECONDS = 300


@dataclass(frozen=True)
class Ended:
    """How processes ended: the status of each, negative for a signal, and what all of them wrote."""

    statuses: list[int]
    stdout: str
    stderr: str


def run_ranks(folder: Path, commands: Sequence[Sequence[str]], program: Callable[[], object] = main) -> Ended:
    """Run command lines as ranks that work together, with the environment that torchrun would give them.

    Args:
        folder: the current folder of the processes.
        commands: the arguments of each rank.
        program: what each process calls.
    """
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)  # torchrun's, which outlives the ranks
    shared = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(store.port),
        "WORLD_SIZE": str(len(commands)),
        "LOCAL_WORLD_SIZE": str(len(commands)),
        "GROUP_RANK": "0",
        "TORCHELASTIC_RUN_ID": f"test-{store.port}",
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_USE_AGENT_STORE": "True",
    }
    with TemporaryDirectory() as written:
        out, err = Path(written, "out"), Path(written, "err")
        processes: list[BaseProcess] = []
        for rank, command in enumerate(commands):
            environment = os.environ | shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            arguments = (list(command), folder, dict(environment), (out, err), program)
            processes.append(start(_run, *arguments))
        try:
            for process in processes:
                process.join(_SECONDS)
        finally:
            for process in processes:
                process.kill()
                process.join()
        return Ended([process.exitcode or 0 for process in processes], out.read_text("utf-8"), err.read_text("utf-8"))


def start(work: Callable[..., object], *arguments: object) -> BaseProcess:
    """Start a process that calls a function of a module."""
    process: BaseProcess = _CONTEXT.Process(target=work, args=arguments)  # type: ignore[attr-defined]
    process.start()
    return process


def run(project: Project, command: Sequence[str], n_ranks: int) -> Result:
    """Run a command line, which must succeed, in this process or as so many ranks."""
    if n_ranks == 1:
        result = project.mtformer(*command)
    else:
        ended = run_ranks(project.folder, [command] * n_ranks)
        result = Result(max(map(abs, ended.statuses)), ended.stdout, ended.stderr)
    assert result.status == 0, result.stderr
    return result


def torchrun(
    folder: Path, command: Sequence[str], settings: dict[str, Any], program: Callable[[], object] = main
) -> str:
    """Run a command line as ranks that torchrun's agent starts, and restarts; return what they wrote to stderr.

    Args:
        folder: the current folder of the ranks, which gets their logs.
        command: the arguments of each rank.
        settings: of the agent.
        program: what each rank calls.
    """
    logs = DefaultLogsSpecs(str(folder / "logs"), redirects=Std.ALL)
    defaults: dict[str, Any] = {"start_method": _METHOD, "signals_to_handle": "SIGINT"}
    agent = elastic_launch(LaunchConfig(**defaults | settings, logs_specs=logs), _run_under_torchrun)
    on_sigint = signal.getsignal(signal.SIGINT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGINT")  # which the agent sets
        try:
            agent(list(command), folder, dict(os.environ), program)
        finally:
            signal.signal(signal.SIGINT, on_sigint)
    return "".join(path.read_text("utf-8") for path in sorted(folder.glob("logs/**/stderr.log")))


def _run_under_torchrun(
    command: list[str], folder: Path, environment: dict[str, str], program: Callable[[], object]
) -> None:
    os.chdir(folder)
    os.environ.update(environment)
    sys.argv = ["mtformer", *command]
    launch.end_at_once = lambda: None  # the agent waits until this function returns
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # of which functions get two, while commands get one
    launch.Interrupt._SIGNALS = (signal.SIGINT,)
    program()


def _run(
    command: list[str],
    folder: Path,
    environment: dict[str, str],
    outputs: tuple[Path, Path],
    program: Callable[[], object],
) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, path in enumerate(outputs, 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    sys.argv = ["mtformer", *command]
    program()
