"""Rows in arrays, and folders of arrays too large for memory: written in portions, read by mapping their files.

On Linux and macOS, a folder that is removed stays readable for the processes that have mapped it; on Windows, it cannot
be removed.
"""

import json
import mmap
import zlib
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self

import numpy as np
from pydantic import JsonValue

_INDEX = "index.json"
_BLOCK = 1 << 20


class Ragged:
    """Rows of integers of different lengths, one after the other in an array.

    Attributes:
        values: the integers of all rows.
        starts: (N + 1,) where each row starts in ``values``, and where the last one ends.
    """

    def __init__(self, values: np.ndarray, starts: np.ndarray) -> None:
        self.values, self.starts = values, starts

    @classmethod
    def of(cls, rows: Sequence[Sequence[int] | np.ndarray], dtype: str = "<i4") -> "Ragged":
        """Copy lists."""
        lengths = np.array([len(row) for row in rows], dtype=np.int64)
        return cls.of_lengths(np.fromiter(chain.from_iterable(rows), dtype=dtype, count=int(lengths.sum())), lengths)

    @classmethod
    def of_lengths(cls, values: np.ndarray, lengths: np.ndarray) -> "Ragged":
        """Take rows that follow each other in ``values``."""
        return cls(values, np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]))

    @classmethod
    def concatenated(cls, parts: Sequence["Ragged"]) -> "Ragged":
        """Join the rows of at least one array."""
        values = np.concatenate([part.values[part.starts[0] : part.starts[-1]] for part in parts])
        return cls.of_lengths(values, np.concatenate([part.lengths for part in parts]))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, index: int) -> np.ndarray:
        index = range(len(self))[index]
        return self.values[self.starts[index] : self.starts[index + 1]]

    def between(self, first: int, last: int) -> "Ragged":
        """Return the rows from ``first`` to before ``last``, in the same array."""
        return Ragged(self.values, self.starts[first : last + 1])

    def replaced(self, indices: np.ndarray, rows: Sequence[np.ndarray]) -> "Ragged":
        """Return a copy with ``rows`` in place of those at ``indices``, which increase."""
        lengths = self.lengths.copy()
        lengths[indices] = [len(row) for row in rows]
        parts = []
        end = self.starts[0]
        for index, row in zip(indices.tolist(), rows, strict=True):
            parts += [self.values[end : self.starts[index]], row]
            end = self.starts[index + 1]
        values = np.concatenate([*parts, self.values[end : self.starts[-1]]])
        return Ragged.of_lengths(values, lengths)

    def selected(self, indices: np.ndarray) -> "Ragged":
        """Return a copy of some rows."""
        lengths = self.lengths[indices]
        shifts = self.starts[indices] - (np.cumsum(lengths) - lengths)
        return Ragged.of_lengths(self.values[np.arange(lengths.sum()) + np.repeat(shifts, lengths)], lengths)

    @cached_property
    def lengths(self) -> np.ndarray:
        """The length of each row: (N,)."""
        return np.diff(self.starts).astype(np.int32)


class Arrays(NamedTuple):
    """The contents of a folder.

    Attributes:
        arrays: by name; they are read-only and mapped, so they stay usable when the files are removed.
        facts: the metadata written with them.
    """

    arrays: dict[str, np.ndarray]
    facts: dict[str, JsonValue]


class ArrayWriter:
    """Writes one-dimensional arrays into an empty folder, portion by portion.

    Use it as a context manager; when the block ends without an error, the folder is complete.
    """

    def __init__(self, folder: Path, dtypes: Mapping[str, str], ragged: Collection[str] = ()) -> None:
        """Describe the arrays.

        Args:
            folder: where to write.
            dtypes: NumPy's names of their types, such as ``<u2``, by name.
            ragged: the arrays that consist of rows of different lengths: for each, ``NAME_starts`` has the places where
                its rows start, and where the last one ends.
        """
        self._folder = folder
        self._ends = dict.fromkeys(ragged, 0)
        self._dtypes = {**dtypes, **{f"{name}_starts": "<i8" for name in ragged}}
        self._stack = ExitStack()
        self._files: dict[str, BinaryIO] = {}
        self._checksums = dict.fromkeys(self._dtypes, 0)
        self.facts: dict[str, JsonValue] = {}

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for name in self._dtypes:
                self._files[name] = stack.enter_context((self._folder / name).open("wb"))
            for name in self._ends:
                self.append(f"{name}_starts", np.zeros(1))
            self._stack = stack.pop_all()
        return self

    def append(self, name: str, values: "np.ndarray | bytes") -> None:
        """Add values to the array ``name``."""
        portion = values if isinstance(values, bytes) else values.astype(self._dtypes[name], copy=False).tobytes()
        self._files[name].write(portion)
        self._checksums[name] = zlib.crc32(portion, self._checksums[name])

    def append_rows(self, name: str, values: "np.ndarray | bytes", lengths: np.ndarray) -> None:
        """Add rows of these lengths, one after the other in ``values``, to the ragged array ``name``."""
        self.append(name, values)
        self.append(f"{name}_starts", self._ends[name] + np.cumsum(lengths))
        self._ends[name] += int(lengths.sum())

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        sizes = {name: file.tell() for name, file in self._files.items()}
        self._stack.close()
        if kind is None:
            arrays = {
                name: {"dtype": self._dtypes[name], "bytes": sizes[name], "crc32": self._checksums[name]}
                for name in self._dtypes
            }
            text = json.dumps({"arrays": arrays, "facts": self.facts}, ensure_ascii=False).encode()
            (self._folder / _INDEX).write_bytes(b"%08x\n" % zlib.crc32(text) + text)


def read_arrays(folder: Path) -> Arrays | None:
    """Map the arrays in ``folder``; return None if it is missing, incomplete or damaged."""
    try:
        checksum, _, text = (folder / _INDEX).read_bytes().partition(b"\n")
        if int(checksum, 16) != zlib.crc32(text):
            return None
        index = json.loads(text)
        arrays = {}
        for name, expected in index["arrays"].items():
            with (folder / name).open("rb") as file:
                if _checksum(file) != (expected["bytes"], expected["crc32"]):
                    return None
                arrays[name] = _mapped(file, np.dtype(expected["dtype"]), expected["bytes"])
    except (OSError, ValueError):
        return None
    return Arrays(arrays, index["facts"])


def _checksum(file: BinaryIO) -> tuple[int, int]:
    """Read a file and return its size and its checksum."""
    size = checksum = 0
    while block := file.read(_BLOCK):
        size += len(block)
        checksum = zlib.crc32(block, checksum)
    return size, checksum


def _mapped(file: BinaryIO, dtype: np.dtype, n_bytes: int) -> np.ndarray:
    if not n_bytes:  # cannot be mapped
        return np.empty(0, dtype)
    return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), dtype)
