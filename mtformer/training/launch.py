"""Starting several training processes through torchrun, and what a process learns from it."""

import os
import sys
from typing import NoReturn

from mtformer.errors import UserError

_SECONDS_TO_SAVE = 300  # torchrun would kill, half a minute after an interrupt, who is still saving


def launch(n_processes: int) -> NoReturn:
    """Let torchrun run this very command line, without ``--nproc``, in so many processes, and end as they do."""
    if "WORLD_SIZE" in os.environ:
        raise UserError("torchrun has started this process: leave --nproc to it")
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import parse_args, run

    threads = str(max(1, (os.cpu_count() or 1) // n_processes))
    os.environ.setdefault("OMP_NUM_THREADS", threads)  # torchrun would take 1
    options = f"--standalone --nproc-per-node {n_processes} --shutdown-timeout {_SECONDS_TO_SAVE} -m mtformer"
    try:
        run(parse_args([*options.split(), *without_nproc(sys.argv[1:])]))
    except ChildFailedError as error:
        _, first = error.get_first_failure()
        sys.exit(first.exitcode if first.exitcode in (2, 130) else 1)  # what it was has been told by the process
    except SignalException:
        sys.exit(130)
    sys.exit(0)


def without_nproc(arguments: list[str]) -> list[str]:
    """Return command-line arguments without ``--nproc N`` and ``--nproc=N``."""
    kept = []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--nproc":
            next(rest, None)
        elif not argument.startswith("--nproc="):
            kept.append(argument)
    return kept


def is_first_rank() -> bool:
    """Tell whether this process is the only one, or the one of several that speaks to the user."""
    return os.environ.get("RANK", "0") == "0"


def end_at_once() -> None:
    """End a process that torchrun has started, now that its work is done, without tearing down Python.

    That has been seen, very rarely, to abort ("terminate called without an active exception"), and torchrun would take
    a finished run for a failed one.
    """
    if "TORCHELASTIC_RUN_ID" in os.environ:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def is_restart() -> bool:
    """Tell whether torchrun or Slurm has started this process again after a failure; nothing must start over then."""
    counts = (os.environ.get(f"{launcher}_RESTART_COUNT", "0") for launcher in ("TORCHELASTIC", "SLURM"))
    return any(count != "0" for count in counts)
