"""The command line, in which one rank is killed before an update; a rank that was restarted is left alone."""

import os
import signal
from collections.abc import Sequence

from mtformer.cli import main
from mtformer.data.batches import Batch
from mtformer.training.update import Update, Updater


def main_or_die(killed_rank: int, killed_step: int) -> None:
    """Run the command line; this process, if it is that rank, dies before the update of ``killed_step``."""
    update = Updater.update

    def update_or_die(
        self: Updater, batches: Sequence[Batch], step: int, rate: float, usual_loss: float | None = None
    ) -> Update:
        if step == killed_step:
            os.kill(os.getpid(), signal.SIGKILL)
        return update(self, batches, step, rate, usual_loss)

    if (int(os.environ["RANK"]), os.environ["TORCHELASTIC_RESTART_COUNT"]) == (killed_rank, "0"):
        Updater.update = update_or_die  # type: ignore[method-assign]
    main()
