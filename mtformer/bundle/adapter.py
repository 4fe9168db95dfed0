"""LoRA adapters: small safetensors files with the weights trained on top of a bundle.

The file contains the parameters of the adapter (``model.*``) and in its metadata ``format``, ``header`` and ``digest``
as a bundle does, and ``base``, the digest of the bundle that it was trained on. It comes with no more trust: names and
shapes are compared with the base before anything is allocated for them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from pydantic import ValidationError
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from mtformer.bundle.format import Bundle, digest, load_bundle, load_with_reasons
from mtformer.bundle.header import Header, first_problem
from mtformer.bundle.peek import WEIGHT, NotABundleError, header_size
from mtformer.model.lora import adapted, adapter_shapes, merged
from mtformer.support.errors import UserError
from mtformer.support.files import write_atomically

_FORMAT = "mtformer-adapter-1"


@dataclass(frozen=True)
class Adapter:
    """A low-rank adapter of the model of a bundle.

    Attributes:
        weights: its parameters by name; see :mod:`mtformer.model.lora`.
        header: that of the bundle with which it is merged into the base.
        base: the digest of the bundle that it was trained on.
        digest: that of the file that it was loaded from; empty for an adapter in memory.
    """

    weights: Mapping[str, Tensor]
    header: Header
    base: str
    digest: str = ""

    def applied_to(self, bundle: Bundle, *, merge: bool = True) -> Bundle:
        """Return ``bundle`` with this adapter; the two share the weights that it does not change.

        Args:
            bundle: the model that it was trained on.
            merge: add the adapter to the matrices, so that it takes no time; else the two share these as well.

        Raises:
            UserError: it is the adapter of another bundle, or damaged.
        """
        if bundle.digest != self.base:
            raise UserError(
                f"the adapter belongs to another model, with digest {self.base}, and this one has "
                f"{bundle.digest or 'none'}: name the model of training.init_from in the config of the adapter's run"
            )
        _require_shapes(self.weights, bundle)
        try:
            header = Header.model_validate(self.header.model_dump() | {"architecture": bundle.header.architecture})
        except ValidationError as error:
            raise UserError(f"the adapter is damaged: {first_problem(error)}") from None
        both = digest({"base": bundle.digest, "adapter": self.digest}, {})
        apply = merged if merge else adapted
        return replace(bundle, model=apply(bundle.model, self.weights), header=header, digest=both)


def save_adapter(path: Path, adapter: Adapter) -> None:
    """Write ``adapter`` to ``path``, atomically."""
    tensors = {WEIGHT + name: tensor for name, tensor in adapter.weights.items()}
    metadata = {"format": _FORMAT, "header": adapter.header.model_dump_json(), "base": adapter.base}
    metadata["digest"] = digest(metadata, tensors)
    write_atomically(path, lambda temporary: save_file(tensors, temporary, metadata))


def load_adapter(path: Path) -> Adapter:
    """Read an adapter.

    Raises:
        UserError: the file is missing, cut off, not an adapter, or damaged.
    """
    if path.is_dir():
        raise UserError(f"{path} is a folder: name the file of the adapter in it")
    if not path.is_file():
        raise UserError(f"there is no adapter at {path}")
    return load_with_reasons(path, "adapter", _load)


def load_adapted(base: Path | Bundle, adapter: Path, *, merge: bool = True) -> Bundle:
    """Return the bundle ``base`` with an adapter; see :meth:`Adapter.applied_to`.

    Raises:
        UserError: one of them cannot be used, or they do not belong together.
    """
    loaded = load_adapter(adapter)
    bundle = load_bundle(base) if isinstance(base, Path) else base
    try:
        return loaded.applied_to(bundle, merge=merge)
    except UserError as error:
        raise UserError(f"{adapter}: {error}") from None


def _load(path: Path) -> Adapter:
    header_size(path)
    with safe_open(path, framework="pt") as file:
        metadata = dict(file.metadata() or {})
        if metadata.get("format") != _FORMAT:
            raise NotABundleError(
                f"this is not an adapter that this version of mtformer reads, whose format is {_FORMAT}"
            )
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
    written = metadata.pop("digest", "")
    if written != digest(metadata, tensors) or not {"header", "base"} <= metadata.keys():
        raise ValueError("its contents are not those that were written")
    header = Header.model_validate_json(metadata["header"])
    return Adapter(_weights(tensors), header, metadata["base"], written)


def _weights(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the parameters among the tensors of a file."""
    for name, tensor in tensors.items():
        if not name.startswith(WEIGHT) or tensor.dtype != torch.float32 or tensor.dim() != 2:
            raise ValueError(f"{name} is not one of its parameters")
        if not tensor.isfinite().all():
            raise ValueError(f"{name} has values that are not finite")
    # Copies: the tensors map the file, which Windows then does not replace when training writes a better one.
    return {name.removeprefix(WEIGHT): tensor.clone() for name, tensor in tensors.items()}


def _require_shapes(weights: Mapping[str, Tensor], bundle: Bundle) -> None:
    """Compare names and shapes of an adapter's parameters with the model that it is for.

    Raises:
        UserError: they differ.
    """
    found = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    rank = next((shape[1] for name, shape in found.items() if name.endswith(".up")), 0)
    if not rank or found != dict(adapter_shapes(bundle.model, rank)):
        raise UserError("the adapter is damaged: its parameters do not fit the model's")
