"""Access to data sets and models of the Hugging Face hub: verified downloads, errors, licenses.

``huggingface_hub`` downloads (its cache: ``$HF_HOME``). It compares the sizes of files, but not their checksums.
"""

import hashlib
import logging
import os
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from mtformer.support.errors import MtformerError, UserError
from mtformer.support.progress import watched

log = logging.getLogger(__name__)

Downloaded = TypeVar("Downloaded")

COMMIT = re.compile(r"[0-9a-f]{40}")
_SHA1, _SHA256 = COMMIT, re.compile(r"[0-9a-f]{64}")
_OFFLINE = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE")


def prepare_hub() -> bool:
    """Have ``huggingface_hub`` use its cache alone where the hub cannot be reached; return whether it does.

    Its warnings are not shown: they are about retries, and advise to log in.
    """
    from huggingface_hub import constants

    library = logging.getLogger("huggingface_hub")
    library.handlers.clear()  # it would log each message a second time
    library.setLevel(logging.ERROR)
    if not constants.HF_HUB_OFFLINE and (reason := why_unreachable(constants.ENDPOINT)):
        log.warning("%s cannot be reached (%s): using only what is in the cache", constants.ENDPOINT, reason)
        constants.HF_HUB_OFFLINE = True
    return bool(constants.HF_HUB_OFFLINE)


@cache
def why_unreachable(endpoint: str) -> str | None:
    """Return the reason why the hub, or the proxy to it, cannot be reached; None if it can, or may just be slow.

    The library would try again for half a minute, which helps against load and lost connections alone.
    """
    hub = urlsplit(endpoint)
    proxies = {} if proxy_bypass(hub.hostname or "") else getproxies()
    address = urlsplit(proxies.get(hub.scheme) or proxies.get("all") or endpoint)
    if not address.hostname:
        return None
    port = address.port or (443 if address.scheme == "https" else 80)
    reason = None
    for pause in (1, 0):
        try:
            socket.create_connection((address.hostname, port), timeout=5).close()
        except TimeoutError:
            return None
        except OSError as error:
            reason = error.strerror or str(error)
            time.sleep(pause)
        else:
            return None
    return reason


@contextmanager
def explained(what: str, page: str, hint: Callable[[Exception], str] = lambda _: "") -> Iterator[None]:
    """Turn the many errors of the libraries into a sentence with a remedy.

    Args:
        what: the beginning of the sentence, as in ``cannot load the data set me/pairs``.
        page: the address where one asks for access.
        hint: returns what to add to an error of the user's.

    Raises:
        UserError: the user has to name something else, or to ask for access.
        MtformerError: it may work later.
    """
    try:
        yield
    except MtformerError:
        raise
    except Exception as error:
        text, status = str(error), _status(error)
        if "gated" in text or (status in (401, 403) and "doesn't exist" not in text):
            raise UserError(
                f"{what}: access to it is restricted; ask for it at {page}, then run `hf auth login` or set HF_TOKEN"
            ) from error
        if status == 429:
            raise MtformerError(f"{what}: the hub asks to wait (429); rerun later, what is downloaded stays") from error
        if "OfflineModeIsEnabled" in text or _is_not_cached(error):
            if variable := _offline_variable():
                raise UserError(f"{what}: it is not in the cache, and {variable} is set: unset it once") from error
            raise MtformerError(f"{what}: it is not in the cache, and the hub cannot be reached") from error
        if _may_pass(error):
            raise MtformerError(f"{what}: {_reason(error)}; rerun to resume the download") from error
        raise UserError(f"{what}: {_reason(error)}{hint(error)}") from error


def _is_not_cached(error: Exception) -> bool:
    """Tell whether only the cache was searched for a file, without success."""
    from huggingface_hub import constants
    from huggingface_hub.errors import LocalEntryNotFoundError

    return isinstance(error, LocalEntryNotFoundError) and bool(constants.HF_HUB_OFFLINE)


def _may_pass(error: Exception) -> bool:
    """Tell whether the error is one of the connection or of this machine."""
    from huggingface_hub import errors

    if isinstance(error, errors.LocalEntryNotFoundError):  # the hub did not answer
        return True
    of_connections = (OSError, errors.HTTPError)  # type: ignore[attr-defined] # of the HTTP client, whichever it is
    return isinstance(error, of_connections) and not isinstance(error, FileNotFoundError)


def _offline_variable() -> str | None:
    """Return the environment variable that keeps the libraries from asking the hub, if one does."""
    from huggingface_hub.constants import ENV_VARS_TRUE_VALUES

    return next((name for name in _OFFLINE if os.environ.get(name, "").upper() in ENV_VARS_TRUE_VALUES), None)


def _status(error: BaseException | None) -> int | None:
    """Return the status of the HTTP response that is behind an error."""
    while error is not None:
        response = getattr(error, "response", None)
        if response is not None:
            return int(response.status_code)
        error = error.__cause__ or error.__context__
    return None


def _reason(error: Exception) -> str:
    causes: list[BaseException] = [error]
    if error.__cause__ and _status(error.__cause__) is None:  # it names the line of a bad file; an answer says no more
        causes.append(error.__cause__)
    return ": ".join(" ".join(str(cause).split()) or type(cause).__name__ for cause in causes).rstrip(".")


def verified(download: Callable[[], Downloaded], files: Callable[[], Mapping[str, Path]]) -> Downloaded:
    """Download files, and once more those whose checksum is wrong.

    Args:
        download: downloads what is not in the cache.
        files: returns the files that were downloaded, by what an error calls them.

    Returns:
        What ``download`` returns.

    Raises:
        MtformerError: a checksum is wrong again.
    """
    result = download()
    if damaged := _without_damaged(files()):
        log.warning("%s: the checksum is wrong, downloading again", ", ".join(damaged))
        result = download()
        if damaged := _without_damaged(files()):
            raise MtformerError(
                f"{', '.join(damaged)}: downloaded twice with a wrong checksum, and removed from the cache; "
                "rerun to download again"
            )
    return result


def _without_damaged(files: Mapping[str, Path]) -> list[str]:
    """Remove damaged files from the cache and return their names."""
    damaged = []
    for name, path in watched(files.items(), "verifying the download", "files"):
        if path.is_symlink() and not _is_intact(path):
            damaged.append(name)
            # The link points to the file, or to another link, where data sets share the file.
            for file in (path.resolve(), path.parent / path.readlink(), path):
                file.unlink(missing_ok=True)
    return damaged


def _is_intact(path: Path) -> bool:
    """Tell whether a file has the checksum that its link names; True if that is no checksum of the hub.

    In the cache of ``huggingface_hub``, a file of a commit is a link to a file that is named by its checksum: the
    SHA-256 of a large one, and git's of any other.
    """
    expected = path.readlink().name
    if _SHA256.fullmatch(expected):
        digest = hashlib.sha256()
    elif _SHA1.fullmatch(expected):
        digest = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    else:
        return True
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: digest).hexdigest() == expected


def license_in(card: Path) -> str | None:
    """Return the license that the card of a data set or a model, a ``README.md``, names, if it does."""
    import yaml
    from huggingface_hub import metadata_load

    try:
        license = (metadata_load(card) or {}).get("license")
    except (OSError, ValueError, yaml.YAMLError):
        return None
    return ", ".join(map(str, license)) if isinstance(license, list) else license
