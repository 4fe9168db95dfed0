"""The text of a run, read once and kept in the user's cache.

The sources are read, filtered and written to a folder. Later starts, other runs and the other ranks map its files into
memory instead of decompressing and parsing the sources again. The folder's name is a digest of what the sources
contain, so a text that has changed is read anew.
"""

import hashlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain, islice, pairwise, starmap
from pathlib import Path
from secrets import token_hex
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, JsonValue

from mtformer import phrasebook
from mtformer.config import BuiltinText, HubDataset, LanguagePair, Source
from mtformer.data.arrays import Arrays, ArrayWriter, read_arrays
from mtformer.data.clean.filters import Filters, reason_of
from mtformer.data.clean.line_lengths import describe_alignment, lengths_of
from mtformer.data.sources.hub import commit_of
from mtformer.data.sources.parallel import ParallelText, Versions, file_version, require_same, source_name
from mtformer.support import __version__
from mtformer.support.cache import cache_folder, from_cache
from mtformer.support.errors import Problems, UserError
from mtformer.support.files import digest_of, file_digest, read_errors, remove_folder
from mtformer.support.processes.workers import in_order
from mtformer.support.progress import Progress
from mtformer.text.pairs import Drops, SentencePair

log = logging.getLogger(__name__)

_WITHOUT_INFLUENCE = {"weight", "tag", "general", "streaming"}  # keys of a source that leave its text as it is
CHUNK = 10_000  # pairs that are worked on at once
MAX_BYTES = 64 * 2**30  # of all texts in the cache, and of all tokens
_FORMAT = 3
_MOST_ALIGNED = 200_000  # pairs of a source whose alignment is looked at, which takes two seconds
_LINE_FEED = 10
HeldOutPairs = Mapping[str, Mapping[LanguagePair, Sequence[SentencePair]]]  # of ``valid`` and ``test``


def identity_of(text: ParallelText) -> tuple[JsonValue, Versions]:
    """Return an identity of the pairs of ``text``: contents of files, settings of sources, mtformer's version.

    Returns:
        the identity, or None if a source is a pipe, which can be read only once; and the versions of the files,
        which :func:`require_same` takes.

    Raises:
        UserError: a file cannot be read, or a data set does not exist.
        MtformerError: the hub cannot be reached.
    """
    versions: dict[Path, tuple[int, ...] | None] = {}

    @cache  # a file may be read for several directions
    def digest(path: Path) -> str:
        versions[path] = file_version(path)
        with read_errors(path):
            try:
                return file_digest(path)
            except IsADirectoryError:
                raise UserError(f"{path} is a folder, not a file") from None

    if text.has_pipe:
        return None, versions
    parts: list[JsonValue] = [__version__]
    for part in text.parts():
        [source] = part.sources
        version: str | None = None
        if isinstance(source, HubDataset):
            version = commit_of(source)
        elif isinstance(source, BuiltinText):
            version = _grammar_digest()
        parts.append([*part.languages, _settings(source), version, list(map(digest, part.files))])
    return parts, versions


@cache
def _grammar_digest() -> str:
    """Return a digest of the phrasebook's code and tables, which change between two releases too."""
    folder = Path(phrasebook.__file__).parent
    return digest_of([file_digest(path) for path in sorted([*folder.glob("*.py"), *folder.glob("tables/*.tsv")])])


def _settings(source: Source) -> dict[str, JsonValue]:
    """Return the settings of a source except the names of its files."""
    settings = source.model_dump(exclude=_WITHOUT_INFLUENCE)
    return {key: value for key, value in settings.items() if not isinstance(value, Path)}


class TextFacts(BaseModel):
    """The attributes of a :class:`StoredText` that are stored beside the arrays."""

    digest: str
    n_pairs: list[int]
    drops: list[Drops]
    warnings: list[tuple[int, str]] = Field(default=[])  # the source, which may have another name next time
    held_out: dict[str, list[tuple[LanguagePair, list[SentencePair]]]] = Field(default={})


