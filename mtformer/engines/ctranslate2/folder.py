"""The folder of a model exported for CTranslate2, as translating reads it. Nothing here imports torch."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from mtformer.bundle.header import Header
from mtformer.bundle.peek import EXPORT_SETTINGS
from mtformer.model.architecture import Stored
from mtformer.support import __version__
from mtformer.support.cache import checked_once
from mtformer.support.errors import UserError
from mtformer.support.files import file_digest
from mtformer.text.tokenizer.tokenizer import Tokenizer

FORMAT = "mtformer-ctranslate2-3"  # in 2, other heads aligned
VOCABULARY_MAP = "vmap.txt"  # CTranslate2's name for it
_AGAIN = "export the bundle again"

_JOINT, _SEPARATE = "tokenizer.model", ("tokenizer.src.model", "tokenizer.tgt.model")
TOKENIZER_FILES = (_JOINT, *_SEPARATE)


@dataclass(frozen=True)
class ExportedModel:
    """The contents of the folder of an exported model, except for the weights.

    Attributes:
        path: the folder.
        header: that of the bundle.
        tokenizer: that of the bundle.
        digest: that of the bundle's contents; empty if the model was exported from memory.
        quantization: the type of the stored weights.
        n_positions: the positions that its tables have, which bounds the length of texts; None without tables.
    """

    path: Path
    header: Header
    tokenizer: Tokenizer
    digest: str
    quantization: str
    n_positions: int | None


class _Settings(Stored):
    """The contents of ``mtformer.json``, which describes the files beside it; see :func:`write_settings`."""

    bundle: str
    quantization: str
    n_positions: int | None
    files: dict[str, Annotated[str, Field(pattern="^[0-9a-f]{64}$")]]


def describe_slots(tokenizer: Tokenizer) -> str:
    """Return a paragraph on what other programs do not do with a model that has slots; empty for one without."""
    if not tokenizer.has_slots:
        return ""
    return (
        "The model has learned slots for numbers, codes and names, which mtformer alone fills: without it, many of\n"
        "them come out wrong.\n\n"
    )


def describe_tags(header: Header) -> str:
    """Return a paragraph for the README on the tokens before the sources; empty if there are none."""
    tags = ", ".join(f"`{tag}`" for tag in header.target_tags)
    is_forced = any(prefix.tgt for prefix in header.prefixes.values())
    meaning = "is its language" if is_forced else "says what to translate it to"
    return f"The first token of a source {meaning}: {tags}.\n\n" if tags else ""


def write_tokenizer(folder: Path, tokenizer: Tokenizer) -> tuple[str, str]:
    """Write the SentencePiece models, and return the names of the source's and the target's files."""
    if tokenizer.tgt_model is None:
        (folder / _JOINT).write_bytes(tokenizer.src_model)
        return _JOINT, _JOINT
    for name, model in zip(_SEPARATE, (tokenizer.src_model, tokenizer.tgt_model), strict=True):
        (folder / name).write_bytes(model)
    return _SEPARATE


def write_settings(folder: Path, header: Header, *, digest: str, quantization: str, n_positions: int | None) -> None:
    """Write ``mtformer.json``, once all other files are in the folder, except for the README, which one may edit.

    It contains the header, of whose alignment heads the group that the model gives, with a few keys beside it: the
    format, the version of mtformer, the digest of the bundle, and a digest of each file.
    """
    settings = {
        "format": FORMAT,
        "mtformer": __version__,
        "bundle": digest,
        "quantization": quantization,
        "n_positions": n_positions,
        "files": {file.name: file_digest(file) for file in sorted(folder.iterdir())},
    }
    header = header.model_copy(update={"alignment_heads": header.alignment_group})
    text = json.dumps(settings | header.model_dump(mode="json"), indent=2, ensure_ascii=False)
    (folder / EXPORT_SETTINGS).write_text(text + "\n", encoding="utf-8")


def read_folder(path: Path) -> ExportedModel:
    """Read the folder of an exported model, and compare its files with their digests.

    Raises:
        UserError: it is damaged, or of another version of mtformer.
    """
    try:
        settings: dict[str, Any] = json.loads((path / EXPORT_SETTINGS).read_bytes())
        written = settings.get("format")
        if written != FORMAT:
            raise UserError(
                f"{path}: this folder has format {written}, this version of mtformer reads {FORMAT}: {_AGAIN}"
            )
        header, ours = Header.model_validate_json(json.dumps(settings)), _Settings.model_validate(settings)
        for name, digest in ours.files.items():
            if Path(name).name != name or not _is_intact(path / name, digest):
                raise _damaged(path, f"{name} is not the file that was written")
        tokenizer = header.make_tokenizer(tokenizer_models(path))
        return ExportedModel(path, header, tokenizer, ours.bundle, ours.quantization, ours.n_positions)
    except OSError as error:
        raise _damaged(path, f"cannot read {Path(error.filename or path).name}: {error.strerror}") from None
    except (ValueError, AttributeError, RecursionError):
        raise _damaged(path, f"{EXPORT_SETTINGS} is damaged") from None


def _damaged(path: Path, reason: str) -> UserError:
    return UserError(f"{path}: this exported model is damaged: {reason}; {_AGAIN}")


def tokenizer_models(path: Path) -> list[bytes]:
    """Read the SentencePiece models in the folder of an exported model, one or two.

    Raises:
        OSError: they cannot be read.
    """
    names = (_JOINT,) if (path / _JOINT).is_file() else _SEPARATE
    return [(path / name).read_bytes() for name in names]


def _is_intact(file: Path, digest: str) -> bool:
    return checked_once(file, digest, lambda: file_digest(file) == digest)
