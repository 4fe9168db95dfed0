"""Bundles converted for CTranslate2 once, in the user's cache. Nothing here imports torch until one is converted."""

import logging
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from mtformer.bundle.peek import peek
from mtformer.engines.ctranslate2.folder import FORMAT, ExportedModel, read_folder
from mtformer.support.cache import cache_folder, from_cache
from mtformer.support.errors import UserError

if TYPE_CHECKING:
    from mtformer.bundle.format import Bundle

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
        from mtformer.bundle.format import load_bundle

        load_bundle(bundle)  # says what is wrong
        raise UserError(f"{bundle}: this bundle cannot be converted")
    loaded = _compared(bundle, cache_folder("ctranslate2") / f"{peeked.digest}.intact")
    folder = cache_folder("ctranslate2") / f"{peeked.digest}-{quantization}-{FORMAT.rpartition('-')[2]}"

    def write(path: Path) -> None:
        log.info("converting the model for CTranslate2, once: %s", folder)
        _convert(bundle, loaded, path, quantization)

    return from_cache(folder, _read, write, max_bytes=_MAX_BYTES, advice=", or use --engine torch")


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
    from mtformer.bundle.format import load_bundle

    loaded = load_bundle(bundle)
    with suppress(OSError):  # a cache that cannot be written: the next process compares again
        record.parent.mkdir(parents=True, exist_ok=True)
        with record.open("a", encoding="utf-8") as file:
            file.write(stamp)
    return loaded


def _read(folder: Path) -> ExportedModel | None:
    try:
        return read_folder(folder)
    except UserError:
        return None


def _convert(bundle: Path, loaded: "Bundle | None", folder: Path, quantization: str) -> None:
    from mtformer.bundle.format import load_bundle
    from mtformer.engines.ctranslate2.conversion import write_ctranslate2

    loaded = loaded or load_bundle(bundle)
    write_ctranslate2(folder, loaded, name=bundle.name, quantization=quantization)
