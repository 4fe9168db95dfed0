"""Read what a bundle says about itself, and its tokenizer, without torch and without its weights."""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from mtformer.bundle.header import Header
from mtformer.support.errors import UserError
from mtformer.text.tokenizer.tokenizer import Tokenizer

BUNDLE_FORMAT = "mtformer-bundle-2"
TOKENIZERS = ("tokenizer.src", "tokenizer.tgt")  # in a bundle; without the latter, one serves both languages
MAX_HEADER_BYTES = 2**23  # of the safetensors header: 50,000 tensors

# What a file whose header is any other JSON leads to.
_UNREADABLE = (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError)
EXPORT_SETTINGS = "mtformer.json"  # of a model exported for another program


def is_exported(path: Path) -> bool:
    """Tell whether ``path`` is the folder of a model exported for CTranslate2."""
    return (path / EXPORT_SETTINGS).is_file() and (path / "model.bin").is_file()


class Peeked(NamedTuple):
    """What a bundle says about itself, without its weights.

    Attributes:
        header: the header.
        digest: the digest of the contents, which nothing has compared with them.
    """

    header: Header
    digest: str


def peek(path: Path) -> Peeked | None:
    """Read the header of a bundle without torch; None for a file that is no bundle or not complete.

    The header of a safetensors file is JSON, preceded by its length in eight bytes. The tensors follow, whose places
    tell whether the file is complete.
    """
    try:
        entries, _ = _read_entries(path)
        metadata = entries["__metadata__"]
        digest = metadata["digest"]
        if metadata["format"] != BUNDLE_FORMAT or not re.fullmatch("[0-9a-f]{64}", digest):
            return None
        return Peeked(Header.model_validate_json(metadata["header"]), digest)
    except _UNREADABLE:
        return None


def peek_tokenizer(path: Path) -> Tokenizer | None:
    """Read the tokenizer of a bundle without torch and without its weights; None under the same conditions."""
    if peek(path) is None:
        return None
    try:
        entries, start = _read_entries(path)
        models = []
        with path.open("rb") as file:
            for name in TOKENIZERS:
                if name in entries:
                    begin, end = entries[name]["data_offsets"]
                    file.seek(start + begin)
                    models.append(file.read(end - begin))
        return Tokenizer(*models)
    except (*_UNREADABLE, UserError):
        return None


def _read_entries(path: Path) -> tuple[dict[str, Any], int]:
    """Read the header of a safetensors file that is complete, and where the tensors begin."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        if size > MAX_HEADER_BYTES:
            raise ValueError("the header is too large")
        entries = json.loads(file.read(size))
    tensors = [entry for name, entry in entries.items() if name != "__metadata__"]
    if path.stat().st_size != 8 + size + max(entry["data_offsets"][1] for entry in tensors):
        raise ValueError("the file is not complete")
    return entries, 8 + size
