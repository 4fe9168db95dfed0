"""Data sets of the Hugging Face hub, through the ``datasets`` library (its cache: ``$HF_HOME``)."""

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from mtformer.config import HubDataset, Source
from mtformer.data.sources.tables import Columns, RowReader
from mtformer.support.errors import MtformerError
from mtformer.support.hub import COMMIT, explained, license_in, prepare_hub
from mtformer.text.pairs import Example

_CHUNK = 1_000  # rows converted to Python objects at once


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
        yield Example(*reader.pair(_without_nulls(row), f"{source.hf}, split {source.split}, row {number}"), number)


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
    if source.revision and COMMIT.fullmatch(source.revision):
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
    card = Path(source.hf, "README.md")
    if not card.parent.is_dir():
        import huggingface_hub

        with suppress(OSError, ValueError):
            downloaded = huggingface_hub.hf_hub_download(
                source.hf, card.name, repo_type="dataset", revision=source.revision
            )
            card = Path(downloaded)
    return license_in(card)


def _library(source: HubDataset) -> Any:
    """Import ``datasets``, which loads ``source`` from its cache alone where the hub cannot be reached."""
    import datasets  # here: importing it takes seconds, and most runs read files

    logging.getLogger("datasets").handlers.clear()  # it would log each message a second time
    if not Path(source.hf).is_dir() and not datasets.config.HF_HUB_OFFLINE and prepare_hub():
        datasets.config.HF_HUB_OFFLINE = True
    return datasets


def _builder(source: HubDataset) -> Any:
    builder = _library(source).load_dataset_builder(source.hf, source.config, revision=source.revision)
    # Where the hub cannot be reached, the library falls back to any commit in its cache.
    if source.revision and COMMIT.fullmatch(source.revision) and builder.hash != source.revision:
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


def _without_nulls(value: Any) -> Any:
    """Replace missing texts of a row by empty ones: data sets of others have some, which their readers cannot fix."""
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items()}
    return "" if value is None else value


def _explained(source: HubDataset) -> AbstractContextManager[None]:
    """Turn the errors of the libraries into those of :func:`.explained`."""
    what = f"cannot load the data set {source.hf} (split {source.split})"
    return explained(what, f"https://huggingface.co/datasets/{source.hf}", partial(_hint, source=source))


def _hint(error: Exception, source: HubDataset) -> str:
    if "cannot be accessed" in str(error):  # which is also what the hub says of names that do not exist
        return "; check its name, or run `hf auth login` if it is private"
    if "Config name is missing" in str(error):
        return "; name one of them with `config`"
    if isinstance(error, StopIteration):
        return "; its files may be empty"
    if type(error).__name__ in ("ArrowInvalid", "DatasetGenerationError") and not Path(source.hf).is_dir():
        if source.streaming:
            return "; what is streamed is not verified: rerun, or download it first (streaming: false)"
        cache = os.environ.get("HF_HOME", "~/.cache/huggingface")
        return (
            "; the download was verified, so the file is damaged on the hub itself, or its copy in "
            f"{cache}/datasets is: delete that and rerun"
        )
    return ""
