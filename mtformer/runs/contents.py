"""The records of a run, read back from its folder and checked. Nothing is computed, so that training can afford it."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import UnionType
from typing import Any

from mtformer.bundle.peek import peek_shapes
from mtformer.config import ResolvedConfig, TrainingConfig
from mtformer.runs.checkpoints import list_checkpoints, step_of
from mtformer.runs.folder import Journal, RunFolder, hint
from mtformer.support.errors import UserError
from mtformer.support.terminal import counted

_NUMBER, _COUNT = int | float, int | None


def _read(path: Path, **kinds: type | UnionType) -> list[dict[str, Any]]:
    """Return the lines of the journal at ``path``, none if there is none.

    Raises:
        UserError: it cannot be read, or a line lacks one of the keys or has a value of another type there.
    """
    lines = Journal(path).read()
    for line in lines:
        for key, kind in kinds.items():
            if key not in line or not isinstance(line[key], kind):
                raise UserError(
                    f"{path}: the line of step {line['step']} is not one that mtformer writes (see its {key}): delete "
                    "it"
                )
    return lines


METRIC_NAMES = {
    "bleu": "BLEU",
    "chrf": "chrF",
    "ter": "TER",
    "loss": "loss",
    "perplexity": "perplexity",
    "general_bleu": "general BLEU",
}
LOWER_IS_BETTER = ("loss", "perplexity", "ter")


def limit_reached(training: TrainingConfig, *, step: int, epoch: int, seconds: float) -> str:
    """Return the limit that ends a run, or an empty string if none is reached.

    Args:
        training: its settings, with nothing left open.
        step: the updates done.
        epoch: the passes over the data done.
        seconds: the time spent, validations included.
    """
    if training.max_steps and step >= training.max_steps:
        return f"training.max_steps = {training.max_steps}"
    if training.max_epochs and epoch >= training.max_epochs:
        return f"training.max_epochs = {training.max_epochs}"
    if training.max_minutes and seconds >= 60 * training.max_minutes:
        return f"training.max_minutes = {training.max_minutes:g}"
    return ""


def out_of_patience(training: TrainingConfig, stale: int) -> str:
    """Return the reason to stop early after ``stale`` validations without a better model; empty if there is none."""
    patience = training.early_stopping_patience
    if isinstance(patience, int) and stale >= patience:
        return f"{counted(stale, 'validation')} without a better model (training.early_stopping_patience)"
    return ""


def forgets(training: TrainingConfig, general_bleu: float | None, at_start: float | None) -> bool:
    """Tell whether a model has lost more on general text than it may.

    Args:
        training: its settings.
        general_bleu: its BLEU on general validation text, if there is any.
        at_start: that of the model which fine-tuning started from, if it is known.
    """
    if training.max_forgetting is None or general_bleu is None or at_start is None:
        return False
    return at_start - general_bleu > training.max_forgetting


_ROUNDING = 0.05  # of the seconds in metrics.jsonl


@dataclass(frozen=True)
class Point:
    """A value that was recorded.

    Attributes:
        step: after this update.
        minutes: of training until then.
        value: the value.
    """

    step: int
    minutes: float
    value: float


@dataclass(frozen=True)
class Contents:
    """The records of a run.

    Attributes:
        folder: the run's.
        config: its settings.
        metrics: the intact lines of ``metrics.jsonl``, in order.
        starts: those of ``starts.jsonl``; empty just before training starts.
        samples: those of ``samples.jsonl``, in order of steps.
        parameters: the number of weights in each part of the model; empty before the first validation.
        is_training: whether a process trains in the folder now.
        saved_step: the step of the newest checkpoint; 0 if there is none.
    """

    folder: RunFolder
    config: ResolvedConfig
    metrics: list[dict[str, Any]]
    starts: list[dict[str, Any]]
    samples: list[dict[str, Any]]
    parameters: dict[str, int]
    is_training: bool
    saved_step: int = 0

    @property
    def name(self) -> str:
        """The name of the run's folder."""
        return self.folder.path.resolve().name

    @property
    def metric(self) -> str:
        """The metric that selects the best model, as in ``bleu``."""
        return self.config.training.early_stopping_metric

    @cached_property
    def validations(self) -> list[dict[str, Any]]:
        """The lines with validation scores."""
        return [line for line in self.metrics if "valid_loss" in line]

    @cached_property
    def best(self) -> dict[str, Any] | None:
        """The validation whose model is in the bundle; None before the first one."""
        sign = -1 if self.metric in LOWER_IS_BETTER else 1

        def rank(line: dict[str, Any]) -> tuple[float, float]:
            loss = line["valid_loss"]
            return sign * line[f"valid_{self.metric}"], -math.inf if loss is None else -loss

        first = self.validations[0].get("valid_general_bleu") if self.validations else None
        scored = [
            line
            for line in self.validations
            if line.get(f"valid_{self.metric}") is not None
            and not forgets(self.config.training, line.get("valid_general_bleu"), first)
        ]
        return max(scored, key=rank, default=None)  # of equal ones the first

    @property
    def step(self) -> int:
        """The last step in the metrics; before there are any, that of a checkpoint saved by Ctrl-C."""
        return max(int(self.metrics[-1]["step"]) if self.metrics else 0, self.saved_step)

    @property
    def minutes(self) -> float:
        """The time of training until :attr:`step`, validations included."""
        return self.metrics[-1]["seconds"] / 60 if self.metrics else 0.0

    @property
    def total_steps(self) -> int | None:
        """The steps that the run will have, if that is known; those done, if it has had all its epochs or more steps.

        An epoch may have a few steps more or fewer than the forecast, since its text varies.
        """
        total = self.starts[-1]["total_steps"] if self.starts else self.config.training.max_steps
        n_epochs = self.config.training.max_epochs
        if n_epochs and self.metrics and self.metrics[-1]["epoch"] >= n_epochs:
            return self.step
        return total and max(total, self.step)

    @property
    def resumes(self) -> list[dict[str, Any]]:
        """The starts that continued from a checkpoint and got further."""
        return [start for start in self.starts[1:] if 0 < start["step"] < self.step]

    @property
    def is_finished(self) -> bool:
        """Whether the last line of the metrics is at a limit; a run that reaches one validates once more."""
        if not self.metrics:
            return False
        last, validations = self.metrics[-1], self.validations
        stale = len(validations) - 1 - (validations.index(self.best) if self.best else -1)
        training, seconds = self.config.training, last["seconds"] + _ROUNDING
        limit = limit_reached(training, step=last["step"], epoch=last["epoch"], seconds=seconds)
        return bool(limit or out_of_patience(training, stale))

    @property
    def data(self) -> dict[str, Any]:
        """The training text, as the last start has recorded it; empty without one."""
        return self.starts[-1]["data"] if self.starts else {}

    @property
    def machine(self) -> dict[str, Any]:
        """The machine of the last start; empty without one."""
        return self.starts[-1]["machine"] if self.starts else {}

    @property
    def vocab_sizes(self) -> tuple[int, int] | None:
        """The tokens of source and target, if they are recorded."""
        if not self.starts:
            return None
        model = self.starts[-1]["model"]
        return model["src_vocab_size"], model["tgt_vocab_size"]

    def curve(self, key: str) -> list[Point]:
        """Return the values of ``key`` over the steps."""
        lines = (line for line in self.metrics if line.get(key) is not None)
        return [Point(line["step"], line["seconds"] / 60, float(line[key])) for line in lines]


