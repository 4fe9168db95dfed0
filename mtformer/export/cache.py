"""Bundles converted for CTranslate2 once, in the user's cache. Nothing here imports torch until one is converted."""

import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from mtformer.errors import MtformerError, UserError
from mtformer.export.folder import FORMAT, ExportedModel, read_folder
from mtformer.files import write_folder_atomically
from mtformer.header import peek

log = logging.getLogger(__name__)


def converted(bundle: Path, quantization: str) -> ExportedModel:
    """Return the model of ``bundle``, converted for CTranslate2, from the cache or else through it.

    The cache is ``$XDG_CACHE_HOME/mtformer/ctranslate2`` (by default in ``~/.cache``). It may be deleted at any time; a
    damaged model in it is converted again.

    Raises:
        UserError: the bundle cannot be used.
        MtformerError: the cache cannot be written.
    """
    peeked = peek(bundle)
    if peeked is None:
        from mtformer.bundle import load_bundle

        load_bundle(bundle)  # says what is wrong
        raise UserError(f"{bundle}: this bundle cannot be converted")
    folder = _cache() / f"{peeked.digest}-{quantization}-{FORMAT.rpartition('-')[2]}"
    if (found := _read(folder)) is not None:
        return found
    with _lock(folder):
        if (found := _read(folder)) is not None:  # another process has converted it meanwhile
            return found
        _convert(bundle, folder, quantization)
    return read_folder(folder)


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "mtformer" / "ctranslate2"


def _read(folder: Path) -> ExportedModel | None:
    """Read a folder of the cache; None if it is missing or damaged."""
    try:
        return read_folder(folder)
    except UserError:
        return None


def _convert(bundle: Path, folder: Path, quantization: str) -> None:
    from mtformer.bundle import load_bundle
    from mtformer.export.ctranslate2 import write_ctranslate2

    log.info("converting the model for CTranslate2, once: %s", folder)
    loaded = load_bundle(bundle)
    write_folder_atomically(
        folder, partial(write_ctranslate2, bundle=loaded, name=bundle.name, quantization=quantization)
    )


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Let one process at a time write ``folder``."""
    path = folder.with_name(f"{folder.name}.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise MtformerError(
            f"cannot write the cache {path.parent}: {error.strerror}; name another folder with $XDG_CACHE_HOME, or use "
            "--engine torch"
        ) from error
