"""The model bundle: one safetensors file with everything that translation needs, and no pickle.

A bundle contains the weights (``model.*``), the bytes of the SentencePiece models (``tokenizer.src`` and, where the
target language has its own, ``tokenizer.tgt``), and in the file's metadata:

- ``format``: the name of the format, with its version;
- ``header``: a :class:`~mtformer.bundle.header.Header` as JSON;
- ``digest``: a SHA-256 of all of the above, since safetensors files have no checksum.

A bundle may come from a stranger. Loading one runs no code, opens no other file, and compares names, shapes and types
of all tensors with the model that the header describes before it allocates memory for them.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from pydantic import ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from mtformer.bundle.header import Header, first_problem
from mtformer.bundle.peek import (
    BUNDLE_FORMAT,
    TOKENIZERS,
    WEIGHT,
    NotABundleError,
    header_size,
    is_exported,
    require_format,
)
from mtformer.model.transformer import Transformer
from mtformer.model.weights import require_shapes, weights, with_weights, without_weights
from mtformer.support.errors import UserError
from mtformer.support.files import write_atomically
from mtformer.support.terminal import shortened
from mtformer.text.tokenizer.tokenizer import Tokenizer

T = TypeVar("T")

_WEIGHT_DTYPES = {"F32", "F16", "BF16"}  # the model computes in fp32; the others are converted
_MAX_MESSAGE = 200  # characters


@dataclass(frozen=True)
class Bundle:
    """A trained model and everything that translation needs.

    Attributes:
        model: the Transformer, in evaluation mode, on the CPU.
        tokenizer: the one it was trained with.
        header: the architecture, languages, search defaults, scores and provenance.
        digest: the digest of the file that it was loaded from; empty for a model in memory.
    """

    model: Transformer
    tokenizer: Tokenizer
    header: Header
    digest: str = ""

    def toward(self, src_lang: str | None = None, tgt_lang: str | None = None, tag: str | None = None) -> "Bundle":
        """Return the bundle for one direction of its model; see :meth:`Header.toward`.

        Raises:
            UserError: the model has no such direction or tag.
        """
        header, tokenizer = self.header.toward(self.tokenizer, src_lang, tgt_lang, tag)
        return replace(self, header=header, tokenizer=tokenizer)


def save_bundle(path: Path, bundle: Bundle) -> None:
    """Write ``bundle`` to ``path``, atomically."""
    write_bundle(path, bundle.header, weights(bundle.model), bundle.tokenizer.models)


def write_bundle(path: Path, header: Header, weights: Mapping[str, Tensor], tokenizers: Sequence[bytes]) -> None:
    """Write a bundle of its parts to ``path``, atomically.

    Args:
        path: where to.
        header: its description.
        weights: on the CPU, contiguous.
        tokenizers: the serialized SentencePiece models, one or two.
    """
    tensors = {WEIGHT + name: tensor for name, tensor in weights.items()}
    for name, model in zip(TOKENIZERS, tokenizers, strict=False):
        tensors[name] = torch.frombuffer(bytearray(model), dtype=torch.uint8)
    metadata = {"format": BUNDLE_FORMAT, "header": header.model_dump_json()}
    metadata["digest"] = digest(metadata, tensors)
    write_atomically(path, lambda temporary: save_file(tensors, temporary, metadata))


def load_bundle(path: Path) -> Bundle:
    """Read a bundle.

    Weights in half precision are converted to single precision. Loading takes about twice the size of the file in
    memory, and for weights in half precision three times.

    Raises:
        UserError: the file is missing, cut off, not a bundle, or damaged.
    """
    if is_exported(path):
        raise UserError(f"{path} is a model exported for CTranslate2; this takes the bundle that it was made from")
    if not path.is_file():
        raise UserError(f"there is no model at {path}")
    return load_with_reasons(path, "bundle", _load)


def load_with_reasons(path: Path, kind: str, load: Callable[[Path], T]) -> T:
    """Return what a function reads from a safetensors file that may be damaged or hostile.

    Args:
        path: the file.
        kind: what it should be, as messages call it.
        load: reads it; its errors are the reasons why the file cannot be used.

    Raises:
        UserError: the file cannot be used; the message names it.
    """
    try:
        return load(path)
    except (SafetensorError, OSError) as error:
        reason = _reason_of(error)
    except NotABundleError as error:
        reason = str(error)
    except ValidationError as error:
        reason = f"this {kind}'s header is invalid: {first_problem(error)}"
    except (ValueError, RuntimeError, UserError) as error:
        reason = f"this {kind} is damaged: {error}"
    [first_line, *_] = reason.splitlines() or [""]
    raise UserError(f"{path}: {shortened(first_line, _MAX_MESSAGE)}")  # it may quote a hostile file


def _load(path: Path) -> Bundle:
    header_size(path)
    with safe_open(path, framework="pt") as file:
        metadata = dict(file.metadata() or {})
        header = _read_header(metadata)
        _require_tensors(file, header)
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
    written = metadata.pop("digest", None)
    if written != digest(metadata, tensors):
        raise ValueError("its contents are not those that were written")
    tokenizer = _make_tokenizer(tensors, header)
    return Bundle(_make_model(tensors, header), tokenizer, header, written)


def digest(metadata: Mapping[str, str], tensors: Mapping[str, Tensor]) -> str:
    """Return a SHA-256 of a bundle's contents: its metadata without the digest, and its tensors on the CPU."""
    result = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        result.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        result.update(tensor.reshape(-1).view(torch.uint8).numpy().data)  # a view: nothing is copied
    return result.hexdigest()


