"""The model bundle: one safetensors file with all that translating needs, and no pickle.

Beside the weights it holds the tokenizer's bytes as tensors and, in the file's metadata, the resolved config, the
validation scores and where the model came from.
"""

import hashlib
import json
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from mtformer.config import Config
from mtformer.errors import UserError
from mtformer.files import write_atomically
from mtformer.model.transformer import Transformer
from mtformer.model.weights import build_model, load_weights, weights
from mtformer.text.tokenizer import Tokenizer
from mtformer.versions import versions

FORMAT = "mtformer-bundle-1"

_WEIGHT = "model."
_TOKENIZERS = ("tokenizer.src", "tokenizer.tgt")


@dataclass(frozen=True)
class Bundle:
    """A trained model and all that belongs to it.

    Attributes:
        model: the Transformer, in evaluation mode, on the CPU.
        tokenizer: the one that it was trained with.
        config: the resolved config that it was trained by.
        scores: of the validation that chose it, such as ``bleu`` and ``loss``, and the ``step`` it was at.
    """

    model: Transformer
    tokenizer: Tokenizer
    config: Config
    scores: dict[str, float] = field(default_factory=dict)


def save_bundle(path: Path, bundle: Bundle) -> None:
    """Write ``bundle`` to ``path``, atomically."""
    tensors = {_WEIGHT + name: tensor for name, tensor in weights(bundle.model).items()}
    for name, model in zip(_TOKENIZERS, (bundle.tokenizer.src_model, bundle.tokenizer.tgt_model), strict=True):
        if model is not None:
            tensors[name] = torch.frombuffer(bytearray(model), dtype=torch.uint8)
    metadata = {
        "format": FORMAT,
        "config": bundle.config.model_dump_json(),
        "scores": json.dumps(bundle.scores),
    }
    metadata["digest"] = _digest(metadata, tensors)
    write_atomically(path, lambda temporary: save_file(tensors, temporary, metadata))


def load_bundle(path: Path) -> Bundle:
    """Read a bundle.

    Raises:
        UserError: the file is missing, cut off, or not a bundle.
    """
    metadata, tensors = _read(path)
    config = _read_config(metadata["config"], path)
    try:
        scores: dict[str, float] = json.loads(metadata["scores"])
        tokenizer_bytes = [bytes(tensors.pop(name).numpy()) for name in _TOKENIZERS if name in tensors]
        tokenizer = Tokenizer(*tokenizer_bytes)
        model = build_model(config, tokenizer)
        load_weights(model, {name.removeprefix(_WEIGHT): tensor for name, tensor in tensors.items()})
    except (TypeError, ValueError, RuntimeError, UserError) as error:
        raise UserError(f"{path}: this bundle is damaged: {str(error).splitlines()[0]}") from error
    return Bundle(model.eval(), tokenizer, config, scores)


def _read_config(text: str, path: Path) -> Config:
    try:
        return Config.model_validate_json(text)
    except ValidationError as error:
        writer = json.loads(text).get("provenance", {}).get("versions", {}).get("mtformer", "unknown")
        key = ".".join(map(str, error.errors()[0]["loc"]))
        raise UserError(
            f"{path} was written by mtformer {writer}; {versions()['mtformer']} does not understand its {key}"
        ) from None


def _digest(metadata: dict[str, str], tensors: dict[str, Tensor]) -> str:
    """Return what changes with every bit of a bundle's contents; safetensors files have no checksum."""
    digest = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _read(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    if not path.is_file():
        raise UserError(f"there is no model at {path}")
    try:
        with safe_open(path, framework="pt") as file:
            metadata: dict[str, Any] = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
    except (SafetensorError, OSError, struct.error) as error:
        raise UserError(f"{path}: this is not an intact safetensors file: {error}") from None
    if metadata.get("format") != FORMAT:
        raise UserError(f"{path}: this safetensors file is not a model bundle of mtformer")
    if metadata.pop("digest", None) != _digest(metadata, tensors):
        raise UserError(f"{path}: this bundle is damaged: its contents are not those that were written")
    return metadata, tensors
