"""Starting several training processes through torchrun, and what a process learns from it; torch is not needed here."""

import os
import sys
from typing import NoReturn

from mtformer.errors import UserError


def launch(n_processes: int) -> NoReturn:
    """Become torchrun, which runs this very command line, without ``--nproc``, in so many processes on this machine."""
    if "WORLD_SIZE" in os.environ:
        raise UserError("torchrun has started this process: leave --nproc to it")
    arguments = without_nproc(sys.argv[1:])
    threads = str(max(1, (os.cpu_count() or 1) // n_processes))
    os.environ.setdefault("OMP_NUM_THREADS", threads)  # torchrun would take 1
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(n_processes)]
    os.execv(sys.executable, [*torchrun, "-m", "mtformer", *arguments])


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


def is_restart() -> bool:
    """Tell whether torchrun has started this process again after a failure; then nothing must start over."""
    return os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0"
