"""Download a source, or convert one, to plain parallel files with a note of where they come from."""

import contextlib
import json
import logging
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

from mtformer.config import BuiltinText, HubDataset, SacrebleuSet, Source, parse_source
from mtformer.data.sources.hub import license_of, pinned, split_names
from mtformer.data.sources.parallel import ParallelText, source_files, source_name
from mtformer.support import __version__
from mtformer.support.errors import UserError
from mtformer.support.files import file_digest, write_text
from mtformer.support.progress import watched
from mtformer.support.terminal import counted
from mtformer.text.lines import COMPRESSED, open_output
from mtformer.text.pairs import Drops, Example, SentencePair, fingerprint

log = logging.getLogger(__name__)

_ENDINGS = (*COMPRESSED, ".tsv", ".csv", ".jsonl", ".tmx", ".txt")


class Fetched(NamedTuple):
    """Two parallel files.

    Attributes:
        src: the source text.
        tgt: the target text.
        note: the JSON file with their origin and checksums.
    """

    src: Path
    tgt: Path
    note: Path


def fetch(text: str, src_lang: str, tgt_lang: str, folder: Path) -> list[Fetched]:
    """Write the pairs of a source as parallel files, and return them; files that are complete already are kept.

    Args:
        text: the source, as :func:`mtformer.config.parse_source` reads it; of a data set of the hub without a split,
            all splits are written.
        src_lang: the source language.
        tgt_lang: the target language.
        folder: where to write.

    Raises:
        UserError: the source cannot be read, or another file is where one is to be written.
        MtformerError: the download failed, or the files cannot be written.
    """
    sources = pinned([parse_source(text, src_lang, tgt_lang) for text in _with_splits(text, src_lang, tgt_lang)])
    planned = [(source, _files(source, src_lang, tgt_lang, folder)) for source in sources]
    done = [_is_complete(source, files) for source, files in planned]
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {folder}: {error.strerror}") from None
    try:
        for (source, files), is_done in zip(planned, done, strict=True):
            if is_done:
                log.info("%s and %s are complete already", files.src, files.tgt)
            else:
                _write(ParallelText([source], src_lang, tgt_lang), source, files)
    finally:
        if is_new:
            with contextlib.suppress(OSError):  # there are files in it
                folder.rmdir()
    return [files for _, files in planned]


def _with_splits(text: str, src_lang: str, tgt_lang: str) -> list[str]:
    keys = [part.partition(":")[0].strip() for part in text.split(",")]
    if "hf" not in keys or "split" in keys:
        return [text]
    source = parse_source(f"{text},split:all", src_lang, tgt_lang)
    assert isinstance(source, HubDataset)
    return [f"{text},split:{name}" for name in split_names(source)]


def _files(source: Source, src_lang: str, tgt_lang: str, folder: Path) -> Fetched:
    match source:
        case HubDataset():  # several of them may be written to one folder
            data_set = Path(source.hf).resolve().name
            name = f"{data_set}-{source.config}.{source.split}" if source.config else f"{data_set}.{source.split}"
        case BuiltinText():
            name = source.split
        case SacrebleuSet():
            name = source.sacrebleu
        case _:
            name = source_files(source, src_lang, tgt_lang)[0].name
            for ending in (*_ENDINGS, f".{src_lang}"):
                name = name.removesuffix(ending)
    name = re.sub(r"[^\w.-]+", "_", name).strip("_-") or "text"
    return Fetched(*(folder / f"{name}.{ending}" for ending in (src_lang, tgt_lang, "origin.json")))


def _is_complete(source: Source, files: Fetched) -> bool:
    """Tell whether the files of a source exist and are complete.

    Raises:
        UserError: other files are in their place.
    """
    existing = [path for path in files if path.exists()]
    if not existing:
        return False
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        note = json.loads(files.note.read_text(encoding="utf-8"))
        if _is_constant(source) and note["source"] == _origin(source) and note["sha256"] == _checksums(files):
            return True
    raise UserError(f"{existing[0]} exists already: remove it, or choose another folder with --output")


def _is_constant(source: Source) -> bool:
    """Tell whether a source always has the same pairs, like a commit on the hub and unlike a local folder."""
    if isinstance(source, HubDataset):
        return source.revision is not None
    return isinstance(source, SacrebleuSet | BuiltinText)


def _write(text: ParallelText, source: Source, files: Fetched) -> None:
    # The hub is asked first: until their note is there, the files are not known to be complete.
    license = license_of(source) if isinstance(source, HubDataset) else None
    drops = Drops()
    pairs = watched(text.examples(drops), f"fetching {source_name(source)}", "pairs")
    with open_output(files.src) as src_file, open_output(files.tgt) as tgt_file:
        written = fingerprint(_written(pairs, src_file, tgt_file))
    note = {
        "source": _origin(source),
        "license": license,
        "pairs": written.n_pairs,
        "fingerprint": written.digest,
        "sha256": _checksums(files),
        "mtformer": __version__,
    }
    write_text(files.note, json.dumps(note, indent=2) + "\n")
    if not written.n_pairs:
        log.warning("%s contains no sentence pairs", source_name(source))
    if warning := drops.warning(source_name(source), written.n_pairs):
        log.warning("%s", warning)
    reasons = ", ".join(f"{reason} ({n:,})" for reason, n in drops.counts.most_common())
    dropped = f"; lines dropped: {reasons}" * bool(reasons)
    log.info("%s written to %s and %s%s", counted(written.n_pairs, "pair"), files.src, files.tgt, dropped)


def _written(examples: Iterable[Example], src: IO[str], tgt: IO[str]) -> Iterator[SentencePair]:
    """Write each pair and yield it."""
    for example in examples:
        pair = SentencePair(example.src, example.tgt)
        for text, file in zip(pair, (src, tgt), strict=True):
            file.write(f"{text}\n")
        yield pair


def _origin(source: Source) -> dict[str, object]:
    """Return the keys of a source that were set, with the commit of a data set."""
    return source.model_dump(mode="json", exclude_unset=True)


def _checksums(files: Fetched) -> dict[str, str]:
    return {path.name: file_digest(path) for path in (files.src, files.tgt)}
