"""The command line, in which one rank is killed before an update: torchrun … faulty_rank.py RANK STEP train …

A rank that torchrun has restarted is left alone.
"""

import os
import signal
import sys
from collections.abc import Sequence

from mtformer.cli import main
from mtformer.data.batches import Batch
from mtformer.training.update import Update, Updater


def kill_in_step(killed_step: int, killed_rank: int, rank: int) -> None:
    """Let this process, if it is the rank to be killed, die before the update of ``killed_step``."""
    update = Updater.update

    def update_or_die(
        self: Updater, batches: Sequence[Batch], step: int, rate: float, usual_loss: float | None = None
    ) -> Update:
        if step == killed_step:
            os.kill(os.getpid(), signal.SIGKILL)
        return update(self, batches, step, rate, usual_loss)

    if rank == killed_rank:
        Updater.update = update_or_die  # type: ignore[method-assign]


if __name__ == "__main__":
    killed_rank, killed_step = int(sys.argv.pop(1)), int(sys.argv.pop(1))
    if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        kill_in_step(killed_step, killed_rank, int(os.environ["RANK"]))
    main()
