"""Data sets of the Hugging Face hub, through the ``datasets`` library (its cache: ``$HF_HOME``)."""

import logging
import os
import re
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from mtformer.config import HubDataset, Source
from mtformer.data.sources.tables import Columns, RowReader
from mtformer.support.errors import MtformerError, UserError
from mtformer.text.pairs import Example

log = logging.getLogger(__name__)

_CHUNK = 1_000  # rows converted to Python objects at once
_OFFLINE = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE")
_COMMIT = re.compile(r"[0-9a-f]{40}")


def read_hub(source: HubDataset, src_lang: str, tgt_lang: str) -> Iterator[Example]:
    """Yield the pairs of one split; it is downloaded once, or with ``streaming`` each time, as it is read.

    Downloaded files are verified by their checksums; a stream cannot be.

    Raises:
        UserError: the data set, its split or its columns do not exist or are not accessible.
        MtformerError: the download failed.
    """
    with _explained(source):
        builder = _builder(source)
        if source.streaming:
            rows = builder.as_streaming_dataset(source.split)
        else:
            from mtformer.data.sources.downloads import VerifiedDownloads

            builder.download_and_prepare(dl_manager=VerifiedDownloads(builder))
            rows = builder.as_dataset(source.split)
        if rows.features:  # pictures and sounds would be decoded
            texts = [name for name, feature in rows.features.items() if not hasattr(feature, "decode_example")]
            rows = rows.select_columns(texts)
    reader = RowReader(Columns((source.src_column, source.tgt_column), (src_lang, tgt_lang)))
    for number, row in enumerate(_rows(rows, source), 1):
        yield Example(*reader.pair(row, f"{source.hf}, split {source.split}, row {number}"), number)


def pinned(sources: Sequence[Source]) -> list[Source]:
    """Return ``sources`` with the commits of their data sets, so that a rerun reads the same text.

    Raises:
        UserError: a data set does not exist or is not accessible.
        MtformerError: the hub cannot be reached.
    """
    return [
        source.model_copy(update={"revision": commit_of(source)}) if isinstance(source, HubDataset) else source
        for source in sources
    ]


def commit_of(source: HubDataset) -> str | None:
    """Return the commit that ``source`` is read at; None for a local folder, which has none."""
    if Path(source.hf).is_dir():
        return None
    if source.revision and _COMMIT.fullmatch(source.revision):
        return source.revision
    with _explained(source):
        return str(_builder(source).hash)


def split_names(source: HubDataset) -> list[str]:
    """Return the names of all splits of a data set, whichever ``source`` names."""
    with _explained(source):
        names = _library(source).get_dataset_split_names(source.hf, source.config, revision=source.revision)
    return list(names)


def license_of(source: HubDataset) -> str | None:
    """Return the license that the card of a data set names, if it does."""
    import huggingface_hub
    from huggingface_hub.errors import EntryNotFoundError

    try:
        card = Path(source.hf, "README.md")
        if not card.parent.is_dir():
            downloaded = huggingface_hub.hf_hub_download(
                source.hf, card.name, repo_type="dataset", revision=source.revision
            )
            card = Path(downloaded)
        license = huggingface_hub.DatasetCard.load(card).data.license
    except (EntryNotFoundError, OSError, ValueError):
        return None
    return ", ".join(license) if isinstance(license, list) else license


def _library(source: HubDataset) -> Any:
    """Import ``datasets``, which loads ``source`` from its cache alone where the hub cannot be reached."""
    import datasets  # here: importing it takes seconds, and most runs read files
    from huggingface_hub import constants

    for name in ("datasets", "huggingface_hub"):  # with their handlers, they would log each message a second time
        logging.getLogger(name).handlers.clear()
    asks_hub = not Path(source.hf).is_dir() and not datasets.config.HF_HUB_OFFLINE
    if asks_hub and (reason := _why_unreachable(constants.ENDPOINT)):
        log.warning("%s cannot be reached (%s): using only what is in the cache", constants.ENDPOINT, reason)
        constants.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE = True
    return datasets


@cache
def _why_unreachable(endpoint: str) -> str | None:
    """Return why no connection to the hub, or to the proxy on the way, can be made; None if it can or may be slow.

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


def _builder(source: HubDataset) -> Any:
    builder = _library(source).load_dataset_builder(source.hf, source.config, revision=source.revision)
    # Where the hub cannot be reached, the library falls back to any commit in its cache.
    if source.revision and _COMMIT.fullmatch(source.revision) and builder.hash != source.revision:
        raise MtformerError(
            f"cannot load the data set {source.hf}: revision {source.revision} is neither in the cache nor on the hub, "
            "or the hub cannot be reached"
        )
    return builder


def _rows(rows: Any, source: HubDataset) -> Iterator[dict[str, Any]]:
    chunks = rows.iter(batch_size=_CHUNK)
    while True:
        with _explained(source):
            chunk = next(chunks, None)
        if chunk is None:
            return
        for values in zip(*chunk.values(), strict=True):
            yield dict(zip(chunk, values, strict=True))


@contextmanager
def _explained(source: HubDataset) -> Iterator[None]:
    """Turn the many errors of the libraries into a sentence with a remedy.

    Raises:
        UserError: the user has to name something else, or to ask for access.
        MtformerError: it may work later.
    """
    try:
        yield
    except MtformerError:
        raise
    except Exception as error:
        what = f"cannot load the data set {source.hf} (split {source.split}): "
        text, status = str(error), _status(error)
        if "gated" in text or (status in (401, 403) and "doesn't exist" not in text):
            address = f"https://huggingface.co/datasets/{source.hf}"
            raise UserError(
                f"{what}access to it is restricted; ask for it at {address}, then run `hf auth login` or set HF_TOKEN"
            ) from error
        if status == 429:
            raise MtformerError(f"{what}the hub asks to wait (429); rerun later, what is downloaded stays") from error
        if "OfflineModeIsEnabled" in text:
            if variable := _offline_variable():
                raise UserError(f"{what}it is not in the cache, and {variable} is set: unset it once") from error
            raise MtformerError(f"{what}it is not in the cache, and the hub cannot be reached") from error
        if isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
            raise MtformerError(f"{what}{_reason(error)}; rerun to resume the download") from error
        raise UserError(f"{what}{_reason(error)}{_hint(error, source)}") from error


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


def _hint(error: Exception, source: HubDataset) -> str:
    if "cannot be accessed" in str(error):  # which is also what the hub says of names that do not exist
        return "; check its name, or run `hf auth login` if it is private"
    if "Config name is missing" in str(error):
        return "; name one of them with `config`"
    if type(error).__name__ in ("ArrowInvalid", "DatasetGenerationError") and not Path(source.hf).is_dir():
        if source.streaming:
            return "; what is streamed is not verified: rerun, or download it first (streaming: false)"
        cache = os.environ.get("HF_HOME", "~/.cache/huggingface")
        return (
            "; the download was verified, so the file is damaged on the hub itself, or its copy in "
            f"{cache}/datasets is: delete that and rerun"
        )
    return ""
