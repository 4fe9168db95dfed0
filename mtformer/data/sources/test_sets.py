"""Test sets that sacreBLEU downloads."""

import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.error import HTTPError

from mtformer.support.errors import MtformerError, UserError
from mtformer.text.languages import base_language
from mtformer.text.lines import read_lines
from mtformer.text.pairs import Example, one_line


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
