"""The tokens of a text and its tokenizer, kept in the user's cache as the text itself is.

A text is encoded once for all epochs, and again where an epoch varies its pairs.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from pydantic import JsonValue, TypeAdapter

from mtformer.data.arrays import Arrays, ArrayWriter, Ragged, read_arrays
from mtformer.data.augment import Augmenter, EncodedPair, TermSampler
from mtformer.data.store import CHUNK, MAX_BYTES, Chunk, StoredText, pack, unpack
from mtformer.model.architecture import SPECIAL_IDS, SpecialIds
from mtformer.support.cache import cache_folder, from_cache
from mtformer.support.files import digest_of, remove_folder
from mtformer.support.processes.workers import in_order
from mtformer.support.progress import Progress
from mtformer.text.pairs import Drops, SentencePair
from mtformer.text.tokenizer.tokenizer import Tokenizer

_FORMAT = 1
_ORIGINS = {"numbers": "<u4", "sources": "<u2", "lines": "<u4"}
_DROPS = TypeAdapter(list[Drops])
_MAX_BYTES = 2**30  # of all tokenizers in the cache


class Prefixed:
    """Rows that begin with the ids of their source's tags, which are not among the stored ids."""

    def __init__(self, rows: "Side", prefixes: Sequence[Sequence[int]], source_of_row: np.ndarray) -> None:
        """Take the rows, the ids in front of the rows of each source, and the source of each row: (N,)."""
        self._rows = rows
        self._prefixes = [np.array(prefix, dtype=np.int32) for prefix in prefixes]
        self._source_of_row = source_of_row

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> np.ndarray:
        return np.concatenate([self._prefixes[self._source_of_row[index]], self._rows[index]])

    @cached_property
    def lengths(self) -> np.ndarray:
        """The length of each row, with its prefix."""
        n_added = np.array([len(prefix) for prefix in self._prefixes], dtype=np.int32)
        return self._rows.lengths + n_added[self._source_of_row]


class InContext:
    """Rows of which some begin with the row before and the separator, which takes the place of its EOS."""

    def __init__(self, rows: "Side", before: "Side", chosen: np.ndarray, separator: int) -> None:
        """Take the rows, the rows to read before the next ones, which rows have context (N,), and the separator."""
        self._rows, self._before, self._chosen = rows, before, chosen
        self._separator = np.array([separator], dtype=np.int32)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> np.ndarray:
        row = self._rows[index]
        return np.concatenate([self._before[index - 1][:-1], self._separator, row]) if self._chosen[index] else row

    @cached_property
    def lengths(self) -> np.ndarray:
        """The length of each row, with its context."""
        return self._rows.lengths + np.where(self._chosen, np.roll(self._before.lengths, 1), 0)


Side = Ragged | Prefixed | InContext


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

    def with_sides(self, src: Side, tgt: Side) -> "Corpus":
        """Return the corpus with its ids replaced."""
        corpus = copy(self)
        corpus.src, corpus.tgt = src, tgt
        return corpus

    @property
    def dropped(self) -> Counter[str]:
        """The number of dropped pairs of all sources by reason."""
        return sum((drops.counts for drops in self.drops), Counter())


class Rows(NamedTuple):
    """Pairs of a chunk as ids.

    Attributes:
        indices: (N,) their indices in the chunk.
        src: the N source sides.
        tgt: the N target sides.
    """

    indices: np.ndarray
    src: Ragged
    tgt: Ragged


