"""Test sets: from files, from any source of a config, from the config of a model's run, or through sacreBLEU."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict
from urllib.error import HTTPError

from sacrebleu.dataset import DATASETS
from sacrebleu.utils import SACREBLEU_DIR, get_reference_files, get_source_file

from mtformer.config import Config, HubDataset, LanguagePair, Source, TextFiles, parse_source
from mtformer.errors import MtformerError, UserError
from mtformer.header import Header
from mtformer.runs import run_of
from mtformer.text.languages import base_language
from mtformer.text.lines import read_lines
from mtformer.text.sources import ParallelText, SentencePair, fingerprint, source_name

_HOW_TO_NAME_ONE = "give --data, or --src and --ref"


@dataclass(frozen=True)
class EvalSet:
    """Sources with their references.

    Attributes:
        name: where they come from.
        sources: one line each.
        references: one list, as long as ``sources``, for each human translator.
        files: what they were read from.
        sacrebleu_arguments: what names the references on sacreBLEU's command line; empty if nothing does.
    """

    name: str
    sources: list[str]
    references: list[list[str]]
    files: list[Path]
    sacrebleu_arguments: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        """A digest of all sources and references; ``train`` records the same of its text."""
        targets = ("\n".join(found) for found in zip(*self.references, strict=True))
        return fingerprint(map(SentencePair, self.sources, targets)).digest


class TextOptions(TypedDict, total=False):
    """The arguments of :func:`read_eval_sets` that name test sets."""

    src: Path | None
    ref: Sequence[Path]
    data: Sequence[str]
    testset: Sequence[str]


def joined(sets: Sequence[EvalSet]) -> EvalSet:
    """Put test sets together into one.

    Raises:
        UserError: some have more references than others.
    """
    if len(sets) == 1:
        return sets[0]
    counts = sorted({len(one.references) for one in sets})
    if len(counts) > 1:
        raise UserError(f"the test sets have {counts[0]} and {counts[-1]} references: evaluate them one by one")
    return EvalSet(
        " + ".join(one.name for one in sets),
        [source for one in sets for source in one.sources],
        [[line for one in sets for line in one.references[i]] for i in range(counts[0])],
        [file for one in sets for file in one.files],
    )


def read_eval_sets(
    path: Path,
    header: Header | LanguagePair,
    *,
    src: Path | None = None,
    ref: Sequence[Path] = (),
    data: Sequence[str] = (),
    testset: Sequence[str] = (),
) -> list[EvalSet]:
    """Read the test sets that are given, or else those of the run that the bundle at ``path`` belongs to.

    A bundle names no files: its test sets are those of the ``config.yaml`` in the same folder, which is the user's own.

    Args:
        path: the bundle.
        header: its header, or else the languages alone.
        src: the source text, with ``ref``.
        ref: one or more reference translations of it.
        data: sources such as ``tsv:test.tsv``, instead of both.
        testset: names of sacreBLEU's test sets, such as ``wmt14``, instead of all these.

    Raises:
        UserError: there is no test set, or one is empty or cannot be read.
        MtformerError: sacreBLEU cannot download a test set.
    """
    languages = header.src_lang, header.tgt_lang
    if (src is None) != (not ref):
        raise UserError("give both --src and --ref, or neither for the run's test set")
    if sum((src is not None, bool(data), bool(testset))) > 1:
        raise UserError("give --src and --ref, or --data, or --testset, not several of them")
    if src is not None:
        sets = [_from_files(src, ref)]
    elif testset:
        sets = [_from_sacrebleu(name, *languages) for name in testset]
    elif data:
        sets = [_from_source(parse_source(text, *languages), *languages) for text in data]
    else:
        sets = _from_run(path, *languages)
    for one in sets:
        if not one.sources:
            raise UserError(f"the test set {one.name} is empty")
    return sets


def _from_files(src: Path, references: Sequence[Path]) -> EvalSet:
    sources = list(read_lines(src))
    streams = [list(read_lines(path)) for path in references]
    for path, stream in zip(references, streams, strict=True):
        if len(stream) != len(sources):
            raise UserError(f"{src} has {len(sources):,} lines, {path} has {len(stream):,}")
    return EvalSet(str(src), sources, streams, [src, *references], tuple(map(str, references)))


def _from_source(source: Source, src_lang: str, tgt_lang: str) -> EvalSet:
    pairs = list(ParallelText([source], src_lang, tgt_lang))
    sources, references = [pair.src for pair in pairs], [pair.tgt for pair in pairs]
    named = (str(source.tgt),) if isinstance(source, TextFiles) else ()
    return EvalSet(source_name(source), sources, [references], _files_of(source), named)


def _from_run(bundle: Path, src_lang: str, tgt_lang: str) -> list[EvalSet]:
    """Read the test sets that the config of the bundle's run names."""
    folder = run_of(bundle)
    if folder is None:
        raise UserError(f"{bundle} is not in the folder of a run, which would name a test set: {_HOW_TO_NAME_ONE}")
    try:
        config = folder.read_config(Config)
    except UserError as error:
        raise UserError(f"{error}: {_HOW_TO_NAME_ONE}") from None
    if not config.data.test:
        raise UserError(f"{folder.config} names no test set (data.test): {_HOW_TO_NAME_ONE}")
    try:
        return [_from_source(source, src_lang, tgt_lang) for source in config.data.test]
    except UserError as error:
        raise UserError(f"the test set of this run: {error}; or {_HOW_TO_NAME_ONE}") from None


def _from_sacrebleu(name: str, src_lang: str, tgt_lang: str) -> EvalSet:
    """Read a test set that sacreBLEU knows; it downloads the set into ``~/.sacrebleu`` (``$SACREBLEU``) once."""
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
    return EvalSet(name, sources, references, files, ("-t", name, "-l", pair))


def _files_of(source: Source) -> list[Path]:
    """List the files that ``source`` is read from; a data set of the hub may be a local folder."""
    if isinstance(source, HubDataset):
        return list(Path(source.hf).rglob("*"))
    return [value for _, value in source if isinstance(value, Path)]
