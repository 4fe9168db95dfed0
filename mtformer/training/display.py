"""What a terminal shows while a model trains: one live line, and a row for each validation."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from mtformer.runs.contents import METRIC_NAMES
from mtformer.support import logs
from mtformer.support.progress import clock
from mtformer.training.update import RunningLoss
from mtformer.training.validation import Validation

log = logging.getLogger(__name__)


class Pace:
    """Measures how long steps and validations take, from its creation on, to estimate how long the rest will."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._n_steps = 0
        self._n_validations = 0
        self._validating = 0.0

    def count_step(self) -> None:
        """Count a step as done."""
        self._n_steps += 1

    @contextmanager
    def validation(self) -> Iterator[None]:
        """Measure a validation."""
        started = time.monotonic()
        yield
        self._validating += time.monotonic() - started
        self._n_validations += 1

    def eta(
        self, step: int, last_step: int | None, validate_every: int, seconds_left: float | None
    ) -> tuple[float, float | None]:
        """Estimate the seconds to the end of the run.

        Args:
            step: the steps that are done.
            last_step: the number of the last step, if a limit determines it.
            validate_every: the steps between validations; one more follows the last step.
            seconds_left: the time until ``max_minutes``, validations included, if there is such a limit.

        Returns:
            the time of the steps alone, and that of steps and validations: None if no validation has been measured.
        """
        per_step = max(1e-9, time.monotonic() - self._started - self._validating) / max(1, self._n_steps)
        per_validation = self._validating / self._n_validations if self._n_validations else 0.0
        steps_left = float("inf") if last_step is None else last_step - step
        if seconds_left is not None:
            steps_left = min(steps_left, max(0.0, seconds_left) / (per_step + per_validation / validate_every))
        validations_left = (step + steps_left) // validate_every - step // validate_every
        if (step + steps_left) % validate_every:
            validations_left += 1
        training = steps_left * per_step
        return training, training + validations_left * per_validation if self._n_validations else None


def live_note(running: RunningLoss, metric: str, best: float | None, eta: tuple[float, float | None]) -> str:
    """Return the text of the live line beside the step.

    Args:
        running: the loss and the speed of the latest steps.
        metric: the key of the metric that selects the best model.
        best: its best value so far; None before the first validation.
        eta: the result of :meth:`Pace.eta`.
    """
    metrics = running.metrics()
    parts = [f"loss {metrics['train_loss']:.3f}"]
    if best is not None:
        name = "valid loss" if metric == "loss" else METRIC_NAMES[metric]  # beside that of training
        parts.append(f"{name} {best:.{_decimals(metric)}f}")
    parts.append(f"{metrics['tokens_per_second']:,.0f} tokens/s")
    training, everything = eta
    parts.append(f"ETA {clock(training)}" + ("" if everything is None else f" ({clock(everything)} with validations)"))
    return ", ".join(parts)


class ValidationTable:
    """Logs a row for each validation, below a header; not among JSON logs, which have the metrics as objects."""

    def __init__(self, metric: str, *, with_samples: bool = False) -> None:
        """Set up the columns.

        Args:
            metric: the key of the metric that selects the best model.
            with_samples: show sample translations below each row.
        """
        self._names = ["bleu", *([metric] if metric not in ("bleu", "loss") else [])]
        self._with_samples = with_samples
        self._has_header = False

    def add(
        self, *, step: int, epoch: float, minutes: float, training: RunningLoss, result: Validation, is_best: bool
    ) -> None:
        """Log the row of a validation.

        Args:
            step: where it took place.
            epoch: the passes over the data, as a fraction.
            minutes: the time spent so far.
            training: the loss and the speed since the validation before.
            result: the scores and samples.
            is_best: whether this is the best model so far.
        """
        if logs.is_json():
            return
        trained = training.metrics()
        has_trained = training.n_tokens > 0
        perplexity = result.perplexity
        cells = {
            "    step": str(step),
            " epoch": f"{epoch:.1f}",
            "minutes": f"{minutes:.1f}",
            "train loss": f"{trained['train_loss']:.3f}" if has_trained else "",
            "valid loss": f"{result.loss:.3f}",
            "perplexity": f"{perplexity:.2f}" if perplexity < 1e6 else f"{perplexity:.1e}",
        }
        cells |= {f"{METRIC_NAMES[name]:>6}": f"{result.scores[name]:.2f}" for name in self._names}
        cells["tokens/s"] = f"{trained['tokens_per_second']:,.0f}" if has_trained else ""
        if not self._has_header:
            log.info("%s", "  ".join(cells))
            self._has_header = True
        row = "  ".join(value.rjust(len(header)) for header, value in cells.items())
        log.info("%s", f"{row}  best" if is_best else row)
        if result.by_direction:
            of_each = [f"{direction} {scores['bleu']:.2f}" for direction, scores in result.by_direction.items()]
            log.info("    BLEU: %s", ", ".join(of_each))
        for sample in result.samples if self._with_samples else ():
            log.info("    source:     %s\n    reference:  %s\n    hypothesis: %s", *sample[:3])


def _decimals(metric: str) -> int:
    return 3 if metric == "loss" else 2
