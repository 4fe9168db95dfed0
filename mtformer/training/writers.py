"""Destinations of metrics besides ``metrics.jsonl``."""

import importlib.util
import logging
import os
import secrets
from functools import partial
from pathlib import Path
from typing import Protocol

from mtformer.config import Config
from mtformer.runs.folder import RunFolder
from mtformer.support import logs
from mtformer.support.errors import UserError
from mtformer.support.files import write_atomically

log = logging.getLogger(__name__)


class Writer(Protocol):
    """Receives metrics during training."""

    def write(self, step: int, values: dict[str, float]) -> None:
        """Record the values of a step."""

    def close(self) -> None:
        """Flush and close."""


class TensorBoardWriter:
    """Writes the files that ``tensorboard --logdir runs`` shows."""

    def __init__(self, folder: RunFolder, first_step: int) -> None:
        """Hide the values of ``first_step`` and later steps in earlier files: they will be repeated."""
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(folder.tensorboard), purge_step=first_step)

    def write(self, step: int, values: dict[str, float]) -> None:
        """Record the values of a step."""
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self) -> None:
        """Flush and close."""
        self._writer.close()


class WandbWriter:
    """Sends metrics to Weights & Biases, to the project in ``WANDB_PROJECT`` or else to ``mtformer``."""

    def __init__(self, folder: RunFolder, config: Config) -> None:
        """Start a run, or resume the one that belongs to the folder."""
        import wandb

        file = folder.wandb_id
        if not file.is_file():
            write_atomically(file, partial(Path.write_text, data=secrets.token_hex(4), encoding="utf-8"))
        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "mtformer"),
            name=config.run.name,
            id=file.read_text(encoding="utf-8"),
            resume="allow",
            dir=folder.path,
            config=config.model_dump(mode="json"),
        )

    def write(self, step: int, values: dict[str, float]) -> None:
        """Record the values of a step."""
        self._run.log(values, step=step)

    def close(self) -> None:
        """Flush and close."""
        self._run.finish()


class LogWriter:
    """Logs metrics as JSON objects on stderr."""

    def write(self, step: int, values: dict[str, float]) -> None:
        """Record the values of a step."""
        log.info("metrics of step %d", step, extra={"metrics": {"step": step, **values}})

    def close(self) -> None:
        """Do nothing."""


def require_packages(config: Config) -> None:
    """Check that the packages that ``config`` needs for its writers are installed.

    Raises:
        UserError: one is not installed.
    """
    missing = [name for name in dict.fromkeys(config.training.log_to) if importlib.util.find_spec(name) is None]
    if missing:
        raise UserError(f"training.log_to: {', '.join(missing)} not installed; pip install {' '.join(missing)}")


def make_writers(config: Config, folder: RunFolder, first_step: int) -> list[Writer]:
    """Return the writers that ``config`` names, for a run whose next step is ``first_step``."""
    writers: list[Writer] = [LogWriter()] if logs.is_json() else []
    if "tensorboard" in config.training.log_to:
        writers.append(TensorBoardWriter(folder, first_step))
    if "wandb" in config.training.log_to:
        writers.append(WandbWriter(folder, config))
    return writers
