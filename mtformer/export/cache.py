"""Bundles converted for CTranslate2 once, in the user's cache. Nothing here imports torch until one is converted."""

import fcntl
import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mtformer.errors import MtformerError, UserError
from mtformer.export.folder import FORMAT, ExportedModel, read_folder
from mtformer.files import write_folder_atomically
from mtformer.header import peek

if TYPE_CHECKING:
    from mtformer.bundle import Bundle

log = logging.getLogger(__name__)

_MAX_BYTES = 2 * 2**30  # of all models in the cache


def converted(bundle: Path, quantization: str) -> ExportedModel:
    """Return the model of ``bundle``, converted for CTranslate2, from the cache or else through it.

    The cache is ``$XDG_CACHE_HOME/mtformer/ctranslate2`` (by default in ``~/.cache``). It may be deleted at any time; a
    damaged model in it is converted again, and those that were not used for longest are removed when it grows large. A
    bundle is compared with its digest once, and again when its file has changed.

    Raises:
        UserError: the bundle cannot be used.
        MtformerError: the cache cannot be written.
    """
    peeked = peek(bundle)
    if peeked is None:
        from mtformer.bundle import load_bundle

        load_bundle(bundle)  # says what is wrong
        raise UserError(f"{bundle}: this bundle cannot be converted")
    loaded = _compared(bundle, _cache() / f"{peeked.digest}.intact")
    folder = _cache() / f"{peeked.digest}-{quantization}-{FORMAT.rpartition('-')[2]}"
    if (found := _read(folder)) is not None:
        return found
    with _lock(folder):
        if (found := _read(folder)) is not None:  # another process has converted it meanwhile
            return found
        _convert(bundle, loaded, folder, quantization)
        _remove_oldest(folder)
    return read_folder(folder)


def _cache() -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():  # to be ignored, as the XDG base directory specification says
        base = Path("~/.cache").expanduser()
    return base / "mtformer" / "ctranslate2"


def _compared(bundle: Path, record: Path) -> "Bundle | None":
    """Compare a bundle with its digest, unless ``record`` says that this has been done since its file has changed.

    Returns:
        The bundle; None if it has not been read again.

    Raises:
        UserError: it is damaged.
    """
    stat = bundle.stat()
    stamp = f"{stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}\n"  # copies of a bundle have a line each
    with suppress(OSError):
        if stamp in record.read_text(encoding="utf-8").splitlines(keepends=True):
            return None
    from mtformer.bundle import load_bundle

    loaded = load_bundle(bundle)
    with suppress(OSError):  # a cache that cannot be written: the next process compares again
        record.parent.mkdir(parents=True, exist_ok=True)
        with record.open("a", encoding="utf-8") as file:
            file.write(stamp)
    return loaded


def _read(folder: Path) -> ExportedModel | None:
    """Read a folder of the cache; None if it is missing or damaged."""
    try:
        model = read_folder(folder)
    except UserError:
        return None
    with suppress(OSError):
        os.utime(folder)  # it is in use
    return model


def _convert(bundle: Path, loaded: "Bundle | None", folder: Path, quantization: str) -> None:
    from mtformer.bundle import load_bundle
    from mtformer.export.ctranslate2 import write_ctranslate2

    log.info("converting the model for CTranslate2, once: %s", folder)
    loaded = loaded or load_bundle(bundle)
    write_folder_atomically(
        folder, partial(write_ctranslate2, bundle=loaded, name=bundle.name, quantization=quantization)
    )


def _remove_oldest(kept: Path) -> None:
    """Remove the models that were not used for longest, until ``kept`` and the others fit into the cache."""
    with suppress(OSError):  # another process removes some as well
        folders = [path for path in kept.parent.iterdir() if path.is_dir() and path != kept]
        n_bytes = _size(kept)
        for folder in sorted(folders, key=lambda path: -path.stat().st_mtime):
            n_bytes += _size(folder)
            if n_bytes > _MAX_BYTES:
                log.info("removing a model from the cache: %s", folder)
                shutil.rmtree(folder, ignore_errors=True)


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Let one process at a time write ``folder``."""
    path = folder.with_name(f"{folder.name}.lock")
    with ExitStack() as stack:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context(path.open("wb"))
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:
            raise MtformerError(
                f"cannot write the cache {path.parent}: {error.strerror}; name another folder with $XDG_CACHE_HOME, or "
                "use --engine torch"
            ) from error
        yield
