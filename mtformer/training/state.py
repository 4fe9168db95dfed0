"""Where training stands."""

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Score(NamedTuple):
    """How good the model was in one validation.

    Attributes:
        value: the early-stopping metric, negated if lower is better.
        loss: the validation loss.
        step: the step of the validation.
    """

    value: float
    loss: float
    step: int

    @property
    def rank(self) -> tuple[float, float]:
        """A key by which better scores compare greater: among equal values, the lower loss is better."""
        return self.value, -self.loss if math.isfinite(self.loss) else -math.inf


@dataclass
class TrainState:
    """Where training stands. Together with weights and optimizer, it is all that resuming needs.

    Attributes:
        step: completed updates.
        epoch: completed passes over the data.
        batch: completed batches of the current epoch.
        plan_digest: the checksum of all batches of the current epoch.
        seconds: time spent training, validations included, over all starts of the run.
        best: the score of the best model so far, which is in the bundle.
        stale: validations since then.
        best_scores: the best scores, best first; their checkpoints are kept.
        usual_loss: the moving average of the loss per target token.
        skipped: faulty updates that were skipped.
        skipped_in_a_row: those since the last sound one.
        n_parts: into how many parts each batch is split, since memory ran out.
        validation_due: the run was interrupted before the validation of this step.
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    plan_digest: int = 0
    seconds: float = 0.0
    best: Score | None = None
    stale: int = 0
    best_scores: list[Score] = field(default_factory=list)
    usual_loss: float | None = None
    skipped: int = 0
    skipped_in_a_row: int = 0
    n_parts: int = 1
    validation_due: bool = False

    @property
    def best_steps(self) -> list[int]:
        """The steps whose checkpoints are kept for their scores."""
        return [score.step for score in self.best_scores]

    def record(self, score: Score, keep_best: int) -> bool:
        """Note the score of a validation.

        Args:
            score: NaN or infinity is never good.
            keep_best: the number of best scores to keep; of equal ones, the earlier are kept.

        Returns:
            Whether its model is the best so far.
        """
        is_finite = math.isfinite(score.value)
        is_best = is_finite and (self.best is None or score.rank > self.best.rank)
        if is_best:
            self.best, self.stale = score, 0
        else:
            self.stale += 1
        if is_finite:
            ranking = sorted([*self.best_scores, score], key=lambda score: score.rank, reverse=True)  # stable
            self.best_scores = ranking[:keep_best]
        return is_best

    @classmethod
    def load(cls, saved: dict[str, Any]) -> "TrainState":
        """Return the state that a checkpoint contains.

        Raises:
            TypeError: it is the state of another version of mtformer.
        """
        state = cls(**saved)
        state.best = Score(*state.best) if state.best else None
        state.best_scores = [Score(*score) for score in state.best_scores]
        return state
