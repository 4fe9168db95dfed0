"""Processes of a training: start several with torchrun, tell which one this is, interrupt and end it."""

import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any, NoReturn, Self

from mtformer.support.errors import UserError
from mtformer.support.hardware import pick_device
from mtformer.support.processes.ranks import require_gpus
from mtformer.support.processes.workers import n_cpus

_SECONDS_TO_SAVE = 300  # half a minute after an interrupt, torchrun would kill a process that is still saving


def launch(n_processes: int, device: str) -> NoReturn:
    """Let torchrun run this command line, without ``--nproc``, in ``n_processes`` processes, and exit as they do.

    Raises:
        UserError: torchrun has started this process already, or ``device`` is a GPU and there are too few.
    """
    if "WORLD_SIZE" in os.environ:
        raise UserError("torchrun already started this process: remove --nproc")
    require_gpus(pick_device(device), n_processes)
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import parse_args, run

    threads = str(max(1, n_cpus() // n_processes))
    os.environ.setdefault("OMP_NUM_THREADS", threads)  # torchrun would take 1
    options = f"--standalone --nproc-per-node {n_processes} --shutdown-timeout {_SECONDS_TO_SAVE}"
    if _ignores_hangup():  # torchrun would handle it, and its processes would no longer ignore it
        options += " --signals-to-handle SIGTERM,SIGINT,SIGQUIT"
    try:
        run(parse_args([*options.split(), "-m", "mtformer", *without_nproc(sys.argv[1:])]))
    except ChildFailedError as error:
        _, first = error.get_first_failure()
        sys.exit(first.exitcode if first.exitcode in (2, 130) else 1)  # the process has reported the error
    except SignalException:
        sys.exit(130)
    sys.exit(0)


def without_nproc(arguments: list[str]) -> list[str]:
    """Return command-line arguments without ``--nproc N`` and ``--nproc=N``."""
    kept = []
    remaining = iter(arguments)
    for argument in remaining:
        if argument == "--nproc":
            next(remaining, None)
        elif not argument.startswith("--nproc="):
            kept.append(argument)
    return kept


def is_first_rank() -> bool:
    """Return whether this process is the only one, or of several the one that prints."""
    return os.environ.get("RANK", "0") == "0"


def end_at_once() -> None:
    """End a process that torchrun has started, once its work is done, without Python's shutdown.

    Very rarely, the shutdown aborts ("terminate called without an active exception"), and torchrun would report a
    finished run as failed.
    """
    if "TORCHELASTIC_RUN_ID" in os.environ:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def is_restart() -> bool:
    """Return whether torchrun or Slurm has restarted this process."""
    counts = (os.environ.get(f"{launcher}_RESTART_COUNT", "0") for launcher in ("TORCHELASTIC", "SLURM"))
    return any(count != "0" for count in counts)


def launch_id() -> str:
    """Return the id of the launch, Slurm's or torchrun's, which restarts share; empty without them."""
    return os.environ.get("SLURM_JOB_ID") or os.environ.get("TORCHELASTIC_RUN_ID", "")


class Interrupt:
    """Inside, the first Ctrl-C or SIGTERM sets :attr:`requested`; the second one raises KeyboardInterrupt at once.

    SIGHUP, sent when a terminal is closed, also sets :attr:`requested`, unless it is ignored, as under ``nohup``. It
    does not count as the first: shells send it more than once, and SIGTERM often follows.
    """

    _SIGNALS: tuple[signal.Signals, ...] = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.requested = False
        self._stops_at_once = False
        self._previous: dict[signal.Signals, Any] = {}
        self._terminals: list[int] = []

    def __enter__(self) -> Self:
        numbers = self._SIGNALS
        if sys.platform != "win32" and not _ignores_hangup():
            numbers = (*numbers, signal.SIGHUP)
        self._terminals = [stream for stream in (1, 2) if os.isatty(stream)]
        self._previous = {number: signal.signal(number, self._handle) for number in numbers}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        note = b"\nsaving after this step\n"
        if number not in (signal.SIGINT, signal.SIGTERM):  # SIGHUP
            _discard_output(self._terminals)  # writing to a closed terminal is an error
        elif self._stops_at_once:
            raise KeyboardInterrupt
        else:
            self._stops_at_once = True
            note = b"\nsaving after this step; Ctrl-C again stops at once\n"
        self.requested = True
        try:
            os.write(2, note)  # a signal handler must not use print
        except OSError:  # the reader has ended, as tee does on Ctrl-C
            _discard_output([2])


def _ignores_hangup() -> bool:
    """Tell whether this process outlives its terminal, as under ``nohup``."""
    return sys.platform != "win32" and signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


def _discard_output(streams: Sequence[int]) -> None:
    nothing = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        os.dup2(nothing, stream)
    os.close(nothing)
