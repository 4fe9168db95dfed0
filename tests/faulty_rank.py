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

if __name__ == "__main__":
    killed_rank, killed_step = int(sys.argv.pop(1)), int(sys.argv.pop(1))
    update = Updater.update

    def update_or_die(
        self: Updater, batches: Sequence[Batch], step: int, rate: float, usual_loss: float | None = None
    ) -> Update:
        first_start = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
        if first_start and (self.ranks.rank, step) == (killed_rank, killed_step):
            os.kill(os.getpid(), signal.SIGKILL)
        return update(self, batches, step, rate, usual_loss)

    Updater.update = update_or_die  # type: ignore[method-assign]
    main()
