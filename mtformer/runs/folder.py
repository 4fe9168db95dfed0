"""The folder of a run: its layout, its lock and its journals."""

import difflib
import json
import logging
import math
import os
import re
import shlex
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import yaml

from mtformer.bundle.peek import is_exported
from mtformer.config import Config, LanguagePair, dump_override
from mtformer.support import fast_yaml
from mtformer.support.errors import MtformerError, UserError
from mtformer.support.files import disk_errors, read_errors, sync, write_atomically
from mtformer.support.locks import holder_of, is_locked, lock
from mtformer.support.logs import finite

log = logging.getLogger(__name__)
C = TypeVar("C", bound=Config)

BUNDLE, ADAPTER = "model.safetensors", "adapter.safetensors"


class Journal:
    """A file such as ``metrics.jsonl``: a JSON object with ``step`` on each line."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[dict[str, Any]]:
        """Return the intact lines; damaged ones are skipped with a warning.

        A last line without its end is still being written, or a crash has cut it off: it is skipped silently.

        Raises:
            UserError: the file cannot be read.
        """
        lines = self._lines()
        damaged = [n for n, (line, values) in enumerate(lines, 1) if line.endswith(b"\n") and values is None]
        if damaged:
            shown = ", ".join(map(str, damaged[:5])) + (", …" if len(damaged) > 5 else "")
            log.warning("%s is damaged, and read without line %s", self.path, shown)
        return [values for _, values in lines if values is not None]

    def _lines(self) -> list[tuple[bytes, dict[str, Any] | None]]:
        """Return the lines, and the object on each; None on a damaged one."""
        with read_errors(self.path):
            try:
                lines = self.path.read_bytes().splitlines(keepends=True)
            except FileNotFoundError:
                return []
        return [(line, _parsed(line)) for line in lines]

    def write(self, values: dict[str, Any]) -> None:
        """Add a line; non-finite numbers become null, as JSON has none.

        Several processes may add lines at once. A last line that was cut off stays unreadable, and alone.

        Raises:
            MtformerError: the file cannot be written.
        """
        line = (json.dumps(finite(values), ensure_ascii=False) + "\n").encode()
        with disk_errors(self.path), self.path.open("a+b", buffering=0) as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                line = line if file.read() == b"\n" else b"\n" + line
            while line:  # one call writes it all, unless the disk is full: no line of another process comes between
                line = line[file.write(line) :]

    def sync(self) -> None:
        """Wait until all lines are on disk."""
        if self.path.is_file():
            with disk_errors(self.path):
                sync(self.path)

    def has_validations(self) -> bool:
        """Return whether a line contains validation scores."""
        return any(map(_has_scores, self.read()))

    def cut(self, last_step: int, *, is_validated: bool = True) -> None:
        """Remove the lines of later steps, which will be repeated, and lines that a crash has cut off.

        Args:
            last_step: the last step that will not be repeated.
            is_validated: whether its validation will not be repeated either.
        """

        def is_kept(values: dict[str, Any]) -> bool:
            is_repeated = values["step"] == last_step and not is_validated and _has_scores(values)
            return values["step"] <= last_step and not is_repeated

        if self.path.is_file():
            kept = b"".join(line for line, values in self._lines() if values is not None and is_kept(values))
            write_atomically(self.path, partial(Path.write_bytes, data=kept))


def _has_scores(values: dict[str, Any]) -> bool:
    """Tell whether a line comes from a validation."""
    return "valid_loss" in values or "samples" in values


def _parsed(line: bytes) -> dict[str, Any] | None:
    """Return the object on a line; None if it is damaged."""
    try:
        values: dict[str, Any] = json.loads(line)
        return values if math.isfinite(values["step"]) else None
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


class RunFolder:
    """The layout of a run. Nothing of it needs to exist; anything else in the folder is the user's.

    Attributes:
        path: the folder itself.
        bundle: the bundle of the best model.
        adapter: of a run with ``training.lora``, what it has learned, without the model that it started from.
        config: every setting of the run, with versions and fingerprints.
        checkpoints: the folder of the checkpoints.
        snapshots: the folder of models from earlier steps.
        metrics: one JSON object a line: loss, learning rate, speed and validation scores.
        samples: translations of some validation sentences: one JSON object for each validation, as in
            ``{"step": 500, "samples": [{"src": "…", "ref": "…", "hyp": "…"}, …]}``.
        starts: one JSON object for each time the run was started or resumed: the machine, the data, the model.
        report: the page about the run.
        held_out: the folder of the pairs held out of the training text, where the config names no other text.
        joint_tokenizer: the SentencePiece model of both languages.
        separate_tokenizers: the SentencePiece models of source and target, where each has its own.
        tensorboard: TensorBoard's files.
        wandb_id: the run's id at Weights & Biases.
        cleared: the id of the launch by torchrun or Slurm that started the run from scratch: its restarts resume.
        lock_file: the file that the process that trains holds a lock on.
        folders_left_behind: the folders that a run leaves behind, and ``--fresh`` removes.
        files_left_behind: the files that it leaves behind, and ``--fresh`` removes.
        parts: all of these.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bundle = path / BUNDLE
        self.adapter = path / ADAPTER
        self.config = path / "config.yaml"
        self.checkpoints = path / "checkpoints"
        self.snapshots = path / "snapshots"
        self.metrics = path / "metrics.jsonl"
        self.samples = path / "samples.jsonl"
        self.starts = path / "starts.jsonl"
        self.report = path / "report.html"
        self.held_out = path / "held_out"
        self.joint_tokenizer = path / "tokenizer.model"
        self.separate_tokenizers = path / "tokenizer.src.model", path / "tokenizer.tgt.model"
        self.tensorboard = path / "tensorboard"
        self.wandb_id = path / "wandb.id"
        self.cleared = path / "cleared"
        self.lock_file = path / "lock"
        self.folders_left_behind = [self.checkpoints, self.snapshots, self.tensorboard, self.held_out]
        self.files_left_behind = [
            *(self.config, self.metrics, self.samples, self.starts, self.bundle, self.adapter),
            *(self.wandb_id, self.report, self.joint_tokenizer, *self.separate_tokenizers),
        ]
        self.parts = [self.lock_file, self.cleared, *self.folders_left_behind, *self.files_left_behind]

    @classmethod
    def of(cls, config: Config) -> "RunFolder":
        """Return the folder of the run that ``config`` describes."""
        return cls(config.run.dir.expanduser() / (config.run.name or "run"))

    def read_config(self, kind: type[C]) -> C:
        """Read ``config.yaml`` as a ``Config``, or as a ``ResolvedConfig``, which a run of this version has.

        Raises:
            UserError: it cannot be read, or it is not that of a run of this version.
        """
        try:
            with read_errors(self.config):
                saved = fast_yaml.load(self.config.read_text(encoding="utf-8"))
            return kind.model_validate(saved)
        except (ValueError, yaml.YAMLError):
            raise UserError(
                f"{self.config} is not the config of a run of this version of mtformer; if it is damaged, resuming the "
                "training writes it again"
            ) from None

    def held_out_files(self, part: str, languages: LanguagePair) -> tuple[Path, Path]:
        """Return the two files of ``valid`` or ``test`` in one direction, as in ``held_out/test.en-de.en``."""
        src, tgt = (self.held_out / f"{part}.{languages}.{language}" for language in languages)
        return src, tgt

    @property
    def resume_command(self) -> str:
        """The command that resumes the run where it is now: its settings name the folder that it was started in."""
        command, place = ["mtformer", "train", self.config.as_posix()], self.path.resolve()
        with suppress(UserError):
            if RunFolder.of(self.read_config(Config)).path.resolve() != place:
                named = {"run.dir": place.parent.as_posix(), "run.name": place.name}
                command += (part for key, name in named.items() for part in ("--set", dump_override(key, name)))
        return shlex.join(command)

    @property
    def is_training(self) -> bool:
        """Whether a process trains in the folder; False where the file system cannot tell."""
        return is_locked(self.lock_file)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the folder for one training process; at the end remove the folders made for it if they are empty.

        Raises:
            UserError: another process holds it, or the folder cannot be made.
            MtformerError: the lock's file cannot be written.
        """
        path = self.lock_file
        made = [folder for folder in (self.path, *self.path.parents) if not folder.exists()]
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"cannot make the folder {self.path} (run.dir, run.name): {error.strerror}") from error
        try:
            # A command that only looks whether the folder is locked may hold the lock for a moment.
            held = lock(path, seconds=0.5, holder=f"process {os.getpid()} on {socket.gethostname()}")
        except TimeoutError:
            raise UserError(
                f"{self.path}: {holder_of(path) or 'another process'} is training in this folder. Wait for it, stop "
                "it, or give this run another name (--set run.name=…)"
            ) from None
        except OSError as error:
            raise MtformerError(f"cannot lock {path}: {error.strerror}") from error
        try:
            with held:
                yield
        finally:
            with suppress(OSError):
                for folder in made or [self.path]:
                    folder.rmdir()


def run_of(model: Path) -> RunFolder | None:
    """Return the run that a bundle is in the folder of; None if it is in none, or is an exported model."""
    run = RunFolder(model.parent)
    return run if run.config.is_file() and not is_exported(model) else None


def files_of_runs(folder: Path, name: str) -> list[Path]:
    """List the files of a name in the runs in ``folder``, the newest last.

    A model that was exported to transformers has a file of a bundle's name, beside their ``config.json``.
    """
    files = filter(Path.is_file, folder.glob(f"*/{name}"))  # no links to models that are gone
    ours = (file for file in files if not file.with_name("config.json").exists())
    return sorted(ours, key=lambda file: file.stat().st_mtime)


def hint(path: Path, file: str) -> str:
    """Name the run with ``file`` that a path without it is in, or whose name is nearest, or else the newest around."""
    if (path.parent / file).is_file():  # a file of a run
        return f"; did you mean {path.parent}?"
    runs = [found.parent for folder in (Path("runs"), path.parent, path) for found in files_of_runs(folder, file)]
    if not runs:
        return ""
    name = path.parent.name if path.name == file else re.sub(r"\.ya?ml$", "", path.name)  # of a run, or its config
    close = difflib.get_close_matches(name, [run.name for run in runs], n=1)
    nearest = next((run for run in runs if run.name in close), None)
    return f"; did you mean {nearest}?" if nearest else f"; the newest run here is {runs[-1]}"
