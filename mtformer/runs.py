"""The folder of a run: its layout, its lock and its metrics."""

import difflib
import errno
import fcntl
import json
import logging
import math
import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import yaml

from mtformer.config import Config, TrainingConfig
from mtformer.errors import MtformerError, UserError
from mtformer.files import sync, write_atomically
from mtformer.logs import finite

log = logging.getLogger(__name__)

METRIC_NAMES = {"bleu": "BLEU", "chrf": "chrF", "ter": "TER", "loss": "loss", "perplexity": "perplexity"}
EXPORT_SETTINGS = "mtformer.json"  # of a model exported for another program
LOWER_IS_BETTER = ("loss", "perplexity", "ter")

C = TypeVar("C", bound=Config)

_BUNDLE = "model.safetensors"
_CANNOT_LOCK = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL)  # of some network file systems


@dataclass(frozen=True)
class RunFolder:
    """The layout of a run.

    Attributes:
        path: the folder itself.
    """

    path: Path

    @classmethod
    def of(cls, config: Config) -> "RunFolder":
        """Return the folder of the run that ``config`` describes."""
        return cls(config.run.dir.expanduser() / (config.run.name or "run"))

    @property
    def bundle(self) -> Path:
        """The bundle of the best model."""
        return self.path / _BUNDLE

    @property
    def config(self) -> Path:
        """Every setting of the run, with versions and fingerprints."""
        return self.path / "config.yaml"

    def read_config(self, kind: type[C]) -> C:
        """Read ``config.yaml`` as a ``Config``, or as a ``ResolvedConfig``, which a run of this version has.

        Raises:
            UserError: it cannot be read, or it is not that of a run of this version.
        """
        try:
            return kind.model_validate(yaml.safe_load(self.config.read_text(encoding="utf-8")))
        except OSError as error:
            raise UserError(f"cannot read {self.config}: {error.strerror}") from error
        except (ValueError, yaml.YAMLError):
            raise UserError(f"{self.config} is not the config of a run of this version of mtformer") from None

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints."""
        return self.path / "checkpoints"

    @property
    def metrics(self) -> Path:
        """One JSON object a line: loss, learning rate, speed and validation scores."""
        return self.path / "metrics.jsonl"

    def read_metrics(self) -> list[dict[str, Any]]:
        """Read the lines of ``metrics.jsonl``, of which a run that is training may have written the last one half."""
        return Journal(self.metrics).read()

    @property
    def samples(self) -> Path:
        """Translations of some validation sentences: one JSON object for each validation.

        ``{"step": 500, "samples": [{"src": "…", "ref": "…", "hyp": "…"}, …]}``
        """
        return self.path / "samples.jsonl"

    def read_samples(self) -> list[dict[str, Any]]:
        """Read the lines of ``samples.jsonl`` in the same way."""
        return Journal(self.samples).read()

    @property
    def starts(self) -> Path:
        """One JSON object for each time the run was started or resumed: the machine, the data, the model."""
        return self.path / "starts.jsonl"

    def read_starts(self) -> list[dict[str, Any]]:
        """Read the lines of ``starts.jsonl`` in the same way."""
        return Journal(self.starts).read()

    @property
    def report(self) -> Path:
        """The page about the run."""
        return self.path / "report.html"

    @property
    def evaluations(self) -> Path:
        """The scores and translations of each ``eval`` of the run's models: one JSON object a line."""
        return self.path / "evaluations.jsonl"

    @property
    def joint_tokenizer(self) -> Path:
        """The SentencePiece model of both languages."""
        return self.path / "tokenizer.model"

    @property
    def separate_tokenizers(self) -> tuple[Path, Path]:
        """The SentencePiece models of source and target, where each has its own."""
        return self.path / "tokenizer.src.model", self.path / "tokenizer.tgt.model"

    @property
    def tensorboard(self) -> Path:
        """TensorBoard's files."""
        return self.path / "tensorboard"

    @property
    def wandb_id(self) -> Path:
        """The run's id at Weights & Biases."""
        return self.path / "wandb.id"

    @property
    def cleared(self) -> Path:
        """The id of the launch by torchrun or Slurm that started the run from scratch: its restarts resume."""
        return self.path / "cleared"

    @property
    def lock_file(self) -> Path:
        """The file that the process that trains holds a lock on."""
        return self.path / "lock"

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the folder for one process that trains; the kernel releases it when the process ends, however it ends.

        Raises:
            UserError: another process holds it.
            MtformerError: the lock's file cannot be written.
        """
        path = self.lock_file
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            file = path.open("a+b", buffering=0)
        except OSError as error:
            raise MtformerError(f"cannot write {path}: {error.strerror}") from error
        with file:
            try:
                _take_lock(file.fileno())
            except BlockingIOError:
                file.seek(0)
                holder = file.read().decode(errors="replace").strip() or "another process"
                raise UserError(
                    f"{self.path}: {holder} is training in this folder. Wait for it, stop it, or give this run another "
                    "name (--set run.name=…)"
                ) from None
            except OSError as error:
                if error.errno not in _CANNOT_LOCK:
                    raise MtformerError(f"cannot lock {path}: {error.strerror}") from error
                log.warning("this file system cannot lock %s: make sure that nothing else trains there", path)
            try:
                file.truncate(0)
                file.write(f"process {os.getpid()} on {socket.gethostname()}\n".encode())
            except OSError as error:
                raise MtformerError(f"cannot write {path}: {error.strerror}") from error
            yield


class Journal:
    """A file such as ``metrics.jsonl``: a JSON object with ``step`` on each line."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[dict[str, Any]]:
        """Return the intact lines; lines that a crash has cut off, or that are still being written, are skipped.

        Raises:
            UserError: the file cannot be read.
        """
        try:
            lines = self.path.read_bytes().splitlines()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise UserError(f"cannot read {self.path}: {error.strerror}") from error
        return [json.loads(line) for line in lines if math.isfinite(_step_of(line))]

    def write(self, values: dict[str, Any]) -> None:
        """Add a line; non-finite numbers become null, as JSON has none.

        Several processes may add lines at once. A last line that was cut off stays unreadable, and alone.

        Raises:
            MtformerError: the file cannot be written.
        """
        line = (json.dumps(finite(values), ensure_ascii=False) + "\n").encode()
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
            try:
                size = os.fstat(descriptor).st_size
                if size and os.pread(descriptor, 1, size - 1) != b"\n":
                    line = b"\n" + line
                while line:  # one call writes it all, unless the disk is full: no line of another process comes between
                    line = line[os.write(descriptor, line) :]
            finally:
                os.close(descriptor)
        except OSError as error:
            raise MtformerError(f"cannot write {self.path}: {error.strerror}") from error

    def sync(self) -> None:
        """Wait until all lines are on disk."""
        if self.path.is_file():
            try:
                sync(self.path)
            except OSError as error:
                raise MtformerError(f"cannot write {self.path}: {error.strerror}") from error

    def has_validations(self) -> bool:
        """Return whether a line contains validation scores."""
        return self.path.is_file() and _scores(self.path.read_bytes())

    def cut(self, last_step: int, *, is_validated: bool = True) -> None:
        """Remove the lines of later steps, which will be repeated, and lines that a crash has cut off.

        Args:
            last_step: the last step that will not be repeated.
            is_validated: whether its validation will not be repeated either.
        """
        if self.path.is_file():
            lines = [line for line in self.path.read_bytes().splitlines(keepends=True) if _step_of(line) <= last_step]
            kept = b"".join(line for line in lines if is_validated or _step_of(line) < last_step or not _scores(line))
            write_atomically(self.path, partial(Path.write_bytes, data=kept))


