"""Encoded sentence pairs in flat arrays, which may be mapped from files."""

from collections import Counter
from collections.abc import Sequence
from copy import copy
from functools import cached_property
from itertools import chain
from typing import Protocol

import numpy as np

from mtformer.model.architecture import SPECIAL_IDS, SpecialIds
from mtformer.text.pairs import Drops


class Side(Protocol):
    """One side of encoded pairs: rows of ids."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> np.ndarray: ...

    @property
    def lengths(self) -> np.ndarray:
        """The length of each row: (N,)."""


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
        starts = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum([len(row) for row in rows], out=starts[1:])
        return cls(np.fromiter(chain.from_iterable(rows), dtype=dtype, count=int(starts[-1])), starts)

    @classmethod
    def concatenated(cls, parts: Sequence["Ragged"]) -> "Ragged":
        """Join the rows of several: one at least."""
        lengths = np.concatenate([part.lengths for part in parts])
        values = np.concatenate([part.values[part.starts[0] : part.starts[-1]] for part in parts])
        return cls(values, np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]))

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
        return Ragged(values, np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]))

    @cached_property
    def lengths(self) -> np.ndarray:
        """The length of each row: (N,)."""
        return np.diff(self.starts).astype(np.int32)


class Corpus:
    """Encoded pairs: ``src[i]`` and ``tgt[i]`` are the ids of pair i, each ended by EOS.

    Attributes:
        numbers: (N,) the indices of the pairs in the text.
        sources: (N,) the index of the source of each pair.
        lines: (N,) the line of each pair in its source, from 1.
        drops: what was dropped from each source.
        special_ids: those of the vocabularies.
    """

    def __init__(
        self,
        src: Side,
        tgt: Side,
        *,
        numbers: np.ndarray | None = None,
        sources: np.ndarray | None = None,
        lines: np.ndarray | None = None,
        drops: Sequence[Drops] = (),
        special_ids: SpecialIds = SPECIAL_IDS,
    ) -> None:
        """Take encoded pairs; those of a single source without dropped pairs are numbered from 0, in lines from 1."""
        self.src, self.tgt = src, tgt
        self.numbers = np.arange(len(src)) if numbers is None else numbers
        self.sources = np.zeros(len(src), dtype=np.uint16) if sources is None else sources
        self.lines = self.numbers + 1 if lines is None else lines
        self.drops = list(drops)
        self.special_ids = special_ids

    def __len__(self) -> int:
        return len(self.src)

    def with_src(self, src: Side) -> "Corpus":
        """Return the same pairs with another source side."""
        return self.with_sides(src, self.tgt)

    def with_sides(self, src: Side, tgt: Side) -> "Corpus":
        """Return the same pairs with other ids."""
        corpus = copy(self)
        corpus.src, corpus.tgt = src, tgt
        return corpus

    @property
    def dropped(self) -> Counter[str]:
        """The number of dropped pairs of all sources by reason."""
        return sum((drops.counts for drops in self.drops), Counter())
