"""The pairs of several sources in a row, and random samples of them."""

import logging
import random
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from mtformer.config import (
    BuiltinText,
    CsvFile,
    HubDataset,
    JsonlFile,
    LanguagePair,
    MosesFiles,
    SacrebleuSet,
    Source,
    TextFiles,
    TmxFile,
    TsvFile,
)
from mtformer.data.sources.hub import read_hub
from mtformer.data.sources.tables import read_jsonl, read_table
from mtformer.data.sources.text_files import moses_files, read_test_set, read_text_files
from mtformer.data.sources.tmx import read_tmx
from mtformer.support.errors import Problems, UserError
from mtformer.support.progress import watched
from mtformer.text.lines import input_name, is_regular_input
from mtformer.text.pairs import Drops, Example, SentencePair

Item = TypeVar("Item")
log = logging.getLogger(__name__)

Versions = Mapping[Path, tuple[int, ...] | None]  # of files, as :func:`file_version` describes them


@dataclass(frozen=True)
class ParallelText:
    """The unchanged pairs of several sources, in order; each iteration reads the sources again, pair by pair.

    Iterating raises UserError if a source cannot be read, changes meanwhile, or if its two sides differ in their number
    of lines. The sources after it are read as well, so that the error reports the problems of all of them. Pipes and
    standard input can be read in one iteration only.

    Attributes:
        sources: where the pairs come from.
        src_lang: the source language of all sources that do not name their own.
        tgt_lang: the target language of them.
        lenient: whether to pad the shorter of two files with empty lines, and to escape bytes that are not UTF-8 (see
            :func:`.read_lines`), instead of raising an error.
    """

    sources: Sequence[Source]
    src_lang: str
    tgt_lang: str
    lenient: bool = False
    _read_once: set[Path] = field(default_factory=set, repr=False, compare=False)

    def __iter__(self) -> Iterator[SentencePair]:
        for src, tgt, _ in self.examples():
            yield SentencePair(src, tgt)

    def examples(self, drops: Drops | None = None) -> Generator[Example, None, None]:
        """Yield the pairs with their lines, and count in ``drops`` the lines that contain none."""
        problems = Problems()
        for source in self.sources:
            with problems.collected():
                languages = self._languages(source)
                files = source_files(source, *languages)
                _require_unread(files, self._read_once)
                with _unchanged(files):
                    counted = Drops() if drops is None else drops
                    for example in _read(source, *languages, counted, self.lenient):
                        if not problems:
                            yield example
        problems.raise_all()

    def parts(self) -> list["ParallelText"]:
        """Return the text of each source by itself, with its languages."""
        return [
            ParallelText([source], *self._languages(source), self.lenient, self._read_once) for source in self.sources
        ]

    @property
    def languages(self) -> LanguagePair:
        """The languages of all sources that do not name their own."""
        return LanguagePair(self.src_lang, self.tgt_lang)

    @property
    def files(self) -> list[Path]:
        """The files that all sources are read from.

        Raises:
            UserError: a file of a Moses-style source is missing.
        """
        return [path for source in self.sources for path in source_files(source, *self._languages(source))]

    @property
    def has_pipe(self) -> bool:
        """Whether a source is a pipe or standard input; raises the errors of :attr:`files`."""
        return not all(map(can_be_read_again, self.files))

    def _languages(self, source: Source) -> LanguagePair:
        return source.languages or self.languages


def require_readable(texts: Iterable[ParallelText]) -> None:
    """Read the first pair of each file: most problems, such as missing columns, show there, in seconds.

    Pipes are left alone, since they can be read only once, and so are sources that have to be downloaded.

    Raises:
        UserError: with the problems of all sources; a pipe that several of them need is one.
    """
    problems = Problems()
    read_once: set[Path] = set()
    for part in (part for text in texts for part in text.parts()):
        with problems.collected():
            files = part.files
            _require_unread(files, read_once)
            if files and not part.has_pipe:
                next(_read(part.sources[0], *part.languages, Drops(), part.lenient), None)
    problems.raise_all()


def source_name(source: Source) -> str:
    """Return the name of a source in messages: its file, or the name and split of a data set."""
    match source:
        case HubDataset():
            return f"{source.hf}/{source.split}"
        case SacrebleuSet():
            return f"sacrebleu/{source.sacrebleu}"
        case BuiltinText():
            return f"{source.builtin}/{source.split}"
    return input_name(next(value for _, value in source if isinstance(value, Path)))


def source_files(source: Source, src_lang: str, tgt_lang: str) -> list[Path]:
    """List the files that ``source`` is read from; of a data set, those of a local folder.

    Raises:
        UserError: a file of a Moses-style source is missing.
    """
    match source:
        case MosesFiles():
            return list(moses_files(source, src_lang, tgt_lang))
        case HubDataset():
            return [path for path in sorted(Path(source.hf).rglob("*")) if path.is_file()]
        case _:
            return [value for _, value in source if isinstance(value, Path)]