class StoredText(Sequence[SentencePair]):
    """The pairs of a text that filters have kept, in the order of the sources.

    Attributes:
        key: identifies the text and the filters.
        digest: the fingerprint of all pairs, those that filters have dropped included.
        names: the name of each source in messages.
        n_pairs: the number of pairs in each source, dropped ones included.
        drops: what was dropped from each source.
        held_out: the pairs of each direction that are not among these, but in ``valid`` or ``test``.
        sources: (N,) the index of the source of each pair.
        lines: (N,) the line of each pair in its source, from 1.
    """

    def __init__(self, key: str, names: Sequence[str], stored: Arrays) -> None:
        """Take the arrays that :func:`stored_text` has written."""
        facts = TextFacts.model_validate(stored.facts)
        self.key = key
        self.names = list(names)
        self.digest = facts.digest
        self.n_pairs = facts.n_pairs
        self.drops = facts.drops
        self.held_out: HeldOutPairs = {part: dict(directions) for part, directions in facts.held_out.items()}
        self.sources, self.lines = stored.arrays["sources"], stored.arrays["lines"]
        self._text, self._starts = stored.arrays["text"], stored.arrays["text_starts"]

    def __len__(self) -> int:
        return len(self.sources)

    @overload
    def __getitem__(self, index: int) -> SentencePair: ...
    @overload
    def __getitem__(self, index: slice) -> list[SentencePair]: ...
    def __getitem__(self, index: int | slice) -> SentencePair | list[SentencePair]:
        if isinstance(index, slice):
            first, last, step = index.indices(len(self))
            return unpack(self._packed(first, max(first, last)))[::step]
        index = range(len(self))[index]
        [pair] = unpack(self._packed(index, index + 1))
        return pair

    def __iter__(self) -> Iterator[SentencePair]:
        for chunk in self.chunks():
            yield from unpack(chunk.packed)

    def sampled(self, n: int, seed: int) -> Sequence[SentencePair]:
        """Return ``n`` pairs at random, in their order, or all if there are no more."""
        if len(self) <= n:
            return self
        numbers = np.random.default_rng(seed).choice(len(self), n, replace=False, shuffle=False)
        return [self[number] for number in np.sort(numbers).tolist()]

    def of_source(self, source: int) -> Iterator[SentencePair]:
        """Yield all pairs of a source."""
        start, end = np.searchsorted(self.sources, np.array([source, source + 1], self.sources.dtype)).tolist()
        for first in range(start, end, CHUNK):
            yield from self[first : min(first + CHUNK, end)]

    def chunks(self) -> Iterator["Chunk"]:
        """Yield all pairs in chunks of up to 10,000, each from one source."""
        ends = np.cumsum(np.bincount(self.sources, minlength=1)).tolist()
        for start, end in pairwise([0, *ends]):
            for first in range(start, end, CHUNK):
                last = min(first + CHUNK, end)
                yield Chunk(first, last - first, self._packed(first, last))

    def _packed(self, first: int, last: int) -> bytes:
        return self._text[self._starts[first] : self._starts[last]].tobytes()


class Chunk(NamedTuple):
    """Successive pairs of a text.

    Attributes:
        first: the number of the first of them, from 0.
        size: how many there are.
        packed: what :func:`unpack` takes.
    """

    first: int
    size: int
    packed: bytes


def pack(pairs: Sequence[SentencePair]) -> bytes:
    """Return both sides of each pair as lines of UTF-8.

    Raises:
        ValueError: a text has a line feed.
    """
    text = "".join([f"{src}\n{tgt}\n" for src, tgt in pairs])
    if text.count("\n") != 2 * len(pairs):
        raise ValueError("a text has a line feed")
    return text.encode()


def unpack(text: bytes) -> list[SentencePair]:
    """Return the pairs that :func:`pack` has packed."""
    sides = text.decode().split("\n")
    return list(starmap(SentencePair, zip(sides[0:-1:2], sides[1::2], strict=True)))


def stored_text(text: ParallelText, filters: Mapping[LanguagePair, Filters] | None = None) -> StoredText:
    """Return the pairs of ``text`` that ``filters`` keep, from the cache or else through it.

    Args:
        text: the sources.
        filters: those of each direction; None keeps all pairs.

    Raises:
        UserError: a source cannot be read, or changes while being read.
        MtformerError: the cache cannot be written.
    """
    identity, versions = identity_of(text)
    filters = filters or {}
    rules: JsonValue = [[str(languages), of_direction.key] for languages, of_direction in filters.items()]

    def write(folder: Path) -> None:
        _write(folder, text, filters)
        require_same(versions)

    folder = cache_folder("text") / (digest_of([_FORMAT, identity, rules]) if identity else f"pipe-{token_hex(8)}")
    stored = from_cache(folder, read_arrays, write, max_bytes=MAX_BYTES)
    names = [source_name(source) for source in text.sources]
    for number, warning in TextFacts.model_validate(stored.facts).warnings:
        log.warning("%s: %s", names[number], warning)
    if not identity:  # a pipe is known by its text once it has been read
        remove_folder(folder)  # the arrays stay readable; on Windows it stays, until the cache is full
    key = folder.name if identity else digest_of([_FORMAT, __version__, stored.facts, rules])
    return StoredText(key, names, stored)


