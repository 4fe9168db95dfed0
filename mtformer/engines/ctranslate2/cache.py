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


class _ReplacedError(Exception):
    """A bundle was replaced by another one while it was being converted."""


def converted(bundle: Path, quantization: str) -> ExportedModel:
    """Return the model of ``bundle``, converted for CTranslate2, from the cache or else through it.

    The cache is ``$XDG_CACHE_HOME/mtformer/ctranslate2`` (by default in ``~/.cache``). It may be deleted at any time; a
    damaged model in it is converted again, and those that were not used for longest are removed when it grows large. A
    bundle is compared with its digest once, and again when its file has changed.

    Raises:
        UserError: the bundle cannot be used.
        MtformerError: the cache cannot be written.
    """
    digest, loaded = _intact(bundle)
    folder = cache_folder("ctranslate2") / f"{digest}-{quantization}-{FORMAT.rpartition('-')[2]}"

    def read(path: Path) -> ExportedModel | None:
        with suppress(UserError):
            model = read_folder(path)
            return model if model.digest == digest else None
        return None

    def write(path: Path) -> None:
        from mtformer.bundle.format import load_bundle
        from mtformer.engines.ctranslate2.conversion import write_ctranslate2

        model = loaded or load_bundle(bundle)
        if model.digest != digest:
            raise _ReplacedError
        log.info("converting the model for CTranslate2, once: %s", folder)
        write_ctranslate2(path, model, name=bundle.name, quantization=quantization)

    try:
        return from_cache(folder, read, write, max_bytes=_MAX_BYTES, advice=", or use --engine torch")
    except _ReplacedError:
        return converted(bundle, quantization)


def _intact(path: Path) -> "tuple[str, Bundle | None]":
    """Return the digest of a bundle, and the bundle if it had to be read to compare the two.

    That is done once: the cache records the size and the times of the file, copies of a bundle with a line each.

    Raises:
        UserError: the bundle is damaged.
    """
    peeked, stamp = peek(path), ""
    with suppress(OSError):
        stat = path.stat()
        stamp = f"{stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}\n"
        if peeked and stamp in _record(peeked.digest).read_text(encoding="utf-8").splitlines(keepends=True):
            return peeked.digest, None
    from mtformer.bundle.format import load_bundle

    bundle = load_bundle(path)
    record = _record(bundle.digest)
    with suppress(OSError):  # a cache that cannot be written: the next process compares again
        record.parent.mkdir(parents=True, exist_ok=True)
        with record.open("a", encoding="utf-8") as file:
            file.write(stamp)
    return bundle.digest, bundle


def _record(digest: str) -> Path:
    return cache_folder("ctranslate2") / f"{digest}.intact"
