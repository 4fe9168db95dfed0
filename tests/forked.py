"""Processes that start at once: they are forked from one that has already imported torch and mtformer."""

import multiprocessing
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory

from conftest import Project, Result
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from mtformer.cli import main

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
            processes.append(_CONTEXT.Process(target=_run, args=arguments))  # type: ignore[attr-defined]
            processes[-1].start()
        try:
            for process in processes:
                process.join(_SECONDS)
        finally:
            for process in processes:
                process.kill()
                process.join()
        return Ended([process.exitcode or 0 for process in processes], out.read_text("utf-8"), err.read_text("utf-8"))


def run(project: Project, command: Sequence[str], n_ranks: int) -> Result:
    """Run a command line, which must succeed, in this process or as so many ranks."""
    if n_ranks == 1:
        result = project.mtformer(*command)
    else:
        ended = run_ranks(project.folder, [command] * n_ranks)
        result = Result(max(map(abs, ended.statuses)), ended.stdout, ended.stderr)
    assert result.status == 0, result.stderr
    return result


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
