"""The progress of a run, and all that follows from it: the learning rate of a step, and the end."""

import math
from typing import NamedTuple

from mtformer.config import ResolvedTraining
from mtformer.runs.contents import limit_reached, out_of_patience
from mtformer.training.checkpoint import TrainState
from mtformer.training.optimizer import learning_rate


class Course(NamedTuple):
    """The course of a run, seen from where it stands.

    Attributes:
        settings: its limits, among others.
        warmup_share: the largest share of the run that the warm-up takes.
        state: where it stands.
        steps_per_epoch: the updates of this epoch.
    """

    settings: ResolvedTraining
    warmup_share: float
    state: TrainState
    steps_per_epoch: int

    @property
    def epochs(self) -> float:
        """The passes over the data, as a fraction."""
        return self._n_steps_of_epochs() / self.steps_per_epoch

    @property
    def share(self) -> float:
        """How much of the run is over, from 0 to 1, by the limit that will be reached first."""
        settings, state = self.settings, self.state
        return max(
            state.step / settings.max_steps if settings.max_steps else 0.0,
            self.epochs / settings.max_epochs if settings.max_epochs else 0.0,
            state.seconds / 60 / settings.max_minutes if settings.max_minutes else 0.0,
        )

    def learning_rate(self) -> float:
        """Return the learning rate of the next step."""
        settings = self.settings
        return learning_rate(
            self.state.step + 1,
            self.share,
            schedule=settings.schedule,
            peak=settings.learning_rate,
            warmup_steps=settings.warmup_steps,
            warmup_share=self.warmup_share,
        )

    def end(self) -> str:
        """Return the limit, or the early stopping, that ends the run here; an empty string if none does."""
        state = self.state
        limit = limit_reached(self.settings, step=state.step, epoch=state.epoch, seconds=state.seconds)
        return limit or out_of_patience(self.settings, state.stale)

    def total_steps(self) -> int | None:
        """Return the updates from first to last, where the limits tell."""
        settings = self.settings
        steps = [settings.max_steps] if settings.max_steps else []
        if settings.max_epochs:
            steps.append(self.state.step + settings.max_epochs * self.steps_per_epoch - self._n_steps_of_epochs())
        return min(steps, default=None)

    def _n_steps_of_epochs(self) -> int:
        """Return the steps up to here if all epochs were like this one.

        The steps done are others where updates were skipped, or had other batches before the run was resumed.
        """
        n_of_epoch = math.ceil(self.state.batch / self.settings.grad_accum_steps)
        return self.state.epoch * self.steps_per_epoch + n_of_epoch