def _read(source: Source, src_lang: str, tgt_lang: str, drops: Drops, lenient: bool = False) -> Iterator[Example]:
    match source:
        case TextFiles() | MosesFiles():
            src, tgt = source_files(source, src_lang, tgt_lang)
            return read_text_files(src, tgt, drops if lenient else None)
        case TsvFile() | CsvFile():
            return read_table(source, src_lang, tgt_lang, drops, escape=lenient)
        case JsonlFile():
            return read_jsonl(source, src_lang, tgt_lang, drops, escape=lenient)
        case TmxFile():
            return read_tmx(source.tmx, src_lang, tgt_lang, drops)
        case HubDataset():
            return read_hub(source, src_lang, tgt_lang)
        case SacrebleuSet():
            return read_test_set(source.sacrebleu, src_lang, tgt_lang)
        case BuiltinText():
            return _read_phrasebook(source, src_lang, tgt_lang)


def _read_phrasebook(source: BuiltinText, src_lang: str, tgt_lang: str) -> Iterator[Example]:
    from mtformer.phrasebook.splits import LANGUAGES, sentences  # builds its tables
    from mtformer.phrasebook.typed import Typist

    for language in (src_lang, tgt_lang):
        if language not in LANGUAGES:
            raise UserError(f"the phrasebook has {', '.join(LANGUAGES)}, not {language}")
    sayings = sentences(source.split, source.size, source.seed)
    typist = Typist(f"{source.seed}", src_lang) if source.split == "train" else None
    for number, saying in enumerate(sayings, 1):
        src = saying.text(src_lang)
        yield Example(typist.type(src) if typist else src, saying.text(tgt_lang), number)


def _require_unread(files: Iterable[Path], read_once: set[Path]) -> None:
    """Refuse a pipe that is in ``read_once``, and add the others to it."""
    for path in files:
        if not can_be_read_again(path):
            if path in read_once:
                raise UserError(
                    f"{input_name(path)} is a pipe, which can be read only once, and its text is needed again: "
                    "write it to a file first"
                )
            read_once.add(path)


def can_be_read_again(path: Path) -> bool:
    """Tell whether an input is a file, and no pipe."""
    return str(path) != "-" and is_regular_input(path)


@contextmanager
def _unchanged(files: Sequence[Path]) -> Iterator[None]:
    """Require that no file changes while the block reads it to its end.

    Raises:
        UserError: one has changed.
    """
    before = {path: file_version(path) for path in files}
    try:
        yield
    except UserError:
        require_same(before)  # explains the error better
        raise
    require_same(before)


def require_same(versions: Versions) -> None:
    """Refuse files that are no longer as they were when :func:`file_version` described them.

    Raises:
        UserError: naming one that has changed.
    """
    for path, version in versions.items():
        if version != file_version(path):
            raise UserError(
                f"{input_name(path)} changed while it was being read: rerun when nothing writes to it any more"
            )


def file_version(path: Path) -> tuple[int, ...] | None:
    """Return size, time and number of a file, by which changes show; None for a pipe or an unreadable file."""
    try:
        status = path.stat()
    except OSError:  # reading it says what is wrong
        return None
    return (status.st_size, status.st_mtime_ns, status.st_ino) if can_be_read_again(path) else None


class Reservoir(Generic[Item]):
    """A sample of a stream in which all items are equally likely (Vitter 1985, algorithm R).

    Attributes:
        items: the sample; all items of the stream while there are no more than ``size``.
    """

    def __init__(self, size: int, seed: int) -> None:
        """Keep ``size`` items."""
        self.items: list[Item] = []
        self._size, self._n_seen = size, 0
        self._generator = random.Random(seed)

    def add(self, item: Item) -> None:
        """Take the next item of the stream."""
        self._n_seen += 1
        if len(self.items) < self._size:
            self.items.append(item)
        elif (place := self._generator.randrange(self._n_seen)) < self._size:
            self.items[place] = item


def sample_pairs(source: Source, src_lang: str, tgt_lang: str, n: int, seed: int) -> list[SentencePair]:
    """Return ``n`` random pairs of ``source``, or all of them if there are fewer.

    The pairs keep the order of the source and are equally likely. The training text of the phrasebook is endless, so
    the first ``n`` pairs for ``seed`` are returned.
    """
    if isinstance(source, BuiltinText) and source.split == "train":
        source = BuiltinText.model_validate({"size": n, "seed": seed} | source.model_dump(exclude_unset=True))
    kept = Reservoir[tuple[int, SentencePair]](n, seed)
    drops, n_pairs = Drops(), 0
    examples = ParallelText([source], src_lang, tgt_lang).examples(drops)
    for n_pairs, (src, tgt, _) in enumerate(watched(examples, "sampling", "pairs"), 1):
        kept.add((n_pairs, SentencePair(src, tgt)))
    if warning := drops.warning(source_name(source), n_pairs):
        log.warning("%s", warning)
    return [pair for _, pair in sorted(kept.items)]
