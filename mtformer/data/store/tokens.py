"""The tokenizer of a text and its tokens, kept in the user's cache as the text itself is."""

import shutil
from collections.abc import Callable, Mapping
from copy import deepcopy
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType

import numpy as np
from pydantic import JsonValue, TypeAdapter

from mtformer.data.corpus import Corpus, Ragged
from mtformer.data.drops import Drops
from mtformer.data.store.arrays import Arrays, ArrayWriter, read_arrays
from mtformer.data.store.encoding import Encoder, Rows, Variation, replaced
from mtformer.data.store.store import MAX_BYTES, StoredText, digest_of
from mtformer.support.cache import cache_folder, from_cache
from mtformer.support.processes.workers import in_order
from mtformer.support.progress import Progress
from mtformer.text.tokenizer.tokenizer import Tokenizer

_FORMAT = 1
_ORIGINS = {"numbers": "<u4", "sources": "<u2", "lines": "<u4"}
_DROPS = TypeAdapter(list[Drops])
_MAX_BYTES = 2**30  # of all tokenizers in the cache


def stored_tokenizer(text: StoredText, settings: JsonValue, train: Callable[[], Tokenizer]) -> Tokenizer:
    """Return the tokenizer of a text from the cache, or else train it: a dry run has often done so.

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
        self.corpus = Corpus(
            *self._sides,
            numbers=arrays["numbers"],
            sources=arrays["sources"],
            lines=arrays["lines"],
            drops=_DROPS.validate_python(facts["drops"]),
            special_ids=encoder.tokenizer.special_ids,
        )

    def varied(self, variation: Variation, settings: JsonValue) -> Corpus:
        """Return the pairs as an epoch varies them, and remove from the cache those of the epoch before.

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
        """Remove from the cache the pairs of the last epoch; those who have them can still use them."""
        if self._of_epoch:
            shutil.rmtree(self._of_epoch, ignore_errors=True)

    def _write(self, folder: Path) -> None:
        """Encode the text and write the arrays of the corpus."""
        drops = deepcopy(self._text.drops)
        with _RowWriter(folder, self._encoder, _ORIGINS) as out, self._progress() as progress:
            for chunk, (rows, dropped) in in_order(self._encoder, self._text.chunks()):
                for index, reason in dropped.items():
                    number = chunk.first + index
                    drops[self._text.sources[number]].add(reason, int(self._text.lines[number]))
                numbers = chunk.first + rows.indices
                out.append_rows(rows.src, rows.tgt)
                out.append("numbers", numbers)
                out.append("sources", self._text.sources[numbers])
                out.append("lines", self._text.lines[numbers])
                progress.advance(chunk.size)
            out.facts = {"drops": _DROPS.dump_python(drops, mode="json")}

    def _write_varied(self, folder: Path, variation: Variation) -> None:
        """Encode what varies and write the arrays of the corpus with it."""
        numbers = self.corpus.numbers
        src, tgt = self._sides
        with _RowWriter(folder, self._encoder) as out, self._progress() as progress:
            for chunk, changed in in_order(variation, self._text.chunks()):
                # Of the type of the numbers, lest searchsorted convert all of them.
                ends = np.array([chunk.first, chunk.first + chunk.size], numbers.dtype)
                first, last = np.searchsorted(numbers, ends).tolist()
                indices = numbers[first:last] - np.int64(chunk.first)
                rows = replaced(Rows(indices, src.between(first, last), tgt.between(first, last)), changed)
                out.append_rows(rows.src, rows.tgt)
                progress.advance(chunk.size)

    def _progress(self) -> Progress:
        return Progress("encoding the text", len(self._text), unit="pairs")


class _RowWriter(ArrayWriter):
    """Writes the two sides of a corpus beside other arrays."""

    def __init__(self, folder: Path, encoder: Encoder, others: Mapping[str, str] = MappingProxyType({})) -> None:
        src, tgt = encoder.dtypes
        dtypes = {"src": src, "tgt": tgt, "src_starts": "<i8", "tgt_starts": "<i8"}
        super().__init__(folder, dtypes | dict(others), ["src_starts", "tgt_starts"])
        self._ends = {"src": 0, "tgt": 0}

    def append_rows(self, src: Ragged, tgt: Ragged) -> None:
        """Add the two sides of some pairs."""
        for side, rows in (("src", src), ("tgt", tgt)):
            self.append(side, rows.values[rows.starts[0] : rows.starts[-1]])
            self.append(f"{side}_starts", self._ends[side] + rows.starts[1:] - rows.starts[0])
            self._ends[side] += int(rows.starts[-1] - rows.starts[0])


def _sides(arrays: Mapping[str, np.ndarray]) -> tuple[Ragged, Ragged]:
    return Ragged(arrays["src"], arrays["src_starts"]), Ragged(arrays["tgt"], arrays["tgt_starts"])


def _stored(key: str, write: Callable[[Path], object]) -> Arrays:
    return from_cache(_folder(key), read_arrays, write, max_bytes=MAX_BYTES)


def _folder(key: str) -> Path:
    return cache_folder("tokens") / key
