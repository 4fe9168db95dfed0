"""Test sets: from files, from any source of a config, from the config of a model's run, or through sacreBLEU."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Literal, TypedDict, Unpack

from mtformer.bundle.header import Header
from mtformer.config import Config, LanguagePair, MosesFiles, SacrebleuSet, Source, TextFiles, parse_source
from mtformer.data.held_out import warnings_of_mistakes
from mtformer.data.sources.parallel import ParallelText, source_files, source_name
from mtformer.data.sources.text_files import download_test_set
from mtformer.runs.folder import RunFolder, run_of
from mtformer.support.errors import UserError
from mtformer.support.terminal import counted
from mtformer.text.languages import UNDETERMINED
from mtformer.text.lines import input_name, read_lines
from mtformer.text.pairs import Example, SentencePair, fingerprint

log = logging.getLogger(__name__)

_HOW_TO_NAME_ONE = "give --data, or --src and --ref"


@dataclass(frozen=True)
class EvalSet:
    """Sources with their references.

    Attributes:
        name: where they come from.
        sources: one line each.
        references: one list, as long as ``sources``, for each human translator.
        files: what they were read from.
        sacrebleu_arguments: the arguments that name the references on sacreBLEU's command line; empty if none do.
        lines: where each pair begins in its file; empty if every line is a pair.
    """

    name: str
    sources: list[str]
    references: list[list[str]]
    files: list[Path]
    sacrebleu_arguments: tuple[str, ...] = ()
    lines: Sequence[int] = ()

    @property
    def fingerprint(self) -> str:
        """A digest of all sources and references; ``train`` records the same of its text."""
        targets = ("\n".join(streams) for streams in zip(*self.references, strict=True))
        return fingerprint(map(SentencePair, self.sources, targets)).digest


class TextOptions(TypedDict, total=False):
    """The arguments of :func:`read_eval_sets` that name test sets."""

    src: Path | None
    ref: Sequence[Path] | None
    data: Sequence[str] | None
    testset: Sequence[str] | None


def combined(sets: Sequence[EvalSet]) -> EvalSet:
    """Put test sets together into one.

    Raises:
        UserError: some have more references than others.
    """
    if len(sets) == 1:
        return sets[0]
    counts = sorted({len(test_set.references) for test_set in sets})
    if len(counts) > 1:
        raise UserError(f"the test sets have {counts[0]} and {counts[-1]} references: evaluate them one by one")
    return EvalSet(
        " + ".join(test_set.name for test_set in sets),
        [source for test_set in sets for source in test_set.sources],
        [[line for test_set in sets for line in test_set.references[i]] for i in range(counts[0])],
        [file for test_set in sets for file in test_set.files],
    )


def require_named(path: Path, **texts: Unpack[TextOptions]) -> None:
    """Refuse arguments of :func:`read_eval_sets` that name no test set, or several kinds of them.

    Raises:
        UserError: they are refused.
    """
    src, ref, data, testset = map(texts.get, ("src", "ref", "data", "testset"))
    if (src is None) != (not ref):
        raise UserError("give both --src and --ref, or neither for the run's test set")
    if sum((src is not None, bool(data), bool(testset))) > 1:
        raise UserError("give --src and --ref, or --data, or --testset, not several of them")
    if not any(texts.values()):
        _folder_of(path)


def read_eval_sets(
    path: Path,
    header: Header | LanguagePair,
    *,
    src: Path | None = None,
    ref: Sequence[Path] | None = None,
    data: Sequence[str] | None = None,
    testset: Sequence[str] | None = None,
) -> list[EvalSet]:
    """Read the test sets that are given, or else those of the run that the bundle at ``path`` belongs to.

    A bundle names no files: its test sets are those of the ``config.yaml`` in the same folder, which is the user's own,
    or what was held out of the training text. A run without any has its validation set scored, with a warning.

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
    languages = LanguagePair(header.src_lang, header.tgt_lang)
    require_named(path, src=src, ref=ref, data=data, testset=testset)
    if UNDETERMINED in languages and src is None:
        raise UserError(f"name the source language too (--from): a test set toward {languages.tgt_lang} has one")
    if src is not None and ref:
        sets = [from_files(src, ref)]
    elif testset:
        sets = [_from_sacrebleu(name, *languages) for name in testset]
    elif data:
        sets = [_from_source(parse_source(text, *languages), *languages) for text in data]
    else:
        sets = _from_run(path, languages)
    for test_set in sets:
        if not test_set.sources:
            raise UserError(f"the test set {test_set.name} is empty")
        pairs = zip(test_set.sources, test_set.references[0], strict=True)
        examples = [Example(*pair, line) for pair, line in zip(pairs, test_set.lines or count(1), strict=False)]
        for warning in warnings_of_mistakes(test_set.name, languages, examples):
            log.warning("%s", warning)
    return sets


