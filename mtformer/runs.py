"""The folder of a run: what it contains and where."""

import logging
import os
from dataclasses import dataclass
from pathlib import Path

from mtformer.config import Config
from mtformer.errors import UserError

log = logging.getLogger(__name__)

_BUNDLE = "model.safetensors"


@dataclass(frozen=True)
class RunFolder:
    """The layout of a run.

    Attributes:
        path: the folder itself.
    """

    path: Path

    @classmethod
    def of(cls, config: Config) -> "RunFolder":
        """Return the folder that ``config`` names."""
        return cls(config.run.dir.expanduser() / (config.run.name or "run"))

    @property
    def bundle(self) -> Path:
        """The bundle of the best model."""
        return self.path / _BUNDLE

    @property
    def config(self) -> Path:
        """Every setting of the run, with versions and fingerprints."""
        return self.path / "config.yaml"

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints."""
        return self.path / "checkpoints"

    @property
    def metrics(self) -> Path:
        """One JSON object a line: loss, learning rate, speed and validation scores."""
        return self.path / "metrics.jsonl"

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
        """The id of the run at Weights & Biases."""
        return self.path / "wandb.id"


def find_model(given: Path | None) -> Path:
    """Return the bundle to use: ``given``, else the environment's ``MTFORMER_MODEL``, else that of the newest run.

    Args:
        given: a bundle or a run's folder.

    Raises:
        UserError: there is none.
    """
    path = given or (Path(os.environ["MTFORMER_MODEL"]) if os.environ.get("MTFORMER_MODEL") else None)
    if path is None:
        bundles = sorted(Path("runs").glob(f"*/{_BUNDLE}"), key=lambda bundle: bundle.stat().st_mtime)
        if not bundles:
            raise UserError("there is no trained model under runs/: train one, or name one with --model")
        log.info("model: %s", bundles[-1])
        return bundles[-1]
    return RunFolder(path).bundle if path.is_dir() else path