def gather(path: Path, *, is_training: bool | None = None) -> Contents:
    """Read the records of the run in ``path``, finished or not.

    Args:
        path: the folder of the run.
        is_training: whether the run is still training; None to decide by the lock of its folder.

    Raises:
        UserError: ``path`` is not the folder of a run of this version, or a line of a journal is not one
            that training writes.
    """
    folder = RunFolder(path)
    if not folder.config.is_file():
        name = folder.config.name
        raise UserError(f"{path} is not the folder of a run: it has no {name}{hint(path, name)}")
    config = folder.read_config(ResolvedConfig)
    samples = sorted(_read(folder.samples, samples=list), key=lambda line: line["step"])
    metrics = _read(folder.metrics, epoch=_NUMBER, seconds=_NUMBER)
    of_run: dict[str, type | UnionType] = {"machine": dict, "data": dict, "model": dict}
    of_run |= {"steps_per_epoch": _NUMBER, "total_steps": _COUNT}
    starts = _read(folder.starts, seconds=_NUMBER, time=str, **of_run)
    is_training = folder.is_training if is_training is None else is_training
    step = max(map(step_of, list_checkpoints(folder.checkpoints)), default=0)
    return Contents(folder, config, metrics, starts, samples, _parameters(folder.bundle), is_training, step)


def _parameters(bundle: Path) -> dict[str, int]:
    """Count the weights of a bundle by part; return nothing if it cannot be read."""
    shapes = peek_shapes(bundle)
    parts = {"encoder": 0, "decoder": 0, "embeddings": 0} if shapes else {}
    for name, shape in shapes.items():
        part = next((part for part in ("encoder", "decoder") if name.startswith(part)), "embeddings")
        parts[part] += math.prod(shape)
    return parts


def differing_settings(runs: Sequence[Contents]) -> dict[str, list[Any]]:
    """Return the settings and circumstances in which runs differ: a value for each run, by dotted key."""
    settings = [dict(_flat(run.config.model_dump(mode="json", exclude={"run"}))) for run in runs]
    keys = dict.fromkeys(key for run in settings for key in run)
    values_of = {key: [run.get(key) for run in settings] for key in keys if not key.startswith("provenance.changes")}
    return {key: values for key, values in values_of.items() if any(value != values[0] for value in values)}


def _flat(tree: dict[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value