def from_files(src: Path | None, references: Sequence[Path]) -> EvalSet:
    """Read references and their sources; without ``src`` the sources are empty.

    Raises:
        UserError: a file cannot be read, two are standard input, or they differ in length.
    """
    files = [*([] if src is None else [src]), *references]
    require_read_once(files)
    streams = [list(read_lines(path)) for path in files]
    n_lines = len(streams[0])
    for path, stream in zip(files, streams, strict=True):
        if len(stream) != n_lines:
            first, name = input_name(files[0]), input_name(path)
            raise UserError(f"{first} has {counted(n_lines, 'line')}, {name} has {len(stream):,}")
    sources = [""] * n_lines if src is None else streams.pop(0)
    named = () if Path("-") in references else tuple(map(str, references))
    return EvalSet(str(files[0]), sources, streams, files, named)


def require_read_once(files: Iterable[Path | None]) -> None:
    """Refuse files of which more than one is standard input.

    Raises:
        UserError: standard input would be read twice.
    """
    if list(map(str, files)).count("-") > 1:
        raise UserError("standard input cannot be read twice: name files for all inputs but one")


def _from_source(source: Source, src_lang: str, tgt_lang: str) -> EvalSet:
    if isinstance(source, SacrebleuSet):
        return _from_sacrebleu(source.sacrebleu, src_lang, tgt_lang)
    pairs = list(ParallelText([source], src_lang, tgt_lang).examples())
    sources, references = [pair.src for pair in pairs], [pair.tgt for pair in pairs]
    files = source_files(source, src_lang, tgt_lang)
    named = (str(files[1]),) if isinstance(source, TextFiles | MosesFiles) else ()
    return EvalSet(source_name(source), sources, [references], files, named, [pair.line for pair in pairs])


def has_test_set(bundle: Path, languages: LanguagePair) -> bool:
    """Tell whether the bundle's run has a test set for a direction: named by its config, or held out.

    Raises:
        UserError: there is no such config.
    """
    return bool(_sources_of(_folder_of(bundle), "test", languages))


def _from_run(bundle: Path, languages: LanguagePair) -> list[EvalSet]:
    """Read the test sets of the bundle's run, or else its validation sets."""
    folder = _folder_of(bundle)
    try:
        if sources := _sources_of(folder, "test", languages):
            return [_from_source(source, *languages) for source in sources]
        sets = [_from_source(source, *languages) for source in _sources_of(folder, "valid", languages)]
    except UserError as error:
        raise UserError(f"the test set of this run: {error}; or {_HOW_TO_NAME_ONE}") from None
    if not sets:
        raise UserError(f"{folder.path} has no test set for {languages} (data.test): {_HOW_TO_NAME_ONE}")
    log.warning(
        "%s has no test set (data.test): scoring its validation set, by which the best model was chosen", folder.path
    )
    return [replace(texts, name=f"{texts.name} (validation set)") for texts in sets]


def _folder_of(bundle: Path) -> RunFolder:
    folder = run_of(bundle)
    if folder is None:
        raise UserError(f"{bundle} is not in the folder of a run, which would name a test set: {_HOW_TO_NAME_ONE}")
    return folder


def _sources_of(folder: RunFolder, part: Literal["valid", "test"], languages: LanguagePair) -> list[Source]:
    """Return the sources of a part of the data in one direction; where the config names none, those held out."""
    config = folder.read_config(Config)
    if part in config.data.held_out:
        src, tgt = folder.held_out_files(part, languages)
        return [TextFiles(src=src, tgt=tgt)] if src.is_file() and tgt.is_file() else []
    return [source for source in getattr(config.data, part) if source.languages in (None, languages)]


def _from_sacrebleu(name: str, src_lang: str, tgt_lang: str) -> EvalSet:
    test_set = download_test_set(name, src_lang, tgt_lang)
    return EvalSet(name, test_set.sources, test_set.references, test_set.files, ("-t", name, "-l", test_set.pair))