def _take_lock(descriptor: int) -> None:
    """Lock a file; a command that only looks whether it is locked holds it for a moment, so try for half a second."""
    for pause in (0.1, 0.2, 0.2):
        with suppress(BlockingIOError):
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        time.sleep(pause)
    return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _scores(text: bytes) -> bool:
    """Tell whether ``text`` comes from a validation."""
    return b'"valid_loss"' in text or b'"samples"' in text


def _step_of(line: bytes) -> float:
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return math.inf


def limit_reached(training: TrainingConfig, *, step: int, epoch: int, seconds: float) -> str:
    """Return which limit ends a run, or an empty string while it may go on.

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
    """Return why early stopping ends a run after ``stale`` validations without a better model; empty if it does not."""
    patience = training.early_stopping_patience
    if isinstance(patience, int) and stale >= patience:
        return f"{stale} validations without a better model (training.early_stopping_patience)"
    return ""


def is_exported(path: Path) -> bool:
    """Tell whether ``path`` is the folder of a model exported for CTranslate2."""
    return (path / EXPORT_SETTINGS).is_file() and (path / "model.bin").is_file()


def run_of(model: Path) -> RunFolder | None:
    """Return the run that a bundle is in the folder of; None if it is in none, or is an exported model."""
    run = RunFolder(model.parent)
    return run if run.config.is_file() and not is_exported(model) else None


def find_model(given: Path | None) -> Path:
    """Return the bundle to use: that of ``given``, else of ``$MTFORMER_MODEL``, else of ``runs/``.

    Args:
        given: a bundle, a run's folder, or a folder of runs (the ``run.dir`` of their config), of which the newest with
            a bundle is taken; or the folder of a model exported for CTranslate2, which is returned as it is.

    Raises:
        UserError: there is none, or none yet; the message names the run that may be meant.
    """
    from_environment = os.environ.get("MTFORMER_MODEL")
    path = given or Path(from_environment or "runs")
    if path.is_dir():
        bundle = RunFolder(path).bundle
        if bundle.is_file():
            return bundle
        if is_exported(path):
            return path
        if bundles := _bundles_in(path):
            log.info("model: %s", bundles[-1])
            return bundles[-1]
    elif path.exists():
        return path
    if not given and not from_environment:
        raise UserError("there is no trained model under runs/: train one, or name one with --model")
    source = "" if given else " (from $MTFORMER_MODEL)"
    if RunFolder(path).lock_file.exists():
        raise UserError(f"the run {path}{source} has no model yet: training writes one at its first validation")
    raise UserError(f"there is no model at {path}{source}{_hint(path)}")


def find_models(given: Sequence[Path] | None) -> list[Path]:
    """Return the bundles of an ensemble, or the one to use where none is given; see :func:`find_model`."""
    return [find_model(path) for path in given] if given else [find_model(None)]


def _bundles_in(folder: Path) -> list[Path]:
    """List the bundles of the runs in ``folder``, the newest last."""
    return sorted(folder.glob(f"*/{_BUNDLE}"), key=lambda bundle: bundle.stat().st_mtime)


def _hint(path: Path) -> str:
    """Name the run whose name is nearest to a path without a model, or else the newest."""
    runs = [bundle.parent for folder in (Path("runs"), path.parent) for bundle in _bundles_in(folder)]
    if not runs:
        return ""
    name = path.parent.name if path.name == _BUNDLE else path.name
    close = difflib.get_close_matches(name, [run.name for run in runs], n=1)
    nearest = next((run for run in runs if run.name in close), None)
    return f"; did you mean {nearest}?" if nearest else f"; the newest run here is {runs[-1]}"
