"""What identifies the sources of a text without parsing them."""

import hashlib
from pathlib import Path

from pydantic import JsonValue

from mtformer.config import HubDataset, Source
from mtformer.data.sources.hub import commit_of
from mtformer.data.sources.parallel import ParallelText, source_files
from mtformer.support import __version__
from mtformer.support.errors import UserError
from mtformer.text.lines import is_regular_input

_WITHOUT_INFLUENCE = {"weight", "tag", "streaming"}  # keys of a source that leave its text as it is


class Contents:
    """Identifies what the files of sources contain, and notices if they change before they have been read."""

    def __init__(self) -> None:
        self._digests: dict[Path, str] = {}
        self._stamps: dict[Path, tuple[int, ...]] = {}

    def identity(self, text: ParallelText) -> JsonValue:
        """Return what the pairs of ``text`` depend on: contents of files, settings of sources, the version of mtformer.

        Returns:
            None if a source is a pipe, which cannot be read for its identity alone.

        Raises:
            UserError: a file cannot be read, or a data set does not exist.
            MtformerError: the hub cannot be reached.
        """
        if has_pipe(text):
            return None
        parts: list[JsonValue] = [__version__]
        for part in text.parts():
            [source] = part.sources
            files = source_files(source, part.src_lang, part.tgt_lang)
            commit = commit_of(source) if isinstance(source, HubDataset) else None
            digests: list[JsonValue] = [self._digest(path) for path in files]
            parts.append([part.src_lang, part.tgt_lang, _settings(source), commit, digests])
        return parts

    def require_unchanged(self) -> None:
        """Refuse what was read if a file has changed since its identity was taken.

        Raises:
            UserError: naming the file.
        """
        for path, stamp in self._stamps.items():
            if not path.exists() or _stamp(path) != stamp:
                raise UserError(f"{path} changed while it was being read: rerun when nothing writes to it any more")

    def _digest(self, path: Path) -> str:
        if path not in self._digests:
            try:
                self._stamps[path] = _stamp(path)
                with path.open("rb") as file:
                    self._digests[path] = hashlib.file_digest(file, "sha256").hexdigest()
            except IsADirectoryError:
                raise UserError(f"{path} is a folder, not a file") from None
            except OSError as error:
                raise UserError(f"cannot read {path}: {error.strerror}") from error
        return self._digests[path]


def has_pipe(text: ParallelText) -> bool:
    """Tell whether a source of ``text`` is a pipe or standard input.

    Raises:
        UserError: a file is missing.
    """
    files = [path for part in text.parts() for path in source_files(part.sources[0], part.src_lang, part.tgt_lang)]
    return any(str(path) == "-" or not is_regular_input(path) for path in files)


def _settings(source: Source) -> dict[str, JsonValue]:
    """Return the settings of a source except the names of its files."""
    settings = source.model_dump(exclude=_WITHOUT_INFLUENCE)
    return {key: value for key, value in settings.items() if not isinstance(value, Path)}


def _stamp(path: Path) -> tuple[int, ...]:
    found = path.stat()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
