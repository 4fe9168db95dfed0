"""The folder of a run: its layout and its lock."""

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml

from mtformer.config import Config, LanguagePair
from mtformer.runs.journal import Journal
from mtformer.support.errors import MtformerError, UserError
from mtformer.support.locks import holder_of, is_locked, locked

C = TypeVar("C", bound=Config)

BUNDLE = "model.safetensors"


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
        return self.path / BUNDLE

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
    def held_out(self) -> Path:
        """The folder of the pairs held out of the training text, where the config names no other text."""
        return self.path / "held_out"

    def held_out_files(self, part: str, languages: LanguagePair) -> tuple[Path, Path]:
        """Return the two files of ``valid`` or ``test`` in one direction, as in ``held_out/test.en-de.en``."""
        src, tgt = (self.held_out / f"{part}.{languages}.{language}" for language in languages)
        return src, tgt

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

    @property
    def parts(self) -> list[Path]:
        """The files and folders of the run, whether they exist or not; anything else in the folder is the user's."""
        return [self.lock_file, self.cleared, *self.folders_left_behind, *self.files_left_behind]

    @property
    def folders_left_behind(self) -> list[Path]:
        """The folders that a run leaves behind, and ``--fresh`` removes."""
        return [self.checkpoints, self.tensorboard, self.held_out]

    @property
    def files_left_behind(self) -> list[Path]:
        """The files that a run leaves behind, and ``--fresh`` removes."""
        files = [self.config, self.metrics, self.samples, self.starts, self.bundle, self.wandb_id]
        return [*files, self.evaluations, self.report, self.joint_tokenizer, *self.separate_tokenizers]

    @property
    def is_training(self) -> bool:
        """Whether a process trains in the folder; False where the file system cannot tell."""
        return is_locked(self.lock_file)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the folder for one process that trains.

        Raises:
            UserError: another process holds it.
            MtformerError: the lock's file cannot be written.
        """
        path = self.lock_file
        with ExitStack() as stack:
            try:
                self.path.mkdir(parents=True, exist_ok=True)
                # A command that only looks whether the folder is locked may hold the lock for a moment.
                holder = f"process {os.getpid()} on {socket.gethostname()}"
                stack.enter_context(locked(path, seconds=0.5, holder=holder))
            except TimeoutError:
                raise UserError(
                    f"{self.path}: {holder_of(path) or 'another process'} is training in this folder. Wait for it, "
                    "stop it, or give this run another name (--set run.name=…)"
                ) from None
            except OSError as error:
                raise MtformerError(f"cannot lock {path}: {error.strerror}") from error
            yield
