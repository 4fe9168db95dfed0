"""The weights in a folder of Hugging Face's transformers: one file or several, safetensors or torch's own."""

import json
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from mtformer.support.errors import UserError

WEIGHTS = ("model.safetensors", "pytorch_model.bin")


class Tensors(Mapping[str, Tensor]):
    """Tensors by name, each read from its file when it is asked for."""

    def __init__(self, files: Mapping[str, Any], paths: Mapping[str, Path]) -> None:
        """Take, for each name, the open file that has the tensor, a mapping or one of safetensors, and its path."""
        self._files, self._paths = files, paths

    def joined(self, names: Sequence[str]) -> Tensor:
        """Return several tensors as one; the pages of a file that they are copied from do not stay in memory."""
        if len(names) == 1:
            return self[names[0]]
        if isinstance(self._files[names[0]], dict):
            return torch.cat([self[name] for name in names])
        with ExitStack() as stack:
            return torch.cat([_open(self._paths[name], stack).get_tensor(name) for name in names])

    def __getitem__(self, name: str) -> Tensor:
        file = self._files[name]
        tensor: Tensor = file[name] if isinstance(file, dict) else file.get_tensor(name)
        return tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


@contextmanager
def open_tensors(folder: Path) -> Iterator[Tensors]:
    """Open the weights in a folder. A pickle is read without running code from it.

    Raises:
        UserError: there are none, one file of several is missing, or a file is damaged.
    """
    with ExitStack() as stack:
        paths = weight_paths(folder)
        files: dict[str, Any] = {}
        of_names: dict[str, Path] = {}
        for path in paths:
            try:
                file = _open(path, stack)
            except FileNotFoundError:
                raise UserError(f"{path} is missing: the model's files are not complete") from None
            except UnpicklingError:
                raise UserError(f"{path} is damaged, or contains other things than weights by name") from None
            except (SafetensorError, RuntimeError, EOFError, OSError, ValueError) as error:
                raise UserError(f"{path} is damaged or no file of weights: {str(error).splitlines()[0]}") from None
            files |= dict.fromkeys(file.keys(), file)
            of_names |= dict.fromkeys(file.keys(), path)
        yield Tensors(files, of_names)


def weight_paths(folder: Path) -> list[Path]:
    """Return the files of the weights: one, or those that an index names, which may be missing.

    Raises:
        UserError: there are none, or the index is damaged.
    """
    for name in WEIGHTS:
        if (folder / name).is_file():
            return [folder / name]
        index = folder / f"{name}.index.json"
        if index.is_file():
            try:
                names = set(map(str, json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
            except (ValueError, LookupError, TypeError, AttributeError):
                raise UserError(f"{index} is damaged") from None
            if wrong := [name for name in names if Path(name).name != name]:
                raise UserError(f"{index} names {wrong[0]}, which is outside the model's folder")
            return [folder / name for name in sorted(names)]
    raise UserError(f"{folder} contains no weights: neither {' nor '.join(WEIGHTS)}")


def _open(path: Path, stack: ExitStack) -> Any:
    if path.suffix == ".safetensors":
        return stack.enter_context(safe_open(path, framework="pt"))
    is_zip = zipfile.is_zipfile(path)  # since torch 1.6; older files cannot be mapped into memory
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of how a file was pickled
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=is_zip)
    if not isinstance(content, dict) or not all(isinstance(tensor, Tensor) for tensor in content.values()):
        raise UnpicklingError
    return content