class Portion(NamedTuple):
    """Successive pairs of one source, with their languages and lines."""

    source: int
    languages: LanguagePair
    pairs: list[SentencePair]
    lines: list[int]

    def without(self, rules: Sequence[str | None], drops: Drops) -> "Portion":
        """Return the pairs that no rule of ``data.filters`` drops, and count the others."""
        if not any(rules):
            return self
        for rule, line in zip(rules, self.lines, strict=True):
            if rule:
                drops.add(reason_of(rule), line)
        kept = [index for index, rule in enumerate(rules) if not rule]
        return self._replace(pairs=[self.pairs[index] for index in kept], lines=[self.lines[index] for index in kept])


class TextWriter(ArrayWriter):
    """Writes the arrays of a :class:`StoredText`; the caller sets its facts, those of :class:`TextFacts`."""

    def __init__(self, folder: Path) -> None:
        """Write to an empty folder."""
        super().__init__(folder, {"text": "<u1", "sources": "<u2", "lines": "<u4"}, ragged=["text"])

    def append_portion(self, portion: Portion) -> None:
        """Add the pairs of a portion."""
        packed = pack(portion.pairs)
        ends = np.flatnonzero(np.frombuffer(packed, np.uint8) == _LINE_FEED)[1::2] + 1
        self.append_rows("text", packed, np.diff(ends, prepend=0))
        self.append("sources", np.full(len(portion.pairs), portion.source))
        self.append("lines", np.array(portion.lines))


def _write(folder: Path, text: ParallelText, filters: Mapping[LanguagePair, Filters]) -> None:
    """Read the sources and write the arrays of a :class:`StoredText`."""
    for warning in chain.from_iterable(of_direction.warnings() for of_direction in filters.values()):
        log.warning("%s", warning)
    digest = hashlib.sha256()
    drops = [Drops() for _ in text.sources]
    n_pairs = [0] * len(text.sources)
    alignment = [_Alignment() for _ in text.sources]
    with TextWriter(folder) as out, Progress("reading the text", unit="pairs") as progress:
        portions = text_portions(text.parts(), drops)
        for portion, rules in _filtered(portions, filters):
            digest.update(pack(portion.pairs))
            n_pairs[portion.source] += len(portion.pairs)
            alignment[portion.source].add(portion)
            rules = filters[portion.languages].corpus_rules(portion.pairs, rules) if rules else rules
            out.append_portion(portion.without(rules, drops[portion.source]))
            progress.advance(len(portion.pairs))
        warnings = [(number, warning) for number, source in enumerate(alignment) for warning in source.warnings()]
        facts = TextFacts(digest=digest.hexdigest()[:16], n_pairs=n_pairs, drops=drops, warnings=warnings)
        out.facts = facts.model_dump(mode="json")


class _Alignment:
    """Watches whether the two sides of a source stay in step, by the lengths of their lines."""

    def __init__(self) -> None:
        self._lengths: list[NDArray[np.int32]] = []
        self._lines: list[int] = []

    def add(self, portion: Portion) -> None:
        """Add the next pairs; of a large source, only the first ones count."""
        if len(self._lines) < _MOST_ALIGNED:
            self._lengths.append(lengths_of(portion.pairs))
            self._lines += portion.lines

    def warnings(self) -> Iterator[str]:
        """Yield warnings of passages out of alignment, or of a text that is no translation at all."""
        if self._lines:
            yield from describe_alignment(np.concatenate(self._lengths), self._lines, fixable=True)


def text_portions(parts: Sequence[ParallelText], drops: Sequence[Drops]) -> Iterator[Portion]:
    """Read sources; if one cannot be read, still read the others, so that all problems are reported at once.

    Args:
        parts: each source by itself.
        drops: counts the lines of each that contain no pair.

    Raises:
        UserError: sources cannot be read.
    """
    problems = Problems()
    for number, part in enumerate(parts):
        with problems.collected():
            examples = part.examples(drops[number])
            while chunk := list(islice(examples, CHUNK)):
                if not problems:
                    src, tgt, lines = zip(*chunk, strict=True)
                    yield Portion(number, part.languages, list(map(SentencePair, src, tgt)), list(lines))
    problems.raise_all()


def _filtered(
    portions: Iterator[Portion], filters: Mapping[LanguagePair, Filters]
) -> Iterator[tuple[Portion, list[str | None]]]:
    """Yield which of the rules for single pairs drop pairs; nothing without filters."""
    if not filters:
        return ((portion, []) for portion in portions)
    return in_order(partial(_pair_rules, filters), portions)


def _pair_rules(filters: Mapping[LanguagePair, Filters], portion: Portion) -> list[str | None]:
    return filters[portion.languages].pair_rules(portion.pairs)
