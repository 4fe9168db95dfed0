"""Digests: short names for contents, the same on every machine."""

import hashlib
import json
from pathlib import Path

from pydantic import JsonValue


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's contents.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_of(values: JsonValue) -> str:
    """Return a name for what ``values`` determine."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:32]
