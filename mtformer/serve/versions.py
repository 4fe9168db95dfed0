"""The contents of a model's file at some time."""

import math
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from mtformer.bundle.header import Header
from mtformer.bundle.peek import is_exported, peek, peek_shapes
from mtformer.engines.ctranslate2.folder import read_folder
from mtformer.engines.loading import LoadedModel
from mtformer.support.errors import UserError
from mtformer.translate.translator import Translator

if TYPE_CHECKING:
    from mtformer.bundle.format import Bundle

COPIES = {"torch": 2, "ctranslate2": 1}  # of the weights in memory: torch prepares some for inference

Stamp = tuple[int, int, int]  # tells whether a file has changed


class ChangedError(UserError):
    """A model's file was replaced after its description was read."""


@dataclass(eq=False)
class Version:
    """The contents of a model's file at some time. Running requests keep their version when the file is replaced.

    Attributes:
        path: the bundle or the folder.
        stamp: the stamp of the file when it was read.
        header: its description.
        n_bytes: the size of its weights.
        models: its loaded models, by the engine that was asked for.
        translators: for the latest requests.
        loading: the lock of the thread that loads it.
    """

    path: Path
    stamp: Stamp
    header: Header
    n_bytes: int
    models: dict[str, LoadedModel] = field(default_factory=dict)
    translators: OrderedDict[tuple[Any, ...], Translator] = field(default_factory=OrderedDict)
    loading: Any = field(default_factory=Lock)

    @classmethod
    def read(cls, path: Path) -> "Version":
        """Read the description of a model.

        Raises:
            UserError: it does not exist, or is damaged.
        """
        stamp = stamp_of(path)
        if stamp is None:
            raise UserError(f"there is no model at {path}")
        if is_exported(path):
            return cls(path, stamp, read_folder(path).header, (path / "model.bin").stat().st_size)
        peeked = peek(path)
        if peeked is None:
            from mtformer.bundle.format import load_bundle

            load_bundle(path)  # says what is wrong with it
            raise UserError(f"{path} has changed while it was read")
        return cls(path, stamp, peeked.header, path.stat().st_size)

    @property
    def loaded_bytes(self) -> int:
        """How much memory its weights take, about."""
        return sum(self.n_bytes * COPIES[model.engine_name] for model in list(self.models.values()))

    @property
    def size(self) -> str:
        """The number of parameters of a bundle, and the size of the weights."""
        n_parameters = sum(map(math.prod, peek_shapes(self.path).values()))
        return f"{n_parameters:,} parameters, " * bool(n_parameters) + f"{self.n_bytes / 1e6:.1f} MB"

    def bundle(self) -> "Bundle":
        """Read the bundle.

        Raises:
            MtformerError: it cannot be read.
        """
        from mtformer.bundle.format import load_bundle

        bundle = load_bundle(self.path)
        self.require_unchanged()
        return bundle

    def require_unchanged(self) -> None:
        """Check that the file is the one that was read.

        Raises:
            ChangedError: it has been replaced.
        """
        if stamp_of(self.path) != self.stamp:
            raise ChangedError(f"{self.path} has changed since its description was read; try again")


def stamp_of(path: Path) -> Stamp | None:
    """Return a stamp that changes with a model's file; None if there is no file."""
    try:
        stat = (path / "mtformer.json" if path.is_dir() else path).stat()
    except OSError:
        return None
    return stat.st_size, stat.st_mtime_ns, stat.st_ino
