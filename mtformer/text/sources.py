"""Sentence pairs from the sources of a config: text files, tsv, jsonl, Hugging Face data sets, the phrasebook."""

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mtformer.config import BuiltinText, HubDataset, JsonlFile, LanguagePair, Source, TextFiles, TsvFile
from mtformer.errors import Problems, UserError
from mtformer.text.drops import Drops
from mtformer.text.lines import is_utf8, read_lines

if TYPE_CHECKING:
    import numpy as np


class SentencePair(NamedTuple):
    """A text and its translation."""

    src: str
    tgt: str


class Example(NamedTuple):
    """A pair with its place in its source.

    Attributes:
        src: the text.
        tgt: its translation.
        line: the line of the file where it begins, or the row of a data set; from 1.
    """

    src: str
    tgt: str
    line: int


@dataclass(frozen=True)
class ParallelText:
    """The unchanged pairs of several sources, in order; each iteration reads the sources again, pair by pair.

    Iterating raises UserError if a source cannot be read or if its two sides differ in their number of lines. The
    sources after it are read as well, so that the error reports the problems of all of them.

    Attributes:
        sources: where the pairs come from.
        src_lang: the source language of all sources that do not name their own.
        tgt_lang: the target language of them.
    """

    sources: Sequence[Source]
    src_lang: str
    tgt_lang: str

    def __iter__(self) -> Iterator[SentencePair]:
        for src, tgt, _ in self.examples():
            yield SentencePair(src, tgt)

    def examples(self, drops: Drops | None = None) -> Iterator[Example]:
        """Yield the pairs with their lines, and count in ``drops`` the lines that contain none."""
        problems = Problems()
        for source in self.sources:
            with problems.collected():
                for example in self._read(source, Drops() if drops is None else drops):
                    if not problems:
                        yield example
        problems.raise_all()

    def _read(self, source: Source, drops: Drops) -> Iterator[Example]:
        src_lang, tgt_lang = self._languages(source)
        match source:
            case TextFiles():
                return _from_text_files(source)
            case TsvFile():
                return _from_tsv(source.tsv)
            case JsonlFile():
                src_key, tgt_key = source.src_key or src_lang, source.tgt_key or tgt_lang
                return _from_jsonl(source.jsonl, src_key, tgt_key)
            case HubDataset():
                return _from_hub(source, src_lang, tgt_lang)
            case BuiltinText():
                return _from_phrasebook(source, src_lang, tgt_lang)

    def parts(self) -> list["ParallelText"]:
        """Return the text of each source by itself, with its languages."""
        return [ParallelText([source], *self._languages(source)) for source in self.sources]

    def _languages(self, source: Source) -> LanguagePair:
        return source.languages or LanguagePair(self.src_lang, self.tgt_lang)

    def places(self, numbers: Iterable[int]) -> list[str]:
        """Return the places (file and line) of pairs, which are numbered from 0 through all sources."""
        wanted = sorted(numbers, reverse=True)
        found: list[str] = []
        number = 0
        for part in self.parts():
            for example in part.examples():
                if not wanted:
                    return found
                while wanted and wanted[-1] == number:
                    found.append(f"{source_name(part.sources[0])}:{example.line}")
                    wanted.pop()
                number += 1
        return found


def source_name(source: Source) -> str:
    """Return what messages call a source: its file, or the name and split of a data set."""
    match source:
        case TextFiles():
            return str(source.src)
        case TsvFile():
            return str(source.tsv)
        case JsonlFile():
            return str(source.jsonl)
        case HubDataset():
            return f"{source.hf}/{source.split}"
        case BuiltinText():
            return f"{source.builtin}/{source.split}"


class Fingerprint(NamedTuple):
    """Identifies a text.

    Attributes:
        n_pairs: the number of pairs.
        digest: changes when any pair, or their order, does.
    """

    n_pairs: int
    digest: str


def fingerprint(pairs: Iterable[SentencePair]) -> Fingerprint:
    """Count ``pairs`` and compute their digest, in one pass."""
    digest = hashlib.sha256()
    n_pairs = 0
    for pair in pairs:
        n_pairs += 1
        digest.update(f"{pair.src}\n{pair.tgt}\n".encode())
    return Fingerprint(n_pairs, digest.hexdigest()[:16])


def _from_text_files(source: TextFiles) -> Iterator[Example]:
    missing = object()
    with closing(read_lines(source.src)) as src_lines, closing(read_lines(source.tgt)) as tgt_lines:
        pairs = itertools.zip_longest(src_lines, tgt_lines, fillvalue=missing)
        for number, (src, tgt) in enumerate(pairs, 1):
            if src is missing or tgt is missing:
                raise UserError(_unequal_message(source))
            yield Example(str(src), str(tgt), number)