@dataclass(frozen=True)
class Encoder:
    """Encodes chunks of packed pairs with the likeliest tokens.

    Attributes:
        tokenizer: turns text into ids.
        max_length: the maximum number of tokens of a side, EOS included.
        max_ratio: the maximum ratio of the lengths of the sides.
    """

    tokenizer: Tokenizer
    max_length: int
    max_ratio: float

    def __call__(self, chunk: Chunk) -> tuple[Rows, dict[int, str]]:
        """Encode the usable training pairs of a chunk.

        Returns:
            these pairs, and the reasons to drop the others, by their indices in the chunk.
        """
        encoded = self.encode(unpack(chunk.packed))
        reasons = [self.reason_to_drop(row) for row in encoded]
        kept = {index: row for index, (row, reason) in enumerate(zip(encoded, reasons, strict=True)) if not reason}
        return self.rows(kept), {index: reason for index, reason in enumerate(reasons) if reason}

    def corpus(self, pairs: Sequence[SentencePair]) -> Corpus:
        """Encode pairs in memory, and drop unusable ones."""
        parts, drops = [self.rows({})], Drops()
        for first in range(0, len(pairs), CHUNK):
            portion = pairs[first : first + CHUNK]
            rows, dropped = self(Chunk(first, len(portion), pack(portion)))
            for index, reason in dropped.items():
                drops.add(reason, first + index + 1)
            parts.append(rows._replace(indices=first + rows.indices))
        indices, *sides = zip(*parts, strict=True)
        ids = map(Ragged.concatenated, sides)
        numbers, special_ids = np.concatenate(indices), self.tokenizer.special_ids
        return Corpus(*ids, numbers=numbers, drops=[drops], special_ids=special_ids)

    def encode(self, pairs: Sequence[SentencePair]) -> list[EncodedPair]:
        """Return both sides of each pair as ids."""
        src = self.tokenizer.encode_src([pair.src for pair in pairs])
        tgt = self.tokenizer.encode_tgt([pair.tgt for pair in pairs])
        return list(map(EncodedPair, src, tgt))

    def reason_to_drop(self, row: EncodedPair) -> str | None:
        """Return the reason to drop a pair from training; None to keep it."""
        shorter, longer = sorted(map(len, row))
        if shorter <= 1:
            return "a side is empty"
        if longer > self.max_length:
            return f"longer than {self.max_length} tokens (data.max_length)"
        if longer > self.max_ratio * shorter:
            return f"one side more than {self.max_ratio:g} times as long as the other (data.max_ratio)"
        return None

    def rows(self, rows: Mapping[int, EncodedPair]) -> Rows:
        """Collect pairs by their indices in the chunk."""
        indices = sorted(rows)
        src, tgt = ([rows[index][side] for index in indices] for side in (0, 1))
        src_dtype, tgt_dtype = self.dtypes
        return Rows(np.array(indices, dtype=np.int64), Ragged.of(src, src_dtype), Ragged.of(tgt, tgt_dtype))

    @property
    def dtypes(self) -> tuple[str, str]:
        """The types of source and target ids."""
        src_size, tgt_size = self.tokenizer.src_vocab_size, self.tokenizer.tgt_vocab_size
        return "<u2" if src_size <= 2**16 else "<u4", "<u2" if tgt_size <= 2**16 else "<u4"

    @property
    def identity(self) -> JsonValue:
        """Everything that the ids depend on besides the text."""
        models = (self.tokenizer.src_model, self.tokenizer.tgt_model or b"")
        return [*(hashlib.sha256(model).hexdigest() for model in models), self.max_length, self.max_ratio]


@dataclass(frozen=True)
class Variation:
    """The changes of an epoch to the pairs; a pair stays unchanged if its change would make it too long.

    Attributes:
        encoder: encodes the pairs that change.
        epoch: the number of the epoch.
        augmenter: varies the text of pairs; None does not.
        terms: annotates terms; None does not.
    """

    encoder: Encoder
    epoch: int
    augmenter: Augmenter | None = None
    terms: TermSampler | None = None

    def __bool__(self) -> bool:
        return any((self.augmenter, self.terms))

    def __call__(self, chunk: Chunk) -> Rows:
        """Return the pairs of a chunk that change."""
        pairs = unpack(chunk.packed)
        changed = {}
        if self.augmenter:
            varied = self.augmenter.vary(pairs, chunk.first, self.epoch)
            changed = self._encode(varied)
            for index in changed:
                pairs[index] = varied[index]
        if self.terms:
            rows = self.terms.annotated(pairs, chunk.first, self.epoch)
            changed |= {index: row for index, row in rows.items() if max(map(len, row)) <= self.encoder.max_length}
        return self.encoder.rows(changed)

    def _encode(self, pairs: Mapping[int, SentencePair]) -> dict[int, EncodedPair]:
        """Encode pairs, by their indices in the chunk, except unusable ones."""
        rows = dict(zip(pairs, self.encoder.encode(list(pairs.values())), strict=True))
        return {index: row for index, row in rows.items() if not self.encoder.reason_to_drop(row)}


def replaced(rows: Rows, changed: Rows) -> Rows:
    """Put the pairs of ``changed`` in place of those in ``rows`` with the same indices; ignore others."""
    _, places, taken = np.intersect1d(rows.indices, changed.indices, assume_unique=True, return_indices=True)
    src, tgt = ([side[index] for index in taken.tolist()] for side in (changed.src, changed.tgt))
    return Rows(rows.indices, rows.src.replaced(places, src), rows.tgt.replaced(places, tgt))


def stored_tokenizer(text: StoredText, settings: JsonValue, train: Callable[[], Tokenizer]) -> Tokenizer:
    """Return the tokenizer of a text from the cache, where a dry run has often stored it, or else train it.

    Args:
        text: what the tokenizer is trained on.
        settings: all that it depends on besides the text.
        train: trains it.

    Raises:
        UserError: what ``train`` raises.
        MtformerError: the cache cannot be written.
    """

    def write(folder: Path) -> None:
        tokenizer = train()
        models = {"src": tokenizer.src_model} | ({"tgt": tokenizer.tgt_model} if tokenizer.tgt_model else {})
        with ArrayWriter(folder, dict.fromkeys(models, "<u1")) as out:
            for side, model in models.items():
                out.append(side, model)

    key = digest_of([_FORMAT, version("mtformer"), version("sentencepiece"), text.key, settings])
    stored = from_cache(cache_folder("tokenizers") / key, read_arrays, write, max_bytes=_MAX_BYTES)
    return Tokenizer(*(model.tobytes() for model in stored.arrays.values()))


