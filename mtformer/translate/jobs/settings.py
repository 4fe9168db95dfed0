"""What translations depend on, in a form that can be compared when a job is resumed."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from mtformer.support import __version__
from mtformer.support.errors import UserError


def described(options: Mapping[str, object], models: Sequence[Path]) -> dict[str, str]:
    """Return options with their values as text, and hashes of the models and of files that options name.

    Args:
        options: the options of the command line and their values.
        models: one, or those of an ensemble: each is a file, or a folder of files.

    Raises:
        UserError: a file cannot be read.
    """
    first, *others = models
    try:
        values = {f"--{name.replace('_', '-')}": _described(value) for name, value in options.items()}
        return {
            "mtformer's version": __version__,
            "the model": _digest(first),
            **values,
            "--model": _described(others),
        }
    except OSError as error:
        raise UserError(f"cannot read {error.filename}: {error.strerror}") from error


def _described(value: object) -> str:
    if isinstance(value, Path):
        return f"{value} ({_digest(value)})" if value.exists() else str(value)
    if isinstance(value, list | tuple):
        return ", ".join(map(_described, value))
    return "not given" if value is None else str(value)


def _digest(path: Path) -> str:
    """Return the first 16 hexadecimal digits of a hash of a file, or of all files in a folder."""
    found = hashlib.sha256()
    for file in _files(path):
        with file.open("rb") as opened:
            found.update(hashlib.file_digest(opened, "sha256").digest())
    return found.hexdigest()[:16]


def _files(path: Path) -> Iterator[Path]:
    yield from sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
