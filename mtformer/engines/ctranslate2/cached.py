"""Bundles converted for CTranslate2, each once, in the user's cache."""

import logging
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from mtformer.bundle.peek import peek
from mtformer.engines.ctranslate2.folder import FORMAT, ExportedModel, read_folder
from mtformer.support.cache import cache_folder, checked_once, from_cache
from mtformer.support.errors import UserError

if TYPE_CHECKING:
    from mtformer.bundle.format import Bundle

log = logging.getLogger(__name__)

_MAX_BYTES = 8 * 2**30  # of all models in the cache: three of 600 million parameters


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

    Raises:
        UserError: the bundle is damaged.
    """
    loaded: Bundle | None = None

    def load() -> bool:
        from mtformer.bundle.format import load_bundle

        nonlocal loaded
        loaded = load_bundle(path)
        return peeked is not None and loaded.digest == peeked.digest

    peeked = peek(path)
    if peeked is not None:
        with suppress(OSError):
            if checked_once(path, peeked.digest, load):
                return peeked.digest, loaded
    if loaded is None:
        load()
    assert loaded is not None
    return loaded.digest, loaded
