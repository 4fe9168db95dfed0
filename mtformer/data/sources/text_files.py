"""Pairs of text files, parallel line by line: those that a config names, and the test sets that sacreBLEU downloads."""

import difflib
import itertools
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple
from urllib.error import HTTPError

from mtformer.config import MosesFiles
from mtformer.data.new_config import options_of_files
from mtformer.support.errors import MtformerError, UserError
from mtformer.support.terminal import counted
from mtformer.text.languages import base_language
from mtformer.text.lines import COMPRESSED, NotUtf8Error, input_name, read_lines
from mtformer.text.pairs import Drops, Example, one_line


def read_text_files(src: Path, tgt: Path, uneven: Drops | None = None) -> Iterator[Example]:
    """Yield the pairs of two files.

    Args:
        src: the sources.
        tgt: their translations.
        uneven: pad the shorter file with empty lines, count them here, and escape bytes that are not UTF-8; None raises
            errors instead.

    Raises:
        UserError: one has more lines than the other, or a line is not text.
    """
    escape = uneven is not None
    with closing(read_lines(src, escape=escape)) as src_lines, closing(read_lines(tgt, escape=escape)) as tgt_lines:
        pairs = itertools.zip_longest(src_lines, tgt_lines)
        try:
            for number, (src_line, tgt_line) in enumerate(pairs, 1):
                if src_line is None or tgt_line is None:
                    if uneven is None:
                        n_longer = number + sum(1 for _ in pairs)
                        counts = (number - 1, n_longer) if src_line is None else (n_longer, number - 1)
                        raise UserError(_unequal_message(src, tgt, *counts))
                    uneven.add(only_in(src if tgt_line is None else tgt), number)
                yield Example(src_line or "", tgt_line or "", number)
        except NotUtf8Error as error:
            raise UserError(f"{error}, or let {_check_command(src, tgt)} --fix FOLDER decode it") from None


def moses_files(source: MosesFiles, src_lang: str, tgt_lang: str) -> tuple[Path, Path]:
    """Return the two files of a Moses-style source.

    Raises:
        UserError: one is missing; the message names those that there are.
    """
    return _moses_file(source.moses, src_lang), _moses_file(source.moses, tgt_lang)


def _moses_file(prefix: Path, language: str) -> Path:
    candidates = [prefix.with_name(f"{prefix.name}.{language}{ending}") for ending in ("", *COMPRESSED)]
    existing = [path for path in candidates if path.is_file()]
    if len(existing) == 1:
        return existing[0]
    if existing:
        raise UserError(f"both {input_name(existing[0])} and {existing[1].name} exist: name the files with src and tgt")
    there = ", ".join(sorted(path.name for path in prefix.parent.glob("*") if path.name.startswith(f"{prefix.name}.")))
    raise UserError(f"there is no file {input_name(candidates[0])}, compressed or not; there are: {there or 'none'}")


def only_in(longer: Path) -> str:
    """Return what :func:`read_text_files` counts the lines as that the other file lacks."""
    return f"only in {input_name(longer)}"


def unequal_counts(src: Path, tgt: Path, n_src: int, n_tgt: int) -> str:
    """Say how many lines each of two files has."""
    n_lines = counted(n_src, "line")
    return f"{input_name(src)} has {n_lines}, {input_name(tgt)} has {n_tgt:,}: they are not parallel line by line"


def _unequal_message(src: Path, tgt: Path, n_src: int, n_tgt: int) -> str:
    message = unequal_counts(src, tgt, n_src, n_tgt)
    if not n_src or not n_tgt:
        return message
    return f"{message}; {_check_command(src, tgt)} finds where lines are missing, and --fix realigns the others"


def _check_command(src: Path, tgt: Path) -> str:
    return f"mtformer data check {options_of_files(src, tgt, (None, None))}"


class TestSet(NamedTuple):
    """A test set in one direction.

    Attributes:
        pair: the direction, as sacreBLEU calls it.
        files: where it is.
        sources: one line each.
        references: one list, as long as ``sources``, for each human translator.
    """

    pair: str
    files: list[Path]
    sources: list[str]
    references: list[list[str]]


def download_test_set(name: str, src_lang: str, tgt_lang: str) -> TestSet:
    """Read a test set that sacreBLEU knows; it downloads the set into ``~/.sacrebleu`` (``$SACREBLEU``) once.

    Raises:
        UserError: there is no such set, or not for these languages.
        MtformerError: it cannot be downloaded, or is damaged.
    """
    from sacrebleu.dataset import DATASETS
    from sacrebleu.utils import SACREBLEU_DIR, get_reference_files, get_source_file

    if name not in DATASETS:
        close = difflib.get_close_matches(name, DATASETS, n=1)
        hint = f"did you mean {close[0]}?" if close else "sacrebleu --list names all"
        raise UserError(f"sacreBLEU has no test set {name!r}; {hint}")
    dataset = DATASETS[name]
    pairs = (f"{src_lang}-{tgt_lang}", f"{base_language(src_lang)}-{base_language(tgt_lang)}")
    pair = next((pair for pair in pairs if pair in dataset.langpairs), None)
    if pair is None:
        raise UserError(f"sacreBLEU's {name} has no {pairs[1]}; it has {', '.join(sorted(dataset.langpairs))}")
    try:
        files = [Path(file) for file in (get_source_file(name, pair), *get_reference_files(name, pair))]
    except (Exception, SystemExit) as error:  # SystemExit: a wrong checksum
        reason = "its checksum is wrong" if isinstance(error, SystemExit) else " ".join(str(error).split())
        reason = reason.removeprefix("<urlopen error ").removesuffix(">")
        if isinstance(error, HTTPError):
            error.close()  # it is also the response, with a connection
        folder = Path(SACREBLEU_DIR, name)
        raise MtformerError(
            f"sacreBLEU cannot download {name}: {reason}; try again later, and first delete {folder} if it is damaged"
        ) from error
    sources, *references = [list(read_lines(file)) for file in files]
    if not references or any(len(stream) != len(sources) for stream in references):
        raise MtformerError(f"{files[0].parent} is damaged: delete it, and sacreBLEU will download it again")
    return TestSet(pair, files, sources, references)


def read_test_set(name: str, src_lang: str, tgt_lang: str) -> Iterator[Example]:
    """Yield the sources of a test set with their first references."""
    test_set = download_test_set(name, src_lang, tgt_lang)
    for number, (src, tgt) in enumerate(zip(test_set.sources, test_set.references[0], strict=True), 1):
        yield Example(one_line(src), one_line(tgt), number)