class TokenStore:
    """Encodes the pairs of a text: once, and again those that an epoch varies.

    Attributes:
        corpus: the pairs with their likeliest tokens.
    """

    def __init__(self, text: StoredText, encoder: Encoder) -> None:
        """Encode the text, unless that has been done.

        Raises:
            MtformerError: the cache cannot be written.
        """
        self._text, self._encoder = text, encoder
        self._key = digest_of([_FORMAT, text.key, encoder.identity])
        self._of_epoch: Path | None = None
        arrays, facts = _stored(self._key, self._write)
        self._sides = _sides(arrays)
        numbers, sources, lines = (arrays[name] for name in ("numbers", "sources", "lines"))
        drops, special_ids = _DROPS.validate_python(facts["drops"]), encoder.tokenizer.special_ids
        self.corpus = Corpus(
            *self._sides, numbers=numbers, sources=sources, lines=lines, drops=drops, special_ids=special_ids
        )

    def varied(self, variation: Variation, settings: JsonValue) -> Corpus:
        """Return the pairs as varied in an epoch, and remove those of the previous epoch from the cache.

        Call :meth:`forget_epoch` after the last one.

        Args:
            variation: what changes.
            settings: what identifies it.

        Raises:
            MtformerError: the cache cannot be written.
        """
        key = f"{self._key}-{digest_of(settings)}"
        stored = _stored(key, lambda folder: self._write_varied(folder, variation))
        if self._of_epoch != _folder(key):
            self.forget_epoch()
        self._of_epoch = _folder(key)
        return self.corpus.with_sides(*_sides(stored.arrays))

    def forget_epoch(self) -> None:
        """Remove the pairs of the last epoch from the cache; arrays already loaded stay usable."""
        if self._of_epoch:
            remove_folder(self._of_epoch)

    def _write(self, folder: Path) -> None:
        """Encode the text and write the arrays of the corpus."""
        drops = deepcopy(self._text.drops)
        with _RowWriter(folder, self._encoder, _ORIGINS) as out, self._progress("encoding the text") as progress:
            for chunk, (rows, dropped) in in_order(self._encoder, self._text.chunks()):
                for index, reason in dropped.items():
                    number = chunk.first + index
                    drops[self._text.sources[number]].add(reason, int(self._text.lines[number]))
                numbers = chunk.first + rows.indices
                out.append_sides(rows)
                out.append("numbers", numbers)
                out.append("sources", self._text.sources[numbers])
                out.append("lines", self._text.lines[numbers])
                progress.advance(chunk.size)
            out.facts = {"drops": _DROPS.dump_python(drops, mode="json")}

    def _write_varied(self, folder: Path, variation: Variation) -> None:
        """Encode the varied pairs and write the arrays of the corpus with them."""
        numbers = self.corpus.numbers
        src, tgt = self._sides
        with _RowWriter(folder, self._encoder) as out, self._progress("varying the text") as progress:
            for chunk, changed in in_order(variation, self._text.chunks()):
                # Of the type of the numbers, lest searchsorted convert all of them.
                ends = np.array([chunk.first, chunk.first + chunk.size], numbers.dtype)
                first, last = np.searchsorted(numbers, ends).tolist()
                indices = numbers[first:last] - np.int64(chunk.first)
                rows = replaced(Rows(indices, src.between(first, last), tgt.between(first, last)), changed)
                out.append_sides(rows)
                progress.advance(chunk.size)

    def _progress(self, task: str) -> Progress:
        return Progress(task, len(self._text), unit="pairs")


class _RowWriter(ArrayWriter):
    """Writes the two sides of a corpus beside other arrays."""

    def __init__(self, folder: Path, encoder: Encoder, others: Mapping[str, str] = MappingProxyType({})) -> None:
        src, tgt = encoder.dtypes
        super().__init__(folder, {"src": src, "tgt": tgt, **others}, ragged=["src", "tgt"])

    def append_sides(self, rows: Rows) -> None:
        """Add the two sides of some pairs."""
        for name, side in (("src", rows.src), ("tgt", rows.tgt)):
            self.append_rows(name, side.values[side.starts[0] : side.starts[-1]], side.lengths)


def _sides(arrays: Mapping[str, np.ndarray]) -> tuple[Ragged, Ragged]:
    return Ragged(arrays["src"], arrays["src_starts"]), Ragged(arrays["tgt"], arrays["tgt_starts"])


def _stored(key: str, write: Callable[[Path], object]) -> Arrays:
    return from_cache(_folder(key), read_arrays, write, max_bytes=MAX_BYTES)


def _folder(key: str) -> Path:
    return cache_folder("tokens") / key
