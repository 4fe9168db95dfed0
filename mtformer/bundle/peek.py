"""Read the header and the tokenizer of a bundle without torch and without its weights."""

import json
import operator
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mtformer.bundle.header import Header
from mtformer.support.errors import UserError
from mtformer.text.tokenizer.tokenizer import Tokenizer

WEIGHT = "model."  # begins the names of the weights in a bundle
TOKENIZERS = ("tokenizer.src", "tokenizer.tgt")  # in a bundle; without the latter, one serves both languages
_MAX_HEADER_BYTES = 2**23  # of the safetensors header: 50,000 tensors
EXPORT_SETTINGS = "mtformer.json"  # of a model exported for another program

BUNDLE_FORMAT = "mtformer-bundle-3"

# What a file whose header is any other JSON leads to.
_UNREADABLE = (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError)


class NotABundleError(ValueError):
    """The reason why a file is no bundle or adapter that this version reads; other errors mean that it is damaged."""


def is_exported(path: Path) -> bool:
    """Tell whether ``path`` is the folder of a model exported for CTranslate2."""
    return (path / EXPORT_SETTINGS).is_file() and (path / "model.bin").is_file()


class Peeked(NamedTuple):
    """The metadata of a bundle.

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
        metadata = read_entries(path).metadata
        digest = metadata["digest"]
        if not re.fullmatch("[0-9a-f]{64}", digest):
            return None
        require_format(metadata)
        return Peeked(Header.model_validate_json(metadata["header"]), digest)
    except _UNREADABLE:
        return None


def require_format(metadata: Mapping[str, str]) -> None:
    """Check that this version reads a bundle's format.

    Raises:
        NotABundleError: it does not, or the file is no bundle.
    """
    name = metadata.get("format", "")
    if name.startswith("mtformer-adapter-"):
        raise NotABundleError("this is an adapter: name its model too (--adapter), or merge both (mtformer merge)")
    if not name.startswith("mtformer-bundle-"):
        raise NotABundleError("this safetensors file is not a model bundle of mtformer")
    if name != BUNDLE_FORMAT:
        raise NotABundleError(
            f"another version of mtformer wrote this bundle: its format is {name}, and this one reads {BUNDLE_FORMAT}"
        )


def peek_tokenizer(path: Path) -> Tokenizer | None:
    """Read the tokenizer of a bundle without torch and without its weights; None under the same conditions."""
    peeked = peek(path)
    if peeked is None:
        return None
    try:
        entries = read_entries(path)
        models = []
        with path.open("rb") as file:
            for name in TOKENIZERS:
                if name in entries.tensors:
                    begin, end = entries.tensors[name]["data_offsets"]
                    file.seek(entries.start + begin)
                    models.append(file.read(end - begin))
        return peeked.header.make_tokenizer(models)
    except (*_UNREADABLE, UserError):
        return None


def peek_shapes(path: Path) -> dict[str, Sequence[int]]:
    """Read the shapes of the weights of a bundle without torch; empty under the same conditions."""
    try:
        shapes = {name: [*map(operator.index, entry["shape"])] for name, entry in read_entries(path).tensors.items()}
    except _UNREADABLE:
        return {}
    return {name.removeprefix(WEIGHT): shape for name, shape in shapes.items() if name.startswith(WEIGHT)}


class Entries(NamedTuple):
    """The header of a safetensors file.

    Attributes:
        metadata: what the writer of the file says about it.
        tensors: of each tensor its ``dtype``, ``shape`` and ``data_offsets``.
        start: where in the file the offsets begin.
    """

    metadata: dict[str, str]
    tensors: dict[str, dict[str, Any]]
    start: int


def read_entries(path: Path) -> Entries:
    """Read the header of a safetensors file without its tensors.

    Raises:
        OSError: the file is not complete, or is no safetensors file.
    """
    size = header_size(path)
    with path.open("rb") as file:
        file.seek(8)
        tensors = json.loads(file.read(size))
    metadata = tensors.pop("__metadata__", {})
    if path.stat().st_size != 8 + size + max(entry["data_offsets"][1] for entry in tensors.values()):
        raise OSError("it is not complete")
    return Entries(metadata, tensors, 8 + size)


def header_size(path: Path) -> int:
    """Return the bytes of the header of a safetensors file, not so many that parsing them would be an attack.

    Raises:
        OSError: there are more, or more than the file has, as in text.
    """
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
    if size > path.stat().st_size:
        raise OSError("its header is missing or cut off")
    if size > _MAX_HEADER_BYTES:
        raise OSError(f"its header claims {size:,} bytes")
    return size