def _unequal_message(source: TextFiles) -> str:
    import numpy as np

    src_lengths = np.array([len(line) for line in read_lines(source.src)], dtype=np.float64)
    tgt_lengths = np.array([len(line) for line in read_lines(source.tgt)], dtype=np.float64)
    message = (
        f"{source.src} has {len(src_lengths):,} lines, {source.tgt} has {len(tgt_lengths):,}: "
        "they are not parallel line by line"
    )
    if not len(src_lengths) or not len(tgt_lengths):
        return message
    return f"{message}; the lines seem to shift near line {_shift_point(src_lengths, tgt_lengths):,}"


def _shift_point(src_lengths: "np.ndarray", tgt_lengths: "np.ndarray") -> int:
    """Guess from line lengths the line (from 1) after which the longer text has its surplus lines.

    Lines that translate each other have a similar ratio of lengths. For each line k, compare the lines before k as they
    are and those after it shifted by the surplus; return the k that fits best.
    """
    import numpy as np

    longer, shorter = sorted((np.log1p(src_lengths), np.log1p(tgt_lengths)), key=len, reverse=True)
    surplus, n = len(longer) - len(shorter), len(shorter)
    longer, shorter = longer - np.median(longer), shorter - np.median(shorter)
    unshifted = np.abs(longer[:n] - shorter)
    shifted = np.abs(longer[surplus:] - shorter)
    cost = np.concatenate([[0.0], np.cumsum(unshifted - shifted)])  # of a shift after k lines, up to a constant
    return int(np.argmin(cost)) + 1


def _from_tsv(path: Path) -> Iterator[Example]:
    for number, line in enumerate(read_lines(path), 1):
        columns = line.split("\t")
        if len(columns) < 2:
            raise UserError(f"{path}:{number}: this line has no tab: {line[:80]!r}")
        yield Example(columns[0], columns[1], number)


def _from_jsonl(path: Path, src_key: str, tgt_key: str) -> Iterator[Example]:
    for number, line in enumerate(read_lines(path), 1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            raise UserError(f"{path}:{number}: this line is not JSON: {line[:80]!r}") from None
        yield Example(*_pair_of_row(row, src_key, tgt_key, f"{path}:{number}"), number)


def _from_hub(source: HubDataset, src_lang: str, tgt_lang: str) -> Iterator[Example]:
    import datasets  # here: importing it takes seconds, and most runs read files

    try:
        rows = datasets.load_dataset(source.hf, source.config, split=source.split)
    except Exception as error:  # of many kinds, all of which mean that the source cannot be loaded
        causes = [error, error.__cause__] if error.__cause__ else [error]  # the cause names the line of a bad file
        reason = ": ".join(" ".join(str(cause).split()) or type(cause).__name__ for cause in causes)
        raise UserError(f"cannot load the data set {source.hf} (split {source.split}): {reason}") from error
    src_key, tgt_key = source.src_column or src_lang, source.tgt_column or tgt_lang
    for number, row in enumerate(rows, 1):
        yield Example(*_pair_of_row(row, src_key, tgt_key, f"{source.hf}, split {source.split}, row {number}"), number)


def _from_phrasebook(source: BuiltinText, src_lang: str, tgt_lang: str) -> Iterator[Example]:
    from mtformer import phrasebook  # reads its tables

    for language in (src_lang, tgt_lang):
        if language not in phrasebook.LANGUAGES:
            raise UserError(f"the phrasebook has {', '.join(phrasebook.LANGUAGES)}, not {language}")
    sayings = phrasebook.sentences(source.split, source.size, source.seed)
    for number, saying in enumerate(sayings, 1):
        yield Example(saying.text(src_lang), saying.text(tgt_lang), number)


def _pair_of_row(row: Any, src_key: str, tgt_key: str, where: str) -> SentencePair:
    """Extract a pair from a row, where it may be under ``translation``, as in translation data sets of the hub."""
    if isinstance(row, dict) and isinstance(row.get("translation"), dict):
        row = row["translation"]
    if not isinstance(row, dict):
        raise UserError(f"{where}: this is not an object with the keys {src_key!r} and {tgt_key!r}")
    for key in (src_key, tgt_key):
        if not isinstance(row.get(key), str):
            found = ", ".join(map(str, row)) or "none"
            raise UserError(f"{where}: there is no text under {key!r}; the keys are: {found}")
        if not is_utf8(row[key]):
            raise UserError(f"{where}: the text under {key!r} contains half a character (a lone surrogate)")
    return SentencePair(_one_line(row[src_key]), _one_line(row[tgt_key]))


def _one_line(text: str) -> str:
    return text.replace("\r", " ").replace("\n", " ")
