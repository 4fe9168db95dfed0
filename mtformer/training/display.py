"""Progress of a training: in the terminal, one live line and a row for each validation; metrics, for other programs."""

import logging
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from mtformer.config import Config
from mtformer.runs.contents import METRIC_NAMES
from mtformer.runs.folder import RunFolder
from mtformer.support import logs
from mtformer.support.files import write_text
from mtformer.support.progress import clock
from mtformer.training.update import RunningLoss
from mtformer.training.validation import Validation

log = logging.getLogger(__name__)

_FEWEST_STEPS = 3  # before a time is estimated: the first ones also choose and compile kernels


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

    def eta(self, step: int, last_step: int | None, validate_every: int, seconds_left: float | None) -> float:
        """Estimate the seconds to the end of the run, with those of validations once one has been measured.

        Infinity stands for an unknown time, as in the first steps.

        Args:
            step: the steps that are done.
            last_step: the number of the last step, if a limit determines it.
            validate_every: the steps between validations; one more follows the last step.
            seconds_left: the time until ``max_minutes``, validations included, if there is such a limit.
        """
        if self._n_steps < _FEWEST_STEPS:
            return float("inf")
        per_step = max(1e-9, time.monotonic() - self._started - self._validating) / max(1, self._n_steps)
        per_validation = self._validating / self._n_validations if self._n_validations else 0.0
        steps_left = float("inf") if last_step is None else last_step - step
        if seconds_left is not None:
            steps_left = min(steps_left, max(0.0, seconds_left) / (per_step + per_validation / validate_every))
        validations_left = (step + steps_left) // validate_every - step // validate_every
        if (step + steps_left) % validate_every:
            validations_left += 1
        return steps_left * per_step + validations_left * per_validation


def live_note(running: RunningLoss, metric: str, best: float | None, eta: float) -> str:
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
        parts.append(f"{name} {best:.{3 if metric == 'loss' else 2}f}")
    parts.append(f"{metrics['tokens_per_second']:,.0f} tokens/s")
    parts.append(f"ETA {clock(eta)}")
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
            training: the loss since the validation before, and the speed.
            result: the scores and samples.
            is_best: whether this is the best model so far.
        """
        if logs.is_json():
            return
        trained = training.metrics()
        has_trained, speed = training.n_tokens > 0, trained["tokens_per_second"]
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
        if result.general:
            cells[METRIC_NAMES["general_bleu"]] = f"{result.general['bleu']:.2f}"
        cells["tokens/s"] = f"{speed:,.0f}" if speed else ""
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


Writer = Callable[[int, dict[str, float]], object]  # records the values of a step


def make_writers(config: Config, folder: RunFolder, first_step: int, stack: ExitStack) -> list[Writer]:
    """Return the writers that ``config`` names, for a run whose next step is ``first_step``; ``stack`` closes them."""
    writers: list[Writer] = [_log_metrics] if logs.is_json() else []
    if "tensorboard" in config.training.log_to:
        writers.append(_tensorboard(folder, first_step, stack))
    if "wandb" in config.training.log_to:
        writers.append(_wandb(folder, config, stack))
    return writers


def _log_metrics(step: int, values: dict[str, float]) -> None:
    """Log metrics as a JSON object on stderr."""
    log.info("metrics of step %d", step, extra={"metrics": {"step": step, **values}})


def _tensorboard(folder: RunFolder, first_step: int, stack: ExitStack) -> Writer:
    """Write the files that ``tensorboard --logdir runs`` shows.

    The values of ``first_step`` and later steps in earlier files are hidden: they will be repeated.
    """
    from torch.utils.tensorboard import SummaryWriter

    board = SummaryWriter(str(folder.tensorboard), purge_step=first_step)
    stack.callback(board.close)

    def write(step: int, values: dict[str, float]) -> None:
        for name, value in values.items():
            board.add_scalar(name, value, step)
        board.flush()

    return write


def _wandb(folder: RunFolder, config: Config, stack: ExitStack) -> Writer:
    """Send metrics to Weights & Biases, to the project in ``WANDB_PROJECT`` or else to ``mtformer``.

    A run starts there, or the one that belongs to the folder is resumed.
    """
    import wandb

    file = folder.wandb_id
    if not file.is_file():
        write_text(file, secrets.token_hex(4))
    run = wandb.init(
        project=os.environ.get("WANDB_PROJECT", "mtformer"),
        name=config.run.name,
        id=file.read_text(encoding="utf-8"),
        resume="allow",
        dir=folder.path,
        config=config.model_dump(mode="json"),
    )
    stack.callback(run.finish)
    return lambda step, values: run.log(values, step=step)