def _read_header(metadata: Mapping[str, str]) -> Header:
    require_format(metadata)
    if "header" not in metadata:
        raise ValueError("it has no header")
    return Header.model_validate_json(metadata["header"])


def _require_tensors(file: Any, header: Header) -> None:
    """Compare names, types and shapes of a file's tensors with the model that ``header`` describes.

    Nothing is allocated: the model is built on torch's meta device, and the number of its layers cannot exceed the
    number of tensors in the file.
    """
    slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
    architecture = header.architecture
    if architecture.n_encoder_layers + architecture.n_decoder_layers > len(slices):
        raise ValueError("its header describes more layers than it has weights")
    for name in TOKENIZERS:
        if name not in slices:
            if architecture.joint_vocab and name != TOKENIZERS[0]:
                continue
            raise ValueError(f"it lacks {name}")
        tokenizer = slices.pop(name)
        if tokenizer.get_dtype() != "U8" or len(tokenizer.get_shape()) != 1:
            raise ValueError(f"{name} is not a sequence of bytes")
    for name, tensor in slices.items():
        if not name.startswith(WEIGHT):
            raise ValueError(f"it contains {name}, which is not a weight of the model")
        if tensor.get_dtype() not in _WEIGHT_DTYPES:
            raise ValueError(f"{name} is of type {tensor.get_dtype()}, not a float")
    require_shapes(
        without_weights(architecture),
        {name.removeprefix(WEIGHT): tensor.get_shape() for name, tensor in slices.items()},
    )


def _make_tokenizer(tensors: Mapping[str, Tensor], header: Header) -> Tokenizer:
    models = (tensors[name].numpy().tobytes() for name in TOKENIZERS if name in tensors)
    tokenizer = header.make_tokenizer(models)
    sizes = header.architecture.src_vocab_size, header.architecture.tgt_vocab_size
    if (tokenizer.src_vocab_size, tokenizer.tgt_vocab_size) != sizes:
        raise ValueError(
            f"its tokenizer has {tokenizer.src_vocab_size} and {tokenizer.tgt_vocab_size} tokens, "
            f"its embeddings have {sizes[0]} and {sizes[1]}"
        )
    if tokenizer.src.form != header.normalization:
        raise ValueError(f"its tokenizer has normalization {tokenizer.src.form}, not {header.normalization}")
    try:
        tokenizer.src_tokens(range(sizes[0]))
        tokenizer.tgt_tokens(range(sizes[1]))
    except UnicodeDecodeError:
        raise ValueError("its tokenizer has a token that is not UTF-8") from None
    return tokenizer


def _make_model(tensors: Mapping[str, Tensor], header: Header) -> Transformer:
    parameters = {name.removeprefix(WEIGHT): tensor for name, tensor in tensors.items() if name.startswith(WEIGHT)}
    for name, tensor in parameters.items():
        if not all(value.isfinite() for value in tensor.aminmax()):  # no temporary tensor, unlike isfinite()
            raise ValueError(f"{name} has values that are not finite")
    return with_weights(header.architecture, parameters)


def _reason_of(error: SafetensorError | OSError) -> str:
    """Return the reason why a safetensors file cannot be used: the system's, such as missing permission, or its own."""
    of_system = getattr(error, "strerror", None)
    return f"it cannot be read: {of_system}" if of_system else f"this is not an intact safetensors file: {error}"
